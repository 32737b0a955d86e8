//! Filebench's OLTP: the files of a database.

use std::collections::BTreeMap;
use std::time::Duration;

use super::common::{Checks, Expanded, group, labelled, post, step, take};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, Group, OffsetPick, OpenFlag, OperationKind, Repeat, Sharing, Size, Step, Until,
    Workload,
};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

/// Counters of reads that the log writer and the data writers wait for.
const LOG: &str = "log";
const DATA: &str = "data";

parameters! { pub struct OltpParameters: "Parameters of `oltp`.";
    /// Number of data files per client.
    files: u64 = 10,
    /// Size of each data file.
    file_size: ByteSize = ByteSize::mib(10),
    /// Size of the log.
    log_size: ByteSize = ByteSize::mib(10),
    /// Bytes per read and write of data.
    io_size: ByteSize = ByteSize::kib(2),
    /// Bytes per write of the log.
    log_io_size: ByteSize = ByteSize::kib(256),
    /// Workers per client that read data.
    readers: u32 = 200,
    /// Workers per client that write data.
    writers: u32 = 10,
    /// Time for which a reader thinks after each read.
    think_time: TimeSpan = TimeSpan(Duration::from_micros(200)),
    /// Writes of a data writer in one go.
    writes: u64 = 100,
    /// Reads, by all readers, after which each data writer writes again.
    reads_per_data_write: u64 = 1000,
    /// Reads by which the readers may be ahead of the data writers.
    data_ahead: u64 = 2000,
    /// Reads, by all readers, after which the log is written again.
    reads_per_log_write: u64 = 3200,
    /// Reads by which the readers may be ahead of the log writer.
    log_ahead: u64 = 1000,
    /// O_DIRECT: past the page cache.
    direct: bool = false,
    /// Reads per second over all readers of a client; as fast as possible if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Stamp every block written and check every block read.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for OltpParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, self.io_size);
        self.log_size = scale.size(self.log_size, self.log_io_size);
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

pub(super) fn expand(p: &OltpParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    for (path, value) in [
        ("files", p.files),
        ("readers", p.readers.into()),
        ("writers", p.writers.into()),
        ("writes", p.writes),
        ("reads_per_data_write", p.reads_per_data_write),
        ("reads_per_log_write", p.reads_per_log_write),
    ] {
        checks.at_least_one(path, value);
    }
    for (path, io, size) in [("io_size", p.io_size, p.file_size), ("log_io_size", p.log_io_size, p.log_size)]
    {
        checks.at_least_one(path, io.0);
        checks.require(
            io <= size,
            path,
            format!("an I/O of {io} does not fit into a file of {size}"),
            "make the file at least one I/O long",
        );
        checks.provable(path, io, p.verify);
        checks.require(
            !p.direct || io.0.is_multiple_of(512),
            path,
            format!("O_DIRECT needs sizes that are multiples of 512 bytes, and `{path}` is {}", io.0),
            "change it, or remove `direct = true`",
        );
    }
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.finish()?;
    let log = format!("{name}-log");
    let open = |fileset: &str, mut flags: Vec<OpenFlag>| {
        if p.direct {
            flags.push(OpenFlag::Direct);
        }
        Step {
            fileset: Some(fileset.to_owned()),
            file: Some(FilePick::Own),
            flags,
            ..step(OperationKind::Open)
        }
    };
    let at_random = |op, label: &str, io_size: ByteSize| Step {
        io_size: Some(io_size.into()),
        offset: Some(OffsetPick::Random),
        ..labelled(op, label)
    };
    let durable = || vec![OpenFlag::Write, OpenFlag::Dsync];
    let batch = Step {
        repeat: Some(Repeat::Times(p.writes)),
        flow: vec![at_random(OperationKind::Write, "data-write", p.io_size)],
        ..Step::default()
    };
    let mut reads = vec![at_random(OperationKind::Read, "read", p.io_size)];
    if p.think_time.nanos() > 0 {
        reads.push(Step { pause: Some(p.think_time), ..Step::default() });
    }
    // Filebench's readers post to each data writer; here to all at once, which take what is theirs.
    let writers = u64::from(p.writers);
    reads.extend([
        post(LOG, 1, p.reads_per_log_write.saturating_add(p.log_ahead)),
        post(DATA, writers, p.reads_per_data_write.saturating_add(p.data_ahead).saturating_mul(writers)),
    ]);
    let fileset = |files, size| Fileset {
        files,
        size: Size::Fixed(size),
        directory_width: 0,
        tree: None,
        sharing: Sharing::Private,
        prefill: 1.0,
    };
    Ok(Workload {
        filesets: BTreeMap::from([
            (name.to_owned(), fileset(p.files, p.file_size)),
            (log.clone(), fileset(1, p.log_size)),
        ]),
        groups: vec![
            Group {
                setup: vec![open(&log, durable())],
                ..group(
                    "log",
                    1,
                    vec![
                        at_random(OperationKind::Write, "log-write", p.log_io_size),
                        take(LOG, p.reads_per_log_write),
                    ],
                )
            },
            Group {
                setup: vec![open(name, durable())],
                ..group("writers", p.writers, vec![batch, take(DATA, p.reads_per_data_write)])
            },
            Group { setup: vec![open(name, Vec::new())], rate: p.rate, ..group("readers", p.readers, reads) },
        ],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
