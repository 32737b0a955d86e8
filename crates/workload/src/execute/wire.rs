//! What went over the wire during a run.

mod kernel;

use benchmaster_record::phase::Phase;
use std::collections::BTreeMap;

use benchmaster_nfs_client::counters::Snapshot;

use self::kernel::Kernel;
use super::crew::{Ran, ThreadReport};
use crate::area::{Location, NfsArea, WorkArea};
use crate::recording::{ConnectionFacts, PartOf, PartRow, RpcPhase, RpcRecording, RpcRow, RpcSource};

/// Calls by phase, and those of the measured phase by connection.
pub(super) type Traffic = (RpcRecording, Vec<PartRow>);

/// Gathers what went over the wire by phase.
pub(super) enum Wire {
    /// The target is a directory that is on no NFS mount.
    None,
    /// By the user-space client: what the preparation called, and what was wrong at its end.
    Client { prepared: Snapshot, problems: Vec<String> },
    /// By the kernel's client.
    Kernel(Kernel),
}

impl Wire {
    /// Before anything is prepared.
    pub(super) fn begin(area: &WorkArea) -> Self {
        match area.place() {
            Location::Directory(_) => Kernel::begin(area.path()).map_or(Self::None, Self::Kernel),
            Location::Nfs(nfs) => {
                // Earlier jobs are no part of this run, unless they left something wrong.
                let earlier = nfs.take_traffic();
                Self::Client { prepared: Snapshot::zero(), problems: earlier.problems }
            }
        }
    }

    /// Everything is prepared, and workers are about to be set up.
    /// `hooked`: a command of the study was run.
    pub(super) fn prepared(&mut self, area: &WorkArea, hooked: bool) {
        if let (Self::Kernel(kernel), true) = (&mut *self, hooked) {
            kernel.hooked();
        }
        if let (Self::Client { prepared, problems }, Location::Nfs(nfs)) = (self, area.place()) {
            let traffic = nfs.take_traffic();
            prepared.add(&traffic.counters);
            problems.extend(traffic.problems);
        }
    }

    /// All workers wait between two phases. (User-space clients look at their counters by themselves.)
    pub(super) fn between_phases(&mut self) {
        if let Self::Kernel(kernel) = self {
            kernel.mark();
        }
    }

    /// After all workers have ended and everything was read back.
    pub(super) fn finish(mut self, area: &WorkArea, ran: &Ran, clients: u32) -> Option<Traffic> {
        // Tear-down ends here.
        self.between_phases();
        let names: &[Phase] = if ran.warm_up.is_some() {
            &[Phase::SetUp, Phase::WarmUp, Phase::Measure, Phase::TearDown]
        } else {
            &[Phase::SetUp, Phase::Measure, Phase::TearDown]
        };
        match (self, area.place()) {
            (Self::Client { prepared, problems }, Location::Nfs(nfs)) => {
                Some(of_clients(nfs, prepared, problems, &ran.reactors, names))
            }
            (Self::Kernel(kernel), _) => {
                let cpu_ns = (ran.host.process_user_ns, ran.host.process_system_ns);
                Some((kernel.finish(names, cpu_ns, clients), Vec::new()))
            }
            (Self::None | Self::Client { .. }, _) => None,
        }
    }
}

fn of_clients(
    area: &NfsArea,
    prepared: Snapshot,
    mut problems: Vec<String>,
    threads: &[ThreadReport],
    names: &[Phase],
) -> Traffic {
    let after = area.take_traffic();
    let mut sums = vec![Snapshot::zero(); names.len()];
    let clients = || threads.iter().flat_map(|thread| &thread.clients);
    for client in clients() {
        sums.iter_mut().zip(&client.phases).for_each(|(sum, phase)| sum.add(phase));
    }
    if let [first, .., last] = &mut sums[..] {
        first.add(&prepared);
        last.add(&after.counters);
    }
    let many = clients().count() > 1;
    for client in clients() {
        let name = |problem: &String| {
            if many { format!("client {}: {problem}", client.client) } else { problem.clone() }
        };
        problems.extend(client.problems.iter().map(name));
    }
    problems.extend(after.problems);
    let options = &area.target().options;
    let facts = clients().next().map(|client| client.facts);
    let measured = names.iter().position(|name| *name == Phase::Measure).and_then(|at| sums.get(at));
    let connections = measured.into_iter().flat_map(Snapshot::connections);
    let row = |(key, (count, sum_ns))| PartRow {
        part: PartOf::Connection,
        label: String::new(),
        key,
        count,
        sum_ns,
    };
    let parts = (0..).zip(connections).map(row).filter(|row| row.count > 0).collect();
    let rpc = RpcRecording {
        source: RpcSource::Client,
        phases: names.iter().zip(&sums).map(|(name, sum)| phase(*name, sum)).collect(),
        client_cpu_ns: threads.iter().fold((0, 0), |sum, t| (sum.0 + t.cpu_ns.0, sum.1 + t.cpu_ns.1)),
        connection: ConnectionFacts {
            server: area.target().place(),
            version: Some(options.version),
            rsize: facts.map_or(0, |facts| facts.read_size.into()),
            wsize: facts.map_or(0, |facts| facts.write_size.into()),
            nconnect: options.all_connections(),
            slots: clients().filter_map(|client| client.facts.slots).min(),
            clients: u32::try_from(clients().count()).unwrap_or(u32::MAX),
            threads: u32::try_from(threads.len()).ok(),
            tls: suite(clients().map(|client| client.facts.tls)),
        },
        problems,
    };
    (rpc, parts)
}

/// The cipher suite of all clients; they differ only where the server was exchanged meanwhile.
fn suite(clients: impl Iterator<Item = Option<&'static str>>) -> Option<String> {
    let mut suites: Vec<&str> = clients.collect::<Option<_>>()?;
    suites.sort_unstable();
    suites.dedup();
    (!suites.is_empty()).then(|| suites.join(", "))
}

fn phase(phase: Phase, counted: &Snapshot) -> RpcPhase {
    let rows = counted.ops().map(|(op, counters)| RpcRow {
        program: op.program().into(),
        operation: op.name().into(),
        counters,
    });
    let events: BTreeMap<String, u64> =
        counted.events().map(|(event, count)| (event.name().to_owned(), count)).collect();
    RpcPhase { phase, rows: rows.collect(), events }
}
