//! Reading and writing the data of regular files.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::data::{Data, Growth, SIZE_MAX};
use super::inode::Inode;
use super::logged::Record;
use super::table::WriteGuard;
use super::{Changed, FileSystem, FsError, Node, PageSlice, ReadInfo, SeekKind, Time, Trouble};
use crate::cred::Credentials;

impl FileSystem {
    /// Reads up to `count` bytes at `offset` into `out` (cleared first) as references to pages. No permission check.
    pub fn read(
        &self,
        file: Node,
        offset: u64,
        count: u32,
        out: &mut Vec<PageSlice>,
        now: Time,
    ) -> Result<ReadInfo, FsError> {
        out.clear();
        if self.fails(Trouble::Read) {
            return Err(FsError::Io);
        }
        let inode = self.table.read(file)?;
        let data = inode.regular()?;
        let start = offset.min(data.size);
        let end = offset.saturating_add(u64::from(count)).min(data.size).max(start);
        data.read(start..end, out);
        let eof = end == data.size;
        let mut attr = inode.attr(file.ino);
        drop(inode);
        if let Some(atime) = self.touch(file, &attr, now) {
            attr.atime = atime;
        }
        Ok(ReadInfo { len: (end - start) as u32, eof, attr })
    }

    /// Writes `data` at `offset`. No permission check: `who` decides whether set-user-ID and set-group-ID survive
    /// (they do for user 0). All of it is written or nothing.
    pub fn write(
        &self,
        who: &Credentials,
        file: Node,
        offset: u64,
        data: &[u8],
        now: Time,
    ) -> Result<Changed, FsError> {
        let end = end(offset, data.len() as u64)?;
        self.change_data(who, file, now, |inode| {
            let content = inode.regular_mut()?;
            if data.is_empty() {
                return Ok(false);
            }
            self.note_dirty(file, offset..end);
            if self.config.null_data {
                content.size = content.size.max(end);
                return Ok(true);
            }
            if self.fails(Trouble::Write) {
                return if is_broken(Mutant::WriteErrorSwallowed) { Ok(true) } else { Err(FsError::Io) };
            }
            if end > content.size && self.fails(Trouble::Full) {
                return if is_broken(Mutant::FullDiskSwallowed) { Ok(true) } else { Err(FsError::NoSpace) };
            }
            self.before_write(file, content, offset..end);
            let half = &data[..data.len() / 2];
            let data = if is_broken(Mutant::HalfWritten) && !half.is_empty() { half } else { data };
            let end = offset + data.len() as u64;
            if content.overwrite(offset, data) {
                return Ok(true);
            }
            let before = content.used();
            let mut growth = Growth::Roomy;
            let mut needs = content.write_needs(offset..end, growth);
            if self.space.data.take(needs).is_err() {
                growth = Growth::Tight;
                needs = content.write_needs(offset..end, growth);
                self.space.data.take(needs)?;
            }
            content.write(offset, data, growth);
            self.space.settle(needs, before, content.used());
            Ok(true)
        })
    }

    /// Reserves space (ALLOCATE, RFC 7862 §15.1): extends the file when needed. `len` 0 is [`FsError::Invalid`].
    pub fn allocate(
        &self,
        who: &Credentials,
        file: Node,
        offset: u64,
        len: u64,
        now: Time,
    ) -> Result<Changed, FsError> {
        let end = end(offset, len)?;
        self.change_logged(
            who,
            file,
            now,
            |record| record.reserved(file.ino, &(offset..end)),
            |inode| {
                let content = inode.regular_mut()?;
                if len == 0 {
                    return Err(FsError::Invalid);
                }
                if self.config.null_data {
                    content.size = content.size.max(end);
                    return Ok(true);
                }
                let needs = content.allocate_needs(offset..end);
                self.resize(content, needs, |content| content.allocate(offset..end))?;
                Ok(true)
            },
        )
    }

    /// Makes a hole (DEALLOCATE): the range reads as zeros; the size stays. `len` 0 is [`FsError::Invalid`].
    pub fn deallocate(
        &self,
        who: &Credentials,
        file: Node,
        offset: u64,
        len: u64,
        now: Time,
    ) -> Result<Changed, FsError> {
        let end = end(offset, len)?;
        self.change_logged(
            who,
            file,
            now,
            |record| record.hole(file.ino, &(offset..end)),
            |inode| {
                let content = inode.regular_mut()?;
                if len == 0 {
                    return Err(FsError::Invalid);
                }
                self.resize(content, 0, |content| content.punch(offset..end))?;
                Ok(true)
            },
        )
    }

    /// First data (or hole) at or after `offset`; `None`: there is none before the end of file (only for data: every
    /// file ends in a hole). [`FsError::NoSuchRange`] when `offset` is at or after the end.
    pub fn seek(&self, file: Node, offset: u64, what: SeekKind) -> Result<Option<u64>, FsError> {
        let inode = self.table.read(file)?;
        let data = inode.regular()?;
        if self.config.null_data && offset < data.size {
            return Ok(Some(if what == SeekKind::Data { offset } else { data.size }));
        }
        data.seek(offset, what)
    }

    /// Copies a range within this file system, sharing pages where it can; `len` 0 means to the end of `from`.
    /// Returns the number of bytes: fewer where `from` ends earlier. Atomic. [`FsError::Invalid`] when both are one
    /// file and the ranges overlap.
    #[allow(clippy::too_many_arguments, reason = "two places, a length, who and when")]
    pub fn copy_range(
        &self,
        who: &Credentials,
        from: Node,
        from_offset: u64,
        to: Node,
        to_offset: u64,
        len: u64,
        now: Time,
    ) -> Result<(u64, Changed), FsError> {
        if from.excludes(to) {
            return Err(FsError::Stale);
        }
        // The lower number first.
        let early = if from.ino < to.ino { Some(self.table.read(from)?) } else { None };
        let mut target = self.table.write(to)?;
        let source = if from.ino > to.ino { Some(self.table.read(from)?) } else { early };
        let read_from: &Inode = source.as_deref().unwrap_or(&target);
        let data = read_from.regular()?;
        target.regular()?;
        let left = data.size.saturating_sub(from_offset);
        let len = if len == 0 { left } else { len.min(left) };
        end(to_offset, len)?;
        if source.is_none() && from_offset < to_offset + len && to_offset < from_offset + len {
            return Err(FsError::Invalid);
        }
        let pieces = if len == 0 { Vec::new() } else { data.pieces(from_offset..from_offset + len) };
        drop(source);
        let changed = self.change_locked(who, to, &mut target, now, |inode| {
            let content = inode.regular_mut()?;
            if len == 0 {
                return Ok(false);
            }
            self.note_dirty(to, to_offset..to_offset + len);
            if self.config.null_data {
                content.size = content.size.max(to_offset + len);
                return Ok(true);
            }
            self.before_write(to, content, to_offset..to_offset + len);
            let needs = content.paste_needs(to_offset, &pieces);
            self.resize(content, needs, |content| content.paste(to_offset, len, &pieces))?;
            Ok(true)
        })?;
        Ok((len, changed))
    }

    /// Changes what a file takes up; `needs` is the most that it may take up more.
    pub(super) fn resize(
        &self,
        content: &mut Data,
        needs: u64,
        change: impl FnOnce(&mut Data),
    ) -> Result<(), FsError> {
        let before = content.used();
        self.space.data.take(needs)?;
        change(content);
        self.space.settle(needs, before, content.used());
        Ok(())
    }

    fn change_data(
        &self,
        who: &Credentials,
        file: Node,
        now: Time,
        change: impl FnOnce(&mut Inode) -> Result<bool, FsError>,
    ) -> Result<Changed, FsError> {
        let mut inode = self.table.write(file)?;
        self.change_locked(who, file, &mut inode, now, change)
    }

    /// A change of data that is logged at once.
    fn change_logged(
        &self,
        who: &Credentials,
        file: Node,
        now: Time,
        describe: impl FnOnce(&mut Record<'_>),
        change: impl FnOnce(&mut Inode) -> Result<bool, FsError>,
    ) -> Result<Changed, FsError> {
        let room = self.room()?;
        let mut inode = self.table.write(file)?;
        let changed = self.change_locked(who, file, &mut inode, now, change)?;
        self.log(room, |record| {
            record.attributes(file.ino, &inode);
            describe(record);
        });
        Ok(changed)
    }

    /// Carries `change` out, which says whether anything changed.
    fn change_locked(
        &self,
        who: &Credentials,
        file: Node,
        inode: &mut WriteGuard<'_>,
        now: Time,
        change: impl FnOnce(&mut Inode) -> Result<bool, FsError>,
    ) -> Result<Changed, FsError> {
        let before = inode.attr(file.ino);
        if change(inode)? && !is_broken(Mutant::ChangeStands) {
            inode.drop_privileges(who);
            inode.data_changed(self.clock, now);
        }
        let after = if is_broken(Mutant::SizeOfBefore) { before.clone() } else { inode.attr(file.ino) };
        Ok(Changed { before, after })
    }
}

/// End of a range; [`FsError::TooLarge`] beyond what a file can hold.
fn end(offset: u64, len: u64) -> Result<u64, FsError> {
    offset.checked_add(len).filter(|end| *end <= SIZE_MAX).ok_or(FsError::TooLarge)
}
