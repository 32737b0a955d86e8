//! Times in which nothing ended at all.

use benchmaster_stats::median;

use crate::prelude::*;
use crate::results::conditions::tcp_stalls::stood_still;
use crate::results::doubts::noisy_host::is_noisy;
use crate::results::limits::laws::pauses;

/// Shorter ones are TCP's timeout of a segment, and what a busy host does.
const LEAST_NS: u64 = 400_000_000;
/// Operations that would have ended meanwhile at the usual rate.
const LEAST_MISSED: f64 = 20.0;
/// Of the measured time, all of them together.
const LEAST_SHARE: f64 = 0.02;
/// Intervals that tell what is usual.
const LEAST_INTERVALS: usize = 10;

pub(super) const DETECTOR: Detector = Detector { id: "standstill", detect };

/// Times in which nothing ended.
pub(in crate::results) struct Stops {
    /// From which interval to which.
    stops: Vec<(usize, usize)>,
    /// Operations that end in an interval else.
    usual: f64,
    /// Their share of the time.
    pub(in crate::results) share: f64,
}

/// Why that cannot be said.
enum Not {
    Irrelevant,
    Unknown(String),
}

/// What a cause that made everything wait cost, as far as nothing ended: of the time after the warm-up cut.
pub(in crate::results) fn stopped(measured: &Measured<'_>) -> Option<f64> {
    stops(measured).ok().map(|stops| stops.share).filter(|share| *share > 0.0)
}

fn stops(measured: &Measured<'_>) -> Result<Stops, Not> {
    let recording = measured.recording;
    let interval = recording.interval_ns.max(1);
    let (first, end) = ((recording.cut_ns / interval) as usize, (recording.length_ns / interval) as usize);
    // Workers that pause may do so together.
    if measured.is_virtual() || measured.operations() == 0 || measured.workload.is_some_and(pauses) {
        return Err(Not::Irrelevant);
    }
    let mut ended = vec![0_u64; end];
    for one in recording.series.iter().flat_map(|series| &series.intervals) {
        if let Some(sum) = ended.get_mut(one.index as usize) {
            *sum += one.stats.count + one.stats.errors;
        }
    }
    let ended = ended.get(first..).unwrap_or_default();
    if ended.len() < LEAST_INTERVALS {
        return Err(Not::Unknown(format!(
            "{LEAST_INTERVALS} intervals tell it: ask for a shorter `run.interval`, or measure longer"
        )));
    }
    let others: Vec<f64> = ended.iter().filter(|count| **count > 0).map(|count| *count as f64).collect();
    let usual = median(&others).unwrap_or(0.0);
    let stops: Vec<(usize, usize)> = empty(ended)
        .filter(|(from, to)| {
            let missed = (to - from) as f64 * usual;
            (to - from) as u64 * interval >= LEAST_NS && missed >= LEAST_MISSED
        })
        .collect();
    let intervals: usize = stops.iter().map(|(from, to)| to - from).sum();
    Ok(Stops { share: share(intervals as f64, ended.len() as f64), stops, usual })
}

fn detect(measured: &Measured<'_>) -> Verdict {
    let Stops { stops, usual, share: part } = match stops(measured) {
        Ok(stops) => stops,
        Err(Not::Irrelevant) => return Verdict::Irrelevant,
        Err(Not::Unknown(why)) => return Verdict::Unknown(why),
    };
    let interval = measured.recording.interval_ns.max(1);
    let first = (measured.recording.cut_ns / interval) as usize;
    let Some(&(from, to)) = stops.iter().max_by_key(|(from, to)| to - from) else { return Verdict::Clear };
    if part < LEAST_SHARE || explained(measured) {
        return Verdict::Clear;
    }
    let longest = ((to - from) as u64 * interval) as f64;
    let at = (first + from) as u64 * interval;
    let what = match stops.len() {
        1 => format!(
            "For {} nothing ended, of any worker, where {usual:.0} operations do in each {} else.",
            time(longest),
            time(interval as f64)
        ),
        several => format!(
            "{} nothing ended, of any worker, for up to {}: {} of the time, where {usual:.0} operations do in each {} else.",
            match several {
                2 => "Twice".to_owned(),
                several => format!("{several} times"),
            },
            time(longest),
            percent(part),
            time(interval as f64)
        ),
    };
    // A busy host stands still as well.
    let confidence = if is_noisy(measured) { Confidence::Possible } else { Confidence::Likely };
    Verdict::Found(
        Finding::new(confidence, what)
            .with([
                Evidence::number("times in which nothing ended", stops.len() as f64),
                Evidence::nanoseconds("the longest of them", longest),
                Evidence::number("share of the time", part),
                Evidence::number("operations in 1 interval else, median", usual),
            ])
            .between(at, at + longest as u64)
            .costs(part),
    )
}

/// Stretches without an end of any operation that others are before and behind: first and behind the last.
fn empty(ended: &[u64]) -> impl Iterator<Item = (usize, usize)> {
    let mut last: Option<usize> = None;
    let busy = ended.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, _)| at);
    let gap = move |at: usize| {
        let gap = last.map(|last| (last + 1, at)).filter(|(from, to)| to > from);
        last = Some(at);
        gap
    };
    busy.filter_map(gap)
}

/// Whether something that another finding names made all workers wait, or a busy host may have.
pub(super) fn explained(measured: &Measured<'_>) -> bool {
    waited(measured) || stored(measured, CheckKind::NoisyHost).is_some()
}

/// Whether something that another finding names made all workers wait.
pub(super) fn waited(measured: &Measured<'_>) -> bool {
    let waited = measured.rpcs().is_some_and(|(_, phase)| {
        let event = |name: &str| phase.events.get(name).copied().unwrap_or(0) > 0;
        phase.total().timeouts > 0 || event("reconnect") || event("delay")
    });
    waited
        || stood_still(measured)
        || [CheckKind::BurstAndFlush, CheckKind::LostWakeUps]
            .into_iter()
            .any(|kind| stored(measured, kind).is_some())
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;

    use super::super::made;
    use super::*;

    /// A minute in intervals of 1 s with these operations each.
    fn course(of: impl Fn(u32) -> u64) -> Recording {
        let mut recording = made::recording("read", 60.0);
        made::intervals(&mut recording, OperationKind::Read, 60, |index| (of(index), 4096, 1e6));
        recording
    }

    fn judged(of: impl Fn(u32) -> u64) -> Verdict {
        made::judge(course(of), detect)
    }

    #[test]
    fn times_in_which_nothing_ends_are_found() {
        let Verdict::Found(found) = judged(|index| if matches!(index, 20 | 21 | 40) { 0 } else { 500 })
        else {
            panic!()
        };
        assert!(
            found.what.starts_with(
                "Twice nothing ended, of any worker, for up to 2 s: 5 % of the time, where 500 operations"
            ),
            "{}",
            found.what
        );
        assert!((found.cost.unwrap().share - 0.05).abs() < 1e-9);
        assert_eq!(found.at.unwrap().interval_ns, Some((20_000_000_000, 22_000_000_000)));
        let Verdict::Found(once) = judged(|index| if (30..33).contains(&index) { 0 } else { 20 }) else {
            panic!()
        };
        assert!(once.what.starts_with("For 3 s nothing ended"), "{}", once.what);
    }

    #[test]
    fn a_slow_pace_and_the_ends_of_a_run_are_none() {
        // 1 in 60 is 1.7 % of the time.
        assert_eq!(judged(|index| if index == 20 { 0 } else { 500 }), Verdict::Clear);
        // 2 s in which 38 would have ended are two times 19, 20 are enough.
        assert!(matches!(judged(|index| if matches!(index, 20 | 40) { 0 } else { 20 }), Verdict::Found(_)));
        assert_eq!(judged(|index| if matches!(index, 20 | 40) { 0 } else { 19 }), Verdict::Clear);
        // Nothing is known of before the first and behind the last.
        assert_eq!(judged(|index| if (5..50).contains(&index) { 500 } else { 0 }), Verdict::Clear);
    }

    #[test]
    fn short_ones_are_of_the_network_or_the_host() {
        let short = |interval_ns: u64| {
            let mut recording = course(|index| if matches!(index, 20 | 40) { 0 } else { 500 });
            (recording.interval_ns, recording.length_ns) = (interval_ns, 60 * interval_ns);
            made::judge(recording, detect)
        };
        assert!(matches!(short(400_000_000), Verdict::Found(_)));
        assert_eq!(short(399_000_000), Verdict::Clear);
    }

    #[test]
    fn what_another_finding_explains_is_no_standstill() {
        let course = || course(|index| if matches!(index, 20 | 40) { 0 } else { 500 });
        let flushed = |check: CheckKind| {
            let mut results = made::study(
                "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.read]\nuse = \"random-read\"\nduration = \"1s\"\n",
            );
            made::add(&mut results, 0, vec![course()], &[]);
            results.runs[0].checks.push(made::check(check, "read", &[]));
            made::judge_run(&results, 0, &made::Traces::default(), detect)
        };
        assert_eq!(flushed(CheckKind::BurstAndFlush), Verdict::Clear);
        assert!(matches!(flushed(CheckKind::TooFewOperations), Verdict::Found(_)));
        let few = made::recording("read", 60.0);
        assert_eq!(made::judge(few, detect), Verdict::Irrelevant);
        let mut short = course();
        short.cut_ns = 51_000_000_000;
        assert!(matches!(made::judge(short, detect), Verdict::Unknown(why) if why.contains("run.interval")));
    }
}
