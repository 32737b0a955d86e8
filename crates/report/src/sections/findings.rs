//! Findings with their evidence, and the plot that proves each.

use benchmaster_diagnosis::catalogue::explain;
use benchmaster_diagnosis::diagnosis::{Diagnosis, Explained, Limiting};
use benchmaster_diagnosis::explanation::{Explanation, Group};
use benchmaster_diagnosis::finding::{At, AtTreatment, Evidence, EvidenceUnit, Finding, Plot, Test};
use benchmaster_record::results::Severity;

use crate::document::{Block, Cell, Document, Entry, Link, Note, Section, Table};
use crate::format;
use crate::plots::Plots;
use crate::plots::figure::Figure;

/// Share of the time of calls from which a part of it is named.
const LEAST_SPENT: f64 = 0.005;
/// Findings that the page does not fold away.
const FIRST: usize = 4;
/// Clients of a finding that are named.
const CLIENTS: usize = 8;
/// Treatments of a finding that are listed.
const TREATMENTS: usize = 40;

/// All that `diagnose` knows: what limits each workload, the findings by kind with their evidence, and what was not found.
pub(crate) fn document(title: String, lead: Vec<String>, diagnosis: &Diagnosis) -> Document {
    let of = |group: Group| {
        // Numbers are those of the most important first, as in the summary of a run.
        let entries = (1..).zip(&diagnosis.findings).map(|(n, one)| entry(n, one, &Plots::default(), false));
        let entries = entries.filter(move |entry| entry.group == group);
        Section::new("findings", group.words()).full(entries.map(|entry| Block::Finding(Box::new(entry))))
    };
    let list = |items: Vec<String>| if items.is_empty() { None } else { Some(Block::List(items)) };
    let inline = |items: &[String]| (!items.is_empty()).then(|| items.join(", "));
    let mut sections = vec![
        Section::new("damage", "damage").full(damage(diagnosis)),
        Section::new("limits", "limits").full(limits(diagnosis)).full(list(accounts(diagnosis))),
    ];
    sections.extend([Group::Doubt, Group::Limit, Group::Phenomenon, Group::Condition].map(of));
    sections.extend([
        Section::new("none", "findings").full(none(diagnosis)),
        Section::new("clear", "checked and not present").full(inline(&clear(diagnosis, str::to_owned))),
        Section::new("absent", "could not be checked").full(list(absent(diagnosis))),
    ]);
    Document { kind: "Benchmaster diagnosis", title, lead, sections }
}

/// What stands behind a kind of finding.
pub(crate) fn explanation(one: &Explanation) -> Document {
    let part = |title, text: &str| Section::new("explanation", title).full([text]);
    let sections = vec![part("why", &one.mechanism), part("rule", &one.formula), part("source", &one.source)];
    let title = format!("{}: {}", one.id, one.title);
    Document { kind: "Benchmaster diagnosis", title, lead: Vec::new(), sections }
}

fn damage(diagnosis: &Diagnosis) -> impl Iterator<Item = Note> {
    diagnosis.damage.iter().map(|text| Note {
        severity: Some(Severity::Invalid),
        mark: "DAMAGED",
        check: None,
        seen: String::new(),
        text: text.clone(),
        remedy: String::new(),
    })
}

fn none(diagnosis: &Diagnosis) -> Option<String> {
    diagnosis.findings.is_empty().then(|| {
        let checked = format::plural(diagnosis.clear.len(), "condition");
        format!("No findings: {checked} checked, none present.")
    })
}

/// What was looked for and is not there.
fn clear(diagnosis: &Diagnosis, shown: impl Fn(&str) -> String) -> Vec<String> {
    let mut clear = diagnosis.clear.clone();
    clear.sort_unstable();
    clear.dedup();
    clear.into_iter().map(shown).collect()
}

/// What the time of a workload's calls was spent on.
fn accounts(diagnosis: &Diagnosis) -> Vec<String> {
    let account = |one: &Limiting| {
        let spent = one.account.iter().filter(|spent| spent.share >= LEAST_SPENT);
        let spent: Vec<_> =
            spent.map(|spent| format!("{} {}", spent.part.words(), format::percent(spent.share))).collect();
        let place: Vec<_> = [&one.workload, &one.label]
            .into_iter()
            .filter(|name| !name.is_empty())
            .map(String::as_str)
            .collect();
        (!spent.is_empty()).then(|| format!("time of calls ({}): {}", place.join(", "), spent.join(", ")))
    };
    diagnosis.limits.iter().filter_map(account).collect()
}

/// Findings, most important first; then what was not found and what could not be checked.
pub(super) fn section(diagnosis: &Diagnosis, plots: &Plots) -> Section {
    let numbered = (1..).zip(&diagnosis.findings);
    let entries = numbered.map(|(number, one)| Block::Finding(Box::new(entry(number, one, plots, true))));
    let mut first: Vec<Block> = entries.collect();
    let more = first.split_off(first.len().min(FIRST));
    let folded =
        |title: String, blocks: Vec<Block>| (!blocks.is_empty()).then_some(Block::Fold(title, blocks));
    let list = |items: Vec<String>| if items.is_empty() { Vec::new() } else { vec![Block::List(items)] };
    let titled = |id: &str| format!("{id}: {}", explain(id).map_or("", |one| &one.title));
    let clear = clear(diagnosis, titled);
    Section::new("findings", "Findings, most important first")
        .unlisted()
        .brief(damage(diagnosis))
        .brief(none(diagnosis))
        .brief(first)
        .brief(folded(format!("{} more findings, which cost less", more.len()), more))
        .full(limits(diagnosis).map(Block::folded))
        .page(folded(format!("Checked and not present: {}", clear.len()), list(clear)))
        .full(folded("Could not be checked".into(), list(absent(diagnosis))))
}

/// What could not be checked, by what is missing and where.
fn absent(diagnosis: &Diagnosis) -> Vec<String> {
    let mut places: Vec<((&str, &str), Vec<&str>)> = Vec::new();
    for absent in &diagnosis.absent {
        let key = (absent.why.as_str(), absent.id);
        match places.iter_mut().find(|(known, _)| *known == key) {
            Some((_, all)) if all.contains(&absent.place.as_str()) => {}
            Some((_, all)) => all.push(&absent.place),
            None => places.push((key, vec![&absent.place])),
        }
    }
    let mut reasons: Vec<((&str, String), Vec<&str>)> = Vec::new();
    for ((why, id), places) in places {
        let key = (why, places.join("; "));
        match reasons.iter_mut().find(|(known, _)| *known == key) {
            Some((_, ids)) => ids.push(id),
            None => reasons.push((key, vec![id])),
        }
    }
    let line = |((why, place), ids): ((&str, String), Vec<&str>)| {
        let place = if place.is_empty() { place } else { format!(" ({place})") };
        let why = if why.is_empty() { String::new() } else { format!(": {why}") };
        format!("{}{place}{why}", ids.join(", "))
    };
    reasons.into_iter().map(line).collect()
}

/// What limits each workload in each treatment.
fn limits(diagnosis: &Diagnosis) -> Option<Table> {
    let head = ["treatment", "workload", "limit", "#share explained", "contributing|1"];
    let mut table = Table::new("Limit of each treatment", &head);
    let named = |one: &Explained| format!("{} ({})", one.id, format::percent(one.share));
    for one in &diagnosis.limits {
        table.row([
            Cell::name(&one.label),
            Cell::text(&one.workload),
            Cell::text(one.limit.as_ref().map_or("not determined", |limit| limit.id)),
            Cell::percent(one.limit.as_ref().map(|limit| limit.share)),
            Cell::text(one.contributing.iter().map(named).collect::<Vec<_>>().join(", ")),
        ]);
    }
    table.filled()
}

/// A finding with its evidence, and with its explanation if that is wanted; its plot if the page draws one.
fn entry(number: usize, finding: &Finding, plots: &Plots, with_cause: bool) -> Entry {
    let explained = explain(finding.id);
    let mut background = Vec::new();
    background.extend(finding.cost.as_ref().map(|cost| ("How the cost is estimated", cost.estimate.clone())));
    if let Some(known) = explained.filter(|_| with_cause) {
        background.extend([
            ("Cause", format!("{}: {}", known.title, known.mechanism)),
            ("Rule", known.formula.clone()),
            ("Source", known.source.clone()),
        ]);
    }
    background.extend(finding.remedy.confirm.clone().map(|confirm| ("To confirm it", confirm)));
    background.extend(finding.at.as_ref().and_then(described).map(|run| ("Described", run)));
    let treatments = finding.at.as_ref().and_then(|at| treatments(&at.treatments));
    Entry {
        number,
        finding: finding.clone(),
        group: explained.map_or(Group::Condition, |one| one.group),
        place: place(finding),
        plot: finding.at.as_ref().and_then(|at| link(at, plots)),
        evidence: evidence(&finding.evidence)
            .into_iter()
            .chain(tests(&finding.tests))
            .chain(treatments)
            .collect(),
        background,
    }
}

/// Where and when, in words.
fn place(finding: &Finding) -> String {
    let mut place = finding.place.clone();
    let Some(at) = &finding.at else { return place };
    if !at.clients.is_empty() {
        let more = at.clients.len().saturating_sub(CLIENTS);
        let first = at.clients.iter().take(CLIENTS).cloned().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        place += &format!("; clients {first}{more}");
    }
    if let Some((from, to)) = at.interval_ns {
        let seconds = |ns: u64| format::fixed(ns as f64 / 1e9, 2);
        place += &format!("; from {} s to {} s of the measured phase", seconds(from), seconds(to));
    }
    place
}

/// Of several runs with the finding the one that its sentence describes.
fn described(at: &At) -> Option<String> {
    let runs: usize = at.treatments.iter().map(|one| one.runs.len()).sum();
    let run = at.shown.filter(|_| runs > 1)?;
    let label = at.treatments.iter().find(|one| one.treatment == run.treatment).map_or("", |one| &one.label);
    let label = if label.is_empty() { String::new() } else { format!(" of {label}") };
    Some(format!("replicate {}{label}", run.replicate + 1))
}

/// The figures that prove something of a kind, those that are drawn most rarely first.
fn kinds(plot: Plot) -> &'static [&'static str] {
    match plot {
        Plot::Response => &["response-"],
        Plot::Time => &["stack-", "time-"],
        Plot::Latency => &["latency-"],
        Plot::Trace => &["trace-", "stack-", "latency-"],
        Plot::Clients => &["members-"],
        Plot::Counters => &["stack-", "samples-"],
        Plot::Load => &["load-"],
        Plot::Effects => &["effects-"],
    }
}

/// The figure of this page that proves a finding, in the view of the run that the finding describes. `None` when the page does
/// not draw it.
fn link(at: &At, plots: &Plots) -> Option<Link> {
    let of_workload = |figure: &&Figure| {
        figure.workload.is_empty() || at.workload.as_ref().is_none_or(|workload| *workload == figure.workload)
    };
    let figure = kinds(at.plot?)
        .iter()
        .find_map(|kind| plots.figures().filter(of_workload).rfind(|figure| figure.id.starts_with(kind)))?;
    let label = at.treatments.first().map(|place| place.label.as_str()).filter(|label| !label.is_empty());
    let run = label.zip(at.shown).map(|(label, run)| format!("{label}, replicate {}", run.replicate + 1));
    let position = |wanted: &str| figure.views.iter().position(|view| view.label.starts_with(wanted));
    let exactly = |wanted: &str| figure.views.iter().position(|view| view.label == wanted);
    let view = run.and_then(|run| position(&run)).or_else(|| label.and_then(exactly));
    Some(Link {
        figure: figure.id.clone(),
        title: figure.title.clone(),
        view: view.or_else(|| position(&format!("{}, replicate", label?))).filter(|_| figure.views.len() > 1),
    })
}

fn evidence(all: &[Evidence]) -> Option<Table> {
    let several = all.iter().any(|one| one.runs > 1);
    let columns = ["what", "#value", "#runs|1"];
    let mut table = Table::new("Evidence", if several { &columns } else { &columns[..2] });
    for one in all {
        let runs = several.then(|| Cell::count(one.runs));
        let cells = [Cell::text(&one.name), Cell::number(value(one), one.value)];
        table.row(cells.into_iter().chain(runs));
    }
    if all.iter().any(|one| one.half_width.is_some()) {
        table.note =
            "Means over the runs of the treatment with the highest cost, ± half width of the 95 % interval."
                .into();
    }
    table.filled()
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
    let half_width = evidence.half_width.map_or_else(String::new, |half| format!(" ± {}", of(half)));
    of(evidence.value) + &half_width
}

fn tests(all: &[Test]) -> Option<Table> {
    let mut table = Table::new("Tests", &["test", "#p", "#estimate", "interval"]);
    for one in all {
        let interval = one.interval.map_or_else(Cell::none, |i| {
            let level = format::percent(i.confidence);
            Cell::text(format!("{} to {} ({level})", number(i.lower), number(i.upper)))
        });
        let estimate = Cell::some(one.interval.map(|i| i.value), number);
        table.row([Cell::text(&one.name), Cell::p(one.p), estimate, interval]);
    }
    table.filled()
}

/// The treatments in which something was found, if there are several.
fn treatments(all: &[AtTreatment]) -> Option<Table> {
    let mut table = Table::new("Treatments with this finding", &["treatment", "#runs", "#of", "#cost"]);
    for one in all {
        let runs = [Cell::count(one.runs.len()), Cell::count(one.of)];
        table.row([Cell::name(&one.label)].into_iter().chain(runs).chain([Cell::percent(one.cost)]));
    }
    table.cap(TREATMENTS);
    (all.len() > 1).then_some(table)
}

/// Whole numbers in groups of three, others with four significant digits.
fn number(value: f64) -> String {
    let magnitude = value.abs();
    match magnitude {
        _ if !value.is_finite() => value.to_string(),
        0.0 => "0".into(),
        1e-4..1e15 if value.fract() == 0.0 || magnitude >= 1e4 => {
            let sign = if value < 0.0 { "−" } else { "" };
            format!("{sign}{}", format::count(magnitude.round() as u64))
        }
        1e-4..1e4 => {
            let decimals = (3 - magnitude.log10().floor() as i32).clamp(0, 8) as usize;
            let text = format::fixed(value, decimals);
            let text =
                if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            text.replace('-', "−")
        }
        _ => format!("{value:.3e}").replace('-', "−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_has_its_unit_and_interval() {
        let mut evidence = Evidence::nanoseconds("x", 2_134_000.0);
        assert_eq!(value(&evidence), "2.13 ms");
        (evidence.half_width, evidence.runs) = (Some(120_000.0), 5);
        assert_eq!(value(&evidence), "2.13 ms ± 120 µs");
        assert_eq!(value(&Evidence::number("x", 0.912_346)), "0.9123");
        assert_eq!(value(&Evidence::bytes_per_second("x", 1_048_576.0)), "1 MiB/s");
        assert_eq!(value(&Evidence::per_second("x", 12.345)), "12.35/s");
    }

    #[test]
    fn tests_are_shown_with_p_or_interval() {
        let interval = benchmaster_diagnosis::finding::TestInterval {
            value: 0.9,
            lower: 0.8,
            upper: 1.0,
            confidence: 0.95,
        };
        let all = [
            Test { name: "t".into(), p: Some(0.000_01), interval: None },
            Test { name: "u".into(), p: Some(0.03), interval: Some(interval) },
        ];
        let rows: Vec<Vec<String>> = tests(&all)
            .unwrap()
            .rows
            .iter()
            .map(|row| row.iter().map(|cell| cell.text.clone()).collect())
            .collect();
        assert_eq!(rows[0], ["t", "<0.0001", "–", "–"]);
        assert_eq!(rows[1], ["u", "0.0300", "0.9", "0.8 to 1 (95 %)"]);
    }

    #[test]
    fn numbers_have_four_digits() {
        let told =
            [0.0, 3.0, 12345.0, 1.5e6 + 0.25, 0.012_345_6, -2.5, 1234.5678, 1e-9, f64::NAN].map(number);
        assert_eq!(told, ["0", "3", "12 345", "1 500 000", "0.01235", "−2.5", "1235", "1.000e−9", "NaN"]);
    }
}
