//! Unpacking an archive of many small files.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, Use, fileset, group, times};
use super::scale::{Scale, Scaled};
use super::software_build::skewed;
use crate::model::{Claim, FilePick, Fileset, OpenFlag, OperationKind, Sharing, Size, Until, Workload};
use benchmaster_units::{ByteSize, TimeSpan};

/// Parameters of `tree-extract`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TreeExtractParameters {
    /// Files per client; rounded up so that each worker fills whole directories.
    pub files: u64,
    /// Their sizes.
    pub file_size: Size,
    /// Files in each directory.
    pub directory_width: u64,
    /// Bytes per write.
    pub io_size: ByteSize,
    /// Workers per client; tar is one.
    pub workers: u32,
    /// Stamp every block written; what is there in the end is checked.
    pub verify: bool,
    /// Record every call.
    pub trace: bool,
}

impl Default for TreeExtractParameters {
    fn default() -> Self {
        Self {
            files: 70_000,
            file_size: skewed(ByteSize(4500), 1.4),
            directory_width: 15,
            io_size: ByteSize::kib(64),
            workers: 1,
            verify: false,
            trace: false,
        }
    }
}

impl Scaled for TreeExtractParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.directory_width.saturating_mul(self.workers.into()));
    }
}

pub(super) fn expand(p: &TreeExtractParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.size("file_size", &p.file_size);
    checks.at_least_one("directory_width", p.directory_width);
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("workers", p.workers.into());
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let workers = u64::from(p.workers);
    let rounds = p.files.div_ceil(p.directory_width.saturating_mul(workers));
    let files = Use { fileset: name, purpose: "" };
    let [mut create, write, close] = files.write_file(FilePick::Next, p.io_size);
    create.flags.push(OpenFlag::Exclusive);
    let unpack = vec![
        create,
        write,
        close,
        files.name(OperationKind::Utimes, FilePick::Same),
        files.name(OperationKind::Chmod, FilePick::Same),
    ];
    let flow = vec![times(p.directory_width, unpack), files.name(OperationKind::Mkdir, FilePick::Same)];
    let number = rounds.saturating_mul(p.directory_width).saturating_mul(workers);
    let private = fileset(number, p.file_size.clone(), Sharing::Private, false);
    Ok(Workload {
        filesets: BTreeMap::from([(
            name.to_owned(),
            Fileset { directory_width: p.directory_width.saturating_mul(workers), ..private },
        )]),
        groups: vec![group("extract", p.workers, flow)],
        until: Until { iterations: Some(rounds), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
