//! What a trace tells about the files it works on: which were there before, how large they were, and which calls of
//! different threads depend on each other. A trace is gone through once, in the order in which its calls ended.

use std::collections::HashMap;

use super::plan::{After, Call, Flags, Initial, NONE, Opened, Paths, Plan, Thread};
use crate::model::OperationKind;

/// Makes a [`Plan`] call by call.
#[derive(Debug, Default)]
pub(crate) struct World {
    paths: Paths,
    numbers: HashMap<Box<[u8]>, u32>,
    names: Vec<Name>,
    nodes: Vec<Node>,
    /// Directories that got another name, in order.
    moves: Vec<Move>,
    handles: Vec<Handle>,
    opened: Vec<Opened>,
    threads: Vec<(String, Vec<Call>)>,
    /// By thread: up to which call of another it has waited for.
    waited: Vec<HashMap<u32, u32>>,
    /// By thread: what its next call has to wait for.
    next: Vec<Vec<After>>,
}

/// A directory that got another name.
#[derive(Debug)]
struct Move {
    from: Box<[u8]>,
    to: Box<[u8]>,
}

/// A name in the tree.
#[derive(Debug, Clone, Copy)]
struct Name {
    parent: u32,
    state: State,
    /// The call that last changed what the name stands for, that last used it, and that last changed something in it.
    changed: After,
    used: After,
    inside: After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Unknown,
    Absent,
    Present(u32),
}

/// A file or directory.
#[derive(Debug, Clone, Copy)]
struct Node {
    directory: bool,
    /// Its path before the first call; [`NONE`] when the trace made it.
    initial: u32,
    /// Bytes it had in the beginning, as far as is known.
    size: u64,
    /// End of what the trace has written: reads up to there prove nothing.
    written: u64,
    /// Emptied or cut: sizes seen later are not those of the beginning.
    cut: bool,
    /// The call that last wrote to it.
    writer: After,
}

#[derive(Debug, Clone, Copy)]
struct Handle {
    node: u32,
    made: After,
    used: After,
}

impl World {
    /// A new thread of this name.
    pub(crate) fn thread(&mut self, name: String) -> u32 {
        self.threads.push((name, Vec::new()));
        self.waited.push(HashMap::new());
        self.next.push(Vec::new());
        u32::try_from(self.threads.len() - 1).unwrap_or(NONE)
    }

    /// What `thread` does next comes after all that `other` has done so far: it was made by it, or has waited for its end.
    pub(crate) fn follows(&mut self, thread: u32, other: u32) {
        let done = self.threads[other as usize].1.len();
        if let Some(last) = done.checked_sub(1).and_then(|last| u32::try_from(last).ok()) {
            self.next[thread as usize].push(After { thread: other, call: last });
        }
    }

    /// The number of a path, which is relative and normal.
    pub(crate) fn path(&mut self, path: &[u8]) -> u32 {
        if let Some(&number) = self.numbers.get(path) {
            return number;
        }
        let parent = match path.iter().rposition(|&byte| byte == b'/') {
            Some(at) => self.path(&path[..at]),
            None if path.is_empty() => NONE,
            None => self.path(b""),
        };
        let number = self.paths.push(path);
        self.numbers.insert(path.into(), number);
        let state = State::Unknown;
        let (changed, used, inside) = (After::NOTHING, After::NOTHING, After::NOTHING);
        self.names.push(Name { parent, state, changed, used, inside });
        if path.is_empty() {
            let node = self.node(true, NONE);
            self.names[number as usize].state = State::Present(node);
        }
        number
    }

    fn node(&mut self, directory: bool, initial: u32) -> u32 {
        self.nodes.push(Node { directory, initial, size: 0, written: 0, cut: false, writer: After::NOTHING });
        u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
    }

    /// A call found something under this name: if nothing was known, it was there in the beginning.
    fn exists(&mut self, path: u32, directory: bool) -> u32 {
        match self.names[path as usize].state {
            State::Present(node) => return node,
            State::Absent => {
                // A call that is not in the trace made it; the replay will say that it is missing.
                let node = self.node(directory, NONE);
                self.names[path as usize].state = State::Present(node);
                return node;
            }
            State::Unknown => {}
        }
        let parent = self.names[path as usize].parent;
        let above = if parent == NONE { NONE } else { self.exists(parent, true) };
        // In a directory that the trace made nothing was before.
        let in_made = above != NONE && self.nodes[above as usize].initial == NONE && !self.is_top(parent);
        let initial = if in_made { NONE } else { self.before_moves(path) };
        let node = self.node(directory, initial);
        self.names[path as usize].state = State::Present(node);
        node
    }

    fn is_top(&self, path: u32) -> bool {
        self.names[path as usize].parent == NONE
    }

    /// The path that something had before directories above it were moved.
    fn before_moves(&mut self, path: u32) -> u32 {
        if self.moves.is_empty() {
            return path;
        }
        let mut now = self.paths.get(path).to_vec();
        for Move { from, to } in self.moves.iter().rev() {
            if let Some(rest) = now.strip_prefix(&**to).filter(|rest| rest.first() == Some(&b'/')) {
                now = [from, rest].concat();
            }
        }
        self.path(&now)
    }

    /// A call did not find this name.
    fn missing(&mut self, path: u32) {
        let name = &mut self.names[path as usize];
        if name.state == State::Unknown {
            name.state = State::Absent;
        }
    }

    fn made(&mut self, path: u32, directory: bool) -> u32 {
        let parent = self.names[path as usize].parent;
        if parent != NONE {
            self.exists(parent, true);
        }
        let node = self.node(directory, NONE);
        self.names[path as usize].state = State::Present(node);
        node
    }

    fn renamed(&mut self, from: u32, to: u32) {
        let node = self.exists(from, false);
        let parent = self.names[to as usize].parent;
        if parent != NONE {
            self.exists(parent, true);
        }
        self.names[from as usize].state = State::Absent;
        self.names[to as usize].state = State::Present(node);
        let (old, new) = (self.paths.get(from).to_vec(), self.paths.get(to).to_vec());
        let below: Vec<u32> = (0..self.paths.len() as u32)
            .filter(|&path| {
                let rest = self.paths.get(path).strip_prefix(&old[..]);
                rest.is_some_and(|rest| rest.first() == Some(&b'/'))
            })
            .collect();
        // What is known to be a directory only by what is in it.
        if !self.nodes[node as usize].directory && below.is_empty() {
            return;
        }
        self.nodes[node as usize].directory = true;
        for path in below {
            let state = std::mem::replace(&mut self.names[path as usize].state, State::Absent);
            let moved = [&new[..], &self.paths.get(path)[old.len()..]].concat();
            let moved = self.path(&moved);
            if state != State::Unknown {
                self.names[moved as usize].state = state;
            }
        }
        self.moves.push(Move { from: old.into(), to: new.into() });
    }

    /// A new handle on something that exists under this name.
    fn open(&mut self, node: u32) -> u32 {
        self.handles.push(Handle { node, made: After::NOTHING, used: After::NOTHING });
        u32::try_from(self.handles.len() - 1).unwrap_or(NONE)
    }

    /// A file that was open before the first call of the trace.
    pub(crate) fn open_before(&mut self, thread: u32, path: u32) -> u32 {
        let node = self.exists(path, false);
        let handle = self.open(node);
        self.opened.push(Opened { thread, handle, path, flags: Flags(0) });
        handle
    }

    /// A handle that was open before is used in this way.
    pub(crate) fn used_before(&mut self, handle: u32, flags: Flags) {
        if let Some(opened) = self.opened.iter_mut().find(|opened| opened.handle == handle) {
            opened.flags.0 |= flags.0;
        }
    }

    /// What a call told about the size of the file under this name.
    pub(crate) fn size_of_path(&mut self, path: u32, size: u64) {
        if let State::Present(node) = self.names[path as usize].state {
            self.size_is(node, size);
        }
    }

    /// What a call told about the size of an open file.
    pub(crate) fn size_of_handle(&mut self, handle: u32, size: u64) {
        self.size_is(self.handles[handle as usize].node, size);
    }

    fn size_is(&mut self, node: u32, size: u64) {
        let node = &mut self.nodes[node as usize];
        if !node.cut && size > node.written && !node.directory {
            node.size = node.size.max(size);
        }
    }

    /// Adds a call of `thread`, in the order of the trace. A successful open or create gets a new handle, which is
    /// returned, else [`NONE`].
    pub(crate) fn call(&mut self, thread: u32, mut call: Call) -> u32 {
        let Some(kind) = call.kind else { return NONE };
        let number = u32::try_from(self.threads[thread as usize].1.len()).unwrap_or(NONE);
        let mut after = std::mem::take(&mut self.next[thread as usize]);
        if call.on_handle() {
            self.handle_before(&call, kind, &mut after)
        } else {
            self.names_before(&call, kind, &mut after)
        }
        // Of several calls of a thread the last one tells of all.
        after.sort_by_key(|after| std::cmp::Reverse(after.call));
        after.retain(|after| self.must_wait(thread, *after));
        // All but one are waited for by calls of their own.
        let more = after.len().saturating_sub(1);
        let calls = &mut self.threads[thread as usize].1;
        for wait in &after[..more] {
            calls.push(Call { after: *wait, kind: None, ..call });
        }
        call.after = after.last().copied().unwrap_or(After::NOTHING);
        let this = After { thread, call: number + more as u32 };
        let handle = if call.on_handle() {
            self.on_handle(&call, kind, this);
            NONE
        } else {
            self.by_name(&mut call, kind, this)
        };
        self.threads[thread as usize].1.push(call);
        handle
    }

    /// Whether a thread has not yet waited for that call.
    fn must_wait(&mut self, thread: u32, after: After) -> bool {
        if after.thread == NONE || after.thread == thread {
            return false;
        }
        let waited = &mut self.waited[thread as usize];
        if waited.get(&after.thread).is_some_and(|&call| call >= after.call) {
            return false;
        }
        waited.insert(after.thread, after.call);
        true
    }

    fn handle_before(&self, call: &Call, kind: OperationKind, after: &mut Vec<After>) {
        let handle = &self.handles[call.object as usize];
        after.push(handle.made);
        if kind == OperationKind::Read {
            after.push(self.nodes[handle.node as usize].writer);
        }
        if kind == OperationKind::Close {
            after.push(handle.used);
        }
    }

    fn names_before(&self, call: &Call, kind: OperationKind, after: &mut Vec<After>) {
        let second = if second_path(kind) { call.other } else { NONE };
        for path in [call.object, second].into_iter().filter(|&path| path != NONE) {
            let name = &self.names[path as usize];
            after.push(name.changed);
            if changes_names(kind) {
                after.extend([name.used, name.inside]);
            }
            let mut above = name.parent;
            while above != NONE {
                after.push(self.names[above as usize].changed);
                above = self.names[above as usize].parent;
            }
        }
    }

    fn on_handle(&mut self, call: &Call, kind: OperationKind, this: After) {
        let handle = &mut self.handles[call.object as usize];
        handle.used = this;
        let node = handle.node;
        let end = call.offset.checked_add(call.moved.into());
        if kind == OperationKind::Write {
            self.nodes[node as usize].writer = this;
        }
        match (kind, end) {
            (OperationKind::Read, Some(end)) if call.moved > 0 => self.size_is(node, end),
            (OperationKind::Write, Some(end)) if call.offset != u64::MAX => {
                let node = &mut self.nodes[node as usize];
                node.written = node.written.max(end);
            }
            // Where it went only the size tells.
            (OperationKind::Write, _) => self.nodes[node as usize].cut = true,
            (OperationKind::Truncate | OperationKind::Allocate, _) => self.nodes[node as usize].cut = true,
            _ => {}
        }
    }

    fn by_name(&mut self, call: &mut Call, kind: OperationKind, this: After) -> u32 {
        let path = call.object;
        if call.error != 0 {
            match i32::from(call.error) {
                libc::ENOENT if second_path(kind) => {}
                libc::ENOENT => self.missing(path),
                libc::EEXIST | libc::ENOTEMPTY if !second_path(kind) => {
                    self.exists(path, kind == OperationKind::Mkdir || kind == OperationKind::Rmdir);
                }
                _ => {}
            }
            self.names[path as usize].used = this;
            return NONE;
        }
        let mut opened = NONE;
        match kind {
            OperationKind::Open | OperationKind::Create => {
                let unknown = self.names[path as usize].state == State::Unknown;
                let absent = self.names[path as usize].state == State::Absent;
                let open = call.flags.open();
                let creates =
                    kind == OperationKind::Create && (absent || open.exclusive || (unknown && open.truncate));
                let node = if creates { self.made(path, false) } else { self.exists(path, false) };
                if open.truncate && !creates {
                    self.nodes[node as usize].cut = true;
                }
                opened = self.open(node);
                self.handles[opened as usize].made = this;
                call.other = opened;
                if creates { self.changed(path, this) } else { self.names[path as usize].used = this }
            }
            OperationKind::Mkdir => {
                self.made(path, true);
                self.changed(path, this);
            }
            OperationKind::Unlink | OperationKind::Rmdir => {
                self.exists(path, kind == OperationKind::Rmdir);
                self.names[path as usize].state = State::Absent;
                self.changed(path, this);
            }
            OperationKind::Rename => {
                self.renamed(path, call.other);
                self.changed(path, this);
                self.changed(call.other, this);
            }
            OperationKind::Link => {
                let node = self.exists(path, false);
                self.made(call.other, false);
                self.names[call.other as usize].state = State::Present(node);
                self.names[path as usize].used = this;
                self.changed(call.other, this);
            }
            OperationKind::Symlink => {
                self.made(path, false);
                self.changed(path, this);
            }
            OperationKind::Readdir | OperationKind::ReaddirStat => {
                self.exists(path, true);
                self.names[path as usize].used = this;
            }
            _ => {
                let node = self.exists(path, false);
                if kind == OperationKind::Truncate {
                    self.nodes[node as usize].cut = true;
                }
                self.names[path as usize].used = this;
            }
        }
        opened
    }

    fn changed(&mut self, path: u32, this: After) {
        self.names[path as usize].changed = this;
        let parent = self.names[path as usize].parent;
        if parent != NONE {
            self.names[parent as usize].inside = this;
        }
    }

    /// What a call by name found is a directory.
    pub(crate) fn is_directory(&mut self, path: u32) {
        if let State::Present(node) = self.names[path as usize].state {
            self.nodes[node as usize].directory = true;
        }
    }

    /// Everything that was gathered. Threads without calls are left out.
    pub(crate) fn finish(self) -> Plan {
        let mut initial: Vec<Initial> = self
            .nodes
            .iter()
            .filter(|node| node.initial != NONE)
            .map(|node| Initial { path: node.initial, directory: node.directory, size: node.size })
            .collect();
        // Whatever has something in it is a directory.
        let above: std::collections::HashSet<u32> =
            initial.iter().map(|entry| self.names[entry.path as usize].parent).collect();
        for entry in &mut initial {
            entry.directory |= above.contains(&entry.path);
        }
        // A parent's path is shorter.
        initial.sort_by_key(|entry| (!entry.directory, self.paths.get(entry.path).len(), entry.path));
        let begin = self.threads.iter().filter_map(|(_, calls)| calls.first()).map(|call| call.at_ns).min();
        let begin = begin.unwrap_or(0);
        let mut numbers = vec![NONE; self.threads.len()];
        let (mut threads, mut calls) = (Vec::new(), Vec::new());
        let opens = |thread: u32| self.opened.iter().any(|opened| opened.thread == thread);
        for (old, (name, own)) in (0u32..).zip(self.threads) {
            if own.is_empty() && !opens(old) {
                continue;
            }
            numbers[old as usize] = u32::try_from(threads.len()).unwrap_or(NONE);
            let from = calls.len();
            calls.extend(own);
            threads.push(Thread { name, calls: from..calls.len() });
        }
        let new = |old: u32| numbers.get(old as usize).copied().unwrap_or(NONE);
        let mut span_ns = 0;
        for call in &mut calls {
            call.at_ns = call.at_ns.saturating_sub(begin);
            span_ns = span_ns.max(call.at_ns);
            call.after.thread = new(call.after.thread);
        }
        let opened =
            self.opened.iter().map(|opened| Opened { thread: new(opened.thread), ..*opened }).collect();
        let left_out = std::collections::BTreeMap::new();
        Plan { threads, calls, paths: self.paths, initial, opened, left_out, span_ns }
    }
}

fn second_path(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::Rename | OperationKind::Link)
}

fn changes_names(kind: OperationKind) -> bool {
    use OperationKind::{Create, Link, Mkdir, Rename, Rmdir, Symlink, Unlink};
    matches!(kind, Create | Link | Mkdir | Rename | Rmdir | Symlink | Unlink)
}
