//! Comparison of two results and of series of them, where the command's own tests do not reach.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use benchmaster_analysis::compare::{
    CompareError, Comparison, Direction, HistoryOptions, HistorySeries, Options, Responses, Verdict, compare,
    differences, history, series_of,
};
use benchmaster_record::results::Emulator;
use benchmaster_record::results::ServedBy;
use benchmaster_record::results::{NetworkRecord, ServiceRecord, StudyResults};
use benchmaster_testkit::study_results;

const RESPONSE: &str = "write.throughput";

/// A study without factors whose primary response has these values.
fn of(values: &[f64]) -> StudyResults {
    let mut results = study_results(3, 1, values.len() as u32);
    results.study.primary_response = RESPONSE.into();
    for run in &mut results.runs {
        run.checks.clear();
        let value = values[run.key.replicate as usize];
        run.responses.iter_mut().find(|r| r.name == RESPONSE).unwrap().value = value;
    }
    results
}

fn compared(a: &[f64], b: &[f64], band: f64) -> Comparison {
    let options = Options { responses: Responses::Named(vec![RESPONSE.into()]), band, confidence: None };
    compare(&of(a), &of(b), &options, false).unwrap()
}

fn verdict(a: &[f64], b: &[f64]) -> (Verdict, Option<Direction>) {
    let found = compared(a, b, 0.02);
    let cell = &found.responses[0].cells[0];
    assert!(!cell.sentence.is_empty());
    assert_eq!(found.verdict, cell.verdict);
    (cell.verdict, cell.direction)
}

#[test]
fn values_that_never_vary_are_judged_by_themselves() {
    assert_eq!(verdict(&[12.0; 3], &[12.0; 3]), (Verdict::Same, None));
    assert_eq!(verdict(&[12.0; 3], &[12.1; 3]), (Verdict::Same, None));
    assert_eq!(verdict(&[12.0; 3], &[15.0; 3]), (Verdict::Changed, Some(Direction::Better)));
    assert_eq!(verdict(&[0.0; 3], &[0.0; 3]), (Verdict::Same, None));
    assert_eq!(verdict(&[0.0; 3], &[2.0; 3]), (Verdict::Changed, Some(Direction::Better)));
    assert_eq!(verdict(&[2.0; 3], &[0.0; 3]), (Verdict::Changed, Some(Direction::Worse)));
}

#[test]
fn a_first_mean_that_may_be_zero_has_no_ratio() {
    assert_eq!(verdict(&[0.0, 0.0, 0.0, 1.0], &[0.0, 1.0, 1.0, 0.0]), (Verdict::Undecided, None));
    let apart = (Verdict::Changed, Some(Direction::Better));
    assert_eq!(verdict(&[0.0, 0.0, 0.0, 1.0], &[50.0, 51.0, 52.0, 49.0]), apart);
}

#[test]
fn the_interval_against_the_band_decides() {
    let base = [100.0, 101.0, 99.0, 100.5, 99.5];
    let times = |factor: f64| base.map(|v| v * factor);
    assert_eq!(verdict(&base, &times(1.001)).0, Verdict::Same);
    assert_eq!(verdict(&base, &times(1.02)).0, Verdict::Undecided);
    assert_eq!(verdict(&base, &times(0.9)), (Verdict::Changed, Some(Direction::Worse)));
    // Significant, but within the band; and outside of a narrower one.
    let small = compared(&base, &times(1.015), 0.05);
    assert_eq!(small.verdict, Verdict::Same);
    assert!(small.responses[0].cells[0].welch.as_ref().unwrap().p < 0.05);
    assert_eq!(compared(&base, &times(1.015), 0.0).verdict, Verdict::Changed);
    let ratio = small.responses[0].cells[0].ratio.clone().unwrap();
    let ([low, high], [outer_low, outer_high]) = (ratio.interval.unwrap(), ratio.kalibera_jones.unwrap());
    assert!(outer_low < low && low < 1.015 && 1.015 < high && high < outer_high);
    assert!((ratio.log_t.unwrap()[0] - 1.015).abs() < 1e-9);
}

#[test]
fn missing_and_invalid_runs_decide_nothing() {
    assert_eq!(verdict(&[5.0], &[7.0, 7.1]).0, Verdict::Undecided);
    let (a, mut b) = (study_results(1, 2, 3), study_results(1, 2, 3));
    b.runs.retain(|r| r.key.treatment == 0);
    let options = Options { responses: Responses::Headlines, band: 0.02, confidence: Some(0.9) };
    let found = compare(&a, &b, &options, false).unwrap();
    assert_eq!(found.confidence, 0.9);
    assert!(found.responses[0].cells[1].b.is_none());
    assert_eq!(found.responses[0].cells[1].verdict, Verdict::Undecided);
    assert!(found.responses[0].overall.is_none());
    assert!(found.sentences.iter().any(|s| s.contains("left out")), "{:?}", found.sentences);
}

#[test]
fn what_ranks_cannot_show_is_said_of_the_sample_or_of_the_cells_with_few_runs() {
    let options = Options { responses: Responses::Headlines, band: 0.0, confidence: None };
    let all: StudyResults = study_results(5, 2, 30);
    let told = |b: &StudyResults| {
        let found = compare(&all, b, &options, false).unwrap();
        let cells = &found.responses[0].cells;
        let told: Vec<bool> = cells.iter().map(|c| c.sentence.contains("By ranks, ")).collect();
        (told, found.sentences.iter().any(|s| s.contains("cannot reach")))
    };
    let with = |runs: [u32; 2]| {
        let mut b = study_results(6, 2, 30);
        b.runs.retain(|r| r.key.replicate < runs[r.key.treatment as usize]);
        b
    };
    assert_eq!(told(&with([30, 30])), (vec![false, false], false));
    // Two of 496 arrangements of 30 + 2 runs are as extreme; 5 % are asked for both cells together.
    assert_eq!(told(&with([30, 2])), (vec![false, false], false));
    assert_eq!(told(&with([30, 1])), (vec![false, true], true));
    assert_eq!(told(&with([1, 1])), (vec![false, false], true));
}

#[test]
fn cells_are_matched_by_levels_not_by_number() {
    let a = study_results(5, 4, 3);
    let mut b = a.clone();
    // The same cells, in the opposite order.
    let last = b.study.treatments.len() as u32 - 1;
    b.study.treatments.reverse();
    for treatment in &mut b.study.treatments {
        treatment.index = last - treatment.index;
    }
    b.runs.iter_mut().for_each(|r| r.key.treatment = last - r.key.treatment);
    let options = Options { responses: Responses::All, band: 0.02, confidence: None };
    let found = compare(&a, &b, &options, false).unwrap();
    assert!(found.responses.iter().flat_map(|r| &r.cells).all(|c| c.a_values == c.b_values));
    assert!(!found.changed());

    // Only some cells in common.
    let mut fewer = study_results(5, 4, 3);
    fewer.study.factors[1].levels[1] = "other".into();
    let found = compare(&a, &fewer, &options, false).unwrap();
    assert_eq!((found.only_a.len(), found.only_b.len(), found.responses[0].cells.len()), (2, 2, 2));
    fewer.study.factors[1].levels[0] = "another".into();
    let refused = compare(&a, &fewer, &options, false);
    assert!(matches!(refused, Err(CompareError::NoCommonCell { .. })), "{refused:?}");
}

#[test]
fn what_levels_set_and_the_network_must_be_the_same() {
    let a = study_results(5, 4, 2);
    let mut b = a.clone();
    let setting = b.study.factors[0].settings[0].values_mut().next().unwrap();
    *setting = "\"3MiB\"".into();
    b.runs.iter_mut().for_each(|run| run.service = Some(service(5_000_000)));
    let mut with_network = a.clone();
    with_network.runs.iter_mut().for_each(|run| run.service = Some(service(0)));
    let found = differences(&with_network, &b);
    let keys: Vec<_> = found.decisive.iter().map(|d| d.key.as_str()).collect();
    assert!(keys.contains(&"network.delay"), "{keys:?}");
    assert!(keys.iter().any(|k| k.starts_with("factors.io_size.")), "{keys:?}");
    let mut scaled = a.clone();
    scaled.study.design_details.scale = Some(0.1);
    let keys = |found: benchmaster_analysis::compare::Differences| {
        found.decisive.into_iter().map(|d| d.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(differences(&a, &scaled)), ["study.scale"]);
    assert!(differences(&a, &a).decisive.is_empty() && differences(&a, &a).noted.is_empty());
    let refused = compare(
        &with_network,
        &b,
        &Options { responses: Responses::Headlines, band: 0.02, confidence: None },
        false,
    );
    let message = refused.unwrap_err().to_string();
    assert!(message.contains("network.delay: 0 ns | 5000000 ns") && message.contains("--force"), "{message}");
}

fn service(delay_ns: u64) -> ServiceRecord {
    ServiceRecord {
        url: "nfs://{server}/export".into(),
        server: ServedBy::Embedded,
        network: NetworkRecord { emulator: Emulator::Wire, delay_ns, ..NetworkRecord::default() },
        achieved: None,
    }
}

/// Results whose runs have these values, one after the other.
fn history_of(nights: &[&[f64]]) -> HistorySeries {
    let results: Vec<_> = nights.iter().enumerate().map(|(i, runs)| (format!("n{i}"), of(runs))).collect();
    let options = HistoryOptions { p_max: 0.05, min_change: 0.0 };
    let found = history(series_of(&results, None), &options).unwrap();
    assert_eq!(found.series.len(), 1);
    assert_eq!(found.changed(None, false), found.count(Verdict::Changed) > 0);
    found.series.into_iter().next().unwrap()
}

#[test]
fn a_short_history_cannot_tell_and_says_how_many_more_results_would() {
    let nights: [&[f64]; 6] = [
        &[1.70, 1.73, 1.76],
        &[1.80, 1.85, 1.90],
        &[1.82, 1.85, 1.88],
        &[1.10, 1.18, 1.26],
        &[1.15, 1.16, 1.17],
        &[1.10, 1.12, 1.14],
    ];
    let found = history_of(&nights);
    assert_eq!((found.verdict, found.changes.len(), found.points[3].runs), (Verdict::Undecided, 0, 3));
    let (candidate, more) = (found.candidate.unwrap(), found.more.unwrap());
    assert_eq!(candidate.first, "n3");
    let sentence = &found.sentences[0];
    assert!(sentence.starts_with("Cannot tell whether n3 is a change, by -36.3 %"), "{sentence}");
    let further = if more == 1 { "one more result".into() } else { format!("{more} more results") };
    assert!(sentence.contains(&format!("{further} like the last ones would show it")), "{sentence}");
    // With them it is one.
    let further = (0..more).map(|night| nights[3 + night % 3]);
    let longer: Vec<&[f64]> = nights.iter().copied().chain(further).collect();
    let found = history_of(&longer);
    assert_eq!((found.verdict, found.changes[0].index), (Verdict::Changed, 3));
    assert_eq!(found.changes[0].direction, Some(Direction::Worse));

    let alone = history_of(&nights[..1]);
    assert_eq!(alone.verdict, Verdict::Undecided);
    assert_eq!(alone.sentences, ["Cannot tell: no change could be found in 1 result yet."]);
}

/// Means that differ by less than the runs inside the results vary.
#[test]
fn the_runs_inside_each_result_limit_what_is_a_change() {
    let night = |level: f64, spread: f64| [level - spread, level, level + spread];
    let series = |spread: f64| {
        let nights: Vec<_> = (0..24)
            .map(|n| night(if n < 12 { 10.0 } else { 10.5 } + 0.01 * f64::from(n % 3), spread))
            .collect();
        history_of(&nights.iter().map(|night| &night[..]).collect::<Vec<_>>())
    };
    assert_eq!(series(0.02).verdict, Verdict::Changed);
    assert_ne!(series(3.0).verdict, Verdict::Changed);
}

#[test]
fn a_long_history_without_a_change_says_what_it_would_have_found() {
    let nights: Vec<[f64; 1]> =
        (0..40).map(|night| [100.0 + [0.0, 1.3, -0.8, 0.4, -1.1, 0.2, 0.9][night % 7]]).collect();
    let found = history_of(&nights.iter().map(|night| &night[..]).collect::<Vec<_>>());
    assert_eq!(found.verdict, Verdict::Same);
    let smallest = found.detectable.unwrap();
    assert!((0.005..0.1).contains(&smallest), "{smallest}");
    let sentence = &found.sentences[0];
    assert!(
        sentence.starts_with("No change found in 40 results; a change by ")
            && sentence.ends_with("the last 7 results would have been."),
        "{sentence}"
    );
}
