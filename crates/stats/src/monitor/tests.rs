//! Rates of false alarms and of detection, by simulation: small here, and those of docs/compare.md in the second tier.

use super::*;
use crate::random::Generator;

/// How the values of a simulated series vary around their level, with standard deviation 1 or so.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    Autocorrelated(f64),
    /// Exponential: skewed to the right.
    Skewed,
    /// One in this many is an outlier of up to 8 standard deviations, downwards.
    Outliers(u64),
    /// One in five is 5 standard deviations higher.
    TwoModes,
    /// Student's t with 3 degrees of freedom.
    HeavyTails,
    /// Whole numbers.
    Counts,
}

fn series(noise: Noise, n: usize, generator: &mut Generator) -> Vec<f64> {
    let mut before = generator.normal();
    let mut value = |_| match noise {
        Noise::Normal => generator.normal(),
        Noise::Autocorrelated(phi) => {
            let now = before;
            before = phi * before + (1.0 - phi * phi).sqrt() * generator.normal();
            now
        }
        Noise::Skewed => -generator.uniform().ln(),
        Noise::Outliers(every) => {
            let value = generator.normal();
            if generator.below(every as usize) == 0 { value - 8.0 * generator.uniform() } else { value }
        }
        Noise::TwoModes => generator.normal() + if generator.below(5) == 0 { 5.0 } else { 0.0 },
        Noise::HeavyTails => {
            let squares: f64 = (0..3).map(|_| generator.normal().powi(2)).sum();
            generator.normal() / squares.sqrt()
        }
        Noise::Counts => generator.normal().round(),
    };
    (0..n).map(&mut value).collect()
}

fn watched(values: &[f64]) -> Monitored {
    monitor(values, &[], 0.05).unwrap()
}

/// Share of series without a change in which one is found within this many values.
fn false_alarms(noise: Noise, values: usize, repeats: u64) -> f64 {
    let mut alarms = 0;
    for seed in 0..repeats {
        let mut generator = Generator::new(seed, &format!("{noise:?}"));
        alarms += u64::from(!watched(&series(noise, values, &mut generator)).changes.is_empty());
    }
    alarms as f64 / repeats as f64
}

/// Shares of series in which a step of this many standard deviations after `before` values is found by the values of each of
/// `within` after it.
fn detected<const N: usize>(
    noise: Noise,
    before: usize,
    step: f64,
    within: [usize; N],
    repeats: u64,
) -> [f64; N] {
    let mut found = [0u64; N];
    let longest = within.iter().copied().max().unwrap_or(0);
    for seed in 0..repeats {
        let mut generator = Generator::new(seed, &format!("{noise:?} {before} {step}"));
        let mut values = series(noise, before + longest, &mut generator);
        values[before..].iter_mut().for_each(|value| *value -= step);
        let changes = watched(&values).changes;
        let Some(first) = changes.iter().find(|change| change.found >= before) else { continue };
        for (count, within) in found.iter_mut().zip(within) {
            *count += u64::from(first.found < before + within);
        }
    }
    found.map(|count| count as f64 / repeats as f64)
}

#[test]
fn series_without_a_change_raise_no_alarm() {
    for noise in [Noise::Normal, Noise::Autocorrelated(0.5), Noise::Autocorrelated(0.8), Noise::Outliers(20)]
    {
        let alarms = false_alarms(noise, 80, 40);
        // With a rate of 5 %, 7 and more of 40 have a probability of 0.3 %.
        assert!(alarms < 7.0 / 40.0, "{noise:?}: {alarms}");
    }
}

#[test]
fn steps_are_found_in_noise_of_many_kinds() {
    for noise in [Noise::Normal, Noise::Skewed, Noise::Outliers(20)] {
        let [week, month] = detected(noise, 60, 4.0, [7, 30], 20);
        assert!(week >= 0.6 && month >= 0.95, "{noise:?}: {week} {month}");
    }
}

/// The figures of docs/compare.md.
#[test]
#[ignore = "full tier: minutes of simulation"]
fn the_documented_rates_of_false_alarms() {
    let kinds = [
        Noise::Autocorrelated(0.8),
        Noise::Autocorrelated(0.5),
        Noise::Autocorrelated(0.3),
        Noise::Normal,
        Noise::Skewed,
        Noise::HeavyTails,
        Noise::Outliers(20),
        Noise::Outliers(10),
        Noise::TwoModes,
        Noise::Counts,
    ];
    for noise in kinds {
        let alarms = false_alarms(noise, 80, 1_000);
        println!("{noise:?}: {:.1} %", 100.0 * alarms);
        assert!(alarms <= 0.05, "{noise:?}: {alarms}");
    }
}

/// The figures of docs/compare.md.
#[test]
#[ignore = "full tier: minutes of simulation"]
fn the_documented_rates_of_detection() {
    let within = [3, 5, 7, 14, 30];
    let cases = [(10, 5.0), (30, 2.5), (30, 5.0), (60, 1.0), (60, 2.5), (60, 5.0)];
    for (before, step) in cases {
        let found = detected(Noise::Normal, before, step, within, 400).map(|share| (100.0 * share).round());
        println!("step of {step} after {before}, found within {within:?}: {found:?}");
    }
    for phi in [0.5, 0.8] {
        let found = detected(Noise::Autocorrelated(phi), 60, 2.5, within, 400);
        println!(
            "step of 2.5 after 60, autocorrelation {phi}: {:?}",
            found.map(|share| (100.0 * share).round())
        );
    }
    assert!(detected(Noise::Normal, 60, 5.0, [5], 400)[0] > 0.9);
}

/// What was found stays found when the series grows, and by the value with which it was found.
#[test]
fn a_longer_series_only_adds_changes() {
    let mut generator = Generator::new(7, "growing");
    let mut values = series(Noise::Normal, 90, &mut generator);
    values[30..].iter_mut().for_each(|value| *value += 6.0);
    values[60..].iter_mut().for_each(|value| *value -= 4.0);
    let whole = watched(&values);
    let places: Vec<_> = whole.changes.iter().map(|change| change.index).collect();
    assert_eq!(places, [30, 60]);
    for length in 1..values.len() {
        let known = whole.changes.iter().filter(|change| change.found < length).count();
        assert_eq!(watched(&values[..length]).changes.len(), known, "{length}");
    }
}

#[test]
fn few_values_say_how_many_more_are_needed() {
    // Six results of 3 runs each: a fall by a third, which six values do not show.
    let found = watched(&[1.73, 1.85, 1.85, 1.18, 1.16, 1.12]);
    assert_eq!(found.changes, []);
    let candidate = found.candidate.unwrap();
    assert_eq!(candidate.index, 3);
    assert!((candidate.relative() + 0.363).abs() < 0.01 && candidate.p > 0.05, "{candidate:?}");
    let more = found.more.unwrap();
    assert!((1..=10).contains(&more), "{more}");
    // What it says is so.
    let values: Vec<f64> =
        [1.73, 1.85, 1.85].into_iter().chain([1.18, 1.16, 1.12].into_iter().cycle().take(3 + more)).collect();
    assert_eq!(watched(&values).changes.len(), 1);
    assert_eq!(watched(&values[..values.len() - 1]).changes, []);
    let none = watched(&[5.0, 5.1, 4.9]);
    assert_eq!((none.candidate, none.detectable), (None, None));
}

#[test]
fn exact_values_change_once_they_stay_changed() {
    let steps = [vec![1.0; 10], vec![2.0; 10]].concat();
    let found = watched(&steps);
    assert_eq!((found.changes.len(), found.changes[0].index, found.changes[0].found), (1, 10, 12));
    assert!(found.changes[0].p < 1e-9);
    assert_eq!((found.changes[0].mean_before, found.changes[0].mean_after), (1.0, 2.0));
    let flat = watched(&[5.0; 30]);
    assert_eq!((flat.changes.len(), flat.candidate, flat.detectable), (0, None, Some(0.0)));
    // Of whatever size.
    for unit in [1e-300, 1e300] {
        let scaled: Vec<f64> = steps.iter().map(|value| value * unit).collect();
        assert_eq!(watched(&scaled).changes.len(), 1, "{unit}");
    }
    assert_eq!(watched(&[&[5.0; 15][..], &[6.0], &[5.0; 15]].concat()).changes, [], "one value is no level");
}

/// The runs inside the results vary more than their means do here: what the means suggest is not believed.
#[test]
fn a_level_is_known_no_better_than_its_runs_allow() {
    let mut generator = Generator::new(5, "noise");
    let mut values = series(Noise::Normal, 40, &mut generator);
    values[20..].iter_mut().for_each(|value| *value += 4.0);
    assert_eq!(watched(&values).changes.len(), 1);
    let noise = vec![Some(25.0); 40];
    assert_eq!(monitor(&values, &noise, 0.05).unwrap().changes, []);
}

#[test]
fn what_it_says_it_would_find_it_finds() {
    let mut generator = Generator::new(11, "detectable");
    let values = series(Noise::Normal, 40, &mut generator);
    let smallest = watched(&values).detectable.unwrap();
    assert!((1.0..5.0).contains(&smallest), "{smallest}");
    let mut shifted = values.clone();
    let level = |part: &[f64]| mean(part).unwrap();
    let by = 1.01 * smallest + level(&values[..33]) - level(&values[33..]);
    shifted[33..].iter_mut().for_each(|value| *value += by);
    assert_eq!(watched(&shifted).changes.len(), 1);
}

#[test]
fn unusable_input_is_an_error() {
    assert!(matches!(monitor(&[], &[], 0.05), Err(StatsError::TooFew { .. })));
    assert!(monitor(&[1.0, f64::NAN], &[], 0.05).is_err());
    assert!(matches!(monitor(&[1.0], &[], 1.0), Err(StatsError::Argument { .. })));
}
