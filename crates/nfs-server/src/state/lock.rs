//! Byte-range locks of NFSv4 and NLM clients, one table for both. (Signatures first.)
