//! Byte streams between controller and agents.

pub(crate) mod frames;
pub mod stdio;
