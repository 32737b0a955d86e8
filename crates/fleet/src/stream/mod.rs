//! Byte streams between controller and agents.

pub(crate) mod stamped;
pub mod stdio;
