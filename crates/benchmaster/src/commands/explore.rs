//! `explore`: client and server under faults drawn from seeds.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use benchmaster_explore::run::{Line, Who};
use benchmaster_explore::scenario::{Fault, Space};
use benchmaster_explore::shrink::shrink;
use benchmaster_explore::{Outcome, Scenario, Violation, run};
use benchmaster_report::pages::{self, Exploration, ExploredEvent, ExploredFailure, ExploredPlace};
use serde::Serialize;

use crate::cli::ExploreArgs;
use crate::commands::results::write_page;
use crate::failure::{Failure, Result, Status};
use crate::output;

mod locks;
mod study;

/// Seeds that are tried unless said otherwise.
const SEEDS: u64 = 1000;
/// Scenarios that fail which are made smaller and shown; the others are counted.
const SHOWN: usize = 5;
/// Scenarios tried to make one smaller.
const SHRINKING: u32 = 400;

/// What was tried so far. `S` is what is drawn from a seed.
struct Tried<S> {
    scenarios: u64,
    failed: u64,
    operations: u64,
    faults: u64,
    /// Those that failed.
    failures: Vec<(S, Violation)>,
}

pub(crate) fn explore(args: &ExploreArgs) -> Result<Status> {
    let found = match &args.file {
        Some(file) if file.extension().is_some_and(|extension| extension == "toml") => {
            study::explore(file, args)?
        }
        Some(file) => again(file, args)?,
        None if !args.change.is_empty() => {
            return Err(Failure::wrong("there is no study to be changed: name its file"));
        }
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

/// Calls `each` with seeds on all processors, until all or the time are over.
fn seeds(args: &ExploreArgs, count: u64, each: impl Fn(u64) -> Result<()> + Sync) -> Result<()> {
    let end = args.seconds.map(|time| Instant::now() + time.0);
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let error: Mutex<Option<Failure>> = Mutex::new(None);
    let jobs =
        args.jobs.map_or_else(|| std::thread::available_parallelism().map_or(1, Into::into), usize::from);
    std::thread::scope(|threads| {
        for _ in 0..jobs {
            threads.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let over = end.map_or(number >= count, |end| Instant::now() >= end);
                    if over {
                        return;
                    }
                    if let Err(failure) = each(args.first().wrapping_add(number)) {
                        stop.store(true, Ordering::Relaxed);
                        locked(&error).get_or_insert(failure);
                    }
                }
            });
        }
    });
    error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries seeds of the embedded client and server.
fn search(args: &ExploreArgs) -> Result<Exploration> {
    let space = space(args);
    let begun = Instant::now();
    let tried = Mutex::new(Tried::default());
    seeds(args, args.seeds(SEEDS), |seed| {
        let scenario = Scenario::draw(seed, &space);
        let outcome = run(&scenario).map_err(Failure::failed)?;
        locked(&tried).add_scenario(scenario, outcome);
        Ok(())
    })?;
    let mut tried = tried.into_inner().unwrap_or_else(PoisonError::into_inner);
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
    Ok(tried.found(args.first(), elapsed, failures))
}

impl<S> Default for Tried<S> {
    fn default() -> Self {
        Self { scenarios: 0, failed: 0, operations: 0, faults: 0, failures: Vec::new() }
    }
}

impl Tried<Scenario> {
    fn add_scenario(&mut self, scenario: Scenario, outcome: Outcome) {
        let (operations, faults) = (scenario.operations() as u64, scenario.faults.len());
        self.add(scenario, operations, faults, outcome.violation);
    }
}

impl<S> Tried<S> {
    fn add(&mut self, scenario: S, operations: u64, faults: usize, violation: Option<Violation>) {
        self.scenarios += 1;
        self.operations += operations;
        self.faults += faults as u64;
        if let Some(violation) = violation {
            self.failed += 1;
            self.failures.push((scenario, violation));
        }
    }

    fn found(&self, first_seed: u64, elapsed: Duration, failures: Vec<ExploredFailure>) -> Exploration {
        Exploration {
            study: None,
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
    let first = args.first();
    let scenarios = (0..args.seeds(SEEDS)).map(|number| Scenario::draw(first.wrapping_add(number), &space));
    show(first, scenarios, None)
}

/// Tries a scenario or a trial of a study that was written.
fn again(file: &Path, args: &ExploreArgs) -> Result<Exploration> {
    let searches = [
        ("seeds", args.seeds.is_some()),
        ("first", args.first.is_some()),
        ("seconds", args.seconds.is_some()),
    ];
    let change = ("set", !args.change.is_empty());
    if let Some((flag, _)) = searches.into_iter().chain([change]).find(|(_, given)| *given) {
        let file = file.display();
        return Err(Failure::wrong(format!(
            "`{file}` is one scenario, and `--{flag}` is for those that are drawn: leave it out"
        )));
    }
    let place = || format!("cannot read the scenario {}", file.display());
    let text = std::fs::read_to_string(file).with_context(place).map_err(Failure::wrong_input)?;
    let value: serde_json::Value =
        serde_json::from_str(&text).with_context(place).map_err(Failure::wrong_input)?;
    if value.get("study").is_some() {
        let trial = serde_json::from_value(value).with_context(place).map_err(Failure::wrong_input)?;
        return study::again(&trial, file);
    }
    let scenario: Scenario =
        serde_json::from_value(value).with_context(place).map_err(Failure::wrong_input)?;
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
        tried.add_scenario(scenario, outcome);
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
    ExploredFailure {
        seed: scenario.seed,
        clients: format!("{count} {plural}, NFS {}{udp}{cached}", scenario.version),
        what: violation.what.clone(),
        at_s: violation.at.as_secs_f64(),
        faults: scenario.faults.iter().map(fault).collect(),
        shrunk_in,
        fingerprint: format!("{:016x}", outcome.fingerprint()),
        file,
        again: None,
        history: outcome.history.into_iter().map(event).collect(),
    }
}

fn fault(fault: &Fault) -> String {
    format!("after {:.3} s {}", fault.at.as_secs_f64(), fault.kind)
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

fn write(path: &Path, scenario: &impl Serialize) -> Result<()> {
    let place = || format!("cannot write the scenario {}", path.display());
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).with_context(place).map_err(Failure::failed)?;
    }
    let text = serde_json::to_string_pretty(scenario)?;
    output::replace(path, &text).with_context(place).map_err(Failure::failed)
}
