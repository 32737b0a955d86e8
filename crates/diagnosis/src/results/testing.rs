//! For tests of detectors: made-up results, changed, and looked at.

use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{HostSamples, Recording, RpcRow, TraceRecord};
use benchmaster_record::results::{Check, CheckKind, Evidence, RunRecord, Severity, StudyResults};
use benchmaster_record::samples::{Kind, MetricKey, Point, Series};
use benchmaster_testkit::{serve, spread, study_results};

use crate::details::Details;
use crate::diagnosis::Verdict;
use crate::finding::Finding;
use crate::measured::Measured;
use crate::results::phenomena::made::with_parameters;
use crate::results::rule::Judge;

/// Results of a run, of which the first workload is looked at.
pub(crate) struct Made {
    pub(crate) results: StudyResults,
    /// Which of the run's recordings.
    pub(crate) which: usize,
}

/// No traces, and nothing more than the results have.
pub(crate) struct NoDetails;

impl Details for NoDetails {
    fn trace(&self, _: &RunRecord, _: &str, _: &mut dyn FnMut(&[TraceRecord])) -> Option<Result<(), String>> {
        None
    }
}

impl Made {
    /// One healthy run on a directory: `write` (4 workers, closed loop) and `read` (open loop), without samples.
    pub(crate) fn new() -> Self {
        let mut results = study_results(1, 1, 1);
        results.runs.iter_mut().for_each(|run| run.checks.clear());
        let hosts = results.sessions.iter_mut().flat_map(|session| session.environment.values_mut());
        for target in hosts.filter_map(|host| host.target.as_mut()) {
            (target.file_system, target.source) = ("ext4".into(), "/dev/vdb1".into());
        }
        Self { results, which: 0 }
    }

    /// The same over NFS, with a delay of 1 ms each way, and its calls counted.
    pub(crate) fn served() -> Self {
        let mut made = Self::new();
        serve(&mut made.results);
        made
    }

    /// The same by four clients on two hosts and a server's, with samples of all, and a measured baseline.
    pub(crate) fn spread() -> Self {
        let mut made = Self::served();
        spread(&mut made.results);
        made
    }

    /// Of which the other workload is looked at.
    pub(crate) fn reading(self) -> Self {
        Self { which: 1, ..self }
    }

    /// Workers that spent this part of their time in operations of 1 ms.
    pub(crate) fn working(mut self, part: f64) -> Self {
        let recording = self.recording();
        let time: u64 = recording.workers.iter().map(|worker| worker.end_ns - worker.start_ns).sum();
        let count = (time as f64 * part / 1e6) as u64;
        recording.series.truncate(1);
        (recording.series[0].total.count, recording.series[0].total.sum_ns) = (count, count * 1_000_000);
        self
    }

    pub(crate) fn run(&mut self) -> &mut RunRecord {
        &mut self.results.runs[0]
    }

    /// What was recorded of the workload that is looked at.
    pub(crate) fn recording(&mut self) -> &mut Recording {
        &mut self.results.runs[0].recordings[self.which]
    }

    /// The calls of its measured phase.
    pub(crate) fn rows(&mut self) -> &mut Vec<RpcRow> {
        let phases = &mut self.recording().rpc.as_mut().unwrap().phases;
        &mut phases.iter_mut().find(|phase| phase.phase == Phase::Measure).unwrap().rows
    }

    /// Adds a counter of an agent's host that grows by so much over the measured phase.
    pub(crate) fn sample(&mut self, agent: &str, sampler: &str, metric: &str, instance: &str, growth: f64) {
        self.add_series(agent, [sampler, metric, instance], Kind::Counter, [1000.0, 1000.0 + growth]);
    }

    /// Adds a gauge that stays at a value.
    pub(crate) fn gauge(&mut self, agent: &str, sampler: &str, metric: &str, instance: &str, value: f64) {
        self.add_series(agent, [sampler, metric, instance], Kind::Gauge, [value, value]);
    }

    fn add_series(
        &mut self,
        agent: &str,
        [sampler, metric, instance]: [&str; 3],
        kind: Kind,
        values: [f64; 2],
    ) {
        let recording = self.recording();
        let times = [0, recording.length_ns as i64];
        let series = Series {
            key: MetricKey { sampler: sampler.into(), metric: metric.into(), instance: instance.into() },
            kind,
            unit: "1".into(),
            points: times.into_iter().zip(values).map(|(time_ns, value)| Point { time_ns, value }).collect(),
        };
        if recording.samples.iter().all(|host| host.agent != agent) {
            recording.samples.push(HostSamples { agent: agent.into(), ..HostSamples::default() });
        }
        let host = recording.samples.iter_mut().find(|host| host.agent == agent).unwrap();
        host.samples.series.retain(|other| other.key != series.key);
        host.samples.series.push(series);
    }

    /// Adds a check that did not pass.
    pub(crate) fn checked(&mut self, kind: CheckKind, workload: &str, evidence: &[(&str, f64)]) {
        self.run().checks.push(Check {
            kind,
            severity: Severity::Warning,
            workload: Some(workload.into()),
            message: format!("{kind} did not pass."),
            evidence: evidence.iter().map(|(name, value)| Evidence::number(*name, *value)).collect(),
        });
    }

    /// The verdict of a detector or of the rule of a check.
    pub(crate) fn verdict(&self, judge: &impl Judge) -> Verdict {
        let results = with_parameters(&self.results);
        let run = &results.runs[0];
        let recording = &run.recordings[self.which];
        judge.judge(&Measured::new(&results, run, recording, &NoDetails))
    }

    /// What it finds.
    pub(crate) fn found(&self, judge: &impl Judge) -> Finding {
        match self.verdict(judge) {
            Verdict::Found(finding) => finding,
            other => panic!("not found: {other:?}"),
        }
    }
}
