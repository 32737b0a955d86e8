//! Reading small files under locks.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, WHOLE_READ, fileset, group, step, whole_file};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, LockKind, OpenFlag, OperationKind, Repeat, Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

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
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
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
    let (flow, iterations) = if p.reopen {
        ([vec![open], locked, vec![close]].concat(), each * p.repeats)
    } else {
        let again = Step { repeat: Some(Repeat::Times(p.repeats)), flow: locked, ..Step::default() };
        (vec![open, again, close], each)
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
