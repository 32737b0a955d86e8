//! Blocks that a server's journal writes for synchronous writes.

use benchmaster_record::samples::Samples;
use benchmaster_telemetry::derived::value_at;

use super::tools::{digits, ops};
use crate::prelude::*;
use crate::results::limits::server_journal::commit_ns;

const LEAST_WRITES: u64 = 200;
/// Blocks of the journal for each WRITE.
const LEAST_BLOCKS: f64 = 0.5;
/// Commits that somebody waited for, for each WRITE.
const LEAST_COMMITS: f64 = 0.02;
/// Of a sum that is known from means in whole numbers.
const MOST_ERROR: f64 = 0.25;

pub(super) const DETECTOR: Detector = Detector { id: "journal-amplification", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let written: u64 = measured.of_kind(OperationKind::Write).map(|series| series.total.count).sum();
    if written == 0 {
        return Verdict::Irrelevant;
    }
    let writes = match ops(measured, &["WRITE"]) {
        0 => written,
        over_wire => over_wire,
    };
    let journals = measured.recording.samples.iter().flat_map(|host| journals(measured, &host.samples));
    let Some(busiest) = journals.max_by(|a, b| a.blocks.total_cmp(&b.blocks)) else {
        let elsewhere = measured.rpcs().is_some();
        return if elsewhere && !measured.is_embedded() {
            Verdict::Unknown("the server's journal was not sampled: name its host (`[server] host`, or a lab's `file_system = \"ext4\"`) with `[sampling]`".into())
        } else {
            Verdict::Irrelevant
        };
    };
    let (blocks, commits) = (busiest.blocks / writes as f64, busiest.requested / writes as f64);
    if writes < LEAST_WRITES || blocks < LEAST_BLOCKS || commits < LEAST_COMMITS {
        return Verdict::Clear;
    }
    let time_share = share(busiest.commit_ns, measured.recording.length_ns as f64);
    let what = format!(
        "The server's journal wrote {} blocks for each WRITE, in {} transactions{}; committing took {} of the time.",
        digits(blocks),
        digits(busiest.transactions),
        busiest.handles.map_or_else(String::new, |handles| format!(" of {} changes each", digits(handles))),
        percent(time_share)
    );
    let finding = Finding::new(Confidence::Certain, what)
        .with([
            Evidence::number("blocks of the journal for each WRITE", blocks),
            Evidence::number("commits asked for, for each WRITE", commits),
            Evidence::number("transactions", busiest.transactions),
            Evidence::number("WRITE", writes as f64),
        ])
        .with(busiest.handles.map(|handles| Evidence::number("changes in a transaction", handles)))
        .costs(time_share);
    Verdict::Found(finding)
}

/// What a journal did while it was measured.
struct Journal {
    transactions: f64,
    requested: f64,
    blocks: f64,
    /// Changes in a transaction, where they can be told.
    handles: Option<f64>,
    commit_ns: f64,
}

fn journals(measured: &Measured<'_>, samples: &Samples) -> Vec<Journal> {
    let of = |instance: &str| {
        let counter = |metric: &str| measured.growth(samples.find("jbd2", metric, instance)?);
        // The kernel prints means since the file system was mounted, cut off to whole numbers: their sums at both ends have
        // half a unit more, and are as uncertain as that.
        let sum = |metric: &str| {
            let points =
                |metric: &str| samples.find("jbd2", metric, instance).map(|series| &series.points[..]);
            let at = |time: i64| {
                let (count, mean) = (points("transactions")?, points(metric)?);
                let within = |points: &[benchmaster_record::samples::Point]| {
                    let (first, last) = (points.first()?.time_ns, points.last()?.time_ns);
                    value_at(points, time.clamp(first, last))
                };
                Some((within(count)?, within(mean)?))
            };
            let ((before, mean_before), (after, mean_after)) =
                (at(0)?, at(measured.recording.length_ns as i64)?);
            let sum = after * (mean_after + 0.5) - before * (mean_before + 0.5);
            Some((sum.max(0.0), (after + before) / 2.0))
        };
        let transactions = counter("transactions").filter(|count| *count > 0.0)?;
        // A modelled disk counts them.
        let blocks = counter("logged_blocks").or_else(|| Some(sum("mean_logged_blocks")?.0))?;
        let handles = sum("mean_handles").filter(|(sum, error)| *error <= MOST_ERROR * *sum);
        Some(Journal {
            transactions,
            requested: counter("requested").unwrap_or(transactions),
            blocks,
            handles: handles.map(|(sum, _)| sum / transactions),
            commit_ns: commit_ns(measured, samples, instance).map_or(0.0, |(commits, mean)| commits * mean),
        })
    };
    samples.of("jbd2", "transactions").filter_map(|series| of(&series.key.instance)).collect()
}

#[cfg(test)]
mod tests {
    use benchmaster_record::recording::RpcSource;
    use benchmaster_record::samples::Kind;

    use super::super::made;
    use super::*;

    /// WRITEs, transactions, blocks of each in the measured time; before it there were 100 of 50 blocks.
    fn verdict(writes: u64, transactions: f64, blocks: f64) -> Verdict {
        let mut recording = made::recording("write", 30.0);
        made::series(&mut recording, OperationKind::Write, 65_536, &[(1_000_000, writes)]);
        made::rpcs(&mut recording, RpcSource::Kernel, "4.1", &[("WRITE", writes, 200, 0.0, 900.0)]);
        made::agents(&mut recording, 1);
        let after = 100.0 + transactions;
        let mean = ((5_000.0 + transactions * blocks) / after).floor();
        let mut add = |metric: &str, kind, from: f64, to: f64| {
            made::sample(
                &mut recording,
                "server",
                ("jbd2", metric, "sda-8"),
                kind,
                &[(-1.0, from), (0.0, from), (30.0, to)],
            );
        };
        add("transactions", Kind::Counter, 100.0, after);
        add("requested", Kind::Counter, 100.0, after);
        add("mean_logged_blocks", Kind::Gauge, 50.0, mean);
        add("mean_handles", Kind::Gauge, 19.0, 19.0);
        add("mean_commit", Kind::Gauge, 1e6, 1e6);
        made::judge(recording, detect)
    }

    #[test]
    fn blocks_of_the_measured_time_alone() {
        let Verdict::Found(found) = verdict(10_000, 5_000.0, 5.4) else { panic!() };
        assert!(
            found.what.contains(" blocks for each WRITE, in 5000 transactions of 19.5 changes"),
            "{}",
            found.what
        );
        // 2.7, from means that the kernel cuts off.
        assert!((found.evidence[0].value - 2.7).abs() < 0.15, "{:?}", found.evidence);
        assert!((found.cost.unwrap().share - 5.0 / 30.0).abs() < 1e-6);
        assert_eq!(verdict(10_000, 100.0, 5.4), Verdict::Clear);
        assert_eq!(verdict(199, 5_000.0, 5.4), Verdict::Clear);
        assert_eq!(verdict(10_000, 1_000.0, 4.0), Verdict::Clear);
        assert!(matches!(verdict(10_000, 1_000.0, 6.0), Verdict::Found(_)));
    }

    #[test]
    fn without_writes_or_journal() {
        let mut recording = made::recording("write", 1.0);
        assert_eq!(made::judge(recording.clone(), detect), Verdict::Irrelevant);
        made::series(&mut recording, OperationKind::Write, 65_536, &[(1_000_000, 300)]);
        assert_eq!(made::judge(recording.clone(), detect), Verdict::Irrelevant);
        made::rpcs(&mut recording, RpcSource::Kernel, "3", &[("WRITE", 300, 200, 0.0, 900.0)]);
        assert!(matches!(made::judge(recording, detect), Verdict::Unknown(_)));
    }
}
