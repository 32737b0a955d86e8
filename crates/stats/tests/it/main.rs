//! Tests of the crate's public interface, in one binary.

mod coverage;
mod model;
mod model_properties;
mod series;
mod steady;
mod vectors;
