//! Progress on standard error: a bar with the time left on a terminal, else one line per run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use benchmaster_record::live::Live;
use benchmaster_record::results::{RunRecord, Severity, TreatmentRecord};
use benchmaster_runner::{ClientProgress, ClientState, RunEvent};
use benchmaster_study::plan::{Estimate, Plan};
use benchmaster_telemetry::Environment;
use benchmaster_units::format::{self, rounded};
use benchmaster_watch::study::precision;
use benchmaster_workload::execute::Progress;

use crate::bar::Bar;
use crate::output;

/// Tells the user how far a study is.
pub(crate) struct Reporter {
    bar: Option<Bar>,
    quiet: bool,
    announces: bool,
    study: String,
    directory: PathBuf,
    /// What goes on with the study if it is stopped.
    again: String,
    primary: String,
    estimate: Estimate,
    /// Runs planned as far as it is known: more may be added while intervals are not tight.
    planned: u64,
    /// Runs stored by all sessions; `None` before the results directory is open.
    stored: Option<u64>,
    current: String,
}

impl Reporter {
    /// `announces`: whether the study begins, and not a further stage of it.
    pub(crate) fn new(plan: &Plan, directory: &Path, again: &str, quiet: bool, announces: bool) -> Self {
        let estimate = plan.estimate();
        let bar = if quiet { None } else { Bar::on_terminal(estimate.runs_min) };
        Self {
            bar,
            quiet,
            announces,
            study: plan.study.name.clone(),
            directory: directory.into(),
            again: again.into(),
            primary: plan.study.primary_response.clone(),
            planned: estimate.runs_min,
            estimate,
            stored: None,
            current: String::new(),
        }
    }

    /// What happens, and the state of the study then.
    pub(crate) fn take(&mut self, event: &RunEvent<'_>, live: &Live) {
        match event {
            RunEvent::AlreadyComplete { done } => {
                let runs = format::plural(*done as usize, "run");
                self.line(&format!("{}: complete with {runs}; nothing left to measure", self.study));
            }
            RunEvent::Begun { done, interruptions, environments, scratch } => {
                self.begun(*done, *interruptions);
                self.show(live, Vec::new());
                if self.announces {
                    self.place(environments, *scratch);
                }
            }
            RunEvent::RunBegins { treatment, replicate, .. } => {
                self.planned = live.runs.total;
                self.current = format!("{}, replicate {}", treatment.label, replicate + 1);
                self.show(live, vec![self.current.clone()]);
            }
            RunEvent::Waiting { block, until } => {
                let text =
                    format!("waits until {} for the block `{block}`", until.strftime("%Y-%m-%d %H:%M"));
                self.show(live, vec![text.clone()]);
                self.line(&text);
            }
            RunEvent::Note(text) => self.line(text),
            RunEvent::Retry { reason } => self.line(&format!("{}: tried again: {reason}", self.current)),
            RunEvent::Progress { workload, progress, clients } => {
                if self.bar.is_some() {
                    self.show(live, self.lines(workload, progress, clients, live));
                }
            }
            RunEvent::RunStored { run, treatment } => self.run_stored(run, treatment, live),
        }
    }

    pub(crate) fn finish(&mut self) {
        if let Some(bar) = &mut self.bar {
            bar.erase();
        }
    }

    /// What is there although the study stopped, once it had begun.
    pub(crate) fn stored(&self) -> Option<String> {
        let directory = self.directory.display();
        Some(match self.stored? {
            0 => format!("no run was finished; {} begins again in `{directory}`", self.again),
            n => {
                let runs = format::plural(n as usize, "finished run");
                format!("{runs} kept in `{directory}`; {} continues from there", self.again)
            }
        })
    }

    /// Shows how far the study is, and what goes on.
    fn show(&mut self, live: &Live, below: Vec<String>) {
        let Some(bar) = &mut self.bar else { return };
        (bar.position, bar.length, bar.below) = (live.runs.stored, live.runs.total, below);
        let left = live.runs.seconds_left.map(|seconds| format!(", {}", left(seconds)));
        bar.beside = format!("{}/{} runs{}", bar.position, bar.length, left.unwrap_or_default());
        bar.show();
    }

    fn line(&mut self, text: &str) {
        match &mut self.bar {
            Some(bar) => bar.note(text),
            None if !self.quiet => output::note(text),
            None => {}
        }
    }

    fn begun(&mut self, done: u32, interruptions: usize) {
        self.stored = Some(done.into());
        self.planned = self.planned.max(done.into());
        let time = &self.estimate.time;
        let left = self.planned.saturating_sub(done.into()) as f64 / self.planned.max(1) as f64;
        let rest = time.all * left;
        if self.announces {
            let runs = if done > 0 || interruptions > 0 {
                format!("resuming after {done} of {}, interrupted {}", self.of_runs(), times(interruptions))
            } else {
                self.of_runs()
            };
            let unknown = match &time.unknown[..] {
                [] => String::new(),
                names => format!(" without {}", names.join(", ")),
            };
            self.line(&format!("{}: {runs}; about {rest}{unknown}", self.study));
        }
    }

    fn place(&mut self, environments: &BTreeMap<String, Environment>, scratch: Option<&Path>) {
        for target in environments.values().filter_map(|environment| environment.target.as_ref()) {
            let temporary = if scratch.is_some_and(|path| path == Path::new(&target.path)) {
                ", a temporary directory"
            } else {
                ""
            };
            self.line(&format!(
                "measuring {}{temporary}, on {} ({})",
                target.path, target.file_system, target.source
            ));
        }
        self.line(&format!("results in {}", self.directory.display()));
    }

    /// Runs planned: `20`, or `20+` when there will be more of treatments whose interval is not tight.
    fn of(&self) -> String {
        let more = if self.planned < self.estimate.runs_max { "+" } else { "" };
        format!("{}{more}", self.planned)
    }

    /// The same with its noun.
    fn of_runs(&self) -> String {
        match self.of() {
            one if one == "1" => "1 run".into(),
            of => format!("{of} runs"),
        }
    }

    /// The run in flight, its rates at this moment, and how certain its treatment is so far.
    fn lines(
        &self,
        workload: &str,
        progress: &Progress,
        clients: &[ClientProgress],
        live: &Live,
    ) -> Vec<String> {
        let elapsed = progress.elapsed.as_secs_f64();
        let time = match progress.length.map(|length| length.as_secs_f64()) {
            Some(length) if length < 10.0 => format!("{elapsed:.1} of {length:.1} s"),
            Some(length) => format!("{elapsed:.0} of {length:.0} s"),
            None => format!("{elapsed:.0} s"),
        };
        let run = format!("{}: {workload}, {} {time}", self.current, progress.phase);
        let done = || amount(progress.done.bytes, progress.done.operations);
        let now = moment(live).or_else(|| Some(format!("{} so far", done()?)));
        let errors = format!("{} so far", format::plural(live.errors as usize, "error"));
        let now = now.map_or_else(|| errors.clone(), |now| format!("{now}, {errors}"));
        let precision = live.run.as_ref().and_then(|run| precision(&run.precision));
        [run, format!("live: {now}")].into_iter().chain(slowest(clients)).chain(precision).collect()
    }

    fn run_stored(&mut self, run: &RunRecord, treatment: &TreatmentRecord, live: &Live) {
        self.stored = self.stored.map(|stored| stored + 1);
        let position = u64::from(run.position) + 1;
        self.show(live, Vec::new());
        let rest = live.runs.seconds_left.unwrap_or_default();
        let head =
            format!("[{position}/{}] {}, replicate {}", self.of(), treatment.label, run.key.replicate + 1);
        let time = if position < self.planned { format!(" ({})", left(rest)) } else { String::new() };
        self.line(&format!("{head}: {}{time}", self.result(run)));
    }

    /// The primary response of a run and reasons to distrust it, in a few words.
    fn result(&self, run: &RunRecord) -> String {
        if let Some(failure) = &run.failure {
            return format!("FAILED: {failure}");
        }
        let value = match run.responses.iter().find(|response| response.name == self.primary) {
            Some(response) => {
                let number = rounded(response.value, None, response.unit, None);
                format!("{} {}", self.primary, number.text(true))
            }
            None => format!("{} has no value", self.primary),
        };
        let worst = run.checks.iter().map(|check| check.severity).max();
        // One check may speak against several workloads of the run.
        let ids = |severity| {
            let checks = run.checks.iter().filter(|check| check.severity == severity);
            let mut once = BTreeSet::new();
            let ids = checks.map(|check| check.kind.name()).filter(|id| once.insert(*id));
            ids.collect::<Vec<_>>().join(", ")
        };
        match worst {
            Some(severity @ Severity::Invalid) => format!("{value}; INVALID ({})", ids(severity)),
            Some(severity @ Severity::Warning) => format!("{value}; warnings: {}", ids(severity)),
            _ => value,
        }
    }
}

/// Rates of the last second, where something is measured. They are of this moment, not results, and have no intervals.
fn moment(live: &Live) -> Option<String> {
    let rates = live.rates.as_ref()?;
    let bytes = match rates.bytes_per_s {
        bytes if bytes > 0.0 => format!(", {}", format::rate(bytes)),
        _ => String::new(),
    };
    let latency =
        rates.mean_latency_s.map(|seconds| format!(", mean latency {}", format::time(seconds * 1e9)));
    let operations = format::short_before_unit(rates.operations_per_s);
    Some(format!("{operations}ops/s{bytes}{}", latency.unwrap_or_default()))
}

/// The process of clients that has done least, of more than one: all others wait for it.
fn slowest(clients: &[ClientProgress]) -> Option<String> {
    let working = |client: &&ClientProgress| client.state == ClientState::Working;
    let least =
        clients.iter().filter(working).min_by_key(|client| (client.done.bytes, client.done.operations));
    let client = least.filter(|_| clients.len() > 1)?;
    let done = amount(client.done.bytes, client.done.operations).unwrap_or_else(|| "0 operations".into());
    Some(format!("{} clients, slowest {} with {done}", clients.len(), client.name))
}

/// Bytes, or operations where no bytes were moved.
fn amount(bytes: u64, operations: u64) -> Option<String> {
    match (bytes, operations) {
        (0, 0) => None,
        (0, operations) => Some(format!("{} operations", format::count(operations))),
        (bytes, _) => Some(format::bytes(bytes as f64)),
    }
}

fn left(seconds: f64) -> String {
    format!("about {} left", length(seconds))
}

fn length(seconds: f64) -> String {
    if seconds < 1.0 { format!("{seconds:.1} s") } else { format::duration(seconds) }
}

fn times(n: usize) -> String {
    match n {
        1 => "once".into(),
        n => format!("{n} times"),
    }
}
