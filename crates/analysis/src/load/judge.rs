//! What the runs of one load say: whether it is kept, and if not, who broke it.

use benchmaster_record::results::{CheckKind, LatencyGoal, LoadCurve, Unit};
use benchmaster_stats::interval::mean_interval;
use benchmaster_stats::ratio::fieller_welch;
use serde::Serialize;

use benchmaster_units::format::{percent, rounded};

/// Share of the workers' time within operations from which they are all taken up.
const TAKEN_UP: f64 = 0.8;
/// An operation that takes this many times as long as at the lowest load waits for others in the server or the network.
const LONGER: f64 = 1.5;
/// Of what workers were added, the rate must grow by this share, else it no longer grows.
const LEAST_GROWTH: f64 = 0.1;

/// What a load curve is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub curve: LoadCurve,
    /// The loads in ascending order, by level.
    pub loads: Vec<f64>,
    /// The levels that are run while the load rises.
    pub rise: Vec<u32>,
    /// Share of the requested rate that must be achieved.
    pub achieved: f64,
    /// What is asked of the latency.
    pub goal: Option<LatencyGoal>,
    /// Runs of each load at first.
    pub replicates: u32,
    /// Runs of each load at most.
    pub max_replicates: u32,
    pub confidence: f64,
}

/// One run of a load.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Observation {
    /// Repetitions of the flow that were asked for, per second over all clients; `None` in a closed loop.
    pub requested: Option<f64>,
    /// Repetitions that were done, per second.
    pub achieved: f64,
    /// Mean response time: from when an operation should have begun, in nanoseconds.
    pub response_ns: f64,
    /// What the goal is about, of the response times; `None` without a goal, and with too few operations.
    pub judged_ns: Option<f64>,
    /// Mean service time: from when it did begin.
    pub service_ns: f64,
    /// What the goal is about, of the service times.
    pub judged_service_ns: Option<f64>,
    /// Share of the workers' time within operations.
    pub busy: f64,
    /// A failed check by which the client may be the limit.
    pub client: Option<CheckKind>,
}

/// The runs of one load that count.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    pub level: u32,
    pub runs: Vec<Observation>,
    /// Runs that do not count: they failed, or a check found them invalid.
    pub failed: usize,
}

impl Point {
    pub(super) fn values(&self, of: impl Fn(&Observation) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(of).collect()
    }

    pub(super) fn mean(&self, of: impl Fn(&Observation) -> f64) -> f64 {
        self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64
    }

    /// Whether something holds for more than half of the runs.
    fn mostly(&self, holds: impl Fn(&Observation) -> bool) -> bool {
        2 * self.runs.iter().filter(|run| holds(run)).count() > self.runs.len()
    }
}

/// What is known of a load.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// All that is asked is kept: the intervals lie on the good side of every limit.
    Kept,
    /// An interval contains a limit.
    Undecided {
        why: String,
        /// More runs that should decide it; 0 when there were as many as allowed, or more would not help.
        more: u32,
    },
    /// A limit is broken, by what is measured.
    Broken {
        by: Limit,
        /// The same with numbers.
        why: String,
    },
    /// The generator of the load was the limit, so that the load says nothing about what is measured.
    Client {
        /// Evidence for it.
        why: String,
    },
    Failed,
}

/// What a load can break.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The share of the requested rate that must be achieved.
    Rate,
    /// The goal of the latency.
    Latency,
    /// The rate no longer grows with the workers.
    Growth,
}

/// On which side of a limit a mean lies.
enum Side {
    Good,
    Bad,
    /// The limit is within the interval; this many more runs should decide it.
    Unknown(u32),
}

/// Judges the runs of a load. `base` is the lowest load that was run; `before` is the load below in the rise, for those that
/// are compared with it.
pub(super) fn judge(
    question: &Question,
    point: &Point,
    base: Option<&Point>,
    before: Option<&Point>,
) -> Verdict {
    if point.runs.is_empty() {
        return Verdict::Failed;
    }
    let criteria = [rate(question, point), latency(question, point), growth(question, point, before)];
    let mut undecided = None;
    for criterion in criteria.into_iter().flatten() {
        match criterion {
            Verdict::Broken { by, why } => {
                return match generator(question, point, base, by) {
                    Some(reason) => Verdict::Client { why: format!("{why}, but {reason}") },
                    None => Verdict::Broken { by, why },
                };
            }
            Verdict::Undecided { .. } => undecided = undecided.or(Some(criterion)),
            _ => {}
        }
    }
    undecided.unwrap_or(Verdict::Kept)
}

/// Where the interval of the mean lies; `good` says which side is.
fn side(question: &Question, values: &[f64], limit: f64, good: fn(f64, f64) -> bool) -> Option<Side> {
    let interval = mean_interval(values, question.confidence).ok()?;
    let n = values.len() as u32;
    let left = question.max_replicates.saturating_sub(n);
    let Some(half_width) = interval.half_width else { return Some(Side::Unknown(left.min(1))) };
    let distance = (interval.mean - limit).abs();
    Some(match (distance > half_width || half_width == 0.0, good(interval.mean, limit)) {
        (true, true) => Side::Good,
        (true, false) => Side::Bad,
        (false, _) => {
            // Half widths shrink with the square root of the number of runs; no more than double them at once.
            let needed = f64::from(n) * (half_width / distance.max(f64::MIN_POSITIVE)).powi(2);
            Side::Unknown((needed.ceil() as u32).saturating_sub(n).clamp(1, n).min(left))
        }
    })
}

fn rate(question: &Question, point: &Point) -> Option<Verdict> {
    let shares = point.values(|run| Some(run.achieved / run.requested?));
    let what = || {
        let (achieved, requested) =
            (point.mean(|run| run.achieved), point.mean(|run| run.requested.unwrap_or(0.0)));
        format!("of {requested:.0}/s that were requested, {achieved:.0}/s were achieved")
    };
    let limit = percent(question.achieved);
    Some(match side(question, &shares, question.achieved, |mean, limit| mean >= limit)? {
        Side::Good => Verdict::Kept,
        Side::Bad => Verdict::Broken { by: Limit::Rate, why: format!("{}, less than {limit}", what()) },
        Side::Unknown(more) => {
            Verdict::Undecided { why: format!("{}, and the interval contains {limit}", what()), more }
        }
    })
}

fn latency(question: &Question, point: &Point) -> Option<Verdict> {
    let goal = question.goal?;
    let name = goal.latency.name();
    let values = point.values(|run| run.judged_ns);
    let limit = time(goal.at_most_ns);
    if values.len() < point.runs.len() {
        let why = format!("there were too few operations to tell the latency's {name}: measure longer");
        return Some(Verdict::Undecided { why, more: 0 });
    }
    let mean = time(values.iter().sum::<f64>() / values.len() as f64);
    Some(match side(question, &values, goal.at_most_ns, |mean, limit| mean <= limit)? {
        Side::Good => Verdict::Kept,
        Side::Bad => {
            let why = format!("the latency's {name} was {mean}, more than {limit}");
            Verdict::Broken { by: Limit::Latency, why }
        }
        Side::Unknown(more) => {
            let why = format!("the latency's {name} was {mean}, and the interval contains {limit}");
            Verdict::Undecided { why, more }
        }
    })
}

/// Whether the rate grew with the workers.
fn growth(question: &Question, point: &Point, before: Option<&Point>) -> Option<Verdict> {
    if question.curve != LoadCurve::Closed {
        return None;
    }
    let before = before?;
    let load = |point: &Point| question.loads.get(point.level as usize).copied();
    let (workers, fewer) = (load(point)?, load(before)?);
    let least = 1.0 + LEAST_GROWTH * (workers / fewer - 1.0);
    let rates = |point: &Point| point.values(|run| Some(run.achieved));
    let (old, new) = (rates(before), rates(point));
    let ratio = fieller_welch(&old, &new, question.confidence).ok();
    let (low, high) = match ratio.and_then(|ratio| ratio.interval) {
        Some(interval) => interval,
        // Neither varies, or one of them is not known at all.
        None => {
            let ratio = point.mean(|run| run.achieved) / before.mean(|run| run.achieved);
            if ratio.is_finite() { (ratio, ratio) } else { return None }
        }
    };
    let grown = 100.0 * ((low + high) / 2.0 - 1.0);
    let what = format!("with {workers} workers in place of {fewer} the rate grew by {grown:.1} %");
    Some(match () {
        () if low >= least => Verdict::Kept,
        () if high < least => {
            let why = format!("{what}, less than a tenth of what the workers did");
            Verdict::Broken { by: Limit::Growth, why }
        }
        () => {
            let n = point.runs.len() as u32;
            let more = n.min(question.max_replicates.saturating_sub(n));
            if more == 0 {
                // The load rises on; whether it should have is no question of the limits.
                return None;
            }
            let why = format!("{what}, and the interval contains a tenth of what the workers did");
            Verdict::Undecided { why, more }
        }
    })
}

/// Whether the load was broken by its own generator: because a check says so, because it began operations late though workers
/// were free, or because too few workers waited for answers that came as fast as at the lowest load. A load that is kept is
/// kept, however busy its generator was.
fn generator(question: &Question, point: &Point, base: Option<&Point>, by: Limit) -> Option<String> {
    if point.mostly(|run| run.client.is_some()) {
        let check = point.runs.iter().find_map(|run| run.client)?;
        return Some(format!("the check `{check}` did not pass"));
    }
    if question.curve != LoadCurve::Open {
        return None;
    }
    let fastest = base.filter(|base| !base.runs.is_empty()).map(|base| base.mean(|run| run.service_ns))?;
    let as_fast = |run: &Observation| run.service_ns < LONGER * fastest;
    let taken_up = |run: &Observation| run.busy >= TAKEN_UP;
    if base.is_some_and(|base| base.level < point.level) && point.mostly(|run| taken_up(run) && as_fast(run))
    {
        return Some(format!(
            "all workers were waiting for answers, which took {} as at the lowest load ({}): more workers, or a larger \
             `queue_depth`, are needed to ask for more",
            time(point.mean(|run| run.service_ns)),
            time(fastest)
        ));
    }
    let idle = match by {
        Limit::Rate => point.mostly(|run| !taken_up(run)),
        Limit::Latency => point.mostly(|run| {
            let kept = question.goal.zip(run.judged_service_ns);
            !taken_up(run) && as_fast(run) && kept.is_some_and(|(goal, service)| service <= goal.at_most_ns)
        }),
        Limit::Growth => false,
    };
    idle.then(|| {
        format!(
            "workers were within operations only {} of the time: the generator began them late",
            percent(point.mean(|run| run.busy))
        )
    })
}

/// A time in nanoseconds for people.
pub(super) fn time(nanos: f64) -> String {
    rounded(nanos, None, Unit::Nanoseconds, None).text(true)
}
