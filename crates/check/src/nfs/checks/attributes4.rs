//! Attributes of version 4.

use benchmaster_nfs_proto::v4::{
    self, Argop, Attributes, Bitmap4, Ftype4, KNOWN_ATTRS, Nfsstat4 as S, Nfstime4, Settime4, Stateid4,
    WRITE_ONLY_ATTRS, fattr4,
};
use benchmaster_nfs_proto::xdr::Decoder;

use super::Kind;
use crate::nfs::client4::{Client4, body};
use crate::nfs::connection::User;
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::Share;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

const ANY: Stateid4 = Stateid4::ANONYMOUS;
/// Attributes that every server has (RFC 7530 §5.6, RFC 8881 §5.6).
const REQUIRED: [u32; 13] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19];
/// A time with a part that clocks of microseconds and coarser keep.
const THEN: Nfstime4 = Nfstime4 { seconds: 1_234_567_890, nseconds: 0 };

/// An attribute that the server does not have, of those that can be set.
fn unsupported(client: &mut Client4, fh: &[u8]) -> Result<Attrs, Stop> {
    let (_, supported) = client.every_attribute(fh)?;
    // archive, hidden, system: one boolean each.
    let missing =
        [fattr4::ARCHIVE, fattr4::HIDDEN, fattr4::SYSTEM].into_iter().find(|n| !supported.contains(*n));
    let number = missing.ok_or_else(|| Stop::not_applicable("the server has archive, hidden and system"))?;
    Ok(Attrs { mask: Bitmap4::of(&[number]), values: vec![0, 0, 0, 1] })
}

/// SETATTR of a new file, whose attributes are then as given by `right`.
fn sets(t: &mut Trial, attrs: &Attrs, right: impl Fn(&super::Stat) -> bool) -> Tried {
    let fh = t.object(Kind::File)?;
    let client = t.a()?;
    let before = client.stat(&fh)?;
    let answer = client.done(&fh, &[setattr(ANY, attrs)])?;
    let after = client.stat(&fh)?;
    hold(right(&after), &answer.sent, || format!("then GETATTR gives {after:?}"))?;
    hold(after.change != before.change, &answer.sent, || "the change attribute stays".into())?;
    let set = match answer.last() {
        Some(v4::Resop::Setattr(result)) => result.attrsset,
        _ => return Err(answer.wrong("SETATTR is to succeed")),
    };
    hold(attrs.mask.is_subset(&set), &answer.sent, || {
        format!("attributes set: {set:?}; {:?} is right", attrs.mask)
    })
}

/// GETATTR of an object of a kind has the type.
fn has_type(t: &mut Trial, kind: Kind, right: Ftype4) -> Tried {
    let fh = t.object(kind)?;
    let found = t.a()?.stat(&fh)?.kind;
    hold(found == right, "GETATTR type", || format!("{found:?}; {right:?} is right"))
}

/// VERIFY or NVERIFY of the size of a file of seven bytes.
fn compares(t: &mut Trial, op: fn(&Attrs) -> Argop<'_>, size: u64, right: S) -> Tried {
    let fh = t.object(Kind::File)?;
    t.a()?.on(&fh, &[op(&Attrs::size(size))], &[right])
}

/// Both comparisons of attributes that make none.
fn cannot_compare(t: &mut Trial, attrs: &Attrs, right: &[S]) -> Tried {
    t.at_dir(&[verify(attrs)], right)?;
    t.at_dir(&[nverify(attrs)], right)
}

/// Access that a stranger has to a new file.
fn stranger_may(t: &mut Trial, mode: u32, asked: u32) -> Result<(String, u32, u32), Stop> {
    let fh = t.object(Kind::File)?;
    let client = t.a()?;
    client.done(&fh, &[setattr(ANY, &Attrs::mode(mode))])?;
    let owner = client.user;
    client.user = stranger(owner);
    let answer = client.compound(&[putfh(&fh), access(asked)]);
    client.user = owner;
    let answer = answer?.ok()?;
    let ok = body!(answer, Access);
    Ok((answer.sent.clone(), ok.supported, ok.access))
}

/// Another user, with no rights of its own.
pub(super) fn stranger(user: User) -> User {
    let other = |id: u32| if id == 54_321 { 54_322 } else { 54_321 };
    User { uid: other(user.uid), gid: other(user.gid) }
}

checks! {
    /// Attributes and access.
    LIST, Attributes;
    "getattr-required" V4 Must [V40 7530 "5.6", V41 8881 "5.6"]
        "The required attributes are supported, and GETATTR gives them."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            let (answer, supported) = client.every_attribute(&fh)?;
            let required = Bitmap4::of(&REQUIRED);
            let required = if client.minor > 0 { required.with(fattr4::SUPPATTR_EXCLCREAT) } else { required };
            hold(required.is_subset(&supported), &answer.sent, || {
                format!("{supported:?}; {:?} are missing", required & !supported)
            })?;
            let asked: Vec<u32> = required.iter().collect();
            let answer = client.done(&fh, &[getattr(&asked)])?;
            let given = client.decoded(&answer)?.mask();
            hold(required.is_subset(&given), &answer.sent, || {
                format!("{given:?}; {:?} are missing", required & !given)
            })
        };
    "getattr-each" V4 Must [V40 7530 "16.7.4", V41 8881 "18.7.3"]
        "GETATTR gives every attribute that supported_attrs lists and that can be read, each asked for alone."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            let (_, supported) = client.every_attribute(&fh)?;
            for number in (supported & KNOWN_ATTRS & !WRITE_ONLY_ATTRS).iter() {
                let answer = client.done(&fh, &[getattr(&[number])])?;
                let given = client.decoded(&answer)?.mask();
                hold(given == Bitmap4::of(&[number]), &answer.sent, || format!("attributes {given:?}"))?;
            }
            Ok(())
        };
    "getattr-together" V4 Must [V40 7530 "16.7.4", V41 8881 "18.7.3"]
        "GETATTR of all attributes at once gives them in the order of their numbers, each well formed."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            let (_, supported) = client.every_attribute(&fh)?;
            let asked: Vec<u32> = (supported & KNOWN_ATTRS & !WRITE_ONLY_ATTRS).iter().collect();
            let answer = client.done(&fh, &[getattr(&asked)])?;
            let given = client.decoded(&answer)?.mask();
            hold(given == Bitmap4::of(&asked), &answer.sent, || format!("attributes {given:?}"))
        };
    "getattr-none" V4 Must [V40 7530 "16.7.4", V41 8881 "18.7.3"]
        "GETATTR of no attribute gives none."
        => |t| {
            let dir = t.dir();
            let answer = t.a()?.done(&dir, &[getattr(&[])])?;
            let given = body!(answer, Getattr).obj_attributes.attrmask;
            hold(given.is_empty(), &answer.sent, || format!("attributes {given:?}"))
        };
    "getattr-unsupported" V4 Must [V40 7530 "16.7.4", V41 8881 "18.7.3"]
        "GETATTR leaves out attributes that the server does not have, without an error."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let missing = unsupported(client, &dir)?.mask.iter().next().unwrap_or_default();
            let answer = client.done(&dir, &[getattr(&[fattr4::TYPE, missing])])?;
            let given = body!(answer, Getattr).obj_attributes.attrmask;
            hold(given == Bitmap4::of(&[fattr4::TYPE]), &answer.sent, || format!("attributes {given:?}"))
        };
    "getattr-write-only" V4 Must [V40 7530 "5.5", V41 8881 "5.5"]
        "GETATTR of an attribute that can only be set is INVAL."
        => |t| t.at_dir(&[getattr(&[fattr4::TIME_ACCESS_SET])], &[S::INVAL]);
    "type-of-file" V4 Must [V40 7530 "5.8.1.2", V41 8881 "5.8.1.2"]
        "A file has the type of files." => |t| has_type(t, Kind::File, Ftype4::Reg);
    "type-of-directory" V4 Must [V40 7530 "5.8.1.2", V41 8881 "5.8.1.2"]
        "A directory has the type of directories." => |t| has_type(t, Kind::Dir, Ftype4::Dir);
    "type-of-symlink" V4 Must [V40 7530 "5.8.1.2", V41 8881 "5.8.1.2"]
        "A symbolic link has the type of links." => |t| has_type(t, Kind::Symlink, Ftype4::Lnk);
    "filehandle-attribute" V4 Must [V40 7530 "5.8.1.13", V41 8881 "5.8.1.13"]
        "The attribute filehandle is what GETFH gives."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            let answer = client.done(&fh, &[Argop::Getfh, getattr(&[fattr4::FILEHANDLE])])?;
            let (attribute, given) = (client.decoded(&answer)?.filehandle, answer.fh()?);
            hold(attribute.map(|fh| fh.0) == Some(&given[..]), &answer.sent, || format!("{attribute:?}"))
        };
    "fileid-unique" V4 Must [V40 7530 "5.8.2.6", V41 8881 "5.8.2.7"]
        "Two objects of a file system have different fileids, and the same fsid."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let client = t.a()?;
            let other = client.file(&dir, "other", b"")?;
            let (one, two) = (client.stat(&fh)?.fileid, client.stat(&other)?.fileid);
            hold(one != two, "GETATTR fileid of two files", || format!("{one} both"))?;
            let answer = client.compound(&[putfh(&fh), getattr(&[fattr4::FSID])])?.ok()?;
            let first = client.decoded(&answer)?.fsid;
            let answer = client.compound(&[putfh(&other), getattr(&[fattr4::FSID])])?.ok()?;
            let second = client.decoded(&answer)?.fsid;
            hold(first == second, &answer.sent, || format!("{second:?}; the file beside it has {first:?}"))
        };
    "mounted-on-fileid" V4 Must [V40 7530 "5.8.2.19", V41 8881 "5.8.2.23"]
        "Where nothing is mounted, mounted_on_fileid is the fileid."
        => |t| {
            let fh = t.object(Kind::Dir)?;
            let client = t.a()?;
            client.needs(&fh, fattr4::MOUNTED_ON_FILEID, "mounted_on_fileid")?;
            let answer = client.done(&fh, &[getattr(&[fattr4::FILEID, fattr4::MOUNTED_ON_FILEID])])?;
            let got = client.decoded(&answer)?;
            hold(got.fileid == got.mounted_on_fileid, &answer.sent, || format!("{got:?}"))
        };
    "lease-time" V4 Must [V40 7530 "5.8.1.11", V41 8881 "5.8.1.11"]
        "The lease time is more than nothing."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let answer = client.done(&dir, &[getattr(&[fattr4::LEASE_TIME])])?;
            let lease = client.decoded(&answer)?.lease_time;
            hold(lease.is_some_and(|lease| lease > 0), &answer.sent, || format!("{lease:?}"))
        };
    "setattr-mode" V4 Must [V40 7530 "16.32", V41 8881 "18.30"]
        "SETATTR sets the mode, says so, and changes the change attribute."
        => |t| sets(t, &Attrs::mode(0o640), |stat| stat.mode & 0o7777 == 0o640);
    "setattr-shrinks" V4 Must [V40 7530 "16.32.5", V41 8881 "18.30.4"]
        "SETATTR of a smaller size cuts the file."
        => |t| sets(t, &Attrs::size(3), |stat| stat.size == 3);
    "setattr-grows" V4 Must [V40 7530 "16.32.5", V41 8881 "18.30.4"]
        "SETATTR of a larger size adds zeros."
        => |t| {
            sets(t, &Attrs::size(12), |stat| stat.size == 12)?;
            let dir = t.dir();
            let answer = t.a()?.done(&dir, &[lookup("x"), read(ANY, 0, 100)])?;
            let data = body!(answer, Read).data.bytes().unwrap_or_default();
            hold(data == b"content\0\0\0\0\0", &answer.sent, || format!("{data:02x?}; zeros after `content` are right"))
        };
    "setattr-cut-tail-stays-away" V4 Must [V40 7530 "16.32.5", V41 8881 "18.30.4"]
        "What a smaller size cut off does not come back with a larger one."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.done(&fh, &[setattr(ANY, &Attrs::size(2)), setattr(ANY, &Attrs::size(7))])?;
            let answer = client.done(&fh, &[read(ANY, 0, 100)])?;
            let data = body!(answer, Read).data.bytes().unwrap_or_default();
            hold(data == b"co\0\0\0\0\0", &answer.sent, || format!("{data:02x?}; zeros after `co` are right"))
        };
    "setattr-size-of-directory" V4 Must [V40 7530 "16.32.5", V41 8881 "18.30.4"]
        "The size of a directory cannot be set."
        => |t| t.at(Kind::Dir, &[setattr(ANY, &Attrs::size(0))], &[S::ISDIR, S::INVAL, S::BAD_STATEID, S::WRONG_TYPE]);
    "setattr-modify-time" V4 Must [V40 7530 "5.8.2.40", V41 8881 "5.8.2.44"]
        "SETATTR sets the time of the last change of data to a given one."
        => |t| {
            let dir = t.dir();
            t.a()?.needs(&dir, fattr4::TIME_MODIFY_SET, "time_modify_set")?;
            let time = Attributes { time_modify_set: Some(Settime4::ClientTime(THEN)), ..Attributes::default() };
            sets(t, &Attrs::of(&time), |stat| stat.modified == THEN)
        };
    "setattr-access-time" V4 Must [V40 7530 "5.8.2.34", V41 8881 "5.8.2.38"]
        "SETATTR sets the time of the last access to a given one."
        => |t| {
            let dir = t.dir();
            t.a()?.needs(&dir, fattr4::TIME_ACCESS_SET, "time_access_set")?;
            let time = Attributes { time_access_set: Some(Settime4::ClientTime(THEN)), ..Attributes::default() };
            sets(t, &Attrs::of(&time), |stat| stat.accessed == THEN)
        };
    "setattr-server-time" V4 Must [V40 7530 "5.8.2.40", V41 8881 "5.8.2.44"]
        "SETATTR sets a time to the server's own where that is asked for."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.needs(&fh, fattr4::TIME_MODIFY_SET, "time_modify_set")?;
            let of = |time| Attrs::of(&Attributes { time_modify_set: Some(time), ..Attributes::default() });
            client.done(&fh, &[setattr(ANY, &of(Settime4::ClientTime(THEN)))])?;
            let answer = client.done(&fh, &[setattr(ANY, &of(Settime4::ServerTime))])?;
            let stat = client.stat(&fh)?;
            hold(stat.modified.seconds >= stat.changed.seconds - 2, &answer.sent, || format!("{stat:?}"))
        };
    "setattr-bad-nanoseconds" V4 Must [V40 7530 "2.2", V41 8881 "3.3.1"]
        "A time with a thousand million nanoseconds or more is INVAL."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.needs(&fh, fattr4::TIME_MODIFY_SET, "time_modify_set")?;
            let bad = Nfstime4 { seconds: 1, nseconds: 1_000_000_000 };
            let time = Attributes { time_modify_set: Some(Settime4::ClientTime(bad)), ..Attributes::default() };
            client.on(&fh, &[setattr(ANY, &Attrs::of(&time))], &[S::INVAL])
        };
    "setattr-read-only" V4 Must [V40 7530 "5.5", V41 8881 "5.5"]
        "SETATTR of an attribute that can only be read is INVAL."
        => |t| {
            let mask = Bitmap4::of(&[fattr4::FILEID]);
            t.at(Kind::File, &[setattr(ANY, &Attrs { mask, values: vec![0; 8] })], &[S::INVAL])
        };
    "setattr-unsupported" V4 Must [V40 7530 "16.32.4", V41 8881 "18.30.3"]
        "SETATTR of an attribute that the server does not have is ATTRNOTSUPP."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            let attrs = unsupported(client, &fh)?;
            client.on(&fh, &[setattr(ANY, &attrs)], &[S::ATTRNOTSUPP])
        };
    "setattr-cut-values" V4 Must [V40 7530 "13.1.1.1", V41 8881 "15.1.1.1"]
        "Attribute values that are too short do not decode: BADXDR."
        => |t| {
            let mask = Bitmap4::of(&[fattr4::SIZE]);
            t.at(Kind::File, &[setattr(ANY, &Attrs { mask, values: vec![0; 4] })], &[S::BADXDR, S::INVAL])
        };
    "setattr-surplus-values" V4 Must [V40 7530 "13.1.1.1", V41 8881 "15.1.1.1"]
        "Bytes after the last attribute value do not decode: BADXDR."
        => |t| {
            let mask = Bitmap4::of(&[fattr4::MODE]);
            t.at(Kind::File, &[setattr(ANY, &Attrs { mask, values: vec![0; 8] })], &[S::BADXDR, S::INVAL])
        };
    "setattr-keeps-modify-time" V4 Must [V40 7530 "5.8.2.39", V41 8881 "5.8.2.43"]
        "A change of the mode is none of the data: time_modify stays, time_metadata moves."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.needs(&fh, fattr4::TIME_MODIFY_SET, "time_modify_set")?;
            let of = |time| Attrs::of(&Attributes { time_modify_set: Some(time), ..Attributes::default() });
            client.done(&fh, &[setattr(ANY, &of(Settime4::ClientTime(THEN)))])?;
            let answer = client.done(&fh, &[setattr(ANY, &Attrs::mode(0o600))])?;
            let stat = client.stat(&fh)?;
            hold(stat.modified == THEN && stat.changed > THEN, &answer.sent, || format!("{stat:?}"))
        };
    "write-moves-modify-time" V4 Must [V40 7530 "5.8.2.39", V41 8881 "5.8.2.43"]
        "WRITE moves the time of the last change of data, and the change attribute."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.needs(&fh, fattr4::TIME_MODIFY_SET, "time_modify_set")?;
            let time = Attributes { time_modify_set: Some(Settime4::ClientTime(THEN)), ..Attributes::default() };
            client.done(&fh, &[setattr(ANY, &Attrs::of(&time))])?;
            let before = client.stat(&fh)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.opens("writer", &dir, "x", Share::WRITE)?;
            let answer = client.done(&fh, &[write(open.stateid, 0, b"C")])?;
            let after = client.stat(&fh)?;
            hold(after.modified > before.modified, &answer.sent, || format!("{after:?}"))?;
            hold(after.change != before.change, &answer.sent, || format!("{after:?}"))
        };
    "read-keeps-change" V4 Should [V40 7530 "5.8.1.4", V41 8881 "5.8.1.4"]
        "READ and GETATTR do not change the change attribute."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            let before = client.stat(&fh)?.change;
            let answer = client.done(&fh, &[read(ANY, 0, 100)])?;
            let after = client.stat(&fh)?.change;
            hold(before == after, &answer.sent, || format!("change {before}, then {after}"))
        };
    "directory-entries-change-it" V4 Must [V40 7530 "5.8.1.4", V41 8881 "5.8.1.4"]
        "A new file changes the change attribute of its directory."
        => |t| {
            let dir = t.dir();
            let before = t.a()?.stat(&dir)?.change;
            t.object(Kind::File)?;
            let after = t.a()?.stat(&dir)?.change;
            hold(before != after, "OPEN creates x, GETATTR of the directory", || format!("change {after} both times"))
        };
    "write-in-the-same-tick" V4 Must [V40 7530 "5.8.1.4", V41 8881 "5.8.1.4"]
        "Each of several changes that follow at once gives another change attribute: caches depend on it."
        => |t| {
            let (dir, mut seen) = (t.dir(), Vec::new());
            let client = t.a()?;
            let open = client.made("writer", &dir, "x")?;
            for n in 0..8 {
                let ops = [putfh(&open.fh), write(open.stateid, n, b"y"), getattr(&[fattr4::CHANGE])];
                let answer = client.compound(&ops)?.ok()?;
                let change = client.decoded(&answer)?.change;
                hold(!seen.contains(&change), &answer.sent, || format!("change {change:?} a second time"))?;
                seen.push(change);
            }
            Ok(())
        };
    "links-of-directory" V4 Linux [V40 linux "stat(2)", V41 linux "stat(2)"]
        "A directory has two links and one for each directory in it."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            client.mkdir(&dir, "sub")?;
            let links = client.stat(&dir)?.links;
            hold(links == 3, "GETATTR numlinks of a directory with one in it", || format!("{links}; 3 is right"))
        };
    "verify-same" V4 Must [V40 7530 "16.35", V41 8881 "18.31"]
        "VERIFY of attributes that are so is OK." => |t| compares(t, verify, 7, S::OK);
    "verify-differs" V4 Must [V40 7530 "16.35", V41 8881 "18.31"]
        "VERIFY of attributes that are not so is NOT_SAME." => |t| compares(t, verify, 8, S::NOT_SAME);
    "nverify-same" V4 Must [V40 7530 "16.15", V41 8881 "18.15"]
        "NVERIFY of attributes that are so is SAME." => |t| compares(t, nverify, 7, S::SAME);
    "nverify-differs" V4 Must [V40 7530 "16.15", V41 8881 "18.15"]
        "NVERIFY of attributes that are not so is OK." => |t| compares(t, nverify, 8, S::OK);
    "verify-unsupported" V4 Must [V40 7530 "16.35.4", V41 8881 "18.31.3"]
        "VERIFY and NVERIFY of an attribute that the server does not have are ATTRNOTSUPP."
        => |t| {
            let dir = t.dir();
            let attrs = unsupported(t.a()?, &dir)?;
            cannot_compare(t, &attrs, &[S::ATTRNOTSUPP])
        };
    "verify-rdattr-error" V4 Must [V40 7530 "16.35.4", V41 8881 "18.31.3"]
        "VERIFY and NVERIFY of rdattr_error are INVAL."
        => |t| {
            let mask = Bitmap4::of(&[fattr4::RDATTR_ERROR]);
            cannot_compare(t, &Attrs { mask, values: vec![0; 4] }, &[S::INVAL])
        };
    "verify-write-only" V4 Must [V40 7530 "16.35.4", V41 8881 "18.31.3"]
        "VERIFY and NVERIFY of an attribute that can only be set are INVAL."
        => |t| {
            let mask = Bitmap4::of(&[fattr4::TIME_MODIFY_SET]);
            cannot_compare(t, &Attrs { mask, values: vec![0; 4] }, &[S::INVAL, S::ATTRNOTSUPP])
        };
    "access-only-asked" V4 Must [V40 7530 "16.1", V41 8881 "18.1"]
        "ACCESS answers the bits that were asked for and no others."
        => |t| {
            let fh = t.object(Kind::File)?;
            let answer = t.a()?.done(&fh, &[access(v4::ACCESS_READ)])?;
            let ok = body!(answer, Access);
            hold(ok.supported == v4::ACCESS_READ && ok.access == v4::ACCESS_READ, &answer.sent, || format!("{ok:?}"))
        };
    "access-of-owner" V4 Must [V40 7530 "16.1", V41 8881 "18.1"]
        "ACCESS tells the owner of a file with mode 0644 that he may read, modify and extend."
        => |t| {
            let fh = t.object(Kind::File)?;
            let asked = v4::ACCESS_READ | v4::ACCESS_MODIFY | v4::ACCESS_EXTEND;
            let answer = t.a()?.done(&fh, &[access(asked)])?;
            let ok = body!(answer, Access);
            hold(ok.access == asked & ok.supported, &answer.sent, || format!("{ok:?}; all is right"))
        };
    "access-of-stranger" V4 Must [V40 7530 "16.1", V41 8881 "18.1"]
        "ACCESS tells others of a file with mode 0644 that they may read and not write."
        => |t| {
            let (sent, supported, given) = stranger_may(t, 0o644, v4::ACCESS_READ | v4::ACCESS_MODIFY)?;
            hold(given == v4::ACCESS_READ & supported, &sent, || format!("{given:#x}; READ alone is right"))
        };
    "access-denied" V4 Must [V40 7530 "16.1", V41 8881 "18.1"]
        "ACCESS tells others of a file with mode 0600 that they may nothing."
        => |t| {
            let (sent, _, given) = stranger_may(t, 0o600, v4::ACCESS_READ | v4::ACCESS_MODIFY)?;
            hold(given == 0, &sent, || format!("{given:#x}; 0 is right"))
        };
    "setattr-of-stranger" V4 Must [V40 7530 "13.1.6.2", V41 8881 "15.1.6.2"]
        "Who does not own an object cannot set its mode: PERM (or ACCESS)."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            let owner = client.user;
            client.user = stranger(owner);
            let tried = client.on(&fh, &[setattr(ANY, &Attrs::mode(0o777))], &[S::PERM, S::ACCESS]);
            client.user = owner;
            tried
        };
    "lookup-of-stranger" V4 Must [V40 7530 "13.1.6.1", V41 8881 "15.1.6.1"]
        "Who may not search a directory cannot look a name up: ACCESS."
        => |t| {
            let dir = t.dir();
            t.object(Kind::File)?;
            let client = t.a()?;
            client.done(&dir, &[setattr(ANY, &Attrs::mode(0o700))])?;
            let owner = client.user;
            client.user = stranger(owner);
            let tried = client.on(&dir, &[lookup("x")], &[S::ACCESS]);
            client.user = owner;
            tried
        };
    "create-of-stranger" V4 Must [V40 7530 "13.1.6.1", V41 8881 "15.1.6.1"]
        "Who may not write a directory can make and remove nothing in it: ACCESS."
        => |t| {
            let dir = t.dir();
            t.object(Kind::File)?;
            let client = t.a()?;
            let owner = client.user;
            client.user = stranger(owner);
            let none = Attrs::none();
            let made = create(v4::Createtype4::Dir, b"y", &none);
            let tried = client.on(&dir, &[made], &[S::ACCESS]);
            let tried = tried.and_then(|()| client.on(&dir, &[remove("x")], &[S::ACCESS, S::PERM]));
            client.user = owner;
            tried
        };
    "owner-as-text" V4 Should [V40 7530 "5.9", V41 8881 "5.9"]
        "owner and owner_group are text: user@domain, or a number where there is no name."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.needs(&fh, fattr4::OWNER, "owner")?;
            let answer = client.done(&fh, &[getattr(&[fattr4::OWNER, fattr4::OWNER_GROUP])])?;
            let got = client.decoded(&answer)?;
            let is_name = |text: Option<v4::Utf8<'_>>| {
                let text = text.map(|text| text.0.to_vec()).unwrap_or_default();
                text.contains(&b'@') || (!text.is_empty() && text.iter().all(u8::is_ascii_digit))
            };
            hold(is_name(got.owner) && is_name(got.owner_group), &answer.sent, || format!("{got:?}"))
        };
    "owner-unknown" V4 Should [V40 7530 "5.9", V41 8881 "5.9"]
        "An owner that the server does not know is BADOWNER."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.needs(&fh, fattr4::OWNER, "owner")?;
            let owner = Attributes { owner: Some("nobody-of-this-name@nowhere.invalid".into()), ..Attributes::default() };
            client.on(&fh, &[setattr(ANY, &Attrs::of(&owner))], &[S::BADOWNER, S::INVAL, S::PERM])
        };
    "bitmap-with-empty-words" V4 Must [V40 7530 "16.7.4", V41 8881 "18.7.3"]
        "A bitmap may have more words than are needed: those beyond what the server knows ask for nothing it has."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            // The last attribute number that this program knows of is in the third word.
            let answer = client.done(&dir, &[getattr(&[fattr4::TYPE, 95])])?;
            let given = body!(answer, Getattr).obj_attributes;
            let mut values = Decoder::new(given.attr_vals.0);
            hold(given.attrmask == Bitmap4::of(&[fattr4::TYPE]) && values.get::<Ftype4>().is_ok(), &answer.sent, || {
                format!("attributes {:?}", given.attrmask)
            })
        };
}
