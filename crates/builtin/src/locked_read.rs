//! Reading small files under locks.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded, WHOLE_READ};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{LockKind, Sharing, Verify};
use benchmaster_units::ByteSize;

parameters! { pub struct LockedReadParameters: "Parameters of `locked-read`.";
    /// Number of files that each client goes through.
    files: u64 = 1000,
    /// Size of each file.
    file_size: ByteSize = ByteSize::kib(4),
    /// How often each file is locked, read whole and unlocked.
    repeats: u64 = 10,
    /// Whether a file is opened and closed for each lock, all files one after the other and over again; else it is opened
    /// once, locked and read so many times, and closed.
    reopen: bool = false,
    /// Kind of the locks. Write locks need files opened for writing.
    lock: LockKind = LockKind::Read,
    /// Files per directory; 0 puts all files into one directory.
    directory_width: u64 = 0,
    /// Whether each client has files in a directory of its own or all clients use the same ones.
    sharing: Sharing = Sharing::Private,
    /// Workers per client, each with its part of the files.
    workers: u32 = 1,
    /// Check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for LockedReadParameters {
    fn scale(&mut self, scale: Scale) {
        let workers = u64::from(self.workers).max(1);
        self.files = scale.count(self.files, workers).next_multiple_of(workers);
    }
}

static TEMPLATE: Template = Template::new(include_str!("locked_read.toml"));

pub(super) fn expand(p: &LockedReadParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, file_size, repeats, workers);
    let workers = u64::from(p.workers).max(1);
    checks.require(
        p.files.is_multiple_of(workers),
        "files",
        format!("{} files cannot be dealt out evenly among {} workers", p.files, p.workers),
        "use a multiple of `workers`",
    );
    let io_size = p.file_size.min(WHOLE_READ);
    checks.provable("file_size", io_size, p.verify);
    checks.finish()?;
    let iterations = p.files / workers * if p.reopen { p.repeats } else { 1 };
    let derived = json!({ "io_size": io_size, "iterations": iterations });
    TEMPLATE.fill(name, p, derived)
}
