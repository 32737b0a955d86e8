//! How cost per operation grows, or does not, with threads, connections, files and opens; memory per file and open; and
//! what READs cost beside a server that does nothing.
//!
//! `cargo bench -p benchmaster-nfs-server --bench scaling -- [--only threads|null|connections|files|opens] [--operation 'READ 4 KiB v3'] [--peer 'ganesha MEM']
//! [--server 'COMMAND'] [--files 1000000] [--opens 1000000] [--seconds 1]`, where COMMAND serves `/export` on TCP port `{port}`.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]
#![allow(dead_code, reason = "the load client serves two benches")]

mod load;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};
use benchmaster_nfs_server::{Server, ServerConfig};
use load::calls::{APART, Kind, Prepared, Target, prepare};
use load::direct::{self, Direct, additions};
use load::engine::{Outcome, Until, run};
use load::peers::{Peer, Process, enter_namespace};
use load::process::resident;
use load::{Version, median, option};

/// Calls outstanding on one connection.
const WINDOW: u32 = 64;
/// Measurements of one point.
const ROUNDS: usize = 3;

fn main() -> Result<()> {
    if load::peers::served()? {
        return Ok(());
    }
    // Run by `cargo test`, too, which has no time for it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let only = option("--only").unwrap_or_default();
    let time = Duration::from_secs_f64(option("--seconds").map_or(Ok(1.0), |text| text.parse())?);
    if "threads".contains(&only) {
        threads(time)?;
    }
    if only == "threads" {
        return Ok(());
    }
    enter_namespace()?;
    let number = |name: &str, otherwise: u64| option(name).map_or(Ok(otherwise), |text| text.parse());
    let (files, opens) = (number("--files", 1_000_000)?, number("--opens", 1_000_000)?);
    let name = option("--peer").unwrap_or_else(|| Peer::Ours.name().into());
    let peer = Peer::ALL.into_iter().find(|peer| peer.name() == name).context("--peer: no such server")?;
    // Descriptors for a thousand connections on both sides.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit = rustix::process::Rlimit { current: limit.maximum, ..limit };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limit)?;

    if "null".contains(&only) {
        null(time)?;
    }
    if "connections".contains(&only) {
        connections(peer, time)?;
    }
    if "files".contains(&only) {
        println!("\n## {name}: files, in one directory\n");
        println!(
            "| files | CREATE v3 µs CPU | OPEN+CLOSE v4.1 | GETATTR v3 | bytes per new file |\n|---|---|---|---|---|"
        );
        let others = [(Kind::OpenClose, Version::V41), (Kind::Getattr, Version::V3)];
        grow(peer, Kind::Create, Version::V3, files, time, others)?;
    }
    if "opens".contains(&only) {
        println!("\n## {name}: opens of one client, each of a new file\n");
        println!(
            "| opens | OPEN v4.1 µs CPU | READ 4 KiB v4.1 | OPEN+CLOSE v4.1 | bytes per new file and open |"
        );
        println!("|---|---|---|---|---|");
        let others = [(Kind::Read(4 << 10), Version::V41), (Kind::OpenClose, Version::V41)];
        grow(peer, Kind::Open, Version::V41, opens, time, others)?;
    }
    Ok(())
}

/// Measures the dispatcher with more and more threads, each with a client of its own, and what a word costs that all
/// threads write.
fn threads(time: Duration) -> Result<()> {
    const THREADS: [usize; 3] = [1, 2, 16];
    println!(
        "## threads without sockets, each with files and directories of its own, or all with the same\n"
    );
    println!("| operation | v | files | threads | 1/s | µs CPU | to one thread | waits/1M | sleeps/1M |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let apart = [
        (Kind::Getattr, Version::V3),
        (Kind::Read(4 << 10), Version::V3),
        (Kind::Read(4 << 10), Version::V41),
        (Kind::Write(4 << 10), Version::V41),
        (Kind::OpenClose, Version::V41),
        (Kind::Create, Version::V3),
    ];
    let same = [(Kind::Read(4 << 10), Version::V41), (Kind::OpenClose, Version::V41)];
    let apart = apart.map(|(kind, version)| (kind, version, APART));
    let wanted = option("--operation").unwrap_or_default();
    for (kind, version, unique) in apart.into_iter().chain(same.map(|(kind, version)| (kind, version, ""))) {
        if !format!("{kind} v{version}").contains(&wanted) {
            continue;
        }
        let mut found = THREADS.map(|_| Vec::new());
        // One after the other, so that the machine's moods hit all.
        for _ in 0..ROUNDS {
            for (threads, found) in THREADS.into_iter().zip(&mut found) {
                found.push(direct_round(kind, version, unique, threads, time)?);
            }
        }
        let mut one = None;
        for (threads, found) in THREADS.into_iter().zip(&found) {
            let of = |value: &dyn Fn(&Direct) -> f64| median(&found.iter().map(value).collect::<Vec<_>>());
            let million = |number: u64, it: &Direct| number as f64 * 1e6 / it.operations as f64;
            let cost = of(&|it| it.cpu.as_secs_f64() * 1e6 / it.operations as f64);
            println!(
                "| {kind} | {version} | {} | {threads} | {:.0} | {cost:.3} | {:.2} | {:.1} | {:.1} |",
                if unique == APART { "own" } else { "same" },
                of(&|it| it.operations as f64 / it.elapsed.as_secs_f64()),
                cost / *one.get_or_insert(cost),
                of(&|it| million(it.waits, it)),
                of(&|it| million(it.sleeps, it)),
            );
        }
    }
    println!("\n| threads | ns CPU to add to one word of all | to words of their own |\n|---|---|---|");
    for threads in THREADS {
        println!("| {threads} | {:.1} | {:.1} |", additions(threads, true), additions(threads, false));
    }
    println!();
    Ok(())
}

fn direct_round(
    kind: Kind,
    version: Version,
    unique: &str,
    threads: usize,
    time: Duration,
) -> Result<Direct> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::start(ServerConfig { listen, threads, ..ServerConfig::default() })?;
    let (nfs, export) = (server.address(), "/export".to_owned());
    let target = Target { nfs, mount: nfs, path: export.clone(), export };
    let prepared = (0..threads).map(|number| prepare(&target, version, kind, WINDOW, number, unique));
    let found = direct::run(&server, prepared.collect::<Result<_>>()?, time)?;
    server.stop()?;
    Ok(found)
}

/// Measures READs of 4 KiB beside those of a server that does nothing, in turn.
fn null(time: Duration) -> Result<()> {
    println!("## READ 4 KiB, 64 outstanding on one connection, beside a server that does nothing\n");
    println!(
        "| v | µs CPU | of the null server | ratio | calls per receive of the client |\n|---|---|---|---|---|"
    );
    let (ours, null) = (Process::start(Peer::Ours)?, Process::start(Peer::Null)?);
    for version in [Version::V3, Version::V41] {
        let (mut costs, mut batches) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
        for _ in 0..5 {
            for (server, (costs, batches)) in
                [&ours, &null].into_iter().zip(costs.iter_mut().zip(&mut batches))
            {
                let mut prepared = prepare(&ours.target, version, Kind::Read(4 << 10), WINDOW, 0, "")?;
                if server.pid() == null.pid() {
                    prepared.stream = TcpStream::connect(null.target.nfs)?;
                    prepared.stream.set_nodelay(true)?;
                }
                let (outcome, _) = run(vec![prepared], Until::Time(time), server.pid())?;
                costs.push(outcome.cost());
                batches.push(outcome.operations as f64 / outcome.receives as f64);
            }
        }
        let ([ours, null], [our_batch, null_batch]) =
            (costs.map(|it| median(&it)), batches.map(|it| median(&it)));
        println!(
            "| {version} | {ours:.2} | {null:.2} | {:.2} | {our_batch:.0}, {null_batch:.0} |",
            ours / null
        );
    }
    println!();
    Ok(())
}

/// Measures the same load on more and more connections.
fn connections(peer: Peer, time: Duration) -> Result<()> {
    println!("## {}: connections\n", peer.name());
    println!(
        "| operation | v | connections | calls on each | 1/s | µs CPU | to one connection |\n|---|---|---|---|---|---|---|"
    );
    let server = Process::start(peer)?;
    for (kind, version) in [
        (Kind::Read(4 << 10), Version::V3),
        (Kind::Read(4 << 10), Version::V41),
        (Kind::Getattr, Version::V41),
    ] {
        for window in [WINDOW, 1] {
            let mut one = None;
            for connections in [1, 10, 100, 1000] {
                let outcomes = rounds(&server, kind, version, connections, window, Until::Time(time))?;
                let cost = median_of(&outcomes, Outcome::cost);
                let one = *one.get_or_insert(cost);
                let rate = median_of(&outcomes, Outcome::rate);
                let to_one = cost / one;
                println!(
                    "| {kind} | {version} | {connections} | {window} | {rate:.0} | {cost:.2} | {to_one:.2} |"
                );
            }
        }
    }
    Ok(())
}

/// Makes things by `kind`, tenfold each time, and measures other operations beside them.
fn grow(
    peer: Peer,
    kind: Kind,
    version: Version,
    most: u64,
    time: Duration,
    others: [(Kind, Version); 2],
) -> Result<()> {
    let server = Process::start(peer)?;
    let mut grower = vec![prepare(&server.target, version, kind, WINDOW, 1_000_000, "grow")?];
    let (mut made, mut next) = (0, 10);
    while next <= most {
        let before = resident(server.pid())?;
        let (outcome, again) = run(grower, Until::Operations(next - made), server.pid())?;
        grower = again;
        let per_new = resident(server.pid())?.saturating_sub(before) as f64 / (next - made) as f64;
        made = next;
        print!("| {made} | {:.2} |", outcome.cost());
        for (kind, version) in others {
            let outcomes = rounds(&server, kind, version, 1, WINDOW, Until::Time(time))?;
            print!(" {:.2} |", median_of(&outcomes, Outcome::cost));
        }
        println!(" {per_new:.0} |");
        next *= 10;
    }
    Ok(())
}

/// Measures one point a few times.
fn rounds(
    server: &Process,
    kind: Kind,
    version: Version,
    connections: usize,
    window: u32,
    until: Until,
) -> Result<Vec<Outcome>> {
    (0..ROUNDS)
        .map(|_| {
            let prepared: Vec<Prepared> = (0..connections)
                .map(|number| prepare(&server.target, version, kind, window, number, ""))
                .collect::<Result<_>>()
                .with_context(|| format!("{kind} with version {version} on {connections} connections"))?;
            run(prepared, until, server.pid()).map(|(outcome, _)| outcome)
        })
        .collect()
}

fn median_of(outcomes: &[Outcome], value: impl Fn(&Outcome) -> f64) -> f64 {
    median(&outcomes.iter().map(value).collect::<Vec<_>>())
}
