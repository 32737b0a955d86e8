//! Rates that fall with the number of clients, or with the size of files.

use super::levels::{Axis, Slope, axes, name, placed, points, rates, slope, typical};
use super::tools::{digits, p_text, percent};
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Evidence, Finding, Need, Remedy, Test};
use crate::results::rule::{Compared, Comparison, Whole};
use benchmaster_record::results::CheckKind;

/// From the smallest to the largest level.
const MOST_LEFT: f64 = 0.8;
/// One-sided: half of the two-sided p.
const MOST_P: f64 = 0.025;

pub(super) const CLIENTS: Comparison =
    Comparison { explanation: &WITH_CLIENTS, compare: |whole| compare(whole, &OF_CLIENTS) };

pub(super) const FILE_SIZE: Comparison =
    Comparison { explanation: &WITH_SIZE, compare: |whole| compare(whole, &OF_SIZE) };

const WITH_CLIENTS: Explanation = Explanation {
    id: "falls-with-clients",
    group: Group::Phenomenon,
    title: "The more clients, the less all of them move together",
    mechanism: "A server that is busy with one client has nothing left for a second; what is lost comes on top: each client reads on, but between the calls of one come those of others, so that sequential \
                reads become random on the server's disk, its cache holds less of each, and locks are fought for. Writes are put together by the server's memory and may stay flat.",
    formula: "least-squares slope b of ln(rate of all clients) over ln(clients), within the levels of the other factors, runs with the check `cached-reads` left out; found when b < 0 with p ≤ 0.025 \
              (one-sided) and (most / fewest clients)^b ≤ 0.8; cost = 1 − that, of the throughput",
    source: "paper 002, table of clients (reads of 2 GB: 24.8, 19.5, 12.2, 10.5 MB/s with 1, 2, 5, 10 clients; writes stay at 20.5)",
};

const WITH_SIZE: Explanation = Explanation {
    id: "falls-with-file-size",
    group: Group::Phenomenon,
    title: "The larger the files, the slower",
    mechanism: "Small files fit a cache: the client's, the server's, or a disk controller's. With larger ones more and more of the work reaches what is behind it, until the rate is that of the slowest \
                part. A step means that a cache ends there; a slope means that each byte costs more (lists that grow, fragmented space).",
    formula: "as `falls-with-clients`, over ln(file size)",
    source: "paper 002, tables of file sizes (block writes 26.3 MB/s for 100 MB, 15.7 for 1 GB; reads 177 MB/s up to 100 MB, then 16); paper 003, figures 1 and 7",
};

struct Of {
    explanation: &'static Explanation,
    wanted: fn(&str) -> bool,
    more: &'static str,
    remedy: fn() -> Remedy,
}

static OF_CLIENTS: Of = Of {
    explanation: &WITH_CLIENTS,
    wanted: |path| path == "clients.count",
    more: "clients",
    remedy: || {
        Remedy::new("Limit how many clients work at once, or give the server what is fought for: memory for its cache, readahead for each stream, more disks. See which of it the findings of the \
                     largest number of clients name.")
            .by(Need::ServerHost, "blockdev --setra 16384 /dev/DEVICE   # on the server: larger reads between which the disk moves")
            .confirmed_by("`studies/paper002-write-read.toml` before and after")
    },
};

static OF_SIZE: Of = Of {
    explanation: &WITH_SIZE,
    wanted: |path| {
        path.rsplit('.').next().is_some_and(|last| last == "file_size" || last == "size" || last == "bytes")
    },
    more: "size of the files",
    remedy: || {
        Remedy::new("Tell results with the size of the files, and measure with files beyond all caches if it is the storage that matters; more memory moves the place where it falls.")
            .by(Need::Anywhere, "file_size = \"2 × memory of client and server\"   # in the workload; run.cache = \"remount\"")
            .confirmed_by("`studies/paper002-file-size.toml` with sizes close to where it falls")
    },
};

fn compare(whole: &Whole<'_>, of: &'static Of) -> Compared {
    let axes = axes(whole, of.wanted);
    let mut compared = Compared { irrelevant: axes.is_empty(), ..Compared::default() };
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
    left: crate::finding::TestInterval,
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
    Finding::new(of.explanation, Confidence::Certain, what, (of.remedy)())
        .with([
            Evidence::per_second("rate at the least, geometric mean", ends[0]),
            Evidence::per_second("rate at the most, geometric mean", ends[1]),
            Evidence::number("rate after each doubling", doubling.value),
            Evidence::number("degrees of freedom", slope.df),
        ])
        .tested(Test {
            name: format!("regression of ln(rate) on ln({}), rate that is left", of.more),
            p: Some(slope.p() / 2.0),
            interval: Some(left),
        })
        .costs(
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
