use proptest::prelude::*;

use super::*;

const READS: Metric<'static> = Metric::counter("reads", "1");

fn points(series: &Series) -> Vec<(i64, f64)> {
    series.points.iter().map(|point| (point.time_ns, point.value)).collect()
}

/// What is recorded of values at times 0, 10, 20, …
fn recorded(values: &[f64]) -> Vec<(i64, f64)> {
    let mut recorder = Recorder::new("test");
    for (at, value) in values.iter().enumerate() {
        recorder.reading(at as i64 * 10).put(READS, "", *value);
    }
    recorder.finish().0.first().map(points).unwrap_or_default()
}

#[test]
fn of_equal_readings_the_first_and_the_last_are_kept() {
    assert_eq!(recorded(&[]), []);
    assert_eq!(recorded(&[1.0]), [(0, 1.0)]);
    assert_eq!(recorded(&[1.0, 1.0]), [(0, 1.0), (10, 1.0)]);
    assert_eq!(
        recorded(&[1.0, 1.0, 1.0, 2.0, 3.0, 3.0]),
        [(0, 1.0), (20, 1.0), (30, 2.0), (40, 3.0), (50, 3.0)]
    );
    // What is no number is equal to itself here.
    assert_eq!(recorded(&[f64::NAN; 5]).len(), 2);
}

proptest! {
    /// Straight lines between the points that were kept pass through every reading.
    #[test]
    fn nothing_is_lost(values in prop::collection::vec(0_u8..3, 1..60)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let kept = recorded(&values);
        for (at, value) in values.iter().enumerate() {
            let time = at as i64 * 10;
            let after = kept.iter().position(|(kept, _)| *kept >= time).unwrap();
            let (to, high) = kept[after];
            let (from, low) = if to == time { (to, high) } else { kept[after - 1] };
            let between = if to == from { high } else { low + (high - low) * (time - from) as f64 / (to - from) as f64 };
            prop_assert_eq!(between, *value, "at {}", time);
        }
    }

    /// In whatever order instances come and go, each has its own values.
    #[test]
    fn instances_are_kept_apart(readings in prop::collection::vec(prop::collection::vec((0_u8..6, 0_u8..4), 0..8), 0..12)) {
        let mut recorder = Recorder::new("test");
        let mut expected = std::collections::BTreeMap::<String, Vec<(i64, f64)>>::new();
        for (time, reading) in readings.iter().enumerate() {
            let mut out = recorder.reading(time as i64);
            for (instance, value) in reading {
                let (instance, value) = (format!("i{instance}"), f64::from(*value));
                out.put(READS, &instance, value);
                let known = expected.entry(instance).or_default();
                if known.last().is_none_or(|(last, _)| *last < time as i64) {
                    known.push((time as i64, value));
                }
            }
        }
        let (series, problems) = recorder.finish();
        prop_assert!(problems.is_empty());
        prop_assert_eq!(series.len(), expected.len());
        for series in &series {
            let all = &expected[&series.key.instance];
            // The first and the last, and every change.
            let kept = points(series);
            prop_assert_eq!((kept.first(), kept.last()), (all.first(), all.last()));
            let changes = all.windows(2).filter(|pair| pair[0].1 != pair[1].1).map(|pair| pair[1]);
            for change in changes {
                prop_assert!(kept.contains(&change));
            }
            prop_assert!(kept.iter().all(|point| all.contains(point)));
        }
    }
}

#[test]
fn names_that_look_alike_are_different() {
    let mut recorder = Recorder::new("test");
    let mut out = recorder.reading(1);
    out.put(Metric::gauge("ab", "1"), "c", 1.0);
    out.put(Metric::gauge("a", "1"), "bc", 2.0);
    out.put(Metric::gauge("abc", "1"), "", 3.0);
    let values: Vec<_> = recorder.finish().0.iter().map(|series| series.points[0].value).collect();
    assert_eq!(values, [1.0, 2.0, 3.0]);
}

#[test]
fn series_and_problems_without_end_are_cut() {
    let mut recorder = Recorder::new("test");
    let mut out = recorder.reading(1);
    for number in 0..MOST_SERIES + 10 {
        out.put(READS, &number.to_string(), 1.0);
    }
    for number in 0..20 {
        out.problem(&SampleError::Other(format!("problem {number}")));
    }
    let (series, problems) = recorder.finish();
    assert_eq!((series.len(), problems.len()), (MOST_SERIES, MOST_PROBLEMS));
    assert!(problems[0].problem.contains("more than 50000 series"), "{}", problems[0].problem);
    assert!(problems[MOST_PROBLEMS - 1].problem.ends_with("(further problems are not listed)"));
}
