//! The report page as text: what it says, that it escapes, that it stays small.

use benchmaster_analysis::analyze;
use benchmaster_diagnosis::results::diagnose;
use benchmaster_record::recording::TraceRecord;
use benchmaster_record::results::{RunRecord, StudyResults};
use benchmaster_report::details::{Details, NoDetails, ResultsDirectory};
use benchmaster_report::pages;
use benchmaster_testkit as synthetic;
use benchmaster_testkit::{fail, study_results, trace_records};

fn page(results: &StudyResults) -> String {
    rendered(results, &NoDetails)
}

fn rendered(results: &StudyResults, details: &dyn Details) -> String {
    let analysis = analyze(results);
    pages::study(results, &analysis, &diagnose(results, &analysis, details), Some(details)).page().unwrap()
}

/// The page's text before its scripts.
fn words(page: &str) -> &str {
    &page[..page.find(r#"<script type="application/x-ndjson""#).unwrap()]
}

#[test]
fn the_answer_comes_first_with_its_interval_and_the_reasons_to_distrust_it() {
    let results = study_results(7, 4, 5);
    let page = page(&results);
    let words = words(&page);
    let order = [
        "<h1>synthetic",
        "is highest with",
        "Findings, most important first</h2>",
        "Effects of the factors on write.throughput</h2>",
        "<summary>How sure</summary>",
        "Other workloads</h2>",
        "Validity</h2>",
        "INVALID: errors (write, 1 of 20 runs",
        "Plots</h2>",
        "Rules of good measurement</h2>",
    ];
    let places: Vec<_> =
        order.iter().map(|text| words.find(text).unwrap_or_else(|| panic!("no {text}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(words.contains("4.70\u{a0}±\u{a0}0.17\u{a0}GB/s (95\u{a0}%, n\u{a0}=\u{a0}5)"));
    assert!(words.contains("interrupted once and resumed, and 3 operations failed"));
    assert!(words.contains("All randomness follows from seed 7"));
}

#[test]
fn a_finding_is_said_once() {
    let mut results = study_results(7, 4, 3);
    synthetic::serve(&mut results);
    let analysis = analyze(&results);
    let diagnosis = diagnose(&results, &analysis, &NoDetails);
    let page = pages::study(&results, &analysis, &diagnosis, None).page().unwrap();
    assert!(!diagnosis.findings.is_empty());
    for (number, finding) in (1..).zip(&diagnosis.findings) {
        let sentence = finding.what.split(['`', '\'', '<', '&', '"']).next().unwrap();
        // Conditions have every check of every run.
        let told = words(&page).split(r#"<section id="conditions""#).next().unwrap();
        assert_eq!(told.matches(sentence).count(), 1, "{sentence}");
        let is_check = analysis.warnings.iter().any(|warning| warning.check.kind.name() == finding.id);
        let refers = words(&page).contains(&format!("<p>See finding {number}.</p>"));
        assert_eq!(refers, is_check, "{}", finding.id);
    }
    assert!(words(&page).contains("<p>See finding "), "no check is a finding");
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
    assert!(words(&page).contains("<strong>FAILED:</strong><p>io_size=4KiB, replicate 1: "));
    assert!(words(&page).contains("no answer yet"));
    results.runs.clear();
    results.sessions.clear();
    rendered(&results, &NoDetails);
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
    struct Everywhere(Vec<TraceRecord>);
    impl Details for Everywhere {
        fn trace(
            &self,
            _: &RunRecord,
            _: &str,
            take: &mut dyn FnMut(&[TraceRecord]),
        ) -> Option<Result<(), String>> {
            take(&self.0);
            Some(Ok(()))
        }
    }
    let mut records = trace_records(1, 5_000);
    records.iter_mut().for_each(|r| r.start_ns *= 4_000);
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
    let page = rendered(&results, &Everywhere(records));
    assert!(page.len() <= 8_000_000, "{} bytes", page.len());
    assert!(words(&page).contains("Of 500 treatments the first 120 are drawn."));
    assert!(words(&page).contains("More than 200 runs: for each treatment the mean"));
}

#[test]
fn an_unreadable_trace_is_reported() {
    let mut results = study_results(1, 1, 2);
    for run in &mut results.runs {
        run.traces.insert("write".into(), "traces/gone.parquet".into());
    }
    let directory = tempfile::tempdir().unwrap();
    let source = ResultsDirectory::new(directory.path());
    let page = rendered(&results, &source);
    assert!(words(&page).contains("the trace of synthetic, replicate 1, write cannot be read"));
    assert!(words(&page).contains("gone.parquet"));
}

#[test]
fn what_went_over_the_wire_is_in_tables_by_phase() {
    let mut results = study_results(5, 2, 3);
    assert!(!words(&page(&results)).contains("<h3>RPCs</h3>"), "a directory has none");
    synthetic::serve(&mut results);
    let page = page(&results);
    let words = words(&page);
    let places: Vec<_> =
        ["<h3>RPCs</h3>", "write: RPCs, measured phase", "write: RPCs, set-up (mounting", "v4 EXCHANGE_ID"]
            .iter()
            .map(|text| words.find(text).unwrap_or_else(|| panic!("no {text}")))
            .collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(words.contains("Events per run: reconnect 1, slot-wait 12."));
    assert!(
        words.contains("network emulated with a one-way delay of 1 ms by a TCP relay, right for the latency")
    );
}

/// A study of four clients on two hosts, and where its runs are read whole.
fn of_many(treatments: u32, replicates: u32) -> (StudyResults, Whole) {
    let mut whole = study_results(5, treatments, replicates);
    synthetic::serve(&mut whole);
    synthetic::spread(&mut whole);
    (synthetic::as_loaded(&whole), Whole(whole))
}

struct Whole(StudyResults);

impl Details for Whole {
    fn trace(&self, _: &RunRecord, _: &str, _: &mut dyn FnMut(&[TraceRecord])) -> Option<Result<(), String>> {
        None
    }

    fn whole(&self, run: &RunRecord) -> Result<Option<RunRecord>, String> {
        Ok(self.0.runs.iter().find(|whole| whole.key == run.key).cloned())
    }
}

#[test]
fn workloads_are_beside_what_the_network_carries() {
    let (results, details) = of_many(1, 3);
    let page = rendered(&results, &details);
    let parts = [
        ">MB/s</th>",
        ">IOPS</th>",
        ">of the network</th>",
        " % of 3.47 GB/s</td>",
        "118 MB/s, 1.18 GB/s and 2.94 GB/s",
    ];
    for part in parts {
        assert!(words(&page).contains(part), "`{part}` is not on the page");
    }
    let page = self::page(&study_results(7, 1, 3));
    assert!(!words(&page).contains("of the network") && !words(&page).contains("Ethernet"));
}

#[test]
fn many_clients_are_shown_with_networks_counters_and_commands() {
    let (results, details) = of_many(2, 3);
    let page = rendered(&results, &details);
    let text = words(&page);
    for part in [
        "4 clients started within ",
        "Synchronisation of the clients&#39; start",
        "write: agents",
        "node-2",
        "10\u{a0}ms\u{a0}one\u{a0}way,\u{a0}10\u{a0}Gbit/s",
        "868 ± 27 MB/s, 4 flows",
        "Baselines of the network",
        "write: what happened over time",
        "c2 (node-2)",
        "Cost of sampling",
        "/proc/net/rpc/nfsd is not there",
        "no sign of life for 5 s",
        "mkfs.xfs -f /dev/vdb",
        "61.2%  copy_user",
    ] {
        assert!(text.contains(part), "`{part}` is not on the page");
    }
    assert!(page.contains("# samples &lt;of&gt;") && !page.contains("# samples <of>"));
}

#[test]
fn a_study_of_one_client_has_no_section_of_clients() {
    let page = page(&study_results(5, 2, 3));
    assert!(!page.contains("id=\"clients\"") && !page.contains("#clients"));
}

#[test]
fn samples_of_many_runs_fit_into_eight_megabytes() {
    let (results, details) = of_many(30, 1);
    let page = rendered(&results, &details);
    assert!(page.len() <= 8_000_000, "{} bytes", page.len());
    assert!(words(&page).contains("6 more treatments are not drawn"));
}

#[test]
fn unreadable_samples_are_reported() {
    struct Gone;
    impl Details for Gone {
        fn trace(
            &self,
            _: &RunRecord,
            _: &str,
            _: &mut dyn FnMut(&[TraceRecord]),
        ) -> Option<Result<(), String>> {
            None
        }

        fn whole(&self, _: &RunRecord) -> Result<Option<RunRecord>, String> {
            Err("the disk is gone".into())
        }
    }
    let (results, _) = of_many(1, 1);
    let page = rendered(&results, &Gone);
    let told = "the samples of synthetic, replicate 1 cannot be read: the disk is gone";
    assert!(words(&page).contains(told));
}
