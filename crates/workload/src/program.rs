//! A workload compiled for execution: every name resolved to a number, every flow flattened to instructions with jumps.

use std::sync::Arc;

use crate::model::{Beside, ClientRange, FilePick, IoMethod, LockKind, OffsetPick, OperationKind};
use crate::recording::SeriesKey;
use crate::replay::plan::ReplayProgram;
use crate::sizes::SizeSampler;

mod check;
mod compile;
mod compile_any;
pub(crate) mod flags;
mod limits;
mod positions;
mod rendezvous;

pub use self::flags::OpenFlags;

/// The most handles a flow may hold open at once.
pub const MAX_HANDLES: usize = 8;
/// The deepest nesting of repeats.
pub const MAX_LOOPS: usize = 8;

/// How a target is reached, which decides what a workload can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    #[default]
    System,
    /// By the user-space NFS client, which keeps any number of operations outstanding: `io` means nothing there.
    Nfs,
}

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
    /// Meetings; instructions refer to them by position.
    pub meetings: Vec<Meeting>,
    /// Names of the counters; instructions refer to them by position.
    pub counters: Vec<String>,
    /// Whether it appends to the files of each fileset: their lengths are not those that the fileset says.
    pub grows: Vec<bool>,
    pub groups: Vec<GroupProgram>,
    /// Block size of stamped data; `None` when the workload does not verify.
    pub verify_block: Option<usize>,
    /// Whether it is checked what survives of the acknowledged.
    pub witnessed: bool,
    /// The trace that is replayed, if the workload is that.
    pub replay: Option<ReplayProgram>,
}

/// A point at which workers wait for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meeting {
    pub name: String,
    /// Whether it takes place in the flow; else in the set-up. The same name in both stands for two meetings.
    pub in_flow: bool,
}

/// What a program does to a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Effect {
    #[default]
    None,
    /// It overwrites data in place.
    Data,
    /// Files come, go or change their names.
    Names,
}

#[derive(Debug, Clone, PartialEq)]
pub struct GroupProgram {
    pub name: String,
    /// The clients that do it; all of them if absent.
    pub clients: Option<ClientRange>,
    pub workers: u32,
    /// Outstanding operations per worker.
    pub queue_depth: u32,
    /// How reads and writes are issued.
    pub io: IoMethod,
    /// Open-loop repetitions per second and client.
    pub rate: Option<f64>,
    pub setup: Vec<Instruction>,
    pub flow: Vec<Instruction>,
    pub teardown: Vec<Instruction>,
    /// Largest read or write.
    pub max_io: usize,
}

impl GroupProgram {
    /// Whether a client does it.
    pub(crate) fn contains(&self, client: u32) -> bool {
        self.clients.is_none_or(|clients| clients.contains(client))
    }

    /// The number of a client among those of `clients` that do it, and how many these are.
    pub(crate) fn place(&self, client: u32, clients: u32) -> (u32, u32) {
        let Some(ClientRange { first, last }) = self.clients else { return (client, clients.max(1)) };
        let end = last.map_or(clients, |last| clients.min(last.saturating_add(1)));
        (client.saturating_sub(first), end.saturating_sub(first).max(1))
    }
}

/// One instruction. Targets of jumps are positions in the same list.
#[derive(Debug, Clone, PartialEq)]
pub enum Instruction {
    Operation(Operation),
    /// Start of a repeat.
    LoopBegin {
        counter: u8,
        times: u64,
        exit: u32,
    },
    /// End of a repeat.
    LoopEnd {
        counter: u8,
        /// First instruction of the body.
        body: u32,
    },
    /// Start of a repeat until the end of the file.
    FileBegin {
        slot: u8,
        exit: u32,
    },
    FileEnd {
        slot: u8,
        /// First instruction of the body.
        body: u32,
    },
    /// Jump to one of the targets; `below` are cumulative shares up to 1.
    Choose {
        /// Cumulative share and target.
        targets: Vec<(f64, u32)>,
    },
    Jump(u32),
    /// Wait so many nanoseconds.
    Pause(u64),
    /// Start of a repeat for a time.
    TimeBegin {
        /// Which counter holds its end.
        counter: u8,
        nanos: u64,
    },
    TimeEnd {
        counter: u8,
        /// First instruction of the body.
        body: u32,
    },
    /// Make what a trace needs.
    PrepareReplay,
    /// Replay the worker's thread of a trace.
    Replay,
    /// Wait for the others.
    Meet(u16),
    /// Add to a counter of the client.
    Post {
        counter: u16,
        count: u64,
        /// Waits while the counter holds as much.
        limit: u64,
    },
    /// Subtract from a counter of the client, waiting until it holds enough.
    Take {
        counter: u16,
        count: u64,
    },
}

/// An operation with everything resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Operation {
    pub kind: OperationKind,
    /// Under which series it is counted.
    pub series: u16,
    pub slot: u8,
    pub fileset: u16,
    pub pick: FilePick,
    /// Bytes; the most where they are drawn.
    pub length: u64,
    /// How bytes are drawn; `None`: always the same.
    pub drawn: Option<Arc<SizeSampler>>,
    /// Random positions are multiples of it, at least 1.
    pub unit: u64,
    /// Position. An open or create whose handle is used with segments says so.
    pub offset: OffsetPick,
    /// Whether it is about something beside the file.
    pub of: Option<Beside>,
    pub lock: LockKind,
    pub flags: OpenFlags,
}

impl Program {
    /// The series of the flows, which are measured.
    pub(crate) fn measured_series(&self) -> Vec<SeriesKey> {
        self.series[..self.measured].to_vec()
    }

    /// Workers of one client.
    pub(crate) fn workers_of(&self, client: u32) -> u32 {
        let own = self.groups.iter().filter(|group| group.contains(client));
        own.map(|group| group.workers).fold(0, u32::saturating_add)
    }

    pub fn workers(&self) -> u32 {
        self.groups.iter().map(|group| group.workers).fold(0, u32::saturating_add)
    }
}
