//! What was found in the runs.

use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::{CostOf, Finding};

use super::grid::Text;
use crate::format;

/// Every finding with where it is, what it costs and what to do; then what could not be looked for.
pub(super) fn findings(text: &mut Text, diagnosis: &Diagnosis) {
    text.section("findings, the dearest first");
    if diagnosis.findings.is_empty() {
        let looked = format::plural(diagnosis.clear.len(), "condition");
        text.wrapped("", &format!("Nothing was found; {looked} were looked for and are not there."));
    }
    for (number, finding) in (1..).zip(&diagnosis.findings) {
        let cost = cost(finding).map_or(String::new(), |cost| format!(", {cost}"));
        text.wrapped(
            "   ",
            &format!("{number}. {} ({}{cost}): {}", finding.id, finding.confidence.word(), finding.what),
        );
        if !finding.place.is_empty() {
            text.wrapped_after("   ", &format!("where: {}", finding.place));
        }
        text.wrapped_after("   ", &format!("do: {}", remedy(finding)));
    }
    if !diagnosis.absent.is_empty() {
        let mut unknown: Vec<&str> = diagnosis.absent.iter().map(|absent| absent.id).collect();
        unknown.sort_unstable();
        unknown.dedup();
        text.wrapped("  ", &format!("could not be looked for: {}", unknown.join(", ")));
    }
    for damage in &diagnosis.damage {
        text.wrapped("  ", &format!("DAMAGED: {damage}"));
    }
}

/// `costs 12 % of all calls`, `12 % of the reported numbers in doubt`.
pub(super) fn cost(finding: &Finding) -> Option<String> {
    let cost = finding.cost.as_ref()?;
    let verb = if cost.of == CostOf::Result { "" } else { "costs " };
    Some(format!("{verb}{} {}", format::percent(cost.share), cost.of.words()))
}

/// What to do: the command or option first, where there is one.
pub(super) fn remedy(finding: &Finding) -> String {
    let advice = &finding.remedy.text;
    match &finding.remedy.command {
        Some(command) => format!("{command} ({})", advice.trim_end_matches('.')),
        None => advice.clone(),
    }
}
