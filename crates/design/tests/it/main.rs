//! Tests of the crate's public interface, in one binary.

mod arrays;
mod regular;
mod regular_block;
mod regular_search;
mod structure;
mod vectors;
