//! What several modules of tests need.

pub(crate) mod allocations;
pub(crate) mod embedded;
pub(crate) mod futures;
pub(crate) mod ganesha;
pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod random;
pub(crate) mod scripted;
pub(crate) mod stub;
