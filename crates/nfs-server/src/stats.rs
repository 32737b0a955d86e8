//! Counts and service times per operation and client. (Signatures first.)

/// Counters of a server.
#[derive(Debug)]
pub struct Statistics {}
