//! Reading and writing with version 4.

use benchmaster_nfs_proto::v4::{Attributes, Nfsstat4 as S, StableHow4, Stateid4, fattr4};

use super::Kind;
use crate::nfs::client4::body;
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::Open;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

const ANY: Stateid4 = Stateid4::ANONYMOUS;

/// A file that is open.
fn open(t: &mut Trial) -> Result<Open, Stop> {
    let dir = t.dir();
    t.a()?.made("writer", &dir, "x")
}

/// Content in which every place is different.
pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n.wrapping_mul(31) ^ (n >> 8).wrapping_mul(17)) as u8).collect()
}

/// What is read of a file of seven bytes.
fn reads(t: &mut Trial, offset: u64, count: u32, data: &[u8], eof: bool) -> Tried {
    let fh = t.object(Kind::File)?;
    let answer = t.a()?.done(&fh, &[read(ANY, offset, count)])?;
    let got = body!(answer, Read);
    let bytes = got.data.bytes().unwrap_or_default();
    hold(bytes == data && got.eof == eof, &answer.sent, || {
        format!("{bytes:02x?}, eof {}; {data:02x?}, eof {eof} is right", got.eof)
    })
}

/// What is written comes back.
fn write_and_read(t: &mut Trial, offset: u64, len: usize) -> Tried {
    let file = open(t)?;
    let (client, data) = (t.a()?, pattern(len));
    let mut done = 0;
    while done < len {
        let answer = client.done(&file.fh, &[write(file.stateid, offset + done as u64, &data[done..])])?;
        let count = body!(answer, Write).count as usize;
        hold(count > 0 && count <= len - done, &answer.sent, || {
            format!("{count} bytes written of {}", len - done)
        })?;
        done += count;
    }
    let mut back = Vec::new();
    while back.len() < len {
        let place = offset + back.len() as u64;
        let answer = client.done(&file.fh, &[read(file.stateid, place, (len - back.len()) as u32)])?;
        let got = body!(answer, Read).data.bytes().unwrap_or_default().to_vec();
        hold(!got.is_empty(), &answer.sent, || "no data before the end of the file".into())?;
        back.extend(got);
    }
    let sent = format!("WRITE and READ of {len} bytes at {offset}");
    let differs = back.iter().zip(&data).position(|(one, other)| one != other);
    hold(differs.is_none() && back.len() == len, &sent, || format!("other content at byte {differs:?}"))?;
    let size = client.stat(&file.fh)?.size;
    hold(size == offset + len as u64, &sent, || format!("size {size}"))
}

/// WRITE as stable as asked for, which it must be at least.
fn stable(t: &mut Trial, how: StableHow4) -> Tried {
    let file = open(t)?;
    let answer = t.a()?.done(&file.fh, &[write_how(file.stateid, 0, how, b"data")])?;
    let committed = body!(answer, Write).committed;
    hold(committed >= how, &answer.sent, || format!("{committed:?}; at least {how:?} is right"))
}

/// WRITE and READ of what is no file.
fn no_data(t: &mut Trial, kind: Kind, allowed: &[S]) -> Tried {
    let fh = t.object(kind)?;
    t.a()?.on(&fh, &[read(ANY, 0, 10)], allowed)?;
    t.a()?.on(&fh, &[write(ANY, 0, b"x")], allowed)
}

checks! {
    /// Data.
    LIST, Io;
    "read-all" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ of more than is there gives what is there, and the end of the file."
        => |t| reads(t, 0, 100, b"content", true);
    "read-part" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ before the end gives no end of the file."
        => |t| reads(t, 1, 3, b"ont", false);
    "read-to-the-end" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ up to the last byte gives the end of the file."
        => |t| reads(t, 3, 4, b"tent", true);
    "read-at-the-end" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ at the end of the file gives no data, and the end."
        => |t| reads(t, 7, 10, b"", true);
    "read-beyond-the-end" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ beyond the end of the file gives no data, and the end."
        => |t| reads(t, 1000, 10, b"", true);
    "read-nothing" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ of no bytes succeeds with no data."
        => |t| {
            let fh = t.object(Kind::File)?;
            let answer = t.a()?.done(&fh, &[read(ANY, 0, 0)])?;
            let got = body!(answer, Read);
            hold(got.data.is_empty(), &answer.sent, || format!("{} bytes", got.data.len()))
        };
    "read-empty-file" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ of an empty file gives no data, and the end."
        => |t| {
            let file = open(t)?;
            let answer = t.a()?.done(&file.fh, &[read(file.stateid, 0, 10)])?;
            let got = body!(answer, Read);
            hold(got.data.is_empty() && got.eof, &answer.sent, || format!("{} bytes, eof {}", got.data.len(), got.eof))
        };
    "io-of-directory" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ and WRITE of a directory are ISDIR." => |t| no_data(t, Kind::Dir, &[S::ISDIR]);
    "io-of-symlink" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ and WRITE of a symbolic link are INVAL, WRONG_TYPE or SYMLINK."
        => |t| no_data(t, Kind::Symlink, &[S::INVAL, S::WRONG_TYPE, S::SYMLINK]);
    "io-of-fifo" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ and WRITE of a FIFO are INVAL or WRONG_TYPE."
        => |t| no_data(t, Kind::Fifo, &[S::INVAL, S::WRONG_TYPE]);
    "write-one-byte" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "What WRITE wrote READ gives back: one byte." => |t| write_and_read(t, 0, 1);
    "write-odd-sizes" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "What WRITE wrote READ gives back: lengths and offsets that fill no word and no page."
        => |t| write_and_read(t, 4093, 4099);
    "write-a-page-and-one" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "What WRITE wrote READ gives back: a page and a byte." => |t| write_and_read(t, 1, 4097);
    "write-64-kib-and-one" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "What WRITE wrote READ gives back: 64 KiB and a byte." => |t| write_and_read(t, 0, 65_537);
    "write-far" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "What WRITE wrote beyond 4 GiB READ gives back." => |t| write_and_read(t, (1 << 32) + 5, 100);
    "write-largest" V4 Must [V40 7530 "5.8.2.17", V41 8881 "5.8.2.19"]
        "What WRITE wrote READ gives back: as much as maxwrite and maxread allow, up to 1 MiB."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            client.needs(&dir, fattr4::MAXWRITE, "maxwrite")?;
            let answer = client.done(&dir, &[getattr(&[fattr4::MAXWRITE])])?;
            let largest = client.decoded(&answer)?.maxwrite.unwrap_or(0).min(1 << 20);
            let room = client.session.as_ref().map_or(u64::MAX, |session| {
                u64::from(session.fore.maxrequestsize.min(session.fore.maxresponsesize)).saturating_sub(1024)
            });
            write_and_read(t, 0, largest.min(room) as usize)
        };
    "write-nothing" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "WRITE of no bytes succeeds, writes none, and leaves the size."
        => |t| {
            let file = open(t)?;
            let client = t.a()?;
            let answer = client.done(&file.fh, &[write(file.stateid, 100, b"")])?;
            let count = body!(answer, Write).count;
            let size = client.stat(&file.fh)?.size;
            hold(count == 0 && size == 0, &answer.sent, || format!("{count} bytes, size {size}"))
        };
    "write-leaves-a-hole" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "What was never written before the end of a file reads as zeros."
        => |t| {
            let file = open(t)?;
            let client = t.a()?;
            client.done(&file.fh, &[write(file.stateid, 10_000, b"x")])?;
            let answer = client.done(&file.fh, &[read(file.stateid, 0, 10_001)])?;
            let data = body!(answer, Read).data.bytes().unwrap_or_default().to_vec();
            let right = data.len() == 10_001 && data[..10_000].iter().all(|byte| *byte == 0) && data[10_000] == b'x';
            hold(right, &answer.sent, || format!("{} bytes, not all zeros before the last", data.len()))
        };
    "write-inside" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "WRITE inside a file leaves the bytes around it, and the size."
        => |t| {
            let file = open(t)?;
            let client = t.a()?;
            client.done(&file.fh, &[write(file.stateid, 0, b"0123456789"), write(file.stateid, 3, b"abc")])?;
            let answer = client.done(&file.fh, &[read(file.stateid, 0, 100)])?;
            let data = body!(answer, Read).data.bytes().unwrap_or_default();
            hold(data == b"012abc6789", &answer.sent, || format!("{:?}", String::from_utf8_lossy(data)))
        };
    "write-file-sync" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "WRITE with FILE_SYNC is answered with FILE_SYNC." => |t| stable(t, StableHow4::FileSync);
    "write-data-sync" V4 Must [V40 7530 "16.36.4", V41 8881 "18.32.3"]
        "WRITE with DATA_SYNC is answered with no less." => |t| stable(t, StableHow4::DataSync);
    "commit-verifier" V4 Must [V40 7530 "16.3.5", V41 8881 "18.3.4"]
        "COMMIT after an unstable WRITE gives the verifier of the WRITE, unless the server restarted."
        => |t| {
            let file = open(t)?;
            let client = t.a()?;
            let answer = client.done(&file.fh, &[write_how(file.stateid, 0, StableHow4::Unstable, b"data")])?;
            let written = body!(answer, Write).writeverf;
            let answer = client.done(&file.fh, &[commit(0, 0)])?;
            let committed = body!(answer, Commit).writeverf;
            hold(written == committed, &answer.sent, || format!("{committed:02x?}; WRITE gave {written:02x?}"))
        };
    "commit-of-directory" V4 Must [V40 7530 "16.3.5", V41 8881 "18.3.4"]
        "COMMIT of a directory is ISDIR." => |t| t.at(Kind::Dir, &[commit(0, 0)], &[S::ISDIR]);
    "commit-of-symlink" V4 Must [V40 7530 "16.3.5", V41 8881 "18.3.4"]
        "COMMIT of a symbolic link is INVAL, WRONG_TYPE or SYMLINK."
        => |t| t.at(Kind::Symlink, &[commit(0, 0)], &[S::INVAL, S::WRONG_TYPE, S::SYMLINK]);
    "commit-range" V4 Must [V40 7530 "16.3.4", V41 8881 "18.3.3"]
        "COMMIT takes any range of the file." => |t| t.at(Kind::File, &[commit(3, 2)], &[S::OK]);
    "write-too-far" V4 Must [V40 7530 "13.1.4.4", V41 8881 "15.1.4.4"]
        "WRITE beyond maxfilesize is FBIG (or INVAL, where the offset cannot be)."
        => |t| {
            let file = open(t)?;
            let client = t.a()?;
            let answer = client.compound(&[putfh(&file.fh), write(file.stateid, u64::MAX - 4, b"data")])?;
            answer.is(&[S::FBIG, S::INVAL, S::NOSPC])?;
            let size = client.stat(&file.fh)?.size;
            hold(size == 0, &answer.sent, || format!("size {size} after the error"))
        };
    "size-too-large" V4 Must [V40 7530 "13.1.4.4", V41 8881 "15.1.4.4"]
        "SETATTR of a size beyond maxfilesize is FBIG (or INVAL)."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.needs(&fh, fattr4::MAXFILESIZE, "maxfilesize")?;
            let answer = client.done(&fh, &[getattr(&[fattr4::MAXFILESIZE])])?;
            let largest = client.decoded(&answer)?.maxfilesize.unwrap_or(u64::MAX);
            if largest == u64::MAX {
                return Err(Stop::not_applicable("maxfilesize is the largest number there is"));
            }
            let size = Attributes { size: Some(largest + 1), ..Attributes::default() };
            client.on(&fh, &[setattr(ANY, &Attrs::of(&size))], &[S::FBIG, S::INVAL])
        };
    "read-damaged-count" V4 Must [V40 7530 "16.23.4", V41 8881 "18.22.3"]
        "READ of the largest count there is gives what fits."
        => |t| {
            let fh = t.object(Kind::File)?;
            let answer = t.a()?.compound(&[putfh(&fh), read(ANY, 0, u32::MAX)])?;
            if answer.status() == S::REP_TOO_BIG {
                return Ok(());
            }
            let answer = answer.ok()?;
            let data = body!(answer, Read).data.bytes().unwrap_or_default();
            hold(data == b"content", &answer.sent, || format!("{} bytes", data.len()))
        };
    "space-used" V4 Should [V40 7530 "5.8.2.31", V41 8881 "5.8.2.35"]
        "A file with data uses space."
        => |t| {
            let file = open(t)?;
            let client = t.a()?;
            client.needs(&file.fh, fattr4::SPACE_USED, "space_used")?;
            client.done(&file.fh, &[write(file.stateid, 0, &pattern(65_536)), commit(0, 0)])?;
            let answer = client.done(&file.fh, &[getattr(&[fattr4::SPACE_USED])])?;
            let used = client.decoded(&answer)?.space_used;
            hold(used.is_some_and(|used| used > 0), &answer.sent, || format!("{used:?}"))
        };
}
