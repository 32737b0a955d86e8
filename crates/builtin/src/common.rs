//! What the expansions of built-in workloads share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use benchmaster_record::model::{
    IoMethod, ParameterError, Size, SizeDistribution, Tree, Verify, WeightedSize, Workload,
};
use benchmaster_units::{ByteSize, Rate, TimeSpan};
use benchmaster_workload::content::{MIN_BLOCK, block_size};
use benchmaster_workload::program::Access;

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

/// Files per worker that leave each one that is there to remove, and one that is not there yet.
pub(super) const FILES_PER_WORKER: u64 = 5;

/// What must not be 0.
pub(super) trait Amount: PartialEq + Sized {
    const ZERO: Self;
    /// The advice where it is.
    const ADVICE: &'static str = "it must be at least 1";
}

impl Amount for u32 {
    const ZERO: Self = 0;
}

impl Amount for u64 {
    const ZERO: Self = 0;
}

impl Amount for ByteSize {
    const ZERO: Self = Self(0);
}

impl Amount for Size {
    const ZERO: Self = Self::Fixed(ByteSize(0));
    const ADVICE: &'static str = "give the files some bytes";
}

impl Amount for TimeSpan {
    const ZERO: Self = Self::seconds(0);
    const ADVICE: &'static str = "give the measured phase a length";
}

impl<A: Amount> Amount for Option<A> {
    const ZERO: Self = Some(A::ZERO);
    const ADVICE: &'static str = A::ADVICE;
}

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

    pub(super) fn positive<A: Amount>(&mut self, path: &str, amount: &A) {
        self.require(*amount != A::ZERO, path, format!("`{path}` is 0"), A::ADVICE);
    }

    /// Workers that each do this (`doing`) find enough files.
    pub(super) fn enough_files(&mut self, files: u64, workers: u32, doing: &str) {
        let least = FILES_PER_WORKER * u64::from(workers);
        let message = format!("{files} files are too few for {workers} workers that each {doing}");
        self.require(files >= least, "files", message, format!("use at least {least}"));
    }

    /// There can be a worker for each file.
    pub(super) fn worker_per_file(&mut self, files: u64) {
        let message = "every file is held by a different worker";
        self.require(files < u32::MAX.into(), "files", message, "use fewer");
    }

    /// An I/O fits into a file.
    pub(super) fn fits(&mut self, path: &str, io_size: ByteSize, file_path: &str, file_size: ByteSize) {
        let article = if path.starts_with('i') { "an" } else { "a" };
        self.require(
            io_size.0 == 0 || io_size <= file_size,
            path,
            format!("{article} `{path}` of {io_size} does not fit into a `{file_path}` of {file_size}"),
            "make the file at least one I/O long",
        );
    }

    /// Data in I/Os of this size can be stamped, if they shall be.
    pub(super) fn provable(&mut self, path: &str, io_size: ByteSize, verify: Verify) {
        self.require(
            !verify.is_on() || io_size.0 == 0 || block_size(io_size.0).is_some(),
            path,
            format!("data in I/Os of {} bytes cannot be verified", io_size.0),
            format!("use a multiple of {MIN_BLOCK} bytes, or remove `verify`"),
        );
    }

    /// Sizes of I/Os that are drawn, or are always the same.
    pub(super) fn drawn(&mut self, path: &str, size: &Size, verify: Verify) {
        self.positive(path, size);
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

    /// Several operations are outstanding only where they are issued asynchronously.
    pub(super) fn queue_depth(&mut self, depth: u32, io: IoMethod, access: Access) {
        self.require(
            depth <= 1 || io == IoMethod::IoUring || access == Access::Nfs,
            "queue_depth",
            "a `queue_depth` above 1 needs asynchronous I/O",
            "add `io = \"io_uring\"`, or use `workers` for synchronous concurrency",
        );
    }

    pub(super) fn finish(self) -> Result<(), Vec<ParameterError>> {
        if self.0.is_empty() { Ok(()) } else { Err(self.0) }
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

/// What the templates of Filebench's servers use: directories for these files, and the rate.
pub(super) fn filebench(files: u64, directory_width: u64, rate: Option<Rate>) -> Value {
    let tree = nested(files, directory_width);
    json!({ "tree": tree, "directory_width": if tree.is_some() { 0 } else { directory_width }, "rate": rate })
}
