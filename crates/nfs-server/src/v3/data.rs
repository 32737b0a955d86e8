//! READ, WRITE, COMMIT, READLINK.

use std::cell::Cell;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v3::{
    CommitArgs, CommitOk, Nfsstat3, ReadArgs, ReadlinkArgs, StableHow, WccData, WriteArgs, WriteOk,
};

use super::attributes::MAX_FILE_SIZE;
use super::convert::{fattr, no_directory, wcc};
use crate::call::Call;
use crate::disk::{Access, Stability};
use crate::fs::{Kind, PageSlice};

thread_local! {
    /// Pages on their way from file to reply, to be allocated once per thread.
    static PAGES: Cell<Vec<PageSlice>> = const { Cell::new(Vec::new()) };
}

pub(super) fn read(call: &mut Call<'_>, args: ReadArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.file.0)?;
    let (fs, node) = call.io(id, false).map_err(|trouble| no_directory(trouble.into()))?;
    let count = args.count.min(call.max_io());
    let mut pages = PAGES.take();
    let result = fs.read(node, args.offset, count, &mut pages, call.now.wall).map(|info| {
        let e = &mut call.reply.encoder;
        e.put(&Nfsstat3::OK);
        e.put(&Some(fattr(id.export, &info.attr)));
        e.put(&info.len);
        e.put(&info.eof);
        call.reply.put_data(pages.drain(..));
        let (len, size) = (info.len.into(), info.attr.size);
        call.on_disk(|| Access::Read { file: id, offset: args.offset, len, size });
    });
    PAGES.set(pages);
    Ok(result?)
}

pub(super) fn write(call: &mut Call<'_>, args: WriteArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.file.0)?;
    let (fs, node) = call.io(id, true).map_err(|trouble| no_directory(trouble.into()))?;
    let data = args.data.bytes().unwrap_or_default();
    if data.len() != args.count as usize {
        return Err(Nfsstat3::INVAL);
    }
    // More than wtmax: the client sends the rest again.
    let data = &data[..fs.taken(data.len().min(call.max_io() as usize))];
    if args.offset.checked_add(data.len() as u64).is_none_or(|end| end > MAX_FILE_SIZE) {
        return Err(Nfsstat3::FBIG);
    }
    let changed = fs.write(call.who, node, args.offset, &call.reply.stored(data), call.now.wall)?;
    let (len, grew) = (data.len() as u64, changed.after.size > changed.before.size);
    let stability = match args.stable {
        _ if call.reply.lies() => Stability::Memory,
        StableHow::Unstable => Stability::Memory,
        StableHow::DataSync => Stability::Data,
        _ => Stability::File,
    };
    if stability > Stability::Memory {
        fs.settle(node, args.offset..args.offset + len)?;
    }
    call.on_disk(|| Access::Write { file: id, offset: args.offset, len, stability, grew });
    call.ok(&WriteOk {
        file_wcc: wcc(id.export, &changed),
        count: data.len() as u32,
        // As asked, although memory is no more stable than memory: clients must be made to COMMIT as by other servers.
        committed: if is_broken(Mutant::UnstableIsCalledStable) { StableHow::FileSync } else { args.stable },
        verf: call.server.write_verifier(),
    })
}

pub(super) fn commit(call: &mut Call<'_>, args: CommitArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.file.0)?;
    let attr = call.attr(id)?;
    if attr.kind != Kind::Regular {
        return Err(Nfsstat3::INVAL);
    }
    let (fs, node) = call.server.exports.file(id)?;
    if !call.reply.lies() {
        call.server.commit(fs, node, call.now.wall)?;
        call.on_disk(|| Access::Commit { file: id });
    }
    let file_wcc = WccData { before: None, after: call.post_op(id, &attr) };
    call.ok(&CommitOk { file_wcc, verf: call.server.write_verifier() })
}

pub(super) fn readlink(call: &mut Call<'_>, args: ReadlinkArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.symlink.0)?;
    let (fs, node) = call.server.exports.file(id)?;
    let attr = fs.attr(node)?;
    if attr.kind != Kind::Symlink {
        return Err(Nfsstat3::INVAL);
    }
    call.ok(&Some(fattr(id.export, &attr)))?;
    fs.read_link(node, call.now.wall, &mut |content| call.reply.encoder.opaque(content))?;
    Ok(())
}
