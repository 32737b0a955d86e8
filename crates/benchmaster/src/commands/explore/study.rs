//! `explore STUDY`: the Linux client and server of a study in the lab, on virtual time, under faults drawn from seeds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use benchmaster_explore::run::{Line, Who};
use benchmaster_explore::shrink::shrink_trial;
use benchmaster_explore::study::{Ground, Trial};
use benchmaster_explore::{Outcome, Violation};
use benchmaster_lab::FileSystem;
use benchmaster_lab::lab::kernel_warnings;
use benchmaster_lab::virtual_time::BootError;
use benchmaster_record::recording::{NO_FILE, Recording, TraceRecord};
use benchmaster_record::results::RunRecord;
use benchmaster_report::pages::{Exploration, ExploredFailure};
use benchmaster_runner::{FaultLine, FaultLineKind};
use benchmaster_store::Store;
use benchmaster_store::trace::{self, TraceFacts};
use benchmaster_study::plan::Plan;

use super::locks::{Holders, exclusive};
use super::{Tried, event, fault, locked, seeds, write};
use crate::cli::{ChangeArgs, ExploreArgs};
use crate::commands::run::stop_flag;
use crate::commands::virtual_time::{self, Guest, HISTORY};
use crate::commands::{load_study, parse, plan_of};
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Seeds of a study that are tried unless said otherwise.
const SEEDS: u64 = 100;
/// Trials to make one smaller that fails.
const SHRINKING: u32 = 30;
/// Trials that fail which are made smaller.
const SHOWN: usize = 3;

/// Tries seeds of a study.
pub(super) fn explore(path: &Path, args: &ExploreArgs) -> Result<Exploration> {
    let subject = Subject::of_file(path, &args.change, args.faults)?;
    let stop = stop_flag()?;
    let begun = Instant::now();
    let tried: Mutex<Tried<Trial>> = Mutex::default();
    let seen = Mutex::new(Vec::new());
    seeds(args, args.seeds(SEEDS), |seed| {
        let trial = Trial::draw(seed, &subject.text_of(seed)?, &subject.ground);
        let Ran { outcome, operations } = subject.run(&trial, &stop)?;
        if args.history {
            locked(&seen).push(subject.show(&trial, outcome.clone(), None));
        }
        locked(&tried).add(trial.clone(), operations, trial.faults.len(), outcome.violation);
        Ok(())
    })?;
    let elapsed = begun.elapsed();
    let mut tried = tried.into_inner().unwrap_or_else(PoisonError::into_inner);
    tried.failures.sort_by_key(|(trial, _)| trial.seed);
    let mut failures = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    failures.sort_by_key(|failure| failure.seed);
    if !args.history {
        for (trial, violation) in tried.failures.drain(..).take(SHOWN) {
            failures.push(subject.smaller(&trial, &violation, path, args, &stop)?);
        }
    }
    Ok(Exploration { study: Some(subject.name), ..tried.found(args.first(), elapsed, failures) })
}

/// Tries a trial that was written.
pub(super) fn again(trial: &Trial, file: &Path) -> Result<Exploration> {
    let subject = Subject::of_trial(trial)?;
    trial.check(subject.ground.clients).map_err(Failure::wrong_input)?;
    let begun = Instant::now();
    let Ran { outcome, operations } = subject.run(trial, &*stop_flag()?)?;
    let mut tried = Tried::default();
    tried.add(trial.clone(), operations, trial.faults.len(), outcome.violation.clone());
    let failures = vec![subject.show(trial, outcome, Some(file.display().to_string()))];
    Ok(Exploration { study: Some(subject.name), ..tried.found(trial.seed, begun.elapsed(), failures) })
}

/// What trials of a study are tried with.
struct Subject {
    guest: Guest,
    ground: Ground,
    /// Groups whose locks are exclusive, by workload.
    exclusive: BTreeMap<String, BTreeSet<String>>,
    /// The study's text, as changed by the command line.
    text: String,
    name: String,
}

/// What became of a trial.
struct Ran {
    outcome: Outcome,
    /// Calls of clients.
    operations: u64,
}

impl Subject {
    fn of_file(path: &Path, change: &ChangeArgs, faults: u8) -> Result<Self> {
        Self::of(&plan_of(&load_study(path, change)?)?, faults)
    }

    fn of_trial(trial: &Trial) -> Result<Self> {
        Self::of(&plan_of(&parse("the trial", &trial.study, &ChangeArgs::default())?)?, 1)
    }

    fn of(plan: &Plan, faults: u8) -> Result<Self> {
        if !virtual_time::is_wanted(plan)? {
            return Err(Failure::wrong(
                "only studies on virtual time repeat exactly: write `time = \"virtual\"` in `[lab]`, or add `--set lab.time=virtual`",
            ));
        }
        let mut treatments = plan.all_treatments();
        let (Some(treatment), None) = (treatments.next(), treatments.next()) else {
            return Err(Failure::wrong(
                "a study is explored with one treatment, and this one has several: choose levels with `--set`, and try one after \
                 the other",
            ));
        };
        let settings = &treatment.settings;
        let clients = u8::try_from(settings.clients()).ok().filter(|clients| *clients <= 100);
        let Some(clients) = clients else {
            return Err(Failure::wrong("a study is explored with up to 100 clients: lower `clients.count`"));
        };
        let server =
            settings.lab.as_ref().map(benchmaster_study::settings::LabSettings::knfsd).unwrap_or_default();
        let lengths = treatment.workloads.iter().map(|(_, workload)| workload.until.duration);
        let Some(busy) = lengths.flatten().map(|length| length.0).max() else {
            return Err(Failure::wrong("faults strike at times: give a workload of the study a `duration`"));
        };
        let disk = server.file_system != FileSystem::Tmpfs;
        let ground = Ground { clients, busy, lease: server.lease, disk, faults };
        let exclusive =
            treatment.workloads.iter().map(|(name, workload)| (name.clone(), exclusive(workload))).collect();
        let guest = Guest::of(plan, &mut |text| output::note(text))?;
        Ok(Self { guest, ground, exclusive, text: plan.study.text.clone(), name: plan.study.name.clone() })
    }

    /// The study's text for a seed, from which also comes what its workloads draw.
    fn text_of(&self, seed: u64) -> Result<String> {
        // Whole numbers of a study file are signed.
        let set = vec![format!("study.seed={}", seed & i64::MAX.cast_unsigned())];
        Ok(plan_of(&parse("the study", &self.text, &ChangeArgs { set, ..ChangeArgs::default() })?)?
            .study
            .text)
    }

    /// Makes a trial that fails as small as possible, writes it and tries it once more.
    fn smaller(
        &self,
        trial: &Trial,
        violation: &Violation,
        path: &Path,
        args: &ExploreArgs,
        stop: &AtomicBool,
    ) -> Result<ExploredFailure> {
        let seed = trial.seed;
        let mut fails = |trial: &Trial| self.run(trial, stop).ok()?.outcome.violation;
        let shrunk = shrink_trial(trial, violation, SHRINKING, &mut fails);
        let file = args.keep.join(format!("{}-{seed}.json", self.name));
        write(&file, &shrunk.scenario).map_err(Failure::of_a_place_given)?;
        let outcome = self.run(&shrunk.scenario, stop)?.outcome;
        let mut again = format!(
            "benchmaster explore {} --seeds 1 --first {seed} --faults {}",
            path.display(),
            args.faults
        );
        for argument in args.change.arguments() {
            again += &format!(" {argument}");
        }
        Ok(ExploredFailure {
            shrunk_in: shrunk.tried,
            again: Some(again),
            ..self.show(&shrunk.scenario, outcome, Some(file.display().to_string()))
        })
    }

    fn show(&self, trial: &Trial, outcome: Outcome, file: Option<String>) -> ExploredFailure {
        let at = outcome.history.last().map_or(Duration::ZERO, |line| line.at);
        let kept = || Violation { what: "all promises were kept".into(), at };
        let seen = outcome.violation.clone().unwrap_or_else(kept);
        let hasty = if trial.hasty { ", grace periods ended at once" } else { "" };
        let clients = match self.ground.clients {
            1 => "1 client".to_owned(),
            count => format!("{count} clients"),
        };
        ExploredFailure {
            seed: trial.seed,
            clients: format!("{clients} of Linux{hasty}"),
            what: seen.what,
            at_s: seen.at.as_secs_f64(),
            faults: trial.faults.iter().map(fault).collect(),
            shrunk_in: 0,
            fingerprint: format!("{:016x}", outcome.fingerprint()),
            file,
            again: None,
            history: outcome.history.into_iter().map(event).collect(),
        }
    }

    /// Tries a trial.
    fn run(&self, trial: &Trial, stop: &AtomicBool) -> Result<Ran> {
        let (share, ended) = self.guest.run(&trial.study, Some(trial), stop)?;
        let told = told(&share.path().join(HISTORY))?;
        if let Some(line) = told.iter().find(|line| line.kind == FaultLineKind::Failed) {
            return Err(Failure::fault(format!(
                "seed {}: a fault could not be brought about: {}",
                trial.seed, line.what
            )));
        }
        let console = fs::read(share.path().join("console.log")).unwrap_or_default();
        let warnings = kernel_warnings(&String::from_utf8_lossy(&console));
        let results = share.path().join("results");
        let run = if Store::exists(&results) { Store::load(&results)?.runs.pop() } else { None };
        let begun =
            run.as_ref().and_then(|run| run.recordings.first()).map(|recording| recording.started_unix_ns);
        let begun = begun.or(told.first().map(|line| line.unix_ns - first_fault(trial))).unwrap_or_default();
        let mut history: Vec<Line> = told.iter().map(|line| line_of(line, begun)).collect();
        let mut operations = 0;
        let excuse = trial.excuse(self.ground.lease);
        let mut locked_twice = None;
        for (recording, path) in run.iter().flat_map(|run| traces(run, &results)) {
            let (facts, records) = calls(&path)?;
            operations += records.len() as u64;
            let offset =
                Duration::from_nanos(u64::try_from(recording.started_unix_ns - begun).unwrap_or_default());
            history.extend(records.iter().map(|record| call(record, &facts, offset)));
            if let Some(groups) = self.exclusive.get(&recording.workload) {
                let holders = Holders::of(&facts, &records, groups);
                // Where a lease ran out another may be given the lock, and who had it learns that when it writes.
                let wrong = match excuse {
                    None => holders.two_at_a_time(),
                    Some(_) => holders.written_after_loss(),
                };
                locked_twice = locked_twice.or(wrong.map(|(at, what)| Violation { what, at: at + offset }));
            }
        }
        // The sort keeps what happens at the same instant in the order of the file.
        history.sort_by_key(|line| line.at);
        let at = history.last().map_or(Duration::ZERO, |line| line.at);
        let violation = |what: String, at| Some(Violation { what, at });
        let stuck = told.iter().find(|line| line.kind == FaultLineKind::Stuck);
        let violation = match (stuck, ended, &run) {
            (Some(stuck), ..) => violation(format!("it does not end: {}", stuck.what), at),
            (None, Err(BootError::Stopped), _) => {
                return Err(Failure::new(Status::Interrupted, BootError::Stopped.into()));
            }
            (None, Err(error @ (BootError::Ended { .. } | BootError::TooLong { .. })), _) => {
                violation(error.to_string(), at)
            }
            (None, Err(error), _) => return Err(Failure::failed(error)),
            (None, Ok(ended), None) => {
                let said = ended.messages.trim();
                return Err(Failure::fault(format!("seed {}: the study did not run: {said}", trial.seed)));
            }
            (None, Ok(_), Some(run)) => locked_twice.or_else(|| wrong(run, excuse, &warnings, at)),
        };
        Ok(Ran { outcome: Outcome { history, violation }, operations })
    }
}

fn first_fault(trial: &Trial) -> i64 {
    let at = trial.faults.first().map(|fault| fault.at).unwrap_or_default();
    i64::try_from(at.as_nanos()).unwrap_or_default()
}

/// What a guest told.
fn told(path: &Path) -> Result<Vec<FaultLine>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.lines().map(serde_json::from_str).collect::<std::result::Result<_, _>>()?),
        // It ended before anything went wrong.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

fn line_of(line: &FaultLine, begun: i64) -> Line {
    let who = match line.kind {
        FaultLineKind::Fault => Who::Fault,
        FaultLineKind::Server | FaultLineKind::Stuck | FaultLineKind::Failed => Who::Server,
    };
    let at = u64::try_from(line.unix_ns - begun).unwrap_or_default();
    Line { at: Duration::from_nanos(at), who, what: line.what.clone() }
}

fn traces<'a>(
    run: &'a RunRecord,
    results: &'a Path,
) -> impl Iterator<Item = (&'a Recording, std::path::PathBuf)> {
    run.recordings
        .iter()
        .filter_map(|recording| Some((recording, results.join(run.traces.get(&recording.workload)?))))
}

/// The calls of a trace, in the order of their starts.
fn calls(path: &Path) -> Result<(TraceFacts, Vec<TraceRecord>)> {
    let mut records: Vec<TraceRecord> = Vec::new();
    let info = trace::read(path, |batch| records.extend_from_slice(batch))?;
    // Which worker's record comes first in the file is no part of the history.
    records.sort_by_key(|record| (record.start_ns, record.worker, record.series));
    Ok((info.facts, records))
}

/// A call as a line of the history.
fn call(record: &TraceRecord, facts: &TraceFacts, offset: Duration) -> Line {
    let worker = facts.workers.get(record.worker as usize);
    let client = worker.map_or(0, |worker| u8::try_from(worker.client).unwrap_or(u8::MAX));
    let series = facts.series.get(usize::from(record.series));
    let name = series.map_or("call", |series| series.label.as_str());
    let group = worker.map_or("worker", |worker| worker.group.as_str());
    let mut what = format!("{group} {}: {name}", worker.map_or(0, |worker| worker.worker));
    if record.file != NO_FILE {
        what += &format!(" file {}", record.file);
    }
    if record.offset != u64::MAX {
        what += &format!(" at {}", record.offset);
    }
    if record.error != 0 {
        let reason = std::io::Error::from_raw_os_error(record.error.into());
        what += &format!(": {reason}");
    }
    what += &format!(", took {:.6} s", record.latency_ns as f64 / 1e9);
    let at = offset + Duration::from_nanos(record.start_ns + record.latency_ns);
    Line { at, who: Who::Client(client), what }
}

/// What is wrong first with a run.
fn wrong(run: &RunRecord, excuse: Option<&str>, warnings: &[String], at: Duration) -> Option<Violation> {
    let violation = |what: String| Some(Violation { what, at });
    for recording in &run.recordings {
        if let Some(witness) = recording.witness.as_ref().filter(|witness| witness.missing() > 0) {
            let mut what = format!(
                "{} of {} acknowledged blocks and names are not there: {} lost, {} old, {} torn",
                witness.missing(),
                witness.acknowledged(),
                witness.lost,
                witness.old,
                witness.torn
            );
            if let Some(broken) = witness.broken.first() {
                let offset = broken.offset.map(|offset| format!(" at {offset}")).unwrap_or_default();
                what += &format!(
                    "; {}{offset}, promised by {} after {:.6} s: {}",
                    broken.file,
                    broken.promise,
                    broken.at_ns as f64 / 1e9,
                    broken.found
                );
            }
            return violation(what);
        }
    }
    if excuse.is_none() {
        // After an error of `fsync` the file may have what it had before.
        if let Some(corruption) = run.recordings.iter().find_map(|recording| recording.corruption.as_ref()) {
            return violation(format!("wrong data: {corruption}"));
        }
        if let Some(failure) = &run.failure {
            return violation(format!("the run failed, for which no fault is an excuse: {failure}"));
        }
        if let Some(error) = run.recordings.iter().flat_map(|recording| &recording.error_details).next() {
            return violation(format!("an error for which no fault is an excuse: {error}"));
        }
    }
    let warning = warnings.iter().find(|line| !line.contains("not responding"))?;
    violation(format!("the kernel warns: {warning}"))
}
