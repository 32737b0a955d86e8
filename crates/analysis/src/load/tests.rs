//! Curves of simulated systems on virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use benchmaster_record::results::{CheckKind, LatencyGoal, LatencyMeasure};
use benchmaster_stats::random::Generator;

use super::*;

/// A client and a server.
#[derive(Clone, Copy)]
struct System {
    /// Operations that the server works on at the same time.
    stations: usize,
    /// Mean time that a station takes, in seconds.
    service: f64,
    /// Whether that time is exponentially distributed, else it is always the same.
    random: bool,
    /// Time on the way, in seconds.
    delay: f64,
    /// Time that the client's only processor takes to begin an operation, in seconds.
    overhead: f64,
    /// Workers, where the load does not say it.
    workers: usize,
    /// Length of a run, in seconds.
    seconds: f64,
}

const SYSTEM: System = System {
    stations: 1,
    service: 1e-3,
    random: false,
    delay: 0.0,
    overhead: 0.0,
    workers: 64,
    seconds: 20.0,
};

/// A time that can be ordered.
#[derive(PartialEq)]
struct Time(f64);
impl Eq for Time {}
impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Time {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl System {
    /// A run, at this rate or in a closed loop.
    fn run(&self, rate: Option<f64>, workers: usize, goal: Option<LatencyGoal>, seed: u64) -> Observation {
        let mut random = Generator::new(seed, "system");
        let intended = |worker: usize, iteration: u64, ready: f64| match rate {
            Some(rate) => (iteration as f64 + worker as f64 / workers as f64) * workers as f64 / rate,
            None => ready,
        };
        // A service time begins anywhere in the schedule, so that runs differ.
        let mut free: BinaryHeap<Reverse<Time>> =
            (0..self.stations).map(|_| Reverse(Time(self.service * random.uniform()))).collect();
        let mut next: BinaryHeap<_> = (0..workers)
            .map(|worker| Reverse((Time(intended(worker, 0, 0.0)), worker, 0u64, 0u64)))
            .collect();
        let (mut responses, mut services, mut within, mut processor) = (Vec::new(), Vec::new(), 0.0, 0.0f64);
        while let Some(Reverse((Time(ready), worker, iteration, _))) = next.pop() {
            if ready >= self.seconds {
                continue;
            }
            let start = ready.max(processor);
            processor = start + self.overhead;
            let start = processor;
            let Some(Reverse(Time(station))) = free.pop() else { continue };
            let time = if self.random { -self.service * random.uniform().ln() } else { self.service };
            let done = station.max(start) + time;
            free.push(Reverse(Time(done)));
            let end = done + self.delay;
            within += end.min(self.seconds) - start.min(self.seconds);
            if end <= self.seconds {
                responses.push(end - if rate.is_some() { intended(worker, iteration, 0.0) } else { ready });
                services.push(end - start);
            }
            let again = intended(worker, iteration + 1, end).max(end);
            next.push(Reverse((Time(again), worker, iteration + 1, 0)));
        }
        let mean = |values: &[f64]| 1e9 * values.iter().sum::<f64>() / values.len() as f64;
        let judged = |values: &mut Vec<f64>| {
            values.sort_by(f64::total_cmp);
            let goal = goal?;
            Some(match goal.latency.quantile() {
                None => mean(values),
                Some(quantile) => {
                    1e9 * values[((quantile * values.len() as f64) as usize).min(values.len() - 1)]
                }
            })
        };
        Observation {
            requested: rate,
            achieved: responses.len() as f64 / self.seconds,
            response_ns: mean(&responses),
            judged_ns: judged(&mut responses),
            service_ns: mean(&services),
            judged_service_ns: judged(&mut services),
            busy: within / (workers as f64 * self.seconds),
            client: None,
        }
    }
}

fn question(curve: LoadCurve, (from, to): (f64, f64), goal: Option<(LatencyMeasure, f64)>) -> Question {
    let grid = grid::loads(from, to, Some(2.0), None, 0.05, curve == LoadCurve::Closed).unwrap();
    Question {
        curve,
        loads: grid.loads,
        rise: grid.rise,
        achieved: 0.95,
        goal: goal.map(|(latency, seconds)| LatencyGoal { latency, at_most_ns: 1e9 * seconds }),
        replicates: 5,
        max_replicates: 20,
        confidence: 0.95,
    }
}

/// Measures the whole curve; `of` gives one run of a load.
fn measure(question: &Question, mut of: impl FnMut(f64, u64) -> Observation) -> (End, Vec<Point>) {
    let mut points: Vec<Point> = Vec::new();
    for _ in 0..1_000 {
        let (level, replicates) = match next(question, &points) {
            Next::Run { level, replicates, again, .. } => {
                assert_eq!(again, points.iter().any(|point| point.level == level));
                assert!(replicates > 0);
                (level, replicates)
            }
            Next::Finished(end) => return (end, points),
        };
        let place = points.partition_point(|point| point.level < level);
        if points.get(place).is_none_or(|point| point.level != level) {
            points.insert(place, Point { level, ..Point::default() });
        }
        let load = question.loads[level as usize];
        for _ in 0..replicates {
            let n = points[place].runs.len() as u64;
            points[place].runs.push(of(load, u64::from(level) * 1_000 + n));
        }
        assert!(points[place].runs.len() <= question.max_replicates as usize);
    }
    panic!("the curve does not end");
}

fn open(question: &Question, system: System) -> (End, Vec<Point>) {
    measure(question, |load, seed| system.run(Some(load), system.workers, question.goal, seed))
}

fn closed(question: &Question, system: System) -> (End, Vec<Point>) {
    measure(question, |load, seed| system.run(None, load as usize, question.goal, seed))
}

/// The loads between which a curve ended.
fn bracket(question: &Question, end: &End) -> (f64, f64) {
    let of = |level: Option<u32>| question.loads[level.unwrap() as usize];
    (of(end.kept), of(end.broken))
}

#[test]
fn the_capacity_of_a_token_bucket_is_found() {
    let question = question(LoadCurve::Open, (100.0, 10_000.0), None);
    let (end, points) = open(&question, SYSTEM);
    assert_eq!((end.reason, &end.undecided[..]), (EndReason::Rate, &[][..]), "{end:?}");
    // 1000/s are 95 % of 1053/s.
    let (kept, broken) = bracket(&question, &end);
    assert!(kept <= 1055.0 && broken >= 1050.0 && broken / kept < 1.06, "{kept} {broken}");
    // The rise and a bisection: nowhere near all loads.
    assert!(points.len() <= 12, "{} of {} loads", points.len(), question.loads.len());
}

#[test]
fn the_highest_rate_that_keeps_a_percentile_of_a_queue_is_found() {
    let question = question(LoadCurve::Open, (1_000.0, 8_000.0), Some((LatencyMeasure::P99, 8e-3)));
    let system = System { stations: 4, random: true, workers: 256, seconds: 5.0, ..SYSTEM };
    let (end, _) = open(&question, system);
    assert_eq!(end.reason, EndReason::Latency, "{end:?}");
    let (kept, broken) = bracket(&question, &end);
    // What it says is so in runs that had no part in it, and much longer.
    let long = System { seconds: 60.0, ..system };
    let p99 = |rate: f64| long.run(Some(rate), 256, question.goal, 99).judged_ns.unwrap() / 1e6;
    assert!(p99(kept) <= 8.0, "{kept}/s: {} ms", p99(kept));
    assert!(p99(broken) > 8.0, "{broken}/s: {} ms", p99(broken));
    assert!((3_000.0..4_000.0).contains(&kept), "{kept}");
}

#[test]
fn a_slow_client_is_not_taken_for_the_servers_limit() {
    let question = question(LoadCurve::Open, (100.0, 100_000.0), None);
    // The server could do 100,000/s, and the client begins no more than 5,000/s.
    let system = System { service: 1e-5, overhead: 2e-4, ..SYSTEM };
    let (end, points) = open(&question, system);
    assert_eq!(end.reason, EndReason::Client, "{end:?}");
    assert!(end.why.contains("the generator began them late"), "{}", end.why);
    // No search: nothing more can be learnt.
    assert_eq!(bracket(&question, &end), (3200.0, 6400.0));
    assert!(points.iter().all(|point| question.rise.contains(&point.level)));
}

#[test]
fn too_few_workers_are_not_taken_for_the_servers_limit() {
    let question = question(LoadCurve::Open, (10.0, 10_000.0), Some((LatencyMeasure::P99, 50e-3)));
    // Four that each wait 10 ms can ask for 400/s.
    let system = System { service: 1e-6, delay: 10e-3, workers: 4, ..SYSTEM };
    let (end, _) = open(&question, system);
    assert_eq!(end.reason, EndReason::Client, "{end:?}");
    assert!(end.why.contains("more workers"), "{}", end.why);
    let enough = System { workers: 512, ..system };
    assert_eq!(open(&question, enough).0.reason, EndReason::Range);
}

#[test]
fn a_check_that_found_the_client_busy_matters_where_a_limit_is_broken() {
    let question = question(LoadCurve::Open, (100.0, 10_000.0), None);
    let busy = |load: f64, seed: u64| Observation {
        client: Some(CheckKind::CpuLimit),
        ..SYSTEM.run(Some(load), 64, None, seed)
    };
    let (end, _) = measure(&question, busy);
    assert_eq!((end.reason, bracket(&question, &end)), (EndReason::Client, (800.0, 1600.0)));
    assert!(end.why.contains("cpu-limit"), "{}", end.why);
}

#[test]
fn the_range_may_end_before_the_system_does() {
    let question = question(LoadCurve::Open, (10.0, 100.0), None);
    let (end, points) = open(&question, SYSTEM);
    assert_eq!((end.reason, end.kept, end.broken), (EndReason::Range, points.last().map(|p| p.level), None));
}

#[test]
fn a_goal_that_no_load_keeps_is_reported() {
    let question = question(LoadCurve::Open, (100.0, 10_000.0), Some((LatencyMeasure::Mean, 1e-4)));
    let (end, points) = open(&question, SYSTEM);
    assert_eq!((end.reason, end.kept, end.broken), (EndReason::Latency, None, Some(0)));
    assert_eq!(points.len(), 1);
}

#[test]
fn a_closed_loop_ends_where_the_rate_no_longer_grows() {
    let question = question(LoadCurve::Closed, (1.0, 256.0), None);
    let system = System { stations: 8, random: true, ..SYSTEM };
    let (end, points) = closed(&question, system);
    assert_eq!(end.reason, EndReason::Saturated, "{end:?}");
    let (grown, saturated) = bracket(&question, &end);
    assert_eq!((grown, saturated), (8.0, 16.0));
    let peak = points.last().unwrap().mean(|run| run.achieved);
    assert!((peak / 8_000.0 - 1.0).abs() < 0.02, "{peak}");
    let measured: Vec<_> = points.iter().map(|point| (question.loads[point.level as usize], point)).collect();
    assert_eq!(curve::whole(&measured, 0.95, 1).0.unwrap().value, 8.0);
}

#[test]
fn a_closed_loop_has_the_most_workers_that_keep_a_goal() {
    // Workers beyond the only station wait: with n of them an operation takes n ms.
    let question = question(LoadCurve::Closed, (1.0, 256.0), Some((LatencyMeasure::Mean, 5.5e-3)));
    let mut question = question;
    // Every load is a point of the rise, so that it is the goal that ends it.
    question.rise = (0..question.loads.len() as u32).collect();
    let growth_is_no_matter = |load: f64, seed: u64| Observation {
        achieved: 1000.0 * load,
        ..SYSTEM.run(None, load as usize, question.goal, seed)
    };
    let (end, _) = measure(&question, growth_is_no_matter);
    assert_eq!((end.reason, bracket(&question, &end)), (EndReason::Latency, (5.0, 6.0)));
}

#[test]
fn what_the_most_runs_do_not_decide_is_reported_as_undecided() {
    let question = question(LoadCurve::Open, (100.0, 1_600.0), Some((LatencyMeasure::Mean, 1e-3)));
    // At 800/s the latency is as often below as above 1 ms; more is always above, less always below.
    let run = |load: f64, seed: u64| {
        let judged = match load {
            load if load < 790.0 => 0.5e6,
            load if load > 810.0 => 2e6,
            _ if seed.is_multiple_of(2) => 0.9e6,
            _ => 1.1e6,
        };
        let judged_ns = Some(judged);
        let requested = Some(load);
        Observation {
            requested,
            achieved: load,
            response_ns: judged,
            judged_ns,
            service_ns: judged,
            judged_service_ns: judged_ns,
            busy: 0.1,
            client: None,
        }
    };
    let (end, points) = measure(&question, run);
    let loads: Vec<_> = end.undecided.iter().map(|&level| question.loads[level as usize]).collect();
    assert_eq!((end.reason, &loads[..]), (EndReason::Latency, &[800.0][..]));
    let undecided = points.iter().find(|point| point.level == end.undecided[0]).unwrap();
    assert_eq!(undecided.runs.len(), 20);
    // The neighbouring loads are decided.
    assert_eq!(end.kept.unwrap() + 2, end.broken.unwrap());
}

#[test]
fn a_load_without_a_run_that_counts_ends_the_curve() {
    let question = question(LoadCurve::Open, (100.0, 10_000.0), None);
    let kept =
        Point { level: 0, runs: (0..5).map(|n| SYSTEM.run(Some(100.0), 64, None, n)).collect(), failed: 0 };
    let failed = Point { level: question.rise[1], runs: Vec::new(), failed: 5 };
    let Next::Finished(end) = next(&question, &[kept, failed]) else { panic!("it goes on") };
    assert_eq!((end.reason, end.kept), (EndReason::Failed, Some(0)));
}

#[test]
fn few_operations_leave_a_percentile_undecided_and_the_load_rises_on() {
    let question = question(LoadCurve::Open, (100.0, 200.0), Some((LatencyMeasure::P99, 1.0)));
    let run =
        |load: f64, seed: u64| Observation { judged_ns: None, ..SYSTEM.run(Some(load), 64, None, seed) };
    let (end, points) = measure(&question, run);
    assert_eq!((end.reason, end.kept, points.len()), (EndReason::Range, None, 2));
    assert_eq!(end.undecided, question.rise);
}

#[test]
fn the_next_step_depends_on_the_runs_alone() {
    let question = question(LoadCurve::Open, (100.0, 10_000.0), None);
    let (end, points) = open(&question, SYSTEM);
    assert_eq!(next(&question, &points), Next::Finished(end));
    // As if it had been interrupted after the rise: the same load comes next as came then.
    let risen: Vec<_> = points.iter().filter(|point| question.rise.contains(&point.level)).cloned().collect();
    let Next::Run { level, again: false, .. } = next(&question, &risen) else { panic!("it ends") };
    assert!(points.iter().any(|point| point.level == level));
}
