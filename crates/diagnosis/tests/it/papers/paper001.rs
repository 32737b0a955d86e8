//! ";login:" 2015: NFSv3 against NFSv4.1 on 10 GbE.

use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::{Recording, RpcSource};
use benchmaster_record::results::{StudyResults, Unit};

use super::made::{self, Traces};
use super::paper000::staggered;
use super::{found, one, phenomena};

/// Table 2: operations of each client in the locked read of 1,000 shared files, ten times opened each.
const TABLE_2: [(&str, [u64; 3]); 9] = [
    ("OPEN", [0, 10_001, 1_000]),
    ("READ", [10_000, 10_000, 1_000]),
    ("CLOSE", [0, 10_001, 1_000]),
    ("ACCESS", [10_003, 9_003, 3]),
    ("GETATTR", [19_003, 19_002, 1]),
    ("LOCK", [10_000, 10_000, 0]),
    ("LOCKU", [10_000, 10_000, 0]),
    ("LOOKUP", [1_002, 2, 2]),
    ("FREE_STATEID", [0, 10_000, 0]),
];

fn column(number: usize) -> (Recording, u64) {
    let version = if number == 0 { "3" } else { "4.1" };
    let mut recording = made::recording("locked-read", 10.0);
    for kind in [OperationKind::Open, OperationKind::Lock, OperationKind::Unlock, OperationKind::Close] {
        made::series(&mut recording, kind, 0, &[(200_000, 10_000)]);
    }
    made::series(&mut recording, OperationKind::Read, 4096, &[(200_000, 10_000)]);
    made::files(&mut recording, 1_000, 4_096_000);
    made::workers(&mut recording, &[1.0]);
    let of = |(name, ops): &(&'static str, [u64; 3])| {
        (*name, ops[number], if *name == "READ" { 4_300 } else { 180 }, 0.0, 200.0)
    };
    let calls: Vec<made::Call<'_>> = TABLE_2.iter().map(of).filter(|call| call.1 > 0).collect();
    made::rpcs(&mut recording, RpcSource::Kernel, version, &calls);
    (recording, calls.iter().map(|call| call.1).sum())
}

fn locked_reads(columns: &[usize]) -> StudyResults {
    let levels = [
        "v3 = { \"target.mount.options\" = \"vers=3\" }",
        "off = { \"target.mount.options\" = \"vers=4.1\" }",
        "on = { \"target.mount.options\" = \"vers=4.1,hard\" }",
    ];
    let levels: Vec<&str> = columns.iter().map(|column| levels[*column]).collect();
    let mut results = made::study(&format!(
        "[study]\nname = \"made\"\n[target]\nmount = {{ source = \"server:/export\", path = \"/mnt/x\" }}\n[factors.protocol.levels]\n{}\n\
         [workload.locked-read]\nuse = \"locked-read\"\n",
        levels.join("\n")
    ));
    for (treatment, number) in columns.iter().enumerate() {
        for _ in 0..3 {
            let (recording, calls) = column(*number);
            let per_operation = ("locked-read.rpcs_per_operation", calls as f64 / 50_000.0, Unit::Ratio);
            made::add(&mut results, treatment as u32, vec![recording], &[per_operation]);
        }
    }
    results
}

#[test]
fn table_2_locks_and_what_delegations_save() {
    let results = locked_reads(&[0, 1, 2]);
    let diagnosis = found(&results, &Traces::default());
    let at = |id: &str| -> Vec<String> {
        one(&diagnosis, id)
            .at
            .as_ref()
            .unwrap()
            .treatments
            .iter()
            .map(|treatment| treatment.label.clone())
            .collect()
    };
    // Both versions lose their caches to locks; with delegations nothing of that is sent.
    let mut both = at("lock-invalidates-cache");
    both.sort();
    assert_eq!(both, ["protocol=off", "protocol=v3"]);
    assert_eq!(at("delegation-not-granted"), ["protocol=off"]);
    // Version 4.1 is the more talkative: 88,009 calls instead of 60,008.
    let talkative = one(&diagnosis, "talkative-version");
    assert!(
        talkative.what.starts_with("With off each operation takes 1.47 times as many calls as with v3"),
        "{}",
        talkative.what
    );
    let names = phenomena(&results, &Traces::default());
    assert_eq!(
        names,
        ["delegation-not-granted", "lock-invalidates-cache", "open-close-share", "talkative-version"]
    );
    // With delegations 4.1 is not: 3,006 calls.
    assert_eq!(
        phenomena(&locked_reads(&[0, 2]), &Traces::default()),
        ["lock-invalidates-cache", "open-close-share"]
    );
}

#[test]
fn figure_2_a_client_that_is_hashed_anew() {
    // 1→tx3, 2→tx0, 3→tx2, 4→tx0, 5→tx3; at 270 s Client5 goes to tx5. 1,177 MB/s together.
    let recording = staggered(1177.0, |second| [3, 0, 2, 0, if second < 270.0 { 3 } else { 5 }]);
    let mut results = made::study(
        "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.read]\nuse = \"sequential-read\"\nduration = \"300s\"\n",
    );
    made::add(&mut results, 0, vec![recording], &[]);
    assert_eq!(phenomena(&results, &Traces::default()), ["rehash"]);
    let diagnosis = found(&results, &Traces::default());
    let at = one(&diagnosis, "rehash").at.as_ref().unwrap().interval_ns.unwrap();
    assert!((at.1 as f64 / 1e9 - 270.0).abs() < 3.0, "{at:?}");
}

#[test]
fn figure_6_sessions_run_out_of_slots() {
    // Without delay, above 64 threads version 4.1 falls below version 3, which goes on.
    let mut results = made::study(
        "[study]\nname = \"made\"\n[target]\nurl = \"nfs://{server}/export\"\n[factors.threads]\nparameter = \"workload.create.workers\"\nlevels = [16, 64, 256, 512]\n\
         [factors.version]\nparameter = \"target.version\"\nlevels = [\"3\", \"4.1\"]\n[workload.create]\nuse = \"file-creation\"\nfiles = 1000\n",
    );
    for (version, rates) in
        [("3", [4_000.0, 9_000.0, 13_000.0, 14_000.0]), ("4.1", [4_100.0, 9_500.0, 9_200.0, 8_800.0])]
    {
        for (threads, rate) in [16, 64, 256, 512].into_iter().zip(rates) {
            for wobble in [0.99, 1.0, 1.01] {
                let treatment = made::treatment(&results, &format!("threads={threads} version={version}"));
                let mut recording = made::recording("create", 10.0);
                let waiting = if version == "4.1" && threads > 64 { 1_000.0 } else { 20.0 };
                made::rpcs(
                    &mut recording,
                    RpcSource::Client,
                    version,
                    &[("OPEN", 10_000, 300, waiting, 400.0)],
                );
                made::add(
                    &mut results,
                    treatment,
                    vec![recording],
                    &[("create.operations", rate * wobble, Unit::OperationsPerSecond)],
                );
            }
        }
    }
    assert_eq!(phenomena(&results, &Traces::default()), ["threads-beyond-slots"]);
}

#[test]
fn figure_4_more_than_a_third_of_the_requests_open_and_close() {
    // File Server over version 4.1: OPEN and CLOSE are more than one third.
    let mut recording = made::recording("files", 300.0);
    made::series(&mut recording, OperationKind::Open, 0, &[(300_000, 100_000)]);
    made::series(&mut recording, OperationKind::Write, 65_536, &[(300_000, 100_000)]);
    made::workers(&mut recording, &[1.0]);
    let calls = [
        ("OPEN", 100_000, 300, 0.0, 300.0),
        ("CLOSE", 90_000, 200, 0.0, 200.0),
        ("WRITE", 100_000, 200, 0.0, 900.0),
        ("READ", 60_000, 60_000, 0.0, 700.0),
        ("GETATTR", 80_000, 200, 0.0, 200.0),
        ("ACCESS", 70_000, 200, 0.0, 200.0),
    ];
    made::rpcs(&mut recording, RpcSource::Kernel, "4.1", &calls);
    let mut results = made::study(
        "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.files]\nuse = \"file-server\"\n",
    );
    made::add(&mut results, 0, vec![recording], &[]);
    let diagnosis = found(&results, &Traces::default());
    assert!(
        one(&diagnosis, "open-close-share").what.starts_with("38 % of the 500000 calls"),
        "{:?}",
        diagnosis.findings
    );
}
