//! What a client's way to the network costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::{ByteSize, TimeSpan};

/// What `client-network` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkTest {
    /// How long one small request takes while nothing else is going on.
    #[default]
    Latency,
    /// How many small requests fit into a second.
    Rate,
    /// How fast large reads are.
    Read,
    /// How fast large writes are that are stable when they return.
    Write,
}

parameters! { pub struct ClientNetworkParameters: "Parameters of `client-network`.";
    /// What is measured.
    test: NetworkTest = NetworkTest::Latency,
    /// Workers per client; if absent 1 for `latency`, 64 for `rate`, and 4 for `read` and `write`.
    #[serde(skip_serializing_if = "Option::is_none")]
    workers: Option<u32> = None,
    /// Bytes per read or write.
    io_size: ByteSize = ByteSize::mib(1),
    /// Size of the file that each worker reads or writes.
    file_size: ByteSize = ByteSize::mib(1024),
    /// O_DIRECT: past the page cache, so that every read goes to the server.
    direct: bool = false,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(30),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for ClientNetworkParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, self.io_size);
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

static TEMPLATE: Template = Template::new(include_str!("client_network.toml"));

pub(super) fn expand(p: &ClientNetworkParameters, name: &str, _: Conditions) -> Expanded {
    let (workers, moves_data) = match p.test {
        NetworkTest::Latency => (1, false),
        NetworkTest::Rate => (64, false),
        NetworkTest::Read | NetworkTest::Write => (4, true),
    };
    let mut checks = Checks::default();
    positive!(checks, p: workers, duration);
    if moves_data {
        positive!(checks, p: io_size, file_size);
        checks.fits("io_size", p.io_size, "file_size", p.file_size);
        checks.direct(p.direct, &[("io_size", p.io_size), ("file_size", p.file_size)]);
        checks.provable("io_size", p.io_size, p.verify);
    }
    checks.finish()?;
    let derived =
        json!({ "workers": p.workers.unwrap_or(workers), "verify": p.verify.where_data(moves_data) });
    TEMPLATE.fill(name, p, derived)
}
