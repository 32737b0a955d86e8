//! Names and attributes.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::TimeSpan;

parameters! { pub struct MetadataParameters: "Parameters of `metadata`.";
    /// Workers per client.
    workers: u32 = 1,
    /// Entries of the directory that is listed once per round.
    directory_entries: u64 = 100,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// `"durability"`: check that names survive a cut of the server.
    verify: Verify = Verify::Off,
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

static TEMPLATE: Template = Template::new(include_str!("metadata.toml"));

pub(super) fn expand(p: &MetadataParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: workers, directory_entries, duration);
    checks.finish()?;
    TEMPLATE.fill(name, p, json!({}))
}
