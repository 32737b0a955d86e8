//! Behaviour on demand: delays, errors, lost replies, disconnects, bandwidth. (Signatures first.)

/// One rule, such as `READ delay=1ms`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {}

/// The rules of a server and their state.
#[derive(Debug)]
pub struct Injector {}
