//! Duplicate request cache: replies to non-idempotent requests of NFS v2, v3 and v4.0. (Signatures first.)

/// The cache.
#[derive(Debug)]
pub struct ReplyCache {}
