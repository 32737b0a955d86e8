//! Expansion of the built-in workloads to the full model.

use std::collections::BTreeMap;

use super::{
    DataParameters, FileCreationParameters, MetadataParameters, SmallFileReadParameters, SyncMode,
    WriteLatencyParameters,
};
use crate::content::{MIN_BLOCK, block_size};
use crate::model::{
    Claim, FilePick, FileSize, Fileset, Group, IoMethod, OffsetPick, OpenFlag, OperationKind, ParameterError,
    Repeat, RepeatUntil, Sharing, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

/// Small files are read whole by one call up to this size.
const WHOLE_READ: ByteSize = ByteSize::mib(1);

/// Collects the contradictions of one set of parameters.
#[derive(Default)]
struct Checks(Vec<ParameterError>);

impl Checks {
    fn require(&mut self, holds: bool, path: &str, message: impl Into<String>, fix: impl Into<String>) {
        if !holds {
            self.0.push(ParameterError::new(path, message, fix));
        }
    }

    fn at_least_one(&mut self, path: &str, value: u64) {
        self.require(value > 0, path, format!("`{path}` is 0"), "it must be at least 1");
    }

    /// Data in I/Os of this size can be stamped, if they shall be.
    fn provable(&mut self, path: &str, io_size: ByteSize, verify: bool) {
        self.require(
            !verify || io_size.0 == 0 || block_size(io_size.0).is_some(),
            path,
            format!("data in I/Os of {} bytes cannot be verified", io_size.0),
            format!("use a multiple of {MIN_BLOCK} bytes, or remove `verify = true`"),
        );
    }

    fn finish(self) -> Result<(), Vec<ParameterError>> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(self.0),
        }
    }
}

fn step(op: OperationKind) -> Step {
    Step { op: Some(op), ..Step::default() }
}

pub(super) fn data(
    p: &DataParameters,
    name: &str,
    op: OperationKind,
    offset: OffsetPick,
) -> Result<Workload, Vec<ParameterError>> {
    let writes = op == OperationKind::Write;
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("queue_depth", p.queue_depth.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("file_size", p.file_size.0);
    checks.at_least_one("files", p.files.unwrap_or(1));
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.require(
        p.io_size.0 == 0 || p.io_size <= p.file_size,
        "io_size",
        format!("an `io_size` of {} does not fit into a `file_size` of {}", p.io_size, p.file_size),
        "make the file at least one I/O long",
    );
    checks.require(
        p.queue_depth == 1 || p.io == IoMethod::IoUring,
        "queue_depth",
        "a `queue_depth` above 1 needs asynchronous I/O",
        "add `io = \"io_uring\"`, or use `workers` for synchronous concurrency",
    );
    checks.require(
        writes || p.sync == SyncMode::None,
        "sync",
        "`sync` is about writes, and this workload only reads",
        "remove it",
    );
    checks.require(
        writes || p.prefill,
        "prefill",
        "a read workload needs files to read",
        "remove `prefill = false`",
    );
    checks.require(
        p.queue_depth == 1 || !matches!(p.sync, SyncMode::Fsync | SyncMode::Fdatasync),
        "sync",
        "a flush after every write has no meaning with several writes outstanding",
        "use `sync = \"o_sync\"` or `\"o_dsync\"`, or `queue_depth = 1`",
    );
    direct_checks(&mut checks, p);
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;

    let mut flags = Vec::new();
    if writes {
        flags.push(OpenFlag::Write);
    }
    match p.sync {
        SyncMode::OSync => flags.push(OpenFlag::Sync),
        SyncMode::ODsync => flags.push(OpenFlag::Dsync),
        SyncMode::None | SyncMode::Fsync | SyncMode::Fdatasync => {}
    }
    if p.direct {
        flags.push(OpenFlag::Direct);
    }
    let open = if writes && !p.prefill { OperationKind::Create } else { OperationKind::Open };
    let mut flow = vec![Step { io_size: Some(p.io_size), offset: Some(offset), ..step(op) }];
    match p.sync {
        SyncMode::Fsync => flow.push(step(OperationKind::Fsync)),
        SyncMode::Fdatasync => flow.push(step(OperationKind::Fdatasync)),
        SyncMode::None | SyncMode::OSync | SyncMode::ODsync => {}
    }
    // What was written must reach the server before the run ends, outside the measured phase.
    let teardown = if writes { vec![step(OperationKind::Fsync)] } else { Vec::new() };
    let fileset = Fileset {
        files: p.files.unwrap_or(p.workers.into()),
        size: FileSize::Fixed(p.file_size),
        directory_width: 0,
        sharing: p.sharing,
        prefill: if p.prefill { 1.0 } else { 0.0 },
    };
    Ok(Workload {
        filesets: BTreeMap::from([(p.fileset.clone().unwrap_or_else(|| name.to_owned()), fileset)]),
        groups: vec![Group {
            name: op.name().into(),
            workers: p.workers,
            queue_depth: p.queue_depth,
            io: p.io,
            rate: p.rate,
            setup: vec![Step { file: Some(FilePick::Own), flags, ..step(open) }],
            flow,
            teardown,
        }],
        until: Until { duration: Some(p.duration), iterations: None, bytes: p.bytes },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: p.claims,
    })
}

fn direct_checks(checks: &mut Checks, p: &DataParameters) {
    /// The smallest logical block of storage in use; file systems may ask for more and then say EINVAL.
    const BLOCK: u64 = 512;
    if !p.direct {
        return;
    }
    for (path, size) in [("io_size", p.io_size), ("file_size", p.file_size)] {
        checks.require(
            size.0.is_multiple_of(BLOCK),
            path,
            format!("O_DIRECT needs sizes that are multiples of {BLOCK} bytes, and `{path}` is {}", size.0),
            format!(
                "write `{path} = \"{}\"`, or remove `direct = true`",
                ByteSize(size.0.next_multiple_of(BLOCK))
            ),
        );
    }
}

pub(super) fn file_creation(p: &FileCreationParameters, name: &str) -> Result<Workload, Vec<ParameterError>> {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.finish()?;
    let mut flow = vec![Step {
        file: Some(FilePick::New),
        flags: vec![OpenFlag::Write, OpenFlag::Exclusive],
        ..step(OperationKind::Create)
    }];
    if p.file_size.0 > 0 {
        flow.push(whole_file(OperationKind::Write, p.io_size.min(p.file_size)));
    }
    if p.fsync {
        flow.push(step(OperationKind::Fsync));
    }
    flow.push(step(OperationKind::Close));
    let fileset = Fileset {
        files: p.files,
        size: FileSize::Fixed(p.file_size),
        directory_width: p.directory_width,
        sharing: p.sharing,
        prefill: 0.0,
    };
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), fileset)]),
        groups: vec![group("create", p.workers, flow)],
        until: Until::default(),
        warm_up: TimeSpan::default(),
        verify: false,
        trace: p.trace,
        claims: Claim::Device,
    })
}

pub(super) fn write_latency(p: &WriteLatencyParameters, name: &str) -> Result<Workload, Vec<ParameterError>> {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("file_size", p.file_size.0);
    checks.require(
        !matches!(p.sync, SyncMode::Fsync | SyncMode::Fdatasync),
        "sync",
        "the benchmark flushes once, after all writes",
        "use `sync = \"none\"`, `\"o_sync\"` or `\"o_dsync\"`",
    );
    checks.finish()?;
    let mut flags = vec![OpenFlag::Write, OpenFlag::Truncate];
    match p.sync {
        SyncMode::OSync => flags.push(OpenFlag::Sync),
        SyncMode::ODsync => flags.push(OpenFlag::Dsync),
        SyncMode::None | SyncMode::Fsync | SyncMode::Fdatasync => {}
    }
    let fileset = Fileset {
        files: p.workers.into(),
        size: FileSize::Fixed(p.file_size),
        directory_width: 0,
        sharing: Sharing::Private,
        prefill: 0.0,
    };
    let setup = vec![Step { file: Some(FilePick::Own), flags, ..step(OperationKind::Create) }];
    let flow = vec![
        whole_file(OperationKind::Write, p.io_size.min(p.file_size)),
        step(OperationKind::Fsync),
        step(OperationKind::Close),
    ];
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), fileset)]),
        groups: vec![Group { setup, ..group("write", p.workers, flow) }],
        until: Until { iterations: Some(1), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: false,
        trace: p.trace,
        claims: Claim::Cache,
    })
}

pub(super) fn small_file_read(
    p: &SmallFileReadParameters,
    name: &str,
) -> Result<Workload, Vec<ParameterError>> {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("file_size", p.file_size.0);
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.provable("file_size", p.file_size.min(WHOLE_READ), p.verify);
    checks.finish()?;
    let flow = vec![
        Step { file: Some(FilePick::Random), ..step(OperationKind::Open) },
        whole_file(OperationKind::Read, p.file_size.min(WHOLE_READ)),
        step(OperationKind::Close),
    ];
    let fileset = Fileset {
        files: p.files,
        size: FileSize::Fixed(p.file_size),
        directory_width: p.directory_width,
        sharing: p.sharing,
        prefill: 1.0,
    };
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), fileset)]),
        groups: vec![group("read", p.workers, flow)],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: p.claims,
    })
}

pub(super) fn metadata(p: &MetadataParameters, name: &str) -> Result<Workload, Vec<ParameterError>> {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("directory_entries", p.directory_entries);
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.finish()?;
    let listed = format!("{name}-listed");
    let own = |op| Step { fileset: Some(name.to_owned()), file: Some(FilePick::Same), ..step(op) };
    let flow = vec![
        // Not exclusive: what a failed operation leaves behind must not make all that follow fail.
        Step { file: Some(FilePick::Own), flags: vec![OpenFlag::Write], ..own(OperationKind::Create) },
        step(OperationKind::Close),
        own(OperationKind::Stat),
        own(OperationKind::Rename),
        own(OperationKind::Unlink),
        Step { fileset: Some(listed.clone()), file: Some(FilePick::Random), ..step(OperationKind::Readdir) },
    ];
    let fileset = |files, prefill| Fileset {
        files,
        size: FileSize::Fixed(ByteSize(0)),
        directory_width: 0,
        sharing: Sharing::Private,
        prefill,
    };
    Ok(Workload {
        filesets: BTreeMap::from([
            (name.to_owned(), fileset(p.workers.into(), 0.0)),
            (listed, fileset(p.directory_entries, 1.0)),
        ]),
        groups: vec![group("metadata", p.workers, flow)],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: false,
        trace: p.trace,
        claims: Claim::Cache,
    })
}

fn whole_file(op: OperationKind, io_size: ByteSize) -> Step {
    Step {
        repeat: Some(Repeat::Until(RepeatUntil::EndOfFile)),
        flow: vec![Step { io_size: Some(io_size), offset: Some(OffsetPick::Sequential), ..step(op) }],
        ..Step::default()
    }
}

fn group(name: &str, workers: u32, flow: Vec<Step>) -> Group {
    Group {
        name: name.into(),
        workers,
        queue_depth: 1,
        io: IoMethod::Sync,
        rate: None,
        setup: Vec::new(),
        flow,
        teardown: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::{BUILT_IN, WorkloadSpec};
    use crate::program::Program;

    /// The paths at which parameters of the built-in `name` are refused.
    fn refused(name: &str, parameters: &str) -> Vec<String> {
        let table: toml::Table = parameters.parse().unwrap();
        let spec = WorkloadSpec::deserialize(name, table).unwrap().unwrap();
        assert_eq!(spec.use_name(), name);
        match spec.expand("w") {
            // What expands must compile: a user knows parameters, not the flow behind them.
            Ok(workload) => Program::compile(&workload).map(|_| Vec::new()).unwrap(),
            Err(errors) => errors.into_iter().map(|error| error.path).collect(),
        }
    }

    #[test]
    fn defaults_make_sense() {
        for built_in in BUILT_IN.iter().filter(|built_in| built_in.name != "custom") {
            assert_eq!(refused(built_in.name, ""), [""; 0], "{}", built_in.name);
        }
        assert!(WorkloadSpec::deserialize("nothing", toml::Table::new()).is_none());
    }

    #[test]
    fn contradictions_are_refused_at_the_parameter_that_mends_them() {
        for (name, parameters, path) in [
            ("sequential-read", "workers = 0", "workers"),
            ("sequential-read", "io_size = 0", "io_size"),
            ("sequential-read", "file_size = 0\nio_size = 0", "io_size"),
            ("sequential-read", "files = 0", "files"),
            ("sequential-read", "duration = '0s'", "duration"),
            ("sequential-read", "io_size = '1MiB'\nfile_size = '64KiB'", "io_size"),
            ("sequential-read", "queue_depth = 4", "queue_depth"),
            ("sequential-read", "sync = 'o_sync'", "sync"),
            ("sequential-read", "prefill = false", "prefill"),
            ("sequential-write", "io = 'io_uring'\nqueue_depth = 2\nsync = 'fsync'", "sync"),
            ("random-write", "direct = true\nio_size = 1000\nfile_size = '64KiB'", "io_size"),
            ("random-write", "verify = true\nio_size = 1000\nfile_size = '64KiB'", "io_size"),
            ("small-file-read", "verify = true\nfile_size = 1000", "file_size"),
            ("small-file-read", "files = 0", "files"),
            ("file-creation", "files = 0", "files"),
            ("write-latency", "sync = 'fsync'", "sync"),
            ("metadata", "directory_entries = 0", "directory_entries"),
        ] {
            let found = refused(name, parameters);
            assert!(found.iter().any(|found| found == path), "{name} with {parameters}: {found:?}");
        }
    }

    #[test]
    fn parameters_that_fit_together_are_accepted() {
        for (name, parameters) in [
            (
                "random-read",
                "io = 'io_uring'\nqueue_depth = 32\nio_size = '4KiB'\ndirect = true\nverify = true",
            ),
            ("sequential-write", "prefill = false\nsync = 'o_dsync'\nrate = '100/s'\nbytes = '1GiB'"),
            ("sequential-write", "file_size = 100000\nio_size = 4096\nverify = true"),
            ("random-write", "sync = 'fdatasync'\nsharing = 'shared'\nfileset = 'common'\nwarm_up = '1s'"),
            ("file-creation", "file_size = '256KiB'\nfsync = true\nworkers = 4\ndirectory_width = 100"),
            ("write-latency", "file_size = 1000\nworkers = 3\nsync = 'o_sync'"),
            ("small-file-read", "file_size = '3MiB'\nverify = true"),
        ] {
            assert_eq!(refused(name, parameters), [""; 0], "{name} with {parameters}");
        }
    }
}
