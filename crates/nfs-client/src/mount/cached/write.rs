//! Writing: into pages, from which data go to the server.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::{Mount, Node, PAGE, parts};
use crate::cache::{CacheCount, Run};
use crate::mount::ClientFile;
use crate::mount::file::File;
use crate::mount::lanes;
use crate::mount::node::{Cached, Slot};
use crate::options::RequestList;
use crate::protocol::NfsResult;
use crate::types::Stability;

impl Mount {
    /// Writes into pages: they are flushed by `fsync`, close, lock and unlock, in the background, and at once if the file
    /// wants stable writes. `None`: at the end.
    pub(in crate::mount) async fn write_cached(
        &self,
        file: &File,
        slot: &Rc<Slot>,
        data: &[u8],
        offset: Option<u64>,
    ) -> NfsResult<usize> {
        let node = &file.node;
        let cached = parts(node)?;
        let mut done = 0;
        while done < data.len() {
            self.limit_requests(node, slot).await?;
            let known = match offset {
                Some(_) => cached.known.borrow().last(),
                None => None,
            };
            let size = match known {
                Some(known) => known.size,
                None => self.fresh(node, false).await?.size,
            };
            {
                let _lock = match self.0.cache.as_ref().filter(|_| self.0.options.paging.send_lock) {
                    Some(cache) => Some(cache.flusher.lock.alone().await),
                    None => None,
                };
                let _inside = node.writing.shared().await;
                let size = size.max(cached.pages.borrow().dirty_end());
                let at = offset.map_or(size, |offset| offset + done as u64);
                let now = self.now();
                let taken = self.change_pages(cached, |pages| pages.write(at, &data[done..], size, now));
                self.request(cached, at, taken);
                cached.known.borrow_mut().grow(at + taken as u64);
                done += taken;
            }
            if done < data.len() {
                self.flush(node, slot, Stability::Unstable).await?;
            }
        }
        self.added(node, cached);
        if file.stability != Stability::Unstable {
            self.flush(node, slot, file.stability).await?;
        } else {
            self.write_behind(node);
            self.balance((data.len() as u64).div_ceil(PAGE)).await?;
        }
        Ok(data.len())
    }

    /// Finds or makes the request of each page, where requests are in a list.
    fn request(&self, cached: &Cached, at: u64, len: usize) {
        if self.0.options.paging.request_list == RequestList::Sorted && len > 0 {
            let mut requests = cached.requests.borrow_mut();
            for page in at / PAGE..(at + len as u64).div_ceil(PAGE) {
                requests.add(page);
            }
        }
    }

    /// Writes back what is dirty and makes it stable.
    pub(in crate::mount) async fn flush(
        &self,
        node: &Node,
        slot: &Rc<Slot>,
        stability: Stability,
    ) -> NfsResult<()> {
        let cached = parts(node)?;
        let now = self.now();
        loop {
            self.write_back(node, slot, stability, true, Some(now)).await?;
            let last = cached.pages.borrow().last_run();
            cached.moved.until(|| !cached.pages.borrow().is_running(last)).await;
            if !cached.pages.borrow().is_due(now) {
                break;
            }
        }
        if node.log.borrow().is_empty() {
            // A COMMIT of the background that is under way has it, and leaves it if it fails.
            drop(node.committing.alone().await);
        }
        if !node.is_stable() {
            let open = self.at_server(node, slot).await?;
            self.commit(&open, node).await?;
        }
        if !cached.pages.borrow().is_dirty() {
            cached.requests.borrow_mut().clear();
        }
        self.look_at_unstable();
        Ok(())
    }

    /// Flushes a file for an `fsync`, which reports errors of the background too.
    pub(in crate::mount) async fn sync_cached(&self, node: &Node, slot: &Rc<Slot>) -> NfsResult<()> {
        self.flush(node, slot, Stability::Unstable).await?;
        Self::report(parts(node)?, slot)
    }

    /// The error of write-back in the background that this open file has not seen.
    fn report(cached: &Cached, slot: &Slot) -> NfsResult<()> {
        match cached.failures.get() {
            (failures, Some(error)) if failures > slot.reported.replace(failures) => Err(error),
            _ => Ok(()),
        }
    }

    /// Flushes a file by whatever has it open for writing.
    pub(in crate::mount) async fn flush_any(&self, node: &Node) -> NfsResult<()> {
        let Some(cached) = &node.cached else { return Ok(()) };
        let clean = !cached.pages.borrow().is_dirty() && node.is_stable();
        match cached.writer() {
            Some(slot) if !clean => self.flush(node, &slot, Stability::Unstable).await,
            _ => Ok(()),
        }
    }

    /// Writes back what was dirty at a time, several WRITEs at a time. What is one WRITE and to be made stable anyway is
    /// written so, which saves the COMMIT, as Linux does.
    pub(super) async fn write_back(
        &self,
        node: &Node,
        slot: &Rc<Slot>,
        wanted: Stability,
        to_stay: bool,
        old: Option<std::time::Instant>,
    ) -> NfsResult<()> {
        let cached = parts(node)?;
        if cached.pages.borrow().dirty() == 0 {
            return Ok(());
        }
        let open = self.at_server(node, slot).await?;
        let most = self.0.limits.max_write as usize;
        let next = || self.change_pages(cached, |pages| pages.begin(most, old));
        let Some(first) = next() else { return Ok(()) };
        let one = to_stay && cached.pages.borrow().is_one_run() && node.log.borrow().is_empty();
        let stability = if one { Stability::File } else { wanted };
        let runs = std::iter::once(first).chain(std::iter::from_fn(next));
        let number = std::cell::Cell::new(0);
        let open = &*open;
        let written = lanes::all(runs, |run| {
            number.set(number.get() + 1);
            self.write_run(node, cached, open, run, stability)
        })
        .await;
        if number.get() > 1 {
            // Their answers may have come in any order: which attributes are the last ones is not known.
            cached.known.borrow_mut().changed_by_us();
        }
        written
    }

    /// Sends one run; its pages are clean then, or dirty again.
    async fn write_run(
        &self,
        node: &Node,
        cached: &Cached,
        open: &ClientFile,
        run: Run,
        wanted: Stability,
    ) -> NfsResult<()> {
        let sent = async {
            let stability = self.make_room(open, node, run.data.len(), wanted).await?;
            let _inside = node.writing.shared().await;
            self.send(open, node, &run, stability).await
        };
        let sent = sent.await;
        match &sent {
            Ok(stable) => self.has(cached, &run, *stable),
            Err(_) => self.change_pages(cached, |pages| pages.failed(&run)),
        }
        cached.moved.wake();
        sent.map(drop)
    }

    /// Sends a run, under the lock that writers need too where the mount has one: from before the request is made until it
    /// has left. Whether the server has it stable.
    async fn send(&self, open: &ClientFile, node: &Node, run: &Run, stability: Stability) -> NfsResult<bool> {
        let mut write = pin!(self.write_piece(open, node, run.data[..].into(), run.offset, stability));
        let cache = self.0.cache.as_ref().filter(|_| self.0.options.paging.send_lock);
        if let Some(cache) = cache {
            let _lock = cache.flusher.lock.alone().await;
            if let Poll::Ready(result) = poll_fn(|context| Poll::Ready(write.as_mut().poll(context))).await {
                return result.map(|_| node.log.borrow().is_empty());
            }
            self.0.reactor.yield_now().await;
        }
        write.await.map(|_| node.log.borrow().is_empty())
    }

    /// The server has a run.
    fn has(&self, cached: &Cached, run: &Run, stable: bool) {
        let pages = (run.data.len() as u64).div_ceil(PAGE);
        if self.change_pages(cached, |pages| pages.written(run)) {
            // What was read before is not to be put in the place of what was dropped.
            cached.generation.set(cached.generation.get() + 1);
        }
        if stable && self.0.options.paging.request_list == RequestList::Sorted {
            let mut requests = cached.requests.borrow_mut();
            (run.offset / PAGE..run.offset / PAGE + pages).for_each(|page| requests.remove(page));
        }
        if let Some(cache) = &self.0.cache {
            cache.counts.add(CacheCount::Written, pages);
            cache.flusher.wrote(pages);
        }
    }

    /// Closes a file: what is dirty is made stable, and what the server does not know of is not closed there.
    pub(in crate::mount) async fn close_cached(&self, node: &Node, slot: Rc<Slot>) -> NfsResult<()> {
        let cached = parts(node)?;
        let flushes = slot.how.write && !is_broken(Mutant::CloseWithoutFlush);
        let flushed = if flushes { self.sync_cached(node, &slot).await } else { Ok(()) };
        let opening = cached.opening.shared().await;
        cached.locks.borrow_mut().release(slot.owner);
        let last = {
            let mut slots = cached.slots.borrow_mut();
            slots.retain(|other| !Rc::ptr_eq(other, &slot));
            slots.is_empty()
        };
        if last {
            cached.locked_there.set(false);
            if flushed.is_err() {
                // The caller got the error; there is no one left to write it, and what the server has is not known.
                self.cut(node, 0);
                cached.known.borrow_mut().invalidate();
            }
        }
        drop(opening);
        if self.0.options.version.has_state() {
            // Requests of others use what is open at the server.
            cached.unused(&slot).await;
        }
        let open = slot.open.borrow_mut().take();
        let closed = match open.and_then(Rc::into_inner) {
            Some(open) => self.0.client.close_locked(open, slot.owner).await,
            None => Ok(()),
        };
        flushed.and(closed)
    }
}
