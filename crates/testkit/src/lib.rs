//! A synthetic study with realistic numbers, the same for the same seed, for tests and examples of what reads results.

use benchmaster_record::results::Emulator;
use benchmaster_record::results::ServedBy;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use benchmaster_record::environment::Environment;
use benchmaster_record::environment::TargetEnvironment;
use benchmaster_record::model::{OperationKind, Workload};
use benchmaster_record::recording::{Recording, SeriesRecording, TraceRecord};
use jiff::{SignedDuration, Timestamp};

use benchmaster_record::results::{
    Check, CheckKind, DesignRecord, Event, Evidence, FactorRecord, NetworkRecord, Replication, Response,
    RunKey, RunParameters, RunRecord, ServiceRecord, SessionEnd, SessionRecord, Severity, StudyRecord,
    StudyResults, TreatmentRecord, Unit, WorkloadRecord, numeric_values,
};
use benchmaster_store::Store;

mod fleet;
mod lab;
mod recordings;

pub use self::fleet::spread;
pub use self::lab::in_lab;
use self::recordings::{Serial, Shape, recording};

const SECOND_NS: u64 = 1_000_000_000;
const WORKERS: u32 = 4;
/// 2026-03-02T09:00:00Z.
const STARTED_UNIX: i64 = 1_772_442_000;

/// A finished study of `treatments` × `replicates` runs that was killed once and resumed.
///
/// An even number of treatments from 4 varies `io_size` and `sync`, any other from 2 `io_size` alone, and a single one
/// nothing. Each run has the workloads `write` (write, fsync, close; closed loop) and `read` (open, read; open loop).
/// One run has a warning; in a study of more than two runs another has an invalid check. No run has traces.
pub fn study_results(seed: u64, treatments: u32, replicates: u32) -> StudyResults {
    let treatments = treatments.max(1);
    let mut random = Random(seed);
    let study = study_record(seed, treatments, replicates);
    let keys = execution_order(&mut random, treatments, replicates);
    let before_kill = keys.len() / 2;
    let mut clock = STARTED_UNIX + 5;
    let mut runs = Vec::new();
    for (position, &key) in (0u32..).zip(&keys) {
        let session = if (position as usize) < before_kill { 1 } else { 2 };
        if position as usize == before_kill {
            clock += 600;
        }
        runs.push(run(&mut random, &study, key, position, session, clock));
        clock += 50;
    }
    add_checks(&mut runs);
    let lost = keys.get(before_kill).copied();
    let second = STARTED_UNIX + before_kill as i64 * 50 + 600;
    let sessions = vec![
        session(1, STARTED_UNIX, None, lost),
        session(2, second, Some((timestamp(clock), SessionEnd::Complete)), None),
    ];
    StudyResults { study, runs, sessions, hooks: vec![], baselines: vec![] }
}

/// Writes results to a new directory, session by session, as the runner would have.
///
/// # Errors
/// When the store refuses something.
pub fn write(directory: &Path, results: &StudyResults) -> Result<(), Box<dyn Error>> {
    let mut store = Store::create(directory, &results.study)?;
    for session in &results.sessions {
        store.begin_session(&session.command, session.started, &session.environment)?;
        for baseline in results.baselines.iter().filter(|baseline| baseline.session == session.id) {
            store.add_baseline(baseline)?;
        }
        for hook in results.hooks.iter().filter(|hook| hook.session == session.id) {
            store.add_hook(hook)?;
        }
        for run in results.runs.iter().filter(|run| run.session == session.id) {
            store.begin_run(session.id, run.key, run.position)?;
            store.commit_run(run)?;
        }
        if let Some(lost) = session.lost_run {
            store.begin_run(session.id, lost, results.runs.len() as u32)?;
        }
        if let Some((ended, outcome)) = session.ended {
            store.end_session(session.id, ended, outcome)?;
        }
    }
    Ok(())
}

/// Makes `run` one that failed in its second workload.
pub fn fail(run: &mut RunRecord, reason: &str) {
    run.failure = Some(reason.to_owned());
    run.recordings.truncate(1);
    run.responses.clear();
    run.checks.clear();
}

/// A trace of `count` sequential writes of 64 KiB by four workers, with a few errors and calls without an offset.
pub fn trace_records(seed: u64, count: usize) -> Vec<TraceRecord> {
    let mut random = Random(seed ^ 0x7ace);
    let mut start_ns = 0;
    let mut records = Vec::with_capacity(count);
    for i in 0..count as u64 {
        start_ns += 400 + random.bits() % 900;
        let fsync = i % 64 == 63;
        let error = if random.bits().is_multiple_of(10_000) { 28 } else { 0 };
        let median = if fsync { 900_000.0 } else { 3_000.0 };
        records.push(TraceRecord {
            start_ns,
            latency_ns: (median * random.spread(0.4)) as u64,
            offset: if fsync { u64::MAX } else { i / u64::from(WORKERS) * 65_536 },
            bytes: if fsync || error != 0 { 0 } else { 65_536 },
            worker: (i % u64::from(WORKERS)) as u32,
            file: (i % u64::from(WORKERS)) as u32,
            series: u16::from(fsync),
            error,
            fileset: 0,
        });
    }
    records
}

/// Results as [`Store::load`] returns them: without the points of samples and the outputs of attached commands.
pub fn as_loaded(results: &StudyResults) -> StudyResults {
    let mut results = results.clone();
    for recording in results.runs.iter_mut().flat_map(|run| &mut run.recordings) {
        recording.samples.iter_mut().for_each(|host| host.samples.series.clear());
        recording.collected.iter_mut().for_each(|collected| collected.output.clear());
    }
    results
}

/// Changes up to `most` places of a file, as damage and malice do: bytes replaced, removed, and repeated elsewhere.
pub fn damage(bytes: &mut Vec<u8>, most: u64, random: &mut Random) {
    for _ in 0..=random.bits() % most.max(1) {
        let mut place = || (random.bits() % (bytes.len() as u64 + 1)) as usize;
        let (at, from) = (place(), place());
        let length = ((random.bits() % 16) as usize).min(bytes.len() - from);
        match random.bits() % 5 {
            0 => bytes.truncate(at.max(1)),
            1 => drop(bytes.drain(from..from + length)),
            2 => drop(bytes.splice(at..at, bytes[from..from + length].to_vec())),
            3 => bytes[from..from + length].fill(random.of(&[0, b'0', b'9', 0x7f, 0x80, 0xff])),
            _ => bytes[from..from + length].iter_mut().for_each(|byte| *byte ^= 1 << (random.bits() % 8)),
        }
    }
}

/// SplitMix64: enough for made-up numbers, without a dependency.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Between both, evenly on logarithms.
    pub fn log(&mut self, from: f64, to: f64) -> f64 {
        from * (to / from).powf(self.unit())
    }

    /// One of these, which are not none.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.bits() % all.len() as u64) as usize]
    }

    /// Exponential with this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// A factor around 1: lognormal with this standard deviation of the logarithm.
    fn spread(&mut self, sigma: f64) -> f64 {
        let normal = (0..12).map(|_| self.unit()).sum::<f64>() - 6.0;
        (sigma * normal).exp()
    }
}

fn timestamp(unix_seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH
        .saturating_add(SignedDuration::new(unix_seconds, 123_456_789))
        .unwrap_or(Timestamp::MAX)
}

fn study_record(seed: u64, treatments: u32, replicates: u32) -> StudyRecord {
    let two = treatments >= 4 && treatments.is_multiple_of(2);
    let sizes = if two { treatments / 2 } else { treatments };
    let mut factors = Vec::new();
    if treatments > 1 {
        let sizes: Vec<String> = (0..sizes).map(|i| size_name(io_size(i, sizes))).collect();
        let size = |size: &String| setting("workload.write.io_size", &format!("\"{size}\""));
        let settings: Vec<_> = sizes.iter().map(size).collect();
        let values = numeric_values(&settings);
        factors.push(FactorRecord { name: "io_size".into(), levels: sizes, settings, values });
    }
    if two {
        factors.push(FactorRecord {
            name: "sync".into(),
            levels: vec!["off".into(), "on".into()],
            settings: vec![
                setting("workload.write.sync", "\"none\""),
                setting("workload.write.sync", "\"o_sync\""),
            ],
            values: None,
        });
    }
    let treatments: Vec<_> = (0..treatments)
        .map(|index| {
            let levels: Vec<u32> = match factors.len() {
                0 => vec![],
                1 => vec![index],
                _ => vec![index % sizes, index / sizes],
            };
            let named: Vec<_> = factors
                .iter()
                .zip(&levels)
                .map(|(f, &l)| format!("{}={}", f.name, f.levels[l as usize]))
                .collect();
            let label = if named.is_empty() { "synthetic".into() } else { named.join(" ") };
            TreatmentRecord { index, levels, label, block: None, whole_plot: None, stage: 0, centre: false }
        })
        .collect();
    StudyRecord {
        name: "synthetic".into(),
        description: Some("Made-up numbers in the shape of a write and read study.".into()),
        text: study_text(seed, replicates, &factors),
        id: format!("{:016x}", Random(seed ^ 0x1d).bits()),
        seed,
        generator: "ChaCha8".into(),
        design: "full".into(),
        design_details: DesignRecord::default(),
        order: "random".into(),
        replicates: Replication::Fixed(replicates),
        confidence: 0.95,
        primary_response: "write.throughput".into(),
        factors,
        treatments,
        stages: Vec::new(),
        workloads: vec![
            WorkloadRecord { name: "write".into(), use_name: "sequential-write".into() },
            WorkloadRecord { name: "read".into(), use_name: "random-read".into() },
        ],
        version: env!("CARGO_PKG_VERSION").into(),
    }
}

fn study_text(seed: u64, replicates: u32, factors: &[FactorRecord]) -> String {
    let mut text =
        format!("[study]\nname = \"synthetic\"\nseed = {seed}\n\n[target]\npath = \"/mnt/data\"\n");
    for factor in factors {
        text += &format!("\n[factors.{}]\nlevels = {{", factor.name);
        for (i, (level, settings)) in factor.levels.iter().zip(&factor.settings).enumerate() {
            let sets: Vec<_> = settings.iter().map(|(k, v)| format!("\"{k}\" = {v}")).collect();
            text += &format!("{} \"{level}\" = {{ {} }}", if i > 0 { "," } else { "" }, sets.join(", "));
        }
        text += " }\n";
    }
    text += &format!("\n[design]\nkind = \"full\"\nreplicates = {replicates}\n");
    text += "\n[workload.write]\nuse = \"sequential-write\"\nworkers = 4\nduration = \"20s\"\n";
    text += "\n[workload.read]\nuse = \"random-read\"\nworkers = 4\nrate = \"20000/s\"\nduration = \"20s\"\n";
    text
}

/// The workloads of [`study_text`] in full.
fn workloads() -> Vec<(String, Workload)> {
    serde_json::from_str(include_str!("workloads.json")).unwrap_or_default()
}

fn setting(path: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(path.to_owned(), value.to_owned())])
}

/// 4 KiB, 64 KiB, 1 MiB; in steps of two when there are more levels.
fn io_size(level: u32, levels: u32) -> u64 {
    4096 << (level * if levels <= 3 { 4 } else { 1 }).min(40)
}

fn size_name(bytes: u64) -> String {
    benchmaster_units::ByteSize(bytes).to_string()
}

fn execution_order(random: &mut Random, treatments: u32, replicates: u32) -> Vec<RunKey> {
    let mut keys: Vec<_> = (0..replicates)
        .flat_map(|replicate| (0..treatments).map(move |treatment| RunKey { treatment, replicate }))
        .collect();
    for i in (1..keys.len()).rev() {
        keys.swap(i, (random.bits() % (i as u64 + 1)) as usize);
    }
    keys
}

fn run(
    random: &mut Random,
    study: &StudyRecord,
    key: RunKey,
    position: u32,
    session: u32,
    clock: i64,
) -> RunRecord {
    let levels = &study.treatments[key.treatment as usize].levels;
    let size_levels = study.factors.first().map_or(1, |f| f.levels.len() as u32);
    let size = io_size(levels.first().map_or(1, |&l| l), size_levels);
    let sync = levels.get(1) == Some(&1);
    let luck = random.spread(0.03);
    let copy_ns = size as f64 / 2.0; // 2 GB/s
    let write_ns = (18_000.0 + copy_ns + if sync { 350_000.0 } else { 0.0 }) * luck;
    let wall_ns = clock * SECOND_NS as i64 + 2_000_000_000;
    let write = recording(
        random,
        &Shape {
            workload: "write",
            wall_ns,
            cut: 2,
            series: &[
                Serial { operation: OperationKind::Write, latency_ns: write_ns, every: 1, bytes: size },
                Serial {
                    operation: OperationKind::Fsync,
                    latency_ns: 1_800_000.0 * luck,
                    every: 256,
                    bytes: 0,
                },
                Serial {
                    operation: OperationKind::Close,
                    latency_ns: 60_000.0 * luck,
                    every: 4096,
                    bytes: 0,
                },
            ],
            open_loop: false,
        },
    );
    let read = recording(
        random,
        &Shape {
            workload: "read",
            wall_ns: wall_ns + 24 * SECOND_NS as i64,
            cut: 0,
            series: &[
                Serial { operation: OperationKind::Open, latency_ns: 45_000.0 * luck, every: 1024, bytes: 0 },
                Serial {
                    operation: OperationKind::Read,
                    latency_ns: 110_000.0 * luck,
                    every: 1,
                    bytes: 4096,
                },
            ],
            open_loop: true,
        },
    );
    let recordings = vec![write, read];
    RunRecord {
        key,
        position,
        stage: 0,
        block: None,
        whole_plot: None,
        session,
        parameters: RunParameters { workloads: workloads(), ..RunParameters::default() },
        started: timestamp(clock),
        elapsed_ns: 48 * SECOND_NS + random.bits() % SECOND_NS,
        failure: None,
        responses: recordings.iter().flat_map(responses).collect(),
        recordings,
        checks: vec![],
        events: vec![
            Event { time: timestamp(clock), kind: "prepare".into(), text: "made 4 files of 1 GiB".into() },
            Event { time: timestamp(clock + 2), kind: "cache".into(), text: "dropped the page cache".into() },
        ],
        traces: BTreeMap::new(),
        service: None,
        lab: None,
        server_use: Vec::new(),
        retries: Vec::new(),
    }
}

/// Responses as a run has them: rates over what counts, latencies of each series.
fn responses(recording: &Recording) -> Vec<Response> {
    let first = recording.cut_ns / recording.interval_ns;
    let seconds = (recording.length_ns - recording.cut_ns) as f64 / 1e9;
    let counted = |s: &SeriesRecording| {
        let kept = s.intervals.iter().filter(|i| u64::from(i.index) >= first);
        kept.fold((0, 0), |(n, b), i| (n + i.stats.count, b + i.stats.bytes))
    };
    let (operations, bytes) =
        recording.series.iter().map(counted).fold((0, 0), |(n, b), (m, c)| (n + m, b + c));
    let mut all = vec![
        (format!("{}.throughput", recording.workload), bytes as f64 / seconds, Unit::BytesPerSecond),
        (
            format!("{}.operations", recording.workload),
            operations as f64 / seconds,
            Unit::OperationsPerSecond,
        ),
    ];
    for series in &recording.series {
        let name = |what: &str| format!("{}.{}.latency.{what}", recording.workload, series.key.label);
        let mean = series.total.sum_ns as f64 / series.total.count as f64;
        all.push((name("mean"), mean, Unit::Nanoseconds));
        if let Ok(histogram) = series.total.latency.decode() {
            for (what, quantile) in [("p50", 0.5), ("p99", 0.99)] {
                all.push((name(what), histogram.value_at_quantile(quantile) as f64, Unit::Nanoseconds));
            }
        }
    }
    all.into_iter().map(|(name, value, unit)| Response { name, value, unit }).collect()
}

fn add_checks(runs: &mut [RunRecord]) {
    if let Some(run) = runs.first_mut() {
        run.checks.push(Check {
            kind: CheckKind::CachedReads,
            severity: Severity::Warning,
            workload: Some("read".into()),
            message: "31 % of the data was in the page cache when reading began.".into(),
            evidence: vec![
                Evidence::bytes("cached_bytes", 1_331_439_862.0),
                Evidence::bytes("fileset_bytes", 4_294_967_296.0),
            ],
        });
        run.checks.push(Check {
            kind: CheckKind::TooFewOperations,
            severity: Severity::Note,
            workload: Some("write".into()),
            message: "Close was done 80 times only: its p99 is that of a few calls.".into(),
            evidence: vec![Evidence::number("count", 80.0)],
        });
    }
    if let [_, _, .., run] = runs {
        run.checks.push(Check {
            kind: CheckKind::Errors,
            severity: Severity::Invalid,
            workload: Some("write".into()),
            message: "3 operations failed (ENOSPC).".into(),
            evidence: vec![Evidence::number("errors", 3.0)],
        });
        run.events.push(Event {
            time: run.started,
            kind: "error".into(),
            text: "write: No space left on device".into(),
        });
        let recording = &mut run.recordings[0];
        recording.error_details = vec!["write data/0003 at 1073741824: ENOSPC".into()];
        let series = &mut recording.series[0];
        series.total.errors = 3;
        series.intervals[7].stats.errors = 3;
        series.errors.insert("ENOSPC".into(), 3);
        recording.workers[1].series[0].errors = 3;
    }
}

fn session(
    id: u32,
    started: i64,
    ended: Option<(Timestamp, SessionEnd)>,
    lost_run: Option<RunKey>,
) -> SessionRecord {
    SessionRecord {
        id,
        started: timestamp(started),
        ended,
        lost_run,
        command: "benchmaster run synthetic.toml -o results".into(),
        environment: BTreeMap::from([("client1".into(), environment(id))]),
    }
}

fn environment(session: u32) -> Environment {
    let text = |s: &str| Some(s.to_owned());
    Environment {
        host: "client1".into(),
        benchmaster: env!("CARGO_PKG_VERSION").into(),
        kernel: "Linux 6.12.9 #1 SMP x86_64".into(),
        distribution: text("Debian GNU/Linux 13 (trixie)"),
        cpu_model: text("AMD EPYC 7313P 16-Core Processor"),
        processors: 16,
        processors_allowed: 8,
        memory_total: Some(64 << 30),
        memory_available: Some((60 << 30) - (u64::from(session) << 20)),
        clock_source: text("tsc"),
        virtualization: None,
        governor: text("performance"),
        target: Some(TargetEnvironment {
            path: "/mnt/data".into(),
            mount_point: "/mnt/data".into(),
            source: "server1:/export".into(),
            file_system: "nfs4".into(),
            options: "rw,relatime vers=4.2,rsize=1048576,wsize=1048576,proto=tcp,hard".into(),
            mount_line: "88 30 0:52 / /mnt/data rw,relatime shared:1 - nfs4 server1:/export rw,vers=4.2"
                .into(),
            total_bytes: 1 << 40,
            free_bytes: 900 << 30,
            free_files: None,
            read_ahead_kib: Some(128),
        }),
        sysctls: BTreeMap::from([
            ("net.ipv4.tcp_rmem".into(), "4096\t131072\t6291456".into()),
            ("vm.dirty_ratio".into(), "20".into()),
        ]),
    }
}

/// Makes of results those of an NFS target behind an emulated delay, served by the embedded server: RPCs of set-up and
/// measurement, recoveries and the server's own counts.
pub fn serve(results: &mut StudyResults) {
    for run in &mut results.runs {
        run.service = Some(ServiceRecord {
            url: "nfs://{server}/export?version=4.1".into(),
            server: ServedBy::Embedded,
            network: NetworkRecord {
                emulator: Emulator::Relay,
                delay_ns: 1_000_000,
                note: "a TCP relay, right for the latency of requests only".into(),
                ..NetworkRecord::default()
            },
            achieved: None,
        });
        for recording in &mut run.recordings {
            let rpc = recordings::rpc(recording);
            run.server_use.push(recordings::server_use(&recording.workload, &rpc));
            recording.rpc = Some(rpc);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_study() {
        assert_eq!(study_results(7, 6, 2), study_results(7, 6, 2));
        assert_ne!(study_results(7, 6, 2), study_results(8, 6, 2));
    }

    #[test]
    fn counts_agree_with_histograms_and_workers() {
        let results = study_results(1, 4, 2);
        assert_eq!(results.runs.len(), 8);
        assert_eq!(results.study.factors.len(), 2);
        assert_eq!(results.interruptions(), 1);
        for recording in results.runs.iter().flat_map(|r| &r.recordings) {
            for (index, series) in recording.series.iter().enumerate() {
                assert_eq!(series.total.latency.decode().unwrap().len(), series.total.count);
                let parts: u64 = recording.workers.iter().map(|w| w.series[index].count).sum();
                assert_eq!(parts, series.total.count);
                let parts: u64 = series.intervals.iter().map(|i| i.stats.count).sum();
                assert_eq!(parts, series.total.count);
            }
        }
    }

    #[test]
    fn one_treatment_has_no_factor() {
        let results = study_results(3, 1, 1);
        assert!(results.study.factors.is_empty());
        assert_eq!(results.study.treatments[0].label, "synthetic");
    }
}
