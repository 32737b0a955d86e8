//! Parsers of what the kernel writes: one target for each sampler. Their corpus is the recorded texts of the
//! samplers' tests.

use std::path::{Path, PathBuf};

pub use benchmaster_telemetry::samplers::PARSERS;

/// Folders with recorded texts of a sampler.
pub fn recorded(name: &str) -> [PathBuf; 2] {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/telemetry/src");
    [source.join("samplers").join(name), source.join(name).join("samples")]
}

/// All parsers take the same bytes: for cargo-fuzz.
pub fn all(bytes: &[u8]) {
    PARSERS.iter().for_each(|(_, parser)| parser(bytes));
}
