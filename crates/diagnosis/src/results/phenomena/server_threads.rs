//! Threads of the server that make no difference.

use benchmaster_stats::equivalence::{Verdict, ratio_band, verdict};

use super::levels::{Axis, Point, axes, name, placed, points, rates, ratio};
use crate::prelude::*;

/// Differences that do not matter.
const BAND: f64 = 0.1;
/// Two one-sided tests at 5 %.
const CONFIDENCE: f64 = 0.9;

pub(super) const COMPARISON: Comparison = Comparison { id: "server-threads-without-effect", compare };

fn compare(whole: &Whole<'_>) -> Compared {
    let axes = axes(whole, |path| {
        let last = path.rsplit('.').next().unwrap_or(path);
        !path.starts_with("workload.") && (last == "threads" || last.contains("nfsd"))
    });
    let mut compared = Compared::nothing(!axes.is_empty());
    for axis in &axes {
        match judge(whole, axis) {
            Ok(Some(finding)) => compared.found.push(finding),
            Ok(None) => {}
            Err(why) => compared.unknown = Some(why),
        }
    }
    compared
}

fn judge(whole: &Whole<'_>, axis: &Axis<'_>) -> Result<Option<Finding>, String> {
    let responses = whole.results.study.workloads.iter().filter_map(|workload| rates(whole, &workload.name));
    let points: Vec<Point> = responses.flat_map(|response| points(whole, axis, &response, &[])).collect();
    let others =
        (1..axis.factor.levels.len()).filter(|level| points.iter().any(|point| point.level == *level));
    let mut ratios: Vec<(usize, TestInterval)> = Vec::new();
    for other in others {
        let (_, found) = ratio(&points, 0, other, CONFIDENCE)
            .ok_or("two runs or more of each number of threads tell whether it matters: more `replicates`")?;
        let interval = (found.lower, found.upper);
        match verdict(interval, interval, ratio_band(BAND)) {
            Verdict::Same => ratios.push((other, found)),
            Verdict::Changed => return Ok(None),
            Verdict::Undecided => {
                let shown = format!("{} to {}", percent(found.lower), percent(found.upper));
                return Err(format!(
                    "whether {} differ from {} is undecided (rate {shown}): more `replicates`",
                    name(axis, other),
                    name(axis, 0)
                ));
            }
        }
    }
    let widest = ratios.iter().max_by(|a, b| (a.1.upper / a.1.lower).total_cmp(&(b.1.upper / b.1.lower)));
    let Some((other, interval)) = widest.copied() else {
        return Err("runs with two numbers of threads are needed".into());
    };
    let what = format!(
        "{} threads of the server do what {} do: the rate is {} of it (90 % interval {} to {}). Something else limits.",
        axis.factor.levels.join(", "),
        name(axis, 0),
        percent(interval.value),
        percent(interval.lower),
        percent(interval.upper)
    );
    let finding = Finding::new(Confidence::Certain, what)
        .with([
            Evidence::number("rate, as a share of that at the first number", interval.value),
            Evidence::number("runs compared", points.len() as f64),
        ])
        .tested("equivalence within 10 % (two one-sided t tests), of the widest interval", None, interval);
    Ok(Some(placed(whole, finding, None, axis, other)))
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::Unit;

    use super::super::made;
    use super::*;

    fn verdict(rates: &[&[f64]]) -> Compared {
        let mut results = made::factor(
            ("write", "sequential-write"),
            "threads",
            "server.threads",
            &["8", "16"],
            "[target]\nurl = \"nfs://{server}/export\"\n",
        );
        for (level, of) in (0..).zip(rates) {
            for rate in *of {
                made::add(&mut results, level, vec![], &[("write.throughput", *rate, Unit::BytesPerSecond)]);
            }
        }
        made::compare(&results, compare)
    }

    #[test]
    fn the_same_different_and_undecided() {
        let found = verdict(&[&[20.5, 20.6, 20.4], &[20.7, 20.8, 20.6]]);
        assert!(
            found.found[0].what.contains("8, 16 threads of the server do what 8 do"),
            "{:?}",
            found.found
        );
        assert!(found.found[0].cost.is_none());
        let different = verdict(&[&[20.5, 20.6, 20.4], &[30.7, 30.8, 30.6]]);
        assert!(different.found.is_empty() && different.unknown.is_none());
        let undecided = verdict(&[&[20.5, 26.0, 16.4], &[20.7, 15.8, 27.6]]);
        assert!(undecided.found.is_empty() && undecided.unknown.unwrap().contains("replicates"));
        assert!(verdict(&[&[20.5], &[20.6]]).unknown.is_some());
    }
}
