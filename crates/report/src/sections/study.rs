//! The document of a study.

use benchmaster_analysis::Analysis;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_record::results::StudyResults;

use super::{
    answer, clients, conditions, course, durability, effects, findings, load, results, validity, wire,
};
use crate::details::Details;
use crate::document::{Block, Document, Section, Table};
use crate::overview;
use crate::plots::Plots;
use crate::plots::figure::Figure;

/// All sections, those that answer most first; plots where there are details to draw. Whatever is wrong with the results is
/// shown.
pub fn document(
    stored: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    details: Option<&dyn Details>,
) -> Document {
    let mut plots = details.map(|details| Plots::of_study(stored, analysis, details)).unwrap_or_default();
    let study = &stored.study;
    let mut lead: Vec<String> = study.description.iter().cloned().collect();
    lead.extend(overview::scale_text(study));
    lead.push(answer::question(stored, analysis));
    let found = findings::section(diagnosis, &plots);
    let picture = plots.take_picture(stored, analysis);
    let Plots { effects: of_effects, load: of_load, workloads, printed, problems } = plots;
    let told = answer::answer(stored, analysis);
    let more = answer::more(stored, analysis, &told);
    let facts = overview::facts(stored, analysis);
    let mut tables = results::result_tables(stored, analysis);
    let asked = overview::asked(stored, analysis).min(tables.len().saturating_sub(1));
    let table = (!tables.is_empty()).then(|| tables.remove(asked));
    let sections = vec![
        Section::new("result", "Answer")
            .unlisted()
            .brief([Block::Answer(told), validity::verdict(analysis, &problems).into()])
            .brief(table.map(|table| match picture {
                Some(picture) => Block::Beside(Box::new(picture), table),
                None => Block::Table(table),
            }))
            .brief([Block::Hint(results::interval_note(analysis))])
            .full([Block::Hint(more.join(" ")), results::replicates(analysis)])
            .brief([Block::Fold("Where and how it was measured".into(), vec![Block::List(facts)])]),
        found,
        effects::section(analysis, !study.factors.is_empty(), of_effects),
        load::section(analysis, of_load),
        durability::section(stored),
        Section::new("treatments", "Other workloads").brief(tables),
        validity::section(stored, analysis, diagnosis, &problems),
        Section::new("clients", "Clients and network")
            .full(clients::clients(stored, analysis))
            .full(clients::networks(stored, analysis)),
        Section::new("plots", "Plots").page(by_workload(workloads)),
        numbers(stored, analysis),
        validity::rules(stored, analysis),
        conditions(stored, printed),
        plan(stored),
        reproduce(stored),
    ];
    Document { kind: "Benchmaster report", title: study.name.clone(), lead, sections }
}

/// The plots of each workload below its name.
fn by_workload(figures: Vec<Figure>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut workload = None;
    for figure in figures {
        if workload.as_ref() != Some(&figure.workload) {
            blocks.push(Block::Heading(figure.workload.clone()));
            workload = Some(figure.workload.clone());
        }
        blocks.push(figure.into());
    }
    blocks
}

fn numbers(stored: &StudyResults, analysis: &Analysis) -> Section {
    let folded = |tables: Vec<Table>| tables.into_iter().map(Block::folded);
    let heading = |text: &str| [Block::Heading(text.into())];
    let operations = results::operations(stored, analysis);
    let responses = results::responses(stored, analysis);
    let (calls, phases) = (wire::calls(analysis), wire::phases(analysis));
    let none = operations.is_empty().then_some("No run counts, so there are no latencies.");
    let mut section = Section::new("numbers", "All numbers")
        .page(heading("Latency of every operation"))
        .page(none)
        .full(operations);
    let fairness = results::fairness(analysis);
    if !fairness.is_empty() {
        section = section.page(heading("Fairness")).full(fairness);
    }
    section = section.page(heading("Every response")).full(folded(responses));
    if !calls.is_empty() || !phases.is_empty() {
        section = section.page(heading("RPCs")).full(calls).full(folded(phases));
    }
    section
}

fn conditions(stored: &StudyResults, printed: Vec<crate::plots::Drawn>) -> Section {
    let heading = |text: &str, blocks: Vec<Block>| {
        let heading = (!blocks.is_empty()).then(|| Block::Heading(text.into()));
        heading.into_iter().chain(blocks)
    };
    let blocks = |tables: Vec<Table>| tables.into_iter().map(Block::from).collect::<Vec<_>>();
    let retries = clients::retries(stored);
    let checks = conditions::checks(stored).map(Block::folded);
    Section::new("conditions", "Conditions")
        .page(heading("Environment", blocks(conditions::environment(stored))))
        .page(heading("Preparation, caches, warm-up, verification", blocks(conditions::conditions(stored))))
        .full(retries)
        .page(heading("Commands of the study", blocks(course::hooks(stored).into_iter().collect())))
        .page(heading("Sampling", blocks(course::sampling(stored))))
        .page(heading("Output of commands", course::printed(stored, printed)))
        .page(heading("Validity in detail", checks.into_iter().collect()))
}

fn plan(stored: &StudyResults) -> Section {
    Section::new("plan", "Plan")
        .page([conditions::factors(stored)])
        .page([conditions::sessions(stored)])
        .page([Block::folded(conditions::runs(stored))])
}

fn reproduce(stored: &StudyResults) -> Section {
    let study = &stored.study;
    let mut commands: Vec<&str> = Vec::new();
    for session in &stored.sessions {
        if !commands.contains(&session.command.as_str()) {
            commands.push(&session.command);
        }
    }
    Section::new("reproduce", "How to reproduce")
        .page([format!(
            "Save the study below as a file and run it with Benchmaster {}, on the same target under the \
             conditions above:",
            study.version
        )])
        .brief((!commands.is_empty()).then(|| Block::Code("sh", commands.join("\n"))))
        .brief([format!("All randomness follows from seed {} ({}).", study.seed, study.generator)])
        .page([format!("The results have the identifier {}.", study.id)])
        .brief([Block::Fold("Study file as run".into(), vec![Block::Code("toml", study.text.clone())])])
}
