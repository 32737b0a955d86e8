//! Operations that stood still until TCP sent a lost segment again.

use benchmaster_stats::share::at_least;

use crate::prelude::*;
use crate::results::account::is_loopback;
use crate::results::slow::together;

pub(super) const DETECTOR: Detector = Detector { id: "tcp-stalls", detect };

const TIMEOUT_NS: u64 = 200_000_000;
const SLACK_NS: u64 = 30_000_000;
const LEAST: u64 = 3;
const LEVEL: f64 = 0.01;
/// Share of slow operations that are there by chance.
const CHANCE: f64 = 0.2;
/// Segments sent again for each stall, at least: half of them are sent by the server, which may not be sampled.
const LEAST_AGAIN: f64 = 1.0 / 3.0;
/// Times the median from which on an operation was held up.
const HELD_TIMES: u64 = 5;

fn detect(measured: &Measured<'_>) -> Verdict {
    if measured.rpcs().is_none() {
        return Verdict::Irrelevant;
    }
    // Packets of a lab that were not lost are told of elsewhere.
    if stored(measured, CheckKind::LostWakeUps).is_some() {
        return Verdict::Clear;
    }
    let Some(again) = sent_again(measured) else {
        return Verdict::Unknown("segments that TCP sent again were not counted: `[sampling]` with the samplers `tcp_info` and `net`".into());
    };
    if no_timeout(measured) {
        return Verdict::Clear;
    }
    let round_trip = measured.network().map_or(0, |network| 2 * network.delay_ns);
    let allowed = SLACK_NS + 2 * round_trip;
    let (mut stalls, mut slow, mut count) = (0, 0, 0);
    for series in &measured.recording.series {
        let Ok(latency) = series.total.latency.decode() else { continue };
        if latency.is_empty() || latency.value_at_quantile(0.9) > TIMEOUT_NS / 4 + 4 * round_trip {
            continue;
        }
        count += latency.len();
        for bucket in latency.iter_recorded() {
            let (at, times) = (bucket.value_iterated_to(), bucket.count_at_value());
            if at < TIMEOUT_NS * 3 / 4 {
                continue;
            }
            slow += times;
            let steps = (0..8).map(|doubled| TIMEOUT_NS << doubled);
            // A bucket is 1 % wide.
            let near = |step: u64| at >= step - step / 50 && at <= step + step / 50 + allowed;
            stalls += if steps.into_iter().any(near) { times } else { 0 };
        }
    }
    let p = at_least(stalls, slow, CHANCE);
    if stalls < LEAST || p >= LEVEL || again < stalls as f64 * LEAST_AGAIN {
        return Verdict::Clear;
    }
    let waited = stalls as f64 * TIMEOUT_NS as f64;
    let part = share(waited, measured.operation_ns() as f64);
    let what = format!(
        "{stalls} of {count} operations took 200 ms or a multiple of it, TCP's timeout before it sends a lost segment again ({again:.0} \
                 segments were): {} of the time of all operations.",
        percent(part)
    );
    Verdict::Found(
        Finding::new(Confidence::Likely, what)
            .with([
                Evidence::number("operations of 200 ms or a power of two times that", stalls as f64),
                Evidence::number("operations of more than 150 ms", slow as f64),
                Evidence::number("segments that TCP sent again", again),
            ])
            .tested("binomial: slow operations at TCP's timeouts, against 20 % by chance", p, None)
            .costs(part),
    )
}

/// The share of the operations' time that those took which lost segments held up: slow ones that TCP sent segments again for, up to
/// three at a time for each, since one end of the connections may not be sampled. `None` where something else made more of them
/// slow.
pub(in crate::results) fn held_by_losses(measured: &Measured<'_>) -> Option<f64> {
    let again = sent_again(measured).filter(|again| *again >= LEAST as f64)?;
    let usual = measured.usual_ns()?;
    let held = together(measured, HELD_TIMES * usual, usual);
    let is = !held.is_empty() && again >= held.len() as f64 * LEAST_AGAIN;
    let ns: u64 = held.iter().map(|one| one.sum_ns).sum();
    is.then(|| share(ns as f64, measured.operation_ns() as f64))
}

/// How much a counter of all sampled hosts grew.
fn grown(measured: &Measured<'_>, sampler: &str, metric: &str) -> Option<f64> {
    let series = measured.recording.samples.iter().flat_map(|host| host.samples.of(sampler, metric));
    series.filter_map(|series| measured.growth(series)).reduce(|a, b| a + b)
}

/// Whether both ends of the connections were sampled: networks that are emulated have namespaces of their own.
fn both_ends(measured: &Measured<'_>) -> bool {
    measured.server_host().is_some() || is_loopback(measured)
}

/// Segments sent again: by the connections under test where both ends were sampled, or else by the whole host.
fn sent_again(measured: &Measured<'_>) -> Option<f64> {
    let connections = grown(measured, "tcp_info", "total_retransmitted");
    let both = both_ends(measured);
    let host = grown(measured, "net", "RetransSegs").filter(|_| !both || connections.is_none());
    connections.into_iter().chain(host).reduce(f64::max)
}

/// Whether the kernel says that no timer of a segment ran out, on all hosts that may have sent it.
fn no_timeout(measured: &Measured<'_>) -> bool {
    both_ends(measured) && grown(measured, "net", "TCPTimeouts") == Some(0.0)
}

/// Whether operations stood still until TCP sent lost segments again.
pub(in crate::results) fn stood_still(measured: &Measured<'_>) -> bool {
    matches!((DETECTOR.detect)(measured), Verdict::Found(_))
}

#[cfg(test)]
mod tests {
    use benchmaster_record::recording::{EncodedHistogram, HostSamples, latency_histogram};
    use benchmaster_record::samples::{Kind, MetricKey, Point, Series};

    use super::*;
    use crate::results::testing::Made;

    /// Fast operations, and some slow ones; so many segments sent again.
    fn made(slow_ms: &[u64], again: Option<f64>) -> Made {
        let mut made = Made::served();
        let recording = made.recording();
        let mut histogram = latency_histogram();
        histogram.record_n(1_000_000, 2000).unwrap();
        slow_ms.iter().for_each(|ms| histogram.record(ms * 1_000_000).unwrap());
        recording.series.truncate(1);
        recording.series[0].total.latency = EncodedHistogram::encode(&histogram);
        recording.series[0].total.sum_ns = 2_000_000_000 + slow_ms.iter().sum::<u64>() * 1_000_000;
        if let Some(again) = again {
            let key = MetricKey {
                sampler: "tcp_info".into(),
                metric: "total_retransmitted".into(),
                instance: "a-b".into(),
            };
            let point = |time_ns, value| Point { time_ns, value };
            let points = vec![point(0, 0.0), point(recording.length_ns as i64, again)];
            let mut host = HostSamples { agent: "c1".into(), ..HostSamples::default() };
            host.samples.series.push(Series { key, kind: Kind::Counter, unit: "1".into(), points });
            recording.samples = vec![host];
        }
        made
    }

    #[test]
    fn latencies_at_the_timeout_tell_where_segments_were_sent_again() {
        let found = made(&[202, 204, 203, 408, 205], Some(6.0)).found(&DETECTOR);
        assert!(found.what.starts_with("5 of 2005 operations"), "{}", found.what);
        assert!((found.cost.unwrap().share - 1.0 / 3.222).abs() < 0.01);
        // Slow ones elsewhere, too few, or none sent again.
        assert_eq!(made(&[160, 202, 270, 300, 330, 350], Some(6.0)).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(&[202, 203], Some(6.0)).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(&[202, 204, 203, 408, 205], Some(0.0)).verdict(&DETECTOR), Verdict::Clear);
        // Of six stalls two segments tell, of seven not: the rest waited for something else that takes 200 ms.
        let waits = [202, 204, 203, 408, 205, 201, 203];
        assert!(matches!(made(&waits[..6], Some(2.0)).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(made(&waits, Some(2.0)).verdict(&DETECTOR), Verdict::Clear);
        assert!(matches!(made(&[202, 204, 203, 408], None).verdict(&DETECTOR), Verdict::Unknown(_)));
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
