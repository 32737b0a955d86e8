//! Delegations, callbacks and leases of version 4.

use std::time::{Duration, Instant};

use benchmaster_nfs_proto::v4::{self, Argop, Nfsstat4 as S, OpenClaim4, Openflag4, Resop, Stateid4, fattr4};

use super::Kind;
use crate::nfs::callback::Callback;
use crate::nfs::client4::{Client4, body};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::{Open, Share};
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

/// How long a callback may take to come.
pub(super) const SOON: Duration = Duration::from_secs(3);
/// How long is waited for what must not come.
pub(super) const QUIET: Duration = Duration::from_millis(150);
const PAUSE: Duration = Duration::from_millis(30);

/// A file on which the first client has a delegation.
pub(super) fn delegated(t: &mut Trial, share: Share, want: u32) -> Result<(Open, Stateid4), Stop> {
    t.object(Kind::File)?;
    let dir = t.dir();
    let client = t.a()?;
    client.forget_calls();
    client.keeps_delegations = true;
    let share = if client.minor == 0 { share } else { share.want(want) };
    // A server of 4.0 tries the path back before it delegates.
    for _ in 0..20 {
        let open = client.opens("holder", &dir, "x", share)?;
        if let Some((stateid, writes)) = open.delegation
            && writes == (want & v4::WANT_DELEG_MASK == v4::WANT_WRITE_DELEG)
        {
            return Ok((open, stateid));
        }
        let Some((stateid, _)) = open.delegation else {
            client.close(&open)?;
            std::thread::sleep(PAUSE);
            continue;
        };
        // The other kind: of no use here.
        give_back(client, &open.fh, stateid)?;
        client.close(&open)?;
        std::thread::sleep(PAUSE);
    }
    Err(Stop::not_applicable("the server gives no such delegation"))
}

fn read_delegated(t: &mut Trial) -> Result<(Open, Stateid4), Stop> {
    delegated(t, Share::READ, v4::WANT_READ_DELEG)
}

pub(super) fn return_of(stateid: Stateid4) -> Argop<'static> {
    Argop::Delegreturn(v4::DelegreturnArgs { deleg_stateid: stateid })
}

pub(super) fn give_back(client: &mut Client4, fh: &[u8], stateid: Stateid4) -> Tried {
    client.on(fh, &[return_of(stateid)], &[S::OK])
}

/// What another client does is put off until the delegation, which is recalled, comes back; then it is done.
fn recalled_by<'a>(t: &mut Trial, held: (Open, Stateid4), op: impl Fn(&Client4) -> Vec<Argop<'a>>) -> Tried {
    recalled(t, &held.0.fh, held.1, op)
}

pub(super) fn recalled<'a>(
    t: &mut Trial,
    delegated: &[u8],
    stateid: Stateid4,
    op: impl Fn(&Client4) -> Vec<Argop<'a>>,
) -> Tried {
    let (a, b) = t.both()?;
    let ops = op(b);
    let sent = format!("{:?} of another client", ops.last().map(Argop::opnum));
    let begun = b.begin(&ops)?;
    let recall = |call: &Callback| matches!(call, Callback::Recall { .. });
    let called = a.called(SOON, recall)?;
    let early = b.finish_within(&begun, QUIET)?;
    let put_off = early.as_ref().is_none_or(|answer| answer.status() == S::DELAY);
    match called {
        Some(Callback::Recall { stateid: recalled, fh }) => {
            hold(recalled.other == stateid.other, &sent, || {
                format!("CB_RECALL of {recalled:?}; {stateid:?} is right")
            })?;
            hold(fh == delegated, &sent, || "CB_RECALL of another filehandle".into())?;
        }
        _ => return Err(Stop::failed(sent, "no CB_RECALL of the delegation")),
    }
    hold(put_off, &sent, || "done before the delegation came back".into())?;
    give_back(a, delegated, stateid)?;
    if early.is_none() {
        let answer = b.finish(begun)?;
        if answer.status() != S::DELAY {
            return answer.is(&[S::OK]);
        }
    }
    drop(ops);
    // Owners of 4.0 count: the next try is another request.
    b.settle(b"other", S::DELAY);
    let again = op(b);
    b.compound(&again)?.is(&[S::OK])
}

/// GET_DIR_DELEGATION with these notifications; child and directory attributes.
pub(super) fn dir_delegation(kinds: v4::Bitmap4, attributes: v4::Bitmap4) -> Argop<'static> {
    let at_once = v4::Nfstime4 { seconds: 0, nseconds: 0 };
    Argop::GetDirDelegation(v4::GetDirDelegationArgs {
        signal_deleg_avail: false,
        notification_types: kinds,
        child_attr_delay: at_once,
        dir_attr_delay: at_once,
        child_attributes: attributes,
        dir_attributes: attributes,
    })
}

/// A delegation of the directory that the first client has, without notifications.
fn delegated_directory(t: &mut Trial) -> Result<Stateid4, Stop> {
    Ok(delegated_directory_with(t, dir_delegation(v4::Bitmap4::EMPTY, v4::Bitmap4::EMPTY))?.1.stateid)
}

pub(super) fn delegated_directory_with(
    t: &mut Trial,
    ask: Argop<'static>,
) -> Result<(String, v4::DirDelegation4), Stop> {
    let dir = t.dir();
    let client = t.a()?;
    client.forget_calls();
    client.keeps_delegations = true;
    let answer = client.compound(&[putfh(&dir), ask])?;
    let said = match answer.last() {
        Some(Resop::GetDirDelegation(Ok(said))) => Ok(said),
        _ => Err(answer.status()),
    };
    match said {
        Ok(v4::GetDirDelegationOk::Granted(granted)) => Ok((answer.sent, granted)),
        Ok(v4::GetDirDelegationOk::Unavailable(_))
        | Err(S::NOTSUPP | S::DIRDELEG_UNAVAIL | S::OP_ILLEGAL) => {
            Err(Stop::not_applicable("the server delegates no directories"))
        }
        Err(_) => Err(answer.wrong("a delegation, or that there is none")),
    }
}

/// OPEN of `x` by the other client.
fn open_x<'a>(client: &Client4, dir: &'a [u8], share: Share) -> Vec<Argop<'a>> {
    let args = client.open_args(b"other", share, Openflag4::NoCreate, OpenClaim4::Null("x".into()));
    vec![putfh(dir), Argop::Open(args)]
}

/// The lease time, where it may be waited for.
fn short_lease(t: &mut Trial) -> Result<Duration, Stop> {
    let (dir, longest) = (t.dir(), t.target.longest_lease);
    let client = t.a()?;
    let answer = client.done(&dir, &[getattr(&[fattr4::LEASE_TIME])])?;
    let lease = Duration::from_secs(client.decoded(&answer)?.lease_time.unwrap_or(90).into());
    if lease > longest {
        return Err(Stop::not_applicable(format!(
            "the lease of {} s is longer than the {} s that are waited for",
            lease.as_secs(),
            longest.as_secs()
        )));
    }
    Ok(lease)
}

checks! {
    /// Delegations.
    LIST, Delegation;
    "delegation-recall" V4 Must [V40 7530 "10.4.4", V41 8881 "10.4.4"]
        "An open for writing of another client recalls a read delegation, and waits until it is returned."
        => |t| {
            let held = read_delegated(t)?;
            let dir = t.dir();
            recalled_by(t, held, |b| open_x(b, &dir, Share::WRITE))
        };
    "delegation-recall-by-setattr" V4 Must [V40 7530 "10.4.4", V41 8881 "10.4.4"]
        "SETATTR of the size by another client recalls a read delegation."
        => |t| {
            let held = read_delegated(t)?;
            let (fh, size) = (held.0.fh.clone(), Attrs::size(3));
            recalled_by(t, held, |_| vec![putfh(&fh), setattr(Stateid4::ANONYMOUS, &size)])
        };
    "delegation-recall-by-write" V4 Must [V40 7530 "10.4.4", V41 8881 "10.4.4"]
        "WRITE with the anonymous stateid by another client recalls a read delegation."
        => |t| {
            let held = read_delegated(t)?;
            let fh = held.0.fh.clone();
            recalled_by(t, held, |_| vec![putfh(&fh), write(Stateid4::ANONYMOUS, 0, b"data")])
        };
    "delegation-recall-by-remove" V4 Must [V40 7530 "10.4.4", V41 8881 "10.4.4"]
        "REMOVE of the file by another client recalls a delegation."
        => |t| {
            let held = read_delegated(t)?;
            let dir = t.dir();
            recalled_by(t, held, |_| vec![putfh(&dir), remove("x")])
        };
    "delegation-recall-by-rename" V4 Must [V40 7530 "10.4.4", V41 8881 "10.4.4"]
        "RENAME of the file by another client recalls a delegation."
        => |t| {
            let held = read_delegated(t)?;
            let dir = t.dir();
            recalled_by(t, held, |_| vec![putfh(&dir), Argop::Savefh, rename("x", "y")])
        };
    "delegation-write-recall" V41 Must [V41 8881 "10.4.4"]
        "An open for reading of another client recalls a write delegation."
        => |t| {
            let held = delegated(t, Share::BOTH, v4::WANT_WRITE_DELEG)?;
            let dir = t.dir();
            recalled_by(t, held, |b| open_x(b, &dir, Share::READ))
        };
    "directory-delegation-recall-by-create" V41 Must [V41 8881 "10.9.4"]
        "CREATE in a directory by another client recalls a delegation of the directory."
        => |t| {
            let stateid = delegated_directory(t)?;
            let (dir, attrs) = (t.dir(), Attrs::mode(0o755));
            recalled(t, &dir, stateid, |_| vec![putfh(&dir), create(v4::Createtype4::Dir, b"new", &attrs)])
        };
    "directory-delegation-recall-by-open" V41 Must [V41 8881 "10.9.4"]
        "An OPEN of another client that makes a file recalls a delegation of the directory."
        => |t| {
            let stateid = delegated_directory(t)?;
            let (dir, attrs) = (t.dir(), Attrs::mode(0o644));
            recalled(t, &dir, stateid, |b| {
                let how = Openflag4::Create(v4::Createhow4::Unchecked(attrs.fattr()));
                let args = b.open_args(b"other", Share::WRITE, how, OpenClaim4::Null("x".into()));
                vec![putfh(&dir), Argop::Open(args)]
            })
        };
    "directory-delegation-recall-by-remove" V41 Must [V41 8881 "10.9.4"]
        "REMOVE in a directory by another client recalls a delegation of the directory."
        => |t| {
            t.object(Kind::File)?;
            let stateid = delegated_directory(t)?;
            let dir = t.dir();
            recalled(t, &dir, stateid, |_| vec![putfh(&dir), remove("x")])
        };
    "directory-delegation-of-a-file" V41 Must [V41 8881 "18.39"]
        "GET_DIR_DELEGATION of a file is NOTDIR."
        => |t| {
            delegated_directory(t)?;
            let file = t.object(Kind::File)?;
            t.a()?.on(&file, &[dir_delegation(v4::Bitmap4::EMPTY, v4::Bitmap4::EMPTY)], &[S::NOTDIR])
        };
    "delegation-beside-reader" V4 Must [V40 7530 "10.4", V41 8881 "10.4"]
        "An open for reading of another client stands beside a read delegation, which is not recalled."
        => |t| {
            let (open, stateid) = read_delegated(t)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            b.opens("other", &dir, "x", Share::READ)?;
            let called = a.called(QUIET, |call| matches!(call, Callback::Recall { .. }))?;
            hold(called.is_none(), "OPEN for reading of another client", || "CB_RECALL of the read delegation".into())?;
            give_back(a, &open.fh, stateid)
        };
    "delegation-not-beside-writer" V4 Must [V40 7530 "10.4", V41 8881 "10.4"]
        "There is no read delegation while another client has the file open for writing."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            b.opens("other", &dir, "x", Share::WRITE)?;
            let share = if a.minor == 0 { Share::READ } else { Share::READ.want(v4::WANT_READ_DELEG) };
            for _ in 0..3 {
                let open = a.opens("holder", &dir, "x", share)?;
                hold(open.delegation.is_none(), "OPEN for reading beside a writer", || format!("{:?}", open.delegation))?;
                a.close(&open)?;
                std::thread::sleep(PAUSE);
            }
            Ok(())
        };
    "delegation-stateid" V4 Must [V40 7530 "9.1.4.1", V41 8881 "8.2.1"]
        "A delegation has a stateid of its own, which READ takes."
        => |t| {
            let (open, stateid) = read_delegated(t)?;
            let client = t.a()?;
            hold(stateid.other != open.stateid.other, "OPEN", || "open and delegation have one stateid".into())?;
            client.on(&open.fh, &[read(stateid, 0, 10)], &[S::OK])
        };
    "delegation-does-not-write" V4 Must [V40 7530 "9.1.4.5", V41 8881 "8.2.5"]
        "WRITE with the stateid of a read delegation is OPENMODE."
        => |t| {
            let (open, stateid) = read_delegated(t)?;
            t.a()?.on(&open.fh, &[write(stateid, 0, b"data")], &[S::OPENMODE, S::BAD_STATEID])
        };
    "delegreturn-twice" V4 Must [V40 7530 "16.6", V41 8881 "18.6"]
        "A delegation that was returned is gone: its stateid is BAD_STATEID (4.0: also STALE_STATEID, EXPIRED)."
        => |t| {
            let (open, stateid) = read_delegated(t)?;
            let client = t.a()?;
            give_back(client, &open.fh, stateid)?;
            let gone = [S::BAD_STATEID, S::STALE_STATEID, S::EXPIRED];
            client.on(&open.fh, &[read(stateid, 0, 1)], &gone)?;
            client.on(&open.fh, &[return_of(stateid)], &gone)
        };
    "delegreturn-unknown" V4 Must [V40 7530 "16.6", V41 8881 "18.6"]
        "DELEGRETURN of the stateid of an open is BAD_STATEID."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let open = client.made("holder", &dir, "x")?;
            let answer = client.compound(&[putfh(&open.fh), return_of(open.stateid)])?;
            if answer.status() == S::NOTSUPP {
                return Err(Stop::not_applicable("the server has no delegations"));
            }
            answer.is(&[S::BAD_STATEID])
        };
    "delegation-not-wanted" V41 Must [V41 8881 "18.16.3"]
        "With WANT_NO_DELEG there is no delegation, and the answer says why (NONE_EXT)."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let (answer, _) = t.a()?.open("holder", &dir, "x", Share::READ.want(v4::WANT_NO_DELEG))?;
            let answer = answer.ok()?;
            let given = body!(answer, Open).delegation;
            let right = matches!(given, v4::OpenDelegation4::NoneExt(v4::OpenNoneDelegation4::NotWanted));
            hold(right, &answer.sent, || format!("{given:?}; NONE_EXT, not wanted, is right"))
        };
    "delegation-claimed" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN with CLAIM_DELEGATE_CUR opens under a delegation."
        => |t| {
            let (_, delegate_stateid) = read_delegated(t)?;
            let dir = t.dir();
            let file = "x".into();
            let claim = OpenClaim4::DelegateCur(v4::OpenClaimDelegateCur4 { delegate_stateid, file });
            let (answer, _) = t.a()?.open_how(b"claimer", &dir, Share::READ, Openflag4::NoCreate, claim)?;
            answer.is(&[S::OK])
        };
    "delegation-claimed-by-handle" V41 Must [V41 8881 "18.16.3"]
        "OPEN with CLAIM_DELEG_CUR_FH opens the current file under a delegation."
        => |t| {
            let (open, stateid) = read_delegated(t)?;
            let claim = OpenClaim4::DelegCurFh(stateid);
            let (answer, _) = t.a()?.open_how(b"claimer", &open.fh, Share::READ, Openflag4::NoCreate, claim)?;
            answer.is(&[S::OK])
        };
    "delegation-claimed-wrongly" V4 Must [V40 7530 "16.16.4", V41 8881 "18.16.3"]
        "OPEN with CLAIM_DELEGATE_CUR and a stateid that is no delegation is BAD_STATEID."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let open = client.made("holder", &dir, "x")?;
            let claim = v4::OpenClaimDelegateCur4 { delegate_stateid: open.stateid, file: "x".into() };
            let claim = OpenClaim4::DelegateCur(claim);
            let (answer, _) = client.open_how(b"claimer", &dir, Share::READ, Openflag4::NoCreate, claim)?;
            if answer.status() == S::NOTSUPP {
                return Err(Stop::not_applicable("the server has no delegations"));
            }
            answer.is(&[S::BAD_STATEID, S::STALE_STATEID])
        };
    "delegation-survives-close" V4 Must [V40 7530 "10.4", V41 8881 "10.4"]
        "CLOSE leaves the delegation: its stateid reads on."
        => |t| {
            let (open, stateid) = read_delegated(t)?;
            let client = t.a()?;
            client.close(&open)?;
            client.on(&open.fh, &[read(stateid, 0, 10)], &[S::OK])?;
            give_back(client, &open.fh, stateid)
        };
    "delegpurge" V4 Must [V40 7530 "16.5.4", V41 8881 "18.5.3"]
        "DELEGPURGE succeeds, or is NOTSUPP where delegations do not outlive a client."
        => |t| {
            let clientid = t.a()?.clientid;
            t.a()?.gives(&[Argop::Delegpurge(v4::DelegpurgeArgs { clientid })], &[S::OK, S::NOTSUPP])
        };
    "callback-sequence" V41 Must [V41 8881 "20.9.3"]
        "A callback begins with CB_SEQUENCE of the client's session; the first on a slot has the number 1."
        => |t| {
            let (open, stateid) = read_delegated(t)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            let id = a.session.as_ref().map(|session| session.id);
            let ops = open_x(b, &dir, Share::WRITE);
            let begun = b.begin(&ops)?;
            let called = a.called(SOON, |call| matches!(call, Callback::Sequence { .. }))?;
            give_back(a, &open.fh, stateid)?;
            let _ = b.finish(begun)?;
            let right = matches!(called, Some(Callback::Sequence { session, slot: 0, sequence: 1 }) if Some(session) == id);
            hold(right, "a recall", || format!("{called:?}; CB_SEQUENCE, slot 0, number 1 is right"))
        };
    "delegation-revoked" V4 Must [V40 7530 "10.4.6", V41 8881 "10.4.5"]
        "A delegation that is recalled and not returned is revoked after a lease time, and what waits for it goes on."
        => |t| {
            let lease = short_lease(t)?;
            let (open, stateid) = read_delegated(t)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            let deadline = Instant::now() + lease * 3 + SOON;
            let opened = loop {
                let ops = open_x(b, &dir, Share::WRITE);
                let answer = b.once(&ops)?;
                b.settle(b"other", answer.status());
                if answer.status() != S::DELAY || Instant::now() > deadline {
                    break answer;
                }
                a.renew()?;
                std::thread::sleep(lease / 10);
            };
            opened.is(&[S::OK])?;
            let revoked = [S::DELEG_REVOKED, S::BAD_STATEID, S::EXPIRED, S::ADMIN_REVOKED, S::STALE_STATEID];
            a.on(&open.fh, &[read(stateid, 0, 1)], &revoked)?;
            if a.minor == 0 {
                return Ok(());
            }
            let answer = a.compound(&[])?.ok()?;
            let flags = body!(answer, Sequence).status_flags;
            let some = v4::SEQ_STATUS_RECALLABLE_STATE_REVOKED | v4::SEQ_STATUS_EXPIRED_SOME_STATE_REVOKED
                | v4::SEQ_STATUS_ADMIN_STATE_REVOKED;
            hold(flags & some != 0, &answer.sent, || format!("status flags {flags:#x}; one of REVOKED is right"))?;
            let free = Argop::FreeStateid(v4::FreeStateidArgs { stateid });
            a.gives(&[free], &[S::OK])
        };
}

checks! {
    /// Leases.
    LEASES, Client;
    "lease-ends" V4 Must [V40 7530 "9.5", V41 8881 "8.3"]
        "What a client that is silent for longer than its lease held does not stand in the way of others."
        => |t| {
            let lease = short_lease(t)?;
            t.object(Kind::File)?;
            let dir = t.dir();
            let mut silent = t.start("silent")?;
            silent.opens("one", &dir, "x", Share::BOTH.deny(3))?;
            let (_, b) = t.both()?;
            let deadline = Instant::now() + lease * 3;
            loop {
                let (answer, _) = b.open("two", &dir, "x", Share::BOTH)?;
                if answer.status() == S::OK {
                    return Ok(());
                }
                answer.is(&[S::SHARE_DENIED])?;
                hold(Instant::now() < deadline, &answer.sent, || {
                    format!("{} three lease times after the other client's last call", answer.status())
                })?;
                b.renew()?;
                std::thread::sleep(lease / 10);
            }
        };
    "lease-is-kept" V4 Must [V40 7530 "9.5", V41 8881 "8.3"]
        "A client that renews its lease keeps what it has."
        => |t| {
            let lease = short_lease(t)?;
            t.object(Kind::File)?;
            let dir = t.dir();
            let (a, b) = t.both()?;
            let open = a.opens("one", &dir, "x", Share::BOTH.deny(3))?;
            let end = Instant::now() + lease * 3 / 2;
            while Instant::now() < end {
                a.renew()?;
                b.renew()?;
                std::thread::sleep(lease / 10);
            }
            let (answer, _) = b.open("two", &dir, "x", Share::BOTH)?;
            answer.is(&[S::SHARE_DENIED])?;
            a.on(&open.fh, &[read(open.stateid, 0, 1)], &[S::OK])
        };
    "setclientid-unknown" V40 Must [V40 7530 "16.34.5"]
        "SETCLIENTID_CONFIRM of a client id that does not exist is STALE_CLIENTID."
        => |t| {
            let clientid = t.a()?.clientid ^ 0x0102_0304_0506;
            let confirm = v4::SetclientidConfirmArgs { clientid, setclientid_confirm: [1; 8] };
            t.a()?.gives(&[Argop::SetclientidConfirm(confirm)], &[S::STALE_CLIENTID])
        };
    "setclientid-wrong-verifier" V40 Must [V40 7530 "16.34.5"]
        "SETCLIENTID_CONFIRM with another verifier than that of SETCLIENTID is STALE_CLIENTID."
        => |t| {
            let verifier = t.verifier();
            let mut client = t.stranger("unconfirmed")?;
            let answer = client.setclientid(verifier, "127.0.0.1.0.9", Some("tcp"))?.ok()?;
            let Some(Resop::Setclientid(v4::SetclientidRes::Ok(ok))) = answer.last() else {
                return Err(answer.wrong("a client id is right"));
            };
            let mut setclientid_confirm = ok.setclientid_confirm;
            setclientid_confirm[0] ^= 0x5a;
            let confirm = v4::SetclientidConfirmArgs { clientid: ok.clientid, setclientid_confirm };
            client.gives(&[Argop::SetclientidConfirm(confirm)], &[S::STALE_CLIENTID])
        };
    "setclientid-unconfirmed" V40 Must [V40 7530 "16.33.5"]
        "A client id that was not confirmed opens nothing: STALE_CLIENTID (or EXPIRED)."
        => |t| {
            t.object(Kind::File)?;
            let (dir, verifier) = (t.dir(), t.verifier());
            let mut client = t.stranger("unconfirmed")?;
            let answer = client.setclientid(verifier, "127.0.0.1.0.9", Some("tcp"))?.ok()?;
            let Some(Resop::Setclientid(v4::SetclientidRes::Ok(ok))) = answer.last() else {
                return Err(answer.wrong("a client id is right"));
            };
            client.clientid = ok.clientid;
            let (answer, _) = client.open("one", &dir, "x", Share::READ)?;
            answer.is(&[S::STALE_CLIENTID, S::EXPIRED])
        };
    "setclientid-callback-update" V40 Must [V40 7530 "16.33.5"]
        "SETCLIENTID of a client that has not restarted gives the same client id, and what it has open stays."
        => |t| {
            t.object(Kind::File)?;
            let (dir, verifier) = (t.dir(), t.verifier());
            let mut client = t.stranger("updated")?;
            client.introduce(verifier)?;
            let first = client.clientid;
            let open = client.opens("one", &dir, "x", Share::READ)?;
            client.introduce(verifier)?;
            hold(client.clientid == first, "SETCLIENTID with the same verifier", || {
                format!("client id {:#x}; {first:#x} is right", client.clientid)
            })?;
            client.on(&open.fh, &[read(open.stateid, 0, 1)], &[S::OK])
        };
    "setclientid-restart-drops-state" V40 Must [V40 7530 "16.34.5"]
        "When a client comes with another verifier, what it had open is given up."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            t.start("restarted")?.opens("one", &dir, "x", Share::BOTH.deny(3))?;
            t.start("restarted")?;
            t.a()?.opens("two", &dir, "x", Share::BOTH).map(|_| ())
        };
    "setclientid-in-use" V40 Must [V40 7530 "16.33.5"]
        "SETCLIENTID by another user with the name of a client that has state is CLID_INUSE."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let mut client = t.start("used")?;
            client.opens("one", &dir, "x", Share::READ)?;
            let verifier = t.verifier();
            let mut other = t.stranger("used")?;
            other.user = super::attributes4::stranger(other.user);
            other.setclientid(verifier, "127.0.0.1.0.9", Some("tcp"))?.is(&[S::CLID_INUSE])
        };
    "renew" V40 Must [V40 7530 "16.28"]
        "RENEW of a client id that is known is OK." => |t| t.a()?.renew();
    "renew-unknown" V40 Must [V40 7530 "16.28"]
        "RENEW of a client id that does not exist is STALE_CLIENTID (or EXPIRED)."
        => |t| {
            let clientid = t.a()?.clientid ^ 0x0102_0304_0506;
            t.a()?.gives(&[Argop::Renew(v4::RenewArgs { clientid })], &[S::STALE_CLIENTID, S::EXPIRED])
        };
}
