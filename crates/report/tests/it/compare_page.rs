//! The pages of comparisons and histories: what is on them, and that Chromium draws them without an error and without the network.

use std::fs;

use benchmaster_analysis::analyze;
use benchmaster_analysis::compare::{self, HistoryOptions, HistoryPoint, Options, Responses, Series};

use crate::chromium::{chromium, visit};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::{Confidence, Cost, CostOf, Finding, Remedy};
use benchmaster_record::results::{StudyResults, Unit};
use benchmaster_report::pages::{self, Compared};
use benchmaster_testkit::{serve, study_results};

fn finding(id: &'static str, share: f64) -> Finding {
    Finding {
        id,
        what: format!("Something called {id} <happened>."),
        place: "write: 2 of 4 runs".into(),
        at: None,
        evidence: vec![],
        tests: vec![],
        confidence: Confidence::Likely,
        cost: Some(Cost { share, of: CostOf::Calls, estimate: "made up".into() }),
        remedy: Remedy::new("Do this.").fitted_with("do --this"),
        also: Vec::new(),
    }
}

/// The same study twice; of the second, writes are half as fast as they were.
fn page() -> String {
    let mut a = study_results(7, 4, 5);
    serve(&mut a);
    let mut b = a.clone();
    let slower = |results: &mut StudyResults| {
        let responses = results.runs.iter_mut().flat_map(|run| &mut run.responses);
        responses.filter(|r| r.name == "write.throughput").for_each(|r| r.value *= 0.5);
    };
    slower(&mut b);
    b.sessions[0].environment.values_mut().for_each(|e| e.governor = Some("powersave <b>".into()));
    let options = Options { responses: Responses::All, band: 0.02, confidence: None };
    let comparison = compare::compare(&a, &b, &options, false).unwrap();
    let (of_a, of_b) = (analyze(&a), analyze(&b));
    let before =
        Diagnosis { findings: vec![finding("queue", 0.2), finding("gone", 0.1)], ..Diagnosis::default() };
    let after =
        Diagnosis { findings: vec![finding("queue", 0.4), finding("new", 0.3)], ..Diagnosis::default() };
    let of = |name, results, analysis, diagnosis| Compared { name, results, analysis, diagnosis };
    let sides = [of("results/before", &a, &of_a, &before), of("results/after", &b, &of_b, &after)];
    pages::comparison(&comparison, Some(sides)).page().unwrap()
}

/// A series that falls to half at its 13th result.
fn history_page() -> String {
    let point = |n: usize| HistoryPoint {
        label: format!("results/nightly-{n:02} <i>"),
        started: None,
        runs: 5,
        error: None,
        value: (if n < 12 { 1e8 } else { 5e7 }) * (1.0 + 0.01 * ((n * 7 % 5) as f64 - 2.0)),
    };
    let series = Series {
        response: "write.throughput".into(),
        unit: Some(Unit::BytesPerSecond),
        cell: None,
        points: (0..24).map(point).collect(),
    };
    let options = HistoryOptions { p_max: 0.05, min_change: 0.0 };
    pages::history(&compare::history(vec![series], &options).unwrap()).page().unwrap()
}

/// The part of the page before its scripts, in which the library of plots would be found too.
fn body(page: &str) -> &str {
    page.split_once("<body>").unwrap().1.split_once("<script type=\"application/x-ndjson\"").unwrap().0
}

fn section<'p>(page: &'p str, id: &str) -> &'p str {
    let start = format!("<section id=\"{id}\"");
    body(page)
        .split_once(&start)
        .unwrap_or_else(|| panic!("no section {id}"))
        .1
        .split("</section>")
        .next()
        .unwrap()
}

#[test]
fn what_changed_comes_first_and_findings_are_sorted() {
    let page = page();
    let verdicts = section(&page, "verdicts");
    let caption = |text: &str| verdicts.find(&format!("<figcaption>{text}")).unwrap();
    let (changed, same) = (caption("write.throughput"), verdicts.find("<summary>Undecided: ").unwrap());
    assert!(changed < same, "what changed comes first");
    assert!(verdicts[changed..same].matches(">WORSE</td>").count() >= 4);
    assert!(!verdicts[same..].contains("WORSE"), "what did not change is folded away");
    assert!(caption("read.throughput") > same, "reads did not change");
    let answer = section(&page, "answer");
    assert!(answer.contains("<p>write.throughput, ") && answer.contains("Changed for the worse"), "{answer}");
    let findings = section(&page, "findings");
    let tables: Vec<&str> = findings.split("<figcaption>").skip(1).collect();
    for (table, (title, id)) in tables.iter().zip([
        ("New: only in B", "new"),
        ("Gone: only in A", "gone"),
        ("In both, as described in B", "queue"),
    ]) {
        assert!(table.starts_with(title) && table.contains(&format!(">{id}</td>")), "{table}");
    }
    assert!(tables[2].contains(">20 %</td>") && tables[2].contains(">40 %</td>"), "{}", tables[2]);
    assert!(section(&page, "conditions").contains("powersave &lt;b&gt;"));
    for id in ["ratios", "latencies", "calls"] {
        assert!(!section(&page, id).is_empty());
    }
    assert!(page.len() < 6_000_000, "{}", page.len());
}

#[test]
fn a_result_does_not_differ_from_itself() {
    let results = study_results(7, 2, 4);
    let options = Options { responses: Responses::Headlines, band: 0.02, confidence: None };
    let comparison = compare::compare(&results, &results, &options, false).unwrap();
    let (analysis, diagnosis) = (analyze(&results), Diagnosis::default());
    let side = Compared { name: "results", results: &results, analysis: &analysis, diagnosis: &diagnosis };
    let page = pages::comparison(&comparison, Some([side, side])).page().unwrap();
    let verdicts = section(&page, "verdicts");
    assert!(!verdicts.contains("WORSE") && verdicts.contains(">undecided</td>"), "{verdicts}");
    assert!(section(&page, "findings").contains("No findings in either result."));
    assert!(section(&page, "conditions").contains("No stored condition differs."));
    assert!(!body(&page).contains("id=\"calls\""), "no calls were counted");
}

#[test]
fn a_history_marks_its_changes() {
    let page = history_page();
    assert!(section(&page, "answer").contains("1 of 1 series changed."));
    let changes = section(&page, "changes");
    assert!(changes.contains("nightly-12 &lt;i&gt;") && changes.contains(">worse</td>"), "{changes}");
    assert!(changes.contains(">-50.") || changes.contains(">-49."), "{changes}");
    assert_eq!(section(&page, "results").matches("<tr>").count(), 25);
}

#[test]
#[ignore = "full tier: Chromium"]
fn chromium_draws_both_pages() {
    let Some(chromium) = chromium() else { return };
    for (page, plots) in [(page(), 10), (history_page(), 1)] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("report.html"), page).unwrap();
        for (width, dark) in [(390, false), (1400, true)] {
            let seen = visit(&chromium, directory.path(), width, dark);
            seen.assert_whole(width);
            assert!(seen.number("expected") >= plots, "{seen:?}");
            seen.assert_usable();
        }
    }
}
