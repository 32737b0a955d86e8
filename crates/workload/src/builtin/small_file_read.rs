//! Reading small files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, WHOLE_READ, fileset, group, step, whole_file};
use super::scale::{Scale, Scaled};
use crate::model::{Claim, FilePick, Fileset, OperationKind, Sharing, Size, Step, Until, Workload};
use benchmaster_units::{ByteSize, TimeSpan};

/// Parameters of `small-file-read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SmallFileReadParameters {
    /// Number of files per client.
    pub files: u64,
    /// Size of each file.
    pub file_size: ByteSize,
    /// Files per directory; 0 puts all files into one directory.
    pub directory_width: u64,
    /// Whether clients have files of their own or share one set.
    pub sharing: Sharing,
    /// Workers per client.
    pub workers: u32,
    /// Length of the measured phase.
    pub duration: TimeSpan,
    /// Time for which the workload runs before it is measured.
    pub warm_up: TimeSpan,
    /// Check every block read.
    pub verify: bool,
    /// Record every call.
    pub trace: bool,
    /// Whether the result is meant to be the storage's or may come from the client's cache.
    pub claims: Claim,
}

impl Default for SmallFileReadParameters {
    fn default() -> Self {
        Self {
            files: 10_000,
            file_size: ByteSize::kib(4),
            directory_width: 1000,
            sharing: Sharing::Private,
            workers: 16,
            duration: TimeSpan::seconds(60),
            warm_up: TimeSpan::default(),
            verify: false,
            trace: false,
            claims: Claim::Device,
        }
    }
}

impl Scaled for SmallFileReadParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

pub(super) fn expand(p: &SmallFileReadParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("file_size", p.file_size.0);
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.provable("file_size", p.file_size.min(WHOLE_READ), p.verify);
    checks.finish()?;
    let flow = vec![
        Step { file: Some(FilePick::Random), ..step(OperationKind::Open) },
        whole_file(OperationKind::Read, p.file_size.min(WHOLE_READ)),
        step(OperationKind::Close),
    ];
    let files = fileset(p.files, Size::Fixed(p.file_size), p.sharing, true);
    let files = Fileset { directory_width: p.directory_width, ..files };
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![group("read", p.workers, flow)],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: p.claims,
    })
}
