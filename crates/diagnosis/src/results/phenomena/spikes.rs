//! Single calls that take far longer, again and again after as many calls.

use std::collections::BTreeMap;

use benchmaster_stats::latency::{Spikes, spikes};
use benchmaster_stats::random::Generator;
use benchmaster_stats::{mean, standard_deviation};

use super::counted::counted;
use super::tools::digits;
use crate::prelude::*;

/// Times the median.
const TIMES: f64 = 10.0;
/// Nanoseconds.
const LEAST_NS: u64 = 1_000_000;
/// Spikes of one worker: with exponential gaps, seven of them vary by less than 0.3 once in thousands.
const LEAST_SPIKES: usize = 8;
/// Calls from one to the next.
const LEAST_GAP: f64 = 4.0;
/// What they do to the mean.
const LEAST_INFLATION: f64 = 1.1;
/// From 1 to 32 ms.
const LIMITS: u32 = 6;
const MOST_P: f64 = 0.02;
/// Calls that are looked at, the first ones: 24 bytes each.
const MOST_CALLS: usize = 300_000;

pub(super) const DETECTOR: Detector = Detector { id: "periodic-spikes", detect };

/// Latencies and bytes of the calls of one worker in one series.
#[derive(Default)]
struct Calls {
    calls: Vec<(u64, u64, u32)>,
}

fn detect(measured: &Measured<'_>) -> Verdict {
    if measured.operations() == 0 {
        return Verdict::Irrelevant;
    }
    let mut of: BTreeMap<(u16, u32), Calls> = BTreeMap::new();
    let mut kept = 0;
    let read = measured.trace(&mut |batch| {
        for call in batch.iter().filter(|call| call.error == 0) {
            if kept < MOST_CALLS {
                kept += 1;
                of.entry((call.series, call.worker)).or_default().calls.push((
                    call.start_ns,
                    call.latency_ns,
                    call.bytes,
                ));
            }
        }
    });
    match read {
        None => return counted(measured),
        Some(Err(why)) => return Verdict::Unknown(format!("the trace cannot be read: {why}")),
        Some(Ok(())) => {}
    }
    let found = of.iter_mut().filter_map(|((series, _), calls)| Some((*series, periodic(calls)?)));
    let by_series = found.fold(BTreeMap::<u16, Vec<Found>>::new(), |mut all, (series, found)| {
        all.entry(series).or_default().push(found);
        all
    });
    let lost = |found: &[Found]| found.iter().map(|found| found.spike_ns).sum::<f64>();
    let worst = by_series.into_iter().max_by(|a, b| lost(&a.1).total_cmp(&lost(&b.1)));
    match worst {
        Some((series, found)) => Verdict::Found(finding(measured, series, &found)),
        None => Verdict::Clear,
    }
}

/// Periodic spikes of one worker.
struct Found {
    spikes: Spikes,
    gap: f64,
    variation: f64,
    bytes: f64,
    spike_ns: f64,
    p: f64,
}

fn periodic(calls: &mut Calls) -> Option<Found> {
    calls.calls.sort_unstable_by_key(|(start, ..)| *start);
    let latencies: Vec<u64> = calls.calls.iter().map(|(_, latency, _)| *latency).collect();
    // What is slow for other reasons stands between the spikes: they are looked for above higher and higher limits, and the
    // p value is that of the best of so many.
    let limits = (0..LIMITS).map(|doublings| LEAST_NS << doublings);
    let regular_ones = limits.filter_map(|limit| {
        let spikes = spikes(&latencies, TIMES, limit)?;
        let spacing = spikes.spacing.filter(|spacing| spacing.periodic && spacing.median_gap >= LEAST_GAP)?;
        let p = (regular(spikes.slow_calls - 1, spacing.variation) * f64::from(LIMITS)).min(1.0);
        let is = spikes.slow_calls >= LEAST_SPIKES && spikes.inflation >= LEAST_INFLATION && p <= MOST_P;
        is.then_some((spikes, spacing, p))
    });
    let (spikes, spacing, p) = regular_ones.max_by_key(|(spikes, ..)| spikes.slow_calls)?;
    let bytes: f64 =
        calls.calls.iter().map(|(.., bytes)| f64::from(*bytes)).sum::<f64>() / latencies.len() as f64;
    Some(Found {
        gap: spacing.median_gap,
        variation: spacing.variation,
        bytes: bytes * spacing.median_gap,
        spike_ns: spikes.mean_of_slow_ns? * spikes.slow_calls as f64,
        p,
        spikes,
    })
}

/// How likely so many gaps between events that come by chance, which are exponential, vary by so little.
fn regular(gaps: usize, variation: f64) -> f64 {
    const DRAWS: usize = 2_000;
    let mut random = Generator::new(gaps as u64, "gaps");
    let as_regular = (0..DRAWS).filter(|_| {
        let drawn: Vec<f64> = (0..gaps).map(|_| -random.uniform().ln()).collect();
        let (deviation, mean) = (standard_deviation(&drawn).unwrap_or(1.0), mean(&drawn).unwrap_or(1.0));
        deviation <= variation * mean
    });
    (as_regular.count() + 1) as f64 / (DRAWS + 1) as f64
}

fn finding(measured: &Measured<'_>, series: u16, found: &[Found]) -> Finding {
    let label = measured.recording.series.get(usize::from(series)).map_or("call", |series| &series.key.label);
    let sum = |of: fn(&Found) -> f64| found.iter().map(of).sum::<f64>();
    let median = |of: fn(&Found) -> f64| {
        benchmaster_stats::median(&found.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0)
    };
    let (calls, slow) = (sum(|f| f.spikes.calls as f64), sum(|f| f.spikes.slow_calls as f64));
    let (mean, without) = (
        sum(|f| f.spikes.mean_ns * f.spikes.calls as f64) / calls,
        sum(|f| f.spikes.mean_without_ns * (f.spikes.calls - f.spikes.slow_calls) as f64) / (calls - slow),
    );
    let (gap, bytes, spike) = (median(|f| f.gap), median(|f| f.bytes), sum(|f| f.spike_ns) / slow);
    let p = median(|f| f.p);
    let after = if bytes >= 1.0 { format!(" ({})", size(bytes)) } else { String::new() };
    let what = format!(
        "Every {gap:.0} calls{after} a {label} takes {}: {slow:.0} of {calls:.0} calls, which raise the mean from {} to {} ({} times). The others do not show it.",
        time(spike),
        time(without),
        time(mean),
        digits(mean / without)
    );
    let name = "events by chance have gaps as regular (simulated)".to_owned();
    Finding::new(Confidence::Certain, what)
        .with([
            Evidence::number("calls from spike to spike, median", gap),
            Evidence::bytes("bytes from spike to spike", bytes),
            Evidence::number(
                "variation of the calls between (standard deviation / mean)",
                median(|f| f.variation),
            ),
            Evidence::number("slow calls", slow),
            Evidence::number("share of the calls that are slow", slow / calls),
            Evidence::nanoseconds("mean latency", mean),
            Evidence::nanoseconds("mean latency without them", without),
            Evidence::nanoseconds("mean latency of slow calls", spike),
        ])
        .tested(name, p, None)
        .costs_as(
            (sum(|f| f.spike_ns) - slow * without) / measured.operation_ns().max(1) as f64,
            CostOf::OperationTime,
            format!(
                "time of slow calls beyond the mean of the others ({} of the calls) / time of all operations",
                percent(slow / calls)
            ),
        )
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::recording::TraceRecord;

    use super::super::made;
    use super::*;

    fn verdict(latency_ns: impl Fn(u64) -> u64, calls: u64) -> Verdict {
        let mut recording = made::recording("write", 2.0);
        let mut records = Vec::new();
        let mut start_ns = 0;
        for call in 0..calls {
            let latency_ns = latency_ns(call);
            records.push(TraceRecord {
                start_ns,
                latency_ns,
                bytes: 8192,
                offset: call * 8192,
                ..TraceRecord::default()
            });
            start_ns += latency_ns;
        }
        let latencies: Vec<_> = records.iter().map(|record| (record.latency_ns, 1)).collect();
        made::series(&mut recording, OperationKind::Write, 8192, &latencies);
        let mut traces = made::Traces::default();
        traces.0.insert("write".into(), records);
        made::judge_with(recording, &traces, detect)
    }

    #[test]
    fn every_eighty_fifth_call() {
        let Verdict::Found(found) = verdict(|call| if call % 85 == 84 { 20_000_000 } else { 140_000 }, 1_000)
        else {
            panic!()
        };
        assert!(
            found.what.starts_with("Every 85 calls (680 KiB) a write takes 20 ms: 11 of 1000 calls"),
            "{}",
            found.what
        );
        assert!(found.tests[0].p.unwrap() < 0.01, "{:?}", found.tests);
    }

    #[test]
    fn slow_calls_between_do_not_hide_them() {
        // A busy host: some calls of a few milliseconds, anywhere.
        let of = |call: u64| match call {
            _ if call % 64 == 63 => 20_000_000,
            8 | 9 | 12 | 44 | 45 | 513 | 514 | 641 | 642 | 705 => 3_000_000,
            _ => 23_000,
        };
        let Verdict::Found(found) = verdict(of, 1_024) else { panic!() };
        assert!(
            found.what.starts_with("Every 64 calls (512 KiB) a write takes 20 ms: 16 of 1024 calls"),
            "{}",
            found.what
        );
    }

    #[test]
    fn smaller_ones_between_them_do_not_hide_them() {
        let noise = |call: u64| if (call * 7919).is_multiple_of(97) { 3_000_000 } else { 140_000 };
        let found = verdict(|call| if call % 40 == 39 { 20_000_000 } else { noise(call) }, 1_000);
        assert!(matches!(found, Verdict::Found(found) if found.what.starts_with("Every 40 calls")));
    }

    #[test]
    fn what_comes_by_chance_or_does_not_matter_is_none() {
        // As many spikes, where a generator puts them.
        let chance = |call: u64| {
            if (call * 2_654_435_761 % 4_294_967_296) < 50_000_000 { 20_000_000 } else { 140_000 }
        };
        assert!((0..1000).filter(|call| chance(*call) > 1_000_000).count() >= 8);
        let clustered = |call: u64| {
            if [3, 5, 9, 14, 400, 401, 700, 702, 990, 993].contains(&call) { 20_000_000 } else { 140_000 }
        };
        assert_eq!(verdict(clustered, 1_000), Verdict::Clear);
        // Seven; below a millisecond; every third call.
        assert_eq!(
            verdict(|call| if call % 125 == 124 && call < 900 { 20_000_000 } else { 140_000 }, 1_000),
            Verdict::Clear
        );
        assert_eq!(verdict(|call| if call % 85 == 84 { 900_000 } else { 40_000 }, 1_000), Verdict::Clear);
        assert_eq!(verdict(|call| if call % 3 == 2 { 20_000_000 } else { 140_000 }, 1_000), Verdict::Clear);
    }

    #[test]
    fn without_a_trace() {
        let mut recording = made::recording("write", 2.0);
        assert_eq!(made::judge(recording.clone(), detect), Verdict::Irrelevant);
        made::series(&mut recording, OperationKind::Write, 8192, &[(100_000, 10)]);
        assert!(
            matches!(made::judge(recording, detect), Verdict::Unknown(why) if why.contains("trace = true"))
        );
    }

    #[test]
    fn chance_of_regular_gaps() {
        // Gaps of chance vary by about 1 of their mean.
        assert!(regular(20, 1.0) > 0.3 && regular(20, 1.0) < 0.8, "{}", regular(20, 1.0));
        assert!(
            regular(7, 0.3) < 0.01 && regular(20, 0.3) < 1e-3,
            "{} {}",
            regular(7, 0.3),
            regular(20, 0.3)
        );
    }
}
