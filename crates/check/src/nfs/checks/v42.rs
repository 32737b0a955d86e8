//! What 4.2 adds: space, copies, extended attributes.

use benchmaster_nfs_proto::v4::{
    self, Argop, Bitmap4, DataContent4, Nfsstat4 as S, ReadPlusContent, SetxattrOption4, Stateid4, fattr4,
};
use benchmaster_nfs_proto::xdr::List;

use super::Kind;
use super::io4::pattern;
use crate::nfs::client4::{Answer, Client4, body};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::Open;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

const ANY: Stateid4 = Stateid4::ANONYMOUS;
/// Larger than any block.
const FAR: u64 = 4 << 20;

/// A file that is open, with content.
fn file(t: &mut Trial, name: &str, content: &[u8]) -> Result<Open, Stop> {
    let dir = t.dir();
    let client = t.a()?;
    let open = client.made("opener", &dir, name)?;
    if !content.is_empty() {
        client.done(&open.fh, &[write(open.stateid, 0, content)])?;
    }
    Ok(open)
}

/// An optional operation: NOTSUPP says that it is not there.
fn optional(answer: Answer) -> Result<Answer, Stop> {
    match answer.status() {
        S::NOTSUPP | S::OP_ILLEGAL => Err(Stop::not_applicable("the server does not have the operation")),
        S::UNION_NOTSUPP => Err(Stop::not_applicable("the server does not have the operation for this")),
        _ => Ok(answer),
    }
}

fn allocate(stateid: Stateid4, offset: u64, length: u64) -> Argop<'static> {
    Argop::Allocate(v4::AllocateArgs { stateid, offset, length })
}

fn deallocate(stateid: Stateid4, offset: u64, length: u64) -> Argop<'static> {
    Argop::Deallocate(v4::DeallocateArgs { stateid, offset, length })
}

fn seek(stateid: Stateid4, offset: u64, what: u32) -> Argop<'static> {
    Argop::Seek(v4::SeekArgs { stateid, offset, what: DataContent4(what) })
}

/// The content of a file.
fn content(client: &mut Client4, open: &Open, count: u32) -> Result<Vec<u8>, Stop> {
    let answer = client.done(&open.fh, &[read(open.stateid, 0, count)])?;
    Ok(body!(answer, Read).data.bytes().unwrap_or_default().to_vec())
}

/// COPY between two open files, whole and at once.
fn copy(
    client: &mut Client4,
    from: &Open,
    to: &Open,
    (src, dst, count): (u64, u64, u64),
) -> Result<Answer, Stop> {
    let args = v4::CopyArgs {
        src_stateid: from.stateid,
        dst_stateid: to.stateid,
        src_offset: src,
        dst_offset: dst,
        count,
        consecutive: true,
        synchronous: true,
        source_server: List::Items(&[]),
    };
    optional(client.between(&from.fh, &to.fh, Argop::Copy(args))?)
}

fn clone(
    client: &mut Client4,
    from: &Open,
    to: &Open,
    (src, dst, count): (u64, u64, u64),
) -> Result<Answer, Stop> {
    let args = v4::CloneArgs {
        src_stateid: from.stateid,
        dst_stateid: to.stateid,
        src_offset: src,
        dst_offset: dst,
        count,
    };
    optional(client.between(&from.fh, &to.fh, Argop::Clone(args))?)
}

/// COPY succeeded for all bytes, which are then the same.
fn copies(t: &mut Trial, range: (u64, u64, u64), right: &[u8]) -> Tried {
    let (from, to) = (file(t, "from", &pattern(10_000))?, file(t, "to", b"")?);
    let client = t.a()?;
    let answer = copy(client, &from, &to, range)?.ok()?;
    let Some(v4::Resop::Copy(v4::CopyRes::Ok(ok))) = answer.last() else {
        return Err(answer.wrong("success is right"));
    };
    if ok.response.callback_id.is_some() {
        return Err(Stop::not_applicable("the server copies later"));
    }
    hold(ok.response.count == right.len() as u64 - range.1, &answer.sent, || {
        format!("{} bytes copied", ok.response.count)
    })?;
    let got = content(client, &to, 20_000)?;
    hold(got == right, &answer.sent, || {
        format!("other content, {} bytes; {} are right", got.len(), right.len())
    })
}

/// The file of checks of extended attributes, where there are any.
fn with_xattrs(t: &mut Trial) -> Result<Vec<u8>, Stop> {
    let fh = t.object(Kind::File)?;
    let client = t.a()?;
    client.needs(&fh, fattr4::XATTR_SUPPORT, "xattr_support")?;
    let answer = client.done(&fh, &[getattr(&[fattr4::XATTR_SUPPORT])])?;
    match client.decoded(&answer)?.xattr_support {
        Some(true) => Ok(fh),
        _ => Err(Stop::not_applicable("the file system has no extended attributes")),
    }
}

fn set_xattr<'a>(key: &'a str, value: &'a [u8], option: SetxattrOption4) -> Argop<'a> {
    Argop::Setxattr(v4::SetxattrArgs { option, key: key.into(), value: value.into() })
}

fn get_xattr(name: &str) -> Argop<'_> {
    Argop::Getxattr(v4::GetxattrArgs { name: name.into() })
}

fn remove_xattr(name: &str) -> Argop<'_> {
    Argop::Removexattr(v4::RemovexattrArgs { name: name.into() })
}

/// All names of extended attributes, in pages.
fn list_xattrs(client: &mut Client4, fh: &[u8], maxcount: u32) -> Result<Vec<String>, Stop> {
    let (mut cookie, mut all) = (0, Vec::new());
    for _ in 0..1000 {
        let answer = client.done(fh, &[Argop::Listxattrs(v4::ListxattrsArgs { cookie, maxcount })])?;
        let page = body!(answer, Listxattrs);
        all.extend(page.names.iter().map(|name| String::from_utf8_lossy(name.0).into_owned()));
        if page.eof {
            return Ok(all);
        }
        cookie = page.cookie;
    }
    Err(Stop::failed("LISTXATTRS, page after page", "no end"))
}

checks! {
    /// Space and holes.
    SPARSE, Sparse;
    "allocate-extends" V42 Must [V42 7862 "15.1.3"]
        "ALLOCATE beyond the end makes the file larger, with zeros."
        => |t| {
            let open = file(t, "x", b"data")?;
            let client = t.a()?;
            let answer = optional(client.compound(&[putfh(&open.fh), allocate(open.stateid, 0, 10_000)])?)?.ok()?;
            let size = client.stat(&open.fh)?.size;
            hold(size == 10_000, &answer.sent, || format!("size {size}; 10000 is right"))?;
            let got = content(client, &open, 20_000)?;
            hold(got[..4] == *b"data" && got[4..].iter().all(|byte| *byte == 0), &answer.sent, || "other content".into())
        };
    "allocate-no-write-access" V42 Must [V42 7862 "15.1.3"]
        "ALLOCATE and DEALLOCATE with an open for reading are OPENMODE."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.opens("reader", &dir, "x", crate::nfs::state::Share::READ)?;
            optional(client.compound(&[putfh(&open.fh), allocate(open.stateid, 0, 10)])?)?.is(&[S::OPENMODE])?;
            optional(client.compound(&[putfh(&open.fh), deallocate(open.stateid, 0, 10)])?)?.is(&[S::OPENMODE])
        };
    "allocate-overflow" V42 Must [V42 7862 "11.2"]
        "ALLOCATE of a range beyond the largest offset is INVAL or FBIG."
        => |t| {
            let open = file(t, "x", b"data")?;
            let op = allocate(open.stateid, u64::MAX - 10, 100);
            optional(t.a()?.compound(&[putfh(&open.fh), op])?)?.is(&[S::INVAL, S::FBIG, S::NOSPC])
        };
    "deallocate-zeros" V42 Must [V42 7862 "15.4.3"]
        "DEALLOCATE makes a range read as zeros, and leaves the size and the rest."
        => |t| {
            let data = pattern(20_000);
            let open = file(t, "x", &data)?;
            let client = t.a()?;
            let op = deallocate(open.stateid, 5000, 10_000);
            let answer = optional(client.compound(&[putfh(&open.fh), op])?)?.ok()?;
            let got = content(client, &open, 30_000)?;
            let right = [&data[..5000], &[0; 10_000], &data[15_000..]].concat();
            hold(got == right, &answer.sent, || format!("other content, {} bytes", got.len()))
        };
    "deallocate-beyond-the-end" V42 Must [V42 7862 "15.4.3"]
        "DEALLOCATE beyond the end does not make the file larger."
        => |t| {
            let open = file(t, "x", b"data")?;
            let client = t.a()?;
            let op = deallocate(open.stateid, 2, 10_000);
            let answer = optional(client.compound(&[putfh(&open.fh), op])?)?.ok()?;
            let size = client.stat(&open.fh)?.size;
            hold(size == 4, &answer.sent, || format!("size {size}; 4 is right"))
        };
    "seek-data" V42 Must [V42 7862 "15.11.3"]
        "SEEK for data at data gives its place, and not the end."
        => |t| {
            let open = file(t, "x", b"data")?;
            let answer = optional(t.a()?.compound(&[putfh(&open.fh), seek(open.stateid, 1, 0)])?)?.ok()?;
            let ok = body!(answer, Seek);
            hold(ok.offset == 1 && !ok.eof, &answer.sent, || format!("{ok:?}; 1 is right"))
        };
    "seek-hole-at-the-end" V42 Must [V42 7862 "15.11.3"]
        "SEEK for a hole in a file without one gives the end of the file."
        => |t| {
            let open = file(t, "x", &pattern(5000))?;
            let answer = optional(t.a()?.compound(&[putfh(&open.fh), seek(open.stateid, 0, 1)])?)?.ok()?;
            let ok = body!(answer, Seek);
            hold(ok.offset == 5000, &answer.sent, || format!("{ok:?}; 5000 is right"))
        };
    "seek-beyond-the-end" V42 Must [V42 7862 "15.11.3"]
        "SEEK from beyond the end is NXIO."
        => |t| {
            let open = file(t, "x", b"data")?;
            optional(t.a()?.compound(&[putfh(&open.fh), seek(open.stateid, 100, 0)])?)?.is(&[S::NXIO])?;
            optional(t.a()?.compound(&[putfh(&open.fh), seek(open.stateid, 100, 1)])?)?.is(&[S::NXIO])
        };
    "seek-in-a-sparse-file" V42 Should [V42 7862 "15.11.3"]
        "SEEK finds the data behind a hole, or calls the hole data; it skips no data."
        => |t| {
            let open = file(t, "x", b"")?;
            let client = t.a()?;
            client.done(&open.fh, &[write(open.stateid, FAR, b"data"), commit(0, 0)])?;
            let answer = optional(client.compound(&[putfh(&open.fh), seek(open.stateid, 0, 0)])?)?.ok()?;
            let ok = body!(answer, Seek);
            hold(ok.offset <= FAR, &answer.sent, || format!("{ok:?}; data is at {FAR}"))
        };
    "seek-unknown-content" V42 Must [V42 7862 "15.11.3"]
        "SEEK for a kind of content that does not exist is UNION_NOTSUPP (or INVAL, or does not decode)."
        => |t| {
            let open = file(t, "x", b"data")?;
            let answer = t.a()?.compound(&[putfh(&open.fh), seek(open.stateid, 0, 77)])?;
            if answer.status() == S::NOTSUPP {
                return Err(Stop::not_applicable("the server does not have SEEK"));
            }
            answer.is(&[S::UNION_NOTSUPP, S::INVAL, S::BADXDR])
        };
    "read-plus" V42 Must [V42 7862 "15.10.3"]
        "READ_PLUS gives data and holes that make up what READ gives."
        => |t| {
            let open = file(t, "x", b"")?;
            let client = t.a()?;
            client.done(&open.fh, &[write(open.stateid, 0, b"head"), write(open.stateid, 100_000, b"tail")])?;
            let (mut got, mut eof) = (Vec::new(), false);
            while !eof && got.len() < 200_000 {
                let args = v4::ReadPlusArgs { stateid: open.stateid, offset: got.len() as u64, count: 200_000 };
                let answer = optional(client.compound(&[putfh(&open.fh), Argop::ReadPlus(args)])?)?.ok()?;
                let page = body!(answer, ReadPlus);
                let before = got.len();
                for segment in page.contents.iter() {
                    match segment {
                        ReadPlusContent::Data(data) => {
                            hold(data.offset == got.len() as u64, &answer.sent, || format!("data at {}", data.offset))?;
                            got.extend(data.data.bytes().unwrap_or_default());
                        }
                        ReadPlusContent::Hole(hole) => {
                            hold(hole.offset <= got.len() as u64, &answer.sent, || format!("a hole at {}", hole.offset))?;
                            let end = hole.offset.saturating_add(hole.length).min(100_004);
                            got.resize((end as usize).max(got.len()), 0);
                        }
                        ReadPlusContent::Other(kind) => return Err(answer.wrong(format!("content {kind} does not exist"))),
                    }
                }
                eof = page.eof;
                hold(eof || got.len() > before, &answer.sent, || "nothing, and not the end".into())?;
            }
            let right = got.len() == 100_004 && got.starts_with(b"head") && got.ends_with(b"tail")
                && got[4..100_000].iter().all(|byte| *byte == 0);
            hold(right, "READ_PLUS of a sparse file", || format!("other content, {} bytes; 100004 are right", got.len()))
        };
    "read-plus-at-the-end" V42 Must [V42 7862 "15.10.3"]
        "READ_PLUS at the end of the file gives nothing, and the end."
        => |t| {
            let open = file(t, "x", b"data")?;
            let args = v4::ReadPlusArgs { stateid: open.stateid, offset: 4, count: 100 };
            let answer = optional(t.a()?.compound(&[putfh(&open.fh), Argop::ReadPlus(args)])?)?.ok()?;
            let page = body!(answer, ReadPlus);
            let empty = page.contents.iter().all(|segment| matches!(segment, ReadPlusContent::Data(data) if data.data.is_empty()));
            hold(page.eof && empty, &answer.sent, || format!("{page:?}"))
        };
    "io-advise" V42 Must [V42 7862 "15.5.3"]
        "IO_ADVISE takes advice, or follows none."
        => |t| {
            let open = file(t, "x", b"data")?;
            let args = v4::IoAdviseArgs { stateid: open.stateid, offset: 0, count: 0, hints: Bitmap4::of(&[1]) };
            optional(t.a()?.compound(&[putfh(&open.fh), Argop::IoAdvise(args)])?)?.is(&[S::OK])
        };
}

checks! {
    /// Copies.
    COPY, Copy;
    "copy-all" V42 Must [V42 7862 "15.2.3"]
        "COPY makes the bytes of one file those of another." => |t| copies(t, (0, 0, 10_000), &pattern(10_000));
    "copy-to-the-end" V42 Must [V42 7862 "15.2.3"]
        "COPY of a count of 0 copies to the end of the source." => |t| copies(t, (0, 0, 0), &pattern(10_000));
    "copy-part" V42 Must [V42 7862 "15.2.3"]
        "COPY of a part puts it where it is wanted."
        => |t| copies(t, (1000, 3, 500), &[&[0; 3], &pattern(10_000)[1000..1500]].concat());
    "copy-beyond-the-source" V42 Must [V42 7862 "15.2.3"]
        "COPY from beyond the end of the source is INVAL."
        => |t| {
            let (from, to) = (file(t, "from", b"data")?, file(t, "to", b"")?);
            copy(t.a()?, &from, &to, (100, 0, 10))?.is(&[S::INVAL])
        };
    "copy-overlapping" V42 Must [V42 7862 "15.2.3"]
        "COPY within a file between ranges that overlap is INVAL."
        => |t| {
            let open = file(t, "from", &pattern(10_000))?;
            copy(t.a()?, &open, &open, (0, 10, 1000))?.is(&[S::INVAL])
        };
    "copy-unknown-stateid" V42 Must [V42 7862 "11.2"]
        "COPY with a stateid that names nothing is BAD_STATEID."
        => |t| {
            let (from, mut to) = (file(t, "from", b"data")?, file(t, "to", b"")?);
            to.stateid.other[11] ^= 0x5a;
            copy(t.a()?, &from, &to, (0, 0, 4))?.is(&[S::BAD_STATEID, S::STALE_STATEID])
        };
    "copy-needs-write-access" V42 Must [V42 7862 "15.2.3"]
        "COPY to a file that is open for reading is OPENMODE."
        => |t| {
            let from = file(t, "from", b"data")?;
            t.object(Kind::File)?;
            let dir = t.dir();
            let to = t.a()?.opens("reader", &dir, "x", crate::nfs::state::Share::READ)?;
            copy(t.a()?, &from, &to, (0, 0, 4))?.is(&[S::OPENMODE])
        };
    "clone-all" V42 Must [V42 7862 "15.13.3"]
        "CLONE of a whole file gives the same content, of which each can change for itself."
        => |t| {
            let data = pattern(8192);
            let (from, to) = (file(t, "from", &data)?, file(t, "to", b"")?);
            let client = t.a()?;
            let answer = clone(client, &from, &to, (0, 0, 0))?.ok()?;
            client.done(&from.fh, &[write(from.stateid, 0, b"changed")])?;
            let got = content(client, &to, 20_000)?;
            hold(got == data, &answer.sent, || format!("other content, {} bytes", got.len()))
        };
    "clone-beyond-the-source" V42 Must [V42 7862 "15.13.3"]
        "CLONE from beyond the end of the source is INVAL."
        => |t| {
            let (from, to) = (file(t, "from", &pattern(4096))?, file(t, "to", b"")?);
            clone(t.a()?, &from, &to, (1 << 20, 0, 4096))?.is(&[S::INVAL])
        };
}

checks! {
    /// Extended attributes.
    XATTR, Xattr;
    "xattr-set-and-get" V42 Must [V42 8276 "8.4.2"]
        "What SETXATTR set GETXATTR gives back, and the file's change attribute moves."
        => |t| {
            let fh = with_xattrs(t)?;
            let client = t.a()?;
            let before = client.stat(&fh)?.change;
            let value = pattern(200);
            let answer = client.done(&fh, &[set_xattr("colour", &value, SetxattrOption4::Either)])?;
            let after = client.stat(&fh)?.change;
            let told = body!(answer, Setxattr).info.after;
            hold(before != after && told == after, &answer.sent, || format!("change {before}, {after}; told {told}"))?;
            let answer = client.done(&fh, &[get_xattr("colour")])?;
            let got = body!(answer, Getxattr).value;
            hold(got.0 == value, &answer.sent, || format!("{} bytes of other content", got.0.len()))
        };
    "xattr-missing" V42 Must [V42 8276 "8.4.1"]
        "GETXATTR and REMOVEXATTR of a name that is not there are NOXATTR."
        => |t| {
            let fh = with_xattrs(t)?;
            t.a()?.on(&fh, &[get_xattr("missing")], &[S::NOXATTR])?;
            t.a()?.on(&fh, &[remove_xattr("missing")], &[S::NOXATTR])
        };
    "xattr-create" V42 Must [V42 8276 "8.4.2"]
        "SETXATTR with SETXATTR4_CREATE of a name that is there is EXIST."
        => |t| {
            let fh = with_xattrs(t)?;
            t.a()?.on(&fh, &[set_xattr("colour", b"red", SetxattrOption4::Create)], &[S::OK])?;
            t.a()?.on(&fh, &[set_xattr("colour", b"blue", SetxattrOption4::Create)], &[S::EXIST])
        };
    "xattr-replace" V42 Must [V42 8276 "8.4.2"]
        "SETXATTR with SETXATTR4_REPLACE of a name that is not there is NOXATTR."
        => |t| {
            let fh = with_xattrs(t)?;
            t.a()?.on(&fh, &[set_xattr("colour", b"red", SetxattrOption4::Replace)], &[S::NOXATTR])
        };
    "xattr-remove" V42 Must [V42 8276 "8.4.4"]
        "REMOVEXATTR takes an attribute away."
        => |t| {
            let fh = with_xattrs(t)?;
            let client = t.a()?;
            client.done(&fh, &[set_xattr("colour", b"red", SetxattrOption4::Either), remove_xattr("colour")])?;
            client.on(&fh, &[get_xattr("colour")], &[S::NOXATTR])
        };
    "xattr-list" V42 Must [V42 8276 "8.4.3"]
        "LISTXATTRS gives each name once, in one page and in several, without a prefix such as `user.`."
        => |t| {
            let fh = with_xattrs(t)?;
            let client = t.a()?;
            let names: Vec<String> = (0..20).map(|n| format!("attribute-{n:02}")).collect();
            for name in &names {
                client.done(&fh, &[set_xattr(name, b"value", SetxattrOption4::Either)])?;
            }
            for maxcount in [4096, 100] {
                let mut listed = list_xattrs(client, &fh, maxcount)?;
                listed.sort();
                hold(listed == names, &format!("LISTXATTRS, {maxcount} bytes a page"), || format!("{listed:?}"))?;
            }
            Ok(())
        };
    "xattr-empty-value" V42 Must [V42 8276 "8.4.2"]
        "An extended attribute may have no bytes."
        => |t| {
            let fh = with_xattrs(t)?;
            let client = t.a()?;
            let answer = client.done(&fh, &[set_xattr("empty", b"", SetxattrOption4::Either), get_xattr("empty")])?;
            let got = body!(answer, Getxattr).value;
            hold(got.0.is_empty(), &answer.sent, || format!("{} bytes", got.0.len()))
        };
    "xattr-empty-name" V42 Must [V42 8276 "8.4.2"]
        "SETXATTR of a name without characters is INVAL (or BADNAME, NOXATTR)."
        => |t| {
            let fh = with_xattrs(t)?;
            t.a()?.on(&fh, &[set_xattr("", b"value", SetxattrOption4::Either)], &[S::INVAL, S::BADNAME, S::NOXATTR])
        };
    "xattr-too-large" V42 Must [V42 8276 "8.4.2"]
        "SETXATTR of more than the file system takes is XATTR2BIG."
        => |t| {
            let fh = with_xattrs(t)?;
            let value = pattern(500_000);
            t.a()?.on(&fh, &[set_xattr("large", &value, SetxattrOption4::Either)], &[S::XATTR2BIG, S::NOSPC, S::REQ_TOO_BIG])
        };
    "xattr-access-bits" V42 Must [V42 8276 "8.5"]
        "ACCESS knows the bits of extended attributes, and gives the owner all."
        => |t| {
            let fh = with_xattrs(t)?;
            let bits = v4::ACCESS_XAREAD | v4::ACCESS_XAWRITE | v4::ACCESS_XALIST;
            let answer = t.a()?.done(&fh, &[access(bits)])?;
            let ok = body!(answer, Access);
            hold(ok.supported == bits && ok.access == bits, &answer.sent, || format!("{ok:?}"))
        };
    "xattr-of-anonymous" V42 Must [V42 8276 "8.4.3"]
        "LISTXATTRS of a file without extended attributes gives none, and the end."
        => |t| {
            let fh = with_xattrs(t)?;
            let names = list_xattrs(t.a()?, &fh, 4096)?;
            hold(names.is_empty(), "LISTXATTRS of a new file", || format!("{names:?}"))?;
            t.a()?.on(&fh, &[read(ANY, 0, 1)], &[S::OK])
        };
}
