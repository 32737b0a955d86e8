//! Data and limits of version 3.

use benchmaster_nfs_proto::v3::{self, Nfsstat3 as S, StableHow};

use super::Kind;
use super::attributes4::stranger;
use super::io4::pattern;
use crate::nfs::hold;
use crate::nfs::stateless::{Fsstat3, good, write3};
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

fn read(fh: &[u8], offset: u64, count: u32) -> v3::ReadArgs<'_> {
    v3::ReadArgs { file: fh.into(), offset, count }
}

/// What is read of a file of seven bytes.
fn reads(t: &mut Trial, offset: u64, count: u32, data: &[u8], eof: Option<bool>) -> Tried {
    let fh = t.object3(Kind::File)?;
    let answer = t.s()?.call(&read(&fh, offset, count))?;
    let got = good!(answer);
    let bytes = got.data.bytes().unwrap_or_default();
    let right = bytes == data && got.count as usize == data.len() && eof.is_none_or(|eof| eof == got.eof);
    hold(right, &answer.sent, || {
        format!("{bytes:02x?}, count {}, eof {}; {data:02x?}, eof {eof:?} is right", got.count, got.eof)
    })
}

/// What is written comes back.
fn write_and_read(t: &mut Trial, offset: u64, len: usize) -> Tried {
    let dir = t.dir();
    let client = t.s()?;
    let (fh, data) = (client.file(&dir, "x", b"")?, pattern(len));
    let mut done = 0;
    while done < len {
        let answer = client.call(&write3(&fh, offset + done as u64, StableHow::FileSync, &data[done..]))?;
        let count = good!(answer).count as usize;
        hold(count > 0 && count <= len - done, &answer.sent, || {
            format!("{count} bytes written of {}", len - done)
        })?;
        done += count;
    }
    let mut back = Vec::new();
    while back.len() < len {
        let answer = client.call(&read(&fh, offset + back.len() as u64, (len - back.len()) as u32))?;
        let got = good!(answer).data.bytes().unwrap_or_default().to_vec();
        hold(!got.is_empty(), &answer.sent, || "no data before the end of the file".into())?;
        back.extend(got);
    }
    hold(back == data, &format!("WRITE and READ of {len} bytes at {offset}"), || "other content".into())?;
    let size = client.stat(&fh)?.size;
    hold(size == offset + len as u64, "WRITE, GETATTR", || {
        format!("size {size}; {} is right", offset + len as u64)
    })
}

/// WRITE as stable as asked for.
fn stable(t: &mut Trial, how: StableHow) -> Tried {
    let fh = t.object3(Kind::File)?;
    let answer = t.s()?.call(&write3(&fh, 0, how, b"data"))?;
    let committed = good!(answer).committed;
    hold(committed as u32 >= how as u32, &answer.sent, || format!("{committed:?}; at least {how:?} is right"))
}

/// READ, WRITE and COMMIT of what is no file.
fn no_data(t: &mut Trial, kind: Kind) -> Tried {
    let fh = t.object3(kind)?;
    let allowed = [S::INVAL, S::ISDIR];
    t.s()?.gives(&read(&fh, 0, 10), &allowed)?;
    t.s()?.gives(&write3(&fh, 0, StableHow::FileSync, b"data"), &allowed)
}

fn fsinfo(t: &mut Trial) -> Result<(String, v3::FsinfoOk), Stop> {
    let root = t.export.clone();
    let answer = t.s()?.call(&v3::FsArgs { fsroot: (&root[..]).into() })?;
    let ok = good!(answer);
    Ok((answer.sent.clone(), ok))
}

checks! {
    /// Data.
    IO, Io;
    "v3-read-all" V3 Must [V3 1813 "3.3.6"]
        "READ of more than is there gives what is there, and the end."
        => |t| reads(t, 0, 100, b"content", Some(true));
    "v3-read-part" V3 Must [V3 1813 "3.3.6"]
        "READ before the end gives no end."
        => |t| reads(t, 1, 3, b"ont", Some(false));
    "v3-read-to-the-end" V3 Must [V3 1813 "3.3.6"]
        "READ up to the last byte gives the end of the file."
        => |t| reads(t, 3, 4, b"tent", Some(true));
    "v3-read-beyond-the-end" V3 Must [V3 1813 "3.3.6"]
        "READ beyond the end gives nothing, and the end."
        => |t| reads(t, 1000, 10, b"", Some(true));
    "v3-read-nothing" V3 Must [V3 1813 "3.3.6"]
        "READ of no bytes succeeds with none."
        => |t| reads(t, 0, 0, b"", None);
    "v3-read-largest-count" V3 Must [V3 1813 "3.3.6"]
        "READ of the largest count there is gives what fits."
        => |t| reads(t, 0, u32::MAX, b"content", Some(true));
    "v3-io-of-directory" V3 Must [V3 1813 "3.3.6"]
        "READ and WRITE of a directory are ISDIR or INVAL."
        => |t| no_data(t, Kind::Dir);
    "v3-io-of-symlink" V3 Must [V3 1813 "3.3.6"]
        "READ and WRITE of a symbolic link are INVAL."
        => |t| no_data(t, Kind::Symlink);
    "v3-read-of-stranger" V3 Must [V3 1813 "3.3.6"]
        "Who may not read a file is answered ACCES."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let client = t.s()?;
        let new_attributes = v3::Sattr3 { mode: Some(0o600), ..v3::Sattr3::NONE };
        client.gives(&v3::SetattrArgs { object: (&fh[..]).into(), new_attributes, guard: None }, &[S::OK])?;
        client.user = stranger(client.user);
        client.gives(&read(&fh, 0, 10), &[S::ACCES])?;
        client.gives(&write3(&fh, 0, StableHow::FileSync, b"data"), &[S::ACCES])
    };
    "v3-write-one-byte" V3 Must [V3 1813 "3.3.7"]
        "What WRITE wrote READ gives back: one byte."
        => |t| write_and_read(t, 0, 1);
    "v3-write-odd-sizes" V3 Must [V3 1813 "3.3.7"]
        "What WRITE wrote READ gives back: sizes that fill no word and no page."
        => |t| write_and_read(t, 4093, 4099);
    "v3-write-large" V3 Must [V3 1813 "3.3.7"]
        "What WRITE wrote READ gives back: 64 KiB and a byte."
        => |t| write_and_read(t, 0, 65_537);
    "v3-write-far" V3 Must [V3 1813 "3.3.7"]
        "What WRITE wrote beyond 4 GiB READ gives back."
        => |t| write_and_read(t, (1 << 32) + 5, 100);
    "v3-write-largest" V3 Must [V3 1813 "3.3.19"]
        "A WRITE of wtmax bytes, up to 1 MiB, is taken."
        => |t| {
        let most = fsinfo(t)?.1.wtmax.min(1 << 20) as usize;
        write_and_read(t, 0, most)
    };
    "v3-write-nothing" V3 Must [V3 1813 "3.3.7"]
        "WRITE of no bytes succeeds, and leaves the size."
        => |t| {
        let fh = t.object3(Kind::File)?;
        t.s()?.gives(&write3(&fh, 1000, StableHow::FileSync, b""), &[S::OK])?;
        let size = t.s()?.stat(&fh)?.size;
        hold(size == 7, "WRITE of nothing, GETATTR", || format!("size {size}"))
    };
    "v3-write-leaves-a-hole" V3 Must [V3 1813 "3.3.7"]
        "What was never written before the end reads as zeros."
        => |t| {
        let fh = t.object3(Kind::File)?;
        t.s()?.write3(&fh, 5000, b"x")?;
        let answer = t.s()?.call(&read(&fh, 0, 6000))?;
        let data = good!(answer).data.bytes().unwrap_or_default().to_vec();
        let right = data.len() == 5001 && data[7..5000].iter().all(|byte| *byte == 0) && data.starts_with(b"content");
        hold(right, &answer.sent, || format!("{} bytes, other content", data.len()))
    };
    "v3-write-too-far" V3 Must [V3 1813 "3.3.7"]
        "WRITE beyond the largest size is FBIG (or INVAL)."
        => |t| {
        let fh = t.object3(Kind::File)?;
        t.s()?.gives(&write3(&fh, u64::MAX - 4, StableHow::FileSync, b"data"), &[S::FBIG, S::INVAL, S::NOSPC])
    };
    "v3-write-file-sync" V3 Must [V3 1813 "3.3.7"]
        "WRITE with FILE_SYNC is answered with it."
        => |t| stable(t, StableHow::FileSync);
    "v3-write-data-sync" V3 Must [V3 1813 "3.3.7"]
        "WRITE with DATA_SYNC is answered with no less."
        => |t| stable(t, StableHow::DataSync);
    "v3-write-moves-times" V3 Must [V3 1813 "2.5"]
        "WRITE moves the mtime."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let then = v3::Nfstime3 { seconds: 1_234_567_890, nseconds: 0 };
        let new_attributes = v3::Sattr3 { mtime: v3::SetTime::SetToClientTime(then), ..v3::Sattr3::NONE };
        t.s()?.gives(&v3::SetattrArgs { object: (&fh[..]).into(), new_attributes, guard: None }, &[S::OK])?;
        t.s()?.write3(&fh, 0, b"C")?;
        let stat = t.s()?.stat(&fh)?;
        hold(stat.mtime != then, "WRITE, GETATTR", || format!("{stat:?}"))
    };
    "v3-write-attributes" V3 Must [V3 1813 "3.3.7"]
        "WRITE gives the attributes after it truly, where it gives them."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let answer = t.s()?.call(&write3(&fh, 0, StableHow::FileSync, b"more than before"))?;
        let after = good!(answer).file_wcc.after;
        let stat = t.s()?.stat(&fh)?;
        let right = after.is_none_or(|after| after.size == stat.size && after.mtime == stat.mtime);
        hold(right, &answer.sent, || format!("{after:?}; GETATTR says {stat:?}"))
    };
    "v3-commit-verifier" V3 Must [V3 1813 "3.3.21"]
        "COMMIT after an unstable WRITE gives its verifier, unless the server restarted."
        => |t| {
        let fh = t.object3(Kind::File)?;
        let answer = t.s()?.call(&write3(&fh, 0, StableHow::Unstable, b"data"))?;
        let written = good!(answer).verf;
        let answer = t.s()?.call(&v3::CommitArgs { file: (&fh[..]).into(), offset: 0, count: 0 })?;
        let committed = good!(answer).verf;
        hold(written == committed, &answer.sent, || format!("{committed:02x?}; WRITE gave {written:02x?}"))
    };
    "v3-commit-of-directory" V3 Should [V3 1813 "3.3.21"]
        "COMMIT of a directory is refused (INVAL, ISDIR)."
        => |t| {
        let fh = t.object3(Kind::Dir)?;
        t.s()?.gives(&v3::CommitArgs { file: (&fh[..]).into(), offset: 0, count: 0 }, &[S::INVAL, S::ISDIR])
    };
}

checks! {
    /// Limits.
    LIMITS, Limits;
    "v3-fsinfo" V3 Should [V3 1813 "3.3.19"]
        "FSINFO gives sizes that make sense: most at least preferred, and more than nothing."
        => |t| {
        let (sent, ok) = fsinfo(t)?;
        let right = ok.rtmax >= ok.rtpref && ok.wtmax >= ok.wtpref && ok.rtpref > 0 && ok.wtpref > 0 && ok.dtpref > 0
            && ok.maxfilesize > 0;
        hold(right, &sent, || format!("{ok:?}"))
    };
    "v3-fsinfo-properties" V3 Should [V3 1813 "3.3.19"]
        "FSINFO says that times can be set, where SETATTR sets them."
        => |t| {
        let (sent, ok) = fsinfo(t)?;
        hold(ok.properties & v3::fsf::CANSETTIME != 0, &sent, || format!("properties {:#x}", ok.properties))
    };
    "v3-fsstat" V3 Must [V3 1813 "3.3.18"]
        "FSSTAT gives no more free space than there is."
        => |t| {
        let root = t.export.clone();
        let answer = t.s()?.call(&Fsstat3::of(v3::FsArgs { fsroot: (&root[..]).into() }))?;
        let ok = good!(answer);
        let right = ok.fbytes <= ok.tbytes && ok.abytes <= ok.fbytes && ok.ffiles <= ok.tfiles && ok.afiles <= ok.ffiles;
        hold(right, &answer.sent, || format!("{ok:?}"))
    };
    "v3-pathconf" V3 Must [V3 1813 "3.3.20"]
        "PATHCONF gives limits that make sense."
        => |t| {
        let dir = t.dir();
        let answer = t.s()?.call(&v3::PathconfArgs { object: (&dir[..]).into() })?;
        let ok = good!(answer);
        hold(ok.name_max > 0 && ok.linkmax > 0, &answer.sent, || format!("{ok:?}"))
    };
    "v3-longest-name" V3 Must [V3 1813 "3.3.20"]
        "A name of name_max bytes is taken."
        => |t| {
        let dir = t.dir();
        let answer = t.s()?.call(&v3::PathconfArgs { object: (&dir[..]).into() })?;
        let most = good!(answer).name_max.min(4096) as usize;
        t.s()?.mkdir(&dir, &"n".repeat(most)).map(|_| ())
    };
    "v3-fsinfo-bad-handle" V3 Must [V3 1813 "3.3.19"] "FSINFO of bytes that are no handle is BADHANDLE (or STALE)."
        => |t| t.s()?.gives(&v3::FsArgs { fsroot: (&b"no handle"[..]).into() }, &[S::BADHANDLE, S::STALE]);
}
