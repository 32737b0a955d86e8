//! Opening for writing what other clients hold delegations of.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_units::ByteSize;

parameters! { pub struct DelegationRecallParameters: "Parameters of `delegation-recall`.";
    /// Number of clients, from the first on, that hold the files open for reading; all others recall them.
    holders: u32 = 1,
    /// Number of files.
    files: u64 = 1000,
    /// Size of each file.
    file_size: ByteSize = ByteSize::kib(4),
    /// How often the files are recalled. With more than one round the holders open them again after each.
    rounds: u64 = 1,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for DelegationRecallParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, 1);
    }
}

static TEMPLATE: Template = Template::new(include_str!("delegation_recall.toml"));

pub(super) fn expand(p: &DelegationRecallParameters, name: &str, on: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: holders, files, rounds);
    // Shown without a study there is one client.
    checks.require(
        on.clients == 1 || p.holders < on.clients,
        "holders",
        format!("of {} clients {} hold the files, and none is left to recall them", on.clients, p.holders),
        "lower it, or raise `clients.count`",
    );
    checks.worker_per_file(p.files);
    checks.finish()?;
    let derived = json!({ "last_holder": p.holders - 1, "repeated": p.rounds > 1 });
    TEMPLATE.fill(name, p, derived)
}
