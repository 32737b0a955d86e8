use benchmaster_analysis::analyze;
use benchmaster_analysis::compare::{Options as CompareOptions, Responses, compare};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::results::diagnose;
use benchmaster_record::results::StudyResults;
use benchmaster_testkit::{fail, study_results};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::escape::{code, code_cell, fenced};
use super::*;
use crate::details::NoDetails;
use crate::pages::{comparison as compared, study};

fn of(results: &StudyResults) -> String {
    let analysis = analyze(results);
    study(results, &analysis, &diagnose(results, &analysis, &NoDetails), None).markdown()
}

fn events(text: &str) -> Vec<Event<'_>> {
    Parser::new_ext(text, Options::ENABLE_TABLES).collect()
}

/// What a reader sees of inline text and code.
fn seen(text: &str) -> String {
    events(text)
        .into_iter()
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.to_string()),
            Event::SoftBreak | Event::End(_) => Some(" ".into()),
            _ => None,
        })
        .collect()
}

/// Cells of all rows of all tables, heads included.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut cell: Option<String> = None;
    for event in events(text) {
        match event {
            Event::Start(Tag::TableHead | Tag::TableRow) => rows.push(Vec::new()),
            Event::Start(Tag::TableCell) => cell = Some(String::new()),
            Event::End(TagEnd::TableCell) => {
                rows.last_mut().unwrap().extend(cell.take());
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(cell) = &mut cell {
                    cell.push_str(&text);
                }
            }
            _ => {}
        }
    }
    rows
}

const HOSTILE: [&str; 12] = [
    "a | b \\| c \\",
    "<script>alert(1)</script> <!-- &amp; -->",
    "`code` ``two`` ```three",
    "*bold* _it_ __x__ ~~gone~~ $1+1$",
    "[link](http://example.org) ![image](x) [x]: y",
    "# head",
    "1. item",
    "- [ ] task",
    "> quote",
    "@someone #123",
    "tail \\",
    "--- === +++",
];

#[test]
fn a_study_is_shown_in_order() {
    let results = study_results(7, 4, 3);
    // What is found in such results changes when something is added to what is looked for.
    let text = study(&results, &analyze(&results), &crate::made_up::diagnosis(), None).markdown();
    let heads: Vec<_> = text.lines().filter(|line| line.starts_with("##")).collect();
    assert_eq!(
        heads,
        [
            "## synthetic",
            "### Answer",
            "### Findings, most important first",
            "### Other workloads",
            "### Validity",
            "### How to reproduce"
        ]
    );
    insta::assert_snapshot!(text);
}

#[test]
fn tables_have_a_row_per_treatment_and_no_ragged_rows() {
    let rows = rows(&of(&study_results(7, 4, 3)));
    // Two workloads: a head and four treatments each.
    assert_eq!(rows.len(), 2 * (1 + 4));
    assert!(rows.iter().all(|row| row.len() == rows[0].len() && row.iter().all(|cell| !cell.is_empty())));
    assert_eq!(rows[1][..2], ["4KiB", "off"]);
}

#[test]
fn many_treatments_are_cut_and_that_is_stated() {
    let text = of(&study_results(3, 40, 1));
    assert_eq!(rows(&text).iter().filter(|row| row.iter().any(|cell| cell == "n")).count(), 2);
    assert_eq!(rows(&text).len(), 2 * (1 + ROWS));
    assert!(text.contains("The first 32 of 40 rows; `benchmaster export` writes all."), "{text}");
    assert!(text.len() < 65_536, "an issue takes no more: {}", text.len());
}

#[test]
fn hostile_names_stay_text() {
    for hostile in HOSTILE {
        let mut results = study_results(1, 2, 2);
        results.study.description = Some(hostile.into());
        for treatment in &mut results.study.treatments {
            treatment.label = format!("{} {hostile}", treatment.label);
        }
        for level in results.study.factors.iter_mut().flat_map(|factor| &mut factor.levels) {
            *level = format!("{level} {hostile}");
        }
        results
            .runs
            .iter_mut()
            .flat_map(|run| &mut run.checks)
            .for_each(|check| check.message = hostile.into());
        fail(&mut results.runs[0], hostile);
        let text = of(&results);
        let rows = rows(&text);
        assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{hostile}: {rows:?}");
        assert!(rows[1][0].ends_with(hostile), "{hostile}: {:?}", rows[1]);
        let html = events(&text).into_iter().filter_map(|event| match event {
            Event::Html(html) | Event::InlineHtml(html) => Some(html.trim().to_owned()),
            _ => None,
        });
        let html: Vec<_> = html.collect();
        assert_eq!(html, ["<details><summary>Study file as run</summary>", "</details>"], "{hostile}");
        // Twice in the validity section, and as the description.
        assert!(seen(&text).matches(hostile).count() >= 3, "{hostile}: {}", seen(&text));
        let markup = |event: &Event<'_>| matches!(event, Event::Start(Tag::Link { .. } | Tag::Image { .. }));
        assert!(!events(&text).iter().any(markup), "{hostile}");
    }
}

#[test]
fn code_keeps_its_backticks() {
    for words in HOSTILE.iter().chain(&["`", "``", " x ", "a`"]) {
        let words: &str = words;
        let shown: String = words.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(seen(&code(words)).trim(), shown);
        let table = format!("| a | b |\n|---|---|\n| {} | x |", code_cell(words));
        assert_eq!(rows(&table)[1], [shown.as_str(), "x"], "{table}");
    }
    let block = fenced("toml", "a = \"```\"\n~~~");
    assert!(matches!(&events(&block)[1], Event::Text(text) if text.contains("```")), "{block}");
}

#[test]
fn findings_and_their_absence_are_stated() {
    let results = study_results(7, 2, 2);
    let analysis = analyze(&results);
    let none = study(&results, &analysis, &Diagnosis { clear: vec!["a", "b"], ..Diagnosis::default() }, None)
        .markdown();
    assert!(none.contains("No findings: 2 conditions checked, none present."), "{none}");
    let diagnosis = crate::made_up::diagnosis();
    let text = study(&results, &analysis, &diagnosis, None).markdown();
    assert!(text.contains("1. **retransmission** (likely, 12 % of all calls): 3 of 25 calls"), "{text}");
    assert!(text.contains("*Do:* Look for loss \\| congestion. `ethtool -S eth0`"), "{text}");
}

#[test]
fn a_comparison_has_the_tables_of_the_terminal() {
    let results = study_results(7, 4, 4);
    let options = CompareOptions {
        responses: Responses::Named(vec!["write.throughput".into()]),
        band: 0.02,
        confidence: None,
    };
    let comparison = compare(&results, &results, &options, false).unwrap();
    let text = compared(&comparison, None).markdown();
    let rows = rows(&text);
    // A head, four cells and all together.
    assert_eq!(rows.len(), 6, "{text}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
    assert!(rows[1..].iter().all(|row| row.contains(&"undecided".into())), "{rows:?}");
    for heading in ["## B against A", "### What changed", "### Conditions that differ"] {
        assert!(text.lines().any(|line| line == heading), "no {heading}: {text}");
    }
}
