//! What a client's way to the network costs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, data, fileset, group, step};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Group, OffsetPick, OpenFlag, OperationKind, Sharing, Size, Step, Until, Workload,
};
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

impl NetworkTest {
    fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
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
    verify: bool = false,
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

/// The file whose attributes are asked for.
const SMALL_FILE: ByteSize = ByteSize::kib(4);

pub(super) fn expand(p: &ClientNetworkParameters, name: &str) -> Expanded {
    let workers = p.workers.unwrap_or(match p.test {
        NetworkTest::Latency => 1,
        NetworkTest::Rate => 64,
        NetworkTest::Read | NetworkTest::Write => 4,
    });
    let mut checks = Checks::default();
    checks.at_least_one("workers", workers.into());
    checks.lasts("duration", p.duration);
    if p.test.moves_data() {
        checks.at_least_one("io_size", p.io_size.0);
        checks.at_least_one("file_size", p.file_size.0);
        checks.fits("io_size", p.io_size, "file_size", p.file_size);
        checks.direct(p.direct, &[("io_size", p.io_size), ("file_size", p.file_size)]);
        checks.provable("io_size", p.io_size, p.verify);
    }
    checks.finish()?;
    let flags = match p.test {
        NetworkTest::Latency | NetworkTest::Rate => vec![],
        NetworkTest::Read => p.direct.then_some(OpenFlag::Direct).into_iter().collect(),
        NetworkTest::Write => [OpenFlag::Write, OpenFlag::Dsync]
            .into_iter()
            .chain(p.direct.then_some(OpenFlag::Direct))
            .collect(),
    };
    let open = Step { file: Some(FilePick::Own), flags, ..step(OperationKind::Open) };
    let (setup, flow, size) = match p.test {
        NetworkTest::Latency | NetworkTest::Rate => {
            let stat = Step { file: Some(FilePick::Own), ..step(OperationKind::Stat) };
            (vec![], vec![stat], SMALL_FILE)
        }
        NetworkTest::Read => {
            (vec![open], vec![data(OperationKind::Read, p.io_size, OffsetPick::Sequential)], p.file_size)
        }
        NetworkTest::Write => {
            (vec![open], vec![data(OperationKind::Write, p.io_size, OffsetPick::Sequential)], p.file_size)
        }
    };
    let files = fileset(workers.into(), Size::Fixed(size), Sharing::Private, true);
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![Group { setup, ..group("network", workers, flow) }],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify && p.test.moves_data(),
        trace: p.trace,
        claims: if p.test == NetworkTest::Read { Claim::Device } else { Claim::Cache },
    })
}
