//! Traces of earlier runs.
//!
//! Such a trace has no handles: a read or write is on what its worker opened last of that file. Workers that kept several
//! operations outstanding become as many threads as had one at the same time.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use benchmaster_trace::TraceFacts;

use super::plan::{Call, Flags, LeftOut, NONE, Plan, Why};
use super::world::World;
use super::{ReplayError, TraceError};
use crate::files::{FileTable, PathBuffer, Picked};
use crate::model::{OperationKind, Sharing};
use crate::program::flags::OpenFlags;
use crate::recording::{NO_FILE, TraceRecord};

pub(super) fn read(path: &Path) -> Result<Plan, ReplayError> {
    let mut records = Vec::new();
    let info = benchmaster_trace::read(path, |batch| records.extend_from_slice(batch))
        .map_err(ReplayError::Trace)?;
    if info.facts.filesets.is_empty() || info.facts.workers.is_empty() {
        return Err(ReplayError::NoFiles(path.into()));
    }
    let damaged = |detail: String| ReplayError::Trace(TraceError::Format { path: path.into(), detail });
    // In the order in which they ended, so that what made a file comes before what used it.
    records.sort_by_key(|record| (record.start_ns.saturating_add(record.latency_ns), record.start_ns));
    let mut reader = Reader::new(&info.facts);
    for record in &records {
        reader.record(record).map_err(|what| damaged(what.into()))?;
    }
    Ok(reader.finish())
}

/// One stream of a worker.
struct Stream {
    thread: u32,
    /// End of its last operation.
    free_at: u64,
}

struct Reader<'f> {
    facts: &'f TraceFacts,
    /// By client and fileset.
    tables: HashMap<(u32, u16), Arc<FileTable>>,
    world: World,
    streams: Vec<Vec<Stream>>,
    /// Handles that workers have open, the last one last: by worker, fileset and file.
    open: HashMap<(u32, u16, u32), Vec<u32>>,
    /// Files that have the name that a rename gives them: by client (or all), fileset and file.
    renamed: HashMap<(u32, u16, u32), bool>,
    left_out: HashMap<(Why, OperationKind), u64>,
}

impl<'f> Reader<'f> {
    fn new(facts: &'f TraceFacts) -> Self {
        let streams = facts.workers.iter().map(|_| Vec::new()).collect();
        Self {
            facts,
            tables: HashMap::new(),
            world: World::default(),
            streams,
            open: HashMap::new(),
            renamed: HashMap::new(),
            left_out: HashMap::new(),
        }
    }

    fn record(&mut self, record: &TraceRecord) -> Result<(), &'static str> {
        let series = self.facts.series.get(usize::from(record.series)).ok_or("a series has no name")?;
        let worker = self.facts.workers.get(record.worker as usize).ok_or("a worker is not described")?;
        let kind = series.operation;
        if record.file == NO_FILE {
            *self.left_out.entry((Why::Incomplete, kind)).or_default() += 1;
            return Ok(());
        }
        let fileset = self.facts.filesets.iter().nth(record.fileset.into());
        let (name, fileset) = fileset.ok_or("a fileset is not described")?;
        let shared = fileset.sharing == Sharing::Shared;
        let client = worker.client;
        let seed = self.facts.fileset_seed;
        let table = self.tables.entry((if shared { NONE } else { client }, record.fileset));
        let table = table
            .or_insert_with(|| {
                Arc::new(FileTable::new(name, fileset, (!shared).then_some(client), seed, None))
            })
            .clone();
        if u64::from(record.file) >= table.files() {
            return Err("a file's number is too large");
        }
        let thread = self.thread(record, &worker.group);
        self.call(record, kind, thread, &table, if shared { NONE } else { client });
        Ok(())
    }

    /// The thread of an operation: the first stream of its worker that is free when it starts.
    fn thread(&mut self, record: &TraceRecord, group: &str) -> u32 {
        let end = record.start_ns.saturating_add(record.latency_ns);
        let streams = &mut self.streams[record.worker as usize];
        // Operations come in the order of their ends: one stream may not begin one before the last has ended.
        if let Some(stream) = streams.iter_mut().find(|stream| stream.free_at <= record.start_ns) {
            stream.free_at = end;
            return stream.thread;
        }
        let thread = self.world.thread(format!("{group}-{}.{}", record.worker, streams.len()));
        streams.push(Stream { thread, free_at: end });
        thread
    }

    fn path(&mut self, table: &FileTable, picked: Picked, other: bool) -> u32 {
        let mut path = PathBuffer::new();
        table.file_path(Picked { renamed: picked.renamed != other, ..picked }, &mut path);
        self.world.path(path.bytes())
    }

    fn call(
        &mut self,
        record: &TraceRecord,
        kind: OperationKind,
        thread: u32,
        table: &FileTable,
        owner: u32,
    ) {
        let place = (owner, record.fileset, record.file);
        let renamed = self.renamed.get(&place).copied().unwrap_or(false);
        let picked = Picked { file: record.file.into(), renamed };
        let path = self.path(table, picked, false);
        let mut call = Call { error: record.error, ..Call::new(record.start_ns, kind, path) };
        let key = (record.worker, record.fileset, record.file);
        if kind.needs_handle() {
            let handle = match self.open.get(&key).and_then(|open| open.last()) {
                Some(&handle) => handle,
                // It was opened before the measured phase.
                None => {
                    let handle = self.world.open_before(thread, path);
                    self.open.insert(key, vec![handle]);
                    handle
                }
            };
            call = Call { object: handle, offset: record.offset, flags: Flags(Flags::HANDLE), ..call };
            (call.length, call.moved) = (record.bytes, record.bytes);
            if kind == OperationKind::Write {
                if record.offset == u64::MAX {
                    call.flags.0 |= Flags::APPENDS;
                }
                let append = record.offset == u64::MAX;
                let flags = OpenFlags { write: true, append, ..OpenFlags::default() };
                self.world.used_before(handle, Flags::of(flags));
            }
            self.world.call(thread, call);
            if kind == OperationKind::Close {
                self.open.entry(key).or_default().pop();
            }
            return;
        }
        match kind {
            OperationKind::Open | OperationKind::Create => {
                // How it was opened the trace does not say; a file for writing can be read too.
                call.flags = Flags::of(OpenFlags { write: true, ..OpenFlags::default() });
                let handle = self.world.call(thread, call);
                if handle != NONE {
                    self.open.entry(key).or_default().push(handle);
                }
            }
            OperationKind::Rename => {
                call.other = self.path(table, picked, true);
                self.world.call(thread, call);
                if record.error == 0 {
                    self.renamed.insert(place, !renamed);
                }
            }
            OperationKind::Readdir
            | OperationKind::ReaddirStat
            | OperationKind::Mkdir
            | OperationKind::Rmdir => {
                let mut directory = PathBuffer::new();
                table.directory_path(table.directory_of(record.file.into()), &mut directory);
                if matches!(kind, OperationKind::Mkdir | OperationKind::Rmdir) {
                    directory.push(b"/d");
                    directory.push_number(record.file.into(), 8);
                }
                call.object = self.world.path(directory.bytes());
                self.world.call(thread, call);
            }
            OperationKind::Unlink
            | OperationKind::Stat
            | OperationKind::Access
            | OperationKind::Utimes
            | OperationKind::Readlink
            | OperationKind::Getxattr
            | OperationKind::Listxattr
            | OperationKind::Removexattr => {
                self.world.call(thread, call);
                if kind == OperationKind::Unlink && record.error == 0 {
                    self.renamed.remove(&place);
                }
            }
            _ => *self.left_out.entry((Why::Unsupported, kind)).or_default() += 1,
        }
    }

    fn finish(self) -> Plan {
        let mut plan = self.world.finish();
        let left_out = self.left_out.into_iter();
        plan.left_out =
            left_out.map(|((why, kind), count)| (LeftOut { why, call: kind.name().into() }, count)).collect();
        plan
    }
}
