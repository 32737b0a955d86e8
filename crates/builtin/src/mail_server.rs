//! Filebench's mail server (varmail): one file for each mail.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, append, gamma, group, labelled, nested, on, step, whole_file_as};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, Group, OpenFlag, OperationKind, Sharing, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

/// Share of the files that are there when it begins.
const PREFILL: f64 = 0.8;
/// So many files per worker leave each one that is there to remove, and one that is not yet.
const FILES_PER_WORKER: u64 = 5;

parameters! { pub struct MailServerParameters: "Parameters of `mail-server`.";
    /// Number of files per client; four fifths of them are there when it begins.
    files: u64 = 1000,
    /// Mean size of the files that are there when it begins; sizes have a gamma distribution of shape 1.5.
    mean_file_size: ByteSize = ByteSize::kib(16),
    /// Files per directory; 0 puts all files into one directory.
    directory_width: u64 = 0,
    /// Bytes per read.
    io_size: ByteSize = ByteSize::mib(1),
    /// Most bytes of an append; sizes from 1 to this are equally likely.
    append_size: ByteSize = ByteSize::kib(16),
    /// Workers per client.
    workers: u32 = 16,
    /// Repetitions of the flow per second over all workers of a client; as fast as possible if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Check what is read of the files that were there when it began; what is appended is not checked.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for MailServerParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, FILES_PER_WORKER * u64::from(self.workers));
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

pub(super) fn expand(p: &MailServerParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("append_size", p.append_size.0);
    checks.at_least_one("mean_file_size", p.mean_file_size.0);
    let least = FILES_PER_WORKER * u64::from(p.workers);
    checks.require(
        p.files >= least,
        "files",
        format!("{} files are too few for {} workers that each remove and create one", p.files, p.workers),
        format!("use at least {least}"),
    );
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let to_append = vec![OpenFlag::Write, OpenFlag::Append];
    let flow = [
        vec![Step { file: Some(FilePick::Random), ..labelled(OperationKind::Unlink, "delete") }],
        on(
            "new",
            [
                Step { file: Some(FilePick::New), flags: to_append.clone(), ..step(OperationKind::Create) },
                append("append-new", p.append_size),
                labelled(OperationKind::Fsync, "fsync-new"),
                labelled(OperationKind::Close, "close-new"),
            ],
        ),
        on(
            "append",
            [
                Step {
                    file: Some(FilePick::Random),
                    flags: to_append,
                    ..labelled(OperationKind::Open, "open-to-append")
                },
                whole_file_as(OperationKind::Read, "read-to-append", p.io_size),
                append("append", p.append_size),
                step(OperationKind::Fsync),
                labelled(OperationKind::Close, "close-appended"),
            ],
        ),
        on(
            "read",
            [
                Step { file: Some(FilePick::Random), ..step(OperationKind::Open) },
                whole_file_as(OperationKind::Read, "read", p.io_size),
                step(OperationKind::Close),
            ],
        ),
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
        groups: vec![Group { rate: p.rate, ..group("mail-server", p.workers, flow) }],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
