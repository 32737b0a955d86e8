//! What several modules of tests need.

pub(crate) mod transport;
pub(crate) mod wire;
