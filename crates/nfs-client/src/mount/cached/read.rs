//! Reading: from pages, with READs of what is missing and of what will be wanted next.

use std::ops::Range;
use std::rc::Rc;

use super::flusher::Task;
use super::{Mount, Node, PAGE, parts};
use crate::cache::{CacheCount, Place, Reach, Window};
use crate::mount::ClientFile;
use crate::mount::file::File;
use crate::mount::node::Slot;
use crate::protocol::NfsResult;
use crate::types::Stability;

impl Mount {
    /// Pages of one READ.
    fn read_pages(&self) -> u64 {
        (u64::from(self.0.limits.max_read) / PAGE).max(1)
    }

    fn reach(&self) -> Reach {
        let paging = &self.0.options.paging;
        let most = u64::from(paging.read_ahead_kb) * 1024 / PAGE;
        Reach { rule: paging.readahead, most, read: self.read_pages() }
    }

    fn count(&self, count: CacheCount, number: u64) {
        if let Some(counts) = self.cache_counts() {
            counts.add(count, number);
        }
    }

    /// Reads from pages, page by page. What is missing is read by tasks of the background, as far as the readahead goes,
    /// and waited for; what they could not read is read here, with the error it has.
    pub(in crate::mount) async fn read_cached(
        &self,
        file: &File,
        slot: &Rc<Slot>,
        buffer: &mut [u8],
        offset: u64,
    ) -> NfsResult<usize> {
        let node = &file.node;
        let cached = parts(node)?;
        let known = self.fresh(node, false).await?.size;
        let size = known.max(cached.pages.borrow().dirty_end());
        let len = size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let buffer = &mut buffer[..len];
        let last = (offset + len as u64).div_ceil(PAGE);
        let (mut done, mut asked) = (0, None);
        while done < buffer.len() {
            let at = offset + done as u64;
            let page = at / PAGE;
            let place = cached.pages.borrow().look(page);
            if matches!(place, Place::Missing | Place::Coming) && asked != Some(page) {
                self.count(CacheCount::Missed, 1);
            }
            match place {
                Place::Missing if asked == Some(page) => {
                    done += self.read_here(node, slot, &mut buffer[done..], at, size).await?;
                    continue;
                }
                Place::Missing => {
                    asked = Some(page);
                    let window = {
                        let pages = cached.pages.borrow();
                        slot.readahead.borrow_mut().missed(self.reach(), page, last - page, &*pages)
                    };
                    self.read_window(node, slot, window, last, size).await?;
                    continue;
                }
                Place::Coming => {
                    asked = Some(page);
                    cached.moved.until(|| cached.pages.borrow().look(page) != Place::Coming).await;
                    continue;
                }
                Place::Cached | Place::Partly => {}
            }
            if cached.pages.borrow_mut().take_mark(page) {
                let window = {
                    let pages = cached.pages.borrow();
                    slot.readahead.borrow_mut().marked(self.reach(), page, last - page, &*pages)
                };
                if let Some(window) = window {
                    self.read_window(node, slot, window, last, size).await?;
                }
            }
            let to = (((page + 1) * PAGE - offset) as usize).min(buffer.len());
            let read = self.change_pages(cached, |pages| pages.read(at, &mut buffer[done..to]));
            if read == 0 && place == Place::Partly {
                self.flush(node, slot, Stability::Unstable).await?;
            }
            done += read;
        }
        slot.readahead.borrow_mut().read_to((offset + len as u64) / PAGE);
        Ok(done)
    }

    /// Reads the missing pages of a window in the background; those from `asked` on were not asked for.
    async fn read_window(
        &self,
        node: &Rc<Node>,
        slot: &Slot,
        window: Window,
        asked: u64,
        size: u64,
    ) -> NfsResult<()> {
        let cached = parts(node)?;
        let open = self.at_server(node, slot).await?;
        let pages = window.pages.start..window.pages.end.min(size.div_ceil(PAGE));
        let runs = cached.pages.borrow_mut().expect(pages, asked, window.mark, self.read_pages());
        let ahead: u64 = runs.iter().map(|run| run.end.saturating_sub(run.start.max(asked))).sum();
        self.count(CacheCount::Ahead, ahead);
        for run in runs {
            let (task, node, open) = (Task::new(self, Some(node)), node.clone(), open.clone());
            self.0.reactor.spawn(async move {
                // Who needs it reads it again, and gets the error.
                let _ = task.mount().read_run(&node, &open, run, size).await;
                drop(open);
                drop(task);
            });
        }
        // The requests leave, and a reader that finds all it wants does not keep them here.
        self.0.reactor.yield_now().await;
        Ok(())
    }

    /// Reads a run of pages that are marked as being read. Returns its data, which may not have been kept.
    async fn read_run(
        &self,
        node: &Node,
        open: &ClientFile,
        run: Range<u64>,
        size: u64,
    ) -> NfsResult<Vec<u8>> {
        let cached = parts(node)?;
        let mut data = vec![0; ((run.end * PAGE).min(size) - run.start * PAGE) as usize];
        let (generation, changes) = (cached.generation.get(), self.changes());
        // What lies between the end of the file at the server and data that are dirty here is zero.
        let mut after = None;
        let read = self.read_piece(open, &mut data, run.start * PAGE, Some(&mut after)).await;
        let still = cached.generation.get() == generation;
        if let (Ok(_), Some(attributes)) = (read, after) {
            self.learn_since(node, attributes, changes);
        }
        if read.is_ok() && still {
            self.change_pages(cached, |pages| pages.fill(run.start * PAGE, &data));
            self.added(node, cached);
        }
        cached.pages.borrow_mut().give_up(run);
        cached.moved.wake();
        read.map(|_| data)
    }

    /// Reads what is missing at an offset here and now, as much as one READ brings.
    async fn read_here(
        &self,
        node: &Node,
        slot: &Slot,
        buffer: &mut [u8],
        at: u64,
        size: u64,
    ) -> NfsResult<usize> {
        let cached = parts(node)?;
        let open = self.at_server(node, slot).await?;
        let last = (at + buffer.len() as u64).div_ceil(PAGE).min(at / PAGE + self.read_pages());
        let run = {
            let mut pages = cached.pages.borrow_mut();
            let end = (at / PAGE..last).find(|page| pages.look(*page) != Place::Missing).unwrap_or(last);
            pages.expect(at / PAGE..end, last, None, self.read_pages()).pop()
        };
        // It came while the file was opened.
        let Some(run) = run else { return Ok(0) };
        let start = (at - run.start * PAGE) as usize;
        let data = self.read_run(node, &open, run, size).await?;
        let data = &data[start..];
        let len = data.len().min(buffer.len());
        buffer[..len].copy_from_slice(&data[..len]);
        Ok(len)
    }
}
