//! What is found, as text.

use benchmaster_diagnosis::catalogue::explain;
use benchmaster_diagnosis::diagnosis::{Diagnosis, Explained};
use benchmaster_diagnosis::explanation::{Explanation, Group};
use benchmaster_diagnosis::finding::{At, Evidence, EvidenceUnit, Finding, Test};
use benchmaster_record::results::StudyResults;
use benchmaster_report::terminal::wrap;
use benchmaster_units::format;

/// Width of the text.
const WIDTH: usize = 98;
/// Treatments of a finding that are listed.
const TREATMENTS: usize = 4;
/// Rows of the table of limits.
const LIMITS: usize = 16;

/// Findings of a study: by kind, the costliest first, then what is not there and what is not known.
pub(super) fn of_study(results: &StudyResults, diagnosis: &Diagnosis) -> String {
    let runs = results.runs.iter().filter(|run| run.failure.is_none()).count();
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut text = format!(
        "{}: {} of {}, {}\n",
        results.study.name,
        counted(runs, "run"),
        counted(results.study.treatments.len(), "treatment"),
        counted(diagnosis.findings.len(), "finding")
    );
    for damage in &diagnosis.damage {
        text += &indented(&format!("DAMAGED: {damage}"), "");
    }
    text += &limits(diagnosis);
    for group in [Group::Doubt, Group::Limit, Group::Phenomenon, Group::Condition] {
        let is_of = |(_, finding): &(usize, &Finding)| {
            explain(finding.id).map_or(Group::Condition, |known| known.group) == group
        };
        let mut head = format!("\n{}\n", group.words().to_uppercase());
        // Numbers are those of the costliest first, as in the summary of a run.
        for (number, finding) in (1..).zip(&diagnosis.findings).filter(is_of) {
            text += &std::mem::take(&mut head);
            text += &format!("\n{number}. {} ({})\n", finding.id, finding.confidence.word());
            text += &of_finding(finding, true);
        }
    }
    text + &nothing(diagnosis)
}

/// Findings in mountstats. `several`: of more than one mount.
pub(super) fn of_mounts(diagnosis: &Diagnosis, several: bool) -> String {
    let mut text = String::new();
    for (number, finding) in (1..).zip(&diagnosis.findings) {
        text += &format!("\n{number}. {} ({})\n", finding.id, finding.confidence.word());
        text += &of_finding(finding, several);
    }
    text + &nothing(diagnosis)
}

/// What stands behind a kind of finding.
pub(super) fn of_explanation(one: &Explanation) -> String {
    let mut text = format!("{}: {}\n", one.id, one.title);
    for (head, body) in [("why", one.mechanism), ("rule", one.formula), ("source", one.source)] {
        text += &format!("\n{head}\n{}", indented(body, "  "));
    }
    text
}

/// What limits each workload in each treatment.
fn limits(diagnosis: &Diagnosis) -> String {
    if diagnosis.limits.is_empty() {
        return String::new();
    }
    let mut text = "\nthe limit of each workload\n".to_owned();
    let place = |limiting: &benchmaster_diagnosis::diagnosis::Limiting| {
        if limiting.label.is_empty() {
            limiting.workload.clone()
        } else {
            format!("{}, {}", limiting.workload, limiting.label)
        }
    };
    let shown = &diagnosis.limits[..diagnosis.limits.len().min(LIMITS)];
    let width = shown.iter().map(|limiting| place(limiting).chars().count()).max().unwrap_or(0).min(48);
    let named = |one: &Explained| format!("{} {}", one.id, format::percent(one.share));
    for limiting in shown {
        let limit = limiting.limit.as_ref().map_or_else(|| "not determined".to_owned(), named);
        let others: Vec<String> = limiting.contributing.iter().map(named).collect();
        let others = if others.is_empty() { String::new() } else { format!("   also {}", others.join(", ")) };
        text += &format!("  {:width$}  {limit}{others}\n", place(limiting));
        let spent: Vec<String> = limiting
            .account
            .iter()
            .filter(|spent| spent.share >= 0.005)
            .map(|spent| format!("{} {}", spent.part.words(), format::percent(spent.share)))
            .collect();
        if !spent.is_empty() {
            text += &indented(&format!("time of calls: {}", spent.join(", ")), "    ");
        }
    }
    match diagnosis.limits.len() - shown.len() {
        0 => {}
        more => text += &format!("  {more} more: --json has all of them\n"),
    }
    text
}

/// What is not there, and what is not known.
fn nothing(diagnosis: &Diagnosis) -> String {
    let mut text = String::new();
    if diagnosis.findings.is_empty() {
        text += "\nNothing was found.\n";
    }
    if !diagnosis.clear.is_empty() {
        text += "\nlooked for and not there\n";
        text += &indented(&diagnosis.clear.join(", "), "  ");
    }
    if !diagnosis.absent.is_empty() {
        text += "\nnot known\n";
        // What is missing for the same reason is listed once.
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for absent in &diagnosis.absent {
            let what = format!("{} ({})", absent.id, absent.place);
            match reasons.iter_mut().find(|(why, _)| *why == absent.why) {
                Some((_, those)) => those.push(what),
                None => reasons.push((&absent.why, vec![what])),
            }
        }
        for (why, those) in reasons {
            text += &indented(&format!("{}: {why}", those.join(", ")), "  ");
        }
    }
    text
}

fn of_finding(finding: &Finding, several: bool) -> String {
    let mut text = indented(&finding.what, "   ");
    if several {
        text += &indented(&format!("where: {}", finding.place), "   ");
    }
    if let Some(at) = &finding.at {
        text += &of_place(at);
    }
    if let Some(cost) = &finding.cost {
        let share = format::percent(cost.share);
        text += &indented(&format!("cost: {share} {} ({})", cost.of.words(), cost.estimate), "   ");
    }
    for evidence in &finding.evidence {
        text += &indented(&format!("{}: {}", evidence.name, value(evidence)), "     ");
    }
    for test in &finding.tests {
        text += &indented(&of_test(test), "     ");
    }
    text += &indented(&format!("do: {}", finding.remedy.text), "   ");
    if let Some(command) = &finding.remedy.command {
        text += &format!("     {command}\n");
    }
    if let Some(confirm) = &finding.remedy.confirm {
        text += &indented(&format!("confirm: {confirm}"), "   ");
    }
    text
}

/// Treatments, clients, time, and the run that the sentence describes.
fn of_place(at: &At) -> String {
    let mut text = String::new();
    if at.treatments.len() > 1 {
        for one in at.treatments.iter().take(TREATMENTS) {
            let cost = one.cost.map_or_else(String::new, |cost| format!(", {}", format::percent(cost)));
            text += &indented(
                &format!("{}: {} of {}{cost}", one.label, one.runs.len(), format::plural(one.of, "run")),
                "     ",
            );
        }
        match at.treatments.len().saturating_sub(TREATMENTS) {
            0 => {}
            more => text += &format!("     and {more} more\n"),
        }
    }
    if !at.clients.is_empty() {
        text += &indented(&format!("clients: {}", at.clients.join(", ")), "   ");
    }
    if let Some((from, to)) = at.interval_ns {
        let time = |ns: u64| format!("{:.1} s", ns as f64 / 1e9);
        text += &format!("   when: from {} to {} of the measured phase\n", time(from), time(to));
    }
    let runs: usize = at.treatments.iter().map(|one| one.runs.len()).sum();
    if let Some(shown) = at.shown.filter(|_| runs > 1) {
        let first = at.treatments.iter().find(|one| one.treatment == shown.treatment);
        let label = first.map(|one| one.label.as_str()).filter(|label| !label.is_empty());
        let label = label.map_or_else(String::new, |label| format!(" of {label}"));
        text += &indented(&format!("shown: replicate {}{label}", shown.replicate + 1), "   ");
    }
    text
}

/// A number with its unit; over several runs with the half width of its interval.
fn value(evidence: &Evidence) -> String {
    let of = |value: f64| match evidence.unit {
        EvidenceUnit::Nanoseconds => format::time(value),
        EvidenceUnit::Bytes if value >= 0.0 => format::bytes(value.round()),
        EvidenceUnit::BytesPerSecond if value >= 0.0 => format!("{}/s", format::bytes(value.round())),
        EvidenceUnit::One => number(value),
        EvidenceUnit::PerSecond => format!("{}/s", number(value)),
        unit => format!("{} {unit}", number(value)),
    };
    match evidence.half_width {
        Some(half_width) => {
            format!("{} ± {} (95 %, {} runs)", of(evidence.value), of(half_width), evidence.runs)
        }
        None => of(evidence.value),
    }
}

fn of_test(test: &Test) -> String {
    let mut parts = Vec::new();
    if let Some(interval) = test.interval {
        parts.push(format!(
            "{} [{}, {}] ({} %)",
            number(interval.value),
            number(interval.lower),
            number(interval.upper),
            number(interval.confidence * 100.0)
        ));
    }
    parts.extend(
        test.p.map(|p| if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {}", number(p)) }),
    );
    format!("test: {}: {}", test.name, parts.join(", "))
}

/// Whole numbers whole, others with a few digits.
fn number(value: f64) -> String {
    match value {
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        _ if value.abs() >= 100.0 => format!("{value:.0}"),
        _ => {
            let decimals = if value.abs() >= 1.0 { 2 } else { 5 };
            let text = format!("{value:.decimals$}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// Lines of words, each with `indent` before it.
pub(super) fn indented(words: &str, indent: &str) -> String {
    let lines = wrap(words, WIDTH - indent.len());
    lines.into_iter().map(|line| format!("{indent}{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_units_and_intervals() {
        let mut evidence = Evidence::nanoseconds("x", 2_134_000.0);
        assert_eq!(value(&evidence), "2.13 ms");
        (evidence.half_width, evidence.runs) = (Some(120_000.0), 5);
        assert_eq!(value(&evidence), "2.13 ms ± 120 µs (95 %, 5 runs)");
        assert_eq!(value(&Evidence::number("x", 0.912_346)), "0.91235");
        assert_eq!(value(&Evidence::bytes_per_second("x", 1_048_576.0)), "1 MiB/s");
        assert_eq!(value(&Evidence::per_second("x", 12.345)), "12.35/s");
        assert_eq!([0.0, 7.0, 0.5, -12.345, 1234.5].map(number), ["0", "7", "0.5", "-12.35", "1234"]);
    }

    #[test]
    fn tests_are_told_with_p_or_interval() {
        let interval = benchmaster_diagnosis::finding::TestInterval {
            value: 0.9,
            lower: 0.8,
            upper: 1.0,
            confidence: 0.95,
        };
        let mut test = Test { name: "t".into(), p: Some(0.000_01), interval: None };
        assert_eq!(of_test(&test), "test: t: p < 0.0001");
        (test.p, test.interval) = (Some(0.03), Some(interval));
        assert_eq!(of_test(&test), "test: t: 0.9 [0.8, 1] (95 %), p = 0.03");
    }
}
