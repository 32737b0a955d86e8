//! Verdicts read back from what CI reads.

use std::collections::BTreeMap;

use benchmaster_analysis::analyze;
use benchmaster_analysis::compare::{Options, Responses, compare as compared};
use benchmaster_record::results::CheckKind;
use serde_json::Value;

use super::*;

/// An element of XML.
#[derive(Debug, Default)]
struct Element {
    name: String,
    attributes: BTreeMap<String, String>,
    children: Vec<Element>,
    text: String,
}

/// Parses what `junit` writes; anything that is not well formed panics.
fn parse(xml: &str) -> Element {
    let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").unwrap();
    let mut open = vec![Element::default()];
    let mut rest = body;
    while let Some(at) = rest.find('<') {
        open.last_mut().unwrap().text += &unescaped(&rest[..at]);
        let end = at + rest[at..].find('>').unwrap();
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            let element = open.pop().unwrap();
            assert_eq!(element.name, name);
            open.last_mut().unwrap().children.push(element);
            continue;
        }
        let closed = tag.strip_suffix('/');
        let (name, mut attributes) = closed.unwrap_or(tag).split_once(' ').unwrap_or((tag, ""));
        let mut element = Element { name: name.into(), ..Element::default() };
        while let Some((key, after)) = attributes.trim_start().split_once("=\"") {
            let (value, after) = after.split_once('"').unwrap();
            assert!(element.attributes.insert(key.into(), unescaped(value)).is_none(), "{key} twice");
            attributes = after;
        }
        assert_eq!(attributes.trim(), "");
        match closed {
            Some(_) => open.last_mut().unwrap().children.push(element),
            None => open.push(element),
        }
    }
    assert_eq!(rest.trim(), "");
    let [document] = &mut open[..] else { panic!("{} is not closed", open.last().unwrap().name) };
    assert_eq!(document.children.len(), 1);
    document.children.remove(0)
}

fn unescaped(text: &str) -> String {
    let mut parts = text.split('&');
    let mut found = parts.next().unwrap().to_owned();
    assert!(found.chars().all(|c| !c.is_control() || c == '\n'), "{found:?}");
    for part in parts {
        let (name, after) = part.split_once(';').unwrap();
        found.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            number => char::from_u32(number.strip_prefix('#').unwrap().parse::<u32>().unwrap()).unwrap(),
        });
        found += after;
    }
    found
}

fn verdict(group: &str, name: &str, outcome: Outcome, fails: bool, text: &str) -> Verdict {
    Verdict { group: group.into(), name: name.into(), outcome, fails, text: text.into() }
}

fn all() -> Vec<Verdict> {
    vec![
        verdict(
            "write.throughput",
            "size=4KiB",
            Outcome::Worse,
            true,
            "Changed for the worse: by -31 %,\nreally.",
        ),
        verdict(
            "write.throughput",
            "a<b & \"c\" 'd'\u{1b}",
            Outcome::Undecided,
            false,
            "Undecided: more runs.",
        ),
        verdict("write.throughput", "overall", Outcome::Good, false, "The same."),
        verdict(
            "read.calls",
            "all: runs, of 100%",
            Outcome::Changed,
            false,
            "Changed: by +5 %.\r\nSo it is.",
        ),
        verdict("checks", "B", Outcome::Warned, false, "noisy-host: other processes used 40 %."),
        verdict("checks", "C", Outcome::Invalid, true, "errors: <EIO>"),
    ]
}

#[test]
fn junit_has_the_shape_that_ci_reads() {
    let report = parse(&junit(&all()));
    assert_eq!(report.name, "testsuites");
    let count = |element: &Element, key: &str| element.attributes[key].parse::<usize>().unwrap();
    let mut cases = Vec::new();
    for suite in &report.children {
        assert_eq!(suite.name, "testsuite");
        let of = |kind: &str| {
            let has = |case: &&Element| case.children.iter().any(|child| child.name == kind);
            suite.children.iter().filter(has).count()
        };
        assert_eq!(count(suite, "tests"), suite.children.len());
        assert_eq!((count(suite, "failures"), count(suite, "skipped")), (of("failure"), of("skipped")));
        cases.extend(&suite.children);
    }
    assert_eq!((count(&report, "tests"), count(&report, "failures"), count(&report, "skipped")), (6, 2, 1));
    let suites: Vec<_> = report.children.iter().map(|suite| suite.attributes["name"].as_str()).collect();
    assert_eq!(suites, ["write.throughput", "read.calls", "checks"]);
    for (case, verdict) in cases.iter().zip(all()) {
        assert_eq!((case.name.as_str(), &case.attributes["classname"]), ("testcase", &verdict.group));
        assert_eq!(case.attributes["name"], verdict.name.replace('\u{1b}', "\u{fffd}"));
        let [result] = &case.children[..] else { panic!("{case:?}") };
        match verdict.outcome {
            _ if verdict.fails => {
                assert_eq!((result.name.as_str(), &result.text), ("failure", &verdict.text));
                assert_eq!(result.attributes["type"], verdict.outcome.word());
                assert_eq!(result.attributes["message"], verdict.text.split('\n').next().unwrap());
            }
            Outcome::Undecided => assert_eq!((result.name.as_str(), result.text.as_str()), ("skipped", "")),
            _ => {
                let text = format!("{}: {}", verdict.outcome.word(), verdict.text);
                assert_eq!((result.name.as_str(), &result.text), ("system-out", &text));
            }
        }
    }
    assert_eq!(count(&parse(&junit(&[])), "tests"), 0);
}

#[test]
fn commands_of_github_are_one_line_each() {
    let expected = "\
::error title=write.throughput%2C size=4KiB::Changed for the worse: by -31 %25,%0Areally.
::warning title=read.calls%2C all%3A runs%2C of 100%25::Changed: by +5 %25.%0D%0ASo it is.
::warning title=checks%2C B::noisy-host: other processes used 40 %25.
::error title=checks%2C C::errors: <EIO>
";
    assert_eq!(github(&all()), expected);
    assert_eq!(github(&all()[1..3]), "");
}

#[test]
fn gitlab_gets_what_a_code_quality_report_must_have() {
    let report: Value = serde_json::from_str(&gitlab(&all(), "results/branch")).unwrap();
    let issues = report.as_array().unwrap();
    let severities: Vec<_> = issues.iter().map(|issue| issue["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["major", "minor", "minor", "major"]);
    let mut fingerprints: Vec<_> =
        issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), issues.len());
    for issue in issues {
        assert!(issue["description"].is_string() && issue["check_name"].is_string(), "{issue:#}");
        assert_eq!(
            (&issue["location"]["path"], &issue["location"]["lines"]["begin"]),
            (&"results/branch".into(), &1.into())
        );
    }
    assert_eq!(gitlab(&[], "x"), "[]\n");
}

#[test]
fn cells_and_treatments_have_verdicts() {
    let mut a = benchmaster_testkit::study_results(7, 2, 5);
    for run in &mut a.runs {
        run.checks.clear();
    }
    let mut b = a.clone();
    for run in b.runs.iter_mut().filter(|run| run.key.treatment == 1) {
        run.responses.iter_mut().for_each(|response| response.value *= 0.5);
    }
    let name = a.study.primary_response.clone();
    let options = Options { responses: Responses::Named(vec![name.clone()]), band: 0.02, confidence: None };
    let comparison = compared(&a, &b, &options, false).unwrap();
    let found = of_comparison(&comparison, |outcome| outcome == Outcome::Worse);
    let outcomes: Vec<_> = found.iter().map(|one| (one.group.as_str(), one.outcome, one.fails)).collect();
    assert_eq!(outcomes[1], (name.as_str(), Outcome::Worse, true), "{found:?}");
    assert_eq!((found.len(), found[2].name.as_str(), found[0].fails), (3, "overall", false));
    assert!(found[1].text.contains("-50.0 %"), "{found:?}");

    let clean = of_checks("checks", &analyze(&a), |_| false);
    assert!(clean[..2].iter().all(|one| one.outcome == Outcome::Good), "{clean:?}");
    // Three operations failed in the runs that were made up.
    assert_eq!(clean[2..], [verdict("checks", "operations", Outcome::Invalid, false, "3 operations failed")]);
    // A kind of check is shown once for a treatment, with its workloads.
    let warning = |workload: &str, message: &str| Check {
        kind: CheckKind::CpuLimit,
        severity: Severity::Warning,
        workload: Some(workload.into()),
        message: message.into(),
        evidence: vec![],
    };
    a.runs[0].checks = vec![warning("read", "All of it."), warning("write", "Most of it.")];
    let key = a.runs[0].key.treatment as usize;
    let warned = &of_checks("checks", &analyze(&a), |_| false)[key];
    assert_eq!(
        (warned.outcome, warned.text.as_str()),
        (Outcome::Warned, "cpu-limit (read, write): All of it.")
    );

    benchmaster_testkit::fail(&mut b.runs[0], "the server died");
    let broken = of_checks("checks", &analyze(&b), |outcome| outcome == Outcome::Invalid);
    let failed: Vec<_> = broken.iter().filter(|one| one.fails).collect();
    assert!(failed.len() == 2 && failed[0].text.contains("the server died"), "{broken:?}");
}
