//! OPEN, OPEN_CONFIRM, OPEN_DOWNGRADE and CLOSE.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    Bitmap4, ChangeInfo4, CloseArgs, CloseOk, Component4, Createhow4, Nfsstat4, OPEN_RESULT_CONFIRM,
    OPEN_RESULT_LOCKTYPE_POSIX, OPEN_RESULT_MAY_NOTIFY_LOCK, OPEN_RESULT_NO_OPEN_STATEID,
    OPEN_RESULT_PRESERVE_UNLINKED, OpenArgs, OpenClaim4, OpenConfirmArgs, OpenConfirmOk, OpenDelegationType4,
    OpenDowngradeArgs, OpenDowngradeOk, OpenOk, Openflag4, Opnum, SHARE_ACCESS_BOTH, SHARE_DENY_BOTH,
    Stateid4, WANT_DELEG_MASK, WANT_DELEG_TIMESTAMPS, WANT_OPEN_XOR_DELEGATION,
    WANT_PUSH_DELEG_WHEN_UNCONTENDED, WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL, fattr4, notify,
};

use super::attrs::{self, Purpose};
use super::deleg_ops::{self, Promise};
use super::names::check_name;
use super::notifications::needs;
use super::turns::{Held, refused};
use super::{Compound, Failure, OpResult, change_info, dir_ops, io_ops};
use crate::fs::{Acl, Attr, FsError, Kind, NewFile, SetAttr, access as right, permits};
use crate::handle::FileId;
use crate::state::client::Clients;
use crate::state::delegated::Seen;
use crate::state::delegation::{Want, Wish};
use crate::state::file::{Files, Keeper};
use crate::state::open::Share;
use crate::state::owner::{OwnerId, OwnerKind};
use crate::state::shards::All;
use crate::state::watch::Notifications;
use crate::state::{ClientId, Conflict, Stop};

const READ: u8 = 1;
const WRITE: u8 = 2;

/// OPEN (RFC 7530 §16.16, RFC 8881 §18.16).
pub(crate) fn open(c: &mut Compound<'_>, args: OpenArgs<'_>) -> OpResult {
    let current = c.file()?;
    if c.minor == 0 && is_newer_than_v40(&args) {
        return Err(Nfsstat4::BADXDR.into());
    }
    if c.minor > 0 {
        let client = c.client.ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
        return run_open(c, None, current, client, &args);
    }
    let mut all = c.server.state.all();
    let client = c.client_of(all.clients(), args.owner.clientid)?;
    let room = Stop::Room(Keeper::Client(client));
    all.clear(current, room, c.now.instant, c.effects).map_err(|stop| refused(0, stop))?;
    let (name, now) = (args.owner.owner.0, c.now.instant);
    let (owner, turn) = all.files().open_turn(client, name, args.seqid, now, c.effects)?;
    c.in_turn(&mut all, owner, turn, args.seqid, Opnum::OPEN, |c, all| {
        run_open(c, Some((all, owner)), current, client, &args)
    })
}

/// OPEN_CONFIRM (RFC 7530 §16.18).
pub(crate) fn open_confirm(c: &mut Compound<'_>, args: OpenConfirmArgs) -> OpResult {
    if c.minor > 0 {
        return Err(Nfsstat4::NOTSUPP.into());
    }
    let file = c.file()?;
    let mut all = c.server.state.all();
    let (at, owner, turn) = all.files().confirm_turn(&args.open_stateid, file, args.seqid, c.effects)?;
    c.renew(&mut all, file, at);
    c.in_turn(&mut all, owner, turn, args.seqid, Opnum::OPEN_CONFIRM, |c, all| {
        let open_stateid = all.files().part(file).confirm(at, &args.open_stateid)?;
        all.files().set_confirmed(owner);
        c.answer(&OpenConfirmOk { open_stateid })
    })
}

/// OPEN_DOWNGRADE (RFC 7530 §16.19, RFC 8881 §18.18).
pub(crate) fn open_downgrade(c: &mut Compound<'_>, args: OpenDowngradeArgs) -> OpResult {
    with_open(c, args.open_stateid, args.seqid, Opnum::OPEN_DOWNGRADE, |c, mut held, at| {
        let Modes { share, .. } = modes(c.minor, args.share_access, args.share_deny)?;
        let open_stateid = held.files().downgrade(at, share)?;
        c.set_stateid(open_stateid);
        c.answer(&OpenDowngradeOk { open_stateid })
    })
}

/// CLOSE (RFC 7530 §16.2, RFC 8881 §18.2).
pub(crate) fn close(c: &mut Compound<'_>, args: CloseArgs) -> OpResult {
    with_open(c, args.open_stateid, args.seqid, Opnum::CLOSE, |c, held, at| {
        let open_stateid = match held {
            Held::Part(files) => files.close(at, c.effects)?,
            Held::All(all, file) => all.files().close(file, at, c.effects)?,
        };
        c.set_stateid(open_stateid);
        c.answer(&CloseOk { open_stateid })
    })
}

/// Runs an operation on an open: in 4.0 in its owner's sequence.
fn with_open(
    c: &mut Compound<'_>,
    stateid: Stateid4,
    seqid: u32,
    op: Opnum,
    run: impl FnOnce(&mut Compound<'_>, Held<'_, '_>, u32) -> OpResult,
) -> OpResult {
    let file = c.file()?;
    let stateid = c.exact_stateid(stateid)?;
    if c.minor > 0 {
        let mut part = c.server.state.write(file);
        let at = part.files().find_open(c.minor, c.client, &stateid, file)?;
        return run(c, Held::Part(part.files()), at);
    }
    let mut all = c.server.state.all();
    let (at, owner, turn) = all.files().state_turn(&stateid, file, OwnerKind::Open, seqid, op)?;
    c.renew(&mut all, file, at);
    c.in_turn(&mut all, owner, turn, seqid, op, |c, all| {
        let at = all.files().part(file).find_open(0, None, &stateid, file)?;
        run(c, Held::All(all, file), at)
    })
}

/// The file of an OPEN.
struct OpenTarget {
    file: FileId,
    attr: Attr,
    cinfo: ChangeInfo4,
    attrset: Bitmap4,
    /// Whether it is new, or as good as new: then its creator may do what it likes.
    created: bool,
    /// Whether it has to be cut to nothing.
    truncate: bool,
    /// Whether the owner may open whatever the mode says: it did before.
    again: bool,
}

impl OpenTarget {
    /// A file that is there; `change` is the change attribute of its directory.
    fn existing(file: FileId, attr: Attr, change: u64) -> Self {
        let cinfo = ChangeInfo4 { atomic: true, before: change, after: change };
        let attrset = Bitmap4::EMPTY;
        Self { file, attr, cinfo, attrset, created: false, truncate: false, again: false }
    }
}

/// `all`: in 4.0, everything, and the owner's sequence.
fn run_open(
    c: &mut Compound<'_>,
    mut all: Option<(&mut All<'_>, OwnerId)>,
    current: FileId,
    client: ClientId,
    args: &OpenArgs<'_>,
) -> OpResult {
    let modes = modes(c.minor, args.share_access, args.share_deny)?;
    let state = &c.server.state;
    match &mut all {
        Some((all, _)) => check_claim(all.clients(), client, args)?,
        None => check_claim(state.clients().clients(), client, args)?,
    }
    let found = find(c, all.as_mut().map(|(all, _)| &mut **all), current, args)?;
    c.made_in = found.created.then_some(current);
    if !found.created {
        check_access(c, &found, modes.share)?;
    }
    let opened = loop {
        let outcome = match &mut all {
            Some((all, owner)) => {
                let (clients, files) = all.split();
                let turn = Some((*owner, files.is_confirmed(*owner)));
                let opened = settle(c, clients, files.part(found.file), &found, client, turn, &modes, args);
                files.settle(found.file);
                if opened.is_ok() && matches!(args.claim, OpenClaim4::Previous(_)) {
                    files.set_confirmed(*owner);
                }
                opened
            }
            None => {
                let mut part = state.write(found.file);
                let (clients, files) = part.split();
                settle(c, clients, files, &found, client, None, &modes, args)
            }
        };
        let stop = match outcome {
            Ok(opened) => break opened,
            Err(stop) => stop,
        };
        match &mut all {
            Some((all, _)) => all.clear(found.file, stop, c.now.instant, c.effects),
            None => state.clear(found.file, stop, c.now.instant, c.effects),
        }
        .map_err(|stop| refused(c.minor, stop))?;
    };
    let Opened { stateid, confirmed, promise, replaced } = opened;
    deleg_ops::note(c, &promise);
    let returned = if replaced.is_some() { Stateid4::ANONYMOUS } else { stateid };
    let rflags = OPEN_RESULT_LOCKTYPE_POSIX
        | if replaced.is_some() { OPEN_RESULT_NO_OPEN_STATEID } else { 0 }
        | if confirmed { 0 } else { OPEN_RESULT_CONFIRM }
        | if c.minor > 0 { OPEN_RESULT_PRESERVE_UNLINKED | OPEN_RESULT_MAY_NOTIFY_LOCK } else { 0 };
    c.set_current(found.file);
    c.set_stateid(replaced.unwrap_or(stateid));
    c.answer(&OpenOk {
        stateid: returned,
        cinfo: found.cinfo,
        rflags,
        attrset: found.attrset,
        delegation: promise.encode(c.minor > 0 && args.share_access & (WANTS | WANTS_OF_42) != 0),
    })
}

/// Whether the client may open anything now.
fn check_claim(clients: &Clients, client: ClientId, args: &OpenArgs<'_>) -> OpResult {
    match args.claim {
        OpenClaim4::DelegatePrev(_) | OpenClaim4::DelegPrevFh => return Err(Nfsstat4::NOTSUPP.into()),
        OpenClaim4::Previous(_) => clients.may_reclaim(client)?,
        // Valid during the grace period, too: what is delegated then was reclaimed (RFC 7530 §10.2.1, RFC 8881 §18.16.3).
        OpenClaim4::DelegateCur(_) | OpenClaim4::DelegCurFh(_) => {}
        _ => clients.may_claim(client)?,
    }
    Ok(())
}

/// What an OPEN led to.
struct Opened {
    stateid: Stateid4,
    /// Whether the owner need not confirm.
    confirmed: bool,
    promise: Promise,
    /// The stateid of the delegation that takes the place of the open.
    replaced: Option<Stateid4>,
}

/// Opens a file that is there, and may be opened by its permissions. What is stopped has changed nothing.
#[allow(clippy::too_many_arguments)]
fn settle(
    c: &mut Compound<'_>,
    clients: &Clients,
    files: &mut Files,
    found: &OpenTarget,
    client: ClientId,
    turn: Option<(OwnerId, bool)>,
    modes: &Modes,
    args: &OpenArgs<'_>,
) -> Result<Opened, Stop> {
    let Modes { share, want, times, only_one } = *modes;
    let reclaim = matches!(args.claim, OpenClaim4::Previous(_));
    let (fs, node) = c.server.exports.file(found.file)?;
    let now = c.now.instant;
    let under = match args.claim {
        OpenClaim4::DelegateCur(claim) => Some(claim.delegate_stateid),
        OpenClaim4::DelegCurFh(stateid) => Some(c.stateid(stateid)?),
        _ => None,
    };
    if let Some(stateid) = under {
        files.check_delegation(c.minor, client, &stateid, found.file)?;
    }
    let needed = Share { access: share.access | if found.truncate { WRITE } else { 0 }, ..share };
    match files.check_share(clients, client, found.file, needed, now) {
        Err(Stop::Status(_)) if reclaim => return Err(Nfsstat4::RECLAIM_CONFLICT.into()),
        checked => checked?,
    }
    let changes = needed.access & WRITE != 0 || share.deny & READ != 0;
    let conflict = if changes { Conflict::Change } else { Conflict::Read };
    files.recall(clients, found.file, conflict, Some(client), found.truncate, now, c.effects)?;
    let keeper = Keeper::Client(client);
    if !files.has_room(&keeper) {
        return Err(Stop::Room(keeper));
    }
    if found.truncate {
        let set = SetAttr { size: Some(0), ..SetAttr::default() };
        fs.set_attr(c.who, node, &set, None, true, c.now.wall)?;
    }

    fs.hold(node)?;
    let confirmed = reclaim || turn.is_none_or(|(_, confirmed)| confirmed);
    let turn = turn.map(|(turn, _)| (turn, confirmed));
    let owner = files.open_owner(client, args.owner.owner.0, turn);
    let (stateid, new) = files.open(c.minor == 0, owner, found.file, share, c.who.uid);
    if !new {
        fs.release(node);
    }
    let attr = fs.attr(node)?;
    let may_read = found.created || permits(&attr, c.who, right::READ);
    let wish = Wish {
        client,
        v40: c.minor == 0,
        file: found.file,
        want,
        access: share.access,
        // Under a delegation its holder reads, too: unchecked only where OPEN would let it.
        uid: if may_read { c.who.uid } else { u32::MAX },
        may_write: may_write(c, found),
        times,
        seen: Seen::from(&attr),
        notifications: Notifications::default(),
    };
    let promise = match args.claim {
        OpenClaim4::Previous(OpenDelegationType4::None | OpenDelegationType4::NoneExt) => Promise::None,
        OpenClaim4::Previous(kind) => {
            let write = matches!(kind, OpenDelegationType4::Write | OpenDelegationType4::WriteAttrs);
            fs.hold(node)?;
            let (stateid, recall) = files.redelegate(clients, &wish, write, now, c.effects);
            Promise::Granted { stateid, write, times, recall }
        }
        // The client is about to return the one it has.
        OpenClaim4::DelegateCur(_) | OpenClaim4::DelegCurFh(_) => Promise::None,
        _ if !confirmed => Promise::None,
        _ => Promise::new(files.delegate(clients, &wish, now, || fs.hold(node).is_ok()), times),
    };
    // Instead of an open, if the delegation allows all that the open would, and denies no more.
    let replaced = match promise {
        Promise::Granted { stateid, write, recall: false, .. }
            if only_one && new && share.deny == 0 && (write || share.access & WRITE == 0) =>
        {
            Some(stateid)
        }
        _ => None,
    };
    if replaced.is_some() {
        let at = files.find_open(c.minor, Some(client), &stateid, found.file)?;
        files.close(at, c.effects)?;
    }
    Ok(Opened { stateid, confirmed, promise, replaced })
}

/// Flags by which a client says what delegation it wants: of 4.1, and of 4.2 (RFC 9754).
const WANTS: u32 = WANT_DELEG_MASK | WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL | WANT_PUSH_DELEG_WHEN_UNCONTENDED;
const WANTS_OF_42: u32 = WANT_DELEG_TIMESTAMPS | WANT_OPEN_XOR_DELEGATION;

/// What `share_access` and `share_deny` say.
#[derive(Clone, Copy)]
struct Modes {
    share: Share,
    want: Want,
    /// Whether a delegation should be one with times.
    times: bool,
    /// Whether a delegation takes the place of the open.
    only_one: bool,
}

/// Modes and wanted delegation of OPEN and OPEN_DOWNGRADE; INVAL where they are none (RFC 7530 §16.16.6, RFC 8881
/// §18.16.4).
fn modes(minor: u32, access: u32, deny: u32) -> Result<Modes, Failure> {
    let wants = access
        & match minor {
            0 => 0,
            1 => WANTS,
            _ => WANTS | WANTS_OF_42,
        };
    let access = access & !wants;
    match (access, deny, deleg_ops::want(wants)) {
        (1..=SHARE_ACCESS_BOTH, 0..=SHARE_DENY_BOTH, Some(want)) => Ok(Modes {
            share: Share { access: access as u8, deny: deny as u8 },
            want,
            times: wants & WANT_DELEG_TIMESTAMPS != 0,
            only_one: wants & WANT_OPEN_XOR_DELEGATION != 0,
        }),
        _ => Err(Nfsstat4::INVAL.into()),
    }
}

/// Whether arguments have choices that came with 4.1: in 4.0 they do not decode.
fn is_newer_than_v40(args: &OpenArgs<'_>) -> bool {
    use OpenDelegationType4::{None, Read, Write};
    matches!(args.claim, OpenClaim4::Fh | OpenClaim4::DelegCurFh(_) | OpenClaim4::DelegPrevFh)
        || matches!(args.claim, OpenClaim4::Previous(kind) if !matches!(kind, None | Read | Write))
        || matches!(args.openhow, Openflag4::Create(Createhow4::Exclusive41(_)))
}

/// Finds the file of an OPEN, or makes it. `all`: in 4.0, everything, which is locked already.
fn find(
    c: &mut Compound<'_>,
    all: Option<&mut All<'_>>,
    current: FileId,
    args: &OpenArgs<'_>,
) -> Result<OpenTarget, Failure> {
    match (args.claim, args.openhow) {
        (OpenClaim4::Null(name), how) => by_name(c, all, current, name, how),
        (OpenClaim4::DelegateCur(claim), how) => {
            // What is delegated is there: nothing is made under this claim.
            c.server.exports.lookup(c.who, current, check_name(claim.file)?)?;
            Ok(OpenTarget { again: true, ..by_name(c, all, current, claim.file, how)? })
        }
        // To create takes a name (RFC 8881 §18.16.3).
        (_, Openflag4::Create(_)) => Err(Nfsstat4::INVAL.into()),
        (_, Openflag4::NoCreate) => {
            let (_, _, attr) = c.look(current)?;
            check_kind(c.minor, attr.kind)?;
            Ok(OpenTarget { again: true, ..OpenTarget::existing(current, attr, 0) })
        }
    }
}

fn by_name(
    c: &mut Compound<'_>,
    mut all: Option<&mut All<'_>>,
    dir: FileId,
    name: Component4<'_>,
    how: Openflag4<'_>,
) -> Result<OpenTarget, Failure> {
    let name = check_name(name)?;
    let (fs, dir_node, dir_attr) = c.look(dir)?;
    if dir_attr.kind != Kind::Directory {
        return Err(Nfsstat4::NOTDIR.into());
    }
    let plan = Plan::new(c.minor, how)?;
    // A second time when somebody else makes the file between our look and our creation of it.
    for last in [false, true] {
        match c.server.exports.lookup(c.who, dir, name) {
            Ok((file, attr)) => return plan.existing(c, &dir_attr, file, attr),
            Err(FsError::NotFound) if plan.create => {}
            Err(error) => return Err(error.into()),
        }
        c.for_change(dir)?;
        let (who, now) = (c.who, c.now.wall);
        let made =
            c.change_directories(all.as_deref_mut(), &[(dir, needs(notify::ADD_ENTRY))], |notifies| {
                let made =
                    match fs.create(who, dir_node, name, NewFile::Regular, &plan.set, plan.verifier, now) {
                        Err(FsError::Exists) => return Ok((None, Vec::new())),
                        made => made?,
                    };
                let event =
                    notifies.then(|| dir_ops::added(fs, dir_node, name, made.attr.clone())).transpose()?;
                Ok((Some(made), event.map(|event| (dir, event)).into_iter().collect()))
            })?;
        match made {
            Some(created) => {
                let file = FileId::new(dir.export, created.attr.node);
                return Ok(OpenTarget {
                    cinfo: change_info(&created.dir),
                    attrset: plan.attrset,
                    created: true,
                    ..OpenTarget::existing(file, created.attr, 0)
                });
            }
            None if last => return Err(Nfsstat4::EXIST.into()),
            None => {}
        }
    }
    Err(Nfsstat4::EXIST.into())
}

/// How a file is to be created.
#[derive(Default)]
struct Plan {
    create: bool,
    /// Whether it must not be there.
    guarded: bool,
    verifier: Option<u64>,
    set: SetAttr,
    attrset: Bitmap4,
}

impl Plan {
    fn new(minor: u32, how: Openflag4<'_>) -> Result<Self, Failure> {
        let Openflag4::Create(how) = how else { return Ok(Self::default()) };
        let (guarded, verifier, attributes) = match how {
            Createhow4::Unchecked(attributes) => (false, None, Some(attributes)),
            Createhow4::Guarded(attributes) => (true, None, Some(attributes)),
            Createhow4::Exclusive(verifier) => (true, Some(u64::from_be_bytes(verifier)), None),
            Createhow4::Exclusive41(with) => (true, Some(u64::from_be_bytes(with.verf)), Some(with.attrs)),
        };
        let (set, attrset) = match attributes {
            Some(attributes) => (attrs::to_set(&attributes, minor, Purpose::NewFile)?, attributes.attrmask),
            // The client sets attributes next; until then no other user may access the file, which inherits no list
            // (RFC 8881 §6.4.3 and §18.16.4).
            None => (
                SetAttr { acl: Some(Acl::of_mode(0o600, false).into()), ..SetAttr::default() },
                Bitmap4::EMPTY,
            ),
        };
        if set.size.is_some_and(|size| size > attrs::MAX_FILE_SIZE) {
            return Err(Nfsstat4::FBIG.into());
        }
        Ok(Self { create: true, guarded, verifier, set, attrset })
    }

    /// The file was there before.
    fn existing(
        &self,
        c: &Compound<'_>,
        dir: &Attr,
        file: FileId,
        attr: Attr,
    ) -> Result<OpenTarget, Failure> {
        let kind = attr.kind;
        let mut found = OpenTarget::existing(file, attr, dir.change);
        if self.guarded && !(is_broken(Mutant::GuardedIsUnchecked) && self.verifier.is_none()) {
            let (fs, node) = c.server.exports.file(file)?;
            let same = kind == Kind::Regular
                && self.verifier.is_some()
                && (is_broken(Mutant::ExclusiveVerifierIgnored) || fs.verifier(node)? == self.verifier);
            if !same {
                return Err(Nfsstat4::EXIST.into());
            }
            // The request was executed before, and the reply was lost.
            found.created = true;
            found.attrset = self.attrset;
            return Ok(found);
        }
        check_kind(c.minor, kind)?;
        if self.set.size == Some(0) && !is_broken(Mutant::OpenKeepsContent) {
            found.truncate = true;
            found.attrset = Bitmap4::of(&[fattr4::SIZE]);
        }
        Ok(found)
    }
}

/// Only regular files are opened. 4.0 says SYMLINK for special files, too (RFC 7530 §16.16.6).
fn check_kind(minor: u32, kind: Kind) -> OpResult {
    match kind {
        Kind::Regular | Kind::Directory => io_ops::check_kind(kind),
        _ if minor == 0 => Err(Nfsstat4::SYMLINK.into()),
        _ => io_ops::check_kind(kind),
    }
}

/// Whether the caller may open a file that was there.
fn check_access(c: &Compound<'_>, found: &OpenTarget, share: Share) -> OpResult {
    let writes = share.access & WRITE != 0 || found.truncate;
    if writes && c.server.exports.get(found.file.export)?.read_only {
        return Err(Nfsstat4::ROFS.into());
    }
    if found.again && c.who.uid == found.attr.uid {
        return Ok(());
    }
    let reads = share.access & READ != 0;
    let wanted = if reads { right::READ } else { 0 } | if writes { right::WRITE } else { 0 };
    let may = permits(&found.attr, c.who, wanted) || is_broken(Mutant::OpenUnchecked);
    if may { Ok(()) } else { Err(Nfsstat4::ACCESS.into()) }
}

fn may_write(c: &Compound<'_>, found: &OpenTarget) -> bool {
    let read_only = c.server.exports.get(found.file.export).is_ok_and(|export| export.read_only);
    !read_only && (found.created || permits(&found.attr, c.who, right::WRITE))
}
