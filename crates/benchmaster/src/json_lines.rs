//! `--json-lines`: what happens in a study, as one JSON object per line on standard output. docs/watch.md lists the
//! fields.

use std::path::Path;
use std::time::{Duration, Instant};

use benchmaster_analysis::{ResponseSummary, TreatmentSummary};
use benchmaster_record::live::{Live, Precision, Rates};
use benchmaster_record::phase::Phase;
use benchmaster_record::results::{Check, Response, Severity};
use benchmaster_runner::{Outcome, RunEvent};
use benchmaster_study::plan::Plan;
use benchmaster_units::format::Unit;
use serde::Serialize;

use crate::commands::results::Found;
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Progress that follows more closely is left out.
const EVERY: Duration = Duration::from_millis(300);

/// A line. Runs and replicates are numbered from 1; names of quantities end with their unit, or a `unit` stands beside them.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line<'a> {
    /// What is planned.
    Start {
        study: &'a str,
        directory: &'a Path,
        treatments: Vec<&'a str>,
        workloads: Vec<&'a str>,
        confidence: f64,
        runs_done: u64,
        runs_min: u64,
        runs_max: u64,
        seconds_min: f64,
        seconds_max: f64,
        seconds_without: &'a [String],
    },
    RunBegun {
        run: u64,
        runs: u64,
        treatment: &'a str,
        replicate: u64,
        seconds_left: Option<f64>,
    },
    Progress {
        run: u64,
        runs: u64,
        workload: &'a str,
        phase: Phase,
        phase_elapsed_s: f64,
        phase_length_s: Option<f64>,
        clients: u64,
        operations: u64,
        bytes: u64,
        /// Of the session so far.
        errors: u64,
        /// Of the last second; none outside of the measured phase.
        rates: Option<&'a Rates>,
        precision: Option<&'a Precision>,
        seconds_left: Option<f64>,
    },
    RunEnded {
        run: u64,
        runs: u64,
        treatment: &'a str,
        replicate: u64,
        elapsed_s: f64,
        failure: Option<&'a str>,
        responses: Vec<Number<'a>>,
        checks: Vec<Failed<'a>>,
        seconds_left: Option<f64>,
    },
    /// Something else for people to read.
    Note {
        text: &'a str,
    },
    /// The last line.
    End {
        outcome: Ended,
        exit_status: u8,
        error: Option<String>,
        report: Option<&'a Path>,
        confidence: Option<f64>,
        treatments: Vec<Treatment<'a>>,
    },
}

/// A response of one run: it has no interval.
#[derive(Serialize)]
struct Number<'a> {
    name: &'a str,
    value: f64,
    unit: Unit,
}

/// A validity check that did not pass.
#[derive(Serialize)]
struct Failed<'a> {
    check: &'a str,
    severity: Severity,
    workload: Option<&'a str>,
    message: &'a str,
}

#[derive(Serialize)]
struct Treatment<'a> {
    treatment: &'a str,
    runs: u64,
    errors: u64,
    responses: Vec<Mean<'a>>,
}

/// The mean of a response over the runs that count, with the half width of its interval.
#[derive(Serialize)]
struct Mean<'a> {
    name: &'a str,
    unit: Unit,
    runs: u64,
    mean: f64,
    half_width: Option<f64>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Ended {
    Complete,
    Interrupted,
    Failed,
}

/// Writes the lines, where they are asked for.
pub(crate) struct JsonLines {
    on: bool,
    begun: bool,
    /// When progress was written last.
    written: Option<Instant>,
}

impl JsonLines {
    pub(crate) fn new(on: bool) -> Self {
        Self { on, begun: false, written: None }
    }

    /// Prints what is for people: elsewhere, where standard output has lines for programs.
    pub(crate) fn tell(&self, text: &str) -> Result<()> {
        if !self.on {
            return output::print(text);
        }
        output::note(text.trim_end());
        Ok(())
    }

    /// What happens, and the state of the study then.
    pub(crate) fn take(&mut self, event: &RunEvent<'_>, live: &Live, plan: &Plan, to: &Path) -> Result<()> {
        let (runs, seconds_left) = (live.runs.total, live.runs.seconds_left);
        match event {
            _ if !self.on => Ok(()),
            RunEvent::AlreadyComplete { done } | RunEvent::Begun { done, .. } => {
                // Stages that follow begin once more.
                if std::mem::replace(&mut self.begun, true) { Ok(()) } else { start(*done, plan, to) }
            }
            RunEvent::RunBegins { position, treatment, replicate } => print(&Line::RunBegun {
                run: u64::from(*position) + 1,
                runs,
                treatment: &treatment.label,
                replicate: u64::from(*replicate) + 1,
                seconds_left,
            }),
            RunEvent::Progress { .. } if self.written.is_some_and(|last| last.elapsed() < EVERY) => Ok(()),
            RunEvent::Progress { workload, progress, clients } => {
                self.written = Some(Instant::now());
                print(&Line::Progress {
                    run: live.runs.position,
                    runs,
                    workload,
                    phase: progress.phase,
                    phase_elapsed_s: progress.elapsed.as_secs_f64(),
                    phase_length_s: progress.length.map(|length| length.as_secs_f64()),
                    clients: clients.len() as u64,
                    operations: progress.done.operations,
                    bytes: progress.done.bytes,
                    errors: live.errors,
                    rates: live.rates.as_ref(),
                    precision: live.run.as_ref().map(|run| &run.precision),
                    seconds_left,
                })
            }
            RunEvent::RunStored { run, treatment } => print(&Line::RunEnded {
                run: u64::from(run.position) + 1,
                runs,
                treatment: &treatment.label,
                replicate: u64::from(run.key.replicate) + 1,
                elapsed_s: run.elapsed_ns as f64 / 1e9,
                failure: run.failure.as_deref(),
                responses: run.responses.iter().map(Number::of).collect(),
                checks: run.checks.iter().map(Failed::of).collect(),
                seconds_left,
            }),
            RunEvent::Note(text) | RunEvent::Retry { reason: text } => print(&Line::Note { text }),
            RunEvent::Waiting { block, until } => {
                print(&Line::Note { text: &format!("waits until {until} for the block `{block}`") })
            }
        }
    }

    /// The last line of a study that ended with results.
    pub(crate) fn end(
        &self,
        outcome: Outcome,
        found: Option<&Found>,
        report: Option<&Path>,
        status: Status,
    ) -> Result<()> {
        let outcome = match outcome {
            Outcome::Complete => Ended::Complete,
            Outcome::Stopped => Ended::Interrupted,
        };
        let analysis = found.map(|found| &found.analysis);
        self.last(&Line::End {
            outcome,
            exit_status: status.code(),
            error: None,
            report,
            confidence: analysis.map(|analysis| analysis.confidence),
            treatments: analysis
                .map_or(Vec::new(), |analysis| analysis.treatments.iter().map(Treatment::of).collect()),
        })
    }

    /// The last line of a study that could not go on; gives the failure back.
    pub(crate) fn failed(&self, failure: Failure) -> Failure {
        let written = self.last(&Line::End {
            outcome: Ended::Failed,
            exit_status: failure.status.code(),
            error: Some(output::chain(&failure.error)),
            report: None,
            confidence: None,
            treatments: Vec::new(),
        });
        // What went wrong first is the reason.
        drop(written);
        failure
    }

    fn last(&self, line: &Line<'_>) -> Result<()> {
        if self.on { print(line) } else { Ok(()) }
    }
}

fn start(done: u32, plan: &Plan, directory: &Path) -> Result<()> {
    let estimate = plan.estimate();
    print(&Line::Start {
        study: &plan.study.name,
        directory,
        treatments: plan.study.treatments.iter().map(|treatment| &*treatment.label).collect(),
        workloads: plan.study.workloads.iter().map(|workload| &*workload.name).collect(),
        confidence: plan.study.confidence,
        runs_done: done.into(),
        runs_min: estimate.runs_min,
        runs_max: estimate.runs_max,
        seconds_min: estimate.time.all.low,
        seconds_max: estimate.time.all.high,
        seconds_without: &estimate.time.unknown,
    })
}

impl<'a> Number<'a> {
    fn of(response: &'a Response) -> Self {
        Self { name: &response.name, value: response.value, unit: response.unit }
    }
}

impl<'a> Failed<'a> {
    fn of(check: &'a Check) -> Self {
        let workload = check.workload.as_deref();
        Self { check: check.kind.name(), severity: check.severity, workload, message: &check.message }
    }
}

impl<'a> Treatment<'a> {
    fn of(summary: &'a TreatmentSummary) -> Self {
        let mean = |response: &'a ResponseSummary| {
            let estimate = response.estimate.as_ref()?;
            Some(Mean {
                name: &response.name,
                unit: response.unit,
                runs: estimate.n as u64,
                mean: estimate.mean,
                half_width: estimate.half_width,
            })
        };
        Self {
            treatment: &summary.label,
            runs: summary.runs as u64,
            errors: summary.errors,
            responses: summary.responses.iter().filter_map(mean).collect(),
        }
    }
}

fn print(line: &Line<'_>) -> Result<()> {
    output::print(&serde_json::to_string(line)?)
}
