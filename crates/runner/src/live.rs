//! The state of the running study for those who look on, kept in its results directory.

use benchmaster_record::phase::Phase;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use benchmaster_record::live::{Client, ClientState, Live, Rates, Run, Session};
use benchmaster_store::live;
use benchmaster_workload::execute::Done;

use super::{Outcome, RunError, RunEvent};
use benchmaster_study::plan::Plan;

/// Time between two states.
const EVERY: Duration = Duration::from_secs(1);

/// Writes the state about once a second, and at every change of a run.
#[derive(Debug)]
pub(super) struct Watched {
    live: Live,
    directory: PathBuf,
    written: Instant,
    /// Operations at the last state of this phase, and when that was.
    last: Option<(Instant, Done)>,
    began: Instant,
    stored_before: u64,
}

impl Watched {
    pub(super) fn begin(plan: &Plan, directory: &Path, stored: u64, failed: u64) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut live = live::begin(plan.study.name.clone(), host);
        let estimate = plan.estimate();
        live.runs.total = estimate.runs_min.max(stored);
        live.runs.open = estimate.runs_max > estimate.runs_min;
        (live.runs.stored, live.runs.failed) = (stored, failed);
        let now = Instant::now();
        let mut watched = Self {
            live,
            directory: directory.into(),
            written: now,
            last: None,
            began: now,
            stored_before: stored,
        };
        watched.write();
        watched
    }

    /// Takes note of what happens.
    pub(super) fn take(&mut self, event: &RunEvent<'_>) {
        match event {
            RunEvent::AlreadyComplete { .. } | RunEvent::Begun { .. } => {}
            RunEvent::RunBegins { position, treatment, replicate } => {
                self.live.runs.position = u64::from(*position) + 1;
                self.live.runs.total = self.live.runs.total.max(self.live.runs.position);
                self.live.run = Some(Run {
                    treatment: treatment.label.clone(),
                    replicate: replicate + 1,
                    phase: Phase::SetUp,
                    ..Run::default()
                });
                (self.live.rates, self.last) = (None, None);
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
                    ..Client::default()
                };
                if self.written.elapsed() >= EVERY {
                    self.live.clients = clients.iter().map(client).collect();
                    self.rates(progress);
                    self.write();
                }
            }
            RunEvent::RunStored { run, .. } => {
                self.live.runs.stored += 1;
                self.live.runs.failed += u64::from(run.failure.is_some());
                let done = self.live.runs.stored - self.stored_before;
                let rest = self.live.runs.total.saturating_sub(self.live.runs.position);
                self.live.runs.seconds_left =
                    Some(self.began.elapsed().as_secs_f64() / done as f64 * rest as f64);
                if let Some(failure) = &run.failure {
                    self.message(format!("run {} failed: {failure}", run.position + 1));
                }
                self.live.run = None;
                self.live.rates = None;
                self.write();
            }
        }
    }

    fn progress(&mut self, workload: &str, progress: &benchmaster_workload::execute::Progress) {
        let Some(run) = &mut self.live.run else { return };
        if run.phase != progress.phase || run.workload.as_deref() != Some(workload) {
            (self.last, self.live.rates) = (None, None);
        }
        run.workload = Some(workload.to_owned());
        run.phase = progress.phase;
        run.phase_elapsed_s = progress.elapsed.as_secs_f64();
        run.phase_length_s = progress.length.map(|length| length.as_secs_f64());
    }

    fn rates(&mut self, progress: &benchmaster_workload::execute::Progress) {
        if progress.phase != Phase::Measure {
            return;
        }
        let now = Instant::now();
        if let Some((then, before)) = self.last {
            let interval_s = now.duration_since(then).as_secs_f64().max(1e-9);
            let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / interval_s;
            self.live.rates = Some(Rates {
                interval_s,
                operations_per_s: per_s(progress.done.operations, before.operations),
                bytes_per_s: per_s(progress.done.bytes, before.bytes),
                errors_per_s: per_s(progress.done.errors, before.errors),
            });
        }
        self.last = Some((now, progress.done));
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
