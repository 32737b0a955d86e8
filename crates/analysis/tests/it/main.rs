//! Tests of the crate's public interface, in one binary.

mod compare;
mod headlines;
mod noise;
