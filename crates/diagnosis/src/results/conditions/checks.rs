//! Checks that show a state of clients or servers.

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::recording::SeriesRecording;

use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Plot, Remedy};
use crate::results::stored::{Could, Stored, Told, all_of_it, in_lab, when, worth_it};
use crate::words::share;

pub(super) static SHARED_CLIENT_ID: Stored = Stored {
    check: "shared-client-id",
    explanation: Explanation {
        id: "shared-client-id",
        group: Group::Condition,
        title: "Clients share an NFSv4 client id",
        mechanism: "Since NFSv4.1 Linux names itself by its host name to the server. Cloned machines that have the same name are one client to it: each new session takes the \
                    leases, opens and locks of the others away, and they recover, over and over.",
        formula: "found when several machines name themselves alike (host name and nfs4_unique_id), by what they said of themselves; all of the run is in doubt",
        source: "the check `shared-client-id`; RFC 8881, section 2.4; nfs(5), \"nfs4_unique_id\"; docs/lab.md",
    },
    confidence: Confidence::Certain,
    could: |measured| {
        let clients = measured.recording.agents.iter().filter(|agent| agent.clients > 0).count();
        let kernel =
            measured.rpcs().is_some_and(|(rpc, _)| rpc.connection.version.is_some_and(NfsVersion::has_state));
        when(kernel && (clients > 1 || measured.run.lab.is_some()))
    },
    worth: worth_it,
    numbers: &[
        ("clients", "clients of one name", "1"),
        ("sessions_made", "client ids and sessions made while it was measured", "1"),
    ],
    cost: all_of_it,
    remedy: |_| {
        Remedy::new("Give every client a name of its own, before the module `nfs` is loaded, and mount again.")
            .by("echo 'options nfs nfs4_unique_id='$(cat /etc/machine-id) > /etc/modprobe.d/nfs-id.conf   # or: hostnamectl set-hostname NAME")
            .confirmed_by("on a Linux server, /proc/fs/nfsd/clients/*/info has one line `name:` for each client then")
    },
    plot: Some(Plot::Time),
};

pub(super) static GRACE_PERIOD: Stored = Stored {
    check: "grace-period",
    explanation: Explanation {
        id: "grace-period",
        group: Group::Condition,
        title: "The server was in its grace period",
        mechanism: "After a start a server lets clients reclaim what they had open and locked before, and nobody else open or lock anything, for the length of a lease (90 s). An \
                    OPEN is answered with NFS4ERR_GRACE meanwhile, and tried again every few seconds.",
        formula: "found when the server of a lab said that its grace period was on when the measured phase began, or that it was started again meanwhile; or RPCs of the user-space \
                  client were answered with NFS4ERR_GRACE; or the kernel's client had its state back (RECLAIM_COMPLETE, SETCLIENTID_CONFIRM), with more than 2 errors of OPEN and \
                  LOCK for each worker and one that took 1 s or more. Cost = the longest open, create or lock / length of the phase",
        source: "the check `grace-period`; RFC 8881, section 8.4.2.1",
    },
    confidence: Confidence::Certain,
    could: in_lab,
    worth: worth_it,
    numbers: &[("longest_ns", "longest open, create or lock", "ns")],
    cost: |told| {
        let length = told.measured.recording.length_ns.max(1) as f64;
        Some((
            told.number("longest_ns")? / length,
            CostOf::Time,
            "the longest open, create or lock / length of the measured phase",
        ))
    },
    remedy: |told| match told.number("restarted") {
        Some(restarted) if restarted > 0.0 => after_a_restart(),
        _ => out_of_grace(),
    },
    plot: Some(Plot::Time),
};

/// What to do about a server that was started again beneath a measurement.
pub(super) fn after_a_restart() -> Remedy {
    Remedy::new("If the restart was meant, what it costs is how long opens and locks stand still: look at the course over time. A shorter lease makes it shorter; a Linux server \
                 that also serves version 3 keeps locks waiting for the 50 s of its lock manager's own. Else see who started the server again.")
        .by("journalctl -k --grep 'NFSD' --since TIME   # on a Linux server; echo 10 > /proc/sys/fs/nfs/nlm_grace_period before it starts")
        .confirmed_by("/proc/fs/nfsd/v4_end_grace and /proc/fs/lockd/nlm_end_grace say Y when they are over")
}

/// What to do about a grace period.
pub(super) fn out_of_grace() -> Remedy {
    Remedy::new("Begin when the grace period is over, or make it shorter.")
        .by("echo 10 > /proc/fs/nfsd/nfsv4gracetime   # before nfsd starts; in a study [lab] lease = \"10s\"")
        .confirmed_by("/proc/fs/nfsd/v4_end_grace says Y when it is over")
}

/// Share of all segments from which on TCP's sending again is worth a look.
const LOSS: f64 = 1e-3;
/// Segments: fewer happen anywhere.
const LEAST_SEGMENTS: f64 = 10.0;

/// Share of the operations' time.
const LEAST_COST: f64 = 0.01;
/// Shortest retransmission timeout of Linux.
const TIMEOUT_NS: u64 = 200_000_000;

/// The most that sending again can have cost, as a share of the operations' time: the timeout for each segment, but no more than
/// as many operations took as long.
fn lost(told: Told<'_>) -> f64 {
    let slow = |series: &SeriesRecording| -> u64 {
        let Ok(latency) = series.total.latency.decode() else { return 0 };
        let slow =
            latency.iter_recorded().filter(|bucket| bucket.value_iterated_to() >= TIMEOUT_NS * 97 / 100);
        slow.map(|bucket| bucket.count_at_value()).sum()
    };
    let slow: u64 = told.measured.recording.series.iter().map(slow).sum();
    let each = told.number("segments").unwrap_or(0.0).min(slow as f64);
    share(each * TIMEOUT_NS as f64, told.measured.operation_ns() as f64)
}

pub(super) static TCP_RETRANSMISSIONS: Stored = Stored {
    check: "tcp-retransmissions",
    explanation: Explanation {
        id: "tcp-retransmissions",
        group: Group::Condition,
        title: "TCP sent segments again",
        mechanism: "A segment that is lost is sent again after a round trip if others follow it, else after 200 ms or more; and the window is made smaller. One loss in a thousand \
                    is enough to hold a connection over a long way far below the network's rate.",
        formula: "found when ≥ 10 segments and ≥ 0.1 % of those sent were sent again, on a network where none is lost on purpose, and that cost ≥ 1 %; cost at most = 200 ms for each segment, \
                  but for no more than operations took as long, / time of all operations",
        source: "the check `tcp-retransmissions`; RFC 6298; M. Mathis et al., The macroscopic behavior of the TCP congestion avoidance algorithm (1997)",
    },
    confidence: Confidence::Certain,
    could: |measured| {
        if measured.network().is_some_and(|network| network.loss > 0.0) {
            return Could::Never;
        }
        let seen = measured
            .recording
            .samples
            .iter()
            .any(|host| host.samples.of("tcp_info", "total_retransmitted").next().is_some());
        if seen {
            Could::Yes
        } else if measured.rpcs().is_none() {
            Could::Never
        } else {
            Could::Unknown("connections were not looked at: `[sampling]` with the sampler `tcp_info`".into())
        }
    },
    worth: |told| {
        let segments = told.number("segments").unwrap_or(0.0);
        let sent: f64 = told
            .measured
            .recording
            .samples
            .iter()
            .flat_map(|host| host.samples.of("tcp_info", "segments_out"))
            .filter_map(|series| told.measured.growth(series))
            .sum();
        segments >= LEAST_SEGMENTS && sent > 0.0 && segments / sent >= LOSS && lost(told) >= LEAST_COST
    },
    numbers: &[("segments", "segments that TCP sent again", "1")],
    cost: |told| {
        Some((
            lost(told),
            CostOf::OperationTime,
            "at most: 200 ms for each segment sent again, as far as operations took as long",
        ))
    },
    remedy: |_| {
        Remedy::new("Find where packets are dropped: the hosts' interfaces and softnet queues, the switch's ports, a shaper on the way.")
            .by("nstat -az TcpRetransSegs TcpExtTCPTimeouts; ethtool -S DEVICE | grep -i -E 'drop|err'; ip -s link")
            .confirmed_by("`benchmaster probe network HOST` shows losses without NFS")
    },
    plot: Some(Plot::Counters),
};
