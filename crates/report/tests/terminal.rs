//! What is printed, as snapshots: stdout is an interface.

#![allow(clippy::unwrap_used, reason = "a test")]

use benchmaster_report::terminal::{TextOptions, analysis_text, summary};
use benchmaster_store::record::{Replication, StudyResults};
use benchmaster_store::synthetic::{fail, study_results};
use benchmaster_study::analysis::analyze;

fn options(width: usize) -> TextOptions {
    TextOptions { width, ..TextOptions::default() }
}

fn printed(results: &StudyResults, options: &TextOptions) -> String {
    summary(results, &analyze(results), options)
}

#[test]
fn a_factorial_study_at_80_columns() {
    insta::assert_snapshot!(printed(&study_results(7, 4, 5), &options(80)));
}

#[test]
fn a_factorial_study_at_120_columns() {
    let report = Some("results/report.html".into());
    insta::assert_snapshot!(printed(&study_results(7, 4, 5), &TextOptions { report, ..options(120) }));
}

#[test]
fn a_single_run() {
    insta::assert_snapshot!(printed(&study_results(7, 1, 1), &options(80)));
}

#[test]
fn three_levels_in_ascii_with_a_failed_run() {
    let mut results = study_results(7, 3, 3);
    fail(&mut results.runs[4], "write: input/output error (EIO) on /mnt/data/0003");
    insta::assert_snapshot!(printed(&results, &TextOptions { unicode: false, ..options(80) }));
}

#[test]
fn a_study_that_was_stopped_before_its_first_run() {
    let mut results = study_results(7, 2, 2);
    results.runs.clear();
    insta::assert_snapshot!(printed(&results, &options(80)));
}

#[test]
fn sequential_stopping_is_told_with_its_caution() {
    let mut results = study_results(7, 1, 6);
    results.study.replicates = Replication::Sequential { min: 5, max: 30, relative_half_width: 0.05 };
    insta::assert_snapshot!(printed(&results, &options(80)));
}

#[test]
fn effects_of_a_balanced_study() {
    let mut results = study_results(7, 4, 3);
    results.runs.iter_mut().for_each(|r| r.checks.clear());
    insta::assert_snapshot!(analysis_text(&results, &analyze(&results), &options(100)));
}

#[test]
fn effects_of_three_levels() {
    let results = study_results(7, 3, 4);
    insta::assert_snapshot!(analysis_text(&results, &analyze(&results), &options(100)));
}

#[test]
fn effects_of_an_unreplicated_study() {
    let mut results = study_results(7, 4, 1);
    results.runs.iter_mut().for_each(|r| r.checks.clear());
    let text = analysis_text(&results, &analyze(&results), &options(100));
    let effects = text.split("effects on").nth(1).unwrap().split("\n\n").next().unwrap();
    insta::assert_snapshot!(effects);
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    for (treatments, replicates) in [(1, 1), (2, 3), (4, 2), (6, 2)] {
        let results = study_results(3, treatments, replicates);
        for width in [60, 80, 100, 132] {
            let text = analysis_text(&results, &analyze(&results), &options(width));
            let widest = text.lines().map(|l| l.chars().count()).max().unwrap();
            assert!(widest <= width, "{treatments} treatments: {widest} > {width}\n{text}");
        }
    }
}

#[test]
fn every_mean_has_an_interval_or_the_reason_why_not() {
    for (treatments, replicates) in [(1, 1), (2, 1), (4, 2), (3, 5)] {
        let results = study_results(9, treatments, replicates);
        let text = printed(&results, &options(200));
        // Rows of the tables of results end with their validity.
        let is_row = |l: &&str| l.ends_with(" ok") || l.ends_with(" invalid") || l.ends_with(" warned");
        let rows: Vec<_> = text.lines().filter(is_row).collect();
        assert_eq!(rows.len(), 2 * treatments as usize, "{text}");
        for line in rows {
            let single = line.split_whitespace().any(|c| c == "1" || c.starts_with("1/"));
            assert!(line.contains('±') || single, "{line}");
        }
        let single = analyze(&results)
            .treatments
            .iter()
            .any(|t| t.responses[0].estimate.as_ref().is_some_and(|e| e.half_width.is_none()));
        assert_eq!(text.contains("n = 1: no interval, because"), single, "{text}");
    }
}

#[test]
fn colour_only_when_asked_and_never_inside_words() {
    let results = study_results(7, 4, 5);
    let plain = printed(&results, &options(100));
    assert!(!plain.contains('\u{1b}'));
    let colored = printed(&results, &TextOptions { color: true, ..options(100) });
    assert!(colored.contains("\u{1b}[1;31mINVALID\u{1b}[0m: errors"));
}
