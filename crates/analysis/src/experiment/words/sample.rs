//! What is said of one sample, and of two.

use benchmaster_stats::bootstrap::LEAST_RELIABLE;
use benchmaster_stats::steady::{MSER_BATCH, MSER_LEAST};
use benchmaster_units::format::{decimals_for, fixed, percent, plain, plural};

use crate::experiment::estimate::p_text;
use crate::experiment::sample::{Sample, TwoGroups};

/// Two samples compared with each other.
pub(super) fn groups(found: &TwoGroups) -> Vec<String> {
    let mut all = Vec::new();
    let names = format!("{} minus {}", found.first.level, found.second.level);
    if let Some(welch) = found.welch {
        all.push(format!(
            "Welch's test of the means, {names}: {} ({} to {}), t = {:.4} with {:.2} degrees of freedom, p {}.",
            plain(welch.difference),
            plain(welch.interval[0]),
            plain(welch.interval[1]),
            welch.t,
            welch.df,
            p_text(welch.p)
        ));
    }
    if let Some(rank) = found.mann_whitney {
        all.push(format!(
            "Mann-Whitney test: U = {}, p {} ({}); the values of {} are shifted by {} ({} to {}) against those of {}.",
            rank.u,
            p_text(rank.p),
            rank.method,
            found.first.level,
            plain(rank.shift),
            plain(rank.shift_interval[0]),
            plain(rank.shift_interval[1]),
            found.second.level,
        ));
        if rank.smallest_p > 0.05 {
            all.push(format!(
                "With {} and {} runs no rank test can reach 0.05: its smallest p is {:.2}; add runs.",
                found.first.n, found.second.n, rank.smallest_p
            ));
        }
    }
    all
}

/// The sentences about one sample.
pub(in crate::experiment) fn sentences(sample: &Sample, confidence: f64) -> Vec<String> {
    let level = percent(confidence);
    let mut all = Vec::new();
    let mean = if sample.log { "geometric mean" } else { "mean" };
    all.push(match (sample.interval, sample.correlation) {
        (Some([low, high]), None) => format!(
            "The {mean} of {} is {} ({level} interval {} to {}, Student's t with {} degrees of freedom{}).",
            plural(sample.n, "value"),
            plain(sample.mean),
            plain(low),
            plain(high),
            sample.n - 1,
            if sample.log { ", of the logarithms" } else { "" }
        ),
        (Some([low, high]), Some(found)) => format!(
            "The {mean} of {} is {} ({level} interval {} to {}). Each value resembles the one before (correlation {:.2}, p {}), \
             so that they say no more about the mean than {} independent ones, and the interval takes that into account; \
             all other intervals take values as independent and are too narrow.",
            plural(sample.n, "value"),
            plain(sample.mean),
            plain(low),
            plain(high),
            found.lag_1,
            p_text(found.p),
            fixed(found.effective_n, decimals_for(found.effective_n, 2)),
        ),
        (None, _) => format!("One value, {}: it tells nothing about the spread between runs.", plain(sample.mean)),
    });
    if sample.missing > 0 {
        all.push(format!(
            "{} missing and left out.",
            if sample.missing == 1 { "1 value is".into() } else { format!("{} values are", sample.missing) }
        ));
    }
    all.push(match sample.median_interval {
        Some([low, high]) => format!(
            "The median is {} (at least {level}: {} to {}, by ranks).",
            plain(sample.median),
            plain(low),
            plain(high)
        ),
        None => format!(
            "The median is {}; {} too few for an interval of it.",
            plain(sample.median),
            match sample.n {
                1 => "1 value is".into(),
                n => format!("{n} values are"),
            }
        ),
    });
    if let Some(boot) = sample.bootstrap.as_ref().filter(|_| sample.correlation.is_none()) {
        match (boot.reliable, boot.bca) {
            (false, _) => all
                .push(format!("Bootstrap intervals are unreliable with fewer than {LEAST_RELIABLE} values.")),
            (true, Some([low, high])) => all.push(format!(
                "The bootstrap interval of the mean (BCa, {} resamples) is {} to {}.",
                boot.resamples,
                plain(low),
                plain(high)
            )),
            (true, None) => {}
        }
    }
    if let Some(steady) = sample.steady {
        all.push(match (steady.steady, steady.cut) {
            (true, 0) => "The values are steady from the first on (MSER-5).".into(),
            (true, cut) => {
                format!("The first {cut} values are warm-up (MSER-5); those after them are steady.")
            }
            (false, _) => "The values do not become steady in their first half (MSER-5).".into(),
        });
    }
    if sample.steady.is_none() && sample.n > MSER_BATCH {
        all.push(format!(
            "{} are too few to decide whether they are steady (MSER-5 needs {MSER_LEAST}).",
            plural(sample.n, "value")
        ));
    }
    if let Some(changes) = &sample.changes {
        for change in &changes.points {
            all.push(format!(
                "The level changes at value {} from {} to {} ({:+.1} %, p {}).",
                change.index + 1,
                plain(change.mean_before),
                plain(change.mean_after),
                100.0 * change.relative,
                p_text(change.p)
            ));
        }
        if changes.points.is_empty() {
            all.push("No change of the level is seen.".into());
        }
    }
    all
}
