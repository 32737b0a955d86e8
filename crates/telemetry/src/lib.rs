//! What a host and its system say of themselves: the environment of a measurement, and counters beside it.
#![deny(missing_docs)]

pub mod environment;

pub use environment::Environment;
