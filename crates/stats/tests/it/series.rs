//! What the interval of the mean of a correlated series covers, by simulation with fixed seeds.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panic")]

use benchmaster_stats::interval::mean_interval;
use benchmaster_stats::random::Generator;
use benchmaster_stats::series::series_mean;

/// Share of series whose interval covers the mean, in percent: Student's, and the one that is shown.
fn covered(length: usize, memory: f64, trials: u32) -> [f64; 2] {
    let mut draw = Generator::new(length as u64, "mean of a series");
    let mut covered = [0u32; 2];
    for _ in 0..trials {
        let mut last = draw.normal();
        let series: Vec<f64> = (0..length)
            .map(|_| {
                last = memory * last + (1.0 - memory * memory).sqrt() * draw.normal();
                last
            })
            .collect();
        let student = mean_interval(&series, 0.95).unwrap();
        let student = (student.lower().unwrap(), student.upper().unwrap());
        let shown = series_mean(&series, 0.95).unwrap().map_or(student, |found| found.interval);
        for (times, (low, high)) in covered.iter_mut().zip([student, shown]) {
            *times += u32::from(low <= 0.0 && 0.0 <= high);
        }
    }
    covered.map(|times| 100.0 * f64::from(times) / f64::from(trials))
}

#[test]
fn correlated_values_widen_the_interval() {
    let [student, shown] = covered(60, 0.9, 200);
    assert!(student < 45.0 && shown > 88.0, "{student} {shown}");
    let [_, independent] = covered(60, 0.0, 200);
    assert!(independent > 90.0, "{independent}");
}

/// The table of docs/metrics.md.
#[test]
#[ignore = "full tier: 24,000 series"]
fn the_documented_coverage() {
    let documented = std::fs::read_to_string("../../docs/metrics.md").unwrap();
    let mut missing = String::new();
    for length in [20, 60, 200] {
        for memory in [0.0, 0.3, 0.6, 0.9] {
            let [student, shown] = covered(length, memory, 2_000);
            let line = format!("| {length} | {memory} | {student:.1} % | {shown:.1} % |");
            if !documented.contains(&line) {
                missing += &format!("{line}\n");
            }
        }
    }
    assert!(missing.is_empty(), "docs/metrics.md lacks\n{missing}");
}
