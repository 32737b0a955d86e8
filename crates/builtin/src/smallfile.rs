//! One kind of operation on many small files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, Use, data, fileset, group, step, times};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Beside, Claim, FilePick, Fileset, Group, OffsetPick, OpenFlag, OperationKind, Sharing, Size, Step, Until,
    Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

/// What `smallfile` does with each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SmallfileOperation {
    /// Create, write, close.
    #[default]
    Create,
    /// Open, write as much again at the end, close.
    Append,
    /// Open, write in place from start to end, close.
    Overwrite,
    /// Open and empty, write, close.
    TruncateOverwrite,
    /// Open, read from start to end, close.
    Read,
    /// Read the attributes.
    Stat,
    /// Set the permissions.
    Chmod,
    /// Set an extended attribute.
    Setxattr,
    /// Read it.
    Getxattr,
    /// Make a symbolic link to the file.
    Symlink,
    /// Rename.
    Rename,
    /// Remove a file.
    Delete,
    /// Remove a file that was renamed before.
    DeleteRenamed,
    /// Make a directory.
    Mkdir,
    /// Remove a directory.
    Rmdir,
    /// List a directory.
    Readdir,
    /// List a directory with the attributes of all that is in it.
    #[serde(rename = "ls-l")]
    LsL,
    /// Remove a file, its symbolic link and its directory.
    Cleanup,
    /// Write a file under another name, set its attribute, flush it, and give it its name, as OpenStack Swift does.
    SwiftPut,
    /// Read a file and its attribute, as OpenStack Swift does.
    SwiftGet,
}

parameters! { pub struct SmallfileParameters: "Parameters of `smallfile`.";
    /// What is done with each file.
    operation: SmallfileOperation = SmallfileOperation::Create,
    /// Files of each worker.
    files: u64 = 10_000,
    /// Their sizes.
    file_size: Size = Size::Fixed(ByteSize::kib(64)),
    /// Bytes per read or write.
    io_size: ByteSize = ByteSize::mib(1),
    /// Files per directory; 0 puts all files into one directory.
    directory_width: u64 = 100,
    /// Bytes of an extended attribute.
    attribute_size: ByteSize = ByteSize(64),
    /// Flush every file that is written before it is closed.
    fsync: bool = false,
    /// Wait before each file.
    pause: TimeSpan = TimeSpan::default(),
    /// Workers per client.
    workers: u32 = 8,
    /// Stamp every block written and check every block read.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for SmallfileParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, 1);
    }
}

impl SmallfileOperation {
    /// Whether the files are not there before.
    fn creates(self) -> bool {
        matches!(self, Self::Create | Self::SwiftPut)
    }

    fn writes(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Append | Self::Overwrite | Self::TruncateOverwrite | Self::SwiftPut
        )
    }

    fn moves_data(self) -> bool {
        self.writes() || matches!(self, Self::Read | Self::SwiftGet)
    }
}

pub(super) fn expand(p: &SmallfileParameters, name: &str) -> Expanded {
    let op = p.operation;
    let fixed = p.file_size.fixed();
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("workers", p.workers.into());
    if op.moves_data() {
        checks.at_least_one("io_size", p.io_size.0);
        checks.provable("io_size", fixed.map_or(p.io_size, |size| p.io_size.min(size)), p.verify);
    }
    checks.require(
        !p.fsync || op.writes() && op != SmallfileOperation::SwiftPut,
        "fsync",
        "`fsync` is about files that are written, and this operation writes none or flushes them anyway",
        "remove it",
    );
    let append = op == SmallfileOperation::Append;
    checks.require(
        !append || fixed.is_some_and(|size| size.0 > 0),
        "file_size",
        "what is appended to a file is as long as the file was, and needs one size for all",
        "write for example `file_size = \"64KiB\"`",
    );
    checks.require(!append || !p.verify, "verify", "appended data cannot be verified", "remove it");
    checks.finish()?;
    let empty = fixed == Some(ByteSize(0));
    let io_size = fixed.map_or(p.io_size, |size| p.io_size.min(size).max(ByteSize(1)));
    let files = Use { fileset: name, purpose: "" };
    let (before, each) = steps(p, files, io_size, empty);
    let mut flow = Vec::new();
    if p.pause.nanos() > 0 {
        flow.push(Step { pause: Some(p.pause), ..Step::default() });
    }
    flow.extend(each);
    let setup = if before.is_empty() { vec![] } else { vec![times(p.files, before)] };
    let iterations = match op {
        // A directory is listed once.
        SmallfileOperation::Readdir | SmallfileOperation::LsL => {
            p.files.div_ceil(if p.directory_width == 0 { p.files } else { p.directory_width })
        }
        _ => p.files,
    };
    let number = p.files.saturating_mul(p.workers.into());
    let private = fileset(number, p.file_size.clone(), Sharing::Private, !op.creates());
    Ok(Workload {
        filesets: BTreeMap::from([(
            name.to_owned(),
            Fileset { directory_width: p.directory_width, ..private },
        )]),
        groups: vec![Group { setup, ..group("smallfile", p.workers, flow) }],
        until: Until { iterations: Some(iterations), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify && op.moves_data() && !empty,
        trace: p.trace,
        claims: Claim::Cache,
    })
}

/// What is done to each file before anything is measured, and what is measured.
fn steps(p: &SmallfileParameters, files: Use<'_>, io_size: ByteSize, empty: bool) -> (Vec<Step>, Vec<Step>) {
    use OperationKind as Op;
    use SmallfileOperation as What;
    let next = |op| files.name(op, FilePick::Next);
    let same = |op| files.name(op, FilePick::Same);
    let beside = |step: Step, of| Step { of: Some(of), ..step };
    let attribute = |step: Step| Step { io_size: Some(p.attribute_size.into()), ..step };
    let whole = |op| (!empty).then(|| files.whole(op, io_size));
    let write = |open: Step, flush: bool| {
        let flush = flush.then(|| step(Op::Fsync));
        [open].into_iter().chain(whole(Op::Write)).chain(flush).chain([step(Op::Close)]).collect()
    };
    let open = |op, flags: &[OpenFlag]| files.open(op, FilePick::Next, flags);
    let none = Vec::new();
    match p.operation {
        What::Create => (none, write(open(Op::Create, &[OpenFlag::Write, OpenFlag::Exclusive]), p.fsync)),
        What::Append => {
            let size = p.file_size.fixed().unwrap_or_default();
            let append = data(Op::Write, io_size, OffsetPick::Append);
            let mut steps = vec![
                open(Op::Open, &[OpenFlag::Write, OpenFlag::Append]),
                times(size.0.div_ceil(io_size.0), vec![append]),
            ];
            steps.extend(p.fsync.then(|| step(Op::Fsync)));
            steps.push(step(Op::Close));
            (none, steps)
        }
        What::Overwrite => (none, write(open(Op::Open, &[OpenFlag::Write]), p.fsync)),
        What::TruncateOverwrite => {
            (none, write(open(Op::Open, &[OpenFlag::Write, OpenFlag::Truncate]), p.fsync))
        }
        What::Read => {
            let open = open(Op::Open, &[]);
            (none, [open].into_iter().chain(whole(Op::Read)).chain([step(Op::Close)]).collect())
        }
        What::Stat => (none, vec![next(Op::Stat)]),
        What::Chmod => (none, vec![next(Op::Chmod)]),
        What::Setxattr => (none, vec![attribute(next(Op::Setxattr))]),
        What::Getxattr => (vec![attribute(next(Op::Setxattr))], vec![next(Op::Getxattr)]),
        What::Symlink => (none, vec![next(Op::Symlink)]),
        What::Rename => (none, vec![next(Op::Rename)]),
        What::Delete => (none, vec![next(Op::Unlink)]),
        What::DeleteRenamed => (vec![next(Op::Rename)], vec![next(Op::Unlink)]),
        What::Mkdir => (none, vec![next(Op::Mkdir)]),
        What::Rmdir => (vec![next(Op::Mkdir)], vec![next(Op::Rmdir)]),
        What::Readdir => (none, vec![files.name(Op::Readdir, FilePick::Random)]),
        What::LsL => (none, vec![files.name(Op::ReaddirStat, FilePick::Random)]),
        What::Cleanup => {
            let link =
                Step { label: Some("unlink-symlink".into()), ..beside(next(Op::Unlink), Beside::Symlink) };
            (vec![next(Op::Symlink), same(Op::Mkdir)], vec![link, same(Op::Rmdir), same(Op::Unlink)])
        }
        What::SwiftPut => {
            let mut steps: Vec<Step> = write(open(Op::Create, &[OpenFlag::Write, OpenFlag::Exclusive]), true);
            steps.extend([attribute(same(Op::Setxattr)), same(Op::Rename)]);
            (none, steps)
        }
        What::SwiftGet => {
            let open = open(Op::Open, &[]);
            let read = [open].into_iter().chain(whole(Op::Read)).chain([step(Op::Close)]);
            (vec![attribute(next(Op::Setxattr))], read.chain([same(Op::Getxattr)]).collect())
        }
    }
}
