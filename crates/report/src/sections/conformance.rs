//! What was found of the rules that a server or a directory has to keep.

use benchmaster_record::conformance::{Checked, Finding, Force, Group, Verdict};

use crate::document::{Block, Cell, Document, Section, Table};
use crate::format;
use crate::verdicts::{self, Outcome};

/// What was checked, in one version or several.
pub fn document(target: &str, checked: &[Checked]) -> Document {
    let sum = |force| {
        checked.iter().flat_map(Checked::broken).filter(|finding: &&Finding| finding.force == force).count()
    };
    let (must, should, linux) = (sum(Force::Must), sum(Force::Should), sum(Force::Linux));
    let made: usize = checked.iter().map(|one| one.findings.len()).sum();
    let answer = match must {
        0 => format!("No rule that binds is broken in {}.", format::plural(made, "check")),
        _ => format!(
            "{} that bind of {} are broken.",
            format::plural(must, "rule"),
            format::plural(made, "check")
        ),
    };
    let besides = match (should, linux) {
        (0, 0) => Vec::new(),
        _ => vec![format!(
            "{} that documents only recommend, and {} from Linux.",
            format::plural(should, "deviation"),
            format::plural(linux, "difference")
        )],
    };
    let mut sections =
        vec![Section::new("answer", "Answer").brief([Block::Answer([vec![answer], besides].concat())])];
    sections.extend(checked.iter().map(section));
    Document {
        kind: "Benchmaster check",
        title: target.to_owned(),
        lead: vec!["What documents demand, what was sent and what came back.".into()],
        sections,
    }
}

/// The name of what was checked.
fn name(checked: &Checked) -> String {
    checked.version.map_or_else(|| "Directory".into(), |version| format!("NFS {version}"))
}

fn section(checked: &Checked) -> Section {
    let mut table = Table::new("Checks", &["group", "passed", "must", "should", "linux", "not applicable"]);
    for group in Group::ALL.iter().copied() {
        let of_group: Vec<&Finding> =
            checked.findings.iter().filter(|finding| finding.group == group).collect();
        if of_group.is_empty() {
            continue;
        }
        let count = |which: &dyn Fn(&Finding) -> bool| {
            let n = of_group.iter().filter(|finding| which(finding)).count();
            Cell::number(n.to_string(), n as f64)
        };
        let broken = |force| {
            count(&move |finding: &Finding| {
                finding.force == force && matches!(finding.verdict, Verdict::Fail { .. })
            })
        };
        table.row([
            Cell::name(group.name()),
            count(&|finding| finding.verdict == Verdict::Pass),
            broken(Force::Must),
            broken(Force::Should),
            broken(Force::Linux),
            count(&|finding| matches!(finding.verdict, Verdict::NotApplicable { .. })),
        ]);
    }
    let server = checked.implementation.as_ref().map(|name| format!(" The server calls itself {name}."));
    let took = format!(
        "{} in {}.{}",
        format::plural(checked.findings.len(), "check"),
        format::duration(checked.elapsed_s),
        server.unwrap_or_default()
    );
    let mut section = Section::new("version", name(checked)).brief([took.into(), Block::Table(table)]);
    for finding in checked.broken() {
        section = section.brief(broken(finding));
    }
    if let Some(left) = &checked.left_behind {
        section = section.brief([Block::Sentence(format!("Something may be left behind: {left}."))]);
    }
    let skipped: Vec<(&str, &str)> = checked.findings.iter().filter_map(not_applicable).collect();
    if !skipped.is_empty() {
        let list = skipped.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        section = section
            .brief([Block::Sentence(reasons(&skipped))])
            .page([Block::Fold("Not applicable".into(), vec![Block::List(list)])]);
    }
    let all = checked.findings.iter().map(|finding| {
        let word = match finding.verdict {
            Verdict::Pass => "pass",
            Verdict::Fail { .. } => "fail",
            Verdict::NotApplicable { .. } => "not applicable",
        };
        format!("{} ({}, {}): {word}. {}", finding.name, finding.force, finding.place, finding.rule)
    });
    section.page([Block::Fold("All checks".into(), vec![Block::List(all.collect())])])
}

/// The name of a check that does not apply, and why.
fn not_applicable(finding: &Finding) -> Option<(&str, &str)> {
    match &finding.verdict {
        Verdict::NotApplicable { why } => Some((&finding.name, why)),
        Verdict::Pass | Verdict::Fail { .. } => None,
    }
}

/// Why checks do not apply: the reasons of most of them.
fn reasons(skipped: &[(&str, &str)]) -> String {
    const SHOWN: usize = 3;
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for (_, why) in skipped {
        match counts.iter_mut().find(|(known, _)| known == why) {
            Some((_, count)) => *count += 1,
            None => counts.push((why, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let others: usize = counts.iter().skip(SHOWN).map(|(_, count)| count).sum();
    let mut said: Vec<String> =
        counts.iter().take(SHOWN).map(|(why, count)| format!("{count} ({why})")).collect();
    if others > 0 {
        said.push(format!("{others} for other reasons"));
    }
    format!("Not applicable: {}.", said.join(", "))
}

/// A broken rule: what it says, what was sent, what came.
fn broken(finding: &Finding) -> Vec<Block> {
    let Verdict::Fail { sent, came } = &finding.verdict else { return Vec::new() };
    let Finding { name, force, place, rule, .. } = finding;
    vec![
        Block::Heading(format!("{name} ({force})")),
        Block::List(vec![format!("{place}: {rule}"), format!("sent: {sent}"), format!("came: {came}")]),
    ]
}

/// A verdict for each check, for CI: what binds and is broken fails.
pub fn verdicts(checked: &[Checked]) -> Vec<verdicts::Verdict> {
    let verdict = |of: &Checked, finding: &Finding| {
        let (outcome, text) = match &finding.verdict {
            Verdict::Pass => (Outcome::Good, String::new()),
            Verdict::NotApplicable { why } => (Outcome::Undecided, why.clone()),
            Verdict::Fail { sent, came } => {
                let outcome = if finding.force == Force::Must { Outcome::Invalid } else { Outcome::Warned };
                (outcome, format!("{}: {}\nsent: {sent}\ncame: {came}", finding.place, finding.rule))
            }
        };
        verdicts::Verdict {
            group: format!("{} {}", name(of), finding.group),
            name: finding.name.clone(),
            outcome,
            fails: outcome == Outcome::Invalid,
            text,
        }
    };
    checked.iter().flat_map(|of| of.findings.iter().map(move |finding| verdict(of, finding))).collect()
}
