//! Filebench's File Server.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, append, gamma, group, labelled, nested, on, step, whole_file_as};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, Group, OpenFlag, OperationKind, Sharing, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

/// Share of the files that are there when it begins.
const PREFILL: f64 = 0.8;
/// So many files per worker leave each one that is not there yet.
const FILES_PER_WORKER: u64 = 5;

parameters! { pub struct FileServerParameters: "Parameters of `file-server`.";
    /// Number of files per client; four fifths of them are there when it begins.
    files: u64 = 10_000,
    /// Mean size of the files; sizes have a gamma distribution of shape 1.5.
    mean_file_size: ByteSize = ByteSize::kib(128),
    /// Files per directory.
    directory_width: u64 = 20,
    /// Bytes per read and write of whole files.
    io_size: ByteSize = ByteSize::mib(1),
    /// Most bytes of an append; sizes from 1 to this are equally likely.
    append_size: ByteSize = ByteSize::kib(16),
    /// Workers per client.
    workers: u32 = 50,
    /// Repetitions of the flow per second over all workers of a client; as fast as possible if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Stamp files that are written whole and check what is read of them; what is appended is not checked.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for FileServerParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, FILES_PER_WORKER * u64::from(self.workers));
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

pub(super) fn expand(p: &FileServerParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("append_size", p.append_size.0);
    checks.at_least_one("mean_file_size", p.mean_file_size.0);
    let least = FILES_PER_WORKER * u64::from(p.workers);
    checks.require(
        p.files >= least,
        "files",
        format!(
            "{} files are too few for {} workers that each create one before they remove one",
            p.files, p.workers
        ),
        format!("use at least {least}"),
    );
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let open =
        |label, flags| Step { file: Some(FilePick::Random), flags, ..labelled(OperationKind::Open, label) };
    let flow = [
        on(
            "new",
            [
                Step {
                    file: Some(FilePick::New),
                    flags: vec![OpenFlag::Write],
                    ..step(OperationKind::Create)
                },
                whole_file_as(OperationKind::Write, "write", p.io_size),
                labelled(OperationKind::Close, "close-written"),
            ],
        ),
        on(
            "append",
            [
                open("open-to-append", vec![OpenFlag::Write, OpenFlag::Append]),
                append("append", p.append_size),
                labelled(OperationKind::Close, "close-appended"),
            ],
        ),
        on(
            "read",
            [
                open("open-to-read", Vec::new()),
                whole_file_as(OperationKind::Read, "read", p.io_size),
                labelled(OperationKind::Close, "close-read"),
            ],
        ),
        vec![
            Step { file: Some(FilePick::Random), ..labelled(OperationKind::Unlink, "delete") },
            Step { file: Some(FilePick::Random), ..step(OperationKind::Stat) },
        ],
    ]
    .concat();
    let tree = nested(p.files, p.directory_width);
    let fileset = Fileset {
        files: p.files,
        size: gamma(p.mean_file_size),
        directory_width: if tree.is_some() { 0 } else { p.directory_width },
        tree,
        sharing: Sharing::Private,
        prefill: PREFILL,
    };
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), fileset)]),
        groups: vec![Group { rate: p.rate, ..group("file-server", p.workers, flow) }],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
