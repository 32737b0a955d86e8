//! Opening for writing what other clients hold delegations of.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Conditions;
use super::common::{Checks, Expanded, group, labelled, meet};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, ClientRange, FilePick, Fileset, Group, OpenFlag, OperationKind, Repeat, Sharing, Size, Step,
    Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

/// Parameters of `delegation-recall`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DelegationRecallParameters {
    /// Number of clients, from the first on, that hold the files open for reading; all others recall them.
    pub holders: u32,
    /// Number of files.
    pub files: u64,
    /// Size of each file.
    pub file_size: ByteSize,
    /// How often the files are recalled. With more than one round the holders open them again after each.
    pub rounds: u64,
    /// Record every call.
    pub trace: bool,
}

impl Default for DelegationRecallParameters {
    fn default() -> Self {
        Self { holders: 1, files: 1000, file_size: ByteSize::kib(4), rounds: 1, trace: false }
    }
}

impl Scaled for DelegationRecallParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, 1);
    }
}

pub(super) fn expand(p: &DelegationRecallParameters, name: &str, on: Conditions) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("holders", p.holders.into());
    checks.at_least_one("files", p.files);
    checks.at_least_one("rounds", p.rounds);
    // Shown without a study there is one client.
    checks.require(
        on.clients == 1 || p.holders < on.clients,
        "holders",
        format!("of {} clients {} hold the files, and none is left to recall them", on.clients, p.holders),
        "lower it, or raise `clients.count`",
    );
    let workers = u32::try_from(p.files).unwrap_or(u32::MAX);
    checks.require(workers < u32::MAX, "files", "every file is held by a different worker", "use fewer");
    checks.finish()?;
    let hold = || Step { file: Some(FilePick::Own), ..labelled(OperationKind::Open, "hold") };
    let mut held = vec![meet("held"), meet("recalled")];
    if p.rounds > 1 {
        held.extend([labelled(OperationKind::Close, "release"), hold()]);
    }
    let recall = vec![
        Step {
            file: Some(FilePick::Every),
            flags: vec![OpenFlag::Write],
            ..labelled(OperationKind::Open, "recall")
        },
        labelled(OperationKind::Close, "close"),
    ];
    let recalling = vec![
        meet("held"),
        Step { repeat: Some(Repeat::Times(p.files)), flow: recall, ..Step::default() },
        meet("recalled"),
    ];
    let fileset = Fileset {
        files: p.files,
        size: Size::Fixed(p.file_size),
        directory_width: 0,
        tree: None,
        sharing: Sharing::Shared,
        prefill: 1.0,
    };
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), fileset)]),
        groups: vec![
            Group {
                clients: Some(ClientRange { first: 0, last: Some(p.holders - 1) }),
                setup: vec![hold()],
                ..group("holders", workers, held)
            },
            Group {
                clients: Some(ClientRange { first: p.holders, last: None }),
                ..group("recallers", 1, recalling)
            },
        ],
        until: Until { iterations: Some(p.rounds), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: false,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
