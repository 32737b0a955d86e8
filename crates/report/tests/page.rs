//! The report page as text: what it says, that it escapes, that it stays small.

#![allow(clippy::unwrap_used, reason = "a test")]

use benchmaster_report::html::{self, NoTraces, ResultsDirectory, TraceSource};
use benchmaster_store::record::{RunRecord, StudyResults};
use benchmaster_store::synthetic::{fail, study_results, trace_records};
use benchmaster_study::analysis::analyze;
use benchmaster_workload::recording::TraceRecord;

fn page(results: &StudyResults) -> String {
    html::render(results, &analyze(results), &NoTraces).unwrap()
}

/// The page's text before its scripts.
fn words(page: &str) -> &str {
    &page[..page.find(r#"<script type="application/json""#).unwrap()]
}

#[test]
fn the_answer_comes_first_with_its_interval_and_what_speaks_against_it() {
    let results = study_results(7, 4, 5);
    let page = page(&results);
    let words = words(&page);
    let order = [
        "<h1>synthetic",
        "is highest with",
        "Invalid: errors in write (1 of 20 runs",
        "<table>",
        "Plots</h2>",
    ];
    let places: Vec<_> =
        order.iter().map(|text| words.find(text).unwrap_or_else(|| panic!("no {text}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(words.contains("4.70\u{a0}±\u{a0}0.17\u{a0}GB&#x2f;s (n\u{a0}=\u{a0}5)"));
    assert!(words.contains("interrupted once and resumed, and 3 operations failed"));
    assert!(words.contains("Everything random follows from seed 7"));
}

#[test]
fn a_single_run_says_why_it_has_no_interval() {
    let page = page(&study_results(1, 1, 1));
    assert!(words(&page).contains("no interval: one run tells nothing about the spread between runs"));
    assert!(words(&page).contains("(no interval)"));
}

#[test]
fn a_study_without_a_good_run_has_a_page() {
    let mut results = study_results(1, 2, 2);
    results.runs.iter_mut().for_each(|run| fail(run, "the server is gone"));
    let page = page(&results);
    assert!(words(&page).contains("Run failed: io_size=4KiB, replicate 1"));
    assert!(words(&page).contains("there is no answer yet"));
    results.runs.clear();
    results.sessions.clear();
    html::render(&results, &analyze(&results), &NoTraces).unwrap();
}

#[test]
fn no_text_becomes_markup() {
    let mut results = study_results(1, 2, 2);
    let hostile = "</script><img src=x onerror=alert(1)><!--";
    results.study.name = hostile.into();
    results.study.text = hostile.into();
    results.study.treatments.iter_mut().for_each(|t| t.label = hostile.into());
    results.study.workloads[0].name = hostile.into();
    results.runs.iter_mut().flat_map(|r| &mut r.recordings).for_each(|r| r.cut_reason = hostile.into());
    results.sessions.iter_mut().for_each(|s| s.command = hostile.into());
    let page = page(&results);
    assert!(!page.contains("<img") && !page.contains("onerror=alert(1)>"));
    assert_eq!(page.matches("</script>").count(), 4);
}

#[test]
fn there_is_nothing_to_load() {
    let page = page(&study_results(1, 2, 2));
    let own = words(&page);
    for loads in [" src=", "href=\"http", "@import", "url("] {
        assert!(!own.contains(loads), "{loads}");
    }
    assert!(own.contains("default-src 'none'"));
}

#[test]
fn a_thousand_runs_fit_into_eight_megabytes() {
    struct Everywhere;
    impl TraceSource for Everywhere {
        fn each(
            &self,
            _: &RunRecord,
            _: &str,
            take: &mut dyn FnMut(&[TraceRecord]),
        ) -> Option<Result<(), String>> {
            let mut records = trace_records(1, 5_000);
            records.iter_mut().for_each(|r| r.start_ns *= 4_000);
            take(&records);
            Some(Ok(()))
        }
    }
    // A study of many treatments: those of a few are smaller, as runs are told together.
    let mut results = study_results(2, 500, 1);
    let more: Vec<_> = results
        .runs
        .iter()
        .map(|run| {
            let mut run = run.clone();
            run.key.replicate = 1;
            run
        })
        .collect();
    results.runs.extend(more);
    let page = html::render(&results, &analyze(&results), &Everywhere).unwrap();
    assert!(page.len() <= 8_000_000, "{} bytes", page.len());
    assert!(words(&page).contains("Of 500 treatments the first 120 are drawn."));
    assert!(words(&page).contains("More than 200 runs: of each treatment the mean"));
}

#[test]
fn a_trace_that_cannot_be_read_is_told() {
    let mut results = study_results(1, 1, 2);
    for run in &mut results.runs {
        run.traces.insert("write".into(), "traces/gone.parquet".into());
    }
    let directory = tempfile::tempdir().unwrap();
    let source = ResultsDirectory(directory.path().into());
    let page = html::render(&results, &analyze(&results), &source).unwrap();
    assert!(words(&page).contains("the trace of synthetic, replicate 1, write cannot be read"));
    assert!(words(&page).contains("gone.parquet"));
}
