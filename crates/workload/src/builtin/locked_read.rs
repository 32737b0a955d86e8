//! Reading small files under locks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, WHOLE_READ, fileset, group, step, whole_file};
use super::scale::{Scale, Scaled};
use crate::model::{
    Claim, FilePick, Fileset, LockKind, OpenFlag, OperationKind, Repeat, Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

/// Parameters of `locked-read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LockedReadParameters {
    /// Number of files that each client goes through.
    pub files: u64,
    /// Size of each file.
    pub file_size: ByteSize,
    /// How often each file is locked, read whole and unlocked.
    pub repeats: u64,
    /// Whether a file is opened and closed for each lock, all files one after the other and over again; else it is opened
    /// once, locked and read so many times, and closed.
    pub reopen: bool,
    /// Kind of the locks. Write locks need files opened for writing.
    pub lock: LockKind,
    /// Files per directory; 0 puts all files into one directory.
    pub directory_width: u64,
    /// Whether each client has files in a directory of its own or all clients use the same ones.
    pub sharing: Sharing,
    /// Workers per client, each with its part of the files.
    pub workers: u32,
    /// Check every block read.
    pub verify: bool,
    /// Record every call.
    pub trace: bool,
}

impl Default for LockedReadParameters {
    fn default() -> Self {
        Self {
            files: 1000,
            file_size: ByteSize::kib(4),
            repeats: 10,
            reopen: false,
            lock: LockKind::Read,
            directory_width: 0,
            sharing: Sharing::Private,
            workers: 1,
            verify: false,
            trace: false,
        }
    }
}

impl Scaled for LockedReadParameters {
    fn scale(&mut self, scale: Scale) {
        let workers = u64::from(self.workers).max(1);
        self.files = scale.count(self.files, workers).next_multiple_of(workers);
    }
}

pub(super) fn expand(p: &LockedReadParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("file_size", p.file_size.0);
    checks.at_least_one("repeats", p.repeats);
    checks.at_least_one("workers", p.workers.into());
    checks.require(
        p.files.is_multiple_of(u64::from(p.workers).max(1)),
        "files",
        format!("{} files cannot be dealt out evenly among {} workers", p.files, p.workers),
        "use a multiple of `workers`",
    );
    let io_size = p.file_size.min(WHOLE_READ);
    checks.provable("file_size", io_size, p.verify);
    checks.finish()?;
    let flags = if p.lock == LockKind::Write { vec![OpenFlag::Write] } else { Vec::new() };
    let open = Step { file: Some(FilePick::Every), flags, ..step(OperationKind::Open) };
    let locked = vec![
        Step { lock: Some(p.lock), ..step(OperationKind::Lock) },
        whole_file(OperationKind::Read, io_size),
        step(OperationKind::Unlock),
    ];
    let close = step(OperationKind::Close);
    let each = p.files / u64::from(p.workers);
    let (flow, iterations) = match p.reopen {
        true => ([vec![open], locked, vec![close]].concat(), each * p.repeats),
        false => {
            let again = Step { repeat: Some(Repeat::Times(p.repeats)), flow: locked, ..Step::default() };
            (vec![open, again, close], each)
        }
    };
    let files = fileset(p.files, Size::Fixed(p.file_size), p.sharing, true);
    let files = Fileset { directory_width: p.directory_width, ..files };
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![group("locked-read", p.workers, flow)],
        until: Until { iterations: Some(iterations), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
