//! What a host and its system say of themselves: the environment of a measurement, and counters beside it.
//!
//! Parsers are pure functions over text; readers are thin and only fetch that text.
#![deny(missing_docs)]

pub mod clock;
pub mod environment;
pub mod facts;
pub mod fs;
pub mod host;
pub mod mountinfo;
pub mod process;

pub use environment::Environment;
