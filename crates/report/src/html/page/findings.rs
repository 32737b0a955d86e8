//! Findings: what was found, with its evidence, and the plot that proves it.

use std::collections::BTreeSet;

use benchmaster_diagnosis::catalogue::all;
use benchmaster_diagnosis::diagnosis::{Diagnosis, Explained};
use benchmaster_diagnosis::explanation::{Explanation, Group};
use benchmaster_diagnosis::finding::{At, AtTreatment, Evidence, EvidenceUnit, Finding, Plot, Test};
use serde::Serialize;

use super::super::figure::Figure;
use crate::document::{Cell, Table};
use crate::format;
use crate::overview::unbroken;
use crate::sections::effects::p_value;

/// Findings that are not folded away.
const FIRST: usize = 4;

/// All that was looked for.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    /// What was found, the dearest first.
    found: Vec<Found>,
    /// What else was found, folded away.
    more: Vec<Found>,
    /// What limits each treatment.
    pub(super) limits: Option<Table>,
    /// What was looked for and is not there, in words.
    clear: Vec<String>,
    /// What is not known, and what would tell it.
    pub(super) absent: Option<Table>,
    /// Stored results that could not be read.
    damage: Vec<String>,
}

/// A finding in words.
#[derive(Debug, Serialize)]
struct Found {
    /// Anchor within the page.
    anchor: String,
    id: &'static str,
    group: &'static str,
    /// Style of the group.
    class: &'static str,
    title: &'static str,
    what: String,
    place: String,
    confidence: &'static str,
    cost: Option<Cost>,
    remedy: String,
    command: Option<String>,
    confirm: Option<String>,
    plot: Option<Link>,
    evidence: Option<Table>,
    tests: Option<Table>,
    treatments: Option<Table>,
    mechanism: &'static str,
    formula: &'static str,
    source: &'static str,
}

#[derive(Debug, Serialize)]
struct Cost {
    /// `43 %`.
    share: String,
    /// From 0 to 100, for the bar.
    percent: f64,
    of: &'static str,
    estimate: String,
}

/// A link to a plot of the page, in a view of it.
#[derive(Debug, PartialEq, Serialize)]
struct Link {
    figure: String,
    title: String,
    view: Option<usize>,
}

/// What was found, with links to those of the figures that prove it.
pub(super) fn findings(diagnosis: &Diagnosis, figures: &[&Figure]) -> Findings {
    let known = all();
    let title = |id: &str| known.iter().find(|one| one.id == id).map_or("", |one| one.title);
    let explained = |id: &str| known.iter().find(|one| one.id == id).copied();
    let found = diagnosis.findings.iter().enumerate();
    let clear: BTreeSet<&str> = diagnosis.clear.iter().copied().collect();
    let mut absent = Table::new(
        "What could not be looked for",
        &["finding", "where", "what is missing, and what gives it"],
    );
    for one in &diagnosis.absent {
        absent.row([
            Cell::text(format!("{}: {}", one.id, title(one.id))),
            Cell::text(&one.place),
            Cell::text(&one.why),
        ]);
    }
    let mut found: Vec<Found> =
        found.map(|(number, one)| shown(number + 1, one, explained(one.id), figures)).collect();
    let more = found.split_off(found.len().min(FIRST));
    Findings {
        found,
        more,
        limits: limits(diagnosis),
        clear: clear.into_iter().map(|id| format!("{id}: {}", title(id))).collect(),
        absent: (!absent.rows.is_empty()).then_some(absent),
        damage: diagnosis.damage.clone(),
    }
}

/// What limits each workload in each treatment.
fn limits(diagnosis: &Diagnosis) -> Option<Table> {
    let head = ["treatment", "workload", "what limits", "#share explained", "contributing"];
    let mut table = Table::new("What limits each treatment", &head);
    let told = |one: &Explained| format!("{} ({})", one.id, format::percent(one.share));
    for one in &diagnosis.limits {
        table.row([
            Cell::text(&one.label),
            Cell::text(&one.workload),
            Cell::text(one.limit.as_ref().map_or("not determined", |limit| limit.id)),
            one.limit
                .as_ref()
                .map_or_else(Cell::none, |limit| Cell::number(format::percent(limit.share), limit.share)),
            Cell::text(one.contributing.iter().map(told).collect::<Vec<_>>().join(", ")),
        ]);
    }
    (!table.rows.is_empty()).then_some(table)
}

fn shown(number: usize, finding: &Finding, explained: Option<&Explanation>, figures: &[&Figure]) -> Found {
    let group = explained.map_or(Group::Condition, |one| one.group);
    Found {
        anchor: format!("finding-{number}"),
        id: finding.id,
        group: group.words(),
        class: class(group),
        title: explained.map_or("", |one| one.title),
        what: finding.what.clone(),
        place: place(finding),
        confidence: finding.confidence.word(),
        cost: finding.cost.as_ref().map(|cost| Cost {
            share: unbroken(&format::percent(cost.share)),
            percent: (cost.share * 100.0).clamp(0.0, 100.0).round(),
            of: cost.of.words(),
            estimate: cost.estimate.clone(),
        }),
        remedy: finding.remedy.text.clone(),
        command: finding.remedy.command.clone(),
        confirm: finding.remedy.confirm.clone(),
        plot: finding.at.as_ref().and_then(|at| link(at, figures)),
        evidence: evidence(&finding.evidence),
        tests: tests(&finding.tests),
        treatments: finding.at.as_ref().and_then(|at| treatments(&at.treatments)),
        mechanism: explained.map_or("", |one| one.mechanism),
        formula: explained.map_or("", |one| one.formula),
        source: explained.map_or("", |one| one.source),
    }
}

fn class(group: Group) -> &'static str {
    match group {
        Group::Doubt => "doubt",
        Group::Limit => "limit",
        Group::Phenomenon => "phenomenon",
        Group::Condition => "condition",
    }
}

/// Where and when, in words.
fn place(finding: &Finding) -> String {
    let mut place = finding.place.clone();
    let Some(at) = &finding.at else { return place };
    if !at.clients.is_empty() {
        let more = at.clients.len().saturating_sub(8);
        let first = at.clients.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        place += &format!("; clients {first}{more}");
    }
    if let Some((from, to)) = at.interval_ns {
        let seconds = |ns: u64| format!("{:.2}", ns as f64 / 1e9);
        place += &format!("; from {} s to {} s of the measured phase", seconds(from), seconds(to));
    }
    place
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

/// The figure of this page that proves a finding, in the view of the run that the finding tells of. `None` when the page does
/// not draw it.
fn link(at: &At, figures: &[&Figure]) -> Option<Link> {
    let of_workload = |figure: &&&Figure| {
        figure.workload.is_empty() || at.workload.as_ref().is_none_or(|workload| *workload == figure.workload)
    };
    let figure = kinds(at.plot?)
        .iter()
        .find_map(|kind| figures.iter().filter(of_workload).rfind(|figure| figure.id.starts_with(kind)))?;
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
    let mut table = Table::new("Evidence", &["what", "#value", "#half width", "unit", "#runs"]);
    for one in all {
        let shown = |value: f64| Cell::number(number(value), value);
        table.row([
            Cell::text(&one.name),
            shown(one.value),
            one.half_width.map_or_else(Cell::none, shown),
            Cell::text(if one.unit == EvidenceUnit::One { "" } else { one.unit.name() }),
            Cell::count(one.runs),
        ]);
    }
    table.note =
        "Means over the runs of the treatment in which it costs most; half widths of their 95 % intervals."
            .into();
    (!table.rows.is_empty()).then_some(table)
}

fn tests(all: &[Test]) -> Option<Table> {
    let mut table = Table::new("Tests", &["test", "#p", "#estimate", "interval"]);
    for one in all {
        let p = p_value(one.p);
        let estimate = one.interval.map_or_else(Cell::none, |i| Cell::number(number(i.value), i.value));
        let interval = one.interval.map_or_else(Cell::none, |i| {
            let level = format::percent(i.confidence);
            Cell::text(format!("{} to {} ({level})", number(i.lower), number(i.upper)))
        });
        table.row([Cell::text(&one.name), p, estimate, interval]);
    }
    (!table.rows.is_empty()).then_some(table)
}

/// The treatments in which something was found, if there are several.
fn treatments(all: &[AtTreatment]) -> Option<Table> {
    let mut table = Table::new("Where it was found", &["treatment", "#runs", "#of", "#cost"]);
    for one in all {
        let cost = one.cost.map_or_else(Cell::none, |cost| Cell::number(format::percent(cost), cost));
        table.row([Cell::text(&one.label), Cell::count(one.runs.len()), Cell::count(one.of), cost]);
    }
    table.cap(40);
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
            let text = format!("{value:.decimals$}");
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
    fn numbers_have_four_digits() {
        let told =
            [0.0, 3.0, 12345.0, 1.5e6 + 0.25, 0.012_345_6, -2.5, 1234.5678, 1e-9, f64::NAN].map(number);
        assert_eq!(told, ["0", "3", "12 345", "1 500 000", "0.01235", "−2.5", "1235", "1.000e−9", "NaN"]);
    }
}
