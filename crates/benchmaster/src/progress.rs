//! Progress on standard error: a bar with the time left on a terminal, else one line per run.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use benchmaster_report::format::{self, rounded};
use benchmaster_store::record::{RunRecord, Severity, TreatmentRecord};
use benchmaster_study::plan::Plan;
use benchmaster_study::runner::Happening;
use benchmaster_workload::execute::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// Tells the user how far a study is.
pub(crate) struct Reporter {
    bar: Option<ProgressBar>,
    quiet: bool,
    primary: String,
    /// Runs planned at least.
    planned: u64,
    /// Runs done by this session, and how long they took.
    done: u64,
    began: Instant,
    current: String,
}

impl Reporter {
    pub(crate) fn new(plan: &Plan, quiet: bool) -> Self {
        let estimate = plan.estimate();
        let terminal = std::io::stderr().is_terminal() && !quiet;
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(Some(estimate.runs_min), ProgressDrawTarget::stderr_with_hz(5));
            let template = "{wide_bar} {pos}/{len} runs, {prefix}\n{wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_prefix(left(Duration::from_secs_f64(estimate.seconds_min)));
            bar
        });
        Self {
            bar,
            quiet,
            primary: plan.study.primary_response.clone(),
            planned: estimate.runs_min,
            done: 0,
            began: Instant::now(),
            current: String::new(),
        }
    }

    pub(crate) fn take(&mut self, happening: &Happening<'_>) {
        match happening {
            Happening::Begun { done, interruptions } => self.begun(*done, *interruptions),
            Happening::RunBegins { position, treatment, replicate } => {
                self.planned = self.planned.max(u64::from(*position) + 1);
                self.current = format!("{}, replicate {}", treatment.label, replicate + 1);
                if let Some(bar) = &self.bar {
                    bar.set_length(self.planned);
                    bar.set_position(u64::from(*position));
                    bar.set_message(self.current.clone());
                }
            }
            Happening::Progress { workload, progress } => self.progress(workload, progress),
            Happening::RunStored { run, treatment } => self.stored(run, treatment),
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| output::note(text)),
            None if !self.quiet => output::note(text),
            None => {}
        }
    }

    fn begun(&self, done: u32, interruptions: usize) {
        if done > 0 || interruptions > 0 {
            let times = format::plural(interruptions, "time");
            self.line(&format!("resuming: {} done, interrupted {times} so far", format::plural(done as usize, "run")));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done.into());
        }
    }

    fn progress(&self, workload: &str, progress: &Progress) {
        let Some(bar) = &self.bar else { return };
        let time = match progress.length {
            Some(length) => format!("{:.0} of {:.0} s", progress.elapsed.as_secs_f64(), length.as_secs_f64()),
            None => format!("{:.0} s", progress.elapsed.as_secs_f64()),
        };
        let done = match (progress.bytes, progress.operations) {
            (0, 0) => String::new(),
            (0, operations) => format!(", {} operations", format::count(operations)),
            (bytes, _) => format!(", {}", format::bytes(bytes)),
        };
        bar.set_message(format!("{}: {workload}, {} {time}{done}", self.current, progress.phase));
    }

    fn stored(&mut self, run: &RunRecord, treatment: &TreatmentRecord) {
        self.done += 1;
        let position = u64::from(run.position) + 1;
        let each = self.began.elapsed().div_f64(self.done as f64);
        let rest = each.mul_f64(self.planned.saturating_sub(position) as f64);
        if let Some(bar) = &self.bar {
            bar.set_position(position);
            bar.set_prefix(left(rest));
        }
        let number = format!("[{position}/{}]", self.planned);
        let head = format!("{number} {}, replicate {}", treatment.label, run.key.replicate + 1);
        self.line(&format!("{head}: {}", self.result(run)));
    }

    /// The primary response of a run and what speaks against it, in a few words.
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
        let ids = |severity| {
            let mut ids: Vec<&str> =
                run.checks.iter().filter(|check| check.severity == severity).map(|check| check.id.as_str()).collect();
            ids.dedup();
            ids.join(", ")
        };
        match worst {
            Some(severity @ Severity::Invalid) => format!("{value}; INVALID ({})", ids(severity)),
            Some(severity @ Severity::Warning) => format!("{value}; warnings: {}", ids(severity)),
            _ => value,
        }
    }
}

fn left(time: Duration) -> String {
    let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    format!("about {} left", format::duration(nanos))
}
