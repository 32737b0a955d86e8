//! Filebench's Web Server.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, append, gamma, group, nested, step, whole_file};
use super::scale::{Scale, Scaled};
use crate::model::{
    Claim, FilePick, Fileset, Group, OpenFlag, OperationKind, Repeat, Sharing, Size, Step, Tree, Until,
    Workload,
};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

/// Handle of the log.
const LOG: &str = "log";

/// Parameters of `web-server`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WebServerParameters {
    /// Number of files per client.
    pub files: u64,
    /// Mean size of the files; sizes have a gamma distribution of shape 1.5.
    pub mean_file_size: ByteSize,
    /// Files per directory.
    pub directory_width: u64,
    /// Files read for each append to the log.
    pub reads: u64,
    /// Bytes per read.
    pub io_size: ByteSize,
    /// Most bytes of an append to the log; sizes from 1 to this are equally likely.
    pub append_size: ByteSize,
    /// Workers per client.
    pub workers: u32,
    /// Repetitions of the flow per second over all workers of a client; as fast as possible if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Length of the measured phase.
    pub duration: TimeSpan,
    /// Time for which the workload runs before it is measured.
    pub warm_up: TimeSpan,
    /// Check what is read.
    pub verify: bool,
    /// Record every call.
    pub trace: bool,
}

impl Default for WebServerParameters {
    fn default() -> Self {
        Self {
            files: 1000,
            mean_file_size: ByteSize::kib(16),
            directory_width: 20,
            reads: 10,
            io_size: ByteSize::mib(1),
            append_size: ByteSize::kib(16),
            workers: 100,
            rate: None,
            duration: TimeSpan::seconds(60),
            warm_up: TimeSpan::default(),
            verify: false,
            trace: false,
        }
    }
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
