//! The fuzz targets, for cargo-fuzz (`targets/`) or the bounded run on stable Rust (`main.rs`).

pub mod decoders;
pub mod dispatch;
pub mod files;
pub mod mutation;
pub mod telemetry;
