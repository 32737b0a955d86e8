//! Access control lists of version 4.

use benchmaster_nfs_proto::v4::{
    ACCESS_MODIFY, ACCESS_READ, ACE_APPEND_DATA as APPEND, ACE_DELETE, ACE_DELETE_CHILD,
    ACE_DIRECTORY_INHERIT as DIRS, ACE_EXECUTE as EXECUTE, ACE_FILE_INHERIT as FILES,
    ACE_IDENTIFIER_GROUP as MEMBERS, ACE_INHERIT_ONLY as ONLY, ACE_INHERITED, ACE_NO_PROPAGATE as STOP,
    ACE_READ_DATA as READ, ACE_WRITE_ACL, ACE_WRITE_DATA as WRITE, ACL_PROTECTED, Acetype4, Attributes,
    Createtype4, Nfsacl41, Nfsstat4 as S, Stateid4, fattr4,
};
use benchmaster_nfs_proto::xdr::List;

use super::Kind;
use super::attributes4::stranger;
use super::list4::{
    ALLOW, DENY, EVERYONE, Entry, RWX, SEE, aces, acl, entry, mode_of, plain, read_back, with,
};
use crate::nfs::client4::{Answer, body};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::Share;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

const ANY: Stateid4 = Stateid4::ANONYMOUS;
/// A new object with a list.
fn listed(t: &mut Trial, kind: Kind, entries: &[Entry]) -> Result<Vec<u8>, Stop> {
    let fh = t.object(kind)?;
    let client = t.a()?;
    client.keeps_lists(&fh)?;
    client.set_list(&fh, entries)?;
    Ok(fh)
}

/// The other user, or its group, as it is named in lists.
fn who(t: &mut Trial) -> Result<String, Stop> {
    Ok(stranger(t.a()?.user).uid.to_string())
}

/// Owner and others have nothing but what these entries, before them, say.
fn before_nothing(first: &[Entry]) -> Vec<Entry> {
    [first, &plain(RWX, 0, 0)].concat()
}

/// Whether a list gives the other user just these rights to a new file.
fn gives(t: &mut Trial, entries: &[Entry], right: u32) -> Tried {
    let fh = listed(t, Kind::File, entries)?;
    let client = t.a()?;
    let (sent, granted) = client.stranger_has(&fh, ACCESS_READ | ACCESS_MODIFY)?;
    hold(granted == right, &sent, || format!("{granted:#x} with the list {entries:?}; {right:#x} is right"))?;
    let tried = client.as_stranger(|client| client.compound(&[putfh(&fh), read(ANY, 0, 4)]))?;
    let expected = if right & ACCESS_READ != 0 { S::OK } else { S::ACCESS };
    tried.is(&[expected])
}

/// Entries that a new object inherits of `of`, which is set on the directory before what the owner may.
fn inherits(t: &mut Trial, of: Entry, kind: Kind) -> Result<(Answer, Vec<Entry>), Stop> {
    let who = of.who.clone();
    let dir = listed(t, Kind::Dir, &[&[of][..], &plain(RWX | ACE_DELETE_CHILD, 0, 0)].concat())?;
    let client = t.a()?;
    let none = Attrs::none();
    let made = match kind {
        Kind::Dir => client.new_dir(&dir, "new", &none)?,
        _ => client.new_file(&dir, "new", &none)?,
    };
    let (answer, list, mode) = client.list_and_mode(&made)?;
    let derived = mode_of(&list);
    hold(mode & 0o777 == derived, &answer.sent, || {
        format!("mode {mode:o} and a list that amounts to {derived:o}: {list:?}")
    })?;
    Ok((answer, list.into_iter().filter(|entry| entry.who == who).collect()))
}

/// Modes that are set after this list change it.
fn mode_changes(t: &mut Trial, list: &[Entry]) -> Tried {
    let fh = listed(t, Kind::File, list)?;
    let client = t.a()?;
    for mode in [0o400, 0o640, 0o077] {
        client.done(&fh, &[setattr(ANY, &Attrs::mode(mode))])?;
        let (answer, list, got) = client.list_and_mode(&fh)?;
        let derived = mode_of(&list);
        hold(got == mode && derived == mode, &answer.sent, || {
            format!("after mode {mode:o}: mode {got:o}, a list that amounts to {derived:o}: {list:?}")
        })?;
    }
    Ok(())
}

/// Setting this list fails so.
fn refused(t: &mut Trial, kind: Kind, bad: Entry, right: &[S]) -> Tried {
    let fh = t.object(kind)?;
    let client = t.a()?;
    client.keeps_lists(&fh)?;
    client.on(&fh, &[setattr(ANY, &acl(&before_nothing(&[bad])))], right)
}

checks! {
    /// Access control lists.
    LIST, Acl;
    "acl-of-mode" V4 Should [V40 7530 "6.4.2", V41 8881 "6.4.2"]
        "The list of an object that was given a mode says what the mode says."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            for mode in [0o640, 0o604, 0o751, 0o077, 0] {
                client.done(&fh, &[setattr(ANY, &Attrs::mode(mode))])?;
                let (answer, list, _) = client.list_and_mode(&fh)?;
                let derived = mode_of(&list);
                hold(derived == mode, &answer.sent, || {
                    format!("mode {mode:o} and a list that amounts to {derived:o}: {list:?}")
                })?;
            }
            Ok(())
        };
    "acl-sets-mode" V4 Must [V40 7530 "6.4.1.2", V41 8881 "6.4.1.2"]
        "A list that is set changes the mode to what it gives owner, group and everyone."
        => |t| {
            let fh = listed(t, Kind::File, &plain(READ | WRITE | APPEND, READ, 0))?;
            let (answer, _, mode) = t.a()?.list_and_mode(&fh)?;
            hold(mode & 0o777 == 0o640, &answer.sent, || format!("mode {mode:o}; 640 is right"))
        };
    "acl-leaves-other-bits" V4 Should [V40 7530 "6.4.1.2", V41 8881 "6.4.1.2"]
        "A list that is set leaves the sticky bit of a directory."
        => |t| {
            let fh = t.object(Kind::Dir)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            client.done(&fh, &[setattr(ANY, &Attrs::mode(0o1777))])?;
            client.set_list(&fh, &plain(RWX | ACE_DELETE_CHILD, READ, 0))?;
            let (answer, _, mode) = client.list_and_mode(&fh)?;
            hold(mode == 0o1740, &answer.sent, || format!("mode {mode:o}; 1740 is right"))
        };
    "acl-kept-as-set" V4 Should [V40 7530 "6.4.1.2", V41 8881 "6.4.1.2"]
        "A list is kept as it is set: entries, their order, rights, users and groups."
        => |t| {
            let who = who(t)?;
            let named = [
                entry(DENY, 0, WRITE | APPEND, &who),
                entry(ALLOW, MEMBERS, READ | EXECUTE | SEE, &who),
                entry(ALLOW, 0, READ | SEE, &who),
            ];
            let set = before_nothing(&named);
            let fh = listed(t, Kind::File, &set)?;
            let (answer, list, _) = t.a()?.list_and_mode(&fh)?;
            hold(list == set, &answer.sent, || format!("{list:?}; {set:?} was set"))
        };
    "acl-changes-change" V4 Must [V40 7530 "5.8.1.4", V41 8881 "5.8.1.4"]
        "The change attribute is another one after a list was set."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            let before = client.stat(&fh)?.change;
            let answer = client.set_list(&fh, &plain(RWX, READ, READ))?;
            let after = client.stat(&fh)?.change;
            hold(before != after, &answer.sent, || format!("change stays {after}"))
        };
    "acl-verify" V4 Must [V40 7530 "16.35", V41 8881 "18.31"]
        "VERIFY of the list that GETATTR gave finds it the same."
        => |t| {
            let fh = listed(t, Kind::File, &plain(RWX, READ, 0))?;
            let client = t.a()?;
            let answer = client.done(&fh, &[getattr(&[fattr4::ACL])])?;
            let given = body!(answer, Getattr).obj_attributes;
            let same = Attrs { mask: given.attrmask, values: given.attr_vals.0.to_vec() };
            client.on(&fh, &[verify(&same)], &[S::OK])
        };
    "acl-allows-user" V4 Must [V40 7530 "6.2.1", V41 8881 "6.2.1"]
        "Whom an entry names and allows has the rights it gives, whatever the mode gives others."
        => |t| {
            let list = before_nothing(&[entry(ALLOW, 0, READ | SEE, &who(t)?)]);
            gives(t, &list, ACCESS_READ)
        };
    "acl-allows-group" V4 Must [V40 7530 "6.2.1", V41 8881 "6.2.1"]
        "Members of a group that an entry names and allows have the rights it gives."
        => |t| {
            let list = before_nothing(&[entry(ALLOW, MEMBERS, READ | SEE, &who(t)?)]);
            gives(t, &list, ACCESS_READ)
        };
    "acl-denies-user" V4 Must [V40 7530 "6.2.1", V41 8881 "6.2.1"]
        "Whom an entry names and denies does not have what later entries give to all."
        => |t| {
            let denied = entry(DENY, 0, READ, &who(t)?);
            let list = [&[denied][..], &plain(RWX, RWX, READ)].concat();
            gives(t, &list, 0)
        };
    "acl-first-entry-decides" V4 Must [V40 7530 "6.2.1", V41 8881 "6.2.1"]
        "The first entry that speaks of a right decides: what it allows later ones do not take away."
        => |t| {
            let who = who(t)?;
            let allowed = entry(ALLOW, 0, READ | SEE, &who);
            let list = before_nothing(&[allowed, entry(DENY, 0, READ | WRITE | APPEND, &who)]);
            gives(t, &list, ACCESS_READ)
        };
    "acl-silent-denies" V4 Must [V40 7530 "6.2.1", V41 8881 "6.2.1"]
        "What no entry allows is denied: a list for the owner alone gives others nothing."
        => |t| gives(t, &plain(RWX, 0, 0), 0);
    "acl-denies-open" V4 Must [V40 7530 "6.2.1", V41 8881 "6.2.1"]
        "Whom a list denies to write cannot open the file for it."
        => |t| {
            let list = before_nothing(&[entry(ALLOW, 0, READ | SEE, &who(t)?)]);
            let dir = t.dir();
            listed(t, Kind::File, &list)?;
            t.a()?.as_stranger(|client| {
                let (answer, open) = client.open("reader", &dir, "x", Share::READ)?;
                open.map_err(|_| answer.wrong("OPEN for reading is to succeed"))?;
                client.open("writer", &dir, "x", Share::WRITE)?.0.is(&[S::ACCESS])
            })
        };
    "mode-changes-acl" V4 Must [V40 7530 "6.4.1.1", V41 8881 "6.4.1.1"]
        "A mode that is set changes the list: it then amounts to the mode."
        => |t| mode_changes(t, &plain(RWX, READ, READ));
    "mode-changes-named-acl" V4 Should [V40 7530 "6.4.1.1", V41 8881 "6.4.1.1"]
        "A mode that is set changes a list that names users, too, so that it amounts to the mode."
        => |t| {
            let named = entry(ALLOW, 0, READ | WRITE | APPEND | SEE, &who(t)?);
            mode_changes(t, &before_nothing(&[named]))
        };
    "mode-limits-users" V4 Should [V40 7530 "6.4.1.1", V41 8881 "6.4.1.1"]
        "After a mode is set that gives the group nothing, users whom the list names cannot read or write."
        => |t| {
            let named = entry(ALLOW, 0, READ | WRITE | APPEND | SEE, &who(t)?);
            let fh = listed(t, Kind::File, &before_nothing(&[named]))?;
            let client = t.a()?;
            client.done(&fh, &[setattr(ANY, &Attrs::mode(0o600))])?;
            let (sent, granted) = client.stranger_has(&fh, ACCESS_READ | ACCESS_MODIFY)?;
            hold(granted == 0, &sent, || format!("{granted:#x} is granted after mode 600"))
        };
    "mode-leaves-inheritance" V4 Should [V40 7530 "6.4.1.1", V41 8881 "6.4.1.1"]
        "A mode that is set leaves entries that are only inherited."
        => |t| {
            let only = entry(ALLOW, FILES | DIRS | ONLY, READ | EXECUTE | SEE, &who(t)?);
            let fh = listed(t, Kind::Dir, &before_nothing(std::slice::from_ref(&only)))?;
            let client = t.a()?;
            client.done(&fh, &[setattr(ANY, &Attrs::mode(0o700))])?;
            let (answer, list, _) = client.list_and_mode(&fh)?;
            hold(list.contains(&only), &answer.sent, || format!("{list:?}; {only:?} is gone"))
        };
    "acl-after-mode" V4 Must [V40 7530 "6.4.1.3", V41 8881 "6.4.1.3"]
        "Where mode and list are set together, the list comes after the mode."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            let mode = Attributes { mode: Some(0o777), ..Attributes::default() };
            client.set_attrs(&fh, &with(&plain(READ | WRITE | APPEND, READ, 0), &mode))?;
            let (answer, _, mode) = client.list_and_mode(&fh)?;
            hold(mode & 0o777 == 0o640, &answer.sent, || format!("mode {mode:o}; 640 is right"))
        };
    "acl-of-stranger" V4 Must [V40 7530 "6.2.1.3.1", V41 8881 "6.2.1.3.1"]
        "Who may not write the list cannot set it: PERM or ACCESS."
        => |t| {
            let fh = listed(t, Kind::File, &plain(RWX, READ, READ))?;
            let all = plain(RWX, RWX, RWX);
            t.a()?.as_stranger(|client| {
                client.on(&fh, &[setattr(ANY, &acl(&all))], &[S::PERM, S::ACCESS])
            })
        };
    "acl-lets-set-mode" V4 Should [V40 7530 "6.2.1.3.1", V41 8881 "6.2.1.3.1"]
        "Whom an entry allows to write the list may set the mode."
        => |t| {
            let named = entry(ALLOW, 0, READ | SEE | ACE_WRITE_ACL, &who(t)?);
            let fh = listed(t, Kind::File, &before_nothing(&[named]))?;
            t.a()?.as_stranger(|client| client.on(&fh, &[setattr(ANY, &Attrs::mode(0o600))], &[S::OK]))
        };
    "acl-add-file-only" V4 Should [V40 7530 "6.2.1.3.1", V41 8881 "6.2.1.3.1"]
        "Who may add files to a directory, and not directories, makes a file and no directory."
        => |t| {
            let named = entry(ALLOW, 0, READ | WRITE | EXECUTE | SEE, &who(t)?);
            let dir = listed(t, Kind::Dir, &before_nothing(&[named]))?;
            let none = Attrs::none();
            t.a()?.as_stranger(|client| {
                let made = create(Createtype4::Dir, b"dir", &none);
                client.on(&dir, &[made], &[S::ACCESS])?;
                client.new_file(&dir, "file", &Attrs::mode(0o600)).map(|_| ())
            })
        };
    "acl-delete-by-file" V4 Should [V40 7530 "6.2.1.3.2", V41 8881 "6.2.1.3.2"]
        "Who may delete a file by its own list removes it, though the directory does not let it."
        => |t| {
            let (who, dir) = (who(t)?, t.dir());
            listed(t, Kind::File, &before_nothing(&[entry(ALLOW, 0, READ | SEE | ACE_DELETE, &who)]))?;
            let client = t.a()?;
            client.done(&dir, &[setattr(ANY, &Attrs::mode(0o755))])?;
            client.as_stranger(|client| client.on(&dir, &[remove("x")], &[S::OK]))
        };
    "acl-delete-by-directory" V4 Should [V40 7530 "6.2.1.3.2", V41 8881 "6.2.1.3.2"]
        "Who may delete entries by the directory's list removes a file, and who may not does not."
        => |t| {
            let who = who(t)?;
            let see = READ | EXECUTE | SEE;
            let dir = listed(t, Kind::Dir, &before_nothing(&[entry(ALLOW, 0, see | ACE_DELETE_CHILD, &who)]))?;
            let client = t.a()?;
            client.file(&dir, "y", b"")?;
            client.file(&dir, "z", b"")?;
            client.as_stranger(|client| client.on(&dir, &[remove("y")], &[S::OK]))?;
            client.set_list(&dir, &before_nothing(&[entry(ALLOW, 0, see, &who)]))?;
            client.as_stranger(|client| client.on(&dir, &[remove("z")], &[S::ACCESS, S::PERM]))
        };
    "acl-audit" V4 Must [V40 7530 "6.2.1.2", V41 8881 "6.2.1.2"]
        "An entry of a type that aclsupport does not list is ATTRNOTSUPP."
        => |t| {
            let fh = t.object(Kind::Dir)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            let answer = client.done(&fh, &[getattr(&[fattr4::ACLSUPPORT])])?;
            let supported = client.decoded(&answer)?.aclsupport.unwrap_or_default();
            // AUDIT and ALARM.
            let missing = [(4, Acetype4::SYSTEM_AUDIT), (8, Acetype4::SYSTEM_ALARM)];
            for (_, kind) in missing.into_iter().filter(|(bit, _)| supported & bit == 0) {
                let list = before_nothing(&[entry(kind, 0x10, READ, EVERYONE)]);
                client.on(&fh, &[setattr(ANY, &acl(&list))], &[S::ATTRNOTSUPP])?;
            }
            Ok(())
        };
    "acl-unknown-user" V4 Should [V40 7530 "5.9", V41 8881 "5.9"]
        "An entry for a user that the server does not know is BADOWNER."
        => |t| refused(t, Kind::File, entry(ALLOW, 0, READ, "nobody@nowhere.invalid"), &[S::BADOWNER]);
    "acl-inherit-on-file" V4 Should [V40 7530 "6.2.1.4.1", V41 8881 "6.2.1.4.1"]
        "An entry for new directories in the list of a file is ATTRNOTSUPP."
        => |t| {
            let bad = entry(ALLOW, DIRS, READ, EVERYONE);
            refused(t, Kind::File, bad, &[S::ATTRNOTSUPP])
        };
    "acl-inherit-only-alone" V4 Should [V40 7530 "6.2.1.4.1", V41 8881 "6.2.1.4.1"]
        "An entry that is only inherited, and neither by files nor by directories, is ATTRNOTSUPP."
        => |t| {
            let bad = entry(ALLOW, ONLY, READ, EVERYONE);
            refused(t, Kind::Dir, bad, &[S::ATTRNOTSUPP])
        };
    "acl-long" V4 Must [V40 7530 "6.4.1.2", V41 8881 "6.4.1.2"]
        "A list of 1,000 entries is kept in whole or refused; then the old one stays."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            let (_, before, _) = client.list_and_mode(&fh)?;
            let named: Vec<Entry> = (0..1_000).map(|n| entry(ALLOW, 0, READ | SEE, &(70_000 + n).to_string())).collect();
            let set = before_nothing(&named);
            let answer = client.compound(&[putfh(&fh), setattr(ANY, &acl(&set))])?;
            let (_, after, _) = client.list_and_mode(&fh)?;
            let count = |list: &[Entry]| list.iter().filter(|entry| !entry.who.ends_with('@')).count();
            let right = if answer.status() == S::OK { count(&after) >= 1_000 } else { after == before };
            hold(right, &answer.sent, || format!("{}, and {} entries", answer.status(), after.len()))
        };
    "acl-only-inherited" V4 Must [V40 7530 "6.2.1.4.1", V41 8881 "6.2.1.4.1"]
        "An entry that is only inherited gives no right to the directory itself."
        => |t| {
            let only = entry(ALLOW, FILES | DIRS | ONLY, RWX | SEE, &who(t)?);
            let dir = listed(t, Kind::Dir, &before_nothing(&[only]))?;
            let (sent, granted) = t.a()?.stranger_has(&dir, ACCESS_READ | ACCESS_MODIFY)?;
            hold(granted == 0, &sent, || format!("{granted:#x} is granted"))
        };
    "acl-inherited-by-file" V4 Should [V40 7530 "6.4.3.1", V41 8881 "6.4.3.1"]
        "A new file inherits entries for files, without flags of inheritance; they count."
        => |t| {
            let of = entry(ALLOW, FILES | DIRS | ONLY, READ | SEE, &who(t)?);
            let (answer, got) = inherits(t, of, Kind::File)?;
            let right = got.iter().any(|entry| {
                entry.kind == ALLOW && entry.mask & READ != 0 && entry.flag & (FILES | DIRS | ONLY) == 0
            });
            hold(right, &answer.sent, || format!("entries of the named user: {got:?}"))
        };
    "acl-not-for-files" V4 Should [V40 7530 "6.4.3.1", V41 8881 "6.4.3.1"]
        "A new file does not inherit entries that are for directories alone."
        => |t| {
            let of = entry(ALLOW, DIRS | ONLY, READ | SEE, &who(t)?);
            let (answer, got) = inherits(t, of, Kind::File)?;
            hold(got.is_empty(), &answer.sent, || format!("entries of the named user: {got:?}"))
        };
    "acl-inherited-by-directory" V4 Should [V40 7530 "6.4.3.1", V41 8881 "6.4.3.1"]
        "A new directory inherits entries for files and directories; they count, and are passed on."
        => |t| {
            let of = entry(ALLOW, FILES | DIRS | ONLY, READ | EXECUTE | SEE, &who(t)?);
            let (answer, got) = inherits(t, of, Kind::Dir)?;
            let counts = got.iter().any(|entry| entry.mask & READ != 0 && entry.flag & ONLY == 0);
            let passed = got.iter().any(|entry| entry.mask & READ != 0 && entry.flag & FILES != 0);
            hold(counts && passed, &answer.sent, || format!("entries of the named user: {got:?}"))
        };
    "acl-files-only-below" V4 Must [V40 7530 "6.4.3.1", V41 8881 "6.4.3.1"]
        "What a new directory inherits for files alone gives no right to the directory."
        => |t| {
            let of = entry(ALLOW, FILES, READ | SEE, &who(t)?);
            let (answer, got) = inherits(t, of, Kind::Dir)?;
            let right = !got.is_empty() && got.iter().all(|entry| entry.flag & ONLY != 0);
            hold(right, &answer.sent, || format!("entries of the named user: {got:?}"))
        };
    "acl-not-passed-on" V4 Must [V40 7530 "6.2.1.4.1", V41 8881 "6.2.1.4.1"]
        "What a new directory inherits of an entry that is not to be passed on has no flags of inheritance."
        => |t| {
            let of = entry(ALLOW, FILES | DIRS | STOP, READ | SEE, &who(t)?);
            let (answer, got) = inherits(t, of, Kind::Dir)?;
            let right = !got.is_empty() && got.iter().all(|entry| entry.flag & (FILES | DIRS | ONLY) == 0);
            hold(right, &answer.sent, || format!("entries of the named user: {got:?}"))
        };
    "acl-inherited-under-mode" V4 Must [V40 7530 "6.4.3", V41 8881 "6.4.3"]
        "A file that is made with a mode in a directory with entries to inherit has the mode."
        => |t| {
            let of = entry(ALLOW, FILES | DIRS | ONLY, READ | WRITE | APPEND | SEE, &who(t)?);
            let dir = listed(t, Kind::Dir, &before_nothing(&[of]))?;
            let client = t.a()?;
            let made = client.new_file(&dir, "new", &Attrs::mode(0o604))?;
            let (answer, list, mode) = client.list_and_mode(&made)?;
            let derived = mode_of(&list);
            hold(mode == 0o604 && derived == 0o604, &answer.sent, || {
                format!("mode {mode:o} and a list that amounts to {derived:o}: {list:?}; 604 is right")
            })
        };
    "acl-given-not-inherited" V4 Should [V40 7530 "6.4.3", V41 8881 "6.4.3"]
        "A file that is made with a list has this one, and inherits nothing."
        => |t| {
            let of = entry(ALLOW, FILES | DIRS | ONLY, READ | SEE, &who(t)?);
            let dir = listed(t, Kind::Dir, &before_nothing(&[of]))?;
            let given = plain(READ | WRITE | APPEND, READ, 0);
            let client = t.a()?;
            let made = client.new_file(&dir, "new", &acl(&given))?;
            let (answer, list, mode) = client.list_and_mode(&made)?;
            hold(mode == 0o640 && list.iter().all(|entry| entry.who.ends_with('@')), &answer.sent, || {
                format!("mode {mode:o}, {list:?}; {given:?} was given")
            })
        };
    "dacl-as-acl" V41 Must [V41 8881 "6.4.3.2"]
        "dacl and acl have the same entries; only dacl says which of them were inherited."
        => |t| {
            let who = who(t)?;
            let fh = t.object(Kind::Dir)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            client.needs(&fh, fattr4::DACL, "dacl")?;
            let set = before_nothing(&[entry(ALLOW, ACE_INHERITED, READ | SEE, &who)]);
            let entries = aces(&set);
            let dacl = Nfsacl41 { flag: 0, aces: List::Items(&entries) };
            client.set_attrs(&fh, &Attrs::of(&Attributes { dacl: Some(dacl), ..Attributes::default() }))?;
            let answer = client.done(&fh, &[getattr(&[fattr4::ACL, fattr4::DACL])])?;
            let given = client.decoded(&answer)?;
            let (acl, dacl) = (given.acl.as_ref().map(read_back), given.dacl.map(|dacl| read_back(&dacl.aces)));
            let without = |entry: &Entry| Entry { flag: entry.flag & !ACE_INHERITED, ..entry.clone() };
            let bare: Option<Vec<Entry>> = dacl.as_ref().map(|list| list.iter().map(without).collect());
            hold(dacl.as_ref() == Some(&set) && acl == bare, &answer.sent, || {
                format!("acl {acl:?}, dacl {dacl:?}; {set:?} was set")
            })
        };
    "dacl-beside-acl" V41 Must [V41 8881 "6.4.1"]
        "Setting acl and dacl at once is ATTRNOTSUPP."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            client.needs(&fh, fattr4::DACL, "dacl")?;
            let list = plain(RWX, READ, READ);
            let entries = aces(&list);
            let dacl = Nfsacl41 { flag: 0, aces: List::Items(&entries) };
            let both = with(&list, &Attributes { dacl: Some(dacl), ..Attributes::default() });
            client.on(&fh, &[setattr(ANY, &both)], &[S::ATTRNOTSUPP])
        };
    "acl-protects-dacl" V41 Should [V41 8881 "6.4.3.2"]
        "A list that is set by acl is protected from automatic inheritance."
        => |t| {
            let fh = t.object(Kind::File)?;
            let client = t.a()?;
            client.keeps_lists(&fh)?;
            client.needs(&fh, fattr4::DACL, "dacl")?;
            client.set_list(&fh, &plain(RWX, READ, READ))?;
            let answer = client.done(&fh, &[getattr(&[fattr4::DACL])])?;
            let flag = client.decoded(&answer)?.dacl.map(|dacl| dacl.flag);
            hold(flag.is_some_and(|flag| flag & ACL_PROTECTED != 0), &answer.sent, || format!("{flag:?}"))
        };
}
