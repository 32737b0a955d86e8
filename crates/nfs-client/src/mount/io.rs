//! Data: reading, writing, making stable, locking.

use std::cell::Cell;
use std::mem;
use std::ops::Range as Bytes;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::file::{File, Open};
use super::lanes;
use super::log::Log;
use super::node::Node;
use super::{ClientFile, Mount};
use crate::buffer::{Buffer, Data};
use crate::counters::Event;
use crate::error::NfsError;
use crate::protocol::{NfsResult, Protocol};
use crate::types::{Attributes, LockKind, Range, SetAttributes, Stability};

impl Mount {
    /// Reads from a file: as many bytes as the buffer has room for, fewer only at the end of the file. A buffer larger
    /// than [`Limits::max_read`](crate::types::Limits::max_read) takes several requests, some at a time.
    ///
    /// # Errors
    /// Those of READ.
    pub async fn read(&self, file: &File, buffer: &mut [u8], offset: u64) -> NfsResult<usize> {
        let file = match &file.open {
            Open::Server(file) => file,
            Open::Cached(slot) => return Box::pin(self.read_cached(file, slot, buffer, offset)).await,
        };
        let largest = self.0.limits.max_read as usize;
        if buffer.len() <= largest {
            return self.read_piece(file, buffer, offset, None).await;
        }
        Box::pin(async {
            let len = buffer.len();
            let end = Cell::new(offset + len as u64);
            let mut at = offset;
            let pieces = buffer.chunks_mut(largest).map(|piece| {
                at += piece.len() as u64;
                (at - piece.len() as u64, piece)
            });
            lanes::all(pieces.take_while(|(at, _)| *at < end.get()), |(at, piece)| {
                let end = &end;
                async move {
                    let read = self.read_piece(file, piece, at, None).await?;
                    if read < piece.len() {
                        end.set(end.get().min(at + read as u64));
                    }
                    Ok(())
                }
            })
            .await?;
            Ok((end.get() - offset) as usize)
        })
        .await
    }

    /// Bytes read; attributes after it go into `after`, where they came.
    pub(super) async fn read_piece(
        &self,
        file: &ClientFile,
        buffer: &mut [u8],
        offset: u64,
        mut after: Option<&mut Option<Attributes>>,
    ) -> NfsResult<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let after = after.as_deref_mut();
            let read =
                self.0.client.read_noting(file, &mut buffer[done..], offset + done as u64, after).await?;
            done += read.len;
            if read.eof {
                break;
            }
            if read.len == 0 {
                return Err(NfsError::Nonsense("empty READ before the end of the file"));
            }
        }
        Ok(done)
    }

    /// Writes all of `data` and returns its length. A file opened with
    /// [`append`](super::OpenFlags::append) is written at its end.
    ///
    /// # Errors
    /// Those of WRITE; any part of the data may have been written.
    pub async fn write(&self, file: &File, data: &[u8], offset: u64) -> NfsResult<usize> {
        self.write_at(file, data.into(), (!file.append).then_some(offset)).await
    }

    /// The same with bytes of a buffer. What the server may lose is kept by reference, if it is most of the buffer and not
    /// small.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn write_buffer(
        &self,
        file: &File,
        buffer: &Buffer,
        bytes: Bytes<usize>,
        offset: u64,
    ) -> NfsResult<usize> {
        self.write_at(file, Data::of(buffer, bytes), (!file.append).then_some(offset)).await
    }

    /// Puts another buffer of the same length in the place of one whose data are kept; its content is that of some earlier
    /// one.
    #[inline]
    pub fn renew(&self, buffer: &mut Buffer) {
        if buffer.is_shared()
            && let Some(other) = self.0.logs.buffer(buffer.len())
        {
            *buffer = other;
        }
    }

    /// Writes all of `data` at the end of the file: GETATTR tells where it is. Appends of this mount do not overwrite
    /// each other; those of other clients may be overwritten, as NFS has no append.
    ///
    /// # Errors
    /// Those of GETATTR and WRITE.
    pub async fn append(&self, file: &File, data: &[u8]) -> NfsResult<usize> {
        self.write_at(file, data.into(), None).await
    }

    /// Writes at an offset, or without one at the end of the file.
    async fn write_at(&self, file: &File, data: Data<'_>, offset: Option<u64>) -> NfsResult<usize> {
        let (open, node) = match &file.open {
            Open::Server(open) => (open, &*file.node),
            Open::Cached(slot) => return Box::pin(self.write_cached(file, slot, &data, offset)).await,
        };
        let stability = self.make_room(open, node, data.len(), file.stability).await?;
        let stable = {
            let _inside = match offset {
                Some(_) => node.writing.shared().await,
                None => node.writing.alone().await,
            };
            let offset = match offset {
                Some(offset) => offset,
                None => self.0.client.getattr(&node.handle).await?.size,
            };
            self.write_all(open, node, data, offset, stability).await?
        };
        if !stable {
            // The server made data less stable than it was asked to.
            self.commit(open, node).await?;
        }
        Ok(data.len())
    }

    /// How to write this many bytes: if they cannot be kept, they have to be stable at once.
    pub(super) async fn make_room(
        &self,
        file: &ClientFile,
        node: &Node,
        bytes: usize,
        wanted: Stability,
    ) -> NfsResult<Stability> {
        if self.0.logs.is_full(bytes) && (wanted == Stability::Unstable || !node.is_stable()) {
            self.commit(file, node).await?;
            if self.0.logs.is_full(bytes) {
                return Ok(Stability::File);
            }
        }
        Ok(wanted)
    }

    /// Whether they are as stable as asked for.
    async fn write_all(
        &self,
        file: &ClientFile,
        node: &Node,
        data: Data<'_>,
        offset: u64,
        stability: Stability,
    ) -> NfsResult<bool> {
        let largest = self.0.limits.max_write as usize;
        if data.len() <= largest {
            return self.write_piece(file, node, data, offset, stability).await;
        }
        Box::pin(async {
            let stable = Cell::new(true);
            let offsets = (offset..).step_by(largest);
            lanes::all(offsets.zip(data.parts(largest)), |(offset, data)| {
                let stable = &stable;
                async move {
                    let piece = self.write_piece(file, node, data, offset, stability).await?;
                    stable.set(stable.get() && piece);
                    Ok(())
                }
            })
            .await?;
            Ok(stable.get())
        })
        .await
    }

    /// Whether it is as stable as asked for.
    pub(super) async fn write_piece(
        &self,
        file: &ClientFile,
        node: &Node,
        data: Data<'_>,
        offset: u64,
        stability: Stability,
    ) -> NfsResult<bool> {
        let mut done = 0;
        let mut stable = true;
        while done < data.len() {
            let at = offset + done as u64;
            let written = self.0.client.write(file, &data[done..], at, stability).await?;
            self.wrote(node, written.attributes);
            if written.len == 0 || written.len > data.len() - done {
                return Err(NfsError::Nonsense("WRITE of 0 bytes, or of more than was sent"));
            }
            let len = if is_broken(Mutant::ShortWriteCounted) { data.len() - done } else { written.len };
            let piece = data.part(done..done + len);
            let lasts = written.stability != Stability::Unstable && written.stability >= stability;
            // What comes to lie over data that may be written again has to be written again after them.
            if !lasts || !node.is_stable() {
                self.0.logs.hold(piece.len());
                let mut log = node.log.borrow_mut();
                if log.is_empty() {
                    *log = self.0.logs.take();
                }
                log.push(at, piece, written.verifier);
            }
            stable &= written.stability >= stability;
            done += piece.len();
        }
        Ok(stable)
    }

    /// Makes data and metadata stable: COMMIT, if anything was written that is not; data that the server may have
    /// lost in a restart are written again.
    ///
    /// # Errors
    /// Those of COMMIT and WRITE; the data are kept for another try.
    pub async fn fsync(&self, file: &File) -> NfsResult<()> {
        match &file.open {
            Open::Server(open) => self.commit(open, &file.node).await,
            Open::Cached(slot) => Box::pin(self.sync_cached(&file.node, slot)).await,
        }
    }

    /// Makes data stable, with the metadata needed to read them: the same as [`Self::fsync`], as NFS has one COMMIT.
    ///
    /// # Errors
    /// As [`Self::fsync`].
    pub async fn fdatasync(&self, file: &File) -> NfsResult<()> {
        self.fsync(file).await
    }

    /// COMMIT, if anything was written that is not stable.
    pub(super) async fn commit(&self, file: &ClientFile, node: &Node) -> NfsResult<()> {
        let _alone = node.committing.alone().await;
        if node.is_stable() {
            return Ok(());
        }
        let log = node.take_unstable();
        *node.in_commit.borrow_mut() = log;
        match self.0.client.commit(file, Range::WHOLE).await {
            Ok(verifier) if !node.in_commit.borrow().is_of(&verifier) => {
                return self.write_again(file, node).await;
            }
            Ok(_) => {}
            Err(_) if is_broken(Mutant::CommitErrorIgnored) => {}
            Err(error) => return Err(error),
        }
        self.0.logs.give(mem::take(&mut *node.in_commit.borrow_mut()));
        Ok(())
    }

    /// Writes again what the server may have lost, and all that was written since in the same order, so that nothing
    /// old comes to lie over what is new.
    async fn write_again(&self, file: &ClientFile, node: &Node) -> NfsResult<()> {
        let _alone = node.writing.alone().await;
        let log = node.take_unstable();
        let written = self.write_log(file, node, &log).await;
        match written {
            Ok(()) => self.0.logs.give(log),
            Err(_) => *node.in_commit.borrow_mut() = log,
        }
        written
    }

    async fn write_log(&self, file: &ClientFile, node: &Node, log: &Log) -> NfsResult<()> {
        let count = log.pieces().count() - usize::from(is_broken(Mutant::RewriteForgetsLast));
        for (offset, data) in log.pieces().take(count) {
            let mut at = offset;
            for data in data.chunks(self.0.limits.max_write as usize) {
                let mut rest = data;
                while !rest.is_empty() {
                    let written = self.0.client.write(file, rest, at, Stability::File).await?;
                    self.wrote(node, written.attributes);
                    rest = match rest.get(written.len..) {
                        Some(after) if written.len > 0 && written.stability == Stability::File => after,
                        _ => return Err(NfsError::Nonsense("a FILE_SYNC WRITE was not stable")),
                    };
                    at += written.len as u64;
                    self.0.counters.event(Event::Rewritten);
                }
            }
        }
        Ok(())
    }

    /// Attributes of an open file: GETATTR.
    ///
    /// # Errors
    /// Those of GETATTR.
    pub async fn stat_file(&self, file: &File) -> NfsResult<Attributes> {
        match &file.open {
            Open::Server(_) => self.0.client.getattr(&file.node.handle).await,
            Open::Cached(slot) => {
                Box::pin(async {
                    self.flush(&file.node, slot, Stability::Unstable).await?;
                    self.fresh(&file.node, false).await
                })
                .await
            }
        }
    }

    /// Sets the size of an open file: SETATTR.
    ///
    /// # Errors
    /// Those of SETATTR.
    pub async fn truncate_file(&self, file: &File, size: u64) -> NfsResult<()> {
        let set = SetAttributes { size: Some(size), ..SetAttributes::default() };
        let node = &*file.node;
        let open = self.there(file).await?;
        let _alone = node.writing.alone().await;
        self.0.client.setattr(&node.handle, Some(&open), &set).await?;
        self.cut(node, size);
        Ok(())
    }

    /// Locks a range. Where another holds it, waits for it if `wait`, else the error is `EAGAIN`. The locks of one open
    /// file do not exclude each other.
    ///
    /// # Errors
    /// Those of LOCK.
    pub async fn lock(&self, file: &File, kind: LockKind, range: Range, wait: bool) -> NfsResult<()> {
        match &file.open {
            Open::Server(open) => self.0.client.lock(open, file.owner, kind, range, wait).await.map(drop),
            Open::Cached(slot) => Box::pin(self.lock_cached(&file.node, slot, kind, range, wait)).await,
        }
    }

    /// Unlocks a range.
    ///
    /// # Errors
    /// Those of LOCKU.
    pub async fn unlock(&self, file: &File, range: Range) -> NfsResult<()> {
        match &file.open {
            Open::Server(open) => self.0.client.unlock(open, file.owner, range).await,
            Open::Cached(slot) => Box::pin(self.unlock_cached(&file.node, slot, range)).await,
        }
    }

    /// Closes a file. What was written is made stable first; the file is closed also if that fails.
    ///
    /// # Errors
    /// Those of [`Self::fsync`] and CLOSE.
    pub async fn close(&self, file: File) -> NfsResult<()> {
        let File { open, node, owner, .. } = file;
        let result = match open {
            Open::Server(open) => {
                let flushed = self.commit(&open, &node).await;
                flushed.and(self.0.client.close_locked(open, owner).await)
            }
            Open::Cached(slot) => Box::pin(self.close_cached(&node, slot)).await,
        };
        if let Some(log) = self.0.nodes.release(node) {
            self.0.logs.give(log);
        }
        result
    }
}
