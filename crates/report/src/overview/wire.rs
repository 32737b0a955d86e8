//! What went over the wire, who served it and what lay between, in words.

use benchmaster_record::phase::Phase;
use benchmaster_record::results::Emulator;
use std::collections::BTreeSet;

use benchmaster_analysis::{Analysis, RpcSummary, TreatmentSummary};
use benchmaster_record::results::{LabRecord, StudyResults};

use super::grouped;

/// A workload with each treatment's RPCs of its measured phase.
pub(crate) type MeasuredRpcs<'a> = (&'a str, Vec<(&'a TreatmentSummary, &'a RpcSummary)>);

/// The measured phases with RPCs, by workload.
pub(crate) fn measured_rpcs(analysis: &Analysis) -> Vec<MeasuredRpcs<'_>> {
    let all = analysis.treatments.iter().flat_map(|treatment| {
        let measured = treatment.rpcs.iter().filter(|summary| summary.phase == Phase::Measure);
        measured.map(move |summary| (summary.workload.as_str(), (treatment, summary)))
    });
    grouped(all)
}

/// Program and operation of all calls, the most frequent first.
pub(crate) fn kinds<'s>(summaries: impl Iterator<Item = &'s RpcSummary>) -> Vec<(String, String)> {
    let rows = summaries.flat_map(|summary| &summary.rows);
    let kinds = grouped(rows.map(|row| ((row.program.clone(), row.operation.clone()), row.ops.mean)));
    let mut kinds: Vec<_> = kinds.into_iter().map(|(kind, ops)| (kind, ops.iter().sum::<f64>())).collect();
    kinds.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    kinds.into_iter().map(|(kind, _)| kind).collect()
}

/// `v3 READ`, `v4 OPEN`, `NLM LOCK`.
pub(crate) fn kind_text((program, operation): &(String, String)) -> String {
    format!("{} {operation}", program.strip_prefix("NFS").unwrap_or(program))
}

/// A phase in words.
pub(crate) fn phase_text(phase: Phase) -> &'static str {
    match phase {
        Phase::SetUp => "set-up (mounting, preparing, opening)",
        Phase::Measure => "measured phase",
        Phase::TearDown => "tear-down (closing, unmounting)",
        phase => phase.name(),
    }
}

/// `Events per run: reconnect 1, slot-wait 12.`; `None` when there were none.
pub(crate) fn events_text(summary: &RpcSummary) -> Option<String> {
    let number = |n: f64| if n.fract() == 0.0 { format!("{n}") } else { format!("{n:.1}") };
    let events = summary.events.iter().map(|(event, count)| format!("{event} {}", number(*count)));
    let text = events.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then(|| format!("Events per run: {text}."))
}

/// In what machines runs were done, each lab once; nothing for real hosts.
pub(crate) fn lab_lines(results: &StudyResults) -> Vec<String> {
    let labs: BTreeSet<String> =
        results.runs.iter().filter_map(|run| run.lab.as_ref()).map(ToString::to_string).collect();
    let several = labs.len() > 1;
    let exact = results.runs.iter().filter_map(|run| run.lab.as_ref()).any(LabRecord::is_virtual);
    let mut lines: Vec<String> =
        labs.into_iter().map(|lab| format!("measured in a lab of user-space machines: {lab}")).collect();
    if several {
        lines.push(
            "runs in different labs were on different systems, which contributes to every difference \
         between them"
                .into(),
        );
    }
    if exact {
        lines.push(
            "on virtual time, latencies and counts are exact and have no interval; rates and CPU times are \
             meaningless"
                .into(),
        );
    }
    lines
}

/// How the network was emulated, once for each means; nothing for real ones.
pub(crate) fn network_lines(results: &StudyResults) -> Vec<String> {
    let services = results.runs.iter().filter_map(|run| run.service.as_ref()).map(|service| &service.network);
    let emulated: Vec<_> = services.filter(|network| network.is_emulated()).collect();
    let delays = grouped(emulated.iter().map(|network| (network.emulator, network.delay_ns)));
    let line = |(emulator, mut delays): (Emulator, Vec<u64>)| {
        delays.sort_unstable();
        delays.dedup();
        let delays: Vec<_> = delays.iter().map(|delay| format!("{} ms", *delay as f64 / 1e6)).collect();
        let note = emulated.iter().find(|network| network.emulator == emulator).map_or("", |one| &one.note);
        format!("network emulated with a one-way delay of {} by {note}", delays.join(", "))
    };
    delays.into_iter().map(line).collect()
}
