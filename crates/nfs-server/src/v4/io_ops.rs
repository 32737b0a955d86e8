//! READ, WRITE, COMMIT, and the right to them.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    CommitArgs, CommitOk, Nfsstat4, ReadArgs, StableHow4, Stateid4, WriteArgs, WriteOk,
};

use super::attrs::MAX_FILE_SIZE;
use super::{Compound, Failure, OpResult};
use crate::disk::{Access, Stability};
use crate::fs::{Kind, access as right, permits};
use crate::handle::FileId;
use crate::state::Conflict;
use crate::state::file::IoRight;

/// READ (RFC 7530 §16.23, RFC 8881 §18.22).
pub(crate) fn read(c: &mut Compound<'_>, args: ReadArgs) -> OpResult {
    let file = c.file()?;
    let stateid = c.stateid(args.stateid)?;
    c.authorize(stateid, file, false)?;
    let (fs, node) = c.server.exports.file(file)?;
    let mut pages = c.reply.scratch();
    let count = args.count.min(c.server.config.max_io);
    let info = fs.read(node, args.offset, count, &mut pages, c.now.wall)?;
    let eof = (info.eof || is_broken(Mutant::EndAlwaysSaid)) && !is_broken(Mutant::EndNeverSaid);
    c.reply.encoder.put(&eof);
    c.reply.put_pages(pages);
    let (len, size) = (info.len.into(), info.attr.size);
    c.on_disk(|| Access::Read { file, offset: args.offset, len, size });
    Ok(())
}

/// WRITE (RFC 7530 §16.36, RFC 8881 §18.32).
pub(crate) fn write(c: &mut Compound<'_>, args: WriteArgs<'_>) -> OpResult {
    let file = c.file()?;
    let stateid = c.stateid(args.stateid)?;
    c.authorize(stateid, file, true)?;
    let (fs, node) = c.for_change(file)?;
    let data = args.data.bytes().unwrap_or_default();
    let data = &data[..fs.taken(data.len())];
    check_end(args.offset, data.len() as u64)?;
    let changed = fs.write(c.who, node, args.offset, &c.reply.stored(data), c.now.wall)?;
    let (len, grew) = (data.len() as u64, changed.after.size > changed.before.size);
    let stability = match args.stable {
        _ if c.reply.lies() => Stability::Memory,
        StableHow4::Unstable => Stability::Memory,
        StableHow4::DataSync => Stability::Data,
        _ => Stability::File,
    };
    if stability > Stability::Memory {
        fs.settle(node, args.offset..args.offset + len)?;
    }
    c.on_disk(|| Access::Write { file, offset: args.offset, len, stability, grew });
    let committed =
        if is_broken(Mutant::UnstableIsCalledStable) { StableHow4::FileSync } else { args.stable };
    c.answer(&WriteOk { count: data.len() as u32, committed, writeverf: c.write_verifier() })
}

/// COMMIT (RFC 7530 §16.3, RFC 8881 §18.3): there is nothing more stable to write to than memory. No range is wrong.
pub(crate) fn commit(c: &mut Compound<'_>, _: CommitArgs) -> OpResult {
    let file = c.file()?;
    let (fs, node, attr) = c.look(file)?;
    check_kind(attr.kind)?;
    if !c.reply.lies() {
        c.server.commit(fs, node, c.now.wall)?;
        c.on_disk(|| Access::Commit { file });
    }
    let writeverf = if is_broken(Mutant::CommitHasOtherVerifier) { [7; 8] } else { c.write_verifier() };
    c.answer(&CommitOk { writeverf })
}

/// Refuses to let a file grow beyond what can be addressed.
pub(crate) fn check_end(offset: u64, len: u64) -> OpResult {
    match offset.checked_add(len) {
        Some(end) if end <= MAX_FILE_SIZE => Ok(()),
        _ => Err(Nfsstat4::FBIG.into()),
    }
}

/// Data is in regular files only (RFC 8881 §18.22.3).
pub(crate) fn check_kind(kind: Kind) -> OpResult {
    match kind {
        Kind::Regular => Ok(()),
        Kind::Directory if is_broken(Mutant::DirectoryReadInvalid) => Err(Nfsstat4::INVAL.into()),
        Kind::Directory => Err(Nfsstat4::ISDIR.into()),
        Kind::Symlink => Err(Nfsstat4::SYMLINK.into()),
        _ => Err(Nfsstat4::WRONG_TYPE.into()),
    }
}

impl Compound<'_> {
    /// Checks a stateid for I/O and renews the lease of its client (RFC 7530 §9.5).
    pub(crate) fn check_io(
        &mut self,
        stateid: Stateid4,
        file: FileId,
        write: bool,
    ) -> Result<IoRight, Failure> {
        let state = &self.server.state;
        let client = if self.minor > 0 { self.client } else { None };
        let now = self.now.instant;
        let mut part = state.read(file);
        let mut right = part.files().check_io(self.minor, client, stateid, file, write);
        if right == Err(Nfsstat4::LOCKED) {
            drop(part);
            state.check_deny(file, write, now, self.effects)?;
            part = state.read(file);
            right = part.files().check_io(self.minor, client, stateid, file, write);
        }
        let right = right?;
        if let Some(client) = right.client {
            if self.minor == 0 {
                part.clients().renew(client, now);
            }
            self.client.get_or_insert(client);
        } else if part.clients().in_grace() {
            // Locks that are not reclaimed yet may be in the way (RFC 8881 §8.4.2.1).
            return Err(Nfsstat4::GRACE.into());
        }
        Ok(right)
    }

    /// Learns from a stateid, if it is good for anything, which client asks (4.0).
    pub(crate) fn learn_client(&mut self, stateid: Stateid4, file: FileId) {
        let part = self.server.state.read(file);
        let right = part.files().check_io(self.minor, None, stateid, file, false);
        self.client = right.ok().and_then(|right| right.client);
    }

    /// Establishes the right to read or write the data of `file`: by the stateid, and the caller's own permission where
    /// it is not the one who opened; after delegations in the way of a special stateid are recalled.
    pub(crate) fn authorize(&mut self, stateid: Stateid4, file: FileId, write: bool) -> OpResult {
        if stateid.is_special() {
            let (_, _, attr) = self.look(file)?;
            check_kind(attr.kind)?;
            if !permits(&attr, self.who, wanted(write)) {
                return Err(Nfsstat4::ACCESS.into());
            }
        }
        let right = self.check_io(stateid, file, write)?;
        if right.client.is_none() {
            return self.check_conflict(file, if write { Conflict::Change } else { Conflict::Read });
        }
        self.check_user(right.opener, file, write)
    }

    /// Whoever learned a stateid could use it: who did not open needs the permission of the file itself (RFC 7530
    /// §16.36.4, RFC 8881 §18.32.4), but the owner, who could give it to itself.
    #[inline]
    pub(crate) fn check_user(&self, opener: Option<u32>, file: FileId, write: bool) -> OpResult {
        if opener == Some(self.who.uid) {
            return Ok(());
        }
        let (_, _, attr) = self.look(file)?;
        if attr.uid == self.who.uid || permits(&attr, self.who, wanted(write)) {
            return Ok(());
        }
        Err(Nfsstat4::ACCESS.into())
    }
}

fn wanted(write: bool) -> u32 {
    if write { right::WRITE } else { right::READ }
}
