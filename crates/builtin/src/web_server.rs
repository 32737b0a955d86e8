//! Filebench's Web Server.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, append, gamma, group, nested, step, whole_file};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, Group, OpenFlag, OperationKind, Repeat, Sharing, Size, Step, Tree, Until,
    Workload,
};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

/// Handle of the log.
const LOG: &str = "log";

parameters! { pub struct WebServerParameters: "Parameters of `web-server`.";
    /// Number of files per client.
    files: u64 = 1000,
    /// Mean size of the files; sizes have a gamma distribution of shape 1.5.
    mean_file_size: ByteSize = ByteSize::kib(16),
    /// Files per directory.
    directory_width: u64 = 20,
    /// Files read for each append to the log.
    reads: u64 = 10,
    /// Bytes per read.
    io_size: ByteSize = ByteSize::mib(1),
    /// Most bytes of an append to the log; sizes from 1 to this are equally likely.
    append_size: ByteSize = ByteSize::kib(16),
    /// Workers per client.
    workers: u32 = 100,
    /// Repetitions of the flow per second over all workers of a client; as fast as possible if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Check what is read.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for WebServerParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

pub(super) fn expand(p: &WebServerParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("reads", p.reads);
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("append_size", p.append_size.0);
    checks.at_least_one("mean_file_size", p.mean_file_size.0);
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let log = format!("{name}-log");
    let setup = vec![Step {
        fileset: Some(log.clone()),
        file: Some(FilePick::Own),
        handle: Some(LOG.into()),
        flags: vec![OpenFlag::Write, OpenFlag::Append],
        ..step(OperationKind::Open)
    }];
    let one = vec![
        Step { fileset: Some(name.to_owned()), file: Some(FilePick::Random), ..step(OperationKind::Open) },
        whole_file(OperationKind::Read, p.io_size),
        step(OperationKind::Close),
    ];
    let flow = vec![
        Step { repeat: Some(Repeat::Times(p.reads)), flow: one, ..Step::default() },
        Step { handle: Some(LOG.into()), ..append("append", p.append_size) },
    ];
    let tree = nested(p.files, p.directory_width);
    let fileset = |files, size, directory_width, tree: Option<Tree>| Fileset {
        files,
        size,
        directory_width: if tree.is_some() { 0 } else { directory_width },
        tree,
        sharing: Sharing::Private,
        prefill: 1.0,
    };
    Ok(Workload {
        filesets: BTreeMap::from([
            (name.to_owned(), fileset(p.files, gamma(p.mean_file_size), p.directory_width, tree)),
            // One log, to which all workers of a client append.
            (log, fileset(1, Size::Fixed(p.mean_file_size), 0, None)),
        ]),
        groups: vec![Group { setup, rate: p.rate, ..group("web-server", p.workers, flow) }],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
