//! Sessions and slots: exactly-once semantics (RFC 8881 §2.10.6). (Signatures first.)

/// A session.
#[derive(Debug)]
pub struct Session {}
