//! What is kept of a file while it is open, and with a cache longer.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;

use super::ClientFile;
use super::gate::Gate;
use super::log::Log;
use crate::cache::{Access, Known, Locks, Names, Pages, Readahead, SortedRequests};
use crate::error::NfsError;
use crate::hash::Seeded;
use crate::reactor::Waiters;
use crate::types::{Handle, OpenHow};

/// Most files that are kept while they are not open.
const MOST: usize = 1 << 17;

/// A file, shared by all that have it open.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) handle: Handle,
    /// Shared by writes; alone while data are written again or flushed, and while the end of the file is looked for.
    pub(super) writing: Gate,
    /// Alone while data are made stable: who comes meanwhile waits for the outcome.
    pub(super) committing: Gate,
    /// Data written and not known to be stable, and what was written stable since.
    pub(super) log: RefCell<Log>,
    /// Earlier ones: those of the COMMIT that is under way, or that failed.
    pub(super) in_commit: RefCell<Log>,
    /// With a cache.
    pub(super) cached: Option<Box<Cached>>,
}

/// What the cache keeps of a file.
#[derive(Debug, Default)]
pub(super) struct Cached {
    pub(super) known: RefCell<Known>,
    pub(super) access: RefCell<Access>,
    pub(super) names: RefCell<Names>,
    pub(super) pages: RefCell<Pages>,
    /// Changes whenever pages are dropped or become clean: what was read before is not to be put there any more.
    pub(super) generation: Cell<u64>,
    /// Counts our changes of content and size that were answered.
    pub(super) changes: Cell<u64>,
    /// Pages that were read, runs that were written: who waits for one looks.
    pub(super) moved: Waiters,
    /// Background tasks that use it.
    pub(super) busy: Cell<usize>,
    /// Whether one of them writes behind its writers.
    pub(super) behind: Cell<bool>,
    /// Write requests, where they are kept in a list.
    pub(super) requests: RefCell<SortedRequests>,
    /// Errors of write-back in the background so far, and the last one.
    pub(super) failures: Cell<(u64, Option<NfsError>)>,
    pub(super) slots: RefCell<Vec<Rc<Slot>>>,
    /// Locks that the server does not know.
    pub(super) locks: RefCell<Locks>,
    /// Whether it may know others.
    pub(super) locked_there: Cell<bool>,
    /// Alone while files that are open only here are opened at the server.
    pub(super) opening: Gate,
}

/// An open file of a mount with a cache.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) how: OpenHow,
    /// Where it was opened.
    pub(super) directory: Handle,
    pub(super) name: Box<[u8]>,
    pub(super) owner: u64,
    pub(super) readahead: RefCell<Readahead>,
    /// Errors of write-back that were reported here, or were there before.
    pub(super) reported: Cell<u64>,
    /// `None`: under a delegation, and the server does not know of it.
    pub(super) open: RefCell<Option<Rc<ClientFile>>>,
}

/// An open file that others use than who opened it. It is not closed meanwhile: requests under way would keep it open at the
/// server, with its locks.
#[derive(Debug)]
pub(super) struct Using<'c> {
    slot: Rc<Slot>,
    cached: &'c Cached,
}

impl Deref for Using<'_> {
    type Target = Rc<Slot>;

    fn deref(&self) -> &Rc<Slot> {
        &self.slot
    }
}

impl Drop for Using<'_> {
    fn drop(&mut self) {
        self.cached.moved.wake();
    }
}

impl Cached {
    /// What has it open, to be used.
    pub(super) fn users(&self) -> Vec<Using<'_>> {
        self.slots.borrow().iter().map(|slot| Using { slot: slot.clone(), cached: self }).collect()
    }

    /// One that has it open for writing.
    pub(super) fn writer(&self) -> Option<Using<'_>> {
        let slots = self.slots.borrow();
        let slot = slots.iter().find(|slot| slot.how.write)?.clone();
        Some(Using { slot, cached: self })
    }

    /// Waits until only its owner uses an open file that is no longer listed.
    pub(super) async fn unused(&self, slot: &Rc<Slot>) {
        self.moved.until(|| self.busy.get() == 0 && Rc::strong_count(slot) == 1).await;
    }
}

impl Node {
    fn new(handle: Handle, cached: bool) -> Rc<Self> {
        Rc::new(Self {
            handle,
            writing: Gate::default(),
            committing: Gate::default(),
            log: RefCell::default(),
            in_commit: RefCell::default(),
            cached: cached.then(Box::default),
        })
    }

    fn is_idle(&self) -> bool {
        let dirty = self.cached.as_ref().is_some_and(|cached| cached.pages.borrow().is_dirty());
        !dirty && self.is_stable()
    }

    /// Whether all that was written is known to be stable.
    pub(super) fn is_stable(&self) -> bool {
        self.log.borrow().is_empty() && self.in_commit.borrow().is_empty()
    }

    /// Takes what is not known to be stable, in the order of writing.
    pub(super) fn take_unstable(&self) -> Log {
        let (mut log, mut later) = (self.in_commit.take(), self.log.take());
        if log.is_empty() {
            return later;
        }
        log.append(&mut later);
        log
    }
}

/// Files by handle: those that are open, and with a cache others too.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: RefCell<HashMap<Handle, Rc<Node>, Seeded>>,
    /// Without a cache: for the next ones that are opened.
    spare: RefCell<Vec<Rc<Node>>>,
    cached: bool,
}

impl Nodes {
    pub(super) fn new(cached: bool) -> Self {
        Self { cached, ..Self::default() }
    }

    /// The file of a handle.
    pub(super) fn get(&self, handle: &Handle) -> Rc<Node> {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(node) = nodes.get(handle) {
            return node.clone();
        }
        let mut node = match self.spare.borrow_mut().pop() {
            Some(spare) => spare,
            None => Node::new(*handle, self.cached),
        };
        // No other node has a spare one.
        if let Some(node) = Rc::get_mut(&mut node) {
            node.handle = *handle;
        }
        nodes.insert(*handle, node.clone());
        node
    }

    /// The file of a handle if something is kept of it.
    pub(super) fn find(&self, handle: &Handle) -> Option<Rc<Node>> {
        self.nodes.borrow().get(handle).cloned()
    }

    /// Forgets files that are not in use if there are too many; calls `leave` for each before.
    pub(super) fn trim(&self, leave: impl Fn(&Cached)) {
        let mut nodes = self.nodes.borrow_mut();
        if nodes.len() <= MOST {
            return;
        }
        nodes.retain(|_, node| {
            let idle = Rc::strong_count(node) == 1 && node.is_idle();
            if let Some(cached) = node.cached.as_ref().filter(|_| idle) {
                leave(cached);
            }
            !idle
        });
    }

    /// Files with data that are not stable at the server.
    pub(super) fn busy(&self) -> Vec<Rc<Node>> {
        let nodes = self.nodes.borrow();
        let mut busy: Vec<_> = nodes.values().filter(|node| !node.is_idle()).cloned().collect();
        busy.sort_unstable_by_key(|node| node.handle);
        busy
    }

    /// One of those that have it open lets go of it. Returns what the last one could not make stable.
    pub(super) fn release(&self, node: Rc<Node>) -> Option<Log> {
        let open = match &node.cached {
            Some(cached) => !cached.slots.borrow().is_empty(),
            // The table has one, and we have one.
            None => Rc::strong_count(&node) > 2,
        };
        if open {
            return None;
        }
        let log = node.take_unstable();
        if !self.cached {
            self.nodes.borrow_mut().remove(&node.handle);
            self.spare.borrow_mut().push(node);
        }
        Some(log)
    }
}
