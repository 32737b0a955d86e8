//! Tables of what many clients add: agents, clients, networks, samples, commands.

use benchmaster_record::recording::{AgentRecording, Collected, HostSamples, Recording};
use benchmaster_record::results::{
    BaselineRecord, FlowsBaseline, HookRecord, RetryRecord, RunRecord, StudyRecord, StudyResults,
};
use benchmaster_record::samples::{Kind, Point, Series};

use super::{Part, of_runs, parts};
use crate::export::table::{Table, TableBuilder};
use crate::overview::{self, Client};

/// One row per agent of a recording.
pub(super) fn agents(results: &StudyResults) -> Table {
    let rows: Vec<Part<'_, AgentRecording>> = parts(results, |recording| &recording.agents);
    of_runs("agents", &rows, &results.study, |row| row.0)
        .text("workload", |(_, r, _)| Some(r.workload.as_str()))
        .text("agent", |(.., a)| Some(a.name.as_str()))
        .text("host", |(.., a)| Some(a.host.as_str()))
        .unsigned("first_client", |(.., a)| Some(a.first_client.into()))
        .unsigned("clients", |(.., a)| Some(a.clients.into()))
        .signed("offset_ns", |(.., a)| Some(a.clock.offset_ns))
        .unsigned("bound_ns", |(.., a)| Some(a.clock.bound_ns))
        .unsigned("exchanges", |(.., a)| Some(a.clock.exchanges.into()))
        .real("drift", |(.., a)| a.clock.drift)
        .unsigned("process_user_ns", |(.., a)| Some(a.host_use.process_user_ns))
        .unsigned("process_system_ns", |(.., a)| Some(a.host_use.process_system_ns))
        .real("host_busy", |(.., a)| a.host_use.host_busy)
        .real("host_steal", |(.., a)| a.host_use.host_steal)
        .build()
}

/// One row per recording whose start is known.
pub(super) fn starts(results: &StudyResults) -> Table {
    let rows = parts(results, |recording| recording.start.as_slice());
    of_runs("starts", &rows, &results.study, |row| row.0)
        .text("workload", |(_, r, _)| Some(r.workload.as_str()))
        .unsigned("spread_ns", |(.., s)| Some(s.spread_ns))
        .unsigned("bound_ns", |(.., s)| Some(s.bound_ns))
        .unsigned("server_spread_ns", |(.., s)| s.server_spread_ns)
        .unsigned("stagger_ns", |(.., s)| Some(s.stagger_ns))
        .build()
}

/// One row per baseline and number of flows; one without flows for a baseline that has the round trip alone.
pub(super) fn baselines(results: &StudyResults) -> Table {
    let mut rows: Vec<(&BaselineRecord, Option<&FlowsBaseline>)> = Vec::new();
    for baseline in &results.baselines {
        if baseline.flows.is_empty() {
            rows.push((baseline, None))
        } else {
            rows.extend(baseline.flows.iter().map(|flows| (baseline, Some(flows))))
        }
    }
    TableBuilder::new("baselines", &rows)
        .unsigned("session", |(b, _)| Some(b.session.into()))
        .text("time", |(b, _)| Some(b.time.to_string()))
        .text("agent", |(b, _)| Some(b.client.as_str()))
        .text("target", |(b, _)| Some(b.target.as_str()))
        .text("network", |(b, _)| Some(b.network.emulator.name()))
        .unsigned("delay_ns", |(b, _)| Some(b.network.delay_ns))
        .unsigned("jitter_ns", |(b, _)| Some(b.network.jitter_ns))
        .unsigned("bandwidth", |(b, _)| b.network.bandwidth)
        .real("loss", |(b, _)| Some(b.network.loss))
        .unsigned("base_rtt_ns", |(b, _)| b.network.base_rtt_ns)
        .unsigned("rtt_count", |(b, _)| b.round_trip.map(|r| r.count))
        .unsigned("rtt_min_ns", |(b, _)| b.round_trip.map(|r| r.min_ns))
        .unsigned("rtt_median_ns", |(b, _)| b.round_trip.map(|r| r.median_ns))
        .unsigned("rtt_p99_ns", |(b, _)| b.round_trip.map(|r| r.p99_ns))
        .unsigned("flows", |(_, f)| f.map(|f| f.flows.into()))
        .text("direction", |(_, f)| f.map(|f| f.direction.as_str()))
        .unsigned("count", |(_, f)| f.map(|f| f.count.into()))
        .real("throughput", |(_, f)| f.map(|f| f.throughput))
        .real("half_width", |(_, f)| f.and_then(|f| f.half_width))
        .real("fairness", |(_, f)| f.and_then(|f| f.fairness))
        .unsigned("retransmissions", |(_, f)| f.and_then(|f| f.retransmissions))
        .build()
}

/// One row per command that was run.
pub(super) fn hooks(results: &StudyResults) -> Table {
    let rows: Vec<&HookRecord> = results.hooks.iter().collect();
    TableBuilder::new("hooks", &rows)
        .unsigned("session", |h| Some(h.session.into()))
        .unsigned("treatment", |h| h.run.map(|run| run.treatment.into()))
        .unsigned("replicate", |h| h.run.map(|run| run.replicate.into()))
        .text("step", |h| Some(h.step.as_str()))
        .text("agent", |h| Some(h.agent.as_str()))
        .text("command", |h| Some(h.command.as_str()))
        .text("started", |h| Some(h.started.to_string()))
        .unsigned("elapsed_ns", |h| Some(h.elapsed_ns))
        .text("ended", |h| Some(h.ended.as_str()))
        .flag("succeeded", |h| Some(h.succeeded))
        .text("output", |h| Some(h.output.as_str()))
        .build()
}

/// One row per attempt that failed.
pub(super) fn retries(results: &StudyResults) -> Table {
    let rows: Vec<(&RunRecord, &RetryRecord)> =
        results.runs.iter().flat_map(|run| run.retries.iter().map(move |retry| (run, retry))).collect();
    of_runs("retries", &rows, &results.study, |row| row.0)
        .text("started", |(_, r)| Some(r.started.to_string()))
        .unsigned("elapsed_ns", |(_, r)| Some(r.elapsed_ns))
        .text("agent", |(_, r)| r.agent.clone())
        .text("reason", |(_, r)| Some(r.reason.as_str()))
        .build()
}

/// One row per agent that sampled.
pub(super) fn samplings(results: &StudyResults) -> Table {
    let rows: Vec<Part<'_, HostSamples>> = parts(results, |recording| &recording.samples);
    let problems = |host: &HostSamples| -> String {
        let each = host.samples.problems.iter().map(|p| format!("{}: {}", p.sampler, p.problem));
        each.collect::<Vec<_>>().join("; ")
    };
    of_runs("samplings", &rows, &results.study, |row| row.0)
        .text("workload", |(_, r, _)| Some(r.workload.as_str()))
        .text("agent", |(.., h)| Some(h.agent.as_str()))
        .unsigned("ticks", |(.., h)| Some(h.samples.ticks.into()))
        .unsigned("late", |(.., h)| Some(h.samples.late.into()))
        .unsigned("cpu_ns", |(.., h)| Some(h.samples.cost.cpu_ns))
        .unsigned("elapsed_ns", |(.., h)| Some(h.samples.cost.elapsed_ns))
        .text("problems", |(.., h)| Some(problems(h)))
        .build()
}

/// One row per point of the samples of one run, read whole.
pub(in crate::export) fn samples(run: Option<&RunRecord>, study: &StudyRecord) -> Table {
    type Row<'a> = (&'a RunRecord, &'a Recording, &'a HostSamples, &'a Series, &'a Point);
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (run, recording) in recordings(run) {
        for host in &recording.samples {
            for series in &host.samples.series {
                rows.extend(series.points.iter().map(|point| (run, recording, host, series, point)));
            }
        }
    }
    of_runs("samples", &rows, study, |row| row.0)
        .text("workload", |row| Some(row.1.workload.as_str()))
        .text("agent", |row| Some(row.2.agent.as_str()))
        .text("sampler", |row| Some(row.3.key.sampler.as_str()))
        .text("metric", |row| Some(row.3.key.metric.as_str()))
        .text("instance", |row| Some(row.3.key.instance.as_str()))
        .text("kind", |row| Some(kind(row.3.kind)))
        .text("unit", |row| Some(row.3.unit.as_ref()))
        .signed("time_ns", |row| Some(row.4.time_ns))
        .real("value", |row| Some(row.4.value))
        .build()
}

/// One row per output of an attached command of one run, read whole. What is not UTF-8 is replaced.
pub(in crate::export) fn collected(run: Option<&RunRecord>, study: &StudyRecord) -> Table {
    let mut rows: Vec<Part<'_, Collected>> = Vec::new();
    for (run, recording) in recordings(run) {
        rows.extend(recording.collected.iter().map(|collected| (run, recording, collected)));
    }
    of_runs("collected", &rows, study, |row| row.0)
        .text("workload", |(_, r, _)| Some(r.workload.as_str()))
        .text("name", |(.., c)| Some(c.name.as_str()))
        .text("agent", |(.., c)| Some(c.agent.as_str()))
        .text("command", |(.., c)| Some(c.command.as_str()))
        .text("ended", |(.., c)| Some(c.ended.as_str()))
        .signed("start_ns", |(.., c)| Some(c.start_ns))
        .signed("end_ns", |(.., c)| Some(c.end_ns))
        .unsigned("lost", |(.., c)| Some(c.lost))
        .text("output", |(.., c)| Some(String::from_utf8_lossy(&c.output).into_owned()))
        .build()
}

fn recordings(run: Option<&RunRecord>) -> impl Iterator<Item = (&RunRecord, &Recording)> {
    run.into_iter().flat_map(|run| run.recordings.iter().map(move |recording| (run, recording)))
}

/// `counter` or `gauge`.
pub(in crate::export) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
    }
}

/// One row per client of a recording.
pub(super) fn clients(results: &StudyResults) -> Table {
    let mut rows: Vec<(&RunRecord, &Recording, u32, Client)> = Vec::new();
    for run in &results.runs {
        for recording in &run.recordings {
            let clients = overview::clients(recording).into_iter();
            rows.extend(clients.map(|(number, client)| (run, recording, number, client)));
        }
    }
    let agent = |recording: &Recording, client: u32| {
        let of = |agent: &&AgentRecording| {
            (agent.first_client..agent.first_client + agent.clients).contains(&client)
        };
        recording.agents.iter().find(of).cloned()
    };
    of_runs("clients", &rows, &results.study, |row| row.0)
        .text("workload", |row| Some(row.1.workload.as_str()))
        .unsigned("client", |row| Some(row.2.into()))
        .text("agent", |row| agent(row.1, row.2).map(|agent| agent.name))
        .text("host", |row| agent(row.1, row.2).map(|agent| agent.host))
        .unsigned("first_start_ns", |row| row.3.first_start_ns)
        .unsigned("last_end_ns", |row| row.3.last_end_ns)
        .unsigned("count", |row| Some(row.3.count))
        .unsigned("bytes", |row| Some(row.3.bytes))
        .unsigned("errors", |row| Some(row.3.errors))
        .build()
}
