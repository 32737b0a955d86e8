//! Which load is run next: a pure function of the runs that are done.
//!
//! Loads rise until one breaks a limit. Between the highest that keeps all limits and the lowest that breaks one, the
//! middle is run, and so on until no load is left between them. A load is decided only when the interval of its mean
//! excludes the limit; until then it is run again, up to a greatest number of runs.

use serde::Serialize;

use super::judge::{Limit, Point, Question, Verdict, judge};

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Run {
        level: u32,
        /// How many more.
        replicates: u32,
        /// Whether it has been run before.
        again: bool,
        reason: String,
    },
    /// Nothing: the curve is known.
    Finished(End),
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct End {
    pub reason: EndReason,
    /// The same in words.
    pub why: String,
    /// The highest level that keeps all limits.
    #[serde(skip)]
    pub kept: Option<u32>,
    /// The lowest level that breaks one, or at which the client did.
    #[serde(skip)]
    pub broken: Option<u32>,
    /// Levels between them that could not be decided.
    #[serde(skip)]
    pub undecided: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// What is measured could not do what was requested.
    Rate,
    /// The goal of the latency was broken.
    Latency,
    /// The rate no longer grew with the workers.
    Saturated,
    /// The generator of the load was the limit.
    Client,
    /// A load had no run that counts.
    Failed,
    /// The highest load that was to be tried was reached.
    Range,
}

/// A load with what its runs say.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged<'a> {
    pub point: &'a Point,
    /// What they say.
    pub verdict: Verdict,
}

/// Judges all loads, which are in ascending order.
pub fn judged<'a>(question: &Question, points: &'a [Point]) -> Vec<Judged<'a>> {
    let base = points.iter().find(|point| !point.runs.is_empty());
    let risen = |point: &Point| question.rise.contains(&point.level);
    let below = |point: &Point| {
        let lower = points.iter().rev().find(|other| other.level < point.level && risen(other));
        lower.filter(|_| risen(point))
    };
    let one = |point: &'a Point| Judged { point, verdict: judge(question, point, base, below(point)) };
    points.iter().map(one).collect()
}

/// What comes next after the runs that are done, of loads in ascending order.
pub fn next(question: &Question, points: &[Point]) -> Next {
    let judged = judged(question, points);
    let stop = judged
        .iter()
        .find(|one| matches!(one.verdict, Verdict::Broken { .. } | Verdict::Client { .. } | Verdict::Failed));
    let below = |one: &&Judged<'_>| stop.is_none_or(|stop| one.point.level < stop.point.level);
    let kept = judged.iter().filter(below).rfind(|one| one.verdict == Verdict::Kept);
    let kept = kept.map(|one| one.point.level);
    let open = || judged.iter().filter(below).filter(|one| kept.is_none_or(|kept| one.point.level > kept));
    let searched = !matches!(
        stop.map(|stop| &stop.verdict),
        Some(Verdict::Client { .. } | Verdict::Failed | Verdict::Broken { by: Limit::Growth, .. })
    );
    if searched {
        for one in open() {
            if let Verdict::Undecided { why, more: more @ 1.. } = &one.verdict {
                let (level, reason) = (one.point.level, format!("it is not decided: {why}"));
                return Next::Run { level, replicates: *more, again: true, reason };
            }
        }
    }
    let undecided: Vec<u32> = open().map(|one| one.point.level).collect();
    let Some(stop) = stop else { return rise(question, points, kept, undecided) };
    let broken = stop.point.level;
    let end = |reason, why: &str| {
        let undecided = undecided.clone();
        Next::Finished(End { reason, why: why.to_owned(), kept, broken: Some(broken), undecided })
    };
    let (reason, why) = match &stop.verdict {
        Verdict::Client { why } => return end(EndReason::Client, why),
        Verdict::Broken { by: Limit::Growth, why } => return end(EndReason::Saturated, why),
        Verdict::Broken { by: Limit::Rate, why } => (EndReason::Rate, why),
        Verdict::Broken { by: Limit::Latency, why } => (EndReason::Latency, why),
        _ => return end(EndReason::Failed, "no run of this load counts"),
    };
    // Between what is known to keep the limits, what cannot be decided, and what is known to break one.
    let middle = |low: u32, high: u32| (high - low > 1).then(|| low + (high - low) / 2);
    let level = match (kept, undecided.first(), undecided.last()) {
        (Some(kept), None, _) => middle(kept, broken),
        (Some(kept), Some(&first), Some(&last)) => middle(kept, first).or_else(|| middle(last, broken)),
        (None, Some(_), Some(&last)) => middle(last, broken),
        _ => None,
    };
    match level {
        Some(level) => Next::Run {
            level,
            replicates: question.replicates,
            again: false,
            reason: format!("the limit lies between two loads that were run: {why}"),
        },
        None => end(reason, why),
    }
}

fn rise(question: &Question, points: &[Point], kept: Option<u32>, undecided: Vec<u32>) -> Next {
    let highest = points.last().map(|point| point.level);
    let higher = question.rise.iter().find(|level| highest.is_none_or(|highest| **level > highest));
    match higher {
        Some(&level) => Next::Run {
            level,
            replicates: question.replicates,
            again: false,
            reason: "the load rises until a limit is broken".into(),
        },
        None => Next::Finished(End {
            reason: EndReason::Range,
            why: "the highest load that was to be tried broke no limit".into(),
            kept,
            broken: None,
            undecided,
        }),
    }
}
