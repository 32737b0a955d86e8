//! How well five agents begin together: the time between their first operations, over many launches, beside what the two
//! papers reached on five machines (mean 235 ms, maximum 432 ms).
//!
//! Before that: how well the clocks of agents are known that are not the controller's own, as error bounds.
//!
//! `cargo bench -p benchmaster-fleet --bench launches [-- LAUNCHES [AGENTS]]`
//!
//! Every client does one operation: a write to a file in a local directory, then a GETATTR on the embedded server. The spread
//! is that of the recordings, on the common clock; on the server also that of the times at which it received the first
//! request of each client's connection, which no client had a hand in.
//!
//! The null program stands in the same table: as many processes that only wait for one instant. What their spread is, the
//! scheduler takes, and no fleet on this host can begin closer together. It takes turns with the fleet.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

#[path = "common/fleet.rs"]
mod fleet;
#[path = "common/null.rs"]
mod null;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use benchmaster_fleet::controller::Fleet;
use benchmaster_fleet::job::Job;
use benchmaster_fleet::tree::FAN_OUT;
use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_workload::execute::Edge;
use benchmaster_workload::target::{NfsTarget, Target};

fn main() {
    if fleet::is_agent() || null::is_null() {
        return;
    }
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse::<u32>().ok());
    let launches = numbers.next().unwrap_or(1000);
    let agents = numbers.next().unwrap_or(5);
    println!("{launches} launches of {agents} agents; microseconds between their first operations");
    println!("{:<36} {:>9} {:>9} {:>9} {:>9}", "", "mean", "median", "p99", "max");
    println!("{:<36} {:>9} {:>9} {:>9} {:>9}", "papers, five machines", 235_000, "", "", 432_000);

    let mut bounds = Vec::new();
    for _ in 0..launches.min(20) {
        let Some(controller) = fleet::launch_with_other_clocks(agents) else { break };
        bounds.extend(controller.members().iter().map(|member| member.clock_bound.as_nanos() as u64));
        controller.end().unwrap();
    }
    if !bounds.is_empty() {
        print("bounds of clock offsets", &mut bounds);
    }

    let mut controller = fleet::launch(agents, FAN_OUT);
    // On /dev/shm, where there is one: of a disk nobody asks anything here.
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    controller.open("local", &Target::from(place.path()), "launches").unwrap();
    let listen = ([127, 0, 0, 1], 0).into();
    let server = Server::start(ServerConfig { listen, threads: 1, ..ServerConfig::default() }).unwrap();
    let url = format!("nfs://{}/export?version=4.1", server.address());
    controller.open("wire", &Target::Nfs(NfsTarget::new(url.parse().unwrap())), "launches").unwrap();

    let write = r#"setup = [{ op = "open", file = "own", flags = ["write"] }]
        flow = [{ op = "write", io_size = "4KiB", offset = "random" }]"#;
    launch(&mut controller, "local", &fleet::job(write), launches, None);
    let stat = r#"flow = [{ op = "stat", file = "own" }]"#;
    launch(&mut controller, "wire", &fleet::job(stat), launches, Some(&server));
    controller.remove().unwrap();
    controller.end().unwrap();
}

fn launch(controller: &mut Fleet, place: &str, job: &Job, launches: u32, server: Option<&Server>) {
    let never = AtomicBool::new(false);
    let agents = controller.members().len();
    let (mut spreads, mut seen) = (Vec::new(), Vec::new());
    let mut null = null::Null::start(agents as u32);
    let (mut awake, mut apart) = (Vec::new(), Vec::new());
    let mut phases: BTreeMap<String, Duration> = BTreeMap::new();
    let began = Instant::now();
    for _ in 0..launches {
        let waited = null.launch();
        awake.push(waited.first_ns);
        apart.push(waited.spread_ns);
        let mut arrivals = Vec::new();
        let recording = controller
            .perform(place, job, None, &never, &mut |progress| match (progress.total.edge, server) {
                (Some(Edge::Begin), Some(server)) => server.arrivals().watch(),
                (Some(Edge::End), Some(server)) => arrivals = server.arrivals().noted(),
                _ => {}
            })
            .unwrap();
        assert!(recording.error_details.is_empty(), "{:?}", recording.error_details);
        spreads.push(recording.start.unwrap().spread_ns);
        for phase in &recording.phases {
            *phases.entry(phase.phase.name().to_owned()).or_default() +=
                Duration::from_nanos((phase.end_ns - phase.start_ns).unsigned_abs());
        }
        if server.is_some() {
            assert_eq!(arrivals.len(), agents, "one connection for each client");
            seen.push(arrivals[agents - 1].monotonic_ns.abs_diff(arrivals[0].monotonic_ns));
        }
    }
    let took = began.elapsed() / launches;
    null.end();
    print("null: from the instant to the first", &mut awake);
    print("null: from the first to the last", &mut apart);
    print(&format!("{place}: by the recordings"), &mut spreads);
    if server.is_some() {
        print(&format!("{place}: as the server received"), &mut seen);
    }
    let phases: Vec<String> =
        phases.into_iter().map(|(name, time)| format!("{name} {:.1?}", time / launches)).collect();
    println!("{place}: a launch takes {took:.1?} ({})", phases.join(", "));
}

fn print(name: &str, nanos: &mut [u64]) {
    nanos.sort_unstable();
    let micros = |nanos: u64| format!("{:.1}", nanos as f64 / 1e3);
    let mean = nanos.iter().sum::<u64>() / nanos.len() as u64;
    let at = |share: f64| nanos[((nanos.len() - 1) as f64 * share).round() as usize];
    println!(
        "{name:<34} {:>9} {:>9} {:>9} {:>9}",
        micros(mean),
        micros(at(0.5)),
        micros(at(0.99)),
        micros(at(1.0))
    );
}
