//! The checks against servers.

mod embedded;
mod support;
