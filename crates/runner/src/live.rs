//! The state of the running study for those who look on, kept in its results directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use benchmaster_analysis::counts;
use benchmaster_analysis::headline::Counts;
use benchmaster_record::live::{Client, ClientState, Live, Precision, Run, Session};
use benchmaster_record::phase::Phase;
use benchmaster_record::results::{Replication, RunRecord, StudyRecord, StudyResults, WorkloadRecord};
use benchmaster_stats::interval::mean_interval;
use benchmaster_store::live;
use benchmaster_study::plan::Plan;
use benchmaster_workload::execute::Progress;

use self::meter::Meter;
use super::{Outcome, RunError, RunEvent};

mod meter;

/// Time between two states.
const EVERY: Duration = Duration::from_millis(500);

/// Keeps the state, and writes it about twice a second and at every change of a run.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) live: Live,
    directory: PathBuf,
    written: Instant,
    meter: Meter,
    began: Instant,
    /// Seconds that a run takes, and that were left at an instant.
    each: f64,
    left: (Instant, f64),
    stored_before: u64,
    study: StudyRecord,
    /// The treatment of the run in flight.
    treatment: u32,
    /// Values of the response that stands for a workload, by its name and the treatment, of the runs that count.
    values: BTreeMap<(String, u32), Vec<f64>>,
    /// Failed operations of runs of this session, and of workloads of the run in flight, that are over.
    errors: (u64, u64),
}

impl Watched {
    pub(super) fn begin(plan: &Plan, directory: &Path, earlier: &StudyResults) -> Self {
        let stored = earlier.runs.len() as u64;
        let failed = earlier.runs.iter().filter(|run| run.failure.is_some()).count() as u64;
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut live = live::begin(plan.study.name.clone(), host);
        let estimate = plan.estimate();
        live.runs.total = estimate.runs_min.max(stored);
        live.runs.open = estimate.runs_max > estimate.runs_min;
        (live.runs.stored, live.runs.failed) = (stored, failed);
        let each = 0.5 * (estimate.time.all.low + estimate.time.all.high) / live.runs.total.max(1) as f64;
        let now = Instant::now();
        let mut watched = Self {
            live,
            directory: directory.into(),
            written: now,
            meter: Meter::default(),
            began: now,
            each,
            left: (now, 0.0),
            stored_before: stored,
            study: plan.study.clone(),
            treatment: 0,
            values: BTreeMap::new(),
            errors: (0, 0),
        };
        earlier.runs.iter().for_each(|run| watched.count(run));
        watched.leave(watched.live.runs.total - stored);
        watched.write();
        watched
    }

    /// Takes note of what happens.
    pub(super) fn take(&mut self, event: &RunEvent<'_>) {
        let (then, left) = self.left;
        self.live.runs.seconds_left = Some((left - then.elapsed().as_secs_f64()).max(0.0));
        match event {
            RunEvent::AlreadyComplete { .. } | RunEvent::Begun { .. } => {}
            RunEvent::RunBegins { position, treatment, replicate } => {
                self.live.runs.position = u64::from(*position) + 1;
                self.live.runs.total = self.live.runs.total.max(self.live.runs.position);
                self.leave(self.live.runs.total - u64::from(*position));
                self.treatment = treatment.index;
                let primary = self.study.primary_response.split('.').next().unwrap_or_default();
                self.live.run = Some(Run {
                    treatment: treatment.label.clone(),
                    replicate: replicate + 1,
                    phase: Phase::SetUp,
                    precision: self.precision(primary),
                    ..Run::default()
                });
                self.live.rates = None;
                self.write();
            }
            RunEvent::Waiting { block, until } => {
                self.message(format!(
                    "waits until {} for the block `{block}`",
                    until.strftime("%Y-%m-%d %H:%M")
                ));
                self.write();
            }
            RunEvent::Note(text) => self.message(*text),
            RunEvent::Retry { reason } => {
                self.message(format!("tried again: {reason}"));
                self.write();
            }
            RunEvent::Progress { workload, progress, clients } => {
                self.progress(workload, progress);
                let measures = progress.phase == Phase::Measure;
                self.live.rates =
                    measures.then(|| self.meter.rates(progress.elapsed, progress.done)).flatten();
                let errors = self.errors.0 + self.errors.1 + progress.done.errors;
                // Counters begin again with each phase.
                self.live.errors = self.live.errors.max(errors);
                // A run that takes longer than others does not end before its phase.
                if let Some(length) = progress.length {
                    let rest = length.saturating_sub(progress.elapsed).as_secs_f64();
                    self.live.runs.seconds_left = self.live.runs.seconds_left.map(|left| left.max(rest));
                }
                let client = |client: &super::ClientProgress| Client {
                    name: client.name.clone(),
                    host: client.host.clone(),
                    state: match (client.state, progress.phase) {
                        (super::ClientState::Working, Phase::Prepare) => ClientState::Preparing,
                        (super::ClientState::Working, _) => ClientState::Running,
                        (super::ClientState::Waiting, _) => ClientState::Ready,
                        (super::ClientState::Done, _) => ClientState::Done,
                        (super::ClientState::Failed, _) => ClientState::Failed,
                    },
                    operations: client.done.operations,
                    bytes: client.done.bytes,
                    errors: client.done.errors,
                    latency_ns: client.done.latency_ns,
                    ..Client::default()
                };
                if self.written.elapsed() >= EVERY {
                    self.live.clients = clients.iter().map(client).collect();
                    self.write();
                }
            }
            RunEvent::RunStored { run, .. } => {
                self.live.runs.stored += 1;
                self.live.runs.failed += u64::from(run.failure.is_some());
                let done = self.live.runs.stored - self.stored_before;
                self.each = self.began.elapsed().as_secs_f64() / done as f64;
                self.leave(self.live.runs.total.saturating_sub(self.live.runs.position));
                self.errors = (self.errors.0 + failed_operations(run), 0);
                self.live.errors = self.errors.0;
                self.count(run);
                if let Some(failure) = &run.failure {
                    self.message(format!("run {} failed: {failure}", run.position + 1));
                }
                self.live.run = None;
                self.live.rates = None;
                // The next run begins, or the session ends, at once: of short runs one state each is enough.
                if self.written.elapsed() >= EVERY {
                    self.write();
                }
            }
        }
    }

    /// Notes how much is left to do.
    fn leave(&mut self, runs: u64) {
        let seconds = self.each * runs as f64;
        self.left = (Instant::now(), seconds);
        self.live.runs.seconds_left = Some(seconds);
    }

    /// The response that stands for a workload: the study's, where it is one of it, else the first of its own of which
    /// `exists` is true.
    fn response(&self, workload: &WorkloadRecord, exists: impl Fn(&str) -> bool) -> Option<String> {
        let primary = &self.study.primary_response;
        if primary.split('.').next() == Some(&workload.name) {
            return Some(primary.clone());
        }
        let responses = Counts::of(workload).responses().iter();
        responses.map(|what| format!("{}.{what}", workload.name)).find(|name| exists(name))
    }

    /// Takes a run into the values of its treatment.
    fn count(&mut self, run: &RunRecord) {
        let value = |name: &str| run.responses.iter().find(|response| response.name == name);
        let workloads = self.study.workloads.iter().filter(|_| counts(run));
        let names = workloads.filter_map(|workload| self.response(workload, |name| value(name).is_some()));
        for name in names.collect::<Vec<_>>() {
            let value = value(&name).map(|response| response.value);
            self.values.entry((name, run.key.treatment)).or_default().extend(value);
        }
    }

    /// How certain the response of a workload is for the treatment of the run in flight.
    fn precision(&self, workload: &str) -> Precision {
        let known = |name: &str| self.values.keys().any(|(known, _)| known == name);
        let workload = self.study.workloads.iter().find(|record| record.name == workload);
        let response = workload.and_then(|workload| {
            self.response(workload, known).or_else(|| self.response(workload, |_| true))
        });
        let response = response.unwrap_or_else(|| self.study.primary_response.clone());
        let (runs_min, runs_max, goal) = match self.study.replicates {
            Replication::Fixed(n) => (n, n, None),
            Replication::Sequential { min, max, relative_half_width } => {
                (min, max, Some(relative_half_width).filter(|_| response == self.study.primary_response))
            }
        };
        let key = (response, self.treatment);
        let values = self.values.get(&key).map_or(&[][..], Vec::as_slice);
        let interval = mean_interval(values, self.study.confidence).ok();
        Precision {
            runs: values.len() as u64,
            runs_min: runs_min.into(),
            runs_max: runs_max.into(),
            relative_half_width: interval.and_then(|interval| interval.relative_half_width()),
            confidence: self.study.confidence,
            goal,
            response: key.0,
        }
    }

    fn progress(&mut self, workload: &str, progress: &Progress) {
        if self.live.run.as_ref().is_some_and(|run| run.workload.as_deref() != Some(workload)) {
            self.errors.1 = self.live.errors.saturating_sub(self.errors.0);
            let precision = self.precision(workload);
            self.live.run.iter_mut().for_each(|run| run.precision = precision.clone());
        }
        let Some(run) = &mut self.live.run else { return };
        if run.phase != progress.phase || run.workload.as_deref() != Some(workload) {
            self.meter = Meter::default();
        }
        run.workload = Some(workload.to_owned());
        run.phase = progress.phase;
        run.phase_elapsed_s = progress.elapsed.as_secs_f64();
        run.phase_length_s = progress.length.map(|length| length.as_secs_f64());
    }

    /// The session is over.
    pub(super) fn end(&mut self, result: &Result<Outcome, RunError>) {
        self.live.run = None;
        self.live.session = match result {
            Ok(Outcome::Complete) => Session::Finished,
            Ok(Outcome::Stopped) => Session::Interrupted,
            Err(error) => {
                self.live.reason = Some(error.to_string());
                Session::Failed
            }
        };
        self.write();
    }

    fn message(&mut self, text: impl Into<String>) {
        self.live.message(live::unix_ms(), text);
    }

    /// A failure to publish the state is no reason to stop a measurement.
    fn write(&mut self) {
        self.written = Instant::now();
        if let Err(error) = live::write(&mut self.live, &self.directory) {
            log::warn!("the state of the study could not be written: {error}");
        }
    }
}

/// Operations of a run that failed.
fn failed_operations(run: &RunRecord) -> u64 {
    let series = run.recordings.iter().flat_map(|recording| &recording.series);
    series.map(|series| series.total.errors).sum()
}
