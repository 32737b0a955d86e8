//! One workload of one run, with everything that is known of it.

use benchmaster_record::phase::Phase;
use benchmaster_record::results::ServedBy;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use benchmaster_record::environment::Environment;
use benchmaster_record::model::{OperationKind, Workload};
use benchmaster_record::recording::{
    HostSamples, Recording, RpcPhase, RpcRecording, RpcRow, SeriesRecording, TraceRecord,
};
use benchmaster_record::results::{
    BaselineRecord, LabRecord, NetworkRecord, RunRecord, ServerUse, StudyRecord, StudyResults,
    TreatmentRecord,
};
use benchmaster_record::samples::Series;
use benchmaster_telemetry::derived::{Derived, derive, growth, mean};

use crate::details::Details;
use crate::mountstats::observed::Observed;

/// One workload of one run.
pub struct Measured<'a> {
    /// All that was stored; of runs without their samples.
    pub results: &'a StudyResults,
    /// The run, with its samples.
    pub run: &'a RunRecord,
    /// What was recorded of the workload.
    pub recording: &'a Recording,
    /// What was to be done; `None` when the run does not say.
    pub workload: Option<&'a Workload>,
    details: &'a dyn Details,
    /// What `conditions::observed` made of the samples: several detectors need it.
    pub(crate) mounts: OnceCell<Vec<Observed>>,
}

impl std::fmt::Debug for Measured<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {:?}", self.recording.workload, self.run.key)
    }
}

impl<'a> Measured<'a> {
    /// One workload of one run of a study.
    pub fn new(
        results: &'a StudyResults,
        run: &'a RunRecord,
        recording: &'a Recording,
        details: &'a dyn Details,
    ) -> Self {
        Self {
            results,
            run,
            recording,
            workload: run.parameters.workload(&recording.workload),
            details,
            mounts: OnceCell::new(),
        }
    }

    /// The same workload in another run, without what is known of its samples.
    pub fn in_run(&self, run: &'a RunRecord) -> Option<Self> {
        let recording = run.recordings.iter().find(|other| other.workload == self.recording.workload)?;
        Some(Self {
            run,
            recording,
            workload: run.parameters.workload(&recording.workload),
            mounts: OnceCell::new(),
            ..*self
        })
    }

    /// The study.
    pub fn study(&self) -> &'a StudyRecord {
        &self.results.study
    }

    /// The treatment of the run.
    pub fn treatment(&self) -> Option<&'a TreatmentRecord> {
        self.results.study.treatments.get(self.run.key.treatment as usize)
    }

    /// The hosts of the run's session.
    pub fn environments(&self) -> Option<&'a BTreeMap<String, Environment>> {
        let session = self.results.sessions.iter().find(|session| session.id == self.run.session);
        session.map(|session| &session.environment)
    }

    /// What the network of the run is capable of without NFS, as measured in its session.
    pub fn baselines(&self) -> impl Iterator<Item = &'a BaselineRecord> {
        let (session, network) = (self.run.session, self.network());
        self.results
            .baselines
            .iter()
            .filter(move |baseline| baseline.session == session && network == Some(&baseline.network))
    }

    /// What lay between the clients and the server.
    pub fn network(&self) -> Option<&'a NetworkRecord> {
        self.run.service.as_ref().map(|service| &service.network)
    }

    /// What the server did meanwhile, where it says so.
    pub fn server(&self) -> Option<&'a ServerUse> {
        self.run.server_use.iter().find(|used| used.workload == self.recording.workload)
    }

    /// The RPCs of the measured phase, where they were counted.
    pub fn rpcs(&self) -> Option<(&'a RpcRecording, &'a RpcPhase)> {
        let rpc = self.recording.rpc.as_ref()?;
        Some((rpc, rpc.phase(Phase::Measure)?))
    }

    /// All calls of the measured phase together, where they were counted.
    pub fn calls(&self) -> Option<RpcRow> {
        Some(self.rpcs()?.1.total())
    }

    /// One kind of RPC of the measured phase, if it was made.
    pub fn rpc(&self, operation: &str) -> Option<&'a RpcRow> {
        let rows = self.rpcs()?.1.rows.iter();
        rows.into_iter().find(|row| row.operation == operation && row.ops > 0)
    }

    /// Length of the measured phase in seconds.
    pub fn seconds(&self) -> f64 {
        self.recording.length_ns as f64 / 1e9
    }

    /// Series of operations of one kind.
    pub fn of_kind(&self, kind: OperationKind) -> impl Iterator<Item = &'a SeriesRecording> {
        self.recording.series.iter().filter(move |series| series.key.operation == kind)
    }

    /// The kind of operation that took most of the time.
    pub(crate) fn longest(&self) -> Option<&'a SeriesRecording> {
        self.recording.series.iter().max_by_key(|series| series.total.sum_ns)
    }

    /// What half of the operations of that kind take at most, in nanoseconds.
    pub(crate) fn usual_ns(&self) -> Option<u64> {
        Some(self.longest()?.total.latency.decode().ok()?.value_at_quantile(0.5))
    }

    /// Operations that succeeded, of all series.
    pub fn operations(&self) -> u64 {
        self.recording.series.iter().map(|series| series.total.count).sum()
    }

    /// Nanoseconds that operations took, summed over all of them.
    pub fn operation_ns(&self) -> u64 {
        self.recording.series.iter().map(|series| series.total.sum_ns).sum()
    }

    /// Bytes that operations of one kind moved.
    pub fn bytes(&self, kind: OperationKind) -> u64 {
        self.of_kind(kind).map(|series| series.total.bytes).sum()
    }

    /// Samples of the hosts of clients: of all but a server's of its own.
    pub fn clients(&self) -> impl Iterator<Item = &'a HostSamples> {
        self.recording.samples.iter().filter(|host| self.recording.is_of_clients(host))
    }

    /// Samples of the server's host, where somebody was there and it is none of the clients'.
    pub fn server_host(&self) -> Option<&'a HostSamples> {
        self.recording.samples.iter().find(|host| !self.recording.is_of_clients(host))
    }

    /// What follows from the samples of a host over the measured phase; names as in the metrics' documentation.
    pub fn derived(&self, host: &HostSamples) -> BTreeMap<String, Derived> {
        derive(&host.samples, 0, self.length())
    }

    /// By how much a counter grew over the measured phase.
    pub fn growth(&self, series: &Series) -> Option<f64> {
        growth(&series.points, 0, self.length())
    }

    /// By how much a metric of a host grew over the measured phase, all its instances together.
    pub fn host_growth(&self, host: &HostSamples, sampler: &str, metric: &str) -> Option<f64> {
        let series = host.samples.of(sampler, metric);
        series.filter_map(|series| self.growth(series)).reduce(|a, b| a + b)
    }

    /// The same of all hosts with clients.
    pub fn clients_growth(&self, sampler: &str, metric: &str) -> Option<f64> {
        self.clients().filter_map(|host| self.host_growth(host, sampler, metric)).reduce(|a, b| a + b)
    }

    /// The mean of a gauge over the measured phase.
    pub fn mean_of(&self, series: &Series) -> Option<f64> {
        mean(&series.points, 0, self.length())
    }

    /// Whether the embedded server served, on the host of the study.
    pub fn is_embedded(&self) -> bool {
        self.run.service.as_ref().is_some_and(|service| service.server == ServedBy::Embedded)
    }

    /// Whether the server is one with a model of a disk, which is sampled like a disk.
    pub fn has_modelled_disk(&self) -> bool {
        self.server_host().is_some_and(|host| host.samples.of("diskstats", "busy_time").next().is_some())
    }

    /// Whether the target was reached by NFS.
    pub fn is_nfs(&self) -> bool {
        let mounted = |environment: &Environment| {
            environment.target.as_ref().is_some_and(|target| target.file_system.starts_with("nfs"))
        };
        self.run.service.is_some()
            || self.recording.rpc.is_some()
            || self.environments().is_some_and(|hosts| hosts.values().any(mounted))
    }

    /// Whether rates mean nothing: the clock moved only when all machines of a lab waited.
    pub fn is_virtual(&self) -> bool {
        self.run.lab.as_ref().is_some_and(LabRecord::is_virtual)
    }

    /// The shortest round trip between clients and server without NFS, in nanoseconds: that of the emulation, or else the least
    /// of what was measured before the run and of the connections that were sampled.
    pub fn round_trip_ns(&self) -> Option<f64> {
        if let Some(network) = self.network().filter(|network| network.delay_ns > 0) {
            return Some((2 * network.delay_ns + network.base_rtt_ns.unwrap_or(0)) as f64);
        }
        let measured = self.baselines().filter_map(|baseline| Some(baseline.round_trip?.min_ns as f64));
        let series = self.clients().flat_map(|host| host.samples.of("tcp_info", "min_rtt"));
        measured.chain(series.filter_map(|series| self.mean_of(series))).min_by(f64::total_cmp)
    }

    /// The host on which an agent ran; that of the study where there are no agents.
    pub fn environment_of(&self, agent: &str) -> Option<&'a Environment> {
        let hosts = self.environments()?;
        let host = self.recording.agents.iter().find(|one| one.name == agent).map(|one| &one.host);
        host.and_then(|host| hosts.get(host)).or_else(|| hosts.values().next().filter(|_| hosts.len() == 1))
    }

    /// What would let the server's host be looked at, in words.
    pub fn without_server(&self) -> String {
        "nothing is known of the server's host: name it in `[server] host` and keep `[sampling]` on, or use a lab".into()
    }

    fn length(&self) -> i64 {
        i64::try_from(self.recording.length_ns).unwrap_or(i64::MAX)
    }

    /// Hands the trace of the workload to `take`, batch by batch. `None` when there is none.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn trace(&self, take: &mut dyn FnMut(&[TraceRecord])) -> Option<Result<(), String>> {
        self.details.trace(self.run, &self.recording.workload, take)
    }
}
