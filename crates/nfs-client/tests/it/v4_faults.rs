//! Version 4 against a server that loses replies, breaks connections, asks for patience and has few slots: every operation is
//! executed once, and the end state is the one that a model predicts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_client::counters::{Counters, Event, Snapshot};
use benchmaster_nfs_client::delay::DelayPolicy;
use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{Create, FileType, LockKind, OpenHow, Range, Stability};
use benchmaster_nfs_client::v4::{Client, Connect};

use crate::support::embedded::{run, server, server_with};
use crate::support::futures::all;
use crate::support::operations::{how, pattern};

/// Patient with the server, and quick.
fn to(server: SocketAddr, minor: u32) -> Connect {
    Connect {
        timeo: Duration::from_millis(300),
        retrans: 60,
        delay: DelayPolicy {
            initial: Duration::from_millis(1),
            longest: Duration::from_millis(20),
            give_up: Duration::from_secs(60),
        },
        ..Connect::new(server, "/export", minor, "a test", [minor as u8 + 1; 8])
    }
}

/// What the exported directory is to contain: names, kinds, sizes.
type Model = RefCell<BTreeMap<Vec<u8>, (FileType, u64)>>;

/// One task's work, on names of its own, with its effects on the model.
async fn work(client: &Client, task: u64, rounds: u64, model: &Model) {
    let root = client.root();
    for round in 0..rounds {
        let name = |kind: &str| format!("{kind}-{task}-{round}").into_bytes();
        let create = if round % 2 == 0 { Create::IfAbsent } else { Create::Exclusive };
        let opened = client.open(&root, &name("file"), &how(create)).await.unwrap();
        assert!(opened.created, "task {task}, round {round}");
        let file = opened.file;
        let data = pattern(3000 + (task * 7919 + round * 104_729) as usize % 40_000, task + round);
        let written = client.write(&file, &data, 0, Stability::Unstable).await.unwrap();
        assert_eq!(written.len, data.len());
        client.commit(&file, Range { offset: 0, length: 0 }).await.unwrap();
        let whole = Range { offset: 0, length: 0 };
        client.lock(&file, task, LockKind::Write, whole, true).await.unwrap();
        let mut buffer = vec![0; data.len()];
        let read = client.read(&file, &mut buffer, 0).await.unwrap();
        assert!(read.len == data.len() && read.eof && buffer == data);
        client.unlock(&file, task, whole).await.unwrap();
        client.close(file).await.unwrap();
        model.borrow_mut().insert(name("file"), (FileType::Regular, data.len() as u64));

        client.mkdir(&root, &name("dir"), 0o755).await.unwrap();
        model.borrow_mut().insert(name("dir"), (FileType::Directory, 0));
        let (handle, _) = client.lookup(&root, &name("file")).await.unwrap();
        client.link(&handle, &root, &name("link")).await.unwrap();
        client.rename((&root, &name("link")), (&root, &name("renamed"))).await.unwrap();
        model.borrow_mut().insert(name("renamed"), (FileType::Regular, data.len() as u64));
        client.symlink(&root, &name("symlink"), b"target").await.unwrap();
        model.borrow_mut().insert(name("symlink"), (FileType::Symlink, 6));
        if round % 3 != 0 {
            client.remove(&root, &name("renamed")).await.unwrap();
            client.rmdir(&root, &name("dir")).await.unwrap();
            client.remove(&root, &name("symlink")).await.unwrap();
            for kind in ["renamed", "dir", "symlink"] {
                model.borrow_mut().remove(&name(kind));
            }
        }
    }
}

/// Runs as many of these tasks, and compares.
fn many_tasks(reactor: &Reactor, client: &Client, tasks: u64, rounds: u64) {
    let model = Model::default();
    let mut all: Vec<_> = (0..tasks).map(|task| Box::pin(work(client, task, rounds, &model))).collect();
    reactor.run_all(&mut all).unwrap();
    drop(all);
    let found = RefCell::new(BTreeMap::new());
    let listing = async {
        let mut visit = |entry: &benchmaster_nfs_client::types::Entry<'_>| {
            let attributes = entry.attributes.unwrap();
            let size = if attributes.kind == FileType::Directory { 0 } else { attributes.size };
            found.borrow_mut().insert(entry.name.to_vec(), (attributes.kind, size));
        };
        client.readdir(&client.root(), true, &mut visit).await.unwrap();
    };
    reactor.block_on(listing).unwrap();
    assert_eq!(*found.borrow(), *model.borrow());
}

/// A client and what it counts.
fn mounted(connect: &Connect) -> (Reactor, Rc<Counters>, Client) {
    let (reactor, counters) = (Reactor::new().unwrap(), Rc::new(Counters::new()));
    let client = reactor.block_on(Client::connect(&reactor, &counters, connect)).unwrap().unwrap();
    (reactor, counters, client)
}

#[test]
fn nothing_is_lost_or_done_twice_when_replies_are() {
    for minor in 0..3 {
        let server = server(&["* drop-reply p=0.02"]);
        let (reactor, counters, client) = mounted(&Connect { nconnect: 2, ..to(server.address(), minor) });
        many_tasks(&reactor, &client, 20, 4);
        let counted = counters.snapshot();
        assert!(counted.event(Event::Retransmission) > 0, "{counted:?}");
        reactor.block_on(client.unmount()).unwrap().unwrap();
        assert_eq!(server.report().state.files, 0);
    }
}

#[test]
fn nothing_is_lost_or_done_twice_when_connections_break() {
    for minor in 0..3 {
        let server = server(&["* disconnect p=0.02"]);
        let (reactor, counters, client) = mounted(&Connect { nconnect: 3, ..to(server.address(), minor) });
        many_tasks(&reactor, &client, 20, 4);
        let counted = counters.snapshot();
        assert!(counted.event(Event::Resent) > 0 && counted.event(Event::Reconnect) > 0, "{counted:?}");
        if minor > 0 {
            assert!(counted.event(Event::ConnectionBound) > 0, "{counted:?}");
            assert_eq!(counted.event(Event::SessionRecovered), 0, "{counted:?}");
        }
        reactor.block_on(client.unmount()).unwrap().unwrap();
        assert_eq!(server.report().state.files, 0);
    }
}

#[test]
fn delay_grace_and_their_like_are_waited_out() {
    for minor in 0..3 {
        let rules = [
            "* error=NFS4ERR_DELAY p=0.05",
            "OPEN error=NFS4ERR_GRACE p=0.05",
            "LOCK error=NFS4ERR_GRACE p=0.1",
            "READ delay=2ms p=0.1",
        ];
        let server = server(&rules);
        let (reactor, counters, client) = mounted(&to(server.address(), minor));
        many_tasks(&reactor, &client, 20, 4);
        let counted = counters.snapshot();
        assert!(counted.event(Event::Delay) > 0 && counted.event(Event::Grace) > 0, "{counted:?}");
        none_sent_twice(&counted);
        reactor.block_on(client.unmount()).unwrap().unwrap();
        assert_eq!(server.report().state.files, 0);
    }
}

/// What was made again because of an answer is another call, with a transaction number of its own.
fn none_sent_twice(counted: &Snapshot) {
    for (op, counters) in counted.ops() {
        assert_eq!(counters.transmissions, counters.ops, "{}", op.name());
        assert_eq!(counters.timeouts, 0, "{}", op.name());
    }
}

#[test]
fn a_close_that_is_refused_and_made_again_is_no_retransmission() {
    for minor in 0..3 {
        for status in ["NFS4ERR_DELAY", "NFS4ERR_OLD_STATEID"] {
            let server = server(&[&format!("CLOSE error={status} p=0.4")]);
            let (reactor, counters, client) = mounted(&to(server.address(), minor));
            let root = client.root();
            let body = async {
                for number in 0..40 {
                    let name = format!("file {number}").into_bytes();
                    let file = client.open(&root, &name, &how(Create::IfAbsent)).await.unwrap().file;
                    client.close(file).await.unwrap();
                }
            };
            reactor.block_on(body).unwrap();
            let counted = counters.snapshot();
            let close = counted.op(ops::v4::CLOSE);
            assert!(close.ops > 40 && close.errors >= close.ops - 40, "{status} of 4.{minor}: {close:?}");
            none_sent_twice(&counted);
            if status == "NFS4ERR_DELAY" {
                reactor.block_on(client.unmount()).unwrap().unwrap();
                assert_eq!(server.report().state.files, 0);
            } // else it left opens behind: the server refused a stateid that was right, and the next guess is wrong.
        }
    }
}

#[test]
fn stateids_that_are_refused_are_had_anew() {
    for minor in 0..3 {
        let rules = [
            "READ error=NFS4ERR_BAD_STATEID p=0.2",
            "WRITE error=NFS4ERR_OLD_STATEID p=0.2",
            "WRITE error=NFS4ERR_ADMIN_REVOKED p=0.1",
        ];
        let server = server(&rules);
        let (reactor, counters, client) = mounted(&to(server.address(), minor));
        let body = async {
            let root = client.root();
            let data = pattern(10_000, 5);
            for number in 0..30 {
                let name = format!("file {number}").into_bytes();
                let file = client.open(&root, &name, &how(Create::IfAbsent)).await.unwrap().file;
                client.write(&file, &data, 0, Stability::File).await.unwrap();
                let mut buffer = vec![0; data.len()];
                client.read(&file, &mut buffer, 0).await.unwrap();
                assert_eq!(buffer, data);
                client.close(file).await.unwrap();
            }
        };
        reactor.block_on(body).unwrap();
        let counted = counters.snapshot();
        assert!(counted.event(Event::OpenReclaimed) > 0, "{counted:?}");
        assert_eq!(counted.event(Event::StateLost), 0, "{counted:?}");
        reactor.block_on(client.unmount()).unwrap().unwrap();
        assert_eq!(server.report().state.files, 0);
    }
}

#[test]
fn two_hundred_tasks_share_four_slots() {
    for minor in [1, 2] {
        let server = server_with(&[], |config| config.slots = 4);
        let (reactor, counters, client) = mounted(&Connect { nconnect: 2, ..to(server.address(), minor) });
        assert_eq!(client.slots(), (4, 4));
        many_tasks(&reactor, &client, 200, 1);
        let counted = counters.snapshot();
        assert!(counted.event(Event::SlotWait) > 200, "{counted:?}");
        let reads = counted.op(ops::v4::READ);
        assert!(reads.ops == 200 && reads.queue_ns > reads.rtt_ns, "{reads:?}");
        assert_eq!((reads.transmissions, reads.errors), (200, 0));
        reactor.block_on(client.unmount()).unwrap().unwrap();
    }
}

/// The server asks for fewer slots when another session comes, and allows more when it is gone.
#[test]
fn slots_follow_what_the_server_wants() {
    for minor in [1, 2] {
        let server = server_with(&[], |config| config.requests = Some(8));
        let options = to(server.address(), minor);
        let (reactor, counters, client) = mounted(&options);
        many_tasks(&reactor, &client, 20, 1);
        assert_eq!(client.slots().1, 8);
        let before = counters.snapshot().event(Event::SlotsLowered);
        let identity = b"another client".to_vec();
        let (other_reactor, _, other) = mounted(&Connect { identity, ..options });
        // CB_RECALL_SLOT comes by itself.
        let lowered = || counters.snapshot().event(Event::SlotsLowered) > before;
        for _ in 0..500 {
            if lowered() {
                break;
            }
            reactor.block_on(reactor.sleep(Duration::from_millis(10))).unwrap();
        }
        assert!(lowered());
        assert_eq!(client.slots().1, 4);
        other_reactor.block_on(other.unmount()).unwrap().unwrap();
        // The next reply allows them again.
        reactor.block_on(client.getattr(&client.root())).unwrap().unwrap();
        assert_eq!(client.slots().1, 8);
        reactor.block_on(client.unmount()).unwrap().unwrap();
    }
}

#[test]
fn calls_that_are_given_up_keep_the_slots_in_order() {
    for minor in [1, 2] {
        let server = server_with(&["READ delay=20ms p=0.5"], |config| config.slots = 3);
        run(async |reactor, counters| {
            let client = Client::connect(&reactor, &counters, &to(server.address(), minor)).await.unwrap();
            let file = client.open(&client.root(), b"file", &how(Create::IfAbsent)).await.unwrap().file;
            let data = pattern(20_000, 1);
            client.write(&file, &data, 0, Stability::File).await.unwrap();
            let mut buffer = vec![0; data.len()];
            let mut given_up = 0;
            for round in 0..60 {
                let soon = std::time::Instant::now() + Duration::from_millis(round % 5);
                let read = reactor.until(soon, client.read(&file, &mut buffer, 0)).await;
                given_up += u32::from(read.is_none());
            }
            assert!(given_up > 0);
            // All slots come back.
            let read = client.read(&file, &mut buffer, 0).await.unwrap();
            assert!(read.len == data.len() && buffer == data);
            client.close(file).await.unwrap();
            let counted = counters.snapshot();
            assert!(counted.op(ops::v4::SEQUENCE).ops > 0, "{counted:?}");
            assert_eq!(counted.event(Event::SessionRecovered), 0, "{counted:?}");
            // Calls that were given up are calls too, and were sent once.
            let read = counted.op(ops::v4::READ);
            assert!(read.errors > 0 && read.errors <= given_up.into(), "{read:?}");
            none_sent_twice(&counted);
            client.unmount().await.unwrap();
        });
    }
}

#[test]
fn many_opens_of_version_4_0_run_side_by_side_though_replies_are_lost() {
    let rules = ["OPEN drop-reply p=0.05", "CLOSE drop-reply p=0.05", "OPEN_CONFIRM drop-reply p=0.1"];
    let server = server(&rules);
    let (reactor, counters, client) = mounted(&to(server.address(), 0));
    let root = client.root();
    let (client_, reading) = (&client, OpenHow { write: false, ..how(Create::No) });
    let make = async {
        let file = client_.open(&root, b"shared", &how(Create::IfAbsent)).await.unwrap().file;
        client_.close(file).await.unwrap();
    };
    reactor.block_on(make).unwrap();
    let open = |task: u64| async move {
        for round in 0..5 {
            let name = format!("file {task} {round}").into_bytes();
            let own = client_.open(&root, &name, &how(Create::IfAbsent)).await.unwrap().file;
            let shared = client_.open(&root, b"shared", &reading).await.unwrap().file;
            client_.close(own).await.unwrap();
            client_.close(shared).await.unwrap();
        }
    };
    let mut all: Vec<_> = (0..40).map(|task| Box::pin(open(task))).collect();
    reactor.run_all(&mut all).unwrap();
    drop(all);
    let counted = counters.snapshot();
    assert!(counted.event(Event::Retransmission) > 0, "{counted:?}");
    assert_eq!(counted.op(ops::v4::OPEN).errors, 0, "{counted:?}");
    reactor.block_on(client.unmount()).unwrap().unwrap();
    assert_eq!(server.report().state.files, 0);
}

#[test]
fn a_server_that_says_it_lost_the_client_may_know_its_owners_all_the_same() {
    let server = server(&["OPEN error=NFS4ERR_STALE_CLIENTID after=40 count=1"]);
    let (reactor, counters, client) = mounted(&to(server.address(), 0));
    let (client_, root) = (&client, client.root());
    let open = |number: u64| async move {
        let name = format!("file {number}").into_bytes();
        let file = client_.open(&root, &name, &how(Create::IfAbsent)).await.unwrap().file;
        client_.close(file).await.unwrap();
    };
    // As many owners as there are opens at once.
    let mut all: Vec<_> = (0..40).map(|number| Box::pin(open(number))).collect();
    reactor.run_all(&mut all).unwrap();
    drop(all);
    reactor.block_on(open(40)).unwrap();
    let counted = counters.snapshot();
    assert_eq!(counted.event(Event::ClientRecovered), 1, "{counted:?}");
    assert_eq!(counted.op(ops::v4::OPEN).errors, 1, "{counted:?}");
    reactor.block_on(client.unmount()).unwrap().unwrap();
    assert_eq!(server.report().state.files, 0);
}

#[test]
fn opens_of_one_file_are_one_state_with_its_modes() {
    for minor in [1, 2] {
        let server = server(&[]);
        run(async |reactor, counters| {
            let client = Client::connect(&reactor, &counters, &to(server.address(), minor)).await.unwrap();
            let root = client.root();
            let reading = OpenHow { write: false, ..how(Create::No) };
            let both = client.open(&root, b"file", &how(Create::IfAbsent)).await.unwrap().file;
            let read = client.open(&root, b"file", &reading).await.unwrap().file;
            let again = client.open(&root, b"file", &reading).await.unwrap().file;
            assert_eq!(both.stateid().other, read.stateid().other);
            client.write(&both, b"text", 0, Stability::File).await.unwrap();
            client.close(both).await.unwrap();
            client.read(&read, &mut [0; 4], 0).await.unwrap();
            client.close(read).await.unwrap();
            client.read(&again, &mut [0; 4], 0).await.unwrap();
            client.close(again).await.unwrap();
            let counted = counters.snapshot();
            let ops = [ops::v4::OPEN, ops::v4::OPEN_DOWNGRADE, ops::v4::CLOSE].map(|op| counted.op(op).ops);
            assert_eq!(ops, [3, 1, 1]);
            // Opening and closing at once, again and again.
            all((0..10).map(|_| -> Pin<Box<dyn Future<Output = ()>>> {
                Box::pin(async {
                    for _ in 0..20 {
                        let file = client.open(&root, b"file", &reading).await.unwrap().file;
                        client.read(&file, &mut [0; 4], 0).await.unwrap();
                        client.close(file).await.unwrap();
                    }
                })
            }))
            .await;
            client.unmount().await.unwrap();
        });
        assert_eq!(server.report().state.files, 0);
    }
}
