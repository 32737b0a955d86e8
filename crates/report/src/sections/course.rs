//! Sampling, the commands of the study, and what they printed.

use std::collections::BTreeSet;

use super::clients::run_text;
use crate::document::{Block, Cell, Table};
use crate::overview::grouped;
use crate::plots::Drawn;
use benchmaster_record::results::{Severity, StudyResults};
use benchmaster_record::samples::Samples;

/// Bytes of one output that are shown, and of all.
const OUTPUT: usize = 16 << 10;
const OUTPUTS: usize = 256 << 10;

/// What sampling took, and what could not be read.
pub(super) fn sampling(results: &StudyResults) -> Vec<Table> {
    let recordings = results.runs.iter().flat_map(|run| &run.recordings);
    let hosts = recordings.flat_map(|recording| &recording.samples);
    let by_agent = grouped(hosts.clone().map(|host| (host.agent.as_str(), &host.samples)));
    let shares =
        |samples: &[&Samples]| samples.iter().filter_map(|one| one.cost.share()).collect::<Vec<f64>>();
    let sum = |samples: &[&Samples], of: fn(&Samples) -> u32| {
        Cell::count(samples.iter().map(|one| of(one) as usize).sum())
    };
    let cost = Table::of("Cost of sampling", by_agent)
        .column("agent", |(agent, _)| Cell::text(*agent))
        .column("#recordings", |(_, samples)| Cell::count(shares(samples).len()))
        .column("#ticks", |(_, samples)| sum(samples, |one| one.ticks))
        .column("#skipped", |(_, samples)| sum(samples, |one| one.late))
        .column("#mean cost", |(_, samples)| Cell::percent(benchmaster_stats::mean(&shares(samples))))
        .column("#largest cost", |(_, samples)| Cell::percent(shares(samples).into_iter().reduce(f64::max)))
        .note("CPU time of all readings as a share of one processor.");
    let problems = hosts.flat_map(|host| {
        let all = host.samples.problems.iter();
        all.map(move |one| ((one.sampler.as_str(), one.problem.as_str()), host.agent.as_str()))
    });
    let unread = Table::of("Not sampled", grouped(problems))
        .column("sampler", |((sampler, _), _)| Cell::text(*sampler))
        .column("agents", |(_, agents)| {
            let mut seen = BTreeSet::new();
            let agents = agents.iter().copied().filter(|agent| seen.insert(*agent));
            Cell::text(agents.collect::<Vec<_>>().join(", "))
        })
        .column("reason", |((_, problem), _)| Cell::text(*problem));
    cost.filled().into_iter().chain(unread.filled()).collect()
}

pub(super) fn hooks(results: &StudyResults) -> Option<Table> {
    let run = |key| results.runs.iter().find(|run| run.key == key);
    Table::of("Commands", &results.hooks)
        .column("step", |hook| Cell::text(&hook.step))
        .column("where", |hook| Cell::text(&hook.agent))
        .column("run", |hook| match hook.run.map(run) {
            Some(Some(run)) => Cell::text(run_text(results, run)),
            Some(None) => Cell::text("a lost run"),
            None => Cell::text("whole study"),
        })
        .column("command", |hook| Cell::text(&hook.command))
        .column("started (UTC)", |hook| Cell::instant(&hook.started))
        .column("#duration", |hook| Cell::time(Some(hook.elapsed_ns as f64)))
        .column("ended", |hook| {
            Cell::text(&hook.ended).marked((!hook.succeeded).then_some(Severity::Invalid))
        })
        .filled()
}

/// What hooks printed, and attached commands in the runs that are drawn.
pub(super) fn printed(results: &StudyResults, drawn: Vec<Drawn>) -> Vec<Block> {
    let mut left = OUTPUTS;
    let mut found = Vec::new();
    let mut add = |title: String, bytes: &[u8], lost: u64| {
        let kept = bytes.len().min(OUTPUT).min(left);
        left -= kept;
        let mut text = String::from_utf8_lossy(&bytes[..kept]).into_owned();
        match (bytes.len() - kept) as u64 + lost {
            0 => {}
            more => text += &format!("\n… {more} more bytes; those that were stored are in results.db"),
        }
        found.push(Block::Fold(title, vec![Block::Code("", text)]));
    };
    for Drawn { run, workload, collected } in &drawn {
        let label = results.study.treatments.get(run.treatment as usize).map_or("?", |t| &t.label);
        for c in collected.iter().filter(|c| !c.output.is_empty()) {
            let title = format!(
                "{} on {}: {} ({}; {label}, replicate {}, {workload})",
                c.name,
                c.agent,
                c.command,
                c.ended,
                run.replicate + 1
            );
            add(title, &c.output, c.lost);
        }
    }
    for hook in results.hooks.iter().filter(|hook| !hook.output.is_empty()) {
        add(format!("{} on {}: {}", hook.step, hook.agent, hook.command), hook.output.as_bytes(), 0);
    }
    found
}
