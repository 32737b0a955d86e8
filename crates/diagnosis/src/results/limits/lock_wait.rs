//! Waiting for locks that others hold.

use benchmaster_record::recording::latency_histogram;
use benchmaster_stats::t_two_sided_p;
use hdrhistogram::Histogram;

use crate::prelude::*;

/// Fewer locks say little.
const LEAST_LOCKS: u64 = 20;
/// Share of the operations' time from which on it is worth a finding.
const LEAST_SHARE: f64 = 0.1;
/// Locks that took so many times as long as an unlock does waited.
const SLOW: u64 = 4;
/// Share of the locks that waited.
const LEAST_WAITED: f64 = 0.05;
/// The probability to see as many by chance that is taken for none.
const SIGNIFICANT: f64 = 1e-3;

pub(super) const DETECTOR: Detector = Detector { id: "lock-wait", detect };

/// Operations of a kind: number, sum of latencies, histogram.
fn all(measured: &Measured<'_>, kind: OperationKind) -> (u64, f64, Histogram<u64>) {
    let mut histogram = latency_histogram();
    let (mut count, mut sum) = (0, 0.0);
    for series in measured.of_kind(kind) {
        count += series.total.count;
        sum += series.total.sum_ns as f64;
        if let Ok(one) = series.total.latency.decode() {
            // All have the one shape.
            let _ = histogram.add(one);
        }
    }
    (count, sum, histogram)
}

fn detect(measured: &Measured<'_>) -> Verdict {
    let (locks, lock_ns, lock_latency) = all(measured, OperationKind::Lock);
    let (unlocks, unlock_ns, unlock_latency) = all(measured, OperationKind::Unlock);
    if locks < LEAST_LOCKS {
        return Verdict::Irrelevant;
    }
    if unlocks < LEAST_LOCKS {
        return Verdict::Unknown(
            "locks were not released while it was measured: nothing tells what a call alone takes".into(),
        );
    }
    let median = unlock_latency.value_at_quantile(0.5);
    let threshold = median.saturating_mul(SLOW);
    let beyond = |histogram: &Histogram<u64>| {
        let within = histogram.count_between(0, threshold);
        histogram.len().saturating_sub(within)
    };
    let (waited, slow) = (beyond(&lock_latency), beyond(&unlock_latency));
    let (waiting, slow_share) = (share(waited as f64, locks as f64), share(slow as f64, unlocks as f64));
    let p = two_proportions(waited as f64, locks as f64, slow as f64, unlocks as f64);
    let excess = (lock_ns - unlock_ns / unlocks as f64 * locks as f64).max(0.0);
    let part = share(excess, measured.operation_ns() as f64);
    if waiting < LEAST_WAITED || waiting <= slow_share || p >= SIGNIFICANT || part < LEAST_SHARE {
        return Verdict::Clear;
    }
    let (lock, unlock) = (lock_ns / locks as f64, unlock_ns / unlocks as f64);
    let refused = measured.rpc("LOCK").or_else(|| measured.rpc("NLM_LOCK")).map_or(0, |row| row.errors);
    let asked = match refused {
        0 => String::new(),
        refused => {
            format!("; the server refused {refused} calls, after each of which the client asked again")
        }
    };
    let confidence = if refused > 0 { Confidence::Certain } else { Confidence::Likely };
    let what = format!(
        "{} of the locks waited for others to release them: a lock took {} on average, an unlock {}{asked}.",
        percent(waiting),
        time(lock),
        time(unlock)
    );
    Verdict::Found(
        Finding::new(confidence, what)
            .with([
                Evidence::nanoseconds("mean time of a lock", lock),
                Evidence::nanoseconds("mean time of an unlock", unlock),
                Evidence::number("share of the locks that waited", waiting),
                Evidence::number("LOCK calls that were refused", refused as f64),
            ])
            .tested("two proportions, slow locks against slow unlocks", p, None)
            .costs(part),
    )
}

/// Two-sided p value that `a` of `n` and `b` of `m` are of one share (normal approximation with pooled share).
fn two_proportions(a: f64, n: f64, b: f64, m: f64) -> f64 {
    let pooled = (a + b) / (n + m);
    let error = (pooled * (1.0 - pooled) * (1.0 / n + 1.0 / m)).sqrt();
    if error <= 0.0 {
        return 1.0;
    }
    let z = (a / n - b / m).abs() / error;
    t_two_sided_p(z, n + m - 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchmaster_record::recording::EncodedHistogram;

    use crate::results::testing::Made;

    /// 1,000 locks and unlocks of 100 µs, of which `waited` locks took `wait_ns`.
    fn made(waited: u64, wait_ns: u64) -> Made {
        let mut made = Made::served();
        let mut series = made.recording().series.clone();
        series.truncate(2);
        for (one, kind) in series.iter_mut().zip([OperationKind::Lock, OperationKind::Unlock]) {
            let mut histogram = latency_histogram();
            let waited = if kind == OperationKind::Lock { waited } else { 0 };
            histogram.record_n(100_000, 1000 - waited).unwrap();
            histogram.record_n(wait_ns, waited).unwrap();
            one.key.operation = kind;
            one.total.count = 1000;
            one.total.sum_ns = (1000 - waited) * 100_000 + waited * wait_ns;
            one.total.latency = EncodedHistogram::encode(&histogram);
        }
        made.recording().series = series;
        made
    }

    #[test]
    fn locks_that_take_longer_than_unlocks_waited() {
        let found = made(300, 10_000_000).found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Likely);
        assert!(found.what.starts_with("30 % of the locks waited"), "{}", found.what);
        assert!(found.what.contains("a lock took 3.07 ms on average, an unlock 100 µs"), "{}", found.what);
        assert!(found.tests[0].p.unwrap() < 1e-9);
        assert!((found.cost.unwrap().share - 2.97 / 3.17).abs() < 1e-6);
        let mut refused = made(300, 10_000_000);
        let mut row = refused.rows()[0].clone();
        (row.operation, row.errors) = ("LOCK".into(), 700);
        refused.rows().push(row);
        assert_eq!(refused.found(&DETECTOR).confidence, Confidence::Certain);
    }

    #[test]
    fn free_locks_are_none() {
        assert_eq!(made(0, 1).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(49, 10_000_000).verdict(&DETECTOR), Verdict::Clear, "few");
        // 100 of them twice as slow: 10 % slower in all, which is no wait.
        assert_eq!(made(100, 200_000).verdict(&DETECTOR), Verdict::Clear, "short");
        assert_eq!(Made::served().verdict(&DETECTOR), Verdict::Irrelevant);
        let mut held = made(300, 10_000_000);
        held.recording().series.truncate(1);
        assert!(matches!(held.verdict(&DETECTOR), Verdict::Unknown(_)));
    }

    #[test]
    fn proportions_are_compared() {
        assert!((two_proportions(10.0, 100.0, 10.0, 100.0) - 1.0).abs() < 1e-9);
        // z = 1.9803, of 198 degrees of freedom.
        let p = two_proportions(20.0, 100.0, 10.0, 100.0);
        assert!((p - 0.0491).abs() < 1e-4, "{p}");
        assert_eq!(two_proportions(0.0, 10.0, 0.0, 10.0), 1.0);
    }
}
