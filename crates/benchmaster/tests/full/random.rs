//! Conditions that a seed draws, each really run and diagnosed: what is slow, where, by how much, under which workload, version
//! and number of workers and clients, on the embedded server, one of its own, or one behind a proxy that no study knows of; pairs
//! of them; and studies in which nothing is wrong.
//!
//! `BENCHMASTER_RANDOM=FIRST..END` runs these seeds and prints a line for each, and the confusion.
//! `BENCHMASTER_PATHOLOGY_PLACE` keeps the results, as for `just pathology`.

mod proxy;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use benchmaster_stats::share::wilson;
use benchmaster_testkit::Random;

use self::proxy::{Fault, Proxy};
use crate::pathology::scenario::{Case, Scenario};
use crate::pathology::trial::{diagnose, trial};

/// Who holds calls up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    Embedded,
    Own,
    Proxy,
}

/// A study, and what is wrong with what it measures.
#[derive(Debug)]
struct Drawn {
    scenario: Scenario,
    host: Host,
    rules: Vec<String>,
    fault: Option<Fault>,
    /// What is planted, each with the findings that name it.
    planted: Vec<(&'static str, &'static [&'static str])>,
}

/// What may be planted.
#[derive(Debug, Clone, Copy)]
enum Condition {
    Slow,
    SlowSome,
    Nth,
    Stops,
    Rate,
    Bandwidth,
    Later,
    Refused,
    Closed,
    OneClient,
    Slots,
    Far,
    OneConnection,
}

const CONDITIONS: [Condition; 13] = [
    Condition::Slow,
    Condition::SlowSome,
    Condition::Nth,
    Condition::Stops,
    Condition::Rate,
    Condition::Bandwidth,
    Condition::Later,
    Condition::Refused,
    Condition::Closed,
    Condition::OneClient,
    Condition::Slots,
    Condition::Far,
    Condition::OneConnection,
];

/// What is chosen of the workload.
struct Shape {
    workers: u32,
    clients: u32,
    io_kib: u32,
    operation: &'static str,
    uses: &'static str,
    version: &'static str,
    connections: u32,
}

impl Condition {
    fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow operation",
            Self::SlowSome => "some slow operations",
            Self::Nth => "every n-th slow",
            Self::Stops => "stops",
            Self::Rate => "operations per second",
            Self::Bandwidth => "bytes per second",
            Self::Later => "slow from a time on",
            Self::Refused => "asked to come later",
            Self::Closed => "closed connections",
            Self::OneClient => "one slow client",
            Self::Slots => "few slots",
            Self::Far => "distance",
            Self::OneConnection => "one slow connection",
        }
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Slow | Self::SlowSome => &["server-service-time"],
            Self::Nth => &["periodic-spikes"],
            Self::Stops => &["short-pauses", "standstill"],
            Self::Rate => &["served-in-turn"],
            Self::Bandwidth => &["served-in-turn", "network-bandwidth"],
            // The second run is slow from its beginning.
            Self::Later => &["slow-stretches", "not-steady", "server-service-time"],
            Self::Refused => &["server-delay"],
            Self::Closed => &["reconnects"],
            Self::OneClient => &["slow-part", "slow-client", "winners-and-losers"],
            Self::Slots => &["slots-exhausted"],
            Self::Far => &["emulated-delay"],
            Self::OneConnection => &["slow-part"],
        }
    }

    /// Plants it; the study gets what it takes.
    fn plant(self, random: &mut Random, shape: &mut Shape, drawn: &mut Drawn, study: &mut Vec<String>) {
        let operation = shape.operation;
        let delay = random.log(3.0, 40.0);
        let rule = match self {
            Self::Slow => format!("{operation} delay={delay:.1}ms"),
            Self::SlowSome => format!("{operation} delay={:.0}ms p=0.1", 3.0 * delay),
            Self::Nth => {
                let nth = random.log(8.0, 100.0).round();
                format!("{operation} delay={:.0}ms nth={nth}", (0.6 * nth).max(delay))
            }
            Self::Stops => {
                let stop = random.log(40.0, 150.0).round();
                format!("* stall={stop}ms every={:.0}ms", stop * (2.5 + random.unit()))
            }
            Self::Rate => {
                shape.workers = shape.workers.max(4);
                shape.connections = random.of(&[1, 1, 4]);
                format!("* rate={:.0}", random.log(60.0, 500.0))
            }
            Self::Bandwidth => {
                (shape.workers, shape.io_kib) = (shape.workers.max(4), 64);
                format!("{operation} bandwidth={:.1}MB/s", random.log(3.0, 15.0))
            }
            Self::Later => format!("{operation} delay={delay:.1}ms after={:.0}", random.log(300.0, 1_500.0)),
            Self::Refused => {
                let error = if shape.version == "3" { "JUKEBOX" } else { "DELAY" };
                format!("{operation} error={error} p={:.3}", random.log(0.02, 0.1))
            }
            Self::Closed => format!("* disconnect every={:.0}ms", random.log(150.0, 600.0)),
            Self::OneClient => {
                (drawn.host, shape.clients) = (Host::Proxy, 2);
                drawn.fault = Some(Fault::Connection(delay));
                String::new()
            }
            Self::Slots => {
                (shape.version, shape.workers) = ("4.1", 8);
                drawn.host = Host::Embedded;
                study.push(format!("server.slots={}", 1 + random.bits() % 3));
                format!("{operation} delay={:.1}ms", random.log(1.0, 8.0))
            }
            Self::Far => {
                drawn.host = Host::Embedded;
                study.push(format!("network.delay={delay:.1}ms"));
                String::new()
            }
            Self::OneConnection => {
                (drawn.host, shape.connections, shape.workers) = (Host::Proxy, random.of(&[2, 4]), 4);
                drawn.fault = Some(Fault::Connection(delay));
                String::new()
            }
        };
        // The proxy does what concerns requests as a whole; their bytes are not known to it.
        let fault = match (self, drawn.host) {
            (Self::Rate, Host::Proxy) => Some(Fault::Rate(random.log(60.0, 500.0))),
            (Self::Stops, Host::Proxy) => {
                let stop = random.log(40.0, 150.0);
                Some(Fault::Stops(stop, stop * (2.5 + random.unit())))
            }
            (Self::Slow, Host::Proxy) => Some(Fault::All(delay)),
            _ => None,
        };
        match fault {
            Some(fault) => drawn.fault = Some(fault),
            None if rule.is_empty() => {}
            None => drawn.rules.push(rule),
        }
        drawn.planted.push((self.name(), self.names()));
    }
}

fn draw(seed: u64) -> Drawn {
    let mut random = Random(seed.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let writes = random.unit() < 0.4;
    let reads = random.of(&["random-read", "sequential-read"]);
    let mut shape = Shape {
        workers: random.of(&[2, 4, 8]),
        clients: random.of(&[1, 1, 2]),
        io_kib: random.of(&[4, 16, 64]),
        operation: if writes { "WRITE" } else { "READ" },
        uses: if writes { "sequential-write" } else { reads },
        version: random.of(&["3", "4.0", "4.1", "4.2"]),
        connections: 1,
    };
    let mut drawn = Drawn {
        scenario: Scenario::drawn(format!("random-{seed}")),
        host: random.of(&[Host::Embedded, Host::Own, Host::Proxy]),
        rules: Vec::new(),
        fault: None,
        planted: Vec::new(),
    };
    let mut study = Vec::new();
    let planted = match random.unit() {
        healthy if healthy < 0.25 => 0,
        single if single < 0.9 => 1,
        _ => 2,
    };
    let mut left = CONDITIONS.to_vec();
    if planted == 2 {
        // Two that can be planted in the same place.
        left.retain(|one| {
            use Condition::{Far, OneClient, OneConnection, Slots};
            !matches!(one, Slots | Far | OneClient | OneConnection)
        });
        drawn.host = random.of(&[Host::Embedded, Host::Own]);
    }
    for _ in 0..planted {
        let condition = left.swap_remove((random.bits() % left.len() as u64) as usize);
        condition.plant(&mut random, &mut shape, &mut drawn, &mut study);
    }
    if drawn.host == Host::Embedded && !drawn.rules.is_empty() {
        let rules: Vec<String> = drawn.rules.iter().map(|rule| format!("\"{rule}\"")).collect();
        study.push(format!("server.inject=[{}]", rules.join(", ")));
    }
    let Shape { workers, clients, io_kib, uses, version, connections, .. } = shape;
    let server = if drawn.host == Host::Embedded { "{server}" } else { "127.0.0.1:PORT" };
    drawn.scenario.study = format!(
        "[target]\nurl = \"nfs://{server}/export?version={version}&nconnect={connections}\"\n[clients]\ncount = {clients}\n[design]\nreplicates = 2\n\
         [sampling]\ninterval = \"100ms\"\n[workload.w]\nuse = \"{uses}\"\nfile_size = \"4MiB\"\nio_size = \"{io_kib}KiB\"\nworkers = {workers}\nduration = \"2400ms\"\n"
    );
    drawn.scenario.sizes = vec![study];
    drawn
}

/// A server as a program of its own.
struct Served {
    child: Child,
    port: u16,
}

impl Served {
    fn start(rules: &[String]) -> Result<Self, String> {
        let mut command = Command::new(crate::program());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        command.args(rules.iter().flat_map(|rule| ["--inject", rule]));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let stderr = child.stderr.take().ok_or("no standard error")?;
        let line =
            BufReader::new(stderr).lines().map_while(Result::ok).find(|line| line.starts_with("serving"));
        let port = line.as_deref().and_then(|line| line.rsplit(':').next()?.trim().parse().ok());
        let mut served = Self { child, port: 0 };
        served.port = port.ok_or_else(|| format!("the server did not say where it serves: {line:?}"))?;
        Ok(served)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs it; the findings in their order, and whether they are likely or certain.
fn run(drawn: &mut Drawn, place: &Path) -> Result<Vec<(String, bool)>, String> {
    let server = (drawn.host != Host::Embedded).then(|| Served::start(&drawn.rules)).transpose()?;
    let proxy = match (&server, drawn.host) {
        (Some(server), Host::Proxy) => {
            Some(Proxy::start(server.port, drawn.fault).map_err(|error| error.to_string())?)
        }
        _ => None,
    };
    let port = proxy.as_ref().map(|proxy| proxy.port).or(server.as_ref().map(|server| server.port));
    if let Some(port) = port {
        drawn.scenario.study = drawn.scenario.study.replace("PORT", &port.to_string());
    }
    let case = Case { scenario: &drawn.scenario, size: 0, seed: 1 };
    trial(&case, place)?;
    let found = diagnose(&place.join(case.name()).join("results"))?;
    Ok(found.findings.into_iter().map(|one| (one.id, one.confidence != "possible")).collect())
}

/// What is true of any of these studies, or of the host.
const BESIDE: [&str; 11] = [
    "noisy-host",
    "cpu-limit",
    "shared-host",
    "host-processing",
    "too-few-operations",
    "uneven-finish",
    "unaligned-start",
    "uncommitted-writes",
    "unstable-writes",
    "sampling-cost",
    "outlier-run",
];
/// Findings that say where time goes, of which a healthy study has none.
const ALARMS: [&str; 9] = [
    "slow-part",
    "slow-stretches",
    "short-pauses",
    "served-in-turn",
    "periodic-spikes",
    "standstill",
    "server-service-time",
    "server-delay",
    "tcp-stalls",
];

#[derive(Default)]
struct Confusion {
    rows: BTreeMap<&'static str, (u64, u64, BTreeMap<String, u64>)>,
    healthy: (u64, u64),
    likely: (u64, u64),
    failed: u64,
}

impl Confusion {
    fn take(&mut self, drawn: &Drawn, found: &[(String, bool)]) -> String {
        let told: Vec<&(String, bool)> = found.iter().filter(|(id, _)| !BESIDE.contains(&&**id)).collect();
        let right = |id: &str| drawn.planted.iter().any(|(_, names)| names.contains(&id));
        for (id, _) in found.iter().filter(|(id, sure)| *sure && ALARMS.contains(&&**id)) {
            self.likely = (self.likely.0 + u64::from(right(id)), self.likely.1 + 1);
        }
        if drawn.planted.is_empty() {
            let alarm = found.iter().any(|(id, sure)| *sure && ALARMS.contains(&&**id));
            self.healthy = (self.healthy.0 + u64::from(alarm), self.healthy.1 + 1);
            return if alarm { "ALARM".into() } else { "healthy".into() };
        }
        let first = 1 + drawn.planted.len();
        let mut verdict = String::new();
        for (name, names) in &drawn.planted {
            let named = told.iter().take(first).any(|(id, _)| names.contains(&&**id));
            let row = self.rows.entry(name).or_default();
            (row.0, row.1) = (row.0 + u64::from(named), row.1 + 1);
            if !named {
                *row.2.entry(told.first().map_or("nothing".into(), |(id, _)| id.clone())).or_default() += 1;
            }
            verdict += if named { "named " } else { "MISSED " };
        }
        verdict
    }

    fn text(&self) -> String {
        let rate = |hits: u64, of: u64| {
            let (low, high) = wilson(hits, of, 0.95);
            let share = hits as f64 / of.max(1) as f64 * 100.0;
            format!("{hits} of {of} = {share:.0} % [{:.0}, {:.0}]", low * 100.0, high * 100.0)
        };
        let mut text = String::from(
            "| planted | named among the first findings | first finding where it is not |\n|---|---|---|\n",
        );
        let (mut hits, mut all) = (0, 0);
        for (name, (named, of, instead)) in &self.rows {
            (hits, all) = (hits + named, all + of);
            let instead: Vec<String> = instead.iter().map(|(id, times)| format!("{id} {times}")).collect();
            let _ = writeln!(text, "| {name} | {} | {} |", rate(*named, *of), instead.join(", "));
        }
        let _ = writeln!(text, "\nplanted and named: {}", rate(hits, all));
        let _ = writeln!(text, "healthy with a false alarm: {}", rate(self.healthy.0, self.healthy.1));
        let _ = writeln!(text, "likely or certain, and right: {}", rate(self.likely.0, self.likely.1));
        let _ = writeln!(text, "could not be run: {}", self.failed);
        text
    }
}

/// Runs the seeds that are asked for.
pub(crate) fn all() -> Option<ExitCode> {
    let asked = std::env::var("BENCHMASTER_RANDOM").ok()?;
    let (first, end) = asked.split_once("..").expect("BENCHMASTER_RANDOM=FIRST..END");
    let seeds = first.parse::<u64>().unwrap()..end.parse::<u64>().unwrap();
    let kept = std::env::var_os("BENCHMASTER_PATHOLOGY_PLACE").map(PathBuf::from);
    let made = tempfile::tempdir().unwrap();
    let place = kept.as_deref().unwrap_or(made.path());
    let mut confusion = Confusion::default();
    for seed in seeds {
        let mut drawn = draw(seed);
        let names: Vec<&str> = drawn.planted.iter().map(|(name, _)| *name).collect();
        let what = format!("{seed}: {names:?} {:?} {:?} {:?}", drawn.host, drawn.rules, drawn.fault);
        match run(&mut drawn, place) {
            Ok(found) => {
                let verdict = confusion.take(&drawn, &found);
                let ids: Vec<&str> = found.iter().map(|(id, _)| &**id).collect();
                println!("{verdict} {what} -> {ids:?}");
            }
            Err(why) => {
                confusion.failed += 1;
                println!("failed {what}: {}", why.trim());
            }
        }
    }
    println!("{}", confusion.text());
    Some(ExitCode::SUCCESS)
}

/// The same seed draws the same study, and all conditions are drawn.
pub(crate) fn check() -> Result<(), libtest_mimic::Failed> {
    let drawn: Vec<Drawn> = (0..400).map(draw).collect();
    for condition in CONDITIONS {
        let planted = |one: &&Drawn| one.planted.iter().any(|(name, _)| *name == condition.name());
        let times = drawn.iter().filter(planted).count();
        if times < 10 {
            return Err(format!("{} is drawn {times} times of 400", condition.name()).into());
        }
    }
    if format!("{:?}", draw(7)) != format!("{:?}", draw(7)) {
        return Err("a seed draws two studies".into());
    }
    // One of each kind of host is run.
    let place = tempfile::tempdir().map_err(|error| error.to_string())?;
    for host in [Host::Own, Host::Proxy] {
        let mut one = drawn
            .iter()
            .position(|one| one.host == host && !one.planted.is_empty())
            .map(|seed| draw(seed as u64))
            .ok_or("none")?;
        let found = run(&mut one, place.path())?;
        if found.is_empty() {
            return Err(format!("nothing was found of {:?}", one.planted).into());
        }
    }
    Ok(())
}
