//! A version of the protocol that needs more calls for the same work.

use benchmaster_analysis::counts;

use super::levels::{Axis, Point, axes, name, placed, points, ratio, runs_at};
use super::tools::{digits, p_text};
use crate::prelude::*;

/// Calls for each operation, as a multiple.
const LEAST: f64 = 1.2;
const MOST_P: f64 = 0.01;

pub(super) const COMPARISON: Comparison = Comparison { id: "talkative-version", compare };

fn compare(whole: &Whole<'_>) -> Compared {
    let candidates = axes(whole, |_| true).into_iter().filter_map(|axis| {
        let versions: Option<Vec<NfsVersion>> =
            (0..axis.factor.levels.len()).map(|level| version(whole, &axis, level)).collect();
        Some((axis, versions?))
    });
    let differing: Vec<_> =
        candidates.filter(|(_, versions)| versions.iter().any(|version| *version != versions[0])).collect();
    let mut compared = Compared::nothing(!differing.is_empty());
    for (axis, versions) in &differing {
        let of = |four: bool| move |level: &usize| versions[*level].has_state() == four;
        let olds: Vec<usize> = (0..versions.len()).filter(of(false)).collect();
        for new in (0..versions.len()).filter(of(true)) {
            for workload in &whole.results.study.workloads {
                let points = points(whole, axis, &format!("{}.rpcs_per_operation", workload.name), &[]);
                let found =
                    olds.iter().filter_map(|old| judge(whole, axis, &points, (*old, new), &workload.name));
                compared.found.extend(found.max_by(|a, b| a.share().total_cmp(&b.share())));
            }
        }
    }
    compared
}

/// The version that all runs of a level used.
fn version(whole: &Whole<'_>, axis: &Axis<'_>, level: usize) -> Option<NfsVersion> {
    let runs = runs_at(whole, axis, level).filter(|run| counts(run));
    let rpcs = runs.flat_map(|run| &run.recordings).filter_map(|recording| recording.rpc.as_ref());
    let mut versions: Vec<Option<NfsVersion>> = rpcs.map(|rpc| rpc.connection.version).collect();
    versions.dedup();
    match versions[..] {
        [version] => version,
        _ => None,
    }
}

fn judge(
    whole: &Whole<'_>,
    axis: &Axis<'_>,
    points: &[Point],
    (old, new): (usize, usize),
    workload: &str,
) -> Option<Finding> {
    let (slope, interval) = ratio(points, old, new, 0.95)?;
    if interval.value < LEAST || slope.p() > MOST_P {
        return None;
    }
    let state = state_calls(whole, axis, new, workload);
    let what = format!(
        "With {} each operation takes {} times as many calls as with {} (95 % interval {} to {}; {}); {} of them open and close files.",
        name(axis, new),
        digits(interval.value),
        name(axis, old),
        digits(interval.lower),
        digits(interval.upper),
        p_text(slope.p()),
        percent(state)
    );
    let finding = Finding::new(Confidence::Certain, what)
        .with([
            Evidence::number("calls for each operation, ratio", interval.value),
            Evidence::number("OPEN and CLOSE, of all calls of version 4", state),
        ])
        .tested("t test of ln(calls for each operation), within the other factors", slope.p(), interval)
        .costs(1.0 - 1.0 / interval.value);
    Some(placed(whole, finding, Some(workload), axis, new))
}

/// The share of OPEN and CLOSE in the calls of a level.
fn state_calls(whole: &Whole<'_>, axis: &Axis<'_>, level: usize, workload: &str) -> f64 {
    let of_workload = runs_at(whole, axis, level)
        .flat_map(|run| &run.recordings)
        .filter(|recording| recording.workload == workload);
    let phases = of_workload.filter_map(|recording| recording.rpc.as_ref()?.phase(Phase::Measure));
    let (mut state, mut all) = (0, 0);
    for row in phases.flat_map(|phase| &phase.rows) {
        all += row.ops;
        state += if row.operation.starts_with("OPEN") || row.operation == "CLOSE" { row.ops } else { 0 };
    }
    share(state as f64, all as f64)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::recording::RpcSource;
    use benchmaster_record::results::Unit;

    use super::super::made;
    use super::*;

    fn verdict(calls: [&[f64]; 2]) -> Compared {
        let mut results = made::factor(
            ("write", "sequential-write"),
            "version",
            "target.version",
            &["\"3\"", "\"4.1\""],
            "[target]\nurl = \"nfs://{server}/export\"\n",
        );
        for (level, (version, of)) in ["3", "4.1"].into_iter().zip(calls).enumerate() {
            for each in of {
                let mut recording = made::recording("write", 1.0);
                made::rpcs(
                    &mut recording,
                    RpcSource::Client,
                    version,
                    &[("OPEN", 20, 0, 0.0, 1.0), ("CLOSE", 20, 0, 0.0, 1.0), ("WRITE", 60, 0, 0.0, 1.0)],
                );
                made::add(
                    &mut results,
                    level as u32,
                    vec![recording],
                    &[("write.rpcs_per_operation", *each, Unit::Ratio)],
                );
            }
        }
        made::compare(&results, compare)
    }

    #[test]
    fn more_calls_for_the_same_work() {
        let found = verdict([&[1.0, 1.01, 0.99], &[1.6, 1.61, 1.59]]);
        let [finding] = &found.found[..] else { panic!("{found:?}") };
        assert!(
            finding.what.starts_with("With 4.1 each operation takes 1.60 times as many calls as with 3"),
            "{}",
            finding.what
        );
        assert!(finding.what.ends_with("40 % of them open and close files."), "{}", finding.what);
        assert!(verdict([&[1.0, 1.01, 0.99], &[1.18, 1.19, 1.17]]).found.is_empty());
        assert!(verdict([&[1.0, 2.0, 0.7], &[1.6, 1.0, 2.4]]).found.is_empty());
        // Fewer.
        assert!(verdict([&[1.6, 1.61, 1.59], &[1.0, 1.01, 0.99]]).found.is_empty());
    }
}
