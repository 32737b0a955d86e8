//! DELEGRETURN, WANT_DELEGATION and GET_DIR_DELEGATION; how delegations are encoded. DELEGPURGE is not supported: no
//! delegation outlives a client's restart.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    Acetype4, Bitmap4, DelegClaim4, DelegreturnArgs, DirDelegation4, GetDirDelegationArgs,
    GetDirDelegationOk, Nfsace4, Nfsstat4, OpenDelegation4, OpenDelegationType4, OpenNoneDelegation4,
    OpenReadDelegation4, OpenWriteDelegation4, SHARE_ACCESS_BOTH, SpaceLimit4, Stateid4, WANT_ANY_DELEG,
    WANT_CANCEL, WANT_DELEG_MASK, WANT_DELEG_TIMESTAMPS, WANT_NO_DELEG, WANT_NO_PREFERENCE,
    WANT_PUSH_DELEG_WHEN_UNCONTENDED, WANT_READ_DELEG, WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL, WANT_WRITE_DELEG,
    WantDelegationArgs, notify,
};

use super::{Compound, OpResult, attrs};
use crate::fs::{Kind, access as right, permits};
use crate::state::delegated::Seen;
use crate::state::delegation::{Want, Wish};
use crate::state::watch::Notifications;

/// DELEGRETURN (RFC 7530 §16.6, RFC 8881 §18.6).
pub(crate) fn delegreturn(c: &mut Compound<'_>, args: DelegreturnArgs) -> OpResult {
    let file = c.file()?;
    let stateid = c.stateid(args.deleg_stateid)?;
    let session_client = if c.minor > 0 { c.client } else { None };
    let mut part = c.server.state.write(file);
    let (clients, files) = part.split();
    let client = files.return_delegation(c.minor, session_client, &stateid, file, c.effects)?;
    if c.minor == 0 {
        clients.renew(client, c.now.instant);
        c.client = Some(client);
    }
    Ok(())
}

/// WANT_DELEGATION (RFC 8881 §18.49). Wants are not remembered: what cannot be granted now is refused.
pub(crate) fn want_delegation(c: &mut Compound<'_>, args: WantDelegationArgs) -> OpResult {
    const KNOWN: u32 = SHARE_ACCESS_BOTH
        | WANT_DELEG_MASK
        | WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL
        | WANT_PUSH_DELEG_WHEN_UNCONTENDED;
    let known = if c.minor >= 2 { KNOWN | WANT_DELEG_TIMESTAMPS } else { KNOWN };
    let file = c.file()?;
    let client = c.client.ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    let want = match want(args.want) {
        Some(Want::NoPreference | Want::Nothing) | None => return Err(Nfsstat4::INVAL.into()),
        _ if args.want & !known != 0 => return Err(Nfsstat4::INVAL.into()),
        Some(want) => want,
    };
    let (fs, node, attr) = c.look(file)?;
    let read_only = c.server.exports.get(file.export)?.read_only;
    let may_write = !read_only && permits(&attr, c.who, right::WRITE);
    let mut part = c.server.state.write(file);
    let (clients, files) = part.split();
    match args.claim {
        DelegClaim4::DelegPrevFh => return Err(Nfsstat4::NOTSUPP.into()),
        DelegClaim4::Previous(_) => clients.may_reclaim(client)?,
        DelegClaim4::Fh => clients.may_claim(client)?,
    }
    let times = c.minor >= 2 && args.want & WANT_DELEG_TIMESTAMPS != 0;
    let (seen, notifications) = (Seen::from(&attr), Notifications::default());
    let wish = Wish {
        client,
        v40: false,
        file,
        want,
        access: 0,
        uid: c.who.uid,
        may_write,
        times,
        seen,
        notifications,
    };
    let now = c.now.instant;
    let promise = match (attr.kind, args.claim) {
        (Kind::Directory, _) => Promise::Refused(OpenNoneDelegation4::IsDir),
        (kind, _) if kind != Kind::Regular && want == Want::Write => {
            Promise::Refused(OpenNoneDelegation4::WriteDelegNotSuppFtype)
        }
        (kind, _) if kind != Kind::Regular => Promise::Refused(OpenNoneDelegation4::NotSuppFtype),
        (_, DelegClaim4::Previous(kind @ (OpenDelegationType4::Read | OpenDelegationType4::Write))) => {
            let write = kind == OpenDelegationType4::Write;
            fs.hold(node)?;
            let (stateid, recall) = files.redelegate(clients, &wish, write, now, c.effects);
            Promise::Granted { stateid, write, times, recall }
        }
        _ if !permits(&attr, c.who, right::READ) => Promise::Refused(OpenNoneDelegation4::Resource(false)),
        _ => Promise::new(files.delegate(clients, &wish, now, || fs.hold(node).is_ok()), times),
    };
    drop(part);
    note(c, &promise);
    c.answer(&promise.encode(true))
}

/// GET_DIR_DELEGATION (RFC 8881 §18.39). The holder may answer LOOKUP, READDIR and GETATTR of the directory by itself until a
/// recall; of the changes that it asks for, it is notified instead (§20.4).
pub(crate) fn get_dir_delegation(c: &mut Compound<'_>, args: GetDirDelegationArgs) -> OpResult {
    let dir = c.file()?;
    let client = c.client.ok_or(Nfsstat4::OP_NOT_IN_SESSION)?;
    let (fs, node, attr) = c.look(dir)?;
    if attr.kind != Kind::Directory {
        return Err(Nfsstat4::NOTDIR.into());
    }
    if !permits(&attr, c.who, right::READ) {
        return Err(Nfsstat4::ACCESS.into());
    }
    let cookieverf = fs.cookie_verifier(node)?.to_be_bytes();
    let notifications = notifications(c, &args);
    let mut part = c.server.state.write(dir);
    let (clients, files) = part.split();
    clients.may_claim(client)?;
    let wish = Wish {
        client,
        v40: false,
        file: dir,
        want: Want::Read,
        access: 0,
        uid: c.who.uid,
        may_write: false,
        times: false,
        seen: Seen::from(&attr),
        notifications,
    };
    let outcome = files.delegate(clients, &wish, c.now.instant, || fs.hold(node).is_ok());
    drop(part);
    let Ok((stateid, _)) = outcome else { return c.answer(&GetDirDelegationOk::Unavailable(false)) };
    note(c, &Promise::Granted { stateid, write: false, times: false, recall: false });
    let granted = DirDelegation4 {
        cookieverf,
        stateid,
        notification: notifications.kinds,
        child_attributes: notifications.child,
        dir_attributes: notifications.dir,
    };
    c.answer(&GetDirDelegationOk::Granted(granted))
}

/// What a client that asks for this is notified of. Changes of entries' attributes are not; verifiers of cookies never change.
fn notifications(c: &Compound<'_>, args: &GetDirDelegationArgs) -> Notifications {
    const KINDS: Bitmap4 = Bitmap4::of(&[
        notify::CHANGE_DIR_ATTRS,
        notify::REMOVE_ENTRY,
        notify::ADD_ENTRY,
        notify::RENAME_ENTRY,
        notify::CHANGE_COOKIE_VERIFIER,
    ]);
    /// A back channel for less gets no notifications.
    const LEAST: u32 = 4 << 10;
    let roomy = c.session.is_some_and(|(session, _)| session.back().lock().max_request >= LEAST);
    let asked = if is_broken(Mutant::NotificationsUnasked) { KINDS } else { args.notification_types };
    let kinds = if roomy { asked & KINDS } else { Bitmap4::EMPTY };
    let some = |attributes: Bitmap4, kinds: Bitmap4| {
        if kinds.is_empty() { Bitmap4::EMPTY } else { attributes & attrs::NOTIFIED }
    };
    let entries = kinds & Bitmap4::of(&[notify::REMOVE_ENTRY, notify::ADD_ENTRY, notify::RENAME_ENTRY]);
    let dir = some(args.dir_attributes, kinds & Bitmap4::of(&[notify::CHANGE_DIR_ATTRS]));
    let kinds = if dir.is_empty() { kinds.without(notify::CHANGE_DIR_ATTRS) } else { kinds };
    Notifications { kinds, child: some(args.child_attributes, entries), dir }
}

/// What an operation says about a delegation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// It is granted.
    Granted {
        /// Stateid of the delegation.
        stateid: Stateid4,
        /// Whether it is one for writing.
        write: bool,
        /// Whether its holder keeps the file's times.
        times: bool,
        /// Whether it has to be returned at once.
        recall: bool,
    },
    /// It is not, for this reason.
    Refused(OpenNoneDelegation4),
    /// There is nothing to say.
    None,
}

impl Promise {
    pub(crate) fn new(outcome: Result<(Stateid4, bool), OpenNoneDelegation4>, times: bool) -> Self {
        match outcome {
            Ok((stateid, write)) => Self::Granted { stateid, write, times, recall: false },
            Err(why) => Self::Refused(why),
        }
    }

    /// As it is encoded; `reasons`: to a client that understands reasons and asked.
    pub(crate) fn encode(&self, reasons: bool) -> OpenDelegation4<'static> {
        // Every user needs the ACCESS operation.
        const NOBODY: Nfsace4<'static> =
            Nfsace4 { ace_type: Acetype4::ACCESS_ALLOWED, flag: 0, access_mask: 0, who: OPAQUE_EMPTY };
        const OPAQUE_EMPTY: benchmaster_nfs_proto::v4::Utf8<'static> =
            benchmaster_nfs_proto::xdr::Opaque(&[]);
        match *self {
            Self::Granted { stateid, write: false, times, recall } => {
                let read = OpenReadDelegation4 { stateid, recall, permissions: NOBODY };
                if times { OpenDelegation4::ReadAttrs(read) } else { OpenDelegation4::Read(read) }
            }
            Self::Granted { stateid, write: true, times, recall } => {
                let space_limit = SpaceLimit4::Size(u64::MAX);
                let write = OpenWriteDelegation4 { stateid, recall, space_limit, permissions: NOBODY };
                if times { OpenDelegation4::WriteAttrs(write) } else { OpenDelegation4::Write(write) }
            }
            Self::Refused(why) if reasons => OpenDelegation4::NoneExt(why),
            Self::None if reasons => OpenDelegation4::NoneExt(OpenNoneDelegation4::Resource(false)),
            Self::Refused(_) | Self::None => OpenDelegation4::None,
        }
    }
}

/// Remembers on the session's slot what was granted: a recall names the request until its reply was surely seen.
pub(crate) fn note(c: &Compound<'_>, promise: &Promise) {
    if let (Promise::Granted { stateid, .. }, Some((session, slot))) = (promise, &c.session) {
        session.granted(*slot, stateid.other);
    }
}

/// What delegation the flags of `share_access` want; `None` where they make no sense.
pub(crate) fn want(flags: u32) -> Option<Want> {
    Some(match flags & WANT_DELEG_MASK {
        WANT_NO_PREFERENCE => Want::NoPreference,
        WANT_READ_DELEG => Want::Read,
        WANT_WRITE_DELEG => Want::Write,
        WANT_ANY_DELEG => Want::Any,
        WANT_NO_DELEG => Want::Nothing,
        WANT_CANCEL => Want::Cancel,
        _ => return None,
    })
}
