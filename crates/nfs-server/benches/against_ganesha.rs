//! This server beside Debian's nfs-ganesha, on loopback: operations per second, and CPU time of the server per operation with 64
//! requests outstanding on one connection; and the largest READs beside iperf3.
//!
//! `cargo bench -p benchmaster-nfs-server --bench against_ganesha -- [--seconds 1] [--rounds 5] [--only OPERATION] [--alone]
//! [--server 'COMMAND']`, where COMMAND serves `/export` on TCP port `{port}` in place of the library in this program.
//!
//! Needs the packages nfs-ganesha, nfs-ganesha-mem, nfs-ganesha-vfs, rpcbind, iperf3 and util-linux, and namespaces (root for
//! the VFS back end, which opens files by handle). Rounds go over all servers in turn; figures are medians over rounds.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]
#![allow(dead_code, reason = "the load client serves two benches")]

mod load;

use std::time::Duration;

use anyhow::{Context, Result};
use load::calls::{Kind, prepare};
use load::engine::{Until, run};
use load::peers::{Peer, Process, enter_namespace, iperf3};
use load::{Version, median, option};

const WINDOW: u32 = 64;

const KINDS: [Kind; 7] = [
    Kind::Getattr,
    Kind::Read(4 << 10),
    Kind::Read(64 << 10),
    Kind::Read(1 << 20),
    Kind::Write(4 << 10),
    Kind::OpenClose,
    Kind::Create,
];

fn main() -> Result<()> {
    if load::peers::served()? {
        return Ok(());
    }
    // Run by `cargo test`, too, which has no time for it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    enter_namespace()?;
    let seconds: f64 = option("--seconds").map_or(Ok(1.0), |text| text.parse())?;
    let rounds: usize = option("--rounds").map_or(Ok(5), |text| text.parse())?;
    let only = option("--only").unwrap_or_default();
    let alone = std::env::args().any(|arg| arg == "--alone");
    let peers: &[Peer] = if alone { &[Peer::Ours] } else { &Peer::ALL };
    let servers: Vec<Process> = peers.iter().map(|peer| Process::start(*peer)).collect::<Result<_>>()?;

    print!("| operation | v |");
    peers.iter().for_each(|peer| print!(" {} 1/s | µs CPU |", peer.name()));
    println!(" CPU, of first to others |");
    println!("|---|---|{}---|", "---|---|".repeat(peers.len()));
    let mut streams = Vec::new();
    for kind in KINDS {
        for version in [Version::V3, Version::V41] {
            if version == Version::V3 && kind == Kind::OpenClose || !kind.to_string().contains(&only) {
                continue;
            }
            let mut found = vec![Vec::new(); servers.len()];
            for round in 0..rounds {
                for (server, found) in servers.iter().zip(&mut found) {
                    let prepared =
                        prepare(&server.target, version, kind, WINDOW, 0, &format!("{version}-{round}"))
                            .with_context(|| {
                                format!("{kind} with version {version} on {:?}", server.target)
                            })?;
                    let (outcome, _) =
                        run(vec![prepared], Until::Time(Duration::from_secs_f64(seconds)), server.pid())
                            .with_context(|| {
                                format!("{kind} with version {version} on {:?}", server.target)
                            })?;
                    found.push(outcome);
                }
                if kind == Kind::Read(1 << 20) {
                    streams.push(iperf3(seconds.ceil() as u64)?);
                }
            }
            print!("| {kind} | {version} |");
            let mut costs = Vec::new();
            for found in &found {
                let rate = median(&found.iter().map(|outcome| outcome.rate()).collect::<Vec<_>>());
                let cost = median(&found.iter().map(|outcome| outcome.cost()).collect::<Vec<_>>());
                costs.push(cost);
                print!(" {rate:.0} | {cost:.2} |");
            }
            let ratios: Vec<String> =
                costs[1..].iter().map(|cost| format!("1/{:.1}", cost / costs[0])).collect();
            print!(" {} |", ratios.join(", "));
            if kind.bytes() > 4 << 10 {
                for (peer, found) in peers.iter().zip(&found) {
                    let bytes = |per: fn(&load::engine::Outcome) -> f64| {
                        let values: Vec<f64> = found
                            .iter()
                            .map(|o| (o.operations * kind.bytes()) as f64 / per(o) / 1e9)
                            .collect();
                        median(&values)
                    };
                    let (rate, per_core) =
                        (bytes(|o| o.elapsed.as_secs_f64()), bytes(|o| o.cpu.as_secs_f64()));
                    print!(" {}: {rate:.2} GB/s, {per_core:.2} GB per CPU second;", peer.name());
                }
            }
            println!();
        }
    }
    if !streams.is_empty() {
        let rate = median(&streams.iter().map(|s| s.bytes_per_second / 1e9).collect::<Vec<_>>());
        let per_core =
            median(&streams.iter().map(|s| s.bytes_per_second / s.sender_cores / 1e9).collect::<Vec<_>>());
        println!("\niperf3 sends {rate:.2} GB/s, {per_core:.2} GB per CPU second of the sender.");
    }
    Ok(())
}
