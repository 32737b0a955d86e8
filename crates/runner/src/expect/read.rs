//! What a results directory found.

use std::collections::BTreeMap;
use std::path::Path;

use benchmaster_record::recording::{HostSamples, Recording};
use benchmaster_record::results::RunRecord;
use benchmaster_store::{Reader, Store};
use benchmaster_telemetry::sampling::Samples;

use super::latency::Latencies;
use super::{ExpectError, Expectation, FORMAT, OperationFindings, WorkloadFindings};
use benchmaster_analysis::schedule::is_complete;
use benchmaster_study::plan::Plan;

/// Counters of a mount that tell what the client's caches did.
const CACHING: [&str; 22] = [
    "inode_revalidate",
    "dentry_revalidate",
    "data_invalidate",
    "attr_invalidate",
    "vfs_open",
    "vfs_lookup",
    "vfs_access",
    "vfs_read_page",
    "vfs_read_pages",
    "vfs_write_page",
    "vfs_write_pages",
    "vfs_getdents",
    "vfs_setattr",
    "vfs_flush",
    "vfs_fsync",
    "vfs_lock",
    "silly_rename",
    "delay",
    "server_read",
    "server_written",
    "pages_read",
    "pages_written",
];

/// The agent that looks at the server.
const SERVER: &str = "server";

impl Expectation {
    /// What the runs of a results directory found. `plan` is that of the study.
    ///
    /// # Errors
    /// When the results cannot be read, or a run failed.
    pub fn read(directory: &Path, plan: &Plan) -> Result<Self, ExpectError> {
        let results = Store::load(directory)?;
        if !is_complete(&results) {
            return Err(ExpectError::Incomplete { done: results.runs.len() });
        }
        let mut reader = Reader::open(directory)?;
        let mut treatment = BTreeMap::new();
        for run in &results.runs {
            let record = results.study.treatments.iter().find(|t| t.index == run.key.treatment);
            let label = record.map_or_else(|| run.key.treatment.to_string(), |record| record.label.clone());
            if let Some(reason) = &run.failure {
                return Err(ExpectError::Failed { treatment: label, reason: reason.clone() });
            }
            // With the samples, which are not read with the others.
            let whole = reader.load_run(run.key)?;
            let run = whole.as_ref().unwrap_or(run);
            let planned = plan.treatment(run.key.treatment, run.block);
            let delay = planned.map_or(0, |planned| planned.settings.network.delay.nanos());
            let findings = workloads(directory, &label, run, 2 * delay)?;
            let name = match run.key.replicate {
                0 => label,
                later => format!("{label} (replicate {})", later + 1),
            };
            treatment.insert(name, findings);
        }
        Ok(Self { format: FORMAT, study: results.study.name, treatment })
    }
}

fn workloads(
    directory: &Path,
    label: &str,
    run: &RunRecord,
    round_trip_ns: u64,
) -> Result<BTreeMap<String, WorkloadFindings>, ExpectError> {
    let mut all = BTreeMap::new();
    for recording in &run.recordings {
        let trace = run.traces.get(&recording.workload).ok_or_else(|| ExpectError::NoTrace {
            treatment: label.to_owned(),
            workload: recording.workload.clone(),
        })?;
        let mut latencies = vec![Latencies::default(); recording.series.len()];
        benchmaster_trace::read(&directory.join(trace), |records| {
            for record in records.iter().filter(|record| record.error == 0) {
                if let Some(of) = latencies.get_mut(usize::from(record.series)) {
                    of.add(record.latency_ns);
                }
            }
        })?;
        let findings = WorkloadFindings {
            operations: operations(recording, &latencies, round_trip_ns),
            rpcs: rpcs(recording),
            client: client(&recording.samples),
            server: server(&recording.samples),
        };
        all.insert(recording.workload.clone(), findings);
    }
    Ok(all)
}

fn operations(
    recording: &Recording,
    latencies: &[Latencies],
    round_trip_ns: u64,
) -> BTreeMap<String, OperationFindings> {
    let done = recording.series.iter().zip(latencies);
    let done = done.filter(|(series, _)| series.total.count > 0 || !series.errors.is_empty());
    done.map(|(series, latencies)| {
        let findings = OperationFindings {
            count: series.total.count,
            errors: series.errors.clone(),
            round_trips: latencies.round_trips(round_trip_ns),
            latency: latencies.lines(),
        };
        (format!("{}.{}", series.key.group, series.key.label), findings)
    })
    .collect()
}

/// Calls by phase; calls that failed, and requests that were sent again, besides.
fn rpcs(recording: &Recording) -> BTreeMap<String, BTreeMap<String, u64>> {
    let phases = recording.rpc.iter().flat_map(|rpc| &rpc.phases);
    phases
        .map(|phase| {
            let mut calls = BTreeMap::new();
            for row in phase.rows.iter().filter(|row| row.ops > 0) {
                let again = row.transmissions.saturating_sub(row.ops);
                for (name, count) in [("", row.ops), (" errors", row.errors), (" sent again", again)] {
                    if count > 0 {
                        *calls.entry(format!("{}{name}", row.operation)).or_default() += count;
                    }
                }
            }
            (phase.phase.name().to_owned(), calls)
        })
        .collect()
}

fn client(samples: &[HostSamples]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for host in samples {
        for metric in CACHING {
            let grown = grown(&host.samples, "mountstats", |name, _| name == metric);
            for (_, count) in grown {
                *sums.entry(metric.to_owned()).or_default() += count;
            }
        }
    }
    sums.retain(|_, count: &mut u64| *count > 0);
    sums
}

/// Operations of version 4, and calls of the others, of whoever looked at the server.
fn server(samples: &[HostSamples]) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    // Every client sees the server's counters too, which are the kernel's.
    for host in samples.iter().filter(|host| host.agent == SERVER) {
        let counted = grown(&host.samples, "nfsd", |name, instance| {
            // COMPOUND says nothing that its operations do not.
            name == "operations" || (name == "calls" && !instance.starts_with("v4"))
        });
        for (instance, count) in counted.into_iter().filter(|(_, count)| *count > 0) {
            *sums.entry(instance).or_default() += count;
        }
    }
    sums
}

/// By how much counters grew from the first to the last reading, by instance.
fn grown(samples: &Samples, sampler: &str, wanted: impl Fn(&str, &str) -> bool) -> Vec<(String, u64)> {
    let of = samples
        .series
        .iter()
        .filter(|series| series.key.sampler == sampler && wanted(&series.key.metric, &series.key.instance));
    of.filter_map(|series| {
        let (first, last) = series.points.first().zip(series.points.last())?;
        Some((series.key.instance.to_string(), (last.value - first.value).max(0.0) as u64))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use benchmaster_telemetry::sampling::{Kind, MetricKey, Point, Series};

    use super::*;

    fn samples(agent: &str, of: &[(&str, &str, &str, &[f64])]) -> HostSamples {
        let series = of.iter().map(|(sampler, metric, instance, values)| Series {
            key: MetricKey {
                sampler: (*sampler).into(),
                metric: (*metric).into(),
                instance: (*instance).into(),
            },
            kind: Kind::Counter,
            unit: "1".into(),
            points: values.iter().map(|value| Point { time_ns: 0, value: *value }).collect(),
        });
        HostSamples {
            agent: agent.into(),
            samples: Samples { series: series.collect(), ..Samples::default() },
        }
    }

    #[test]
    fn counters_of_all_clients_are_summed_and_those_that_stood_still_left_out() {
        let mount = "/mnt";
        let all = [
            samples(
                "c1",
                &[
                    ("mountstats", "vfs_open", mount, &[5.0, 6.0, 15.0]),
                    ("mountstats", "delay", mount, &[3.0]),
                ],
            ),
            samples(
                "c2",
                &[("mountstats", "vfs_open", mount, &[0.0, 7.0]), ("mountstats", "age", mount, &[0.0, 9.0])],
            ),
        ];
        assert_eq!(client(&all), BTreeMap::from([("vfs_open".to_owned(), 17)]));
    }

    #[test]
    fn operations_of_the_server_are_those_of_compounds_and_of_older_versions() {
        let all = [samples(
            "server",
            &[
                ("nfsd", "operations", "OPEN", &[1.0, 4.0]),
                ("nfsd", "calls", "v4 COMPOUND", &[1.0, 9.0]),
                ("nfsd", "calls", "v3 READ", &[1.0, 3.0]),
                ("nfsd", "threads", "", &[8.0, 9.0]),
            ],
        )];
        assert_eq!(server(&all), BTreeMap::from([("OPEN".to_owned(), 3), ("v3 READ".to_owned(), 2)]));
    }
}
