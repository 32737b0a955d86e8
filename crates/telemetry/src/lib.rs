//! What a host and its system say of themselves: the environment of a measurement, and counters beside it.
//!
//! Parsers are pure functions over text; readers are thin and only fetch that text.

pub mod derived;
pub mod environment;
pub mod facts;
pub mod fs;
pub mod host;
pub mod mountinfo;
pub mod mountstats;
pub mod process;
pub mod samplers;
pub mod sampling;

pub use benchmaster_record::environment::{Environment, TargetEnvironment};
