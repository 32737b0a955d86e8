//! Write-back in the background, and how writers are held back by it.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::{Mount, Node, PAGE, parts};
use crate::cache::{CacheCount, CacheCounts};
use crate::error::NfsError;
use crate::mount::gate::Gate;
use crate::mount::node::Slot;
use crate::options::Throttle;
use crate::protocol::NfsResult;
use crate::reactor::Waiters;
use crate::types::Stability;

/// How long a writer goes on beside tasks of the background: a tick of the kernel.
const SLICE: Duration = Duration::from_millis(1);

/// Write-back of a mount.
#[derive(Debug, Default)]
pub(in crate::mount) struct Flusher {
    /// Tasks of the background that use the mount.
    tasks: Cell<usize>,
    /// Whether one of them writes back what is dirty.
    flushing: Cell<bool>,
    /// Whether one looks for what is dirty for long.
    watching: Cell<bool>,
    /// Writers that are held back.
    waiting: Cell<usize>,
    /// Pages written so far.
    written: Cell<u64>,
    /// Why the last write-back ended early.
    failed: Cell<Option<NfsError>>,
    progress: Waiters,
    /// The lock of [`Paging::send_lock`](crate::options::Paging::send_lock).
    pub(super) lock: Gate,
    /// When a writer last gave way.
    gave_way: Cell<Option<Instant>>,
}

impl Flusher {
    /// Waits until no task of the background uses the mount.
    pub(in crate::mount) async fn idle(&self) {
        self.progress.until(|| self.tasks.get() == 0).await;
    }

    /// Pages were written.
    pub(super) fn wrote(&self, pages: u64) {
        self.written.set(self.written.get() + pages);
        self.progress.wake();
    }
}

/// A task of the background that uses the mount, and perhaps what is open of a file.
#[derive(Debug)]
pub(super) struct Task {
    mount: Mount,
    node: Option<Rc<Node>>,
}

impl Task {
    pub(super) fn new(mount: &Mount, node: Option<&Rc<Node>>) -> Self {
        let task = Self { mount: Mount(mount.0.clone()), node: node.cloned() };
        task.count(1);
        task
    }

    pub(super) fn mount(&self) -> &Mount {
        &self.mount
    }

    fn count(&self, change: isize) {
        if let Some(cache) = &self.mount.0.cache {
            cache.flusher.tasks.set(cache.flusher.tasks.get().wrapping_add_signed(change));
            cache.flusher.progress.wake();
        }
        if let Some(cached) = self.node.as_ref().and_then(|node| node.cached.as_ref()) {
            cached.busy.set(cached.busy.get().wrapping_add_signed(change));
            cached.moved.wake();
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.count(-1);
    }
}

impl Mount {
    /// Pages that the server does not have, or may lose.
    fn unwritten(&self, counts: &CacheCounts) -> u64 {
        let unstable = (self.0.logs.held() as u64).div_ceil(PAGE);
        counts.set(CacheCount::Unstable, unstable);
        counts.get(CacheCount::Dirty) + counts.get(CacheCount::Writeback) + unstable
    }

    /// Counts what may be lost at this moment.
    pub(super) fn look_at_unstable(&self) {
        if let Some(cache) = &self.0.cache {
            self.unwritten(&cache.counts);
        }
    }

    /// A writer made pages dirty: write-back starts where it is due, and the writer waits where too much is dirty.
    pub(super) async fn balance(&self, dirtied: u64) -> NfsResult<()> {
        let Some(cache) = &self.0.cache else { return Ok(()) };
        let flusher = &cache.flusher;
        self.watch();
        let (background, most) = self.0.options.paging.dirty_limits();
        let (background, most) = (background / PAGE, most / PAGE);
        let unwritten = || self.unwritten(&cache.counts);
        if unwritten() > background {
            self.flush_in_background();
        }
        let throttle = self.0.options.paging.throttle;
        let goal = flusher.written.get() + dirtied;
        let waits = match throttle {
            Throttle::Pace => unwritten() > u64::midpoint(background, most),
            Throttle::Flush => unwritten() > most,
        };
        if waits {
            let may_go_on = || match throttle {
                Throttle::Pace => {
                    flusher.written.get() >= goal || unwritten() <= u64::midpoint(background, most)
                }
                Throttle::Flush => unwritten() <= background,
            };
            return self.hold_back(may_go_on).await;
        }
        self.give_way().await;
        Ok(())
    }

    /// Holds a writer back until it may go on. What write-back failed with is the error of the write.
    async fn hold_back(&self, may_go_on: impl Fn() -> bool) -> NfsResult<()> {
        let Some(cache) = &self.0.cache else { return Ok(()) };
        let flusher = &cache.flusher;
        let since = self.0.reactor.now();
        flusher.waiting.set(flusher.waiting.get() + 1);
        let mut result = Ok(());
        while !may_go_on() {
            self.flush_in_background();
            let written = flusher.written.get();
            let changed = || may_go_on() || flusher.written.get() != written || !flusher.flushing.get();
            flusher.progress.until(changed).await;
            if let Some(error) = flusher.failed.get() {
                result = Err(error);
                break;
            }
        }
        flusher.waiting.set(flusher.waiting.get() - 1);
        cache.counts.add(
            CacheCount::Throttled,
            self.0.reactor.now().saturating_duration_since(since).as_nanos() as u64,
        );
        result
    }

    /// Where the requests of a file or of the mount are limited, a writer waits while there are too many.
    pub(super) async fn limit_requests(&self, node: &Rc<Node>, slot: &Rc<Slot>) -> NfsResult<()> {
        let paging = &self.0.options.paging;
        let (soft, hard) = (u64::from(paging.max_request_soft), u64::from(paging.max_request_hard));
        let Some(cache) = self.0.cache.as_ref().filter(|_| soft + hard > 0) else { return Ok(()) };
        let cached = parts(node)?;
        let requests = {
            let pages = cached.pages.borrow();
            (pages.dirty() + pages.writing()) as u64 + (node.log.borrow().len() as u64).div_ceil(PAGE)
        };
        if soft > 0 && requests >= soft {
            self.flush(node, slot, Stability::Unstable).await?;
        }
        let full = || hard > 0 && self.unwritten(&cache.counts) >= hard;
        if full() {
            self.hold_back(|| !full()).await?;
        }
        Ok(())
    }

    /// Lets tasks of the background go on: they share a thread with the writer, which would never stop otherwise. Those
    /// that want the lock of the writer get it after each write, as from another processor.
    async fn give_way(&self) {
        let Some(cache) = &self.0.cache else { return };
        if cache.flusher.tasks.get() == 0 {
            return;
        }
        let last = cache.flusher.gave_way.get();
        if self.0.options.paging.send_lock
            || last.is_none_or(|last| self.0.reactor.now().saturating_duration_since(last) >= SLICE)
        {
            self.0.reactor.yield_now().await;
            cache.flusher.gave_way.set(Some(self.0.reactor.now()));
        }
    }

    /// Starts write-back of all files, unless it is at work.
    fn flush_in_background(&self) {
        let Some(cache) = &self.0.cache else { return };
        if cache.flusher.flushing.replace(true) {
            return;
        }
        cache.flusher.failed.set(None);
        let task = Task::new(self, None);
        self.0.reactor.spawn(async move {
            let Some(cache) = &task.mount.0.cache else { return };
            let result = task.mount.flush_to_limit().await;
            cache.flusher.failed.set(result.err());
            cache.flusher.flushing.set(false);
            cache.flusher.progress.wake();
        });
    }

    /// Writes files back until no more is dirty than write-back leaves alone, and no writer waits.
    async fn flush_to_limit(&self) -> NfsResult<()> {
        let Some(cache) = &self.0.cache else { return Ok(()) };
        let background = self.0.options.paging.dirty_limits().0 / PAGE;
        while self.unwritten(&cache.counts) > background || cache.flusher.waiting.get() > 0 {
            let nodes = self.0.nodes.busy();
            if nodes.is_empty() {
                break;
            }
            for node in nodes {
                self.write_old(&node, self.now(), true).await?;
            }
            // A file without an open writer is being closed, by which it is flushed.
            self.0.reactor.yield_now().await;
        }
        Ok(())
    }

    /// Writes back what was dirty at a time; `commit`: and makes all of the file stable. An error is kept for those who
    /// have the file open.
    async fn write_old(&self, node: &Rc<Node>, old: Instant, commit: bool) -> NfsResult<()> {
        let cached = parts(node)?;
        let Some(slot) = cached.writer() else { return Ok(()) };
        let _uses = Task::new(self, Some(node));
        let written = async {
            self.write_back(node, &slot, Stability::Unstable, false, Some(old)).await?;
            if commit && !node.is_stable() {
                let open = self.at_server(node, &slot).await?;
                self.commit(&open, node).await?;
            }
            Ok(())
        };
        written.await.inspect_err(|error| {
            if is_broken(Mutant::WriteBackErrorForgotten) {
                self.change_pages(cached, |pages| pages.cut(0));
                return;
            }
            let (failures, _) = cached.failures.get();
            cached.failures.set((failures + 1, Some(*error)));
        })
    }

    /// Sends what is dirty of a file as soon as it fills a WRITE, if the mount does so.
    pub(super) fn write_behind(&self, node: &Rc<Node>) {
        let Some(cached) = node.cached.as_ref().filter(|_| self.0.options.paging.write_behind) else {
            return;
        };
        let fills = self.0.limits.max_write as usize / PAGE as usize;
        if cached.pages.borrow().dirty() < fills.max(1) || cached.behind.replace(true) {
            return;
        }
        let (task, node) = (Task::new(self, Some(node)), node.clone());
        self.0.reactor.spawn(async move {
            // The error is kept.
            let _ = task.mount.write_old(&node, task.mount.now(), false).await;
            if let Some(cached) = &node.cached {
                cached.behind.set(false);
            }
        });
    }

    /// Looks from time to time for what is dirty for long, as long as something is.
    fn watch(&self) {
        let every = self.0.options.paging.dirty_writeback;
        let Some(cache) = self.0.cache.as_ref().filter(|_| !every.is_zero()) else { return };
        if cache.flusher.watching.replace(true) {
            return;
        }
        let (core, reactor) = (Rc::downgrade(&self.0), self.0.reactor.clone());
        self.0.reactor.spawn(async move {
            loop {
                reactor.sleep(every).await;
                let Some(core) = core.upgrade() else { return };
                let task = Task::new(&Self(core), None);
                if !task.mount.write_expired().await {
                    return;
                }
            }
        });
    }

    /// Writes back what has been dirty for too long. Whether anything is still to be written.
    async fn write_expired(&self) -> bool {
        let Some(cache) = &self.0.cache else { return false };
        let Some(old) = self.now().checked_sub(self.0.options.paging.dirty_expire) else { return true };
        for node in self.0.nodes.busy() {
            let due = node.cached.as_ref().is_some_and(|cached| cached.pages.borrow().is_due(old));
            if due {
                // The error is kept.
                let _ = self.write_old(&node, old, true).await;
            }
        }
        let more = self.unwritten(&cache.counts) > 0;
        cache.flusher.watching.set(more);
        more
    }
}
