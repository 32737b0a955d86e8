//! Results as one JSON document. Keys are stable: new ones may be added, none is renamed or removed while
//! `format_version` stays the same.

use std::io::{self, Write};

use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_record::recording::{
    EncodedHistogram, HistogramError, HostSamples, OperationStats, Recording, SeriesRecording,
    WorkerRecording,
};
use benchmaster_record::results::{RunRecord, SessionRecord, StudyRecord, StudyResults};
use serde_json::{Map, Value, json};

use super::ExportError;
use super::tables::worst;
use crate::document::word;

/// The percentiles of every latency table.
const PERCENTILES: [(&str, f64); 8] = [
    ("p1", 0.01),
    ("p10", 0.1),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("p99.999", 0.99999),
];

/// All results as one document: the study, its sessions, every run with its recordings, and what was found in them; histograms
/// as percentiles and as lists of `[value, count]`. Numbers that are not finite become `null`.
///
/// # Errors
/// When a stored histogram is damaged.
pub fn export_json(results: &StudyResults, diagnosis: &Diagnosis) -> Result<Value, ExportError> {
    let runs = results.runs.iter().map(|r| run(r, &results.study)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({
        "format": "benchmaster-results",
        "format_version": 1,
        "study": results.study,
        "interruptions": results.interruptions(),
        "sessions": results.sessions.iter().map(session).collect::<Vec<_>>(),
        "baselines": results.baselines,
        "hooks": results.hooks,
        "runs": runs,
        "diagnosis": diagnosis,
    }))
}

fn session(session: &SessionRecord) -> Value {
    json!({
        "session": session.id,
        "started": session.started,
        "ended": session.ended.map(|(time, _)| time),
        "outcome": session.ended.map(|(_, outcome)| outcome),
        "lost_run": session.lost_run,
        "command": session.command,
        "environment": session.environment,
    })
}

fn run(run: &RunRecord, study: &StudyRecord) -> Result<Value, ExportError> {
    let treatment = study.treatments.get(run.key.treatment as usize);
    let mut levels = Map::new();
    for (factor, level) in study.factors.iter().zip(treatment.map_or(&[][..], |t| &t.levels)) {
        levels.insert(factor.name.clone(), json!(factor.levels.get(*level as usize)));
    }
    let recordings = run.recordings.iter().map(|r| recording(run, r)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({
        "treatment": run.key.treatment,
        "label": treatment.map(|t| &t.label),
        "levels": levels,
        "replicate": run.key.replicate,
        "position": run.position,
        "session": run.session,
        "started": run.started,
        "elapsed_ns": run.elapsed_ns,
        "failure": run.failure,
        "severity": worst(run).map(word),
        "responses": run.responses,
        "checks": run.checks,
        "events": run.events,
        "traces": run.traces,
        "service": run.service,
        "lab": run.lab,
        "server_use": run.server_use,
        "retries": run.retries,
        "recordings": recordings,
    }))
}

fn recording(run: &RunRecord, r: &Recording) -> Result<Value, ExportError> {
    let series = r.series.iter().map(|s| {
        series(s).map_err(|source| ExportError::Histogram {
            run: run.position,
            workload: r.workload.clone(),
            series: s.key.label.clone(),
            source,
        })
    });
    Ok(json!({
        "workload": r.workload,
        "rpc": r.rpc,
        "timed": r.timed,
        "started_unix_ns": r.started_unix_ns,
        "length_ns": r.length_ns,
        "interval_ns": r.interval_ns,
        "cut_ns": r.cut_ns,
        "cut_reason": r.cut_reason,
        "series": series.collect::<Result<Vec<_>, _>>()?,
        "workers": r.workers.iter().map(worker).collect::<Vec<_>>(),
        "phases": r.phases,
        "filesets": r.filesets,
        "cache": r.cache,
        "host": r.host,
        "error_details": r.error_details,
        "agents": r.agents,
        "start": r.start,
        "sampling": r.samples.iter().map(sampling).collect::<Vec<_>>(),
        "verified_bytes": r.verified_bytes,
        "operations_hash": r.operations_hash().map(|hash| format!("{hash:016x}")),
        "corruption": r.corruption,
    }))
}

/// What sampling was like; the samples themselves are in a file of their own.
fn sampling(host: &HostSamples) -> Value {
    json!({
        "agent": host.agent,
        "ticks": host.samples.ticks,
        "late": host.samples.late,
        "problems": host.samples.problems,
        "cost": host.samples.cost,
    })
}

/// The samples of a run, read whole: a line for each series of each agent.
pub(super) fn samples(run: &RunRecord, study: &StudyRecord, out: &mut impl Write) -> io::Result<()> {
    let label = study.treatments.get(run.key.treatment as usize).map(|treatment| &treatment.label);
    for recording in &run.recordings {
        for host in &recording.samples {
            for series in &host.samples.series {
                let points: Vec<_> = series.points.iter().map(|p| (p.time_ns, p.value)).collect();
                let line = json!({
                    "treatment": run.key.treatment,
                    "label": label,
                    "replicate": run.key.replicate,
                    "position": run.position,
                    "workload": recording.workload,
                    "agent": host.agent,
                    "sampler": series.key.sampler,
                    "metric": series.key.metric,
                    "instance": series.key.instance,
                    "kind": series.kind,
                    "unit": series.unit,
                    "points": points,
                });
                serde_json::to_writer(&mut *out, &line)?;
                out.write_all(b"\n")?;
            }
        }
    }
    Ok(())
}

fn series(s: &SeriesRecording) -> Result<Value, HistogramError> {
    let intervals = s.intervals.iter().map(|interval| {
        let mut value = Map::new();
        value.insert("interval".into(), interval.index.into());
        value.extend(stats(&interval.stats)?);
        Ok(Value::Object(value))
    });
    Ok(json!({
        "group": s.key.group,
        "series": s.key.label,
        "operation": s.key.operation.name(),
        "total": stats(&s.total)?,
        "errors": s.errors,
        "service": s.service.as_ref().map(histogram).transpose()?,
        "intervals": intervals.collect::<Result<Vec<_>, _>>()?,
    }))
}

fn stats(stats: &OperationStats) -> Result<Map<String, Value>, HistogramError> {
    let mut value = Map::new();
    for (name, number) in
        [("count", stats.count), ("bytes", stats.bytes), ("errors", stats.errors), ("sum_ns", stats.sum_ns)]
    {
        value.insert(name.into(), number.into());
    }
    value.insert("latency".into(), histogram(&stats.latency)?);
    Ok(value)
}

/// Percentiles, and every bucket with its highest value. `null` when nothing was counted.
fn histogram(encoded: &EncodedHistogram) -> Result<Value, HistogramError> {
    if encoded.0.is_empty() {
        return Ok(Value::Null);
    }
    let histogram = encoded.decode()?;
    if histogram.is_empty() {
        return Ok(Value::Null);
    }
    let mut percentiles = Map::new();
    for (name, quantile) in PERCENTILES {
        percentiles.insert(name.into(), histogram.value_at_quantile(quantile).into());
    }
    let buckets: Vec<_> = histogram
        .iter_recorded()
        .map(|bucket| json!([bucket.value_iterated_to(), bucket.count_since_last_iteration()]))
        .collect();
    Ok(json!({
        "unit": "ns",
        "min": histogram.min(),
        "max": histogram.max(),
        "percentiles": percentiles,
        "buckets": buckets,
    }))
}

fn worker(w: &WorkerRecording) -> Value {
    json!({
        "client": w.client,
        "group": w.group,
        "worker": w.worker,
        "start_ns": w.start_ns,
        "end_ns": w.end_ns,
        "cpu_user_ns": w.cpu_ns.map(|(user, _)| user),
        "cpu_system_ns": w.cpu_ns.map(|(_, system)| system),
        "stop": w.stop,
        "series": w.series,
    })
}
