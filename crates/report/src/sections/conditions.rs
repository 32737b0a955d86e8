//! The conditions of a measurement: environment, plan, preparation.

use std::collections::BTreeMap;

use crate::document::{Block, Cell, Table, word};
use crate::format;
use crate::overview::grouped;
use benchmaster_record::environment::Environment;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{RunKey, RunRecord, SessionEnd, Severity, StudyResults};

/// Failed checks shown one by one.
const CHECKS: usize = 500;

/// One table per host; where sessions differ, what differs is in columns of its own.
pub(super) fn environment(results: &StudyResults) -> Vec<Table> {
    let mut hosts: BTreeMap<&str, Vec<(u32, &Environment)>> = BTreeMap::new();
    for session in &results.sessions {
        for (host, environment) in &session.environment {
            hosts.entry(host).or_default().push((session.id, environment));
        }
    }
    hosts.into_iter().map(|(host, sessions)| host_table(host, &sessions)).collect()
}

fn host_table(host: &str, sessions: &[(u32, &Environment)]) -> Table {
    let values = grouped(sessions.iter().flat_map(|(session, environment)| {
        facts(environment).into_iter().map(move |(fact, value)| (fact, (session, value)))
    }));
    Table::of(format!("Host {host}"), values)
        .column("fact", |(fact, _)| Cell::text(fact))
        .column("value", |(_, of)| {
            let one = of.iter().all(|(_, value)| *value == of[0].1).then(|| of[0].1.clone());
            let each = || of.iter().map(|(session, value)| format!("session {session}: {value}"));
            Cell::text(one.unwrap_or_else(|| each().collect::<Vec<_>>().join("; ")))
        })
        .table()
}

fn facts(environment: &Environment) -> Vec<(String, String)> {
    let unknown = || "unknown".to_owned();
    let or_unknown = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let mut facts = vec![
        ("benchmaster".into(), environment.benchmaster.clone()),
        ("kernel".into(), environment.kernel.clone()),
        ("distribution".into(), or_unknown(&environment.distribution)),
        ("CPU".into(), or_unknown(&environment.cpu_model)),
        (
            "processors".into(),
            format!("{} online, {} for this process", environment.processors, environment.processors_allowed),
        ),
        ("memory".into(), environment.memory_total.map_or_else(unknown, |n| format::bytes(n as f64))),
        (
            "memory available at the start".into(),
            environment.memory_available.map_or_else(unknown, |n| format::bytes(n as f64)),
        ),
        ("clock source".into(), or_unknown(&environment.clock_source)),
        (
            "virtualization".into(),
            environment.virtualization.clone().unwrap_or_else(|| "none detected".into()),
        ),
        ("frequency governor".into(), or_unknown(&environment.governor)),
    ];
    if let Some(target) = &environment.target {
        let of = |key: &str, value: String| (format!("target: {key}"), value);
        if target.mount_point.is_empty() {
            // An export that no kernel has mounted.
            facts.extend([of("export", target.path.clone()), of("server", target.source.clone())]);
        } else {
            facts.extend([
                of("directory", target.path.clone()),
                of(
                    "file system",
                    format!(
                        "{} from {}, mounted on {}",
                        target.file_system, target.source, target.mount_point
                    ),
                ),
                of("mount options", target.options.clone()),
                of("mount line", target.mount_line.clone()),
                of(
                    "size",
                    format!(
                        "{}, {} free",
                        format::bytes(target.total_bytes as f64),
                        format::bytes(target.free_bytes as f64)
                    ),
                ),
                of("free inodes", target.free_files.map_or_else(|| "not counted".into(), format::count)),
                of("readahead", target.read_ahead_kib.map_or_else(unknown, |kib| format!("{kib} KiB"))),
            ]);
        }
    }
    facts.extend(environment.sysctls.iter().map(|(key, value)| (key.clone(), value.replace('\t', " "))));
    facts
}

pub(super) fn factors(results: &StudyResults) -> Block {
    let factors = results.study.factors.iter();
    let levels =
        factors.flat_map(|factor| factor.levels.iter().enumerate().map(move |level| (factor, level)));
    Table::of("Factors", levels)
        .column("factor", |(factor, _)| Cell::text(&factor.name))
        .column("level", |(_, (number, level))| {
            Cell::text(if *number == 0 { format!("{level} (base)") } else { (*level).clone() })
        })
        .column("sets", |(factor, (number, _))| {
            let sets = factor.settings.get(*number).into_iter().flatten();
            let sets = sets.map(|(path, value)| format!("{path} = {value}"));
            Cell::text(sets.collect::<Vec<_>>().join(", "))
        })
        .filled()
        .map_or_else(|| "The study has no factors: one treatment.".into(), Block::from)
}

pub(super) fn runs(results: &StudyResults) -> Table {
    Table::of("Runs in the order of execution", &results.runs)
        .column("#order", |run| Cell::count(run.position as usize + 1))
        .column("treatment", |run| Cell::text(label(results, run.key)))
        .column("#replicate", |run| Cell::count(run.key.replicate as usize + 1))
        .column("#session", |run| Cell::count(run.session as usize))
        .column("started (UTC)", |run| Cell::instant(&run.started))
        .column("#duration", |run| {
            Cell::number(format::duration(run.elapsed_ns as f64 / 1e9), run.elapsed_ns as f64)
        })
        .column("outcome", |run| {
            let (outcome, severity) = outcome(run);
            Cell::text(outcome).marked(severity)
        })
        .table()
}

fn label(results: &StudyResults, run: RunKey) -> &str {
    results.study.treatments.iter().find(|t| t.index == run.treatment).map_or("?", |t| &t.label)
}

fn outcome(run: &RunRecord) -> (String, Option<Severity>) {
    if let Some(reason) = &run.failure {
        return (format!("failed: {reason}"), Some(Severity::Invalid));
    }
    match run.checks.iter().map(|c| c.severity).max() {
        Some(Severity::Invalid) => ("invalid, excluded".into(), Some(Severity::Invalid)),
        Some(Severity::Warning) => ("warning".into(), Some(Severity::Warning)),
        Some(Severity::Note) => ("ok, with a note".into(), None),
        None => ("ok".into(), None),
    }
}

pub(super) fn sessions(results: &StudyResults) -> Table {
    Table::of("Sessions", &results.sessions)
        .column("#session", |session| Cell::count(session.id as usize))
        .column("started (UTC)", |session| Cell::instant(&session.started))
        .column("ended (UTC)", |session| match &session.ended {
            Some((end, _)) => Cell::instant(end),
            None => Cell::text("–"),
        })
        .column("end", |session| {
            Cell::text(match &session.ended {
                Some((_, SessionEnd::Complete)) => "complete",
                Some((_, SessionEnd::Stopped)) => "stopped by the user",
                Some((_, SessionEnd::Failed)) => "ended by an error",
                None => "killed or still running",
            })
        })
        .column("lost run", |session| {
            Cell::text(session.lost_run.map_or("–".into(), |key| {
                format!("{}, replicate {} (repeated)", label(results, key), key.replicate + 1)
            }))
        })
        .table()
}

/// What was done to caches, cut off, prepared and verified, by workload.
pub(super) fn conditions(results: &StudyResults) -> Vec<Table> {
    let recordings = || results.runs.iter().flat_map(|run| &run.recordings);
    let rows = results.study.workloads.iter().flat_map(|workload| {
        let own = recordings().filter(|recording| recording.workload == workload.name);
        let mut counts = grouped(own.flat_map(described).map(|what| (what, ())));
        counts.sort_by_key(|((what, _), _)| *what);
        counts.into_iter().map(move |(what, times)| (workload, what, times.len()))
    });
    let table = Table::of("Preparation and conditions", rows)
        .column("workload", |(workload, ..)| Cell::text(&workload.name))
        .column("what", |(_, (what, _), _)| Cell::text(*what))
        .column("end", |(_, (_, how), _)| Cell::text(how))
        .column("#runs", |(.., n)| Cell::count(*n));
    table.filled().into_iter().collect()
}

fn described(recording: &Recording) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("cache", format!("requested {}; done: {}", recording.cache.requested, recording.cache.done)),
        ("warm-up cut", recording.cut_reason.clone()),
        (
            "verification",
            match (&recording.corruption, recording.verified_bytes) {
                (Some(corruption), _) => format!("WRONG DATA: {corruption}"),
                (None, Some(bytes)) => format!("{} verified", format::bytes(bytes as f64)),
                (None, None) => "off".into(),
            },
        ),
    ];
    for fileset in &recording.filesets {
        let reused = if fileset.reused { "reused" } else { "created" };
        let cached = match fileset.cached_bytes {
            Some(cached) if fileset.bytes > 0 => {
                format!("{} in the page cache", format::percent(cached as f64 / fileset.bytes as f64))
            }
            _ => "share in the page cache unknown".into(),
        };
        let size = format::bytes(fileset.bytes as f64);
        all.push((
            "fileset",
            format!("{}: {} files, {size}, {reused}, {cached}", fileset.name, format::count(fileset.files)),
        ));
    }
    all
}

/// Every check that did not pass, run by run.
pub(super) fn checks(results: &StudyResults) -> Option<Table> {
    let mut all: Vec<_> = results.runs.iter().flat_map(|r| r.checks.iter().map(move |c| (r, c))).collect();
    all.sort_by_key(|(_, c)| std::cmp::Reverse(c.severity));
    let note = if all.len() > CHECKS {
        format!("The worst {CHECKS} of {}; all are in results.db.", all.len())
    } else {
        String::new()
    };
    Table::of("Failed checks, run by run", all.into_iter().take(CHECKS))
        .column("severity", |(_, check)| Cell::text(word(check.severity)).marked(Some(check.severity)))
        .column("check", |(_, check)| Cell::text(check.kind.name()))
        .column("treatment", |(run, _)| Cell::text(label(results, run.key)))
        .column("#replicate", |(run, _)| Cell::count(run.key.replicate as usize + 1))
        .column("workload", |(_, check)| Cell::text(check.workload.as_deref().unwrap_or("whole run")))
        .column("what", |(_, check)| Cell::text(&check.message))
        .column("evidence", |(_, check)| {
            let evidence = check.evidence.iter().map(|one| format!("{} = {}", one.name, one.value));
            Cell::text(evidence.collect::<Vec<_>>().join(", "))
        })
        .note(note)
        .filled()
}
