//! When a server grants a read delegation.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Conditions;
use super::common::{Checks, Expanded, group, labelled, step};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, ClientRange, FilePick, Fileset, Group, OpenFlag, OperationKind, Repeat, Sharing, Size, Step,
    Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

/// How the files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantCase {
    /// For reading, by nobody else: a delegation is expected, if the server can call back.
    #[default]
    ReadOnly,
    /// For reading and writing: no read delegation is.
    ForWriting,
    /// For reading, while the last client holds them open for writing: no read delegation is.
    HeldForWriting,
    /// For reading, right after their attributes were asked for by name: a delegation is expected.
    StatFirst,
}

/// Parameters of `delegation-grant`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DelegationGrantParameters {
    /// How the files are opened.
    pub case: GrantCase,
    /// Number of files.
    pub files: u64,
    /// Size of each file.
    pub file_size: ByteSize,
    /// How often each file is opened and closed; with a delegation only the first is a call to the server.
    pub opens: u64,
    /// Record every call.
    pub trace: bool,
}

impl Default for DelegationGrantParameters {
    fn default() -> Self {
        Self { case: GrantCase::ReadOnly, files: 100, file_size: ByteSize::kib(4), opens: 10, trace: false }
    }
}

impl Scaled for DelegationGrantParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, 1);
    }
}

pub(super) fn expand(p: &DelegationGrantParameters, name: &str, on: Conditions) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("opens", p.opens);
    let elsewhere = p.case == GrantCase::HeldForWriting;
    checks.require(
        !elsewhere || on.clients > 1,
        "case",
        "another client has to hold the files open for writing, and there is none",
        "use `clients.count = 2`",
    );
    let workers = u32::try_from(p.files).unwrap_or(u32::MAX);
    checks.require(workers < u32::MAX, "files", "every file is held by a different worker", "use fewer");
    checks.finish()?;
    let flags = if p.case == GrantCase::ForWriting { vec![OpenFlag::Write] } else { Vec::new() };
    let mut flow = Vec::new();
    if p.case == GrantCase::StatFirst {
        flow.push(Step { file: Some(FilePick::Every), ..step(OperationKind::Stat) });
    }
    let first = if p.case == GrantCase::StatFirst { FilePick::Same } else { FilePick::Every };
    let open = |file, label: &str| {
        [
            Step { file: Some(file), flags: flags.clone(), ..labelled(OperationKind::Open, label) },
            step(OperationKind::Close),
        ]
    };
    flow.extend(open(first, "open"));
    flow.push(Step {
        repeat: Some(Repeat::Times(p.opens - 1)),
        flow: open(FilePick::Same, "open-again").into(),
        ..Step::default()
    });
    let fileset = Fileset {
        files: p.files,
        size: Size::Fixed(p.file_size),
        directory_width: 0,
        tree: None,
        sharing: if elsewhere { Sharing::Shared } else { Sharing::Private },
        prefill: 1.0,
    };
    let mut groups = vec![group("probe", 1, flow)];
    if elsewhere {
        groups[0].clients = Some(ClientRange { first: 0, last: Some(on.clients - 2) });
        let held = Step {
            file: Some(FilePick::Own),
            flags: vec![OpenFlag::Write],
            ..labelled(OperationKind::Open, "hold")
        };
        groups.push(Group {
            clients: Some(ClientRange { first: on.clients - 1, last: None }),
            setup: vec![held],
            ..group("writer", workers, Vec::new())
        });
    }
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), fileset)]),
        groups,
        until: Until { iterations: Some(p.files), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: false,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
