//! The lock manager against a server that answers as the test says: grace, locks of others, restarts.

use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use benchmaster_nfs_client::counters::{Counters, Event};
use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::{NfsResult, Protocol};
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{Create, LockKind, OpenHow, Range};
use benchmaster_nfs_client::v3::{Client, Connect};
use benchmaster_nfs_proto::nlm::{self, NlmStats};
use benchmaster_nfs_proto::v3::{Ftype3, GetattrOk, GetattrRes, Proc3};
use benchmaster_nfs_proto::xdr::Decoder;
use benchmaster_nfs_server::Loss;

use crate::support::embedded::{run, server as embedded};
use crate::support::stub::{Call, Reply, attributes, file_found, opened, results, with};

const ALL: Range = Range { offset: 0, length: 0 };

/// What the lock manager of a test does: a status for each call of a procedure, and whether LOCK reclaims.
fn lock_manager(
    mut answer: impl FnMut(u32, bool) -> Option<NlmStats> + Send + 'static,
) -> impl FnMut(&Call<'_>) -> Option<Reply> + Send {
    move |call: &Call<'_>| {
        if call.is(Proc3::LOOKUP) {
            return file_found(Ftype3::Reg, 1, 0);
        }
        if call.program != nlm::PROGRAM || call.procedure == 0 {
            return None;
        }
        assert_eq!(call.version, nlm::v4::VERSION);
        let mut d = Decoder::new(call.args);
        let (cookie, reclaim) = match nlm::Proc(call.procedure) {
            nlm::Proc::LOCK => {
                let args: nlm::v4::LockArgs<'_> = d.get().unwrap();
                assert!(!args.block && args.exclusive && args.alock.svid == 7);
                (args.cookie, args.reclaim)
            }
            nlm::Proc::UNLOCK => (d.get::<nlm::v4::UnlockArgs<'_>>().unwrap().cookie, false),
            nlm::Proc::CANCEL => (d.get::<nlm::v4::CancelArgs<'_>>().unwrap().cookie, false),
            other => panic!("{other}"),
        };
        Some(match answer(call.procedure, reclaim) {
            Some(stat) => results(&nlm::Res { cookie, stat }).unwrap(),
            None => Reply::Close,
        })
    }
}

#[test]
fn grace_and_locks_of_others_are_waited_for() {
    use NlmStats as S;
    let script = [S::DENIED_GRACE_PERIOD, S::DENIED_GRACE_PERIOD, S::DENIED, S::DENIED, S::GRANTED];
    let mut script = script.into_iter().chain([S::DENIED, S::DENIED_NOLOCKS]);
    with(
        |_| {},
        lock_manager(
            move |procedure, _| {
                if procedure == nlm::Proc::UNLOCK.0 { Some(S::GRANTED) } else { script.next() }
            },
        ),
        async |client, counters| {
            let file = opened(client).await;
            client.lock(&file, 7, LockKind::Write, ALL, true).await.unwrap();
            let counted = counters.snapshot();
            assert_eq!((counted.event(Event::Grace), counted.event(Event::LockPolled)), (2, 2));
            assert_eq!(counted.op(ops::nlm::LOCK).errors, 4);
            // Without waiting.
            let refused = client.lock(&file, 7, LockKind::Write, ALL, false).await;
            assert_eq!(refused, Err(NfsError::Nlm(NlmStats::DENIED)));
            let refused = client.lock(&file, 7, LockKind::Write, ALL, true).await;
            assert_eq!(refused, Err(NfsError::Nlm(NlmStats::DENIED_NOLOCKS)));
            client.unlock(&file, 7, ALL).await.unwrap();
        },
    );
}

#[test]
fn a_server_that_blocks_nevertheless_is_told_to_cancel() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let notes = calls.clone();
    let mut script = [NlmStats::BLOCKED].into_iter();
    with(
        |_| {},
        lock_manager(move |procedure, _| {
            notes.lock().unwrap().push(procedure);
            script.next().or(Some(NlmStats::GRANTED))
        }),
        async |client, _| {
            let file = opened(client).await;
            client.lock(&file, 7, LockKind::Write, ALL, true).await.unwrap();
        },
    );
    // Unmounting unlocks.
    use nlm::Proc;
    let expected = [Proc::LOCK, Proc::CANCEL, Proc::LOCK, Proc::UNLOCK];
    assert_eq!(*calls.lock().unwrap(), expected.map(|procedure| procedure.0));
}

/// Locks, lets the connection break, and waits until the lock was reclaimed or lost; returns what UNLOCK says.
fn after_a_restart(reclaimed: NlmStats, anew: NlmStats, until: Event) -> NfsResult<()> {
    let mut restarted = false;
    let script = lock_manager(move |procedure, reclaim| {
        if procedure == nlm::Proc::UNLOCK.0 {
            return Some(NlmStats::GRANTED);
        }
        match (restarted, reclaim) {
            (false, false) => Some(NlmStats::GRANTED),
            (_, true) => {
                restarted = true;
                Some(reclaimed)
            }
            (true, false) => Some(anew),
        }
    });
    let mut script = script;
    let mut broken = false;
    let breaking = move |call: &Call<'_>| {
        if call.is(Proc3::GETATTR) && !std::mem::replace(&mut broken, true) {
            return Some(Reply::Close);
        }
        if call.is(Proc3::GETATTR) {
            let obj_attributes = attributes(Ftype3::Dir, 1, 0);
            return results(&GetattrRes::Ok(GetattrOk { obj_attributes }));
        }
        script(call)
    };
    with(
        |_| {},
        breaking,
        async |client, counters| {
            let file = opened(client).await;
            client.lock(&file, 7, LockKind::Write, ALL, false).await.unwrap();
            let locks = |counters: &Counters| counters.snapshot().op(ops::nlm::LOCK).ops;
            let before = locks(counters);
            // The connection breaks, and the lock is asked for again as soon as it is back.
            client.getattr(&client.root()).await.unwrap();
            let wanted = if reclaimed == NlmStats::DENIED_GRACE_PERIOD { 2 } else { 1 };
            while locks(counters) < before + wanted {
                client.getattr(&client.root()).await.unwrap();
            }
            let counted = counters.snapshot();
            for event in [Event::LockReclaimed, Event::StateLost] {
                assert_eq!(counted.event(event), u64::from(event == until), "{event:?}");
            }
            client.unlock(&file, 7, ALL).await
        },
    )
}

#[test]
fn locks_are_reclaimed_from_a_server_that_restarted() {
    use NlmStats as S;
    assert_eq!(after_a_restart(S::GRANTED, S::DENIED, Event::LockReclaimed), Ok(()));
    // No grace period: perhaps it did not restart at all.
    assert_eq!(after_a_restart(S::DENIED_GRACE_PERIOD, S::GRANTED, Event::Connect), Ok(()));
    let lost = Err(NfsError::StateLost("a lock"));
    assert_eq!(after_a_restart(S::DENIED_GRACE_PERIOD, S::DENIED, Event::StateLost), lost);
    assert_eq!(after_a_restart(S::DENIED, S::DENIED, Event::StateLost), lost);
}

#[test]
fn locks_survive_a_crash_of_the_server() {
    let server = embedded(&[]);
    let connect = Connect {
        port: Some(server.address().port()),
        timeout: Duration::from_secs(20),
        ..Connect::new(server.address().ip(), "/export")
    };
    run(async |reactor: Reactor, counters: Rc<Counters>| {
        let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
        let how = OpenHow { read: true, write: true, create: Create::IfAbsent, truncate: false, mode: 0o600 };
        let file = client.open(&client.root(), b"file", &how).await.unwrap().file;
        client.lock(&file, 7, LockKind::Write, ALL, false).await.unwrap();
        assert_eq!(server.crash(Loss::Process, 0).unwrap().known_clients, 1);
        while counters.snapshot().event(Event::LockReclaimed) == 0 {
            client.getattr(&client.root()).await.unwrap();
        }
        assert_eq!(counters.snapshot().event(Event::StateLost), 0);
        client.unlock(&file, 7, ALL).await.unwrap();
        client.unmount().await.unwrap();
    });
}
