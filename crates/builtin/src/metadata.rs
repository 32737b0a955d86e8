//! Names and attributes.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, group, step};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, OpenFlag, OperationKind, Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

parameters! { pub struct MetadataParameters: "Parameters of `metadata`.";
    /// Workers per client.
    workers: u32 = 1,
    /// Entries of the directory that is listed once per round.
    directory_entries: u64 = 100,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Record every call.
    trace: bool = false,
}

impl Scaled for MetadataParameters {
    fn scale(&mut self, scale: Scale) {
        self.directory_entries = scale.count(self.directory_entries, 1);
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

pub(super) fn expand(p: &MetadataParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("directory_entries", p.directory_entries);
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.finish()?;
    let listed = format!("{name}-listed");
    let own = |op| Step { fileset: Some(name.to_owned()), file: Some(FilePick::Same), ..step(op) };
    let flow = vec![
        // Not exclusive: what a failed operation leaves behind must not make all that follow fail.
        Step { file: Some(FilePick::Own), flags: vec![OpenFlag::Write], ..own(OperationKind::Create) },
        step(OperationKind::Close),
        own(OperationKind::Stat),
        own(OperationKind::Rename),
        own(OperationKind::Unlink),
        Step { fileset: Some(listed.clone()), file: Some(FilePick::Random), ..step(OperationKind::Readdir) },
    ];
    let fileset = |files, prefill| Fileset {
        files,
        size: Size::Fixed(ByteSize(0)),
        directory_width: 0,
        tree: None,
        sharing: Sharing::Private,
        prefill,
    };
    Ok(Workload {
        filesets: BTreeMap::from([
            (name.to_owned(), fileset(p.workers.into(), 0.0)),
            (listed, fileset(p.directory_entries, 1.0)),
        ]),
        groups: vec![group("metadata", p.workers, flow)],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: false,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
