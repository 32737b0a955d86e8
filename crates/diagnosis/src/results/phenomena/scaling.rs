//! Rates that fall with the number of clients, or with the size of files.

use super::levels::{Axis, Slope, axes, name, placed, points, rates, slope, typical};
use super::tools::{digits, p_text};
use crate::prelude::*;

/// From the smallest to the largest level.
const MOST_LEFT: f64 = 0.8;
/// One-sided: half of the two-sided p.
const MOST_P: f64 = 0.025;

pub(super) const CLIENTS: Comparison =
    Comparison { id: "falls-with-clients", compare: |whole| compare(whole, &OF_CLIENTS) };

pub(super) const FILE_SIZE: Comparison =
    Comparison { id: "falls-with-file-size", compare: |whole| compare(whole, &OF_SIZE) };

struct Of {
    wanted: fn(&str) -> bool,
    more: &'static str,
}

static OF_CLIENTS: Of = Of { wanted: |path| path == "clients.count", more: "clients" };

static OF_SIZE: Of = Of {
    wanted: |path| {
        path.rsplit('.').next().is_some_and(|last| last == "file_size" || last == "size" || last == "bytes")
    },
    more: "size of the files",
};

fn compare(whole: &Whole<'_>, of: &'static Of) -> Compared {
    let axes = axes(whole, of.wanted);
    let mut compared = Compared::nothing(!axes.is_empty());
    let mut judged = false;
    for axis in &axes {
        let Some(values) = &axis.values else { continue };
        for workload in &whole.results.study.workloads {
            let Some(response) = rates(whole, &workload.name) else { continue };
            let points = points(whole, axis, &response, &[CheckKind::CachedReads]);
            let logs = |level: usize| values.get(level).filter(|value| **value > 0.0).map(|value| value.ln());
            let Some(slope) = slope(&points, logs) else { continue };
            judged = true;
            let levels = || points.iter().map(|point| point.level);
            let by_value = |level: &usize| values.get(*level).map_or(0, |value| *value as u64);
            let (Some(first), Some(last)) = (levels().min_by_key(by_value), levels().max_by_key(by_value))
            else {
                continue;
            };
            let (least, most) =
                (values.get(first).copied().unwrap_or(1.0), values.get(last).copied().unwrap_or(1.0));
            let left = slope.ratio((most / least).ln(), 0.95);
            if slope.value < 0.0 && slope.p() / 2.0 <= MOST_P && left.value <= MOST_LEFT {
                let ends = [first, last].map(|level| typical(&points, level).unwrap_or(0.0));
                let finding = finding(of, axis, &slope, left, [first, last], ends);
                compared.found.push(placed(whole, finding, Some(&workload.name), axis, last));
            }
        }
    }
    if !axes.is_empty() && !judged {
        compared.unknown =
            Some(format!("the {} must be numbers, with three or more runs that count", of.more));
    }
    compared
}

fn finding(
    of: &Of,
    axis: &Axis<'_>,
    slope: &Slope,
    left: TestInterval,
    at: [usize; 2],
    ends: [f64; 2],
) -> Finding {
    let what = format!(
        "From {} to {} ({}) the rate falls to {} of what it was (95 % interval {} to {}; {}).",
        name(axis, at[0]),
        name(axis, at[1]),
        of.more,
        percent(left.value),
        percent(left.lower),
        percent(left.upper),
        p_text(slope.p() / 2.0)
    );
    let doubling = slope.ratio(2f64.ln(), 0.95);
    Finding::new(Confidence::Certain, what)
        .with([
            Evidence::per_second("rate at the least, geometric mean", ends[0]),
            Evidence::per_second("rate at the most, geometric mean", ends[1]),
            Evidence::number("rate after each doubling", doubling.value),
            Evidence::number("degrees of freedom", slope.df),
        ])
        .tested(
            format!("regression of ln(rate) on ln({}), rate that is left", of.more),
            slope.p() / 2.0,
            left,
        )
        .costs_as(
            1.0 - left.value,
            CostOf::Throughput,
            format!("1 − rate that is left, {} by the fitted line", digits(left.value)),
        )
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::{StudyResults, Unit};

    use super::super::made;
    use super::*;

    fn with_clients(rates: &[&[f64]]) -> StudyResults {
        let mut results = made::factor(
            ("read", "sequential-read"),
            "clients",
            "clients.count",
            &["1", "2", "5", "10"],
            "[target]\npath = \"/mnt/x\"\n",
        );
        for (level, of) in (0..).zip(rates) {
            for rate in *of {
                made::add(&mut results, level, vec![], &[("read.throughput", *rate, Unit::BytesPerSecond)]);
            }
        }
        results
    }

    #[test]
    fn falling_flat_and_rising() {
        let found = made::compare(
            &with_clients(&[&[24.0, 25.0], &[19.0, 20.0], &[12.0, 12.5], &[10.4, 10.6]]),
            CLIENTS.compare,
        );
        let [finding] = &found.found[..] else { panic!("{found:?}") };
        assert!(finding.what.starts_with("From 1 to 10 (clients) the rate falls to "), "{}", finding.what);
        assert!(finding.tests[0].p.unwrap() < 0.001);
        assert_eq!(finding.at.as_ref().unwrap().treatments[0].treatment, 3);
        for flat in [&[20.4, 20.5, 20.6, 20.3][..], &[20.0, 39.0, 80.0, 110.0], &[20.0, 19.0, 18.0, 17.0]] {
            let rates: Vec<Vec<f64>> = flat.iter().map(|rate| vec![*rate, rate * 1.02]).collect();
            let rates: Vec<&[f64]> = rates.iter().map(|of| &of[..]).collect();
            let compared = made::compare(&with_clients(&rates), CLIENTS.compare);
            assert!(compared.found.is_empty() && compared.unknown.is_none(), "{compared:?}");
        }
        // Noise that happens to fall.
        assert!(
            made::compare(
                &with_clients(&[&[10.0, 30.0], &[28.0, 9.0], &[7.0, 25.0], &[8.0, 20.0]]),
                CLIENTS.compare
            )
            .found
            .is_empty()
        );
    }

    #[test]
    fn without_the_factor_or_without_runs() {
        assert!(made::compare(&with_clients(&[]), FILE_SIZE.compare).irrelevant);
        let none = made::compare(&with_clients(&[&[10.0], &[9.0]]), CLIENTS.compare);
        assert!(none.unknown.is_some() && none.found.is_empty());
    }
}
