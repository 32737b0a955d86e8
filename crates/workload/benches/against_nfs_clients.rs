//! Our NFS client beside others, against the embedded server without data in another process: calls per second, and CPU
//! time of the client's process per call; the largest READs and WRITEs beside iperf3.
//!
//! `cargo bench -p benchmaster-workload --bench against_nfs_clients -- [--seconds 1] [--rounds 5] [--only PART_OF_A_ROW]
//! [--ours] [--without-nfs-rs]`
//!
//! Needs libnfs-dev, iperf3, util-linux, and the registry for the crate nfs-rs, which is built in a workspace of its own.
//! *null* sends and receives the same and does nothing else.
//! The client has one CPU of its own and the server the others. Rounds go over all clients in turn; figures are medians
//! over rounds. Each client is a process; what it counts begins after a warm-up.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]

mod nfs_clients;

use anyhow::Result;
use nfs_clients::job::{Job, Operation, Outcome};
use nfs_clients::ours::Layer;
use nfs_clients::peers::Client;
use nfs_clients::{median, null, option, ours, peers, recorded, server};

/// Operation, size, calls outstanding, connections, versions.
type Row = (Operation, u64, u32, u32, &'static [&'static str]);

const DATA: &[&str] = &["3", "4.0", "4.1"];
const LARGE: &[&str] = &["3", "4.1"];

const ROWS: [Row; 11] = [
    (Operation::Read, 4 << 10, 64, 1, DATA),
    (Operation::Read, 1 << 20, 16, 1, LARGE),
    (Operation::Read, 1 << 20, 16, 4, LARGE),
    (Operation::Write, 1 << 20, 16, 1, LARGE),
    (Operation::Write, 1 << 20, 16, 4, LARGE),
    (Operation::Getattr, 0, 1, 1, LARGE),
    (Operation::Getattr, 0, 64, 1, LARGE),
    (Operation::Getattr, 0, 10_000, 1, LARGE),
    (Operation::Create, 0, 1, 1, LARGE),
    (Operation::Create, 0, 64, 1, LARGE),
    (Operation::Create, 0, 10_000, 1, LARGE),
];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("serve") => return server::serve(),
        Some("protocol") => ours::run(&Job::parse(&arguments[1..])?, Layer::Protocol)?,
        Some("mount") => ours::run(&Job::parse(&arguments[1..])?, Layer::Mount)?,
        Some("null") => null::run(&Job::parse(&arguments[1..])?)?,
        Some("recorded") => recorded::run(&Job::parse(&arguments[1..])?)?,
        _ => return compare(),
    };
    println!("{outcome}");
    Ok(())
}

fn compare() -> Result<()> {
    let given = |name: &str| std::env::args().any(|arg| arg == name);
    // Run by `cargo test`, too, which has no time for it.
    if !given("--bench") {
        return Ok(());
    }
    let seconds: f64 = option("--seconds").map_or(Ok(1.0), |text| text.parse())?;
    let rounds: usize = option("--rounds").map_or(Ok(5), |text| text.parse())?;
    let only = option("--only").unwrap_or_default().to_uppercase();
    let mut clients = vec![Client::Null, Client::Protocol, Client::Mount, Client::Recorded];
    if !given("--ours") {
        let built = [Some(peers::libnfs()), (!given("--without-nfs-rs")).then(peers::nfs_rs)];
        for client in built.into_iter().flatten() {
            match client {
                Ok(client) => clients.push(client),
                Err(error) => println!("Not measured: {error:#}\n"),
            }
        }
    }
    let cpus = std::thread::available_parallelism()?.get();
    let (first, last) = (format!("0-{}", cpus.saturating_sub(2)), (cpus - 1).to_string());
    let [server_cpus, client_cpus] =
        if cpus > 1 { [Some(first.as_str()), Some(last.as_str())] } else { [None, None] };

    println!("| calls | v | client | 1/s | µs CPU | RPCs per call | GB/s | GB per CPU second |");
    println!("|---|---|---|---|---|---|---|---|");
    let mut failures = Vec::new();
    for (operation, size, outstanding, connections, versions) in ROWS {
        for version in versions {
            let mut job = Job {
                host: "127.0.0.1".into(),
                port: 0,
                version: (*version).into(),
                operation,
                size,
                outstanding,
                connections,
                seconds,
            };
            if !job.to_string().to_uppercase().contains(&only) {
                continue;
            }
            // A server of its own for every row: CREATE leaves files behind.
            let mut server = server::Process::start(server_cpus)?;
            job.port = server.port;
            let mut measured: Vec<_> = clients
                .iter()
                .filter(|client| client.does(operation, version))
                .map(|client| (client, Found::default()))
                .collect();
            let mut streams = Vec::new();
            for _ in 0..rounds {
                for (client, found) in &mut measured {
                    let before = server.calls()?;
                    match client.run(&job, client_cpus) {
                        Ok(outcome) => found.push(outcome, server.calls()? - before),
                        Err(error) => {
                            found.failed = true;
                            failures.push(format!("{job}, version {version}, {}: {error:#}", client.name()));
                        }
                    }
                }
                if size >= 1 << 20 && *version == "3" && !given("--ours") {
                    streams.push(peers::iperf3(&job, [server_cpus, client_cpus])?);
                }
            }
            for (client, found) in &measured {
                println!("| {job} | {version} | {} |{}", client.name(), found.columns(size));
            }
            if !streams.is_empty() {
                let column = |at: usize| median(&streams.iter().map(|s| s[at] / 1e9).collect::<Vec<_>>());
                println!("| {job} | | iperf3 | | | | {:.2} | {:.2} |", column(0), column(1));
            }
        }
    }
    failures.dedup();
    failures.iter().for_each(|failure| println!("\nFailed: {failure}"));
    Ok(())
}

/// What was found of a client in all rounds.
#[derive(Debug, Default)]
struct Found {
    outcomes: Vec<Outcome>,
    /// RPCs of the whole process, set-up and warm-up included, per call that counted.
    rpcs: Vec<f64>,
    failed: bool,
}

impl Found {
    fn push(&mut self, outcome: Outcome, rpcs: u64) {
        self.outcomes.push(outcome);
        self.rpcs.push(rpcs as f64 / outcome.calls as f64);
    }

    fn columns(&self, size: u64) -> String {
        if self.failed {
            return " failed | | | | |".into();
        }
        let middle = |of: fn(&Outcome) -> f64| median(&self.outcomes.iter().map(of).collect::<Vec<_>>());
        let (rate, cost) = (middle(Outcome::rate), middle(Outcome::cost));
        let start = format!(" {rate:.0} | {cost:.2} | {:.1} |", median(&self.rpcs));
        match size {
            0 => format!("{start} | |"),
            _ => format!("{start} {:.2} | {:.2} |", rate * size as f64 / 1e9, size as f64 / cost / 1e3),
        }
    }
}
