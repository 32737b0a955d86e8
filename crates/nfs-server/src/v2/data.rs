//! GETATTR, SETATTR, READLINK, READ, WRITE, STATFS.

use benchmaster_nfs_proto::v2::{
    Fhandle, MAX_DATA, MAX_PATH, Nfsstat2, ReadArgs, SetattrArgs, StatfsOk, WriteArgs,
};

use super::convert::{BLOCK, Stop, clamp, fattr, set_attr};
use crate::call::{Call, Refusal};
use crate::disk::{Access, Stability};
use crate::fs::Kind;
use crate::state::Conflict;

pub(super) fn getattr(call: &mut Call<'_>, file: Fhandle) -> Result<(), Stop> {
    let id = call.resolve(&file)?;
    call.conflict(id, Conflict::Read)?;
    let attributes = fattr(id.export, &call.attr(id)?);
    call.ok2(&attributes)
}

pub(super) fn setattr(call: &mut Call<'_>, args: SetattrArgs) -> Result<(), Stop> {
    let id = call.resolve(&args.file)?;
    let changed = call.change(id, &set_attr(&args.attributes), None)?;
    call.on_disk(|| Access::Attributes { file: id });
    call.ok2(&fattr(id.export, &changed.after))
}

pub(super) fn readlink(call: &mut Call<'_>, file: Fhandle) -> Result<(), Stop> {
    let id = call.resolve(&file)?;
    let (fs, node) = call.server.exports.file(id)?;
    let attr = fs.attr(node)?;
    if attr.kind != Kind::Symlink {
        return Err(Nfsstat2::NXIO.into());
    }
    if attr.size > MAX_PATH.into() {
        return Err(Nfsstat2::NAMETOOLONG.into());
    }
    call.ok2(&())?;
    fs.read_link(node, call.now.wall, &mut |content| call.reply.encoder.opaque(content))?;
    Ok(())
}

pub(super) fn read(call: &mut Call<'_>, args: ReadArgs) -> Result<(), Stop> {
    let id = call.resolve(&args.file)?;
    let (fs, node) = call.io(id, false)?;
    let mut pages = Vec::new();
    let info = fs.read(node, args.offset.into(), args.count.min(MAX_DATA), &mut pages, call.now.wall)?;
    let (len, size) = (info.len.into(), info.attr.size);
    call.on_disk(|| Access::Read { file: id, offset: args.offset.into(), len, size });
    call.ok2(&fattr(id.export, &info.attr))?;
    call.reply.put_data(pages);
    Ok(())
}

pub(super) fn write(call: &mut Call<'_>, args: WriteArgs<'_>) -> Result<(), Stop> {
    let data = args.data.bytes().unwrap_or_default();
    if data.len() > MAX_DATA as usize {
        return Err(Stop::Refused(Refusal::GarbageArgs));
    }
    let id = call.resolve(&args.file)?;
    let (fs, node) = call.io(id, true)?;
    // Sizes have 32 bits.
    if args.offset.checked_add(data.len() as u32).is_none() {
        return Err(Nfsstat2::FBIG.into());
    }
    let changed = fs.write(call.who, node, args.offset.into(), &call.reply.stored(data), call.now.wall)?;
    let (len, grew) = (data.len() as u64, changed.after.size > changed.before.size);
    let stability = if call.reply.lies() { Stability::Memory } else { Stability::File };
    if stability > Stability::Memory {
        fs.settle(node, args.offset.into()..u64::from(args.offset) + len)?;
    }
    call.on_disk(|| Access::Write { file: id, offset: args.offset.into(), len, stability, grew });
    call.ok2(&fattr(id.export, &changed.after))
}

pub(super) fn statfs(call: &mut Call<'_>, file: Fhandle) -> Result<(), Stop> {
    let id = call.resolve(&file)?;
    let (fs, node) = call.server.exports.file(id)?;
    fs.attr(node)?;
    let stat = fs.stat();
    let blocks = |bytes: u64| clamp(bytes / u64::from(BLOCK));
    let (total, free) = (blocks(stat.total_bytes), blocks(stat.free_bytes));
    call.ok2(&StatfsOk { tsize: MAX_DATA, bsize: BLOCK, blocks: total, bfree: free, bavail: free })
}
