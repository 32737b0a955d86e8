//! A client whose share changes in the middle of a run.

use benchmaster_stats::change::{EDivisive, e_divisive};
use benchmaster_stats::standard_deviation;

use super::clients::course;
use super::tools::{digits, p_text};
use super::transmit_queues::Hashed;
use crate::prelude::*;

/// Parts of the time in which all clients are at work.
const PARTS: usize = 40;
/// Fewest of them on each side.
const LEAST_PARTS: usize = 6;
/// Leaving a queue of two for one's own, among four used queues instead of three, gives 1.5 times the share.
const LEAST_RATIO: f64 = 1.4;
/// Variation of each side, and of the sum over all clients: steady before and after, and the whole stays what it was.
const MOST_VARIATION: f64 = 0.15;
const MOST_CHANGE_OF_ALL: f64 = 0.15;
const MOST_P: f64 = 0.01;

pub(super) const DETECTOR: Detector = Detector { id: "rehash", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let mut clients: Vec<u32> = measured.recording.workers.iter().map(|worker| worker.client).collect();
    clients.dedup();
    let moved: u64 = measured.recording.series.iter().map(|series| series.total.bytes).sum();
    if clients.len() < 2 || moved == 0 {
        return Verdict::Irrelevant;
    }
    let Some(course) = course(measured, PARTS) else {
        return Verdict::Unknown(
            "what each client did over time is not known: `trace = true` in the workload, or clients on hosts of their own with `[sampling]`".into(),
        );
    };
    let all: Vec<f64> = (0..PARTS).map(|part| course.iter().map(|(_, of)| of[part]).sum()).collect();
    if all.iter().any(|sum| *sum <= 0.0) {
        // Work that stands still, or is too little for so many parts.
        return Verdict::Clear;
    }
    let judged = course.iter().filter_map(|(client, of)| {
        let shares: Vec<f64> = of.iter().zip(&all).map(|(part, all)| part / all).collect();
        Some((*client, change(&shares, &all)?))
    });
    let judged: Vec<(u32, Change)> = judged.collect();
    // E-divisive has tested each client; Holm's rule over all of them.
    let limit = MOST_P / course.len() as f64;
    let worst = judged
        .into_iter()
        .filter(|(_, change)| change.p <= limit.max(SMALLEST_P))
        .max_by(|a, b| a.1.ratio().total_cmp(&b.1.ratio()));
    match worst {
        Some((client, change)) => Verdict::Found(finding(measured, client, &change)),
        None => Verdict::Clear,
    }
}

/// With so many permutations no p is smaller.
const SMALLEST_P: f64 = 1.0 / 1000.0;

struct Change {
    part: usize,
    before: f64,
    after: f64,
    p: f64,
}

impl Change {
    fn ratio(&self) -> f64 {
        let ratio = self.after / self.before;
        ratio.max(1.0 / ratio)
    }
}

fn change(shares: &[f64], all: &[f64]) -> Option<Change> {
    let found = e_divisive(shares, &EDivisive { min_segment: LEAST_PARTS, ..EDivisive::default() }).ok()?;
    let [point] = found.points[..] else { return None };
    let steady = |part: &[f64]| {
        let mean = benchmaster_stats::mean(part).unwrap_or(0.0);
        standard_deviation(part).is_some_and(|deviation| deviation <= MOST_VARIATION * mean)
    };
    let mean = |part: &[f64]| benchmaster_stats::mean(part).unwrap_or(0.0);
    let of_all = mean(&all[point.index..]) / mean(&all[..point.index]);
    let change = Change { part: point.index, before: point.mean_before, after: point.mean_after, p: point.p };
    let is = change.ratio() >= LEAST_RATIO
        && steady(&shares[..point.index])
        && steady(&shares[point.index..])
        && (of_all.max(1.0 / of_all) - 1.0) <= MOST_CHANGE_OF_ALL;
    is.then_some(change)
}

fn finding(measured: &Measured<'_>, client: u32, change: &Change) -> Finding {
    let workers = &measured.recording.workers;
    let start = workers.iter().map(|worker| worker.start_ns).max().unwrap_or(0);
    let end = workers.iter().map(|worker| worker.end_ns).min().unwrap_or(measured.recording.length_ns);
    let at = start + end.saturating_sub(start) / PARTS as u64 * change.part as u64;
    let (from, to, low) = if change.after > change.before {
        (0, at, change.part as f64 / PARTS as f64)
    } else {
        (at, measured.recording.length_ns, 1.0 - change.part as f64 / PARTS as f64)
    };
    let seen = Hashed::of(measured.recording);
    let (how, confidence) =
        match seen.as_ref().map(|seen| seen.hashed_again_near(at, measured.recording.length_ns)) {
            Some(true) => ("connections were hashed to other transmit queues then", Confidence::Certain),
            Some(false) => ("though no connection went to another transmit queue then", Confidence::Possible),
            None => ("its connection went to another queue", Confidence::Likely),
        };
    let what = format!(
        "After {:.0} s client {} gets {} of what all clients move instead of {} ({} to 1, {}), while all together move as much as before: {how}.",
        at as f64 / 1e9,
        client + 1,
        percent(change.after),
        percent(change.before),
        digits(change.ratio()),
        p_text(change.p)
    );
    Finding::new(confidence, what)
        .with([
            Evidence::number("share before", change.before),
            Evidence::number("share after", change.after),
            Evidence::nanoseconds("time of the change", at as f64),
        ])
        .tested(
            "E-divisive, this client's share of all",
            (confidence != Confidence::Certain).then_some(change.p),
            None,
        )
        .costs((1.0 - 1.0 / change.ratio()) * low)
        .of_clients([client.to_string()])
        .between(from, to)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::samples::Kind;

    use super::super::made;
    use super::*;

    /// Rates in MB/s of clients over 300 s: before and after a time.
    fn verdict(before: &[f64], after: &[f64], at: f64) -> Verdict {
        let mut recording = made::recording("read", 300.0);
        made::series(&mut recording, OperationKind::Read, 65_536, &[(1_000_000, 100_000)]);
        made::workers(&mut recording, before);
        made::agents(&mut recording, before.len() as u32);
        for (client, (before, after)) in before.iter().zip(after).enumerate() {
            let mut sum = 0.0;
            let points: Vec<(f64, f64)> = (0..=300)
                .map(|second| {
                    let wobble = 1.0 + 0.04 * f64::from((second * 37 + client as i32 * 11) % 17 - 8) / 8.0;
                    sum += wobble * 1e6 * if f64::from(second) < at { before } else { after };
                    (f64::from(second), sum)
                })
                .collect();
            made::sample(
                &mut recording,
                &format!("c{}", client + 1),
                ("net", "rx_bytes", "eth0"),
                Kind::Counter,
                &points,
            );
        }
        made::judge(recording, detect)
    }

    #[test]
    fn a_client_that_goes_to_a_queue_of_its_own() {
        let Verdict::Found(found) =
            verdict(&[28.0, 28.0, 28.0, 14.0, 14.0], &[22.5, 22.5, 22.5, 22.5, 22.5], 200.0)
        else {
            panic!()
        };
        assert!(found.what.contains("client 4") || found.what.contains("client 5"), "{}", found.what);
        let at = found.at.unwrap();
        assert_eq!(at.interval_ns.unwrap().0, 0);
        assert!((at.interval_ns.unwrap().1 as f64 / 1e9 - 200.0).abs() < 10.0);
    }

    #[test]
    fn steady_shares_and_changes_of_all_are_none() {
        let alike = [22.5; 5];
        assert_eq!(verdict(&alike, &alike, 150.0), Verdict::Clear);
        assert_eq!(
            verdict(&[28.0, 28.0, 28.0, 14.0, 14.0], &[28.0, 28.0, 28.0, 14.0, 14.0], 150.0),
            Verdict::Clear
        );
        // All of them become slower, or one goes without the others getting what it leaves.
        assert_eq!(verdict(&alike, &[11.0; 5], 150.0), Verdict::Clear);
        assert_eq!(verdict(&alike, &[22.5, 22.5, 22.5, 22.5, 1.0], 150.0), Verdict::Clear);
        assert!(matches!(made::judge(made::recording("read", 1.0), detect), Verdict::Irrelevant));
    }
}
