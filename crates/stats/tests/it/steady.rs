//! How often a steady series is called "not steady", by simulation with fixed seeds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panic")]

use benchmaster_stats::random::Generator;
use benchmaster_stats::steady::mser5;

/// Lengths of the series; 60 is the number of intervals of a run unless the study says otherwise.
const LENGTHS: [usize; 10] = [10, 20, 30, 49, 50, 60, 100, 200, 300, 600];

/// Share of steady series that are called "not steady", in percent.
fn false_alarms(length: usize, memory: f64, trials: u32) -> f64 {
    let mut draw = Generator::new(length as u64, "steady series");
    let mut alarms = 0u32;
    for _ in 0..trials {
        let mut last = draw.normal();
        let series: Vec<f64> = (0..length)
            .map(|_| {
                last = memory * last + (1.0 - memory * memory).sqrt() * draw.normal();
                100.0 + 10.0 * last
            })
            .collect();
        alarms += u32::from(mser5(&series).is_some_and(|found| !found.steady));
    }
    100.0 * f64::from(alarms) / f64::from(trials)
}

#[test]
fn steady_series_are_called_so() {
    for length in [10, 49, 50, 60, 200] {
        let share = false_alarms(length, 0.0, 500);
        assert!(share <= 2.0, "{length}: {share} %");
    }
}

/// The table of docs/metrics.md.
#[test]
#[ignore = "full tier: 600,000 series"]
fn the_documented_rate_of_false_alarms() {
    let documented = std::fs::read_to_string("../../docs/metrics.md").unwrap();
    let mut missing = String::new();
    for length in LENGTHS {
        let shares = [0.0, 0.3, 0.6].map(|memory| false_alarms(length, memory, 20_000));
        assert!(shares[0] <= 2.0, "{length}: {shares:?}");
        let cells = shares.map(|share| format!("{share:.2} %"));
        let line = format!("| {length} | {} |", cells.join(" | "));
        if !documented.contains(&line) {
            missing += &format!("{line}\n");
        }
    }
    assert!(missing.is_empty(), "docs/metrics.md lacks\n{missing}");
}
