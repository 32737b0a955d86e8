//! NERSC PDSF 2001: single runs, as printed, in KB/s.

use benchmaster_record::results::{CheckKind, StudyResults, Unit};

use super::made::{self, Traces};
use super::{found, one, phenomena};

/// Adds a run of a treatment: what workloads reached, and those whose reads came from a cache.
fn add(results: &mut StudyResults, label: &str, rates: &[(&str, f64)], cached: &[&str]) {
    let treatment = made::treatment(results, label);
    let names: Vec<(String, f64)> =
        rates.iter().map(|(workload, rate)| (format!("{workload}.throughput"), rate * 1e3)).collect();
    let responses: Vec<_> =
        names.iter().map(|(name, rate)| (name.as_str(), *rate, Unit::BytesPerSecond)).collect();
    made::add(results, treatment, vec![], &responses);
    let run = results.runs.last_mut().unwrap();
    run.checks.extend(
        cached.iter().map(|workload| made::check(CheckKind::CachedReads, workload, &[("cached_share", 1.0)])),
    );
}

const WORKLOADS: &str = "[workload.out]\nuse = \"sequential-write\"\nduration = \"1h\"\n[workload.in]\nuse = \"sequential-read\"\nduration = \"1h\"\n";

#[test]
fn clients_that_share_reads_and_do_not_slow_writes_down() {
    let mut results = made::study(&format!(
        "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[factors.clients]\nparameter = \"clients.count\"\nlevels = [1, 2, 5, 10]\n{WORKLOADS}"
    ));
    // 2,000 MB over NFSv2, aggregate.
    for (clients, out, into) in
        [(1, 20402.0, 24799.0), (2, 20553.0, 19542.0), (5, 20635.0, 12183.0), (10, 20376.0, 10475.0)]
    {
        add(&mut results, &format!("clients={clients}"), &[("out", out), ("in", into)], &[]);
    }
    assert_eq!(phenomena(&results, &Traces::default()), ["falls-with-clients"]);
    let diagnosis = found(&results, &Traces::default());
    let falls = one(&diagnosis, "falls-with-clients");
    assert!(falls.place.starts_with("in,"), "{}", falls.place);
    assert!((falls.cost.as_ref().unwrap().share - 0.585).abs() < 0.03, "{:?}", falls.cost);
}

#[test]
fn jumbo_frames_and_large_files() {
    let mut results = made::study(&format!(
        "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[factors.mtu.levels]\n1500 = {{ \"run.cache_hook\" = \"ip link set dev eth0 mtu 1500\" }}\n\
         9000 = {{ \"run.cache_hook\" = \"ip link set dev eth0 mtu 9000\" }}\n[factors.file_size.levels]\n{}\n{WORKLOADS}",
        ["100MB", "500MB", "1000MB"].map(|size| format!("{size} = {{ \"workload.out.file_size\" = \"{size}\", \"workload.in.file_size\" = \"{size}\" }}")).join("\n")
    ));
    for (size, small, jumbo) in [
        ("100MB", (26336.0, 177193.0), (35267.0, 177614.0)),
        ("500MB", (17783.0, 16175.0), (29198.0, 26826.0)),
        ("1000MB", (15677.0, 15798.0), (18802.0, 28696.0)),
    ] {
        for (mtu, (out, into)) in [(1500, small), (9000, jumbo)] {
            let cached: &[&str] = if into > 100_000.0 { &["in"] } else { &[] };
            add(&mut results, &format!("mtu={mtu} file_size={size}"), &[("out", out), ("in", into)], cached);
        }
    }
    assert_eq!(phenomena(&results, &Traces::default()), ["falls-with-file-size", "mtu-effect"]);
    let diagnosis = found(&results, &Traces::default());
    let jumbo = one(&diagnosis, "mtu-effect");
    // The paper: +60 to 80 %; over writes and true reads of all sizes it is half as much again.
    assert!(
        jumbo.what.starts_with("With 9000 the throughput is 1.51 times that with 1500"),
        "{}",
        jumbo.what
    );
    // Writes fall with the size; of the true reads nothing is said.
    assert!(one(&diagnosis, "falls-with-file-size").place.starts_with("out,"));
}

#[test]
fn twice_as_many_threads_of_the_server_do_nothing() {
    let sizes = ["2000MB", "1000MB", "100MB"];
    let mut results = made::study(&format!(
        "[study]\nname = \"made\"\n[target]\nurl = \"nfs://{{server}}/export\"\n[factors.threads]\nparameter = \"server.threads\"\nlevels = [8, 16]\n[factors.amount.levels]\n{}\n{WORKLOADS}",
        sizes.map(|size| format!("{size} = {{ \"workload.out.file_size\" = \"{size}\", \"workload.in.file_size\" = \"{size}\" }}")).join("\n")
    ));
    for (size, eight, sixteen) in [
        ("2000MB", (20553.0, 19542.0), (20781.0, 20309.0)),
        ("1000MB", (21964.0, 538896.0), (21027.0, 536607.0)),
        ("100MB", (37796.0, 1032889.0), (38283.0, 1032815.0)),
    ] {
        for (threads, (out, into)) in [(8, eight), (16, sixteen)] {
            let cached: &[&str] = if into > 100_000.0 { &["in"] } else { &[] };
            add(
                &mut results,
                &format!("threads={threads} amount={size}"),
                &[("out", out), ("in", into)],
                cached,
            );
        }
    }
    let names = phenomena(&results, &Traces::default());
    // That small files are written faster is there, too.
    assert_eq!(names, ["falls-with-file-size", "server-threads-without-effect"]);
}
