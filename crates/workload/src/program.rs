//! A workload compiled for execution: every name resolved to a number, every flow flattened to instructions with jumps.

use crate::model::{
    FilePick, IoMethod, LockKind, OffsetPick, OpenFlag, OperationKind, ParameterError, Workload,
};
use crate::recording::SeriesKey;

mod check;
mod compile;

/// The most handles a flow may hold open at once.
pub const MAX_HANDLES: usize = 8;
/// The deepest nesting of repeats.
pub const MAX_LOOPS: usize = 8;

/// A compiled workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// What is counted apart, in the order of the flow; then what only set-up and tear-down do.
    pub series: Vec<SeriesKey>,
    /// How many of `series` belong to a flow and are measured.
    pub measured: usize,
    /// Names of the filesets; instructions refer to them by position.
    pub filesets: Vec<String>,
    /// What the program does to each fileset.
    pub effects: Vec<Effect>,
    /// Compiled groups.
    pub groups: Vec<GroupProgram>,
    /// Block size of stamped data; `None` when the workload does not verify.
    pub verify_block: Option<usize>,
}

/// What a program does to a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Effect {
    /// It only reads.
    #[default]
    None,
    /// It overwrites data in place.
    Data,
    /// Files come, go or change their names.
    Names,
}

/// A compiled group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupProgram {
    /// The group's name.
    pub name: String,
    /// Workers per client.
    pub workers: u32,
    /// Outstanding operations per worker.
    pub queue_depth: u32,
    /// How reads and writes are issued.
    pub io: IoMethod,
    /// Open-loop repetitions per second and client.
    pub rate: Option<f64>,
    /// Done once before.
    pub setup: Vec<Instruction>,
    /// Repeated.
    pub flow: Vec<Instruction>,
    /// Done once after.
    pub teardown: Vec<Instruction>,
    /// Largest read or write.
    pub max_io: usize,
}

/// One instruction. Targets of jumps are positions in the same list.
#[derive(Debug, Clone, PartialEq)]
pub enum Instruction {
    /// An operation.
    Operation(Operation),
    /// Start of a repeat.
    LoopBegin {
        /// Which counter.
        counter: u8,
        /// How often.
        times: u64,
        /// Behind the loop.
        exit: u32,
    },
    /// End of a repeat.
    LoopEnd {
        /// Which counter.
        counter: u8,
        /// First instruction of the body.
        body: u32,
    },
    /// Start of a repeat until the end of the file.
    FileBegin {
        /// Handle.
        slot: u8,
        /// Behind the loop.
        exit: u32,
    },
    /// End of it.
    FileEnd {
        /// Handle.
        slot: u8,
        /// First instruction of the body.
        body: u32,
    },
    /// Jump to one of the targets; `below` are cumulative shares up to 1.
    Choose {
        /// Cumulative share and target.
        targets: Vec<(f64, u32)>,
    },
    /// Jump.
    Jump(u32),
    /// Wait so many nanoseconds.
    Pause(u64),
}

/// An operation with everything resolved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operation {
    /// What.
    pub kind: OperationKind,
    /// Under which series it is counted.
    pub series: u16,
    /// Handle.
    pub slot: u8,
    /// Fileset.
    pub fileset: u16,
    /// File.
    pub pick: FilePick,
    /// Bytes.
    pub length: u64,
    /// Position.
    pub offset: OffsetPick,
    /// Kind of lock.
    pub lock: LockKind,
    /// How to open.
    pub flags: OpenFlags,
}

/// Open flags as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    /// Writing allowed.
    pub write: bool,
    /// Reading not allowed.
    pub write_only: bool,
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// O_APPEND.
    pub append: bool,
    /// O_TRUNC.
    pub truncate: bool,
    /// O_EXCL.
    pub exclusive: bool,
}

impl Program {
    /// Compiles a workload.
    ///
    /// # Errors
    /// Everything in it that cannot be executed, each with its path.
    pub fn compile(workload: &Workload) -> Result<Self, Vec<ParameterError>> {
        compile::compile(workload)
    }

    /// The series of the flows, which are measured.
    pub(crate) fn measured_series(&self) -> Vec<SeriesKey> {
        self.series[..self.measured].to_vec()
    }

    /// Workers per client.
    pub fn workers(&self) -> u32 {
        self.groups.iter().map(|group| group.workers).fold(0, u32::saturating_add)
    }
}

impl OpenFlags {
    fn of(flags: &[OpenFlag]) -> Self {
        let has = |flag| flags.contains(&flag);
        Self {
            write: has(OpenFlag::Write) || has(OpenFlag::WriteOnly),
            write_only: has(OpenFlag::WriteOnly),
            sync: has(OpenFlag::Sync),
            dsync: has(OpenFlag::Dsync),
            direct: has(OpenFlag::Direct),
            append: has(OpenFlag::Append),
            truncate: has(OpenFlag::Truncate),
            exclusive: has(OpenFlag::Exclusive),
        }
    }
}
