//! The traps of machines, each by texts and counters as they were read where it was met, and the same without it.

use benchmaster_diagnosis::validity::machines::{ClientLook, LabLook, ServerLook};
use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::recording::{RpcCounters, RpcSource};

use super::*;

/// Two clients of the kernel in a lab, and what they and the server said of themselves.
fn in_lab() -> Case {
    let mut case = Case::export(Read);
    case.recording.rpc.as_mut().unwrap().source = RpcSource::Kernel;
    case.service.as_mut().unwrap().url = "{server}:/export?vers=4.1".into();
    // Reads of the kernel's client are looked at by what is cached.
    case.recording.filesets.clear();
    case.lab = Some(LabLook {
        server_address: "10.77.0.1".into(),
        server: Some((server(["c1", "c2"], "Y"), server(["c1", "c2"], "Y"))),
        clients: vec![client("c1", "c1", ""), client("c2", "c2", "")],
    });
    case
}

fn server(names: [&str; 2], grace: &str) -> ServerLook {
    let client = |(name, number): (&str, u32)| {
        printed(
            &format!("/proc/fs/nfsd/clients/{number}/info"),
            &format!(
                "clientid: 0x00000{number:03}6a1b4c0d\naddress: \"10.77.1.{number}:811\"\nstatus: confirmed\n\
                 name: \"Linux NFSv4.1 {name}\"\nminor version: 1\n"
            ),
        )
    };
    let clients: String = names.into_iter().zip(1..).map(client).collect();
    ServerLook::parse(&format!("{clients}{}", printed("/proc/fs/nfsd/v4_end_grace", grace)))
}

/// What `grep -H` prints of a file.
fn printed(path: &str, text: &str) -> String {
    text.lines().map(|line| format!("{path}:{line}\n")).collect()
}

fn client(machine: &str, host: &str, unique: &str) -> ClientLook {
    with_neighbours(machine, host, unique, "0x6", "02:00:00:00:00:01")
}

fn with_neighbours(machine: &str, host: &str, unique: &str, flags: &str, data: &str) -> ClientLook {
    let arp = format!(
        "IP address HW type Flags HW address Mask Device\n\
         10.77.0.1 0x1 {flags} {data} * eth0\n10.78.0.1 0x1 0x2 02:00:00:00:01:01 * eth1\n"
    );
    let files = [
        ("/proc/sys/kernel/hostname", host),
        ("/sys/fs/nfs/net/nfs_client/identifier", unique),
        ("/proc/net/arp", &arp),
    ];
    let text: String = files.iter().map(|(path, text)| printed(path, text)).collect();
    ClientLook::parse(machine, &text)
}

fn found(change: impl FnOnce(&mut Case)) -> (CheckKind, Severity, String) {
    let mut case = in_lab();
    change(&mut case);
    case.only()
}

/// What to do about the only check that does not pass.
fn advice(change: impl FnOnce(&mut Case)) -> String {
    let mut case = in_lab();
    change(&mut case);
    remedy(&case.checks()[0]).text
}

fn clients(case: &mut Case) -> &mut Vec<ClientLook> {
    &mut case.lab.as_mut().unwrap().clients
}

#[test]
fn a_lab_in_good_order_passes() {
    assert_eq!(in_lab().checks(), []);
}

#[test]
fn clients_that_share_an_nfsv4_client_id() {
    let clone = |case: &mut Case| {
        *clients(case) = vec![client("c1", "node", ""), client("c2", "node", "")];
        case.lab.as_mut().unwrap().server =
            Some((server(["node", "node"], "Y"), server(["node", "node"], "Y")));
        let made = RpcRow {
            operation: "CREATE_SESSION".into(),
            counters: RpcCounters { ops: 31, transmissions: 31, ..RpcCounters::default() },
            ..RpcRow::default()
        };
        case.measure().rows.push(made);
    };
    let (id, severity, message) = found(clone);
    assert_eq!((id, severity), (CheckKind::SharedClientId, Severity::Invalid));
    assert!(message.contains("2 clients share an NFSv4 client id (c1, c2)"), "{message}");
    assert!(message.contains("`node`") && message.contains("created 31 sessions"), "{message}");

    let mut told_apart = in_lab();
    *clients(&mut told_apart) = vec![client("c1", "node", "rack-1"), client("c2", "node", "rack-2")];
    assert_eq!(told_apart.checks(), [], "names that are made unique are different names");
    for version in ["3", "4.0"] {
        let mut other = in_lab();
        clone(&mut other);
        other.recording.rpc.as_mut().unwrap().connection.version = NfsVersion::from_name(version);
        assert_eq!(other.checks(), [], "version {version} does not tell clients apart by their host names");
    }
}

#[test]
fn hosts_that_were_cloned_share_a_client_id_too() {
    let hosts = |names: [&str; 2]| {
        let mut case = two_clients();
        case.recording.rpc = in_lab().recording.rpc;
        case.recording.filesets.clear();
        for (agent, (name, host)) in
            case.recording.agents.iter_mut().zip([(names[0], "node"), (names[1], "node")])
        {
            (agent.name, agent.host) = (name.into(), host.into());
        }
        case
    };
    let (id, severity, message) = only(&hosts(["c1", "c2"]));
    assert_eq!((id, severity), (CheckKind::SharedClientId, Severity::Invalid));
    assert!(message.contains("(c1, c2)"), "{message}");
    assert_eq!(hosts(["local-1", "local-2"]).checks(), [], "processes of one host are one client");
}

/// Some operations that took so long.
fn stall(case: &mut Case, latencies: &[(u64, u64)]) {
    let total = &mut case.recording.series[0].total;
    let mut latency = total.latency.decode().unwrap();
    for (ms, times) in latencies {
        latency.record_n(ms * 1_000_000, *times).unwrap();
        total.count += times;
    }
    total.latency = EncodedHistogram::encode(&latency);
}

#[test]
fn wake_ups_that_were_lost() {
    let stalls = [(201, 30), (203, 12), (405, 2)];
    let (id, severity, message) = found(|case| stall(case, &stalls));
    assert_eq!((id, severity), (CheckKind::LostWakeUps, Severity::Warning));
    assert!(message.contains("44 of 60044 operations stalled for 200 ms"), "{message}");

    let fine = |change: &dyn Fn(&mut Case)| {
        let mut case = in_lab();
        change(&mut case);
        let checks = case.checks();
        assert!(checks.iter().all(|check| check.kind != CheckKind::LostWakeUps), "{checks:?}");
    };
    fine(&|case| stall(case, &[(160, 20), (180, 20), (250, 20), (290, 20), (205, 20)]));
    fine(&|case| stall(case, &[(205, 1)]));
    fine(&|case| {
        stall(case, &stalls);
        case.service.as_mut().unwrap().network.loss = 0.001;
    });
    fine(&|case| {
        stall(case, &stalls);
        case.lab = None;
    });
    // Where most operations take 200 ms it is what they do.
    fine(&|case| stall(case, &[(205, 60_000)]));
}

#[test]
fn a_grace_period_that_was_not_over() {
    let early = |case: &mut Case| {
        case.lab.as_mut().unwrap().server = Some((server(["c1", "c2"], "N"), server(["c1", "c2"], "Y")));
        case.recording.series[0].key.operation = OperationKind::Open;
        stall(case, &[(8_130, 1)]);
    };
    let (id, severity, message) = found(early);
    assert_eq!((id, severity), (CheckKind::GracePeriod, Severity::Warning));
    assert!(message.contains("waited 8.1 s") || message.contains("waited 8.2 s"), "{message}");
    assert!(advice(early).starts_with("Start the measurement when the grace period is over"));
    // Version 4 is done with its own, and locks wait for that of the others.
    let (id, _, message) = found(|case| {
        let ours = server(["c1", "c2"], "Y");
        let mut locks = ours.clone();
        locks.lock_grace_ended = Some(false);
        case.lab.as_mut().unwrap().server = Some((locks, ours));
    });
    assert_eq!(id, CheckKind::GracePeriod);
    assert!(message.contains("its lock manager's grace period"), "{message}");
}

#[test]
fn a_server_that_was_started_again() {
    let again = |case: &mut Case| {
        let mut after = server(["c1", "c2"], "Y");
        // The second half of a minute later.
        after.clients.iter_mut().for_each(|client| client.id = client.id.replace("6a1b4c0d", "6a1b4c2b"));
        case.lab.as_mut().unwrap().server = Some((server(["c1", "c2"], "Y"), after));
        case.recording.series[0].key.operation = OperationKind::Lock;
        stall(case, &[(12_400, 1)]);
    };
    let (id, severity, message) = found(again);
    assert_eq!((id, severity), (CheckKind::GracePeriod, Severity::Warning));
    assert!(message.contains("was restarted in the measured phase"), "{message}");
    assert!(message.contains("the longest waited 12."), "{message}");
    assert!(advice(again).starts_with("If the restart was intended"));
    // A client that has not come back yet is nothing to compare with.
    let mut gone = in_lab();
    gone.lab.as_mut().unwrap().server.as_mut().unwrap().1.clients.clear();
    assert_eq!(gone.checks(), []);
}

#[test]
fn neighbours_that_are_asked_for_or_answered_by_another() {
    let (id, severity, message) =
        found(|case| clients(case)[1] = with_neighbours("c2", "c2", "", "0x2", "02:00:00:00:00:01"));
    assert_eq!((id, severity), (CheckKind::Neighbours, Severity::Warning));
    assert!(message.contains("network by c2:"), "{message}");
    let (id, severity, message) =
        found(|case| clients(case)[0] = with_neighbours("c1", "c1", "", "0x6", "02:00:00:00:01:01"));
    assert_eq!((id, severity), (CheckKind::Neighbours, Severity::Invalid));
    assert!(message.contains("10.77.0.1 on eth0 and 10.78.0.1 on eth1"), "{message}");
}
