//! Data: pages read, written and flushed.

use std::rc::Rc;

use super::{MOST_DIRTY, Mount, Node, PAGE, parts};
use crate::cache::Pages;
use crate::mount::file::File;
use crate::mount::lanes;
use crate::mount::node::Slot;
use crate::protocol::{NfsResult, Protocol};
use crate::types::Stability;

impl Mount {
    /// Reads from pages, and those that are missing with READ: of a file no larger than one READ all that is missing,
    /// else what is asked for.
    pub(in crate::mount) async fn read_cached(
        &self,
        file: &File,
        slot: &Rc<Slot>,
        buffer: &mut [u8],
        offset: u64,
    ) -> NfsResult<usize> {
        let node = &*file.node;
        let cached = parts(node)?;
        let known = self.fresh(node, false).await?.size;
        let size = known.max(cached.pages.borrow().dirty_end());
        let largest = (u64::from(self.0.limits.max_read) / PAGE * PAGE).max(PAGE);
        let len = size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..len];
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let read = cached.pages.borrow().read(at, &mut buffer[done..]);
            done += read;
            if read > 0 {
                continue;
            }
            if cached.pages.borrow().must_flush(at) {
                self.flush(node, slot, Stability::Unstable).await?;
                continue;
            }
            let wanted = if size <= largest {
                size - at
            } else {
                (at % PAGE + (buffer.len() - done) as u64).min(largest) - at % PAGE
            };
            let missing = cached.pages.borrow().missing(at, wanted);
            let mut data = vec![0; (missing.end.min(size) - missing.start) as usize];
            let open = self.at_server(node, slot).await?;
            let (generation, changes) = (cached.generation.get(), self.changes());
            // What lies between the end of the file at the server and data that are dirty here is zero.
            let (_, attributes) = self.read_piece(&open, &mut data, missing.start).await?;
            let still = cached.generation.get() == generation;
            if let Some(attributes) = attributes {
                self.learn_since(node, attributes, changes);
            }
            if still {
                self.change_pages(cached, |pages| pages.fill(missing.start, &data));
                self.make_space();
            }
            // The pages may be gone again; what was read is right for this call.
            let from = (at - missing.start) as usize;
            let read = &data[from..][..(data.len() - from).min(buffer.len() - done)];
            let newer = cached.pages.borrow().read(at, &mut buffer[done..]);
            if newer == 0 {
                buffer[done..done + read.len()].copy_from_slice(read);
            }
            done += newer.max(if newer == 0 { read.len() } else { 0 });
        }
        Ok(done)
    }

    /// Writes into pages: they are flushed by `fsync`, close, lock and unlock, when there are too many, and at once
    /// if the file wants stable writes. `None`: at the end.
    pub(in crate::mount) async fn write_cached(
        &self,
        file: &File,
        slot: &Rc<Slot>,
        data: &[u8],
        offset: Option<u64>,
    ) -> NfsResult<usize> {
        let node = &*file.node;
        let cached = parts(node)?;
        let mut done = 0;
        while done < data.len() {
            let known = match offset {
                Some(_) => cached.known.borrow().last(),
                None => None,
            };
            let size = match known {
                Some(known) => known.size,
                None => self.fresh(node, false).await?.size,
            };
            {
                let _inside = node.writing.shared().await;
                let size = size.max(cached.pages.borrow().dirty_end());
                let at = offset.map_or(size, |offset| offset + done as u64);
                let taken = self.change_pages(cached, |pages| pages.write(at, &data[done..], size));
                cached.known.borrow_mut().grow(at + taken as u64);
                done += taken;
            }
            if done < data.len() {
                self.flush(node, slot, Stability::Unstable).await?;
            }
        }
        let dirty = self.0.cache.as_ref().map_or(0, |cache| cache.dirty.get() * PAGE as usize);
        if file.stability != Stability::Unstable {
            self.flush(node, slot, file.stability).await?;
        } else if dirty > MOST_DIRTY {
            self.write_back(node, slot, Stability::Unstable, false).await?;
        }
        self.make_space();
        Ok(data.len())
    }

    /// Writes back what is dirty and makes it stable.
    pub(in crate::mount) async fn flush(
        &self,
        node: &Node,
        slot: &Rc<Slot>,
        stability: Stability,
    ) -> NfsResult<()> {
        self.write_back(node, slot, stability, true).await?;
        if node.log.borrow().is_empty() {
            return Ok(());
        }
        let open = self.at_server(node, slot).await?;
        self.commit(&open, node).await
    }

    /// Flushes a file by whatever has it open for writing.
    pub(in crate::mount) async fn flush_any(&self, node: &Node) -> NfsResult<()> {
        let Some(cached) = &node.cached else { return Ok(()) };
        let clean = !cached.pages.borrow().is_dirty() && node.log.borrow().is_empty();
        let writer = cached.slots.borrow().iter().find(|slot| slot.how.write).cloned();
        match writer {
            Some(slot) if !clean => self.flush(node, &slot, Stability::Unstable).await,
            _ => Ok(()),
        }
    }

    /// Writes back what is dirty. What is one WRITE and to be made stable anyway is written so, which saves the
    /// COMMIT, as Linux does.
    async fn write_back(
        &self,
        node: &Node,
        slot: &Rc<Slot>,
        wanted: Stability,
        to_stay: bool,
    ) -> NfsResult<()> {
        let cached = parts(node)?;
        if !cached.pages.borrow().is_dirty() {
            return Ok(());
        }
        let open = self.at_server(node, slot).await?;
        let bytes = cached.pages.borrow().dirty() * PAGE as usize;
        let mut stability = self.make_room(&open, node, bytes, wanted).await?;
        let _alone = node.writing.alone().await;
        let runs = cached.pages.borrow().runs(self.0.limits.max_write as usize);
        if runs.len() == 1 && to_stay && node.log.borrow().is_empty() {
            stability = Stability::File;
        }
        let several = runs.len() > 1;
        lanes::all(runs.into_iter(), |(offset, len)| {
            let open = &open;
            async move {
                let mut data = vec![0; len];
                cached.pages.borrow().copy(offset, &mut data);
                self.write_piece(open, node, &data, offset, stability).await.map(drop)
            }
        })
        .await?;
        self.change_pages(cached, Pages::clean);
        if several {
            // Their answers may have come in any order: which attributes are the last ones is not known.
            cached.known.borrow_mut().changed_by_us();
        }
        cached.generation.set(cached.generation.get() + 1);
        Ok(())
    }

    /// Closes a file: what is dirty is made stable, and what the server does not know of is not closed there.
    pub(in crate::mount) async fn close_cached(&self, node: &Node, slot: Rc<Slot>) -> NfsResult<()> {
        let cached = parts(node)?;
        let flushed =
            if slot.how.write { self.flush(node, &slot, Stability::Unstable).await } else { Ok(()) };
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
                // The caller got the error; there is no one left to write it.
                self.change_pages(cached, |pages| pages.cut(0));
            }
        }
        drop(opening);
        let open = slot.open.borrow_mut().take();
        let closed = match open.and_then(Rc::into_inner) {
            Some(open) => self.0.client.close(open).await,
            None => Ok(()),
        };
        flushed.and(closed)
    }
}
