//! Comparison of two results and of series of them, where the command's own tests do not reach.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use benchmaster_analysis::compare::{
    CompareError, Comparison, Direction, HistoryOptions, HistorySeries, Options, Responses, Verdict, compare,
    differences, history, series_of,
};
use benchmaster_record::results::Emulator;
use benchmaster_record::results::ServedBy;
use benchmaster_record::results::{NetworkRecord, Replication, ServiceRecord, StudyResults};
use benchmaster_stats::random::Generator;
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

/// Shares of comparisons in percent that say "same" of equal results, "same" and "changed" of results that differ by exactly the
/// band of 2 %, and "changed" of those that differ by 5 %. Runs vary by 2 %.
fn rates(runs: usize, trials: u32) -> [f64; 4] {
    let mut draw = Generator::new(runs as u64, "same or changed");
    let (mut a, mut b) = (of(&vec![1.0; runs]), of(&vec![1.0; runs]));
    let options =
        Options { responses: Responses::Named(vec![RESPONSE.into()]), band: 0.02, confidence: None };
    let mut share = |ratio: f64, verdict: Verdict| {
        let mut set = |results: &mut StudyResults, mean: f64| {
            for run in &mut results.runs {
                let response = run.responses.iter_mut().find(|r| r.name == RESPONSE).unwrap();
                response.value = mean * (1.0 + 0.02 * draw.normal());
            }
        };
        let times = (0..trials).filter(|_| {
            set(&mut a, 100.0);
            set(&mut b, 100.0 * ratio);
            compare(&a, &b, &options, false).unwrap().verdict == verdict
        });
        100.0 * times.count() as f64 / f64::from(trials)
    };
    [
        share(1.0, Verdict::Same),
        share(1.02, Verdict::Same),
        share(1.02, Verdict::Changed),
        share(1.05, Verdict::Changed),
    ]
}

#[test]
fn same_and_changed_are_as_rare_as_promised_at_the_edge_of_the_band() {
    let [same, wrong, changed, found] = rates(10, 200);
    // Two one-sided tests at 5 %: 5 ± 1.5 %. An interval of 95 % would say "same" of 20 % of equal results.
    assert!(wrong <= 9.5 && changed <= 7.0, "{wrong} {changed}");
    assert!(same >= 30.0 && found >= 75.0, "{same} {found}");
}

/// The table of docs/compare.md.
#[test]
#[ignore = "full tier: 32,000 comparisons"]
fn the_documented_rates_of_verdicts() {
    let documented = std::fs::read_to_string("../../docs/compare.md").unwrap();
    let mut missing = String::new();
    for runs in [3, 5, 10, 20] {
        let shares = rates(runs, 2_000);
        assert!(shares[1] <= 6.0 && shares[2] <= 3.5, "{runs}: {shares:?}");
        let cells = shares.map(|share| format!("{share:.1} %"));
        let line = format!("| {runs} + {runs} | {} |", cells.join(" | "));
        if !documented.contains(&line) {
            missing += &format!("{line}\n");
        }
    }
    assert!(missing.is_empty(), "docs/compare.md lacks\n{missing}");
}

#[test]
fn a_response_that_some_runs_lack_has_no_mean() {
    let base = [100.0, 101.0, 99.0, 100.5, 99.5];
    let (a, mut b) = (of(&base), of(&base.map(|v| 0.9 * v)));
    // As the p999 of runs with too few operations: those that have it are the fastest.
    for run in b.runs.iter_mut().filter(|run| run.key.replicate > 1) {
        run.responses.retain(|r| r.name != RESPONSE);
    }
    let options =
        Options { responses: Responses::Named(vec![RESPONSE.into()]), band: 0.02, confidence: None };
    let found = compare(&a, &b, &options, false).unwrap();
    let cell = &found.responses[0].cells[0];
    assert_eq!((cell.verdict, cell.b.is_none()), (Verdict::Undecided, true));
    assert!(cell.sentence.contains("only 2 of 5 runs have it"), "{}", cell.sentence);
    let series = series_of(&[("a".into(), a), ("b".into(), b)], Some(RESPONSE));
    assert_eq!(series[0].points.len(), 1);
}

#[test]
fn results_whose_runs_were_chosen_by_the_data_are_named() {
    let (a, mut b) = (of(&[100.0, 101.0, 99.0]), of(&[100.0, 101.0, 99.0]));
    b.study.replicates = Replication::Sequential { min: 3, max: 10, relative_half_width: 0.05 };
    let options =
        Options { responses: Responses::Named(vec![RESPONSE.into()]), band: 0.02, confidence: None };
    let told = |a: &StudyResults, b: &StudyResults| {
        let found = compare(a, b, &options, true).unwrap();
        found.sentences.iter().find(|s| s.contains("chosen by their results")).cloned()
    };
    assert!(told(&a, &b).is_some_and(|text| text.starts_with("The number of runs of B was chosen")));
    assert_eq!(told(&a, &a), None);
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
    assert_ne!(found.verdict, Verdict::Changed);

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

#[test]
fn sets_of_responses_have_names() {
    let results = study_results(3, 2, 4);
    let of = |words: &[&str]| {
        let words = words.iter().map(|&word| word.to_owned()).collect();
        let options = Options { responses: Responses::Named(words), band: 0.02, confidence: None };
        let found = compare(&results, &results, &options, false)?;
        Ok::<Vec<String>, CompareError>(found.responses.into_iter().map(|r| r.response).collect())
    };
    let by_default = Options { responses: Responses::Headlines, band: 0.02, confidence: None };
    let by_default = compare(&results, &results, &by_default, false).unwrap();
    let headlines: Vec<String> = by_default.responses.into_iter().map(|r| r.response).collect();
    assert_eq!(of(&["headline"]).unwrap(), headlines);
    let latencies = of(&["latency"]).unwrap();
    let is_one = |name: &String| [".mean", ".p50", ".p99"].iter().any(|end| name.ends_with(end));
    assert!(latencies.len() >= 3 && latencies.iter().all(is_one), "{latencies:?}");
    let both = of(&["headline", "latency", latencies[0].as_str()]).unwrap();
    assert_eq!(both, [headlines, latencies].concat());
    assert!(matches!(of(&["latencies"]), Err(CompareError::NoSuchResponse { .. })));
}
