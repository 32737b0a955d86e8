//! Results as OpenMetrics 1.0 text, for Prometheus and what reads its formats.
//!
//! Every metric has the time at which what it tells of ended: that of its run, or of the last run of its treatment. So the text
//! can be put into a database of metrics long after the runs.

mod writer;

use benchmaster_record::phase::Phase;
use std::io::{self, Write};

use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_record::recording::{Recording, RpcRow, SeriesRecording};
use benchmaster_record::results::{RunRecord, StudyResults, TreatmentRecord, Unit};
use benchmaster_study::analysis::{Analysis, LatencyKind, LatencySummary, TreatmentSummary};
use jiff::Timestamp;

use self::writer::{Family, Kind, Labels, Writer, label_names};
use super::tables::{severity_name, worst};

/// Upper bounds of the buckets of latencies in nanoseconds: 1, 2 and 5 of every power of ten from 1 µs to 100 s.
const BOUNDS: [u64; 25] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
    20_000_000_000,
    50_000_000_000,
    100_000_000_000,
];

/// Labels that are not factors'.
const FIXED: &[&str] = &[
    "study",
    "treatment",
    "replicate",
    "workload",
    "response",
    "operation",
    "series",
    "group",
    "program",
    "state",
    "check",
    "severity",
    "finding",
    "confidence",
    "of",
    "version",
    "design",
    "seed",
    "le",
];

/// Writes the text of [`super::Format::OpenMetrics`].
///
/// # Errors
/// When `out` refuses.
pub fn openmetrics(
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    out: impl Write,
) -> io::Result<()> {
    let factors: Vec<&str> = results.study.factors.iter().map(|factor| factor.name.as_str()).collect();
    let names = label_names(&factors, FIXED);
    let mut metrics = Metrics { results, analysis, names, out: Writer::new(out) };
    metrics.study()?;
    metrics.runs()?;
    for unit in [Unit::BytesPerSecond, Unit::OperationsPerSecond, Unit::Nanoseconds, Unit::Ratio, Unit::Count]
    {
        metrics.responses(unit)?;
    }
    metrics.latencies()?;
    metrics.operations()?;
    metrics.rpcs()?;
    metrics.checks()?;
    metrics.findings(diagnosis)?;
    metrics.out.finish()
}

struct Metrics<'a, W: Write> {
    results: &'a StudyResults,
    analysis: &'a Analysis,
    /// Names of the factors' labels.
    names: Vec<String>,
    out: Writer<W>,
}

/// What a counter of operations counts.
type Count = (Family, fn(&SeriesRecording) -> f64);
/// What a counter of calls counts.
type Calls = (Family, fn(&RpcRow) -> f64);

impl<W: Write> Metrics<'_, W> {
    fn study(&mut self) -> io::Result<()> {
        let study = &self.results.study;
        self.out.begin(&Family {
            name: "benchmaster_study",
            kind: Kind::Info,
            unit: "",
            help: "The study that was measured.",
        })?;
        let labels = self
            .labels()
            .with("version", &study.version)
            .with("design", &study.design)
            .with("seed", &study.seed.to_string());
        self.out.sample("_info", &labels, 1.0, self.last())
    }

    fn runs(&mut self) -> io::Result<()> {
        self.out.begin(&Family {
            name: "benchmaster_runs",
            kind: Kind::Gauge,
            unit: "",
            help: "Finished runs by state: they count, a check found them invalid, or they failed.",
        })?;
        let (all, failed, invalid) = (self.analysis.runs, self.analysis.failed, self.analysis.excluded);
        let counted = all.saturating_sub(failed + invalid);
        for (state, runs) in [("counted", counted), ("invalid", invalid), ("failed", failed)] {
            self.out.sample("", &self.labels().with("state", state), runs as f64, self.last())?;
        }
        self.out.begin(&Family {
            name: "benchmaster_run_elapsed_seconds",
            kind: Kind::Gauge,
            unit: "seconds",
            help: "Whole length of a run with its preparation and tear-down. Severity is that of its worst check.",
        })?;
        for run in &self.results.runs {
            let severity = match &run.failure {
                Some(_) => "failed",
                None => worst(run).map_or("none", severity_name),
            };
            let labels = self.of_run(run).with("severity", severity);
            self.out.sample("", &labels, seconds(run.elapsed_ns as f64), Some(ended(run)))?;
        }
        Ok(())
    }

    /// Responses of one unit: of every run that counts, and their means by treatment.
    fn responses(&mut self, unit: Unit) -> io::Result<()> {
        let [of_run, mean, half_width] = families(unit);
        let scale = if unit == Unit::Nanoseconds { 1e-9 } else { 1.0 };
        let counted = |run: &&RunRecord| benchmaster_study::analysis::counts(run);
        let has = |run: &RunRecord| run.responses.iter().any(|response| response.unit == unit);
        if !self.results.runs.iter().filter(counted).any(has) {
            return Ok(());
        }
        self.out.begin(&of_run)?;
        for run in self.results.runs.iter().filter(counted) {
            for response in run.responses.iter().filter(|response| response.unit == unit) {
                let labels = self.of_run(run);
                let labels = self.of_response(labels, &response.name);
                self.out.sample("", &labels, response.value * scale, Some(ended(run)))?;
            }
        }
        for (family, is_mean) in [(mean, true), (half_width, false)] {
            self.out.begin(&family)?;
            for treatment in &self.analysis.treatments {
                for response in treatment.responses.iter().filter(|response| response.unit == unit) {
                    let Some(estimate) = &response.estimate else { continue };
                    let Some(value) = (if is_mean { Some(estimate.mean) } else { estimate.half_width })
                    else {
                        continue;
                    };
                    let labels = self.of_treatment(treatment.index);
                    let labels = self.of_response(labels, &response.name);
                    self.out.sample("", &labels, value * scale, self.last_of(treatment))?;
                }
            }
        }
        Ok(())
    }

    fn latencies(&mut self) -> io::Result<()> {
        let families = [
            (
                Family {
                    name: "benchmaster_operation_latency_seconds",
                    kind: Kind::Histogram,
                    unit: "seconds",
                    help: "Latencies of the operations of all runs of a treatment that count, warm-up left out; with a given \
                           rate from the intended start. Counts at the bounds are exact to 1 % of the bound.",
                },
                false,
            ),
            (
                Family {
                    name: "benchmaster_operation_service_seconds",
                    kind: Kind::Histogram,
                    unit: "seconds",
                    help: "The same from the actual start, for operations with a given rate. The sum is not known.",
                },
                true,
            ),
        ];
        for (family, service) in families {
            let of_kind = |latency: &&LatencySummary| (latency.kind == LatencyKind::Service) == service;
            if !self.analysis.treatments.iter().any(|t| t.latencies.iter().any(|l| of_kind(&l))) {
                continue;
            }
            self.out.begin(&family)?;
            for treatment in &self.analysis.treatments {
                for latency in treatment.latencies.iter().filter(of_kind) {
                    self.histogram(treatment, latency)?;
                }
            }
        }
        Ok(())
    }

    fn histogram(&mut self, treatment: &TreatmentSummary, latency: &LatencySummary) -> io::Result<()> {
        let time = self.last_of(treatment);
        let labels = self
            .of_treatment(treatment.index)
            .with("workload", &latency.workload)
            .with("group", &latency.series.group)
            .with("series", &latency.series.label)
            .with("operation", latency.series.operation.name());
        let histogram = &latency.histogram;
        for bound in BOUNDS {
            let count = histogram.count_between(0, bound);
            let le = writer::number(seconds(bound as f64));
            self.out.sample("_bucket", &labels.clone().with("le", &le), count as f64, time)?;
        }
        let count = histogram.len() as f64;
        self.out.sample("_bucket", &labels.clone().with("le", "+Inf"), count, time)?;
        // A count stands where a sum does, and only there.
        let Some(mean) = latency.mean_ns else { return Ok(()) };
        self.out.sample("_count", &labels, count, time)?;
        self.out.sample("_sum", &labels, seconds(mean * latency.count as f64), time)
    }

    fn operations(&mut self) -> io::Result<()> {
        let counters: [Count; 3] = [
            (
                Family {
                    name: "benchmaster_operations",
                    kind: Kind::Counter,
                    unit: "",
                    help: "Operations of the measured phase of a run that succeeded.",
                },
                |series| series.total.count as f64,
            ),
            (
                Family {
                    name: "benchmaster_operation_errors",
                    kind: Kind::Counter,
                    unit: "",
                    help: "Operations that failed.",
                },
                |series| series.total.errors as f64,
            ),
            (
                Family {
                    name: "benchmaster_operation_bytes",
                    kind: Kind::Counter,
                    unit: "bytes",
                    help: "Bytes that operations moved.",
                },
                |series| series.total.bytes as f64,
            ),
        ];
        for (family, count) in counters {
            self.out.begin(&family)?;
            for (run, recording) in recordings(self.results) {
                for series in &recording.series {
                    let labels = self
                        .of_run(run)
                        .with("workload", &recording.workload)
                        .with("group", &series.key.group)
                        .with("series", &series.key.label)
                        .with("operation", series.key.operation.name());
                    self.out.sample("_total", &labels, count(series), Some(ended(run)))?;
                }
            }
        }
        Ok(())
    }

    fn rpcs(&mut self) -> io::Result<()> {
        let family = |name, unit, help| Family { name, kind: Kind::Counter, unit, help };
        let counters: [Calls; 8] = [
            (
                family(
                    "benchmaster_rpc_calls",
                    "",
                    "Calls of the measured phase of a run, of all clients together.",
                ),
                |row| row.ops as f64,
            ),
            (
                family(
                    "benchmaster_rpc_transmissions",
                    "",
                    "Times that requests were sent; more than calls when some were sent again.",
                ),
                |row| row.transmissions as f64,
            ),
            (family("benchmaster_rpc_errors", "", "Calls that failed."), |row| row.errors as f64),
            (family("benchmaster_rpc_sent_bytes", "bytes", "Bytes of requests."), |row| {
                row.bytes_sent as f64
            }),
            (family("benchmaster_rpc_received_bytes", "bytes", "Bytes of replies."), |row| {
                row.bytes_received as f64
            }),
            (
                family(
                    "benchmaster_rpc_queue_seconds",
                    "seconds",
                    "Time from the wish to call until the request was sent, over all calls.",
                ),
                |row| seconds(row.queue_ns as f64),
            ),
            (
                family(
                    "benchmaster_rpc_round_trip_seconds",
                    "seconds",
                    "Time from the request to its reply, over all calls.",
                ),
                |row| seconds(row.rtt_ns as f64),
            ),
            (
                family(
                    "benchmaster_rpc_execute_seconds",
                    "seconds",
                    "Time from the wish to call to the reply, over all calls.",
                ),
                |row| seconds(row.execute_ns as f64),
            ),
        ];
        fn measured(recording: &Recording) -> &[RpcRow] {
            let phase = recording.rpc.as_ref().and_then(|rpc| rpc.phase(Phase::Measure));
            phase.map_or(&[], |phase| &phase.rows)
        }
        if !recordings(self.results).any(|(_, recording)| !measured(recording).is_empty()) {
            return Ok(());
        }
        for (family, count) in counters {
            self.out.begin(&family)?;
            for (run, recording) in recordings(self.results) {
                for row in measured(recording) {
                    let labels = self
                        .of_run(run)
                        .with("workload", &recording.workload)
                        .with("program", &row.program)
                        .with("operation", &row.operation);
                    self.out.sample("_total", &labels, count(row), Some(ended(run)))?;
                }
            }
        }
        Ok(())
    }

    fn checks(&mut self) -> io::Result<()> {
        if self.analysis.warnings.is_empty() {
            return Ok(());
        }
        self.out.begin(&Family {
            name: "benchmaster_check_runs",
            kind: Kind::Gauge,
            unit: "",
            help: "Runs that did not pass a check of validity.",
        })?;
        for warning in &self.analysis.warnings {
            let labels = self
                .labels()
                .with("check", &warning.id)
                .with("severity", severity_name(warning.severity))
                .with("workload", warning.workload.as_deref().unwrap_or_default());
            self.out.sample("", &labels, warning.runs.len() as f64, self.last())?;
        }
        Ok(())
    }

    fn findings(&mut self, diagnosis: &Diagnosis) -> io::Result<()> {
        if diagnosis.findings.is_empty() {
            return Ok(());
        }
        let families = [
            Family {
                name: "benchmaster_finding_runs",
                kind: Kind::Gauge,
                unit: "",
                help: "Runs in which a condition was found.",
            },
            Family {
                name: "benchmaster_finding_cost_ratio",
                kind: Kind::Gauge,
                unit: "ratio",
                help: "What it costs, as a share from 0 to 1 of what the label `of` says.",
            },
        ];
        for (family, is_cost) in families.into_iter().zip([false, true]) {
            if is_cost && diagnosis.findings.iter().all(|finding| finding.cost.is_none()) {
                continue;
            }
            self.out.begin(&family)?;
            let mut seen: Vec<Labels> = Vec::new();
            for finding in &diagnosis.findings {
                let at = finding.at.as_ref();
                let runs: usize = at.map_or(0, |at| at.treatments.iter().map(|t| t.runs.len()).sum());
                let mut labels = self
                    .labels()
                    .with("finding", finding.id)
                    .with("confidence", finding.confidence.word())
                    .with("workload", at.and_then(|at| at.workload.as_deref()).unwrap_or_default());
                let mut value = runs as f64;
                if is_cost {
                    let Some(cost) = &finding.cost else { continue };
                    labels = labels.with("of", cost.of.words());
                    value = cost.share;
                }
                // The dearest comes first, and a series stands once.
                if !seen.contains(&labels) {
                    self.out.sample("", &labels, value, self.last())?;
                    seen.push(labels);
                }
            }
        }
        Ok(())
    }

    fn labels(&self) -> Labels {
        Labels::default().with("study", &self.results.study.name)
    }

    fn of_treatment(&self, index: u32) -> Labels {
        let study = &self.results.study;
        let treatment: Option<&TreatmentRecord> = study.treatments.iter().find(|t| t.index == index);
        let mut labels = self.labels().with("treatment", treatment.map_or("", |t| &t.label));
        let levels = treatment.map_or(&[][..], |treatment| &treatment.levels);
        for ((factor, name), level) in study.factors.iter().zip(&self.names).zip(levels) {
            labels = labels.with(name, factor.levels.get(*level as usize).map_or("", String::as_str));
        }
        labels
    }

    fn of_run(&self, run: &RunRecord) -> Labels {
        self.of_treatment(run.key.treatment).with("replicate", &(run.key.replicate + 1).to_string())
    }

    /// A response's workload and the rest of its name.
    fn of_response(&self, labels: Labels, name: &str) -> Labels {
        let workloads = self.results.study.workloads.iter().map(|workload| workload.name.as_str());
        let of = |workload: &&str| name.strip_prefix(workload).is_some_and(|rest| rest.starts_with('.'));
        let workload = workloads.filter(of).max_by_key(|workload| workload.len()).unwrap_or_default();
        labels.with("workload", workload).with("response", crate::overview::short_name(name, workload))
    }

    /// The end of the last run; `None` without runs.
    fn last(&self) -> Option<Timestamp> {
        self.results.runs.iter().map(ended).max()
    }

    fn last_of(&self, treatment: &TreatmentSummary) -> Option<Timestamp> {
        let runs = self.results.runs.iter().filter(|run| run.key.treatment == treatment.index);
        runs.map(ended).max()
    }
}

fn recordings(results: &StudyResults) -> impl Iterator<Item = (&RunRecord, &Recording)> {
    results.runs.iter().flat_map(|run| run.recordings.iter().map(move |recording| (run, recording)))
}

/// Nanoseconds as seconds.
fn seconds(ns: f64) -> f64 {
    ns / 1e9
}

/// When a run ended.
fn ended(run: &RunRecord) -> Timestamp {
    let elapsed = jiff::SignedDuration::from_nanos(i64::try_from(run.elapsed_ns).unwrap_or(i64::MAX));
    run.started.saturating_add(elapsed).unwrap_or(run.started)
}

/// The families of responses of a unit: of runs, means, half widths.
fn families(unit: Unit) -> [Family; 3] {
    let (names, unit) = match unit {
        Unit::BytesPerSecond => (
            [
                "benchmaster_response_bytes_per_second",
                "benchmaster_response_mean_bytes_per_second",
                "benchmaster_response_half_width_bytes_per_second",
            ],
            "bytes_per_second",
        ),
        Unit::OperationsPerSecond => (
            [
                "benchmaster_response_operations_per_second",
                "benchmaster_response_mean_operations_per_second",
                "benchmaster_response_half_width_operations_per_second",
            ],
            "operations_per_second",
        ),
        Unit::Nanoseconds => (
            [
                "benchmaster_response_seconds",
                "benchmaster_response_mean_seconds",
                "benchmaster_response_half_width_seconds",
            ],
            "seconds",
        ),
        Unit::Ratio => (
            [
                "benchmaster_response_ratio",
                "benchmaster_response_mean_ratio",
                "benchmaster_response_half_width_ratio",
            ],
            "ratio",
        ),
        Unit::Count => {
            (["benchmaster_response", "benchmaster_response_mean", "benchmaster_response_half_width"], "")
        }
    };
    let helps = [
        "A response of a run that counts.",
        "Mean of a response over the runs of a treatment that count.",
        "Half width of the Student-t interval of that mean, at the study's level of confidence.",
    ];
    let family = |at: usize| Family { name: names[at], kind: Kind::Gauge, unit, help: helps[at] };
    [family(0), family(1), family(2)]
}

#[cfg(test)]
mod tests;
