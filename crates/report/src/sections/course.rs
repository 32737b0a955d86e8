//! Sampling, the commands of the study, and what they printed.

use super::clients::run_text;
use crate::document::{Block, Cell, Table};
use crate::plots::Drawn;
use benchmaster_record::results::{Severity, StudyResults};

/// Bytes of one output that are shown, and of all.
const OUTPUT: usize = 16 << 10;
const OUTPUTS: usize = 256 << 10;

/// What sampling took, and what could not be read.
pub(super) fn sampling(results: &StudyResults) -> Vec<Table> {
    let mut rows: Vec<(&str, u64, u64, Vec<f64>)> = Vec::new();
    let mut problems: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    let recordings = results.runs.iter().flat_map(|run| &run.recordings);
    for host in recordings.flat_map(|recording| &recording.samples) {
        let (ticks, late) = (u64::from(host.samples.ticks), u64::from(host.samples.late));
        let share = host.samples.cost.share();
        match rows.iter_mut().find(|row| row.0 == host.agent) {
            Some(row) => {
                row.1 += ticks;
                row.2 += late;
                row.3.extend(share);
            }
            None => rows.push((&host.agent, ticks, late, share.into_iter().collect())),
        }
        for problem in &host.samples.problems {
            let (sampler, text) = (problem.sampler.as_str(), problem.problem.as_str());
            match problems.iter_mut().find(|known| (known.0, known.1) == (sampler, text)) {
                Some((.., agents)) if agents.contains(&host.agent.as_str()) => {}
                Some((.., agents)) => agents.push(&host.agent),
                None => problems.push((sampler, text, vec![&host.agent])),
            }
        }
    }
    let head = ["agent", "#recordings", "#ticks", "#skipped", "#mean cost", "#largest cost"];
    let mut cost = Table::new("Cost of sampling", &head);
    for (agent, ticks, late, shares) in rows {
        cost.row([
            Cell::text(agent),
            Cell::count(shares.len()),
            Cell::count(ticks as usize),
            Cell::count(late as usize),
            Cell::percent(benchmaster_stats::mean(&shares)),
            Cell::percent(shares.iter().copied().reduce(f64::max)),
        ]);
    }
    cost.note = "CPU time of all readings as a share of one processor.".into();
    let mut unread = Table::new("Not sampled", &["sampler", "agents", "reason"]);
    for (sampler, text, agents) in problems {
        unread.row([Cell::text(sampler), Cell::text(agents.join(", ")), Cell::text(text)]);
    }
    [cost, unread].into_iter().filter_map(Table::filled).collect()
}

pub(super) fn hooks(results: &StudyResults) -> Option<Table> {
    let head = ["step", "where", "run", "command", "started (UTC)", "#duration", "ended"];
    let mut hooks = Table::new("Commands", &head);
    for hook in &results.hooks {
        let run = hook.run.and_then(|key| results.runs.iter().find(|run| run.key == key));
        let ended = Cell::text(&hook.ended);
        hooks.row([
            Cell::text(&hook.step),
            Cell::text(&hook.agent),
            match (run, hook.run) {
                (Some(run), _) => Cell::text(run_text(results, run)),
                (None, Some(_)) => Cell::text("a lost run"),
                (None, None) => Cell::text("whole study"),
            },
            Cell::text(&hook.command),
            Cell::text(hook.started.strftime("%Y-%m-%d %H:%M:%S").to_string()),
            Cell::time(Some(hook.elapsed_ns as f64)),
            if hook.succeeded { ended } else { ended.marked(Some(Severity::Invalid)) },
        ]);
    }
    hooks.filled()
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
