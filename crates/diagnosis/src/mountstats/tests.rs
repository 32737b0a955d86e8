use benchmaster_telemetry::mountstats::Mountstats;

use super::*;
use crate::finding::{Confidence, CostOf, Finding};

/// A client's statistics, quiet and ordinary unless told otherwise.
struct Client {
    name: &'static str,
    options: String,
    version: u32,
    age: u64,
    /// normal_read normal_written direct_read direct_written server_read server_written.
    bytes: [u64; 6],
    opens: u64,
    delays: u64,
    /// connects sends backlog_u sending_u.
    connections: Vec<[u64; 4]>,
    /// ops transmissions timeouts sent received queue rtt execute errors.
    operations: Vec<(&'static str, [u64; 9])>,
}

const MIB: u64 = 1 << 20;

impl Client {
    fn new() -> Self {
        Self {
            name: "c1",
            options: "rw,vers=4.1,rsize=1048576,wsize=1048576,acregmin=3,acregmax=60,acdirmin=30,acdirmax=60,hard,proto=tcp,\
                      timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.1,addr=10.0.0.9"
                .into(),
            version: 4,
            age: 3600,
            bytes: [2048 * MIB, 1024 * MIB, 0, 0, 2048 * MIB, 1024 * MIB],
            opens: 100,
            delays: 0,
            connections: vec![[1, 5_000, 0, 10]],
            operations: vec![
                ("READ", [2_100, 2_100, 0, 400_000, 2048 * MIB, 20, 4_000, 4_200, 0]),
                ("WRITE", [1_100, 1_100, 0, 1024 * MIB, 200_000, 15, 5_000, 5_100, 0]),
                ("COMMIT", [20, 20, 0, 4_000, 2_000, 0, 200, 200, 0]),
                ("GETATTR", [900, 900, 0, 150_000, 200_000, 5, 300, 320, 0]),
                ("OPEN", [100, 100, 0, 30_000, 40_000, 1, 60, 65, 2]),
                ("CLOSE", [100, 100, 0, 20_000, 20_000, 1, 40, 45, 0]),
                ("LOOKUP", [120, 120, 0, 20_000, 20_000, 1, 40, 45, 60]),
            ],
        }
    }

    fn with(mut self, name: &'static str, counts: [u64; 9]) -> Self {
        self.operations.retain(|(other, _)| *other != name);
        self.operations.push((name, counts));
        self
    }

    fn option(mut self, option: &str) -> Self {
        self.options += &format!(",{option}");
        self
    }

    fn text(&self) -> String {
        let events = [
            0,
            0,
            0,
            0,
            self.opens,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            self.delays,
            0,
            0,
        ];
        let list = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        let mut text = format!(
            "device srv:/export mounted on /mnt/x with fstype nfs{} statvers=1.1\n\topts:\t{}\n\tage:\t{}\n\
             \tcaps:\tcaps=0x3\n\tsec:\tflavor=1,pseudoflavor=1\n\tevents:\t{}\n\tbytes:\t{} 0 0\n\
             \tRPC iostats version: 1.1  p/v: 100003/{} (nfs)\n",
            if self.version == 4 { "4" } else { "" },
            self.options,
            self.age,
            list(&events),
            list(&self.bytes),
            self.version,
        );
        for [connects, sends, backlog, sending] in &self.connections {
            text += &format!(
                "\txprt:\ttcp 800 1 {connects} 0 1 {sends} {sends} 0 {sends} {backlog} 64 {sending} 0\n"
            );
        }
        text += "\tper-op statistics\n";
        for (name, counts) in &self.operations {
            text += &format!("\t{name:>12}: {}\n", list(counts));
        }
        text
    }

    fn reading(&self) -> Reading {
        Reading { client: self.name.into(), mountstats: Mountstats::parse(&self.text()).unwrap() }
    }
}

fn of(clients: &[Client]) -> Diagnosis {
    let observations = since_mounted(clients.iter().map(Client::reading).collect());
    assert_eq!(observations.left_out, [] as [String; 0]);
    diagnose(&observations.observed)
}

/// What is found of one client.
fn ids(client: Client) -> Vec<&'static str> {
    of(&[client]).findings.iter().map(|finding| finding.id).collect()
}

/// The only finding of a client.
fn found(client: Client) -> Finding {
    let mut findings = of(&[client]).findings;
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.remove(0)
}

#[test]
fn a_kind_of_call_that_is_slow_beside_the_others_is_named() {
    // 16 KiB each: 45 ms, where others take 0.4 ms.
    let slow = |mean_ms: u64| {
        Client::new().with(
            "READ",
            [2_100, 2_100, 0, 400_000, 2_100 * 16_384, 20, 2_100 * mean_ms, 2_100 * mean_ms + 40, 0],
        )
    };
    let named = |client: Client| {
        let findings = of(&[client]).findings.into_iter();
        findings.into_iter().find(|finding| finding.id == "slow-operation").unwrap()
    };
    let found = named(slow(45));
    assert!(
        found.what.starts_with("Each READ takes 45 ms until its reply, where GETATTR takes 333 µs"),
        "{}",
        found.what
    );
    assert_eq!(found.confidence, Confidence::Possible, "a link may be as slow");
    let small = Client::new().with("OPEN", [2_000, 2_000, 0, 600_000, 800_000, 1, 40_000, 40_100, 0]);
    let small = named(small);
    assert_eq!(small.confidence, Confidence::Likely);
    assert!(small.remedy.command.unwrap().starts_with("iostat"));
    // A MiB takes 84 ms at 100 Mbit/s.
    let large = Client::new().with("READ", [900, 900, 0, 1000, 900 * MIB, 0, 45_000, 45_000, 0]);
    assert!(!ids(large).contains(&"slow-operation"));
    assert!(!ids(slow(1)).contains(&"slow-operation"));
}

#[test]
fn nothing_is_found_where_nothing_is_wrong() {
    let diagnosis = of(&[Client::new()]);
    assert_eq!(diagnosis.findings, []);
    assert_eq!(diagnosis.absent, []);
    assert_eq!(diagnosis.clear.len(), DETECTORS.len());
    // Nor where there are more of the same.
    let others = ["c2", "c3", "c4"].map(|name| Client { name, ..Client::new() });
    let all: Vec<Client> = others.into_iter().chain([Client::new()]).collect();
    let diagnosis = of(&all);
    assert_eq!(diagnosis.findings, []);
    assert_eq!(diagnosis.clear.len(), DETECTORS.len() + COMPARISONS.len());
}

#[test]
fn requests_sent_again_are_counted_and_cost_their_time() {
    let one =
        found(Client::new().with("READ", [2_100, 2_140, 0, 0, 2048 * MIB, 20, 2_404_000, 2_404_200, 0]));
    assert_eq!((one.id, one.confidence), ("retransmission", Confidence::Certain));
    assert!(one.what.contains("40 of 4480 requests (0.9 %)"), "{}", one.what);
    assert!(one.what.contains("most of them READ (40)"), "{}", one.what);
    let cost = one.cost.unwrap();
    // 40 times 60 s of 2,409.975 s.
    assert!((cost.share - 0.996).abs() < 0.001, "{cost:?}");
    // A few are what any network does, and those of a lost connection are sent at once.
    assert_eq!(
        ids(Client::new().with("READ", [2_100, 2_109, 0, 0, 2048 * MIB, 20, 4_000, 4_200, 0])),
        [""; 0]
    );
    let mut lost = Client::new().with("READ", [2_100, 2_140, 0, 0, 2048 * MIB, 20, 4_000, 4_200, 0]);
    lost.connections = vec![[3, 5_000, 0, 10]];
    assert_eq!(found(lost).cost, None);
}

#[test]
fn timeouts_are_told_with_what_they_did() {
    let mut client = Client::new().with("GETATTR", [900, 900, 7, 0, 0, 5, 300, 320, 0]);
    let one = found(client.option("x"));
    assert_eq!(one.id, "major-timeout");
    assert!(one.what.contains("7 calls") && one.what.contains("hung meanwhile"), "{}", one.what);
    client = Client::new().with("GETATTR", [900, 900, 7, 0, 0, 5, 300, 320, 0]).option("soft");
    let both = of(&[client]).findings;
    assert_eq!(both.len(), 2);
    assert!(both.iter().any(|one| one.what.contains("given errors")), "{both:#?}");
    assert!(both.iter().any(|one| one.id == "soft-mount" && one.confidence == Confidence::Likely));
}

#[test]
fn waiting_for_a_slot_of_the_table_is_told_from_other_waiting() {
    let waits = [2_100, 2_100, 0, 0, 2048 * MIB, 6_000, 4_000, 10_200, 0];
    let session = found(Client::new().with("READ", waits));
    assert_eq!((session.id, session.confidence), ("request-queue", Confidence::Likely));
    assert!(session.what.contains("for a slot of the session or for the socket"), "{}", session.what);
    let cost = session.cost.unwrap();
    assert_eq!(cost.of, CostOf::CallTime);
    assert!((cost.share - 6_023.0 / 15_975.0).abs() < 1e-9, "{cost:?}");
    let mut three = Client { version: 3, ..Client::new() }.with("READ", waits);
    three.options = three.options.replace("vers=4.1", "vers=3");
    assert!(found(three).what.contains("for the socket before"));
    let table = Client { connections: vec![[1, 4_000, 40_000, 100]], ..Client::new() }.with("READ", waits);
    let table = found(table);
    assert_eq!(table.confidence, Confidence::Certain);
    assert!(table.what.contains("for a slot of the connection's table"), "{}", table.what);
    // Many calls that wait microseconds are the client's own work.
    let quick = [210_000, 210_000, 0, 0, 0, 20_000, 40_000, 62_000, 0];
    assert_eq!(ids(Client::new().with("ACCESS", quick).with("LOOKUP", quick)), [""; 0]);
}

#[test]
fn errors_that_are_answers_are_told_from_others() {
    let one = found(Client::new().with("READ", [2_100, 2_100, 0, 0, 2048 * MIB, 20, 4_000, 4_200, 3]));
    assert_eq!((one.id, one.confidence), ("operation-errors", Confidence::Certain));
    assert!(one.what.contains("3 of 2100 READ"), "{}", one.what);
    let names = found(Client::new().with("LOOKUP", [2_000, 2_000, 0, 0, 0, 1, 40, 45, 1_900]));
    assert_eq!((names.id, names.confidence), ("operation-errors", Confidence::Possible));
    // Before Linux 5.3 there is no such column.
    let text = Client::new().text();
    let (head, operations) = text.split_once("per-op statistics\n").unwrap();
    let old: Vec<&str> = operations.lines().map(|line| line.rsplit_once(' ').unwrap().0).collect();
    let mountstats = Mountstats::parse(&format!("{head}per-op statistics\n{}\n", old.join("\n"))).unwrap();
    let diagnosis = diagnose(&since_mounted(vec![Reading { client: "old".into(), mountstats }]).observed);
    assert_eq!(diagnosis.findings, []);
    assert_eq!(diagnosis.absent.len(), 1);
    assert_eq!(diagnosis.absent[0].id, "operation-errors");
    assert!(diagnosis.absent[0].why.contains("Linux 5.3"));
    assert!(!diagnosis.clear.contains(&"operation-errors"));
}

#[test]
fn servers_that_ask_to_come_again_cost_a_tenth_of_a_second_each() {
    let one = found(Client { delays: 30, ..Client::new() });
    assert_eq!(one.id, "server-delay");
    // 3 s beside 9.975 s.
    assert!((one.cost.unwrap().share - 3.0 / 12.975).abs() < 1e-9);
    let mut three = Client { delays: 30, version: 3, ..Client::new() };
    three.options = three.options.replace("vers=4.1", "vers=3");
    assert!((found(three).cost.unwrap().share - 150.0 / 159.975).abs() < 1e-9);
}

#[test]
fn attributes_asked_for_too_often_are_told_with_the_option() {
    let often = [3_000, 3_000, 0, 0, 0, 5, 1_500, 1_600, 0];
    let noac = of(&[Client::new().with("GETATTR", often).option("noac")]).findings;
    let noac = noac.iter().find(|one| one.id == "attribute-calls").unwrap();
    assert!(noac.what.contains("because of `noac`") && noac.confidence == Confidence::Certain, "{noac:?}");
    let mut short = Client::new().with("GETATTR", often);
    short.options = short.options.replace("acregmax=60", "acregmax=1");
    assert!(found(short).what.contains("kept for 1 s at most"));
    // Without such an option it takes more, and is less sure.
    assert_eq!(ids(Client::new().with("GETATTR", often)), [""; 0]);
    let most = found(Client::new().with("GETATTR", [30_000, 30_000, 0, 0, 0, 5, 1_500, 1_600, 0]));
    assert_eq!((most.id, most.confidence), ("attribute-calls", Confidence::Possible));
}

#[test]
fn commits_opens_and_synchronous_writes_cost_their_own_time() {
    let commits = found(Client::new().with("COMMIT", [900, 900, 0, 0, 0, 0, 9_000, 9_000, 0]));
    assert_eq!(commits.id, "commits");
    assert!((commits.cost.unwrap().share - 9_000.0 / 18_775.0).abs() < 1e-9);
    // All other calls take 9.775 s together. Few commits are told of when they are half of the time.
    let writes = [40, 40, 0, 40 * MIB, 8_000, 15, 5_000, 5_100, 0];
    let slow =
        |ops, ms| ids(Client::new().with("WRITE", writes).with("COMMIT", [ops, ops, 0, 0, 0, 0, ms, ms, 0]));
    assert_eq!(slow(20, 9_775), ["commits"]);
    assert_eq!(slow(19, 9_775), [""; 0]);
    // Half a second each is long whatever their share.
    assert_eq!(slow(20, 9_770), ["slow-operation"]);
    let opens = Client { opens: 40_000, ..Client::new() }
        .with("OPEN", [40_000, 40_000, 0, 0, 0, 10, 8_000, 8_100, 0])
        .with("CLOSE", [40_000, 40_000, 0, 0, 0, 10, 8_000, 8_100, 0]);
    let opens = found(opens);
    assert_eq!(opens.id, "open-close-share");
    assert!(opens.what.contains("95 %"), "{}", opens.what);
    let sync = found(Client::new().option("sync"));
    assert_eq!(sync.id, "synchronous-mount");
    assert!((sync.cost.unwrap().share - 5_100.0 / 9_975.0).abs() < 1e-9);
}

#[test]
fn bytes_of_applications_and_of_the_wire_are_compared() {
    let cached =
        found(Client { bytes: [8192 * MIB, 1024 * MIB, 0, 0, 2048 * MIB, 1024 * MIB], ..Client::new() });
    assert_eq!(cached.id, "cached-reads");
    assert!(cached.what.contains("75 % of the 8 GiB"), "{}", cached.what);
    let waste =
        found(Client { bytes: [512 * MIB, 1024 * MIB, 0, 0, 2048 * MIB, 1024 * MIB], ..Client::new() });
    assert_eq!((waste.id, waste.cost.unwrap().share), ("readahead-waste", 0.75));
    let twice =
        found(Client { bytes: [2048 * MIB, 512 * MIB, 0, 0, 2048 * MIB, 1024 * MIB], ..Client::new() });
    assert_eq!((twice.id, twice.cost.unwrap().share), ("written-twice", 0.5));
}

#[test]
fn small_pieces_are_told_with_what_limits_them() {
    let mut limited = Client::new().with("READ", [65_536, 65_536, 0, 0, 2048 * MIB, 20, 40_000, 42_000, 0]);
    limited.options = limited.options.replace("rsize=1048576", "rsize=32768");
    let limited = found(limited);
    assert_eq!(limited.id, "small-transfer-size");
    assert!(limited.what.contains("65536 READs of at most 32 KiB (`rsize`)"), "{}", limited.what);
    let small = found(Client::new().with("READ", [65_536, 65_536, 0, 0, 2048 * MIB, 20, 40_000, 42_000, 0]));
    assert_eq!(small.id, "small-reads");
    assert!(small.what.contains("32 KiB on average, and could have 1 MiB"), "{}", small.what);
}

#[test]
fn connections_are_looked_at_each() {
    let lost = found(Client { connections: vec![[40, 5_000, 0, 10]], ..Client::new() });
    assert_eq!(lost.id, "reconnects");
    // Twelve in an hour are what idleness can do.
    assert_eq!(ids(Client { connections: vec![[13, 5_000, 0, 10]], ..Client::new() }), [""; 0]);
    let sends = [9_000, 9_500, 1_000, 9_000];
    let uneven = Client { connections: sends.map(|sends| [1, sends, 0, 1]).into(), ..Client::new() };
    let uneven = found(uneven);
    assert_eq!((uneven.id, uneven.evidence.len()), ("uneven-connections", 4));
}

#[test]
fn clients_are_compared_with_each_other() {
    let slow = [2_100, 2_100, 0, 0, 2048 * MIB, 20, 40_000, 40_200, 0];
    let clients = [
        Client::new(),
        Client { name: "c2", ..Client::new() },
        Client { name: "c3", ..Client::new() }.with("READ", slow),
    ];
    let findings = of(&clients).findings;
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].id, "slow-client");
    assert!(findings[0].what.starts_with("c3") && findings[0].what.contains("READ 19.0 ms, others 1.9 ms"));
    let clients = [Client::new(), Client { name: "c2", ..Client::new() }.option("noatime")];
    let findings = of(&clients).findings;
    assert_eq!(findings.iter().map(|one| one.id).collect::<Vec<_>>(), ["unequal-mounts"]);
    assert!(findings[0].what.contains("c2 has noatime"), "{}", findings[0].what);
}

#[test]
fn between_two_readings_only_what_is_new_counts() {
    let bad = || Client::new().with("READ", [2_100, 2_140, 0, 0, 2048 * MIB, 20, 4_000, 4_200, 3]);
    let mut later = bad().with("LOOKUP", [1_120, 1_120, 0, 200_000, 200_000, 2, 440, 450, 60]);
    later.age += 60;
    let observations = between(vec![(bad().reading(), later.reading())]).unwrap();
    let [one] = &observations.observed[..] else { panic!("{observations:?}") };
    assert_eq!((one.seconds, one.calls(), one.since_mount), (60, 1_000, false));
    assert_eq!(diagnose(&observations.observed).findings, []);
    // A mount that is new is left out by name, and one that went back is an error.
    let other = Reading { client: "c1".into(), mountstats: Mountstats::default() };
    let observations = between(vec![(other, bad().reading())]).unwrap();
    assert!(observations.left_out[0].contains("not in the earlier reading"), "{observations:?}");
    assert!(between(vec![(later.reading(), bad().reading())]).is_err());
    // The same reading twice has no calls.
    let observations = between(vec![(bad().reading(), bad().reading())]).unwrap();
    assert!(observations.left_out[0].contains("no calls"), "{observations:?}");
}

#[test]
fn sessions_made_anew_are_lost_ones() {
    let made = |sessions| Client::new().with("CREATE_SESSION", [sessions, sessions, 0, 0, 0, 0, 40, 50, 0]);
    assert_eq!(ids(made(2)), [""; 0]);
    let lost = found(made(5));
    assert_eq!((lost.id, lost.confidence), ("session-recovery", Confidence::Likely));
    assert!(lost.what.contains("3 sessions"), "{}", lost.what);
    // Between two readings each is one.
    let mut later = made(3).with("LOOKUP", [1_120, 1_120, 0, 200_000, 200_000, 2, 440, 450, 60]);
    later.age += 60;
    let findings = diagnose(&between(vec![(made(2).reading(), later.reading())]).unwrap().observed).findings;
    assert_eq!(findings.iter().map(|one| one.id).collect::<Vec<_>>(), ["session-recovery"]);
    let mut three = Client { version: 3, ..made(9) };
    three.options = three.options.replace("vers=4.1", "vers=3");
    assert_eq!(ids(three), [""; 0]);
}

#[test]
fn a_storm_of_tests_of_state_is_told_from_one_look_at_it() {
    let tests = |count| Client::new().with("TEST_STATEID", [count, count, 0, 9_000, 9_000, 0, 400, 420, 0]);
    let storm = found(tests(2_000));
    assert_eq!(storm.id, "state-tests");
    assert!(storm.what.starts_with("31 % of the calls"), "{}", storm.what);
    assert_eq!(ids(tests(60)), [] as [&str; 0]);
    assert_eq!(ids(Client { version: 3, ..tests(2_000) }), [] as [&str; 0]);
}

#[test]
fn the_dearest_comes_first_and_mounts_of_one_file_system_count_once() {
    let client = Client { delays: 30, ..Client::new() }.option("sync");
    let findings = of(&[client]).findings;
    let shares: Vec<f64> = findings.iter().map(|one| one.cost.as_ref().unwrap().share).collect();
    assert_eq!(findings.len(), 2);
    assert!(shares[0] > shares[1]);
    let text = Client { delays: 30, ..Client::new() }.text();
    let twice = format!("{text}{}", text.replace("/mnt/x", "/mnt/y"));
    let reading = Reading { client: "c1".into(), mountstats: Mountstats::parse(&twice).unwrap() };
    assert_eq!(since_mounted(vec![reading]).observed.len(), 1);
}
