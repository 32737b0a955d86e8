//! Extended attributes (RFC 8276).

use benchmaster_nfs_proto::v4::{
    GetxattrArgs, ListxattrsArgs, Nfsstat4, RemovexattrArgs, RemovexattrOk, SetxattrArgs, SetxattrOk,
    SetxattrOption4,
};

use super::names::check_text;
use super::{Compound, Failure, OpResult, change_info};
use crate::fs::{FileSystem, Kind, Node, XATTR_SIZE_MAX, XattrSet, access as right, permits};
use crate::handle::FileId;
use crate::state::Conflict;

/// GETXATTR (RFC 8276 §8.4.1).
pub(crate) fn getxattr(c: &mut Compound<'_>, args: GetxattrArgs<'_>) -> OpResult {
    let file = c.file()?;
    let name = check_text(args.name)?;
    let (fs, node) = with_right(c, file, right::READ)?;
    let encoder = &mut c.reply.encoder;
    fs.xattr(node, name, &mut |value| encoder.opaque(value))?;
    Ok(())
}

/// SETXATTR (RFC 8276 §8.4.2).
pub(crate) fn setxattr(c: &mut Compound<'_>, args: SetxattrArgs<'_>) -> OpResult {
    let file = c.file()?;
    let name = check_text(args.key)?;
    let how = match args.option {
        SetxattrOption4::Either => XattrSet::Either,
        SetxattrOption4::Create => XattrSet::Create,
        SetxattrOption4::Replace => XattrSet::Replace,
    };
    let (fs, node) = with_right(c, file, right::WRITE)?;
    if args.value.0.len() > XATTR_SIZE_MAX {
        return Err(Nfsstat4::XATTR2BIG.into());
    }
    c.check_conflict(file, Conflict::Change)?;
    let changed = fs.set_xattr(node, name, args.value.0, how, c.now.wall)?;
    c.answer(&SetxattrOk { info: change_info(&changed) })
}

/// LISTXATTRS (RFC 8276 §8.4.3).
pub(crate) fn listxattrs(c: &mut Compound<'_>, args: ListxattrsArgs) -> OpResult {
    /// Cookie, number of names, `eof`.
    const FIXED: usize = 8 + 4 + 4;
    let file = c.file()?;
    let (fs, node) = with_right(c, file, right::READ)?;
    let max = (args.maxcount as usize).min(c.room());
    let body = c.reply.mark();
    let encoder = &mut c.reply.encoder;
    encoder.put(&0u32);
    let low_at = encoder.mark();
    encoder.put(&0u32);
    let count_at = encoder.mark();
    encoder.put(&0u32);
    let (mut names, mut last) = (0, args.cookie);
    let end = fs.list_xattrs(node, args.cookie, &mut |cookie, name| {
        let padded = name.len().div_ceil(4) * 4;
        if encoder.len_since(body) + 4 + padded + 4 > max {
            return false;
        }
        encoder.opaque(name);
        (names, last) = (names + 1, cookie);
        true
    })?;
    if names == 0 && !end || max < FIXED {
        let too_small = (args.maxcount as usize) <= max;
        return Err(if too_small { Nfsstat4::TOOSMALL } else { c.limit.status }.into());
    }
    encoder.patch_u32(body, (last >> 32) as u32);
    encoder.patch_u32(low_at, last as u32);
    encoder.patch_u32(count_at, names);
    encoder.put(&end);
    Ok(())
}

/// REMOVEXATTR (RFC 8276 §8.4.4).
pub(crate) fn removexattr(c: &mut Compound<'_>, args: RemovexattrArgs<'_>) -> OpResult {
    let file = c.file()?;
    let name = check_text(args.name)?;
    let (fs, node) = with_right(c, file, right::WRITE)?;
    c.check_conflict(file, Conflict::Change)?;
    let changed = fs.remove_xattr(node, name, c.now.wall)?;
    c.answer(&RemovexattrOk { info: change_info(&changed) })
}

/// File system and node, if the file may have extended attributes (RFC 8276 §8.1) and the caller that right to it.
fn with_right<'r>(c: &Compound<'r>, file: FileId, wanted: u32) -> Result<(&'r FileSystem, Node), Failure> {
    let (fs, node, attr) = c.look(file)?;
    if !matches!(attr.kind, Kind::Regular | Kind::Directory) {
        return Err(Nfsstat4::WRONG_TYPE.into());
    }
    if wanted & right::WRITE != 0 {
        c.for_change(file)?;
    }
    if !permits(&attr, c.who, wanted) {
        return Err(Nfsstat4::ACCESS.into());
    }
    Ok((fs, node))
}
