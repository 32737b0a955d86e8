//! Delegations of directories with notifications, and attributes that holders of delegations know.

use std::time::{Duration, Instant};

use benchmaster_nfs_proto::v4::{
    self, Argop, Attributes, Bitmap4, Createtype4, Fattr4, Nfsstat4 as S, Nfstime4, NotifyAdd4, NotifyEntry4,
    NotifyRemove4, NotifyRename4, Stateid4, fattr4, notify,
};
use benchmaster_nfs_proto::xdr::{Decode, Decoder};

use super::Kind;
use super::delegation4::{
    QUIET, SOON, delegated, delegated_directory_with, dir_delegation, give_back, recalled,
};
use crate::nfs::callback::{Callback, Held};
use crate::nfs::client4::{Client4, body};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::Share;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

/// Attributes that are asked for with notifications.
const SHOWN: Bitmap4 = Bitmap4::of(&[fattr4::TYPE, fattr4::CHANGE, fattr4::FILEID, fattr4::MODE]);

/// A directory of whose changes of this kind the first client is notified.
fn watched(t: &mut Trial, kind: u32) -> Result<Stateid4, Stop> {
    let (_, granted) = delegated_directory_with(t, dir_delegation(Bitmap4::of(&[kind]), SHOWN))?;
    if !granted.notification.contains(kind) {
        return Err(Stop::not_applicable("the server delegates directories without such notifications"));
    }
    Ok(granted.stateid)
}

/// The notifications that the first client gets of its delegated directory; not a recall.
fn notified(
    a: &mut Client4,
    sent: &str,
    dir: &[u8],
    stateid: Stateid4,
) -> Result<Vec<(Bitmap4, Vec<u8>)>, Stop> {
    let come = |call: &Callback| matches!(call, Callback::Notify { .. } | Callback::Recall { .. });
    match a.called(SOON, come)? {
        Some(Callback::Notify { stateid: of, fh, changes }) => {
            hold(of.other == stateid.other && fh == dir, sent, || {
                format!("CB_NOTIFY of {of:?}; {stateid:?} is right")
            })?;
            Ok(changes)
        }
        Some(other) => Err(Stop::failed(sent, format!("{other:?}; CB_NOTIFY is right"))),
        None => Err(Stop::failed(sent, "no CB_NOTIFY")),
    }
}

/// The change that the first client is notified of after the second did this.
fn notified_after(
    t: &mut Trial,
    kind: u32,
    stateid: Stateid4,
    ops: &[Argop<'_>],
) -> Result<(String, Vec<u8>), Stop> {
    let dir = t.dir();
    let (a, b) = t.both()?;
    let answer = b.compound(&[&[putfh(&dir)], ops].concat())?.ok()?;
    let changes = notified(a, &answer.sent, &dir, stateid)?;
    let [(mask, values)] = &changes[..] else {
        return Err(Stop::failed(
            answer.sent,
            format!("{} changes in CB_NOTIFY; one is right", changes.len()),
        ));
    };
    hold(*mask == Bitmap4::of(&[kind]), &answer.sent, || {
        format!("changes of kind {mask:?}; {kind} is right")
    })?;
    Ok((answer.sent, values.clone()))
}

fn decoded<'v, T: Decode<'v>>(sent: &str, values: &'v [u8]) -> Result<T, Stop> {
    let mut d = Decoder::new(values);
    let value = d.get().map_err(|error| Stop::failed(sent, format!("notify_vals do not decode: {error}")))?;
    hold(d.rest().is_empty(), sent, || "bytes after the values of CB_NOTIFY".into())?;
    Ok(value)
}

/// The cookie that READDIR has for a name.
fn cookie_of(client: &mut Client4, dir: &[u8], name: &str) -> Result<u64, Stop> {
    let answer = client.done(dir, &[readdir(0, [0; 8], 16384, &[fattr4::FILEID])])?;
    let page = body!(answer, Readdir);
    let found = page.entries.iter().find(|entry| entry.name.0 == name.as_bytes()).map(|entry| entry.cookie);
    found.ok_or_else(|| answer.wrong(format!("an entry `{name}` is right")))
}

fn fileid(attrs: &Fattr4<'_>) -> Option<u64> {
    Attributes::decode(attrs).ok()?.fileid
}

/// A new entry has the name, and the fileid and cookie that READDIR and GETATTR give.
fn is_added(b: &mut Client4, sent: &str, dir: &[u8], name: &str, add: &NotifyAdd4<'_>) -> Tried {
    let fh = b.find(dir, name)?.unwrap_or_default();
    let (right, cookie) = (b.stat(&fh)?.fileid, cookie_of(b, dir, name)?);
    let said = fileid(&add.new_entry.attrs);
    let same = add.new_entry.file.0 == name.as_bytes()
        && said.is_none_or(|said| said == right)
        && add.cookie.iter().all(|said| said == cookie);
    hold(same, sent, || format!("notified of {add:?}; `{name}`, fileid {right}, cookie {cookie} is right"))
}

/// A delegation for writing that the first client has, whose file it says has these attributes.
fn written(t: &mut Trial, want: u32) -> Result<(Vec<u8>, Stateid4), Stop> {
    let (open, stateid) = delegated(t, Share::BOTH, want)?;
    Ok((open.fh, stateid))
}

/// What the second client is shown by GETATTR of a file that the first has a write delegation on.
fn shown(t: &mut Trial, fh: &[u8], held: Held, bits: &[u32]) -> Result<Shown, Stop> {
    shown_within(t, fh, held, bits, SOON)
}

/// The same; the holder is asked within this time. (A server may take what it heard a moment ago for good.)
fn shown_within(t: &mut Trial, fh: &[u8], held: Held, bits: &[u32], soon: Duration) -> Result<Shown, Stop> {
    let (a, b) = t.both()?;
    a.answer_getattr(Some(held));
    a.forget_calls();
    let asked = [putfh(fh), getattr(bits)];
    let mut tries = 0;
    let outcome = loop {
        let begun = b.begin(&asked)?;
        let come = |call: &Callback| matches!(call, Callback::Getattr { .. } | Callback::Recall { .. });
        let called = a.called(if tries == 0 { soon } else { Duration::ZERO }, come);
        let answer = b.finish(begun)?;
        match called? {
            Some(Callback::Recall { .. }) => break Err(answer),
            None if tries == 0 && soon == SOON => break Err(answer),
            _ => {}
        }
        tries += 1;
        if answer.status() != S::DELAY || tries > 40 {
            break Ok(answer.ok()?);
        }
        std::thread::sleep(Duration::from_millis(30));
    };
    a.answer_getattr(None);
    let answer = outcome.map_err(|answer| {
        Stop::not_applicable(format!("the server does not ask the holder by CB_GETATTR: {}", answer.sent))
    })?;
    let given = b.decoded(&answer)?;
    let (size, change, modified) = (given.size, given.change, given.time_modify);
    Ok(Shown { sent: answer.sent.clone(), size, change, modified })
}

#[derive(Debug)]
struct Shown {
    sent: String,
    size: Option<u64>,
    change: Option<u64>,
    modified: Option<Nfstime4>,
}

/// The change attribute that the holder knows.
fn change_of(t: &mut Trial, fh: &[u8]) -> Result<u64, Stop> {
    Ok(t.a()?.stat(fh)?.change)
}

checks! {
    /// Delegations of directories with notifications, and CB_GETATTR.
    LIST, Delegation;
    "directory-notifications-asked" V41 Must [V41 8881 "18.39.3"]
        "A delegation of a directory has no notifications that were not asked for."
        => |t| {
            let asked = Bitmap4::of(&[notify::ADD_ENTRY]);
            for asked in [asked, Bitmap4::EMPTY] {
                let (sent, granted) = delegated_directory_with(t, dir_delegation(asked, SHOWN))?;
                hold(granted.notification.is_subset(&asked), &sent, || {
                    format!("notifications {:?}; of {asked:?} is right", granted.notification)
                })?;
                let dir = t.dir();
                give_back(t.a()?, &dir, granted.stateid)?;
            }
            Ok(())
        };
    "directory-notified-of-create" V41 Must [V41 8881 "20.4.3"]
        "A client that asked for notifications gets one of a directory that another client makes, and keeps the delegation."
        => |t| {
            let stateid = watched(t, notify::ADD_ENTRY)?;
            let (dir, none) = (t.dir(), Attrs::none());
            let (sent, values) =
                notified_after(t, notify::ADD_ENTRY, stateid, &[create(Createtype4::Dir, b"new", &none)])?;
            let add: NotifyAdd4<'_> = decoded(&sent, &values)?;
            let (a, b) = t.both()?;
            is_added(b, &sent, &dir, "new", &add)?;
            give_back(a, &dir, stateid)
        };
    "directory-notified-where" V41 Should [V41 8881 "20.4.3"]
        "The notification of a new entry names the entry before it, where there is one, and says whether it is the last."
        => |t| {
            t.object(Kind::File)?;
            let stateid = watched(t, notify::ADD_ENTRY)?;
            let (dir, none) = (t.dir(), Attrs::none());
            let (sent, values) =
                notified_after(t, notify::ADD_ENTRY, stateid, &[create(Createtype4::Dir, b"new", &none)])?;
            let add: NotifyAdd4<'_> = decoded(&sent, &values)?;
            let names = t.both()?.1.names(&dir)?;
            let at = names.iter().position(|name| name == b"new").unwrap_or_default();
            let before = at.checked_sub(1).and_then(|at| names.get(at)).cloned();
            let said = add.previous.iter().next().map(|previous| previous.entry.file.0.to_vec());
            let right = said == before && add.last == (at + 1 == names.len());
            hold(right, &sent, || format!("notified of {add:?}; READDIR gives {names:?}"))
        };
    "directory-notified-of-open" V41 Must [V41 8881 "20.4.3"]
        "A client that asked for notifications gets one of a file that another client makes by OPEN."
        => |t| {
            let stateid = watched(t, notify::ADD_ENTRY)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            b.file(&dir, "made", b"")?;
            let sent = "OPEN of another client makes `made`";
            let changes = notified(a, sent, &dir, stateid)?;
            let add: NotifyAdd4<'_> = match &changes[..] {
                [(mask, values)] if *mask == Bitmap4::of(&[notify::ADD_ENTRY]) => decoded(sent, values)?,
                _ => return Err(Stop::failed(sent, format!("{changes:?} in CB_NOTIFY; one new entry is right"))),
            };
            is_added(b, sent, &dir, "made", &add)
        };
    "directory-notified-of-remove" V41 Must [V41 8881 "20.4.3"]
        "A client that asked for notifications gets one of an entry that another client removes, with its cookie."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let cookie = cookie_of(t.a()?, &dir, "x")?;
            let stateid = watched(t, notify::REMOVE_ENTRY)?;
            let (sent, values) = notified_after(t, notify::REMOVE_ENTRY, stateid, &[remove("x")])?;
            let gone: NotifyRemove4<'_> = decoded(&sent, &values)?;
            hold(gone.entry.file.0 == b"x" && gone.cookie == cookie, &sent, || {
                format!("notified of {gone:?}; `x` with cookie {cookie} is right")
            })
        };
    "directory-notified-of-rename" V41 Must [V41 8881 "20.4.3"]
        "A client that asked for notifications gets one of an entry that another client renames, with both names."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let stateid = watched(t, notify::RENAME_ENTRY)?;
            let ops = [Argop::Savefh, rename("x", "y")];
            let (sent, values) = notified_after(t, notify::RENAME_ENTRY, stateid, &ops)?;
            let moved: NotifyRename4<'_> = decoded(&sent, &values)?;
            hold(moved.old_entry.entry.file.0 == b"x", &sent, || format!("notified of {moved:?}; from `x` is right"))?;
            is_added(t.both()?.1, &sent, &dir, "y", &moved.new_entry)
        };
    "directory-notified-of-attributes" V41 Must [V41 8881 "20.4.3"]
        "A client that asked for notifications gets one of attributes of the directory that another client sets."
        => |t| {
            let stateid = watched(t, notify::CHANGE_DIR_ATTRS)?;
            let mode = Attrs::mode(0o711);
            let set = [setattr(Stateid4::ANONYMOUS, &mode)];
            let (sent, values) = notified_after(t, notify::CHANGE_DIR_ATTRS, stateid, &set)?;
            let changed: NotifyEntry4<'_> = decoded(&sent, &values)?;
            let mode = Attributes::decode(&changed.attrs).ok().and_then(|attributes| attributes.mode);
            hold(changed.file.0.is_empty() && mode == Some(0o711), &sent, || {
                format!("notified of {changed:?}; mode 711 of the directory is right")
            })
        };
    "directory-notified-in-order" V41 Must [V41 8881 "20.4.3"]
        "Notifications come in the order of the changes."
        => |t| {
            const ALL: usize = 24;
            let stateid = watched(t, notify::ADD_ENTRY)?;
            let (dir, none) = (t.dir(), Attrs::none());
            let (a, b) = t.both()?;
            let made: Vec<String> = (0..ALL).map(|n| format!("dir {n}")).collect();
            for name in &made {
                b.on(&dir, &[create(Createtype4::Dir, name.as_bytes(), &none)], &[S::OK])?;
            }
            let sent = "CREATE of 24 directories by another client";
            let mut names = Vec::new();
            while names.len() < ALL {
                for (_, values) in notified(a, sent, &dir, stateid)? {
                    let add: NotifyAdd4<'_> = decoded(sent, &values)?;
                    names.push(String::from_utf8_lossy(add.new_entry.file.0).into_owned());
                }
            }
            hold(names == made, sent, || format!("notified of {names:?}"))
        };
    "directory-notified-of-own-entries" V41 Should [V41 8881 "20.4.3"]
        "The holder is notified of entries that it makes itself, too."
        => |t| {
            let stateid = watched(t, notify::ADD_ENTRY)?;
            let (dir, none) = (t.dir(), Attrs::none());
            let client = t.a()?;
            let answer = client.done(&dir, &[create(Createtype4::Dir, b"own", &none)])?;
            notified(client, &answer.sent, &dir, stateid).map(|_| ())
        };
    "directory-unasked-recall" V41 Must [V41 8881 "10.9.4"]
        "A change of a kind for which the holder asked no notifications recalls the delegation of the directory."
        => |t| {
            t.object(Kind::File)?;
            let stateid = watched(t, notify::ADD_ENTRY)?;
            let dir = t.dir();
            recalled(t, &dir, stateid, |_| vec![putfh(&dir), remove("x")])
        };
    "directory-exists-no-recall" V41 Should [V41 8881 "10.9.4"]
        "CREATE and LINK of a name that is taken change nothing, and do not recall the delegation of the directory."
        => |t| {
            let file = t.object(Kind::File)?;
            let (dir, none) = (t.dir(), Attrs::none());
            let (_, granted) = delegated_directory_with(t, dir_delegation(Bitmap4::EMPTY, Bitmap4::EMPTY))?;
            let (a, b) = t.both()?;
            b.on(&dir, &[create(Createtype4::Dir, b"x", &none)], &[S::EXIST])?;
            b.compound(&[putfh(&file), Argop::Savefh, putfh(&dir), link("x")])?.is(&[S::EXIST])?;
            let recall = a.called(QUIET, |call| matches!(call, Callback::Recall { .. }))?;
            hold(recall.is_none(), "CREATE and LINK of `x`, which is there", || "CB_RECALL".into())?;
            give_back(a, &dir, granted.stateid)
        };
    "holder-knows-size" V4 Should [V40 7530 "10.4.3", V41 8881 "10.4.3"]
        "GETATTR of another client shows the size that the holder of a write delegation gives, which is not recalled."
        => |t| {
            let (fh, stateid) = written(t, v4::WANT_WRITE_DELEG)?;
            let change = change_of(t, &fh)?;
            let held = Held { size: 12_345, change: change + 1, times: None };
            let got = shown(t, &fh, held, &[fattr4::SIZE, fattr4::CHANGE])?;
            hold(got.size == Some(12_345), &got.sent, || format!("{got:?}; size 12345 is right"))?;
            give_back(t.a()?, &fh, stateid)
        };
    "holder-changes-change" V4 Must [V40 7530 "10.4.3", V41 8881 "10.4.3"]
        "When the holder of a write delegation says that it has changed the file, others see another change attribute."
        => |t| {
            let (fh, stateid) = written(t, v4::WANT_WRITE_DELEG)?;
            let change = change_of(t, &fh)?;
            let size = t.a()?.stat(&fh)?.size;
            let unchanged = Held { size, change, times: None };
            let first = shown(t, &fh, unchanged, &[fattr4::CHANGE])?;
            let dirty = Held { size: size + 1, change: change + 1, times: None };
            let end = Instant::now() + SOON;
            let second = loop {
                t.a()?.renew()?;
                let second = shown_within(t, &fh, dirty, &[fattr4::CHANGE], QUIET)?;
                if first.change != second.change || Instant::now() > end {
                    break second;
                }
            };
            hold(first.change != second.change, &second.sent, || format!("{first:?}, then {second:?}"))?;
            give_back(t.a()?, &fh, stateid)
        };
    "holder-knows-times" V42 Should [V42 8881 "10.4.3"]
        "GETATTR of another client shows the time of change that the holder of a delegation with time stamps gives (RFC 9754 §5)."
        => |t| {
            let dir = t.dir();
            t.a()?.needs(&dir, fattr4::TIME_DELEG_MODIFY, "time_deleg_modify")?;
            let (fh, stateid) = written(t, v4::WANT_WRITE_DELEG | v4::WANT_DELEG_TIMESTAMPS)?;
            let stat = t.a()?.stat(&fh)?;
            // Later than the delegation, and not in the future.
            std::thread::sleep(Duration::from_millis(30));
            let nseconds = stat.modified.nseconds;
            let time = match nseconds.checked_add(20_000_000).filter(|sum| *sum < 1_000_000_000) {
                Some(nseconds) => Nfstime4 { nseconds, ..stat.modified },
                None => Nfstime4 { seconds: stat.modified.seconds + 1, nseconds: nseconds + 20_000_000 - 1_000_000_000 },
            };
            let held = Held { size: stat.size, change: stat.change + 1, times: Some(time) };
            let got = shown(t, &fh, held, &[fattr4::TIME_MODIFY, fattr4::CHANGE])?;
            hold(got.modified == Some(time), &got.sent, || format!("{got:?}; {time:?} is right"))?;
            give_back(t.a()?, &fh, stateid)
        };
}
