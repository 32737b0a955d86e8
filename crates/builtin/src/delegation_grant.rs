//! When a server grants a read delegation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_units::ByteSize;

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

parameters! { pub struct DelegationGrantParameters: "Parameters of `delegation-grant`.";
    /// How the files are opened.
    case: GrantCase = GrantCase::ReadOnly,
    /// Number of files.
    files: u64 = 100,
    /// Size of each file.
    file_size: ByteSize = ByteSize::kib(4),
    /// How often each file is opened and closed; with a delegation only the first is a call to the server.
    opens: u64 = 10,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for DelegationGrantParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, 1);
    }
}

static TEMPLATE: Template = Template::new(include_str!("delegation_grant.toml"));

pub(super) fn expand(p: &DelegationGrantParameters, name: &str, on: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, opens);
    let elsewhere = p.case == GrantCase::HeldForWriting;
    checks.require(
        !elsewhere || on.clients > 1,
        "case",
        "another client has to hold the files open for writing, and there is none",
        "use `clients.count = 2`",
    );
    checks.worker_per_file(p.files);
    checks.finish()?;
    let last = on.clients.saturating_sub(1);
    let derived = json!({
        "elsewhere": elsewhere,
        "again": p.opens - 1,
        "last": last,
        "last_but_one": last.saturating_sub(1),
    });
    TEMPLATE.fill(name, p, derived)
}
