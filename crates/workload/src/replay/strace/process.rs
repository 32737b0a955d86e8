//! Threads, processes and their descriptors as a trace goes on.

use std::collections::HashMap;

use super::line::{decorated, number};

/// What a descriptor stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// An open file: the handle in the plan, and its path.
    File { handle: u32, path: u32 },
    /// A directory, and whether it has been listed.
    Directory { path: u32, listed: bool },
    /// Something that is not replayed.
    Elsewhere,
}

/// An open file description: what descriptors that were duplicated or inherited share.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) target: Target,
    /// Its absolute path on the traced machine, of a directory.
    pub(super) absolute: Vec<u8>,
    pub(super) position: u64,
    pub(super) append: bool,
    users: u32,
}

/// A descriptor of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Descriptor {
    pub(super) description: usize,
    pub(super) close_on_exec: bool,
}

/// What a new thread shares with the one that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) files: bool,
    pub(super) directory: bool,
}

#[derive(Debug, Clone, Default)]
struct Table {
    descriptors: HashMap<i64, Descriptor>,
    users: u32,
}

#[derive(Debug, Clone, Copy)]
struct Thread {
    plan: u32,
    table: usize,
    directory: usize,
}

/// All threads that have been seen.
#[derive(Debug)]
pub(super) struct Processes {
    start: Vec<u8>,
    threads: HashMap<u32, Thread>,
    /// Threads that have ended, in the plan.
    ended: HashMap<u32, u32>,
    tables: Vec<Table>,
    directories: Vec<Vec<u8>>,
    descriptions: Vec<Description>,
    /// Descriptions that nobody uses any more.
    free: Vec<usize>,
}

impl Processes {
    pub(super) fn new(start: Vec<u8>) -> Self {
        Self {
            start,
            threads: HashMap::new(),
            ended: HashMap::new(),
            tables: Vec::new(),
            directories: Vec::new(),
            descriptions: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(super) fn knows(&self, pid: u32) -> bool {
        self.threads.contains_key(&pid)
    }

    /// The thread in the plan.
    pub(super) fn thread(&self, pid: u32) -> u32 {
        self.threads.get(&pid).map_or(0, |thread| thread.plan)
    }

    /// The thread in the plan of one that has ended.
    pub(super) fn ended(&self, pid: u32) -> Option<u32> {
        self.ended.get(&pid).copied()
    }

    /// A thread whose parent is not known.
    pub(super) fn first(&mut self, pid: u32, plan: u32) {
        self.tables.push(Table { users: 1, ..Table::default() });
        self.directories.push(self.start.clone());
        let thread = Thread { plan, table: self.tables.len() - 1, directory: self.directories.len() - 1 };
        self.threads.insert(pid, thread);
    }

    /// A thread that `parent` made.
    pub(super) fn child(&mut self, parent: u32, pid: u32, plan: u32, shares: Shares) {
        let Some(&from) = self.threads.get(&parent) else { return self.first(pid, plan) };
        let table = if shares.files {
            self.tables[from.table].users += 1;
            from.table
        } else {
            self.copy(from.table)
        };
        let directory = if shares.directory {
            from.directory
        } else {
            self.directories.push(self.directories[from.directory].clone());
            self.directories.len() - 1
        };
        self.threads.insert(pid, Thread { plan, table, directory });
    }

    fn copy(&mut self, table: usize) -> usize {
        let copied = Table { users: 1, ..self.tables[table].clone() };
        for descriptor in copied.descriptors.values() {
            self.descriptions[descriptor.description].users += 1;
        }
        self.tables.push(copied);
        self.tables.len() - 1
    }

    /// A thread has ended. Returns the handles that nobody uses any more.
    pub(super) fn end(&mut self, pid: u32) -> Vec<u32> {
        let Some(thread) = self.threads.remove(&pid) else { return Vec::new() };
        self.ended.insert(pid, thread.plan);
        let table = &mut self.tables[thread.table];
        table.users -= 1;
        if table.users > 0 {
            return Vec::new();
        }
        let left = std::mem::take(&mut table.descriptors);
        self.release_all(left.into_values().collect())
    }

    /// Another program begins. Returns the handles that nobody uses any more.
    pub(super) fn executes(&mut self, pid: u32) -> Vec<u32> {
        let Some(thread) = self.threads.get(&pid).copied() else { return Vec::new() };
        let mut own = thread.table;
        if self.tables[own].users > 1 {
            self.tables[own].users -= 1;
            own = self.copy(own);
            if let Some(thread) = self.threads.get_mut(&pid) {
                thread.table = own;
            }
        }
        let table = &mut self.tables[own].descriptors;
        let closed: Vec<Descriptor> = table.values().filter(|fd| fd.close_on_exec).copied().collect();
        table.retain(|_, fd| !fd.close_on_exec);
        self.release_all(closed)
    }

    fn release_all(&mut self, mut descriptors: Vec<Descriptor>) -> Vec<u32> {
        descriptors.sort_by_key(|descriptor| descriptor.description);
        descriptors.into_iter().filter_map(|descriptor| self.release(descriptor)).collect()
    }

    /// A descriptor is gone. Returns the handle when it was the last one.
    pub(super) fn release(&mut self, descriptor: Descriptor) -> Option<u32> {
        let description = &mut self.descriptions[descriptor.description];
        description.users -= 1;
        if description.users > 0 {
            return None;
        }
        self.free.push(descriptor.description);
        match description.target {
            Target::File { handle, .. } => Some(handle),
            Target::Directory { .. } | Target::Elsewhere => None,
        }
    }

    /// Opens a new description under a number. Returns the handle that lost its last descriptor by that.
    pub(super) fn open(
        &mut self,
        pid: u32,
        fd: i64,
        (target, absolute): (Target, Vec<u8>),
        append: bool,
        close_on_exec: bool,
    ) -> Option<u32> {
        let new = Description { target, absolute, position: 0, append, users: 0 };
        let description = match self.free.pop() {
            Some(place) => {
                self.descriptions[place] = new;
                place
            }
            None => {
                self.descriptions.push(new);
                self.descriptions.len() - 1
            }
        };
        self.put(pid, fd, Descriptor { description, close_on_exec })
    }

    /// Another number for what a descriptor stands for.
    pub(super) fn put(&mut self, pid: u32, fd: i64, descriptor: Descriptor) -> Option<u32> {
        self.descriptions[descriptor.description].users += 1;
        let table = self.threads.get(&pid)?.table;
        let before = self.tables[table].descriptors.insert(fd, descriptor);
        before.and_then(|before| self.release(before))
    }

    pub(super) fn get(&self, pid: u32, fd: i64) -> Option<Descriptor> {
        self.tables[self.threads.get(&pid)?.table].descriptors.get(&fd).copied()
    }

    /// Takes a descriptor out of its table without giving up what it stands for.
    pub(super) fn take(&mut self, pid: u32, fd: i64) -> Option<Descriptor> {
        self.tables[self.threads.get(&pid)?.table].descriptors.remove(&fd)
    }

    pub(super) fn set_close_on_exec(&mut self, pid: u32, fd: i64, on: bool) {
        if let Some(thread) = self.threads.get(&pid)
            && let Some(descriptor) = self.tables[thread.table].descriptors.get_mut(&fd)
        {
            descriptor.close_on_exec = on;
        }
    }

    pub(super) fn description(&mut self, descriptor: Descriptor) -> &mut Description {
        &mut self.descriptions[descriptor.description]
    }

    /// The working directory of a thread.
    pub(super) fn directory(&self, pid: u32) -> &[u8] {
        self.threads.get(&pid).map_or(&self.start, |thread| &self.directories[thread.directory])
    }

    pub(super) fn change_directory(&mut self, pid: u32, to: Vec<u8>) {
        if let Some(thread) = self.threads.get(&pid) {
            self.directories[thread.directory] = to;
        }
    }
}

/// What the flags in the arguments of a call that makes a thread say.
pub(super) fn shares(arguments: &[u8]) -> Shares {
    let has = |flag: &[u8]| super::line::find(arguments, flag).is_some();
    Shares { files: has(b"CLONE_FILES"), directory: has(b"CLONE_FS") }
}

/// The number of the descriptor that a text begins with.
pub(super) fn descriptor_number(text: &[u8]) -> Option<i64> {
    number(decorated(text.trim_ascii()).0)
}
