//! What the expansions of built-in workloads share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use benchmaster_record::model::{
    FilePick, Fileset, Group, IoMethod, OffsetPick, OpenFlag, OperationKind, ParameterError, Repeat,
    RepeatUntil, Sharing, Size, SizeDistribution, Step, Tree, WeightedSize, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};
use benchmaster_workload::content::{MIN_BLOCK, block_size};

/// Durability asked for by each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// None: data may stay in the client's cache.
    #[default]
    None,
    /// O_SYNC.
    OSync,
    /// O_DSYNC.
    ODsync,
    /// `fsync` after every write.
    Fsync,
    /// `fdatasync` after every write.
    Fdatasync,
}

/// A workload in full, or every contradiction among the parameters.
pub(super) type Expanded = Result<Workload, Vec<ParameterError>>;

/// Small files are read whole by one call up to this size.
pub(super) const WHOLE_READ: ByteSize = ByteSize::mib(1);

/// Collects the contradictions of one set of parameters.
#[derive(Default)]
pub(super) struct Checks(Vec<ParameterError>);

impl Checks {
    pub(super) fn require(
        &mut self,
        holds: bool,
        path: &str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        if !holds {
            self.0.push(ParameterError::new(path, message, fix));
        }
    }

    pub(super) fn at_least_one(&mut self, path: &str, value: u64) {
        self.require(value > 0, path, format!("`{path}` is 0"), "it must be at least 1");
    }

    /// A phase that is limited by time has a length.
    pub(super) fn lasts(&mut self, path: &str, duration: TimeSpan) {
        let message = format!("`{path}` is 0");
        self.require(duration.nanos() > 0, path, message, "give the measured phase a length");
    }

    /// An I/O fits into a file.
    pub(super) fn fits(&mut self, path: &str, io_size: ByteSize, file_path: &str, file_size: ByteSize) {
        self.require(
            io_size.0 == 0 || io_size <= file_size,
            path,
            format!("a `{path}` of {io_size} does not fit into a `{file_path}` of {file_size}"),
            "make the file at least one I/O long",
        );
    }

    /// Data in I/Os of this size can be stamped, if they shall be.
    pub(super) fn provable(&mut self, path: &str, io_size: ByteSize, verify: bool) {
        self.require(
            !verify || io_size.0 == 0 || block_size(io_size.0).is_some(),
            path,
            format!("data in I/Os of {} bytes cannot be verified", io_size.0),
            format!("use a multiple of {MIN_BLOCK} bytes, or remove `verify = true`"),
        );
    }

    /// A file size or a distribution that has one.
    pub(super) fn size(&mut self, path: &str, size: &Size) {
        let empty = *size == Size::Fixed(ByteSize(0));
        self.require(!empty, path, format!("`{path}` is 0"), "give the files some bytes");
    }

    /// Sizes of I/Os that are drawn, or are always the same.
    pub(super) fn drawn(&mut self, path: &str, size: &Size, verify: bool) {
        self.size(path, size);
        let given: Vec<ByteSize> = match size {
            Size::Fixed(size) => vec![*size],
            Size::Distributed(SizeDistribution::Uniform { min, max }) => {
                let message = format!("`min` is {min} and `max` is {max}");
                self.require(*min <= *max && min.0 > 0, path, message, "write `min` first, and more than 0");
                vec![*min, *max]
            }
            Size::Distributed(SizeDistribution::Weighted { sizes }) => {
                let good =
                    |each: &WeightedSize| each.size.0 > 0 && each.weight > 0.0 && each.weight.is_finite();
                let fix = "give each size some bytes and a weight above 0";
                let message = format!("the sizes of `{path}` or their weights are 0");
                self.require(!sizes.is_empty() && sizes.iter().all(good), path, message, fix);
                sizes.iter().map(|each| each.size).collect()
            }
            Size::Distributed(_) => vec![],
        };
        given.into_iter().for_each(|size| self.provable(path, size, verify));
    }

    /// O_DIRECT moves whole blocks.
    pub(super) fn direct(&mut self, direct: bool, sizes: &[(&str, ByteSize)]) {
        /// The smallest logical block of storage in use; file systems may ask for more and then say EINVAL.
        const BLOCK: u64 = 512;
        for (path, size) in sizes.iter().filter(|_| direct) {
            self.require(
                size.0.is_multiple_of(BLOCK),
                path,
                format!(
                    "O_DIRECT needs sizes that are multiples of {BLOCK} bytes, and `{path}` is {}",
                    size.0
                ),
                format!(
                    "write `{path} = \"{}\"`, or remove `direct = true`",
                    ByteSize(size.0.next_multiple_of(BLOCK))
                ),
            );
        }
    }

    pub(super) fn finish(self) -> Result<(), Vec<ParameterError>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
    }
}

/// A step that does `op` with all else by default.
pub(super) fn step(op: OperationKind) -> Step {
    Step { op: Some(op), ..Step::default() }
}

/// A step that does `op` and is counted under `label`.
pub(super) fn labelled(op: OperationKind, label: &str) -> Step {
    Step { label: Some(label.to_owned()), ..step(op) }
}

/// Reads or writes so many bytes of the open file.
pub(super) fn data(op: OperationKind, io_size: ByteSize, offset: OffsetPick) -> Step {
    Step { io_size: Some(io_size.into()), offset: Some(offset), ..step(op) }
}

/// Does `flow` so many times.
pub(super) fn times(count: u64, flow: Vec<Step>) -> Step {
    Step { repeat: Some(Repeat::Times(count)), flow, ..Step::default() }
}

/// What is done with the files of one fileset for one purpose.
#[derive(Debug, Clone, Copy)]
pub(super) struct Use<'a> {
    pub(super) fileset: &'a str,
    /// Name of the purpose: operations are counted under it and their own name, and it has a handle of its own. Empty:
    /// they are counted under their own names.
    pub(super) purpose: &'a str,
}

impl Use<'_> {
    fn label(self, op: OperationKind) -> Option<String> {
        (!self.purpose.is_empty()).then(|| format!("{}-{}", self.purpose, op.name()))
    }

    fn handle(self) -> Option<String> {
        (!self.purpose.is_empty()).then(|| self.purpose.to_owned())
    }

    /// Does `op` to a file by its name.
    pub(super) fn name(self, op: OperationKind, pick: FilePick) -> Step {
        Step { fileset: Some(self.fileset.to_owned()), file: Some(pick), label: self.label(op), ..step(op) }
    }

    /// Opens or creates (`op`) a file.
    pub(super) fn open(self, op: OperationKind, pick: FilePick, flags: &[OpenFlag]) -> Step {
        Step { flags: flags.to_vec(), handle: self.handle(), ..self.name(op, pick) }
    }

    /// Does `op` to the open file.
    pub(super) fn on(self, op: OperationKind) -> Step {
        Step { handle: self.handle(), label: self.label(op), ..step(op) }
    }

    /// Reads or writes (`op`) the open file from its start to its end.
    pub(super) fn whole(self, op: OperationKind, io_size: ByteSize) -> Step {
        let transfer = data(op, io_size, OffsetPick::Sequential);
        Step {
            repeat: Some(Repeat::Until(RepeatUntil::EndOfFile)),
            flow: vec![Step { handle: self.handle(), label: self.label(op), ..transfer }],
            ..Step::default()
        }
    }

    /// Opens a file, reads it whole and closes it.
    pub(super) fn read_file(self, pick: FilePick, io_size: ByteSize) -> [Step; 3] {
        [
            self.open(OperationKind::Open, pick, &[]),
            self.whole(OperationKind::Read, io_size),
            self.on(OperationKind::Close),
        ]
    }

    /// Creates a file, writes it whole and closes it.
    pub(super) fn write_file(self, pick: FilePick, io_size: ByteSize) -> [Step; 3] {
        [
            self.open(OperationKind::Create, pick, &[OpenFlag::Write]),
            self.whole(OperationKind::Write, io_size),
            self.on(OperationKind::Close),
        ]
    }
}

/// `files` files in one directory, the directory of each client or, when `sharing`, of all; `exist` before the workload
/// starts or do not.
pub(super) fn fileset(files: u64, size: Size, sharing: Sharing, exist: bool) -> Fileset {
    Fileset { files, size, directory_width: 0, tree: None, sharing, prefill: if exist { 1.0 } else { 0.0 } }
}

/// How a write asks for durability by the way its file is opened.
pub(super) fn sync_flag(sync: SyncMode) -> Option<OpenFlag> {
    match sync {
        SyncMode::OSync => Some(OpenFlag::Sync),
        SyncMode::ODsync => Some(OpenFlag::Dsync),
        SyncMode::None | SyncMode::Fsync | SyncMode::Fdatasync => None,
    }
}

/// How a write asks for durability by a step of its own.
pub(super) fn sync_step(sync: SyncMode) -> Option<Step> {
    match sync {
        SyncMode::Fsync => Some(step(OperationKind::Fsync)),
        SyncMode::Fdatasync => Some(step(OperationKind::Fdatasync)),
        SyncMode::None | SyncMode::OSync | SyncMode::ODsync => None,
    }
}

/// Appends to the open file: as Filebench's `appendfilerand` any number of bytes up to `most`.
pub(super) fn append(label: &str, most: ByteSize) -> Step {
    Step {
        io_size: Some(Size::Distributed(SizeDistribution::Uniform { min: ByteSize(1), max: most })),
        offset: Some(OffsetPick::Append),
        ..labelled(OperationKind::Write, label)
    }
}

/// As many nested directories as Filebench makes for files so many of which are to be in each; `None`: one level is enough.
pub(super) fn nested(files: u64, width: u64) -> Option<Tree> {
    if width < 2 || files <= width * width {
        return None;
    }
    let levels = (files as f64).ln() / (width as f64).ln();
    let depth = (levels.round() as u32).saturating_sub(1).max(2);
    let leaves = files.div_ceil(width) as f64;
    let branch = leaves.powf(1.0 / f64::from(depth)).ceil() as u32;
    Some(Tree { depth, branch, leaves_only: true, in_turn: false })
}

/// Filebench's distribution of file sizes.
pub(super) fn gamma(mean: ByteSize) -> Size {
    Size::Distributed(SizeDistribution::Gamma { mean, shape: 1.5 })
}

/// Waits for all that come to the meeting of this name.
pub(super) fn meet(name: &str) -> Step {
    Step { meet: Some(name.into()), ..Step::default() }
}

/// Adds to a counter, unless it holds `limit` or more.
pub(super) fn post(counter: &str, count: u64, limit: u64) -> Step {
    Step { post: Some(counter.into()), count: Some(count), limit: Some(limit), ..Step::default() }
}

/// Waits for a counter to hold so much, and subtracts it.
pub(super) fn take(counter: &str, count: u64) -> Step {
    Step { take: Some(counter.into()), count: Some(count), ..Step::default() }
}

/// Steps on a handle of this name: what is opened in different ways needs different ones.
pub(super) fn on<const N: usize>(handle: &str, steps: [Step; N]) -> Vec<Step> {
    let mut steps = Vec::from(steps);
    for step in &mut steps {
        step.flow.iter_mut().for_each(|inner| inner.handle = Some(handle.into()));
        step.handle = step.op.map(|_| handle.into());
    }
    steps
}

/// [`whole_file`], counted under a name of its own.
pub(super) fn whole_file_as(op: OperationKind, label: &str, io_size: ByteSize) -> Step {
    let mut step = whole_file(op, io_size);
    step.flow.iter_mut().for_each(|inner| inner.label = Some(label.into()));
    step
}

/// Reads or writes (`op`) the open file from its start to its end.
pub(super) fn whole_file(op: OperationKind, io_size: ByteSize) -> Step {
    Step {
        repeat: Some(Repeat::Until(RepeatUntil::EndOfFile)),
        flow: vec![Step { io_size: Some(io_size.into()), offset: Some(OffsetPick::Sequential), ..step(op) }],
        ..Step::default()
    }
}

/// A group of `workers` on all clients that only repeats `flow`.
pub(super) fn group(name: &str, workers: u32, flow: Vec<Step>) -> Group {
    Group {
        name: name.into(),
        workers,
        clients: None,
        queue_depth: 1,
        io: IoMethod::Sync,
        rate: None,
        setup: Vec::new(),
        flow,
        teardown: Vec::new(),
    }
}
