//! `explore`: client and server under faults drawn from seeds.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use benchmaster_explore::run::{Line, RunError, Who};
use benchmaster_explore::scenario::Space;
use benchmaster_explore::shrink::shrink;
use benchmaster_explore::{Outcome, Scenario, Violation, run};
use benchmaster_report::pages::{self, Exploration, ExploredEvent, ExploredFailure, ExploredPlace};

use crate::cli::ExploreArgs;
use crate::commands::results::write_page;
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Scenarios that fail which are made smaller and shown; the others are counted.
const SHOWN: usize = 5;
/// Scenarios tried to make one smaller.
const SHRINKING: u32 = 400;

/// What was tried so far.
#[derive(Default)]
struct Tried {
    scenarios: u64,
    failed: u64,
    operations: u64,
    faults: u64,
    /// The first that failed, by seed.
    failures: Vec<(Scenario, Violation)>,
}

pub(crate) fn explore(args: &ExploreArgs) -> Result<Status> {
    let found = match &args.file {
        Some(file) => again(file)?,
        None if args.history => histories(args)?,
        None => search(args)?,
    };
    if let Some(path) = &args.html {
        write_page(path, pages::exploration(&found)).map_err(Failure::of_a_place_given)?;
    }
    output::document(args.json, &found, || pages::exploration(&found))?;
    Ok(if found.failed == 0 { Status::Fine } else { Status::ChecksFailed })
}

fn space(args: &ExploreArgs) -> Space {
    let any = Space::default();
    let versions = if args.nfs.is_empty() { any.versions } else { args.nfs.clone() };
    Space { versions, clients: args.clients, operations: args.operations, faults: args.faults }
}

/// The command that tries a seed of the same space again.
fn again_from(seed: u64, args: &ExploreArgs) -> String {
    let any = Space::default();
    let mut command = format!("benchmaster explore --seeds 1 --first {seed}");
    if !args.nfs.is_empty() {
        let versions: Vec<String> = args.nfs.iter().map(ToString::to_string).collect();
        command += &format!(" --nfs {}", versions.join(","));
    }
    let numbers = [
        ("clients", args.clients, any.clients),
        ("operations", args.operations, any.operations),
        ("faults", args.faults, any.faults),
    ];
    for (name, number, _) in numbers.into_iter().filter(|(_, number, usual)| number != usual) {
        command += &format!(" --{name} {number}");
    }
    command
}

/// Tries seeds on all processors.
fn search(args: &ExploreArgs) -> Result<Exploration> {
    let space = space(args);
    let begun = Instant::now();
    let end = args.seconds.map(|time| begun + time.0);
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let tried = Mutex::new(Tried::default());
    let error: Mutex<Option<RunError>> = Mutex::new(None);
    let jobs =
        args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from);
    std::thread::scope(|threads| {
        for _ in 0..jobs {
            threads.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let over = end.map_or(number >= args.seeds, |end| Instant::now() >= end);
                    if over {
                        return;
                    }
                    let scenario = Scenario::draw(args.first.wrapping_add(number), &space);
                    match run(&scenario) {
                        Ok(outcome) => {
                            tried
                                .lock()
                                .unwrap_or_else(|poisoned| poisoned.into_inner())
                                .add(scenario, outcome);
                        }
                        Err(failure) => {
                            stop.store(true, Ordering::Relaxed);
                            error
                                .lock()
                                .unwrap_or_else(|poisoned| poisoned.into_inner())
                                .get_or_insert(failure);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = error.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        return Err(Failure::failed(error));
    }
    let mut tried = tried.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    let elapsed = begun.elapsed();
    tried.failures.sort_by_key(|(scenario, _)| scenario.seed);
    let mut failures = Vec::new();
    for (scenario, violation) in tried.failures.drain(..).take(SHOWN) {
        let seed = scenario.seed;
        let shrunk = shrink(&scenario, &violation, SHRINKING);
        let file = args.keep.join(format!("seed-{seed}.json"));
        write(&file, &shrunk.scenario).map_err(Failure::of_a_place_given)?;
        let outcome = run(&shrunk.scenario)?;
        let file = file.display().to_string();
        failures.push(ExploredFailure {
            again: Some(again_from(seed, args)),
            ..failure(&shrunk.scenario, &shrunk.violation, outcome, shrunk.tried, Some(file))
        });
    }
    Ok(tried.found(args.first, elapsed, failures))
}

impl Tried {
    fn add(&mut self, scenario: Scenario, outcome: Outcome) {
        self.scenarios += 1;
        self.operations += scenario.operations() as u64;
        self.faults += scenario.faults.len() as u64;
        if let Some(violation) = outcome.violation {
            self.failed += 1;
            self.failures.push((scenario, violation));
        }
    }

    fn found(&self, first_seed: u64, elapsed: Duration, failures: Vec<ExploredFailure>) -> Exploration {
        Exploration {
            first_seed,
            tried: self.scenarios,
            failed: self.failed,
            operations: self.operations,
            faults: self.faults,
            elapsed_s: elapsed.as_secs_f64(),
            failures,
        }
    }
}

/// Shows what happens in some seeds, whether something is wrong or not.
fn histories(args: &ExploreArgs) -> Result<Exploration> {
    let space = space(args);
    let scenarios = (0..args.seeds).map(|number| Scenario::draw(args.first.wrapping_add(number), &space));
    show(args.first, scenarios, None)
}

/// Tries a scenario that was written.
fn again(file: &Path) -> Result<Exploration> {
    let place = || format!("cannot read the scenario {}", file.display());
    let text = std::fs::read_to_string(file).with_context(place).map_err(Failure::wrong_input)?;
    let scenario: Scenario = serde_json::from_str(&text).with_context(place).map_err(Failure::wrong_input)?;
    show(scenario.seed, [scenario], Some(file.display().to_string()))
}

fn show(
    first: u64,
    scenarios: impl IntoIterator<Item = Scenario>,
    file: Option<String>,
) -> Result<Exploration> {
    let begun = Instant::now();
    let (mut tried, mut failures) = (Tried::default(), Vec::new());
    for scenario in scenarios {
        let outcome = run(&scenario)?;
        let violation = outcome.violation.clone();
        let at = outcome.history.last().map_or(Duration::ZERO, |line| line.at);
        let seen = violation.unwrap_or(Violation { what: "all promises were kept".into(), at });
        failures.push(failure(&scenario, &seen, outcome.clone(), 0, file.clone()));
        tried.add(scenario, outcome);
    }
    Ok(tried.found(first, begun.elapsed(), failures))
}

fn failure(
    scenario: &Scenario,
    violation: &Violation,
    outcome: Outcome,
    shrunk_in: u32,
    file: Option<String>,
) -> ExploredFailure {
    let udp = if scenario.udp { " over UDP" } else { "" };
    let cached = if scenario.cached { ", cached as by Linux" } else { "" };
    let count = scenario.clients.iter().filter(|steps| !steps.is_empty()).count();
    let plural = if count == 1 { "client" } else { "clients" };
    let faults =
        scenario.faults.iter().map(|fault| format!("after {:.3} s {}", fault.at.as_secs_f64(), fault.kind));
    ExploredFailure {
        seed: scenario.seed,
        clients: format!("{count} {plural}, NFS {}{udp}{cached}", scenario.version),
        what: violation.what.clone(),
        at_s: violation.at.as_secs_f64(),
        faults: faults.collect(),
        shrunk_in,
        fingerprint: format!("{:016x}", outcome.fingerprint()),
        file,
        again: None,
        history: outcome.history.into_iter().map(event).collect(),
    }
}

fn event(line: Line) -> ExploredEvent {
    let place = match line.who {
        Who::Client(n) => ExploredPlace::Client(n),
        Who::ToServer(n) => ExploredPlace::ToServer(n),
        Who::ToClient(n) => ExploredPlace::ToClient(n),
        Who::Server => ExploredPlace::Server,
        Who::Fault => ExploredPlace::Fault,
    };
    ExploredEvent { at_s: line.at.as_secs_f64(), place, what: line.what }
}

fn write(path: &Path, scenario: &Scenario) -> Result<()> {
    let place = || format!("cannot write the scenario {}", path.display());
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).with_context(place).map_err(Failure::failed)?;
    }
    let text = serde_json::to_string_pretty(scenario)?;
    output::replace(path, &text).with_context(place).map_err(Failure::failed)
}
