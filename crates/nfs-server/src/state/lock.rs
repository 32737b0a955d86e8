//! Byte-range locks of NFSv4 and NLM clients, one table for both. (Signatures first.)
#![allow(missing_docs)]

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NlmWaiter {}
