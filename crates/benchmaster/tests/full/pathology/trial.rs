//! A case is run, and its results are diagnosed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::scenario::{Case, Needs};
use crate::limit::output_within;

/// A case takes seconds; this ends one that hangs.
const PATIENCE: Duration = Duration::from_secs(1200);

/// What came of a case.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was found, and in how many runs.
    pub(crate) found: BTreeMap<String, usize>,
    /// What could not be looked for.
    pub(crate) absent: Vec<String>,
    /// Runs that were measured.
    pub(crate) runs: usize,
    /// Runs in which something was found that is neither planted nor true of the study.
    pub(crate) alarmed: usize,
    /// Processors that others on this host used meanwhile, if that is known.
    pub(crate) foreign: Option<f64>,
}

impl Outcome {
    /// Whether what was planted was found.
    pub(crate) fn hit(&self, case: &Case<'_>) -> bool {
        case.scenario.finds.iter().any(|id| self.found.contains_key(id))
    }

    /// Findings of the wrong kind.
    pub(crate) fn wrong<'a>(&'a self, case: &'a Case<'_>) -> impl Iterator<Item = &'a str> {
        self.found.keys().map(|id| &**id).filter(move |id| is_wrong(case, id, self.foreign))
    }
}

/// Processors that others, the hypervisor among them, take on average of a whole case from which on the host is busy: `noisy-host`
/// is told from 5 % of the time of a measured phase on, which may be a part of the case.
const BUSY: f64 = 0.05;
/// What others on the host do is truly found while they do it.
const OF_A_BUSY_HOST: [&str; 9] = [
    "noisy-host",
    "cpu-limit",
    "server-cpu",
    "late-network",
    "unaligned-start",
    "clock-bound",
    "uneven-finish",
    "sampling-cost",
    "tcp-retransmissions",
];

fn is_wrong(case: &Case<'_>, id: &str, foreign: Option<f64>) -> bool {
    let scenario = case.scenario;
    let known = scenario.finds.iter().chain(&scenario.also).any(|known| known == id);
    let busy = foreign.is_some_and(|processors| processors > BUSY);
    !(known || busy && OF_A_BUSY_HOST.contains(&id))
}

/// The parts of `diagnose --json` that are judged.
#[derive(Debug, Deserialize)]
pub(crate) struct Diagnosis {
    pub(crate) findings: Vec<Finding>,
    absent: Vec<Absent>,
    #[serde(default)]
    damage: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Finding {
    pub(crate) id: String,
    pub(crate) confidence: String,
    pub(crate) at: Option<At>,
}

#[derive(Debug, Deserialize)]
struct Absent {
    id: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct At {
    pub(crate) treatments: Vec<AtTreatment>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AtTreatment {
    pub(crate) label: String,
    runs: Vec<RunKey>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct RunKey {
    treatment: u32,
    replicate: u32,
}

/// Runs a case and diagnoses it. Results that `place` has of it already are only diagnosed.
pub(crate) fn trial(case: &Case<'_>, place: &Path) -> Result<Outcome, String> {
    let directory = place.join(case.name());
    let results = directory.join("results");
    if !results.join("done").exists() {
        let _ = fs::remove_dir_all(&directory);
        for made in ["target", "tmp"] {
            fs::create_dir_all(directory.join(made)).map_err(|error| error.to_string())?;
        }
        fs::write(directory.join("case.toml"), case.study()).map_err(|error| error.to_string())?;
        let before = (Instant::now(), busy());
        run(case, &directory)?;
        let ours = children().saturating_sub(before.1.1);
        let others = busy().0.saturating_sub(before.1.0).saturating_sub(ours);
        let foreign = others as f64 / ticks() / before.0.elapsed().as_secs_f64();
        fs::write(results.join("done"), foreign.to_string()).map_err(|error| error.to_string())?;
    }
    let foreign = fs::read_to_string(results.join("done")).ok().and_then(|text| text.parse().ok());
    let diagnosis = diagnose(&results)?;
    if !diagnosis.damage.is_empty() {
        return Err(format!("results are damaged: {}", diagnosis.damage.join("; ")));
    }
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    let mut alarmed: Vec<RunKey> = Vec::new();
    let mut elsewhere = 0;
    for finding in &diagnosis.findings {
        let treatments = finding.at.as_ref().map_or(&[][..], |at| &at.treatments);
        let runs: Vec<RunKey> = treatments.iter().flat_map(|treatment| treatment.runs.clone()).collect();
        *found.entry(finding.id.clone()).or_default() += runs.len().max(1);
        if is_wrong(case, &finding.id, foreign) {
            elsewhere += usize::from(runs.is_empty());
            alarmed.extend(runs);
        }
    }
    alarmed.sort_unstable();
    alarmed.dedup();
    let runs = runs(&results);
    let alarmed = (alarmed.len() + elsewhere).min(runs);
    let absent = diagnosis.absent.into_iter().map(|absent| absent.id).collect();
    Ok(Outcome { found, absent, runs, alarmed, foreign })
}

/// Runs that were measured, also if they failed their checks.
fn runs(results: &Path) -> usize {
    let loaded = benchmaster_store::Store::load(results).unwrap();
    loaded.runs.iter().filter(|run| !run.recordings.is_empty()).count()
}

/// The study is run by this program, or by `BENCHMASTER_PATHOLOGY_RUNNER`.
fn run(case: &Case<'_>, directory: &Path) -> Result<(), String> {
    let _burners = Burners::start(case.scenario.burners);
    let runner = std::env::var_os("BENCHMASTER_PATHOLOGY_RUNNER").map_or_else(crate::program, PathBuf::from);
    let mut command = Command::new(runner);
    command.args(["run", "case.toml", "-q", "-o", "results"]);
    command.args(case.changes().iter().flat_map(|change| ["--set", change]));
    command.current_dir(directory).env("TMPDIR", directory.join("tmp")).stdin(Stdio::null());
    let output = output_within(command, PATIENCE);
    let output = output.map_err(|error| error.to_string())?;
    match output.status.code() {
        // A measurement that failed its own checks is what is looked for.
        Some(0 | 1)
            if directory.join("results/results.db").exists() && runs(&directory.join("results")) > 0 =>
        {
            Ok(())
        }
        _ => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}

pub(crate) fn diagnose(results: &Path) -> Result<Diagnosis, String> {
    let mut command = Command::new(crate::program());
    command.arg("diagnose").arg(results).arg("--json").stdin(Stdio::null());
    let output = output_within(command, PATIENCE);
    let output = output.map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// What cannot be had here, if a case needs it.
pub(crate) fn missing(needs: Needs) -> Option<String> {
    let possible = |arguments: &[&str]| {
        let done = Command::new(crate::program()).args(arguments).stdin(Stdio::null()).output();
        match done {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        }
    };
    match needs {
        Needs::Nothing => None,
        Needs::Namespaces => possible(&["wire", "--delay", "1ms", "--", "true"]),
        Needs::Lab => {
            let name = format!("pathology-{}", std::process::id());
            let up = possible(&["lab", "up", "--name", &name]);
            let down = possible(&["lab", "down", "--name", &name]);
            up.or(down)
        }
    }
}

/// Programs that only compute; they end with this value.
#[derive(Debug)]
struct Burners(Vec<Child>);

impl Burners {
    fn start(count: usize) -> Self {
        let burner = |_| {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
            command.spawn().unwrap()
        };
        Self((0..count).map(burner).collect())
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Clock ticks that all processors were busy, and that children of this process were, so far.
fn busy() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = stat.lines().next().unwrap_or_default();
    let fields: Vec<u64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    let all: u64 = fields.iter().take(8).sum();
    let idle: u64 = fields.iter().skip(3).take(2).sum();
    (all.saturating_sub(idle), children())
}

/// Clock ticks of children that have ended, with theirs.
fn children() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    // cutime and cstime, the 16th and 17th of all.
    fields.skip(13).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
}

fn ticks() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}
