//! Parsers of what the kernel writes: one target for each sampler. Their corpus is the recorded texts of the
//! samplers' tests.

use std::path::{Path, PathBuf};

pub use benchmaster_telemetry::samplers::PARSERS;

/// Folders with recorded texts of a sampler.
pub fn recorded(name: &str) -> Vec<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/telemetry/src");
    let folders = [source.join("samplers").join(name), source.join(name).join("samples")];
    folders.into_iter().filter(|folder| folder.is_dir()).collect()
}

/// All parsers take the same bytes: for cargo-fuzz.
pub fn all(bytes: &[u8]) {
    PARSERS.iter().for_each(|(_, parser)| parser(bytes));
}
