//! Reclaiming after a restart of the server (RFC 7530 §9.6.2, RFC 8881 §8.4.2).

use super::*;
use crate::state::{Conflict, Effects, State};

/// A server that restarted, and knows client 1 from before.
fn restarted() -> Shared {
    let config = ServerConfig { lease: LEASE, ..ServerConfig::default() };
    let mut server = populated_with(config.clone());
    server.state = State::new(&config, 1, server.started, vec![b"client 1".to_vec()]);
    server
}

/// A client that has not said RECLAIM_COMPLETE.
fn returning(server: &Shared, minor: u32, number: u16) -> Holder<'_> {
    let mut c = if minor == 0 { client_of_40(server, number) } else { Client::new(server, minor, number) };
    if minor > 0 {
        let channel = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: 4096,
            maxresponsesize: 4096,
            maxresponsesize_cached: 4096,
            maxoperations: 16,
            maxrequests: 4,
            rdma_ird: None,
        };
        c.create_session(number, channel);
    }
    c.effects.clear();
    c.now.instant = server.started + Duration::from_secs(1);
    let holder = Holder { c, owner: format!("owner {number}"), seqid: 0 };
    if minor == 0 {
        holder.callback(true);
    }
    holder
}

fn reclaim(
    c: &mut Holder<'_>,
    access: u32,
    deny: u32,
    kind: OpenDelegationType4,
) -> Result<Opened, Nfsstat4> {
    let claim = OpenClaim4::Previous(kind);
    let results = c.open_in("/export/file", claim, Openflag4::NoCreate, access, deny);
    c.opened("file", &results)
}

#[test]
fn opens_locks_and_delegations_come_back() {
    for minor in [0, 1] {
        let server = restarted();
        let (mut one, mut two) = (returning(&server, minor, 1), returning(&server, minor, 2));
        assert_eq!(one.try_open("file", R, 0).err(), Some(Nfsstat4::GRACE));
        assert_eq!(reclaim(&mut two, R, 0, OpenDelegationType4::None).err(), Some(Nfsstat4::RECLAIM_BAD));
        assert_eq!(two.read("file", Stateid4::ANONYMOUS), Nfsstat4::GRACE);
        let opened = reclaim(&mut one, RW, 0, OpenDelegationType4::None).unwrap();
        assert_eq!((opened.rflags & OPEN_RESULT_CONFIRM, opened.delegation), (0, None));
        assert_eq!(one.write("file", opened.stateid), Nfsstat4::OK);
        let lock = |c: &mut Holder<'_>, reclaim, lock_seqid| {
            let lock_owner = StateOwner4 { clientid: c.c.clientid, owner: "l".into() };
            let open_seqid = c.next();
            let open_stateid = opened.stateid;
            let locker =
                Locker4::OpenOwner(OpenToLockOwner4 { open_seqid, open_stateid, lock_seqid, lock_owner });
            let args = LockArgs { locktype: LockType4::Write, reclaim, offset: 0, length: 1, locker };
            c.at("file", Argop::Lock(args)).status()
        };
        assert_eq!(lock(&mut one, false, 1), Nfsstat4::GRACE);
        assert_eq!(lock(&mut one, true, 1), Nfsstat4::OK);
        // Another owner of the same client claims what cannot have been.
        let sequence = std::mem::replace(&mut one.seqid, 0);
        one.owner = "another".into();
        assert_eq!(
            reclaim(&mut one, R, RW, OpenDelegationType4::None).err(),
            Some(Nfsstat4::RECLAIM_CONFLICT)
        );
        // A delegation that others' modes forbid has to be returned at once.
        let with = reclaim(&mut one, R, 0, OpenDelegationType4::Read).unwrap();
        let (stateid, write) = with.delegation.unwrap();
        assert!(!write);
        let told = one.callbacks();
        assert!(matches!(told[..], [Effect::Call(_, Callback::Recall { .. })]), "{told:?}");
        let returned = one.at("file", Argop::Delegreturn(DelegreturnArgs { deleg_stateid: stateid }));
        assert_eq!(returned.status(), Nfsstat4::OK);
        (one.owner, one.seqid) = ("owner 1".into(), sequence);

        let late = if minor == 0 {
            pass(LEASE + Duration::from_secs(1), &mut [&mut one, &mut two]);
            one.read("file", opened.stateid)
        } else {
            one.c.run(&[Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: false })]).status()
        };
        assert_eq!(late, Nfsstat4::OK);
        assert_eq!(reclaim(&mut one, R, 0, OpenDelegationType4::None).err(), Some(Nfsstat4::NO_GRACE));
        assert_eq!(one.try_open("file", R, 0).err(), None);
    }
}

#[test]
fn a_delegation_comes_back() {
    for (kind, write) in [(OpenDelegationType4::Read, false), (OpenDelegationType4::Write, true)] {
        for minor in [0, 1] {
            let server = restarted();
            let mut one = returning(&server, minor, 1);
            let access = if write { RW } else { R };
            let opened = reclaim(&mut one, access, 0, kind).unwrap();
            assert_eq!(opened.delegation.map(|(_, write)| write), Some(write));
            assert_eq!(one.callbacks(), []);
        }
    }
}

/// RFC 7530 §10.2.1: other opens under a delegation that came back are allowed in the grace period; its recall is not over
/// before the locks that were kept under it can be taken.
#[test]
fn a_delegation_that_came_back_is_opened_under_and_not_revoked_in_the_grace_period() {
    for minor in [0, 1] {
        let server = restarted();
        let mut one = returning(&server, minor, 1);
        let held = reclaim(&mut one, RW, 0, OpenDelegationType4::Write).unwrap().delegation.unwrap().0;
        one.owner = "another".into();
        one.seqid = 0;
        let claim =
            OpenClaim4::DelegateCur(OpenClaimDelegateCur4 { delegate_stateid: held, file: "file".into() });
        let results = one.open_in("/export", claim, Openflag4::NoCreate, R, 0);
        assert!(one.opened("file", &results).is_ok(), "minor version {minor}");

        let mut effects = Effects::new();
        let recalled = |server: &Shared, now, effects: &mut Effects| {
            let mut part = server.state.write_of(&held);
            let (clients, files) = part.split();
            let file = one.c.id("/export/file");
            files.recall_conflicting(clients, file, Conflict::Read, None, now, effects)
        };
        let now = one.c.now.instant;
        assert_eq!(recalled(&server, now, &mut effects), Err(Nfsstat4::DELAY));
        let counts = |server: &Shared| server.state.all().files().delegation_counts(one.id());
        // The grace period ends a lease after the start; the client renews its own.
        let tick = |after| {
            let now = server.started + after;
            server.state.all().clients().renew(one.id(), now);
            server.state.tick(now);
            counts(&server).revoked
        };
        let moment = Duration::from_millis(1);
        assert_eq!([LEASE - moment, 2 * LEASE - 2 * moment, 2 * LEASE].map(tick), [0, 0, 1]);
    }
}
