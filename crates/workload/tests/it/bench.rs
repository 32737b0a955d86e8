//! A target in a temporary directory or on an NFS server, and what tests ask of recordings.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_record::model::Workload;
use benchmaster_record::recording::{OperationStats, Recording, SeriesRecording, TraceRecord};
use benchmaster_trace::TraceSink;
use benchmaster_workload::area::WorkArea;
use benchmaster_workload::cache::CacheControl;
use benchmaster_workload::conduct::{Alone, Share};
use benchmaster_workload::execute::{ExecuteError, Options, Progress, execute};
use benchmaster_workload::target::{NfsTarget, Target};
use tempfile::TempDir;

thread_local! {
    /// Version of NFS of what [`Bench::new`] makes on this thread; `None`: directories.
    static VERSION: RefCell<Option<&'static str>> = const { RefCell::new(None) };
}

/// Runs a test with benches on NFS servers.
pub(crate) fn over_the_wire(version: &'static str, test: fn()) {
    VERSION.set(Some(version));
    test();
}

pub(crate) struct Bench {
    /// Removed with everything in it at the end; not the target of a bench that has a server.
    pub(crate) target: TempDir,
    pub(crate) server: Option<Server>,
    pub(crate) area: WorkArea,
    pub(crate) clients: u32,
    pub(crate) seed: u64,
    pub(crate) stagger: Duration,
    pub(crate) cache: CacheControl,
    pub(crate) hook: Option<(String, Duration)>,
    pub(crate) max_errors: u64,
    pub(crate) ledgers: TempDir,
    pub(crate) interval: Duration,
    pub(crate) stop: AtomicBool,
    pub(crate) sink: Option<Sink>,
}

/// Keeps a trace, or fails after so many batches.
#[derive(Default)]
pub(crate) struct Sink {
    pub(crate) records: Vec<TraceRecord>,
    pub(crate) fails_after: Option<usize>,
}

impl TraceSink for Sink {
    fn write(&mut self, records: &[TraceRecord]) -> io::Result<()> {
        self.records.extend(records);
        match self.fails_after {
            Some(limit) if self.records.len() >= limit => Err(io::Error::from(io::ErrorKind::StorageFull)),
            _ => Ok(()),
        }
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        match VERSION.with_borrow(|version| *version) {
            None => Self::on(&std::env::temp_dir()),
            Some(version) => Self::nfs(&format!("version={version}"), ServerConfig::default()),
        }
    }

    pub(crate) fn on(directory: &Path) -> Self {
        let target = tempfile::tempdir_in(directory).unwrap();
        Self::of(WorkArea::create(&target.path().into(), "test").unwrap(), target, None)
    }

    /// On a server of its own, mounted with these options.
    pub(crate) fn nfs(options: &str, config: ServerConfig) -> Self {
        let listen = ([127, 0, 0, 1], 0).into();
        let server = Server::start(ServerConfig { listen, threads: 1, ..config }).unwrap();
        let target = nfs_target(&server, options);
        let area = WorkArea::create(&target, "test").unwrap();
        Self::of(area, tempfile::tempdir().unwrap(), Some(server))
    }

    fn of(area: WorkArea, target: TempDir, server: Option<Server>) -> Self {
        Self {
            area,
            target,
            server,
            clients: 1,
            seed: 7,
            stagger: Duration::ZERO,
            cache: CacheControl::Keep,
            hook: None,
            max_errors: 10,
            ledgers: tempfile::tempdir().unwrap(),
            interval: Duration::from_secs(1),
            stop: AtomicBool::new(false),
            sink: None,
        }
    }

    pub(crate) fn hook(&mut self, command: impl Into<String>) {
        self.hook = Some((command.into(), Duration::from_secs(60)));
    }

    /// Executes a workload, telling `observe` of its progress.
    pub(crate) fn watch(
        &mut self,
        workload: &Workload,
        mut observe: impl FnMut(Progress, &AtomicBool),
    ) -> Result<Recording, ExecuteError> {
        let Self { area, stop, .. } = self;
        let options = Options {
            share: Share::all(self.clients),
            stagger: self.stagger,
            neighbours: 1,
            seed: self.seed,
            fileset_seed: 3,
            interval_ns: u64::try_from(self.interval.as_nanos()).unwrap(),
            cache: self.cache,
            hook: self.hook.as_ref().map(|(command, timeout)| (command.as_str(), *timeout)),
            max_errors: self.max_errors,
            ledgers: self.ledgers.path(),
            stop,
        };
        let sink = self.sink.as_mut().map(|sink| sink as &mut dyn TraceSink);
        execute(area, "w", workload, &options, &mut Alone, sink, &mut |progress| observe(progress, stop))
    }

    pub(crate) fn try_run(&mut self, workload: &Workload) -> Result<Recording, ExecuteError> {
        self.watch(workload, |_, _| {})
    }

    /// Executes a workload that must work without any error.
    pub(crate) fn run(&mut self, workload: &Workload) -> Recording {
        let recording = self.try_run(workload).unwrap();
        assert_eq!(recording.error_details, [""; 0]);
        assert!(recording.phases.iter().all(|phase| phase.errors == 0), "{:?}", recording.phases);
        assert_eq!(recording.corruption, None);
        check_sums(&recording);
        recording
    }

    /// Executes a workload without an error and keeps its trace.
    pub(crate) fn trace(&mut self, workload: &Workload) -> (Recording, Vec<TraceRecord>) {
        self.sink = Some(Sink::default());
        let recording = self.run(workload);
        (recording, self.sink.take().unwrap().records)
    }

    /// A file of the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        assert!(self.server.is_none(), "paths are of directories");
        self.area.path().join(name)
    }

    pub(crate) fn size(&self, name: &str) -> u64 {
        if self.server.is_some() {
            self.wire(async |mount| mount.stat(&below(name)).await.unwrap().size)
        } else {
            self.path(name).metadata().unwrap().len()
        }
    }

    pub(crate) fn content(&self, name: &str) -> Vec<u8> {
        if self.server.is_some() {
            self.wire(async |mount| {
                let mut content = vec![0; mount.stat(&below(name)).await.unwrap().size as usize];
                let file = mount.open(&below(name), &OpenFlags::READ).await.unwrap();
                assert_eq!(mount.read(&file, &mut content, 0).await, Ok(content.len()));
                mount.close(file).await.unwrap();
                content
            })
        } else {
            std::fs::read(self.path(name)).unwrap()
        }
    }

    /// Names in a directory of the working directory, sorted.
    pub(crate) fn names(&self, directory: &str) -> Vec<String> {
        let mut names: Vec<String> = if self.server.is_some() {
            self.wire(async |mount| {
                let mut names = Vec::new();
                let mut visit = |entry: &benchmaster_nfs_client::types::Entry<'_>| {
                    names.push(String::from_utf8(entry.name.to_vec()).unwrap());
                };
                let directory = below(directory);
                mount.readdir(directory.strip_suffix(b"/.").unwrap_or(&directory), &mut visit).await.unwrap();
                names
            })
        } else {
            let entries = std::fs::read_dir(self.path(directory)).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        };
        names.sort();
        names
    }

    /// Does something over a mount of its own, as another client would.
    pub(crate) fn wire<T>(&self, work: impl AsyncFn(&Mount) -> T) -> T {
        wire(self.options(), work)
    }

    /// How the server is mounted.
    pub(crate) fn options(&self) -> &MountOptions {
        match self.area.target() {
            Target::Nfs(target) => &target.options,
            Target::Directory(path) => panic!("{} is not a server", path.display()),
        }
    }
}

/// Does something over a mount of its own, as another client would.
pub(crate) fn wire<T>(options: &MountOptions, work: impl AsyncFn(&Mount) -> T) -> T {
    let reactor = Reactor::new().unwrap();
    let done = reactor.block_on(async {
        let mount = Mount::connect(&reactor, options, "another client").await.unwrap();
        let result = work(&mount).await;
        mount.unmount().await.unwrap();
        result
    });
    done.unwrap()
}

/// A server's export with these options.
pub(crate) fn nfs_target(server: &Server, options: &str) -> Target {
    let url = format!("nfs://{}/export?{options}", server.address());
    Target::Nfs(NfsTarget::new(url.parse().unwrap()))
}

/// Path of a file of the working directory below the export.
pub(crate) fn below(name: &str) -> Vec<u8> {
    format!("benchmaster-test/{name}").into_bytes()
}

/// A workload written as in a study file.
pub(crate) fn workload(text: &str) -> Workload {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn series<'r>(recording: &'r Recording, label: &str) -> &'r SeriesRecording {
    let labels: Vec<&str> = recording.series.iter().map(|series| series.key.label.as_str()).collect();
    recording
        .series
        .iter()
        .find(|series| series.key.label == label)
        .unwrap_or_else(|| panic!("{label}: {labels:?}"))
}

pub(crate) fn total<'r>(recording: &'r Recording, label: &str) -> &'r OperationStats {
    &series(recording, label).total
}

pub(crate) fn count(recording: &Recording, label: &str) -> u64 {
    total(recording, label).count
}

/// Totals are the sums of intervals and of workers, whatever ran.
pub(crate) fn check_sums(recording: &Recording) {
    for (number, series) in recording.series.iter().enumerate() {
        let sums = |parts: &mut dyn Iterator<Item = (u64, u64, u64, u64)>| {
            parts.fold((0, 0, 0, 0), |a, b| (a.0 + b.0, a.1 + b.1, a.2 + b.2, a.3 + b.3))
        };
        let stats = |s: &OperationStats| (s.count, s.bytes, s.errors, s.sum_ns);
        let total = stats(&series.total);
        assert_eq!(
            sums(&mut series.intervals.iter().map(|interval| stats(&interval.stats))),
            total,
            "{:?}",
            series.key
        );
        let workers = recording.workers.iter().flat_map(|worker| &worker.series);
        let parts = workers.filter(|part| part.series as usize == number);
        assert_eq!(
            sums(&mut parts.map(|p| (p.count, p.bytes, p.errors, p.sum_ns))),
            total,
            "{:?}",
            series.key
        );
        assert_eq!(series.total.latency.decode().unwrap().len(), series.total.count);
        assert_eq!(series.errors.values().sum::<u64>(), series.total.errors);
    }
}

/// Whether the system allows io_uring; containers often do not.
pub(crate) fn has_uring() -> bool {
    io_uring::IoUring::new(1).is_ok()
}
