//! What CI shows of a comparison or of the checks of runs: verdicts, as JUnit XML, as annotations of GitHub, and as a Code
//! Quality report of GitLab.

pub use crate::sections::conformance::verdicts as of_conformance;
use benchmaster_analysis::compare::{self, Comparison, Direction, ResponseComparison};
use benchmaster_analysis::{Analysis, TreatmentSummary};
use benchmaster_record::results::{Check, Severity};
use benchmaster_units::format::plural;
use serde_json::json;

/// What was judged, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The response that was compared, or what the checks are of.
    pub group: String,
    /// The cell or treatment.
    pub name: String,
    pub outcome: Outcome,
    /// Whether it gives the exit status 1.
    pub fails: bool,
    /// Why, in sentences with their numbers.
    pub text: String,
}

/// The result of a comparison or of the checks of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Within the band of differences that do not matter, or no check warned.
    Good,
    Better,
    /// A regression.
    Worse,
    /// It is not known which way is better.
    Changed,
    Undecided,
    /// A check warned.
    Warned,
    /// A run failed or is invalid, or an operation failed.
    Invalid,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Better => "better",
            Self::Worse => "regression",
            Self::Changed => "changed",
            Self::Undecided => "undecided",
            Self::Warned => "warning",
            Self::Invalid => "invalid",
        }
    }
}

/// Verdicts of a comparison, in its order; `fails` says which outcomes give the exit status 1.
pub fn of_comparison(comparison: &Comparison, fails: impl Fn(Outcome) -> bool) -> Vec<Verdict> {
    let outcome = |verdict, direction| match (verdict, direction) {
        (compare::Verdict::Changed, Some(Direction::Better)) => Outcome::Better,
        (compare::Verdict::Changed, Some(Direction::Worse)) => Outcome::Worse,
        (compare::Verdict::Changed, None) => Outcome::Changed,
        (compare::Verdict::Same, _) => Outcome::Good,
        (compare::Verdict::Undecided, _) => Outcome::Undecided,
    };
    let of_response = |response: &ResponseComparison| {
        let cells = response.cells.iter().map(|cell| {
            let name = if cell.cell.is_empty() { "all runs" } else { &cell.cell };
            (name.to_owned(), outcome(cell.verdict, cell.direction), cell.sentence.clone())
        });
        let overall = response.overall.iter().map(|overall| {
            ("overall".to_owned(), outcome(overall.verdict, overall.direction), overall.sentence.clone())
        });
        let verdict = |(name, outcome, text)| Verdict {
            group: response.response.clone(),
            name,
            outcome,
            fails: fails(outcome),
            text,
        };
        cells.chain(overall).map(verdict).collect::<Vec<_>>()
    };
    comparison.responses.iter().flat_map(of_response).collect()
}

/// Verdicts of the checks of all treatments, and of what was counted over all of them.
pub fn of_checks(group: &str, analysis: &Analysis, fails: impl Fn(Outcome) -> bool) -> Vec<Verdict> {
    let verdict = |name: &str, outcome, text: Vec<String>| Verdict {
        group: group.into(),
        name: name.into(),
        outcome,
        fails: fails(outcome),
        text: text.join("\n"),
    };
    let of_treatment = |treatment: &TreatmentSummary| {
        let outcome = match treatment {
            one if !one.failed.is_empty() || !one.excluded.is_empty() => Outcome::Invalid,
            one if one.warned > 0 => Outcome::Warned,
            _ => Outcome::Good,
        };
        let failed = treatment.failed.iter().map(|run| run.reason.clone());
        let checks = checks_of(analysis, treatment);
        let name = if treatment.label.is_empty() { "all runs" } else { &treatment.label };
        verdict(name, outcome, failed.chain(checks).collect())
    };
    let mut verdicts: Vec<Verdict> = analysis.treatments.iter().map(of_treatment).collect();
    if analysis.errors > 0 {
        let text = format!("{} failed", plural(analysis.errors as usize, "operation"));
        verdicts.push(verdict("operations", Outcome::Invalid, vec![text]));
    }
    if !analysis.damage.is_empty() {
        verdicts.push(verdict("stored results", Outcome::Invalid, analysis.damage.clone()));
    }
    verdicts
}

/// Warnings of the runs of a treatment, a line for each kind: the first of them, and all workloads in which it is.
fn checks_of(analysis: &Analysis, treatment: &TreatmentSummary) -> Vec<String> {
    let mut kinds: Vec<(&Check, Vec<&str>)> = Vec::new();
    for warning in &analysis.warnings {
        let check = &warning.check;
        if check.severity == Severity::Note || warning.runs.iter().all(|run| run.treatment != treatment.index)
        {
            continue;
        }
        let place = check.workload.as_deref().unwrap_or("whole run");
        match kinds.iter_mut().find(|(first, _)| first.kind == check.kind) {
            Some((_, places)) if places.contains(&place) => {}
            Some((_, places)) => places.push(place),
            None => kinds.push((check, vec![place])),
        }
    }
    let line = |(check, places): (&Check, Vec<&str>)| {
        format!("{} ({}): {}", check.kind, places.join(", "), check.message)
    };
    kinds.into_iter().map(line).collect()
}

/// JUnit XML, a suite for each group: what fails is a failure, what is undecided is skipped.
pub fn junit(verdicts: &[Verdict]) -> String {
    let mut suites = String::new();
    for suite in verdicts.chunk_by(|one, other| one.group == other.group) {
        let cases: String = suite.iter().map(case).collect();
        suites += &format!("  <testsuite {}>\n{cases}  </testsuite>\n", counts(&suite[0].group, suite));
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n{suites}</testsuites>\n",
        counts("benchmaster", verdicts)
    )
}

fn counts(name: &str, verdicts: &[Verdict]) -> String {
    let count = |which: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| which(verdict)).count();
    format!(
        "name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\" time=\"0\"",
        xml(name),
        verdicts.len(),
        count(|verdict| verdict.fails),
        count(is_skipped)
    )
}

fn is_skipped(verdict: &Verdict) -> bool {
    !verdict.fails && verdict.outcome == Outcome::Undecided
}

fn case(verdict: &Verdict) -> String {
    let Verdict { group, name, outcome, fails, text } = verdict;
    let (group, name, text, word) = (xml(group), xml(name), xml(text), outcome.word());
    let first = text.split("&#10;").next().unwrap_or_default();
    let content = if *fails {
        format!("      <failure type=\"{word}\" message=\"{first}\">{text}</failure>\n")
    } else if is_skipped(verdict) {
        format!("      <skipped message=\"{first}\"/>\n")
    } else if text.is_empty() {
        String::new()
    } else {
        format!("      <system-out>{word}: {text}</system-out>\n")
    };
    format!("    <testcase classname=\"{group}\" name=\"{name}\" time=\"0\">\n{content}    </testcase>\n")
}

/// Text of XML, also within quotes. Characters that XML cannot have are replaced.
fn xml(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            '\'' => written.push_str("&#39;"),
            '\n' => written.push_str("&#10;"),
            '\t' => written.push_str("&#9;"),
            '\r' => written.push_str("&#13;"),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => written.push('\u{fffd}'),
            _ => written.push(character),
        }
    }
    written
}

/// Verdicts that are shown beside a change: those that fail, and what might have.
fn shown(verdicts: &[Verdict]) -> impl Iterator<Item = &Verdict> {
    let bad = [Outcome::Worse, Outcome::Changed, Outcome::Warned, Outcome::Invalid];
    verdicts.iter().filter(move |verdict| verdict.fails || bad.contains(&verdict.outcome))
}

/// Commands that GitHub's runner reads from the output of a step.
pub fn github(verdicts: &[Verdict]) -> String {
    let data = |text: &str| text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |text: &str| data(text).replace(':', "%3A").replace(',', "%2C");
    let line = |verdict: &Verdict| {
        let command = if verdict.fails { "error" } else { "warning" };
        let title = format!("{}, {}", verdict.group, verdict.name);
        format!("::{command} title={}::{}\n", property(&title), data(&verdict.text))
    };
    shown(verdicts).map(line).collect()
}

/// A Code Quality report, which GitLab shows at a merge request. `place` is the file or directory that it names as the place.
pub fn gitlab(verdicts: &[Verdict], place: &str) -> String {
    let issues: Vec<_> = shown(verdicts)
        .map(|Verdict { group, name, outcome, fails, text }| {
            json!({
                "description": format!("{group}, {name}: {text}"),
                "check_name": format!("benchmaster/{}", outcome.word()),
                // The same in every pipeline, so that GitLab finds what is new.
                "fingerprint": format!("benchmaster/{group}/{name}/{}", outcome.word()),
                "severity": if *fails { "major" } else { "minor" },
                "location": { "path": place, "lines": { "begin": 1 } },
            })
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(issues))
}

#[cfg(test)]
mod tests;
