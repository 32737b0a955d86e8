//! Statistics as they are shown: JSON for programs, and the lines of Linux's `/proc/net/rpc/nfsd`.

use std::net::IpAddr;

use benchmaster_nfs_proto::v2::Proc2;
use benchmaster_nfs_proto::v3::Proc3;
use benchmaster_nfs_proto::v4::Opnum;
use serde::Serialize;

use crate::disk::DiskReport;

use super::{Counts, Operation, Statistics, Transport};

/// All that a server counted since it started.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Seconds since the start.
    pub uptime_seconds: f64,
    /// Counts of connections and RPC.
    pub transport: Transport<u64>,
    /// State of NFSv4 clients.
    pub state: StateReport,
    /// Rules for injected behaviour as written, with how often each has struck.
    pub injected: Vec<(String, u64)>,
    /// What the disk behind the files did, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskReport>,
    /// All clients together, by protocol and operation.
    pub operations: Vec<OperationReport>,
    /// Each client, in order of first call.
    pub clients: Vec<ClientReport>,
    /// The lines of Linux's `/proc/net/rpc/nfsd` that have a meaning here.
    pub nfsd: Vec<String>,
}

/// State of NFSv4 clients.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StateReport {
    /// Confirmed NFSv4 client records.
    pub clients: u64,
    /// Sessions of 4.1 and 4.2.
    pub sessions: u64,
    /// Opens, lock states and delegations.
    pub stateids: u64,
    /// Open owners and lock owners.
    pub owners: u64,
    /// Files on which something is held.
    pub files: u64,
    /// Delegations of all clients, those that are gone included.
    pub delegations: DelegationCounts,
    /// Acquisitions of locks on this state that had to wait for another thread.
    pub waits: u64,
    /// State per NFSv4 client.
    pub nfs4_clients: Vec<Nfs4ClientReport>,
}

/// A confirmed NFSv4 client.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Nfs4ClientReport {
    /// The name that it gave itself; bytes that are no text are replaced.
    pub name: String,
    /// 0 for clients of 4.0, 1 for those with sessions (4.1 and 4.2).
    pub minor_version: u32,
    /// Number of sessions.
    pub sessions: u64,
    /// Delegations of the client.
    pub delegations: DelegationCounts,
}

/// Counts of one client.
#[derive(Debug, Clone, Serialize)]
pub struct ClientReport {
    /// Number, from 1, as rules name it.
    pub client: u32,
    /// IP address of the client.
    pub address: String,
    /// Machine name of its AUTH_SYS credentials; empty for AUTH_NONE.
    pub machine: String,
    /// Counts by operation.
    pub operations: Vec<OperationReport>,
}

/// One operation. The first columns are those of Linux's mountstats, seen from the server.
#[derive(Debug, Clone, Serialize)]
pub struct OperationReport {
    /// `v2`, `v3`, `v4`, `mount`, `nlm` or `portmap`.
    pub protocol: &'static str,
    /// Name, as in mountstats.
    pub operation: &'static str,
    /// Number of executions.
    pub ops: u64,
    /// Bytes of requests (mountstats: bytes sent).
    pub bytes_received: u64,
    /// Bytes of replies (mountstats: bytes received).
    pub bytes_sent: u64,
    /// Executions with an error as result.
    pub errors: u64,
    /// Time from decoding to encoded result.
    pub service: ServiceTime,
}

/// Service times in nanoseconds, percentiles to two digits. Percentiles are 0 and the histogram is empty for operations
/// of single clients beyond 4,096 such pairs; the sums of all clients have all of them.
#[derive(Debug, Clone, Serialize)]
pub struct ServiceTime {
    /// Sum of service times, in nanoseconds.
    pub total_ns: u64,
    /// Mean service time, in nanoseconds.
    pub mean_ns: f64,
    /// Median service time, in nanoseconds.
    pub p50_ns: u64,
    /// 90th percentile of service times, in nanoseconds.
    pub p90_ns: u64,
    /// 99th percentile of service times, in nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile of service times, in nanoseconds.
    pub p999_ns: u64,
    /// Longest service time, in nanoseconds.
    pub max_ns: u64,
    /// The histogram: upper end of each bucket in nanoseconds, executions in it; empty buckets left out.
    pub histogram: Vec<(u64, u64)>,
}

impl OperationReport {
    fn new(operation: Operation, counts: &Counts) -> Self {
        let times = counts.service.as_deref();
        let at = |quantile| times.map_or(0, |times| times.value_at_quantile(quantile));
        let service = ServiceTime {
            total_ns: counts.nanos,
            mean_ns: counts.nanos as f64 / counts.count.max(1) as f64,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: times.map_or(0, |times| times.max()),
            histogram: times
                .into_iter()
                .flat_map(|times| times.iter_recorded())
                .map(|bucket| (bucket.value_iterated_to(), bucket.count_since_last_iteration()))
                .collect(),
        };
        Self {
            protocol: operation.protocol(),
            operation: operation.name(),
            ops: counts.count,
            bytes_received: counts.received,
            bytes_sent: counts.sent,
            errors: counts.errors,
            service,
        }
    }
}

impl Statistics {
    /// Everything counted so far; `state` and `injected` come from their owners.
    pub fn report(
        &self,
        uptime: std::time::Duration,
        state: StateReport,
        injected: Vec<(String, u64)>,
    ) -> Report {
        let names = self.clients.read().names.clone();
        let mut sums: Vec<Option<Counts>> = vec![None; Operation::COUNT];
        let client = |(index, (address, machine)): (usize, &(IpAddr, Box<[u8]>))| {
            let operations = self.of_client(index);
            for (operation, counts) in &operations {
                match &mut sums[operation.index()] {
                    Some(sum) => sum.add(counts),
                    none => *none = Some(counts.clone()),
                }
            }
            ClientReport {
                client: index as u32 + 1,
                address: address.to_string(),
                machine: String::from_utf8_lossy(machine).into_owned(),
                operations: operations.iter().map(|(op, counts)| OperationReport::new(*op, counts)).collect(),
            }
        };
        let clients = names.iter().enumerate().map(client).collect();
        self.add_others(&mut sums);
        let all = |(index, counts): (usize, &Option<Counts>)| {
            counts.as_ref().map(|counts| OperationReport::new(Operation::of_index(index), counts))
        };
        let load = crate::thread::Counter::sum;
        let transport = &self.transport;
        let mut report = Report {
            uptime_seconds: uptime.as_secs_f64(),
            transport: Transport {
                connections: load(&transport.connections),
                datagrams: load(&transport.datagrams),
                calls: load(&transport.calls),
                bad_format: load(&transport.bad_format),
                bad_auth: load(&transport.bad_auth),
                bad_calls: load(&transport.bad_calls),
                replayed: load(&transport.replayed),
                dropped_duplicates: load(&transport.dropped_duplicates),
                tls_handshakes: load(&transport.tls_handshakes),
                tls_resumed: load(&transport.tls_resumed),
                tls_failed: load(&transport.tls_failed),
                gss_contexts: load(&transport.gss_contexts),
                gss_failed: load(&transport.gss_failed),
                gss_discarded: load(&transport.gss_discarded),
            },
            state,
            injected,
            disk: None,
            operations: sums.iter().enumerate().filter_map(all).collect(),
            clients,
            nfsd: Vec::new(),
        };
        report.nfsd = report.nfsd_lines();
        report
    }
}

impl Report {
    /// `rc`, `io`, `net`, `rpc`, `proc2`, `proc3`, `proc4`, `proc4ops`.
    fn nfsd_lines(&self) -> Vec<String> {
        let of = |protocol: &str, name: &str| {
            self.operations.iter().find(|op| op.protocol == protocol && op.operation == name)
        };
        let ops = |protocol: &str, name: &str| of(protocol, name).map_or(0, |op| op.ops);
        let bytes = |name: &str, field: fn(&OperationReport) -> u64| -> u64 {
            self.operations.iter().filter(|op| op.operation == name).map(field).sum()
        };
        let t = &self.transport;
        let bad = t.bad_format + t.bad_auth + t.bad_calls;
        let uncached = t.calls.saturating_sub(t.replayed);
        let (read, written) = (bytes("READ", |op| op.bytes_sent), bytes("WRITE", |op| op.bytes_received));
        let counts = |label: &str, counts: Vec<u64>| {
            let numbers = counts.iter().map(|count| format!(" {count}")).collect::<String>();
            format!("{label} {}{numbers}", counts.len())
        };
        let named = |protocol: &str, operation: Operation| ops(protocol, operation.name());
        vec![
            format!("rc {} 0 {uncached}", t.replayed),
            format!("io {read} {written}"),
            format!("net {} {} {} {}", t.calls + t.bad_format, t.datagrams, t.calls, t.connections),
            format!("rpc {} {bad} {} {} 0", t.calls, t.bad_format, t.bad_auth),
            counts("proc2", (0..18).map(|n| named("v2", Operation::V2(Proc2(n)))).collect()),
            counts("proc3", (0..22).map(|n| named("v3", Operation::V3(Proc3(n)))).collect()),
            counts("proc4", vec![0, ops("v4", "COMPOUND")]),
            counts("proc4ops", (0..76).map(|n| named("v4", Operation::V4(Opnum(n)))).collect()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::super::Sample;
    use super::*;

    #[test]
    fn a_report_adds_clients_up_and_has_nfsds_lines() {
        let statistics = Statistics::new(2);
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let sample = Sample { received: 10, sent: 20, service: Duration::from_micros(5), error: false };
        for machine in ["a", "b"] {
            let client = statistics.client(here, machine.as_bytes());
            statistics.record(client, Operation::V3(Proc3::READ), sample);
        }
        let report = statistics.report(Duration::from_secs(3), StateReport::default(), Vec::new());
        assert_eq!(report.clients.len(), 2);
        assert_eq!(report.clients[1].machine, "b");
        let [read] = report.operations.as_slice() else { panic!("{report:?}") };
        assert_eq!((read.protocol, read.operation, read.ops, read.bytes_sent), ("v3", "READ", 2, 40));
        let [(upper, 2)] = read.service.histogram.as_slice() else { panic!("{read:?}") };
        assert!((5000..5100).contains(upper), "{upper}");
        assert_eq!(report.nfsd[..2], ["rc 0 0 0", "io 40 0"]);
        assert!(report.nfsd[5].starts_with("proc3 22 0 0 0 0 0 0 2 0"), "{:?}", report.nfsd);
        assert_eq!(report.nfsd.last().unwrap().split(' ').count(), 78);
    }
}

/// Delegations of a client, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct DelegationCounts {
    /// Number granted.
    pub granted: u64,
    /// Number held now.
    pub held: u64,
    /// Number recalled.
    pub recalled: u64,
    /// Number returned.
    pub returned: u64,
    /// Number revoked because they were not returned in time.
    pub revoked: u64,
}

impl DelegationCounts {
    pub(crate) fn add(&mut self, other: &Self) {
        self.held += other.held;
        self.granted += other.granted;
        self.recalled += other.recalled;
        self.returned += other.returned;
        self.revoked += other.revoked;
    }
}
