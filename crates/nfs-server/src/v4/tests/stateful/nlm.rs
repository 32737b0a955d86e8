//! One table for the locks of NFSv4 and NLM.

use crate::state::Stop;
use std::net::Ipv4Addr;

use super::*;
use crate::state::interval::Range;
use crate::state::nlm::NlmOutcome;
use crate::state::nlm_lock::{NlmHost, NlmLock, NlmOwner, NlmWaiter, Route};

fn host() -> NlmHost {
    NlmHost { address: [127, 0, 0, 1].into(), name: (*b"old").into() }
}

fn owner(svid: i32) -> NlmOwner {
    NlmOwner { host: host(), oh: (*b"process").into(), svid }
}

fn lock_of(c: &Holder<'_>, svid: i32, offset: u64, len: u64, exclusive: bool) -> NlmLock {
    let range = Range::new(offset, if len == 0 { u64::MAX } else { len }).unwrap();
    NlmLock { file: c.c.id("/export/file"), owner: owner(svid), range, exclusive }
}

fn ask(c: &mut Holder<'_>, lock: NlmLock, wait: bool) -> NlmOutcome {
    let waiter = NlmWaiter {
        lock: lock.clone(),
        version: 4,
        route: Route {
            client: Ipv4Addr::LOCALHOST.into(),
            server: Ipv4Addr::LOCALHOST.into(),
            secured: false,
        },
        handle: [].into(),
        cookie: [].into(),
    };
    let (state, now) = (&c.c.server.state, c.c.now.instant);
    loop {
        let outcome = {
            let mut part = state.write(lock.file);
            let (clients, files) = part.split();
            files.nlm_lock(clients, &lock, wait.then(|| waiter.clone()), false, now, &mut c.c.effects)
        };
        match outcome {
            NlmOutcome::Stop(stop) if state.clear(lock.file, stop, now, &mut c.c.effects).is_ok() => {}
            outcome => return outcome,
        }
    }
}

#[test]
fn either_stands_in_the_way_of_the_other() {
    let server = server_without_delegations();
    for minor in [0, 1] {
        let mut c = Holder::new(&server, minor, 1);
        let open = c.open("file", RW, 0).stateid;
        let held = locks::lock(&mut c, "file", open, "l", LockType4::Write, 10, 10).unwrap();
        let whole = lock_of(&c, 1, 0, 0, true);
        assert_eq!(ask(&mut c, whole.clone(), false), NlmOutcome::Denied);
        let holder = server.state.read(whole.file).files().nlm_test(&whole).unwrap();
        assert_eq!((holder.write, holder.range), (true, Range { first: 10, last: 19 }));
        assert_eq!(ask(&mut c, whole.clone(), true), NlmOutcome::Blocked);
        assert_eq!(ask(&mut c, whole.clone(), true), NlmOutcome::Blocked);
        // It is granted when it can be.
        locks::unlock(&mut c, "file", held, 0, u64::MAX).unwrap();
        let told = c.callbacks();
        assert!(matches!(&told[..], [Effect::NlmGranted(waiter)] if waiter.lock == whole), "{told:?}");
        assert_eq!(locks::lock(&mut c, "file", open, "l2", LockType4::Read, 5, 1), Err(Nfsstat4::DENIED));
        let (id, range) = (whole.file, Range { first: 0, last: 7 });
        server.state.write(id).files().nlm_unlock(id, &owner(1), range, &mut Vec::new());
        assert!(locks::lock(&mut c, "file", open, "l3", LockType4::Write, 5, 3).is_ok());
        assert_eq!(locks::lock(&mut c, "file", open, "l4", LockType4::Write, 8, 1), Err(Nfsstat4::DENIED));
        server.state.each_part(|part| part.files().nlm_free_all(&host(), &mut Vec::new()));
        assert!(locks::lock(&mut c, "file", open, "l5", LockType4::Write, 8, 1).is_ok());
        let mut all = server.state.all();
        let (clients, files) = all.split();
        clients.expire(files, c.id(), &mut Vec::new());
        assert_eq!(files.counts(), Default::default());
    }
}

#[test]
fn waiting_is_taken_back_and_ends_with_the_host() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 1, 1);
    let first = lock_of(&c, 1, 0, 10, true);
    assert_eq!(ask(&mut c, first.clone(), false), NlmOutcome::Granted);
    let second = lock_of(&c, 2, 5, 10, false);
    assert_eq!(ask(&mut c, second.clone(), true), NlmOutcome::Blocked);
    assert!(server.state.write(second.file).files().nlm_cancel(&second));
    assert!(!server.state.write(second.file).files().nlm_cancel(&second));
    assert_eq!(ask(&mut c, second, true), NlmOutcome::Blocked);
    server.state.each_part(|part| part.files().nlm_free_all(&host(), &mut c.c.effects));
    assert_eq!(c.callbacks(), []);
    assert_eq!(server.state.all().files().counts(), Default::default());
}

#[test]
fn a_client_whose_lease_ran_out_gives_way_even_when_nothing_else_is_on_the_file() {
    let server = server_without_delegations();
    let mut c = Holder::new(&server, 1, 1);
    let open = c.open("file", RW, 0).stateid;
    locks::lock(&mut c, "file", open, "l", LockType4::Write, 0, 10).unwrap();
    c.c.wait(LEASE * 2);
    let mine = lock_of(&c, 1, 0, 1, true);
    assert_eq!(ask(&mut c, mine.clone(), false), NlmOutcome::Granted);
    let counts = server.state.all().files().counts();
    assert_eq!((counts.states, counts.files, counts.owners), (0, 1, 1));
    server.state.write(mine.file).files().nlm_unlock(mine.file, &mine.owner, mine.range, &mut Vec::new());
    assert_eq!(server.state.all().files().counts(), Default::default());
}

/// A host that locks without end, under as many names as it likes, gets a share.
#[test]
fn what_a_host_locks_is_bounded() {
    let config = ServerConfig { delegations: false, memory: 1 << 20, ..ServerConfig::default() };
    let server = populated_with(config);
    let mut c = Holder::new(&server, 1, 1);
    let named = |lock: NlmLock, n: u64| NlmLock {
        owner: NlmOwner {
            host: NlmHost { name: format!("{n}").into_bytes().into(), ..host() },
            ..lock.owner
        },
        ..lock
    };
    // Ranges of one owner; owners; machines; requests that wait.
    for flood in 0..4u64 {
        let full = (0..100_000).find(|n| {
            let at = if flood == 0 { 2 * n } else { 0 };
            let lock = lock_of(&c, if flood == 1 { *n as i32 } else { 0 }, at, 1, false);
            let lock = if flood > 1 { named(lock, *n) } else { lock };
            let lock = NlmLock { exclusive: flood == 3 && *n > 0, ..lock };
            matches!(ask(&mut c, lock, flood == 3), NlmOutcome::Stop(Stop::Room(_)))
        });
        assert!(full.is_some_and(|n| n > 500), "{flood}: {full:?}");
        let elsewhere = lock_of(&c, 7, 1 << 50, 1, true);
        let other = NlmHost { address: [127, 0, 0, 9].into(), ..host() };
        let theirs =
            NlmLock { owner: NlmOwner { host: other.clone(), ..elsewhere.owner.clone() }, ..elsewhere };
        assert_eq!(ask(&mut c, theirs, false), NlmOutcome::Granted);
        let mut part = server.state.write(c.c.id("/export/file"));
        for n in 0..full.unwrap() {
            part.files().nlm_free_all(
                &NlmHost { name: format!("{n}").into_bytes().into(), ..host() },
                &mut c.c.effects,
            );
        }
        part.files().nlm_free_all(&host(), &mut c.c.effects);
        part.files().nlm_free_all(&other, &mut c.c.effects);
        drop(part);
        let counts = server.state.all().files().counts();
        assert_eq!((counts.files, counts.owners), (0, 0));
    }
}
