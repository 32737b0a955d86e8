//! Operations of 4.2 on ranges of files (RFC 7862 §15).

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    AllocateArgs, Bitmap4, CloneArgs, CopyArgs, CopyOk, CopyRequirements4, DataContent4, DeallocateArgs,
    IoAdvise4, IoAdviseArgs, IoAdviseOk, Nfsstat4, ReadPlusArgs, SeekArgs, SeekOk, StableHow4, Stateid4,
    WriteResponse4,
};

use super::io_ops::check_end;
use super::{Compound, Failure, OpResult};
use crate::fs::{Attr, FileSystem, FsError, Kind, Node, SeekKind};
use crate::handle::FileId;

/// ALLOCATE (RFC 7862 §15.1).
pub(crate) fn allocate(c: &mut Compound<'_>, args: AllocateArgs) -> OpResult {
    let (fs, node) = range_for_change(c, args.stateid, args.offset, args.length)?;
    fs.allocate(c.who, node, args.offset, args.length, c.now.wall)?;
    Ok(())
}

/// DEALLOCATE (RFC 7862 §15.4).
pub(crate) fn deallocate(c: &mut Compound<'_>, args: DeallocateArgs) -> OpResult {
    let (fs, node) = range_for_change(c, args.stateid, args.offset, args.length)?;
    fs.deallocate(c.who, node, args.offset, args.length, c.now.wall)?;
    Ok(())
}

fn range_for_change<'r>(
    c: &mut Compound<'r>,
    stateid: Stateid4,
    offset: u64,
    len: u64,
) -> Result<(&'r FileSystem, Node), Failure> {
    let file = c.file()?;
    regular(c, file)?;
    let stateid = c.stateid(stateid)?;
    c.authorize(stateid, file, true)?;
    if len == 0 {
        return Err(Nfsstat4::INVAL.into());
    }
    check_end(offset, len)?;
    c.for_change(file)
}

/// Attributes of a regular file; RFC 7862 wants WRONG_TYPE for all others.
fn regular(c: &Compound<'_>, file: FileId) -> Result<Attr, Failure> {
    let (_, _, attr) = c.look(file)?;
    if attr.kind != Kind::Regular {
        return Err(Nfsstat4::WRONG_TYPE.into());
    }
    Ok(attr)
}

/// SEEK (RFC 7862 §15.11).
pub(crate) fn seek(c: &mut Compound<'_>, args: SeekArgs) -> OpResult {
    let file = c.file()?;
    let stateid = c.stateid(args.stateid)?;
    c.authorize(stateid, file, false)?;
    let (fs, node, attr) = c.look(file)?;
    super::io_ops::check_kind(attr.kind)?;
    let what = match args.what {
        DataContent4::DATA => SeekKind::Data,
        DataContent4::HOLE => SeekKind::Hole,
        _ if is_broken(Mutant::AnyContentIsData) => SeekKind::Data,
        _ => return Err(Nfsstat4::UNION_NOTSUPP.into()),
    };
    let found = fs.seek(node, args.offset, what)?;
    // The hole that ends every file is found, at the end.
    let offset = found.unwrap_or(attr.size);
    c.answer(&SeekOk { eof: found.is_none() || offset >= attr.size, offset })
}

/// IO_ADVISE (RFC 7862 §15.5): memory needs no advice. Who only writes may advise, too: OPENMODE is no answer (§11.2).
pub(crate) fn io_advise(c: &mut Compound<'_>, args: IoAdviseArgs) -> OpResult {
    let file = c.file()?;
    let stateid = c.stateid(args.stateid)?;
    match c.authorize(stateid, file, false) {
        Err(failure) if failure.status == Nfsstat4::OPENMODE => c.authorize(stateid, file, true)?,
        outcome => outcome?,
    }
    let (_, _, attr) = c.look(file)?;
    super::io_ops::check_kind(attr.kind)?;
    if args.offset.checked_add(args.count).is_none() {
        return Err(Nfsstat4::INVAL.into());
    }
    c.answer(&IoAdviseOk { hints: Bitmap4::of(&[IoAdvise4::NORMAL.0]) })
}

/// Source and destination of COPY and CLONE: who may, and how many bytes.
struct Range<'r> {
    from: (&'r FileSystem, Node),
    to: (&'r FileSystem, Node),
    count: u64,
}

fn range<'r>(
    c: &mut Compound<'r>,
    stateids: (Stateid4, Stateid4),
    offsets: (u64, u64),
    count: u64,
) -> Result<Range<'r>, Failure> {
    let (from, to) = (c.saved_file()?, c.file()?);
    let size = regular(c, from)?.size;
    regular(c, to)?;
    // The source's current stateid is the saved one (RFC 7862 has only one rule for both: §15.2.3, RFC 8881
    // §16.2.3.1.2).
    let source = c.source_stateid(stateids.0)?;
    let destination = c.stateid(stateids.1)?;
    c.authorize(source, from, false)?;
    c.authorize(destination, to, true)?;
    let available = size.checked_sub(offsets.0).ok_or(Nfsstat4::INVAL)?;
    if count > available {
        return Err(Nfsstat4::INVAL.into());
    }
    let count = if count == 0 { available } else { count };
    check_end(offsets.1, count)?;
    let server = c.server;
    Ok(Range { from: server.exports.file(from)?, to: c.for_change(to)?, count })
}

/// Most bytes that one COPY shares between files of an export, and copies between exports.
const MOST_SHARED: u64 = 16 << 30;
const MOST_COPIED: u64 = 64 << 20;

/// COPY within this server, done before the answer (RFC 7862 §15.2).
pub(crate) fn copy(c: &mut Compound<'_>, args: CopyArgs<'_>) -> OpResult {
    if !args.source_server.is_empty() {
        return Err(Nfsstat4::PARTNER_NOTSUPP.into());
    }
    if c.saved_file()? == c.file()? {
        return Err(Nfsstat4::INVAL.into());
    }
    let stateids = (args.src_stateid, args.dst_stateid);
    let Range { from, to, count } = range(c, stateids, (args.src_offset, args.dst_offset), args.count)?;
    let within = std::ptr::eq(from.0, to.0);
    // One request holds no others up: the client asks for the rest (RFC 7862 §15.2.3).
    let count = count.min(if within { MOST_SHARED } else { MOST_COPIED });
    let copied = if within {
        let (fs, now) = (from.0, c.now.wall);
        if count == 0 {
            0
        } else {
            fs.copy_range(c.who, from.1, args.src_offset, to.1, args.dst_offset, count, now)?.0
        }
    } else {
        copy_across(c, from, args.src_offset, to, args.dst_offset, count)?
    };
    c.answer(&CopyOk {
        response: WriteResponse4 {
            callback_id: None,
            count: copied,
            committed: StableHow4::Unstable,
            writeverf: c.write_verifier(),
        },
        requirements: CopyRequirements4 { consecutive: true, synchronous: true },
    })
}

/// Copies between exports, piece by piece.
fn copy_across(
    c: &mut Compound<'_>,
    from: (&FileSystem, Node),
    from_offset: u64,
    to: (&FileSystem, Node),
    to_offset: u64,
    count: u64,
) -> Result<u64, Failure> {
    let mut pages = c.reply.scratch();
    let mut done = 0;
    while done < count {
        let piece = u32::try_from(count - done).unwrap_or(u32::MAX).min(1 << 20);
        if from.0.read(from.1, from_offset + done, piece, &mut pages, c.now.wall)?.len == 0 {
            break;
        }
        for page in pages.drain(..) {
            let bytes = page.as_slice();
            to.0.write(c.who, to.1, to_offset + done, bytes, c.now.wall)?;
            done += bytes.len() as u64;
        }
    }
    Ok(done)
}

/// CLONE (RFC 7862 §15.13).
pub(crate) fn clone(c: &mut Compound<'_>, args: CloneArgs) -> OpResult {
    let same = c.saved_file()? == c.file()?;
    if c.saved_file()?.export != c.file()?.export {
        return Err(Nfsstat4::XDEV.into());
    }
    let stateids = (args.src_stateid, args.dst_stateid);
    let Range { from, to, count } = range(c, stateids, (args.src_offset, args.dst_offset), args.count)?;
    if same && args.src_offset.abs_diff(args.dst_offset) < count {
        return Err(Nfsstat4::INVAL.into());
    }
    if count > 0 {
        from.0.copy_range(c.who, from.1, args.src_offset, to.1, args.dst_offset, count, c.now.wall)?;
        // Its result does not say that it has to be committed.
        c.server.commit(to.0, to.1, c.now.wall)?;
    }
    Ok(())
}

/// READ_PLUS (RFC 7862 §15.10): data by reference, holes by name.
pub(crate) fn read_plus(c: &mut Compound<'_>, args: ReadPlusArgs) -> OpResult {
    /// Kind, offset, and length or count with padding.
    const CONTENT: usize = 4 + 8 + 8;
    let file = c.file()?;
    let stateid = c.stateid(args.stateid)?;
    c.authorize(stateid, file, false)?;
    let (fs, node, attr) = c.look(file)?;
    super::io_ops::check_kind(attr.kind)?;
    let asked = args.offset.saturating_add(u64::from(args.count.min(c.server.config.max_io)));
    let end = asked.min(attr.size);
    let eof_at = c.reply.mark();
    c.reply.encoder.put(&false);
    let contents_at = c.reply.mark();
    c.reply.encoder.put(&0u32);
    let (mut at, mut contents) = (args.offset, 0);
    let mut eof = asked >= attr.size;
    while at < end {
        let data = match fs.seek(node, at, SeekKind::Data) {
            Ok(data) => data.unwrap_or(end).min(end),
            Err(FsError::NoSuchRange) => end,
            Err(error) => return Err(error.into()),
        };
        let left = c.room();
        if left < CONTENT + 4 && contents > 0 {
            break;
        }
        if data > at {
            c.reply.encoder.put(&DataContent4::HOLE);
            c.reply.encoder.put(&at);
            c.reply.encoder.put(&(data - at));
            at = data;
        } else {
            let hole = match fs.seek(node, at, SeekKind::Hole) {
                Ok(hole) => hole.unwrap_or(end).min(end),
                Err(FsError::NoSuchRange) => break,
                Err(error) => return Err(error.into()),
            };
            let most = if contents == 0 { usize::MAX } else { (left - CONTENT) & !3 };
            let count = usize::try_from(hole - at).unwrap_or(usize::MAX).min(most);
            let mut pages = c.reply.scratch();
            let count = u32::try_from(count).unwrap_or(u32::MAX);
            let len = fs.read(node, at, count, &mut pages, c.now.wall)?.len;
            if len == 0 {
                // Truncated meanwhile.
                eof = true;
                break;
            }
            c.reply.encoder.put(&DataContent4::DATA);
            c.reply.encoder.put(&at);
            c.reply.put_pages(pages);
            at += u64::from(len);
        }
        contents += 1;
    }
    c.reply.encoder.patch_u32(eof_at, u32::from(eof && at >= end || at >= attr.size));
    c.reply.encoder.patch_u32(contents_at, contents);
    Ok(())
}
