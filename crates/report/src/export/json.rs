//! Results as one JSON document. Keys are stable: new ones may be added, none is renamed or removed while
//! `format_version` stays the same.

use benchmaster_store::record::{RunRecord, SessionRecord, StudyRecord, StudyResults};
use benchmaster_workload::recording::{
    EncodedHistogram, HistogramError, OperationStats, Recording, SeriesRecording, WorkerRecording,
};
use serde_json::{Map, Value, json};

use super::ExportError;
use super::tables::{severity_name, worst};

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

/// All results as one document: the study, its sessions, and every run with its recordings; histograms as percentiles and
/// as lists of `[value, count]`. Numbers that are not finite become `null`.
///
/// # Errors
/// When a stored histogram is damaged.
pub fn export_json(results: &StudyResults) -> Result<Value, ExportError> {
    let runs = results.runs.iter().map(|r| run(r, &results.study)).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({
        "format": "benchmaster-results",
        "format_version": 1,
        "study": results.study,
        "interruptions": results.interruptions(),
        "sessions": results.sessions.iter().map(session).collect::<Vec<_>>(),
        "runs": runs,
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
        "severity": worst(run).map(severity_name),
        "responses": run.responses,
        "checks": run.checks,
        "events": run.events,
        "traces": run.traces,
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
        "verified_bytes": r.verified_bytes,
        "corruption": r.corruption,
    }))
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
