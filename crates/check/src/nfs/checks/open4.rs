//! Opens and share reservations of version 4.

use benchmaster_nfs_proto::v4::{
    self, Argop, Createhow4, Nfsstat4 as S, OpenClaim4, Openflag4, Stateid4, fattr4,
};

use super::Kind;
use super::attributes4::stranger;
use crate::nfs::client4::{Client4, body};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::{Open, Share};
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

/// What a server may say to a stateid that names nothing: 4.0 can tell that one is of an earlier start.
pub(super) const NO_STATE: &[S] = &[S::BAD_STATEID, S::STALE_STATEID, S::EXPIRED];

pub(super) fn null(name: &str) -> OpenClaim4<'_> {
    OpenClaim4::Null(name.into())
}

/// OPEN of `x` in the directory of the check gives a status.
fn open_gives(t: &mut Trial, share: Share, how: Openflag4<'_>, name: &str, allowed: &[S]) -> Tried {
    let dir = t.dir();
    let (answer, _) = t.a()?.open_how(b"opener", &dir, share, how, null(name))?;
    answer.is(allowed)
}

/// OPEN of an existing object of a kind gives a status.
fn open_of(t: &mut Trial, kind: Kind, allowed: &[S]) -> Tried {
    t.object(kind)?;
    open_gives(t, Share::READ, Openflag4::NoCreate, "x", allowed)
}

/// A file opened by one owner; another opens it, of the same or another client.
fn second_open(t: &mut Trial, first: Share, second: Share, of_other_client: bool, right: S) -> Tried {
    t.object(Kind::File)?;
    let dir = t.dir();
    let (a, b) = t.both()?;
    a.opens("one", &dir, "x", first)?;
    let client = if of_other_client { b } else { a };
    let (answer, _) = client.open("two", &dir, "x", second)?;
    answer.is(&[right])
}

/// A file open with some access, on which something is tried.
fn with_access(t: &mut Trial, share: Share, op: fn(Stateid4) -> Argop<'static>, allowed: &[S]) -> Tried {
    t.object(Kind::File)?;
    let dir = t.dir();
    let client = t.a()?;
    let open = client.opens("opener", &dir, "x", share)?;
    client.on(&open.fh, &[op(open.stateid)], allowed)
}

pub(super) fn writes(stateid: Stateid4) -> Argop<'static> {
    write(stateid, 0, b"data")
}

pub(super) fn reads(stateid: Stateid4) -> Argop<'static> {
    read(stateid, 0, 10)
}

/// A file made by an open of both.
pub(super) fn made(t: &mut Trial) -> Result<Open, Stop> {
    let dir = t.dir();
    t.a()?.made("opener", &dir, "x")
}

/// The stateid of an open with another sequence number or other bytes.
pub(super) fn changed(open: &Open, seqid: u32, byte: u8) -> Stateid4 {
    let mut other = open.stateid.other;
    other[11] ^= byte;
    Stateid4 { seqid, other }
}

/// An open whose number is 2: it was opened twice.
pub(super) fn twice(t: &mut Trial) -> Result<Open, Stop> {
    let first = made(t)?;
    let dir = t.dir();
    let again = t.a()?.opens("opener", &dir, "x", Share::BOTH)?;
    hold(again.stateid.other == first.stateid.other, "OPEN of one file by one owner, twice", || {
        format!(
            "stateids {:?} and {:?}; the second is the first with a higher number",
            first.stateid, again.stateid
        )
    })?;
    hold(
        again.stateid.seqid == first.stateid.seqid.wrapping_add(1),
        "OPEN of one file by one owner, twice",
        || format!("sequence numbers {} and {}", first.stateid.seqid, again.stateid.seqid),
    )?;
    Ok(again)
}

fn exclusive(minor: u32, verf: v4::Verifier4, attrs: &Attrs) -> Createhow4<'_> {
    match minor {
        0 => Createhow4::Exclusive(verf),
        _ => Createhow4::Exclusive41(v4::Creatverfattr { verf, attrs: attrs.fattr() }),
    }
}

/// An exclusive create of `x` with a verifier.
fn create_exclusively(t: &mut Trial, owner: &[u8], verf: v4::Verifier4) -> Result<(S, Option<Open>), Stop> {
    let dir = t.dir();
    let client = t.a()?;
    let attrs = if client.minor == 0 { Attrs::none() } else { Attrs::mode(0o644) };
    let how = Openflag4::Create(exclusive(client.minor, verf, &attrs));
    let (answer, open) = client.open_how(owner, &dir, Share::BOTH, how, null("x"))?;
    Ok((answer.status(), open.ok()))
}

/// CLOSE, then uses of the stateid.
fn closed(client: &mut Client4, open: &Open) -> Tried {
    client.close(open)?;
    client.on(&open.fh, &[reads(open.stateid)], NO_STATE)
}

checks! {
    /// Opens.
    LIST, Open;
    "open-missing" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN without creation of a name that is not there is NOENT."
        => |t| open_gives(t, Share::READ, Openflag4::NoCreate, "missing", &[S::NOENT]);
    "open-directory" V4 Must [V40 7530 "16.16.5", V41 8881 "18.16.4"]
        "OPEN of a directory is ISDIR." => |t| open_of(t, Kind::Dir, &[S::ISDIR]);
    "open-symlink" V4 Must [V40 7530 "16.16.5", V41 8881 "18.16.4"]
        "OPEN of a symbolic link is SYMLINK: the client follows it." => |t| open_of(t, Kind::Symlink, &[S::SYMLINK]);
    "open-fifo" V4 Must [V40 7530 "16.16.5", V41 8881 "15.1.2.9"]
        "OPEN of what is no file is SYMLINK (4.0), WRONG_TYPE (4.1) or INVAL."
        => |t| open_of(t, Kind::Fifo, &[S::SYMLINK, S::WRONG_TYPE, S::INVAL]);
    "open-in-file" V4 Must [V40 7530 "13.1.2.6", V41 8881 "15.1.2.6"]
        "OPEN of a name in a file is NOTDIR."
        => |t| {
            let fh = t.object(Kind::File)?;
            let (answer, _) = t.a()?.open("opener", &fh, "y", Share::READ)?;
            answer.is(&[S::NOTDIR])
        };
    "open-empty-name" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN of a name without characters is INVAL."
        => |t| open_gives(t, Share::READ, Openflag4::NoCreate, "", &[S::INVAL]);
    "open-long-name" V4 Must [V40 7530 "13.1.7.3", V41 8881 "15.1.7.3"]
        "OPEN that creates a name longer than maxname is NAMETOOLONG."
        => |t| {
            let name = "n".repeat(t.longest_name()? + 1);
            let attrs = Attrs::mode(0o644);
            let how = Openflag4::Create(Createhow4::Unchecked(attrs.fattr()));
            open_gives(t, Share::BOTH, how, &name, &[S::NAMETOOLONG])
        };
    "open-dot-dot" V4 Must [V40 7530 "12.7", V41 8881 "14.5"]
        "OPEN that creates `..` is refused."
        => |t| {
            let attrs = Attrs::mode(0o644);
            let how = Openflag4::Create(Createhow4::Unchecked(attrs.fattr()));
            let refused = [S::BADNAME, S::INVAL, S::BADCHAR, S::EXIST, S::ISDIR];
            open_gives(t, Share::BOTH, how, "..", &refused)
        };
    "open-no-access" V4 Must [V40 7530 "16.16.5", V41 8881 "18.16.3"]
        "OPEN with no access at all is INVAL."
        => |t| { t.object(Kind::File)?; open_gives(t, Share { access: 0, deny: 0 }, Openflag4::NoCreate, "x", &[S::INVAL, S::BADXDR]) };
    "open-unknown-deny" V4 Must [V40 7530 "16.16.5", V41 8881 "18.16.3"]
        "OPEN with a deny mode that does not exist is INVAL (or does not decode)."
        => |t| { t.object(Kind::File)?; open_gives(t, Share { access: 1, deny: 8 }, Openflag4::NoCreate, "x", &[S::INVAL, S::BADXDR]) };
    "open-creates" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN with UNCHECKED creation makes a file with the attributes asked for, and gives the directory's change truly."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let before = client.stat(&dir)?.change;
            let attrs = Attrs::mode(0o604);
            let how = Openflag4::Create(Createhow4::Unchecked(attrs.fattr()));
            let (answer, open) = client.open_how(b"opener", &dir, Share::BOTH, how, null("x"))?;
            let answer = answer.ok()?;
            let ok = body!(answer, Open);
            let after = client.stat(&dir)?.change;
            hold(before != after && ok.cinfo.after == after, &answer.sent, || {
                format!("change {:?}; GETATTR says {before} before and {after} after", ok.cinfo)
            })?;
            hold(ok.attrset.contains(fattr4::MODE), &answer.sent, || format!("attributes set: {:?}", ok.attrset))?;
            let stat = open.map(|open| client.stat(&open.fh)).map_err(|_| answer.wrong("success is right"))??;
            hold(stat.mode & 0o777 == 0o604 && stat.size == 0, &answer.sent, || format!("{stat:?}"))
        };
    "open-unchecked-existing" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN with UNCHECKED creation of a file that is there opens it as it is."
        => |t| {
            let fh = t.object(Kind::File)?;
            let attrs = Attrs::mode(0o600);
            open_gives(t, Share::BOTH, Openflag4::Create(Createhow4::Unchecked(attrs.fattr())), "x", &[S::OK])?;
            let stat = t.a()?.stat(&fh)?;
            hold(stat.size == 7 && stat.mode & 0o777 == 0o644, "OPEN UNCHECKED of a file that is there", || {
                format!("{stat:?}; size and mode are not to change")
            })
        };
    "open-unchecked-truncates" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN with UNCHECKED creation and size 0 empties a file that is there."
        => |t| {
            let fh = t.object(Kind::File)?;
            let attrs = Attrs::size(0);
            open_gives(t, Share::BOTH, Openflag4::Create(Createhow4::Unchecked(attrs.fattr())), "x", &[S::OK])?;
            let size = t.a()?.stat(&fh)?.size;
            hold(size == 0, "OPEN UNCHECKED with size 0", || format!("size {size}"))
        };
    "open-guarded-existing" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN with GUARDED creation of a file that is there is EXIST."
        => |t| {
            t.object(Kind::File)?;
            let attrs = Attrs::mode(0o644);
            open_gives(t, Share::BOTH, Openflag4::Create(Createhow4::Guarded(attrs.fattr())), "x", &[S::EXIST])
        };
    "open-guarded-new" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN with GUARDED creation of a new name makes the file."
        => |t| {
            let attrs = Attrs::mode(0o644);
            open_gives(t, Share::BOTH, Openflag4::Create(Createhow4::Guarded(attrs.fattr())), "x", &[S::OK])
        };
    "open-exclusive" V4 Must [V40 7530 "16.16.5", V41 8881 "18.16.3"]
        "An exclusive OPEN makes a file; the same verifier again succeeds, another is EXIST."
        => |t| {
            let sent = "exclusive OPEN of x";
            let (status, open) = create_exclusively(t, b"one", [1, 2, 3, 4, 5, 6, 7, 8])?;
            if status == S::NOTSUPP {
                return Err(Stop::not_applicable("the server has no exclusive creation"));
            }
            hold(open.is_some(), sent, || format!("{status}; success is right"))?;
            let (status, _) = create_exclusively(t, b"one", [1, 2, 3, 4, 5, 6, 7, 8])?;
            hold(status == S::OK, sent, || format!("{status} with the verifier it was made with; success is right"))?;
            let (status, _) = create_exclusively(t, b"two", [8, 7, 6, 5, 4, 3, 2, 1])?;
            hold(status == S::EXIST, sent, || format!("{status} with another verifier; EXIST is right"))
        };
    "open-exclusive-4-in-4.1" V41 Must [V41 8881 "18.16.3"]
        "A session that is not persistent has EXCLUSIVE4 too."
        => |t| {
            let dir = t.dir();
            let how = Openflag4::Create(Createhow4::Exclusive([9; 8]));
            let (answer, _) = t.a()?.open_how(b"opener", &dir, Share::BOTH, how, null("x"))?;
            answer.is(&[S::OK])
        };
    "open-exclusive-attributes" V41 Must [V41 8881 "18.16.3"]
        "EXCLUSIVE4_1 with an attribute that suppattr_exclcreat leaves out is INVAL."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let answer = client.done(&dir, &[getattr(&[fattr4::SUPPATTR_EXCLCREAT])])?;
            let allowed = client.decoded(&answer)?.suppattr_exclcreat.unwrap_or_default();
            if allowed.contains(fattr4::TIME_MODIFY_SET) {
                return Err(Stop::not_applicable("suppattr_exclcreat has the attributes that a server would leave out"));
            }
            let time = v4::Attributes { time_modify_set: Some(v4::Settime4::ServerTime), ..v4::Attributes::default() };
            let attrs = Attrs::of(&time);
            let how = Openflag4::Create(exclusive(client.minor, [7; 8], &attrs));
            let (answer, _) = client.open_how(b"opener", &dir, Share::BOTH, how, null("x"))?;
            answer.is(&[S::INVAL])
        };
    "open-create-unsupported" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN that creates with an attribute that can only be read is INVAL."
        => |t| {
            let attrs = Attrs { mask: v4::Bitmap4::of(&[fattr4::FILEID]), values: vec![0; 8] };
            open_gives(t, Share::BOTH, Openflag4::Create(Createhow4::Unchecked(attrs.fattr())), "x", &[S::INVAL])?;
            t.at_dir(&[lookup("x")], &[S::NOENT])
        };
    "open-by-handle" V41 Must [V41 8881 "18.16.3"]
        "OPEN with CLAIM_FH opens the current file."
        => |t| {
            let fh = t.object(Kind::File)?;
            let (answer, open) =
                t.a()?.open_how(b"opener", &fh, Share::READ, Openflag4::NoCreate, OpenClaim4::Fh)?;
            let open = open.map_err(|_| answer.wrong("success is right"))?;
            t.a()?.on(&fh, &[reads(open.stateid)], &[S::OK])
        };
    "open-no-confirm" V41 Must [V41 8881 "18.16.3"]
        "OPEN4_RESULT_CONFIRM is never set."
        => |t| {
            let open = made(t)?;
            hold(open.rflags & v4::OPEN_RESULT_CONFIRM == 0, "OPEN", || format!("rflags {:#x}", open.rflags))
        };
    "open-ignores-clientid" V41 Must [V41 8881 "18.16.3"]
        "The client id in the owner of an OPEN is ignored: the session says who asks."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let mut args = client.open_args(b"opener", Share::READ, Openflag4::NoCreate, null("x"));
            args.owner.clientid = 0xdead_beef;
            client.on(&dir, &[Argop::Open(args)], &[S::OK])
        };
    "open-of-stranger" V4 Must [V40 7530 "13.1.6.1", V41 8881 "15.1.6.1"]
        "OPEN for writing of a file with mode 0644 of somebody else is ACCESS."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let owner = client.user;
            client.user = stranger(owner);
            let tried = client.open("stranger", &dir, "x", Share::WRITE).and_then(|(answer, _)| answer.is(&[S::ACCESS]));
            client.user = owner;
            tried
        };
    "open-no-reclaim" V4 Must [V40 7530 "13.1.9.2", V41 8881 "15.1.9.3"]
        "OPEN that reclaims when there is no grace period is NO_GRACE (or RECLAIM_BAD)."
        => |t| {
            let fh = t.object(Kind::File)?;
            let claim = OpenClaim4::Previous(v4::OpenDelegationType4::None);
            let (answer, _) = t.a()?.open_how(b"opener", &fh, Share::READ, Openflag4::NoCreate, claim)?;
            answer.is(&[S::NO_GRACE, S::RECLAIM_BAD])
        };
    "open-unknown-client" V40 Must [V40 7530 "13.1.10.2"]
        "OPEN with a client id that the server does not know is STALE_CLIENTID (or EXPIRED)."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let mut args = client.open_args(b"opener", Share::READ, Openflag4::NoCreate, null("x"));
            args.owner.clientid ^= 0x0102_0304_0506;
            client.on(&dir, &[Argop::Open(args)], &[S::STALE_CLIENTID, S::EXPIRED])
        };
    "open-twice" V4 Must [V40 7530 "9.1.4.2", V41 8881 "8.2.2"]
        "A second OPEN of a file by the same owner gives the same stateid with the next sequence number."
        => |t| twice(t).map(|_| ());
    "open-of-another-owner" V4 Must [V40 7530 "9.1.4.1", V41 8881 "8.2.1"]
        "OPEN by another owner gives a stateid of its own."
        => |t| {
            let first = made(t)?;
            let dir = t.dir();
            let other = t.a()?.opens("other", &dir, "x", Share::BOTH)?;
            hold(first.stateid.other != other.stateid.other, "OPEN of one file by two owners", || {
                format!("{:?} for both", other.stateid)
            })
        };
    "stateid-starts-at-one" V41 Must [V41 8881 "8.2.2"]
        "The first stateid of an open has the sequence number 1."
        => |t| {
            let open = made(t)?;
            hold(open.stateid.seqid == 1, "the first OPEN of an owner", || format!("{:?}", open.stateid))
        };
    "share-denies-read" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "What one owner denies another does not get: SHARE_DENIED, for reading."
        => |t| second_open(t, Share::BOTH.deny(1), Share::READ, false, S::SHARE_DENIED);
    "share-denies-write" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "What one owner denies another does not get: SHARE_DENIED, for writing."
        => |t| second_open(t, Share::READ.deny(2), Share::WRITE, false, S::SHARE_DENIED);
    "share-denies-both" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "What one client denies another does not get: SHARE_DENIED."
        => |t| second_open(t, Share::READ.deny(3), Share::READ, true, S::SHARE_DENIED);
    "share-denies-other-client-write" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "What one client denies another does not get: writing beside a deny of it."
        => |t| second_open(t, Share::READ.deny(2), Share::BOTH, true, S::SHARE_DENIED);
    "share-conflicts-with-access" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "What another has already cannot be denied: SHARE_DENIED."
        => |t| second_open(t, Share::WRITE, Share::READ.deny(2), true, S::SHARE_DENIED);
    "share-conflicts-with-read-access" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "Reading that another has already cannot be denied: SHARE_DENIED."
        => |t| second_open(t, Share::READ, Share::WRITE.deny(1), false, S::SHARE_DENIED);
    "share-beside" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "A deny of writing leaves reading to others."
        => |t| second_open(t, Share::READ.deny(2), Share::READ, true, S::OK);
    "share-beside-write" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "A deny of reading leaves writing to others."
        => |t| second_open(t, Share::WRITE.deny(1), Share::WRITE, true, S::OK);
    "share-none-denied" V4 Must [V40 7530 "9.9", V41 8881 "9.7"]
        "Opens that deny nothing do not disturb each other."
        => |t| second_open(t, Share::BOTH, Share::BOTH, true, S::OK);
    "share-own-deny" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "A second open of the same owner is checked against its own deny: SHARE_DENIED."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            client.opens("one", &dir, "x", Share::READ.deny(2))?;
            let (answer, _) = client.open("one", &dir, "x", Share::WRITE)?;
            answer.is(&[S::SHARE_DENIED])
        };
    "share-ends-with-close" V4 Must [V40 7530 "16.2.4", V41 8881 "18.2.3"]
        "CLOSE ends what was denied."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            let open = a.opens("one", &dir, "x", Share::READ.deny(3))?;
            a.close(&open)?;
            b.opens("two", &dir, "x", Share::BOTH).map(|_| ())
        };
    "share-denies-anonymous-write" V4 Must [V40 7530 "9.1.4.3", V41 8881 "8.2.3"]
        "WRITE with the anonymous stateid against a deny of writing is LOCKED."
        => |t| {
            let fh = t.object(Kind::File)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            a.opens("one", &dir, "x", Share::READ.deny(2))?;
            b.on(&fh, &[writes(Stateid4::ANONYMOUS)], &[S::LOCKED])
        };
    "share-denies-anonymous-read" V4 Must [V40 7530 "9.1.4.3", V41 8881 "8.2.3"]
        "READ with the anonymous stateid against a deny of reading is LOCKED."
        => |t| {
            let fh = t.object(Kind::File)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            a.opens("one", &dir, "x", Share::BOTH.deny(1))?;
            b.on(&fh, &[reads(Stateid4::ANONYMOUS)], &[S::LOCKED])
        };
    "write-without-access" V4 Must [V40 7530 "13.1.8.9", V41 8881 "15.1.8.6"]
        "WRITE with an open for reading is OPENMODE."
        => |t| with_access(t, Share::READ, writes, &[S::OPENMODE]);
    "read-without-access" V4 Should [V40 7530 "9.1.4.5", V41 8881 "8.2.5"]
        "READ with an open for writing is OPENMODE, or is let through, as programs may be."
        => |t| with_access(t, Share::WRITE, reads, &[S::OPENMODE, S::OK]);
    "truncate-without-access" V4 Must [V40 7530 "16.32.4", V41 8881 "18.30.4"]
        "SETATTR of the size with an open for reading is OPENMODE."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.opens("opener", &dir, "x", Share::READ)?;
            client.on(&open.fh, &[setattr(open.stateid, &Attrs::size(1))], &[S::OPENMODE])
        };
    "write-with-access" V4 Must [V40 7530 "9.1.4.5", V41 8881 "8.2.5"]
        "WRITE with an open for writing succeeds." => |t| with_access(t, Share::WRITE, writes, &[S::OK]);
    "read-with-access" V4 Must [V40 7530 "9.1.4.5", V41 8881 "8.2.5"]
        "READ with an open for reading succeeds." => |t| with_access(t, Share::READ, reads, &[S::OK]);
    "close-ends" V4 Must [V40 7530 "16.2.4", V41 8881 "18.2.3"]
        "A stateid is BAD_STATEID after its CLOSE (4.0: also STALE_STATEID, EXPIRED)."
        => |t| { let open = made(t)?; closed(t.a()?, &open) };
    "close-twice" V41 Must [V41 8881 "18.2.3"]
        "A second CLOSE of the same stateid is BAD_STATEID."
        => |t| {
            let open = made(t)?;
            t.a()?.close(&open)?;
            t.a()?.try_close(&open)?.is(&[S::BAD_STATEID])
        };
    "close-unknown" V4 Must [V40 7530 "16.2.4", V41 8881 "18.2.3"]
        "CLOSE of a stateid that names nothing is BAD_STATEID (4.0: also STALE_STATEID)."
        => |t| {
            let mut open = made(t)?;
            open.stateid = changed(&open, open.stateid.seqid, 0x5a);
            t.a()?.try_close(&open)?.is(NO_STATE)
        };
    "close-old" V4 Must [V40 7530 "9.1.4.4", V41 8881 "8.2.4"]
        "CLOSE with an earlier sequence number is OLD_STATEID."
        => |t| {
            let mut open = twice(t)?;
            open.stateid = changed(&open, open.stateid.seqid - 1, 0);
            t.a()?.try_close(&open)?.is(&[S::OLD_STATEID])
        };
    "close-gives-invalid" V41 Should [V41 8881 "18.2.4"]
        "CLOSE gives the invalid stateid, so that no client uses it."
        => |t| {
            let open = made(t)?;
            let answer = t.a()?.try_close(&open)?.ok()?;
            let given = body!(answer, Close).open_stateid;
            hold(given == Stateid4::INVALID, &answer.sent, || format!("{given:?}"))
        };
    "close-of-directory" V4 Must [V40 7530 "16.2.4", V41 8881 "18.2.3"]
        "CLOSE of a stateid with the handle of another object is BAD_STATEID."
        => |t| {
            let mut open = made(t)?;
            open.fh = t.dir();
            t.a()?.try_close(&open)?.is(&[S::BAD_STATEID, S::ISDIR, S::INVAL])
        };
    "downgrade" V4 Must [V40 7530 "16.19.4", V41 8881 "18.18.3"]
        "OPEN_DOWNGRADE takes access away: WRITE is OPENMODE then, and others may deny it."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            a.opens("one", &dir, "x", Share::READ)?;
            let mut open = a.opens("one", &dir, "x", Share::BOTH)?;
            let answer = a.downgrade(&open, Share::READ)?.ok()?;
            let stateid = body!(answer, OpenDowngrade).open_stateid;
            hold(stateid.seqid == open.stateid.seqid + 1 && stateid.other == open.stateid.other, &answer.sent, || {
                format!("{stateid:?}; {:?} with the next number is right", open.stateid)
            })?;
            open.stateid = stateid;
            a.on(&open.fh, &[writes(open.stateid)], &[S::OPENMODE])?;
            b.opens("two", &dir, "x", Share::READ.deny(2)).map(|_| ())
        };
    "downgrade-to-more" V4 Must [V40 7530 "16.19.4", V41 8881 "18.18.3"]
        "OPEN_DOWNGRADE to access that was not had is INVAL."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let open = client.opens("one", &dir, "x", Share::READ)?;
            client.downgrade(&open, Share::BOTH)?.is(&[S::INVAL])
        };
    "downgrade-to-no-subset" V4 Should [V40 7530 "16.19.4", V41 8881 "18.18.3"]
        "OPEN_DOWNGRADE to access that no open of the owner had alone is INVAL."
        => |t| {
            let open = made(t)?;
            t.a()?.downgrade(&open, Share::READ)?.is(&[S::INVAL])
        };
    "downgrade-to-nothing" V4 Must [V40 7530 "16.19.4", V41 8881 "18.18.3"]
        "OPEN_DOWNGRADE to no access is INVAL."
        => |t| {
            let open = made(t)?;
            t.a()?.downgrade(&open, Share { access: 0, deny: 0 })?.is(&[S::INVAL, S::BADXDR])
        };
    "owner-replay" V40 Must [V40 7530 "9.1.8"]
        "An OPEN that comes again with the number of the last one gets the same answer, and is not carried out again."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            // An owner that was not confirmed may start again.
            client.made("opener", &dir, "other")?;
            let attrs = Attrs::mode(0o644);
            let how = Openflag4::Create(Createhow4::Guarded(attrs.fattr()));
            let args = client.open_args(b"opener", Share::BOTH, how, null("x"));
            let ops = [putfh(&dir), Argop::Open(args), Argop::Getfh];
            let first = client.once(&ops)?.ok()?;
            let again = client.once(&ops)?;
            hold(again.status() == S::OK, &again.sent, || format!("{} the second time; the same is right", again.status()))?;
            let (one, two) = (body!(first, Open).stateid, body!(again, Open).stateid);
            hold(one == two, &again.sent, || format!("{one:?}, then {two:?}"))
        };
    "owner-bad-seqid" V40 Must [V40 7530 "9.1.7"]
        "An OPEN with a number out of order is BAD_SEQID."
        => |t| {
            let open = made(t)?;
            let dir = t.dir();
            let client = t.a()?;
            let mut args = client.open_args(&open.owner, Share::READ, Openflag4::NoCreate, null("x"));
            args.seqid = args.seqid.wrapping_add(5);
            client.on(&dir, &[Argop::Open(args)], &[S::BAD_SEQID])
        };
    "close-bad-seqid" V40 Must [V40 7530 "9.1.7"]
        "A CLOSE with a number out of order is BAD_SEQID."
        => |t| {
            let open = made(t)?;
            let client = t.a()?;
            let seqid = client.seqid(&open.owner).wrapping_add(5);
            let close = v4::CloseArgs { seqid, open_stateid: open.stateid };
            client.on(&open.fh, &[Argop::Close(close)], &[S::BAD_SEQID])
        };
    "confirm-bad-seqid" V40 Must [V40 7530 "16.18.4"]
        "OPEN_CONFIRM of an open that needs none, or with a number out of order, is BAD_SEQID or BAD_STATEID."
        => |t| {
            let open = made(t)?;
            let client = t.a()?;
            let seqid = client.seqid(&open.owner).wrapping_add(5);
            let confirm = v4::OpenConfirmArgs { open_stateid: open.stateid, seqid };
            client.on(&open.fh, &[Argop::OpenConfirm(confirm)], &[S::BAD_SEQID, S::BAD_STATEID])
        };
}
