//! What is replayed: the calls of every thread in their order, what must exist before the first of them, and which calls
//! have to wait for one of another thread.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::model::{LockKind, OperationKind};
use crate::program::flags::OpenFlags;

/// No path, handle or thread.
pub(crate) const NONE: u32 = u32::MAX;

/// A trace made ready to be replayed. One call takes 48 bytes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// The threads, one worker each.
    pub(crate) threads: Vec<Thread>,
    /// Calls of all threads, those of a thread next to each other in their order.
    pub(crate) calls: Vec<Call>,
    pub(crate) paths: Paths,
    /// What must exist before, parents before what is in them.
    pub(crate) initial: Vec<Initial>,
    /// Files that are open before the first call.
    pub(crate) opened: Vec<Opened>,
    /// Calls of the trace that are not replayed: how many, by what they are.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// Time from the first to the last replayed call's start, as recorded.
    pub span_ns: u64,
}

/// A plan, and how fast it is carried out.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayProgram {
    pub plan: Arc<Plan>,
    /// How much faster than recorded; infinite for as fast as possible.
    pub speed: f64,
}

/// Why a call of a trace is not replayed, and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    pub why: Why,
    pub call: String,
}

/// Why a call of a trace is not replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Why {
    /// It is a call on files that cannot be replayed.
    Unsupported,
    /// Nobody knows what it does.
    Unknown,
    /// It was not finished when the trace ended, or its line is damaged.
    Incomplete,
    /// It was done to a file outside of what is replayed, or to something that is no file.
    Elsewhere,
    /// It has nothing to do with files.
    NoFile,
}

impl Why {
    /// In words, after "not replayed:".
    pub fn text(self) -> &'static str {
        match self {
            Self::Unsupported => "cannot be replayed",
            Self::Unknown => "unknown calls",
            Self::Incomplete => "unfinished or damaged",
            Self::Elsewhere => "on other files, directories, pipes or sockets",
            Self::NoFile => "no calls on files",
        }
    }

    /// Whether a replay without these calls is less than what was recorded.
    pub fn matters(self) -> bool {
        matches!(self, Self::Unsupported | Self::Unknown | Self::Incomplete)
    }
}

/// A thread of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    /// Its name in the trace.
    pub(crate) name: String,
    pub(crate) calls: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// Start since the start of the trace.
    pub(crate) at_ns: u64,
    /// File offset, or the size for truncating; `u64::MAX` where there is none.
    pub(crate) offset: u64,
    /// The other thread's call that must be over before; [`NONE`] for none.
    pub(crate) after: After,
    /// Path of a call by name and of an open; else the handle.
    pub(crate) object: u32,
    /// Handle of an open; the second path of a rename or link.
    pub(crate) other: u32,
    pub(crate) length: u32,
    /// Bytes that a read or write moved.
    pub(crate) moved: u32,
    /// The error it ended with when it was recorded; 0 for none.
    pub(crate) error: u16,
    pub(crate) flags: Flags,
    /// What is done; `None`: only waiting for the other thread.
    pub(crate) kind: Option<OperationKind>,
}

/// A call of a thread: the thread and the call's number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct After {
    pub(crate) thread: u32,
    pub(crate) call: u32,
}

impl After {
    pub(crate) const NOTHING: Self = Self { thread: NONE, call: 0 };
}

impl Call {
    /// A call without anything special.
    pub(crate) fn new(at_ns: u64, kind: OperationKind, object: u32) -> Self {
        Self {
            at_ns,
            offset: u64::MAX,
            after: After::NOTHING,
            object,
            other: NONE,
            length: 0,
            moved: 0,
            error: 0,
            flags: Flags(0),
            kind: Some(kind),
        }
    }

    /// Whether the object is an open file.
    pub(crate) fn on_handle(&self) -> bool {
        self.flags.0 & Flags::HANDLE != 0
    }
}

/// How a file is opened or locked, in bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags(pub(crate) u16);

impl Flags {
    const BITS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    /// The lock is a write lock.
    pub(crate) const EXCLUSIVE: u16 = 1 << 8;
    /// The call is on an open file.
    pub(crate) const HANDLE: u16 = 1 << 9;
    /// The write goes to the end of the file.
    pub(crate) const APPENDS: u16 = 1 << 10;

    pub(crate) fn of(open: OpenFlags) -> Self {
        let set = [
            open.write,
            open.write_only,
            open.sync,
            open.dsync,
            open.direct,
            open.append,
            open.truncate,
            open.exclusive,
        ];
        Self(set.iter().zip(Self::BITS).filter(|(set, _)| **set).map(|(_, bit)| bit).sum())
    }

    pub(crate) fn open(self) -> OpenFlags {
        let [write, write_only, sync, dsync, direct, append, truncate, exclusive] =
            Self::BITS.map(|bit| self.0 & bit != 0);
        OpenFlags { write, write_only, sync, dsync, direct, append, truncate, exclusive }
    }

    pub(crate) fn lock(self) -> LockKind {
        if self.0 & Self::EXCLUSIVE != 0 { LockKind::Write } else { LockKind::Read }
    }
}

/// Something that exists before the first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Initial {
    pub(crate) path: u32,
    pub(crate) directory: bool,
    pub(crate) size: u64,
}

/// A file that is open before the first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opened {
    /// The thread that opens it.
    pub(crate) thread: u32,
    pub(crate) handle: u32,
    pub(crate) path: u32,
    pub(crate) flags: Flags,
}

/// All paths of a trace, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Paths {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Paths {
    pub(crate) fn get(&self, path: u32) -> &[u8] {
        let at = path as usize;
        let start = if at == 0 { 0 } else { self.ends.get(at - 1).copied().unwrap_or(0) };
        self.bytes.get(start..self.ends.get(at).copied().unwrap_or(start)).unwrap_or_default()
    }

    pub(crate) fn push(&mut self, path: &[u8]) -> u32 {
        self.bytes.extend_from_slice(path);
        self.ends.push(self.bytes.len());
        u32::try_from(self.ends.len() - 1).unwrap_or(NONE)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

impl Plan {
    /// Whether it makes symbolic links, which may lead anywhere.
    pub(crate) fn makes_links(&self) -> bool {
        self.calls.iter().any(|call| call.kind == Some(OperationKind::Symlink))
    }

    /// Threads, each of which a worker replays.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Calls that are replayed.
    pub fn calls(&self) -> u64 {
        self.calls.iter().filter(|call| call.kind.is_some()).count() as u64
    }

    /// Files that exist before, and their bytes.
    pub fn files(&self) -> (u64, u64) {
        let files = self.initial.iter().filter(|initial| !initial.directory);
        files.fold((0, 0), |(count, bytes), file| (count + 1, bytes + file.size))
    }

    /// The kinds of operations in it, in a fixed order.
    pub(crate) fn kinds(&self) -> Vec<OperationKind> {
        let mut found = std::collections::BTreeSet::new();
        found.extend(self.calls.iter().filter_map(|call| call.kind));
        found.into_iter().collect()
    }

    /// Bytes of the largest read or write.
    pub(crate) fn largest(&self) -> usize {
        let moves = |call: &&Call| call.kind.is_some_and(OperationKind::moves_data);
        self.calls.iter().filter(moves).map(|call| call.length as usize).max().unwrap_or(0)
    }

    /// A number that tells plans apart: that all hosts of a run replay the same is proved by it.
    pub fn fingerprint(&self) -> u64 {
        use crate::random::mix;
        let mut hash = mix(self.calls.len() as u64, self.threads.len() as u64, self.paths.len() as u64);
        for call in &self.calls {
            let kind = call.kind.map_or(0, |kind| kind as u64 + 1);
            hash = mix(
                hash,
                call.at_ns ^ call.offset.rotate_left(32),
                u64::from(call.object) << 32 | u64::from(call.other),
            );
            hash = mix(
                hash,
                u64::from(call.length) << 32 | u64::from(call.moved),
                kind << 32 | u64::from(call.error),
            );
        }
        for byte in &self.paths.bytes {
            hash = hash.rotate_left(5) ^ u64::from(*byte).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        self.initial.iter().fold(hash, |hash, initial| mix(hash, initial.path.into(), initial.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_takes_little_memory() {
        assert_eq!(size_of::<Call>(), 48);
    }

    #[test]
    fn flags_come_through() {
        let open = OpenFlags { write: true, append: true, exclusive: true, ..OpenFlags::default() };
        assert_eq!(Flags::of(open).open(), open);
        assert_eq!(Flags(Flags::EXCLUSIVE).lock(), LockKind::Write);
    }

    #[test]
    fn paths_are_found_by_their_number() {
        let mut paths = Paths::default();
        let numbers: Vec<u32> = ["", "a", "a/b"].iter().map(|path| paths.push(path.as_bytes())).collect();
        assert_eq!(numbers.iter().map(|&n| paths.get(n)).collect::<Vec<_>>(), [&b""[..], b"a", b"a/b"]);
        assert_eq!(paths.get(7), b"");
    }
}
