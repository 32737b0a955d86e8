//! The checks against servers.

mod directories;
mod embedded;
mod mutants;
mod support;
