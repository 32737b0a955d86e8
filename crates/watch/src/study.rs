//! A running study, live: what its runner says, and rates of its clients, which are differences of two states.

use benchmaster_record::phase::Phase;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde::Serialize;

use crate::draw::remember;
use crate::numbers::{clean, duration, short, spaced};
use benchmaster_record::live::{Client, Live, Precision, Rates, Session};
use benchmaster_units::format;

mod view;

pub use view::StudyView;

/// How much of the past is plotted.
const PLOTTED: Duration = Duration::from_secs(60);

/// A running study, and what it did lately.
#[derive(Debug, Default)]
pub struct Study {
    live: Option<Live>,
    /// Why there is no state to show, or none that is new.
    trouble: Option<String>,
    clients: Vec<ClientRates>,
    /// Rates of the last minute, over all phases and runs, each with the time when they were written.
    past: VecDeque<(u64, Rates)>,
    by_client: HashMap<String, VecDeque<f64>>,
}

/// Rates of a client between two states.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct ClientRates {
    /// Operations per second; `None` before the second state of a phase.
    pub operations_per_s: Option<f64>,
    pub bytes_per_s: Option<f64>,
}

impl Study {
    /// Takes a state that was read, or why there is none.
    pub fn take(&mut self, read: Result<Live, String>) {
        let live = match read {
            Ok(live) => live,
            Err(trouble) => {
                self.trouble = Some(trouble);
                return;
            }
        };
        self.trouble = None;
        let before = self.live.as_ref();
        if before.is_some_and(|before| before.written_ms == live.written_ms) {
            return;
        }
        self.clients = live.clients.iter().map(|client| rates(before, &live, client)).collect();
        // States of one phase make a line; another phase begins a new one.
        if before.is_none_or(|before| phase(before) != phase(&live)) {
            self.by_client.clear();
        }
        self.past.extend(live.rates.clone().map(|rates| (live.written_ms, rates)));
        let oldest = live.written_ms.saturating_sub(PLOTTED.as_millis() as u64);
        while self.past.front().is_some_and(|(written_ms, _)| *written_ms < oldest) {
            self.past.pop_front();
        }
        for (client, rates) in live.clients.iter().zip(&self.clients) {
            if let Some(rate) = rates.operations_per_s {
                remember(self.by_client.entry(client.name.clone()).or_default(), rate);
            }
        }
        self.live = Some(live);
    }

    /// The latest state.
    pub fn live(&self) -> Option<&Live> {
        self.live.as_ref()
    }

    /// Rates of the clients of the latest state, in its order.
    pub fn clients(&self) -> &[ClientRates] {
        &self.clients
    }

    /// Whether the study goes on, as far as it can be told at `now_ms`, milliseconds since 1970.
    pub fn goes_on(&self, now_ms: u64) -> bool {
        self.live.as_ref().is_some_and(|live| live.session == Session::Running && !live.is_stale(now_ms))
    }

    /// Why what is shown is not that of a running study, and what to do.
    fn remark(&self, now_ms: u64) -> Option<String> {
        let resume = "`benchmaster run` with the same study continues it";
        let Some(live) = &self.live else {
            return Some(match &self.trouble {
                Some(trouble) => format!("{trouble}; `benchmaster run STUDY -o DIR` writes it while it runs"),
                None => "nothing was read yet".into(),
            });
        };
        let reason = live.reason.as_ref().map(|reason| format!(": {}", clean(reason))).unwrap_or_default();
        Some(match live.session {
            Session::Finished => "the study is finished; `benchmaster analyze DIR` shows the results".into(),
            Session::Interrupted => format!("the session was interrupted{reason}; {resume}"),
            Session::Failed => format!("the session failed{reason}; {resume}"),
            Session::Running if live.is_stale(now_ms) => {
                let age = duration(live.age(now_ms).as_secs_f64());
                format!("no news for {age}: the study does not run any more, or its host hangs; {resume}")
            }
            Session::Running => self.trouble.clone()?,
        })
    }

    /// The latest state as one line of text.
    pub fn line(&self, now_ms: u64) -> String {
        let mut parts = Vec::new();
        if let Some(live) = &self.live {
            let more = if live.runs.open { "+" } else { "" };
            parts.push(format!(
                "{}: run {} of {}{more}",
                clean(&live.study),
                live.runs.position,
                live.runs.total
            ));
            if let Some(run) = &live.run {
                parts.push(format!("{}, replicate {}", clean(&run.treatment), run.replicate));
                let length = run.phase_length_s.map(|s| format!(" of {s:.1}")).unwrap_or_default();
                let workload =
                    run.workload.as_ref().map(|name| format!("{}: ", clean(name))).unwrap_or_default();
                parts.push(format!("{workload}{} {:.1}{length} s", run.phase, run.phase_elapsed_s));
            }
            if let Some(rates) = &live.rates {
                let bytes = spaced(rates.bytes_per_s);
                parts.push(format!("{} ops/s, {bytes}B/s", short(rates.operations_per_s)));
                parts.extend(latency(rates));
            }
            parts.extend(live.run.as_ref().and_then(|run| precision(&run.precision)));
            let errors: u64 = live.clients.iter().map(|client| client.errors).fold(0, u64::saturating_add);
            let n = live.clients.len();
            parts.push(format!("{n} client{}, {errors} errors", if n == 1 { "" } else { "s" }));
        }
        parts.extend(self.remark(now_ms));
        parts.join("; ")
    }
}

/// How tight the interval of a treatment is so far: `read.operations ±2.1 % (95 %) after 3 of 5 runs, goal 5 %`. `None` in
/// states of versions that did not say.
pub fn precision(precision: &Precision) -> Option<String> {
    let Precision { response, runs, runs_min, runs_max, .. } = precision;
    let of = match (runs_min, runs_max) {
        (_, 0) => return None,
        (min, max) if min < max && runs < min => format!("{min} to {max}"),
        (_, max) => max.to_string(),
    };
    let goal = precision.goal.map(|goal| format!(", goal {}", format::exact_percent(goal)));
    let goal = goal.unwrap_or_default();
    Some(match precision.relative_half_width {
        Some(relative) => format!(
            "{} ±{} ({}) after {runs} of {of} runs{goal}",
            clean(response),
            format::percent(relative),
            format::exact_percent(precision.confidence)
        ),
        None => format!("{}: an interval needs 2 runs, {runs} of {of} done{goal}", clean(response)),
    })
}

/// The mean latency of the moment.
fn latency(rates: &Rates) -> Option<String> {
    Some(format!("mean latency {}", format::time(rates.mean_latency_s? * 1e9)))
}

/// What counters of clients belong to.
fn phase(live: &Live) -> (u64, Option<(&str, Phase)>) {
    let run = live.run.as_ref();
    (live.runs.position, run.map(|run| (run.workload.as_deref().unwrap_or(""), run.phase)))
}

fn rates(before: Option<&Live>, now: &Live, client: &Client) -> ClientRates {
    let rates = || {
        let before = before.filter(|before| phase(before) == phase(now))?;
        let earlier = before.clients.iter().find(|earlier| earlier.name == client.name)?;
        let seconds = now.written_ms.checked_sub(before.written_ms).filter(|ms| *ms > 0)? as f64 / 1e3;
        Some(ClientRates {
            operations_per_s: Some(client.operations.checked_sub(earlier.operations)? as f64 / seconds),
            bytes_per_s: Some(client.bytes.checked_sub(earlier.bytes)? as f64 / seconds),
        })
    };
    rates().unwrap_or_default()
}

#[cfg(test)]
mod tests;
