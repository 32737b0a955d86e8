//! Versions 2 and 3 against the embedded server that loses replies, closes connections, says no, restarts.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_client::counters::{Counters, Event};
use benchmaster_nfs_client::delay::DelayPolicy;
use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_client::types::{Create, LockKind, OpenHow, Range, SetAttributes, Stability};
use benchmaster_nfs_client::v3::{Connect, ConnectError};
use benchmaster_nfs_client::{v2, v3};
use benchmaster_nfs_proto::mount::Mountstat3;
use benchmaster_nfs_server::{ExportConfig, Server, ServerConfig};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::embedded::{run, server, server_with};
use crate::support::futures::all;
use crate::support::model::{check, work};

const HOW: OpenHow =
    OpenHow { read: true, write: true, create: Create::IfAbsent, truncate: false, mode: 0o600 };
const ALL: Range = Range { offset: 0, length: 0 };

fn at(address: SocketAddr) -> Connect {
    let pause = Duration::from_millis(1);
    let delay = DelayPolicy { initial: pause, longest: 4 * pause, give_up: Duration::from_secs(60) };
    Connect {
        port: Some(address.port()),
        timeout: Duration::from_millis(30),
        retransmissions: 1000,
        delay,
        lock_delay: delay,
        ..Connect::new(IpAddr::V4(Ipv4Addr::LOCALHOST), "/export")
    }
}

fn to(server: &Server) -> Connect {
    at(server.address())
}

#[test]
fn exports_that_do_not_exist_or_are_read_only() {
    let server = server_with(&[], |config| {
        config.exports = ["/export", "/fixed:ro"].map(|text| text.parse::<ExportConfig>().unwrap()).to_vec();
    });
    run(async |reactor, counters| {
        let of = |path: &str| Connect { export: path.into(), ..to(&server) };
        let refused = v3::Client::connect(&reactor, &counters, &of("/nothing")).await.unwrap_err();
        let noent = NfsError::Mount(Mountstat3::NOENT);
        assert!(matches!(refused, ConnectError::Nfs(error) if error == noent), "{refused}");
        assert_eq!(counters.snapshot().op(ops::mount::MNT).errors, 1);
        let refused = v2::Client::connect(&reactor, &counters, &of("/nothing")).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Nfs(error) if error == noent), "{refused}");
        let refused = v3::Client::connect(&reactor, &counters, &of(&"n".repeat(1025))).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Nfs(NfsError::NameTooLong)), "{refused}");

        let client = v3::Client::connect(&reactor, &counters, &of("/fixed")).await.unwrap();
        let rofs = |error: NfsError| assert_eq!(error.errno(), libc::EROFS, "{error}");
        rofs(client.open(&client.root(), b"new", &HOW).await.unwrap_err());
        rofs(client.mkdir(&client.root(), b"new", 0o700).await.unwrap_err());
        client.getattr(&client.root()).await.unwrap();
        let client = v2::Client::connect(&reactor, &counters, &of("/fixed")).await.unwrap();
        rofs(client.mkdir(&client.root(), b"new", 0o700).await.unwrap_err());
    });
}

#[test]
fn nobody_listens() {
    // Bound and not listening: nobody else gets the port meanwhile.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    run(async |reactor, counters| {
        let connect = Connect { timeout: Duration::from_secs(60), ..at(address) };
        let refused = v3::Client::connect(&reactor, &counters, &connect).await.unwrap_err();
        let ConnectError::Unreachable { address: of, error } = refused else { panic!("{refused}") };
        assert_eq!((of, error.raw_os_error()), (address, Some(libc::ECONNREFUSED)));
        let nobody = Connect { addresses: Vec::new(), ..connect };
        let refused = v3::Client::connect(&reactor, &counters, &nobody).await.unwrap_err();
        assert!(matches!(refused, ConnectError::NoAddress));
    });
}

#[test]
fn a_jukebox_of_every_procedure() {
    let rules = ["* error=NFS3ERR_JUKEBOX p=0.4"];
    let server = server(&rules);
    run(async |reactor, counters| {
        let client = v3::Client::connect(&reactor, &counters, &to(&server)).await.unwrap();
        let models = work(&client, 1, 4, 100).await;
        check(&client, &models).await;
        assert!(counters.snapshot().event(Event::Delay) > 100);
    });
}

/// Losses at random: TCP and UDP, versions 2 and 3. Everything is as it must be, looked at by a client that loses nothing.
fn lossy<P: Protocol>(
    rules: &[&str],
    seed: u64,
    transport: Transport,
    connect: impl AsyncFn(&benchmaster_nfs_client::reactor::Reactor, &Rc<Counters>, &Connect) -> P,
) {
    let server = server_with(rules, |config| config.seed = seed);
    run(async |reactor, counters| {
        let mut wanted = Connect { transport, ..to(&server) };
        if transport == Transport::Tcp {
            wanted.connections = 2;
        }
        let client = connect(&reactor, &counters, &wanted).await;
        let models = work(&client, seed, 6, 60).await;
        let counted = counters.snapshot();
        let events = [Event::Retransmission, Event::Resent].map(|event| counted.event(event));
        assert!(events.iter().sum::<u64>() > 10, "nothing was lost: {counted:?}");
        // The server remembers what it answered, and nothing has to be guessed.
        assert_eq!(counted.event(Event::ReplayAccepted), 0);
        let transmissions: u64 = counted.ops().map(|(_, op)| op.transmissions - op.ops).sum();
        assert_eq!(transmissions, events.iter().sum::<u64>());
        check(&client, &models).await;
        client.unmount().await.unwrap();
    });
}

#[test]
fn lost_replies_repeat_nothing() {
    for seed in 0..3 {
        let rules = ["* drop-reply p=0.1", "CALL drop-reply p=0.2"];
        lossy(&rules, seed, Transport::Tcp, async |reactor, counters, connect| {
            v3::Client::connect(reactor, counters, connect).await.unwrap()
        });
        lossy(&rules, seed, Transport::Udp, async |reactor, counters, connect| {
            v3::Client::connect(reactor, counters, connect).await.unwrap()
        });
        lossy(&rules, seed, Transport::Udp, async |reactor, counters, connect| {
            v2::Client::connect(reactor, counters, connect).await.unwrap()
        });
    }
}

#[test]
fn broken_connections_repeat_nothing() {
    for seed in 0..3 {
        let rules = ["* disconnect p=0.05", "* drop-reply p=0.05", "* delay=1ms p=0.2"];
        lossy(&rules, seed, Transport::Tcp, async |reactor, counters, connect| {
            v3::Client::connect(reactor, counters, connect).await.unwrap()
        });
        lossy(&rules, seed, Transport::Tcp, async |reactor, counters, connect| {
            v2::Client::connect(reactor, counters, connect).await.unwrap()
        });
    }
}

fn plan() -> impl Strategy<Value = String> {
    const OPERATIONS: &[&str] = &[
        "*", "CREATE", "WRITE", "MKDIR", "SYMLINK", "RENAME", "REMOVE", "RMDIR", "LOOKUP", "SETATTR",
        "READDIR", "COMMIT", "CALL",
    ];
    const ACTIONS: &[&str] =
        &["drop-reply", "disconnect", "delay=2ms", "error=NFS3ERR_JUKEBOX", "delay=1ms drop-reply"];
    (select(OPERATIONS), select(ACTIONS), 1u32..30)
        .prop_map(|(operation, action, percent)| format!("{operation} {action} p=0.{percent:02}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Whatever is lost, late or put off: every operation is done once, and the files are as they must be.
    #[test]
    fn any_plan_of_losses_ends_as_it_must(plans in vec(plan(), 1..4), seed in 0u64..1000) {
        let rules: Vec<&str> = plans.iter().map(String::as_str).collect();
        let server = server_with(&rules, |config| config.seed = seed);
        run(async |reactor, counters| {
            let connect = Connect { connections: 1 + seed as u32 % 3, ..to(&server) };
            let client = v3::Client::connect(&reactor, &counters, &connect).await.unwrap();
            let models = work(&client, seed, 4, 40).await;
            check(&client, &models).await;
            assert_eq!(counters.snapshot().event(Event::ReplayAccepted), 0);
            client.unmount().await.unwrap();
            assert_eq!(counters.outstanding(), 0);
        });
    }
}

#[test]
fn exclusive_creation_has_one_winner_when_replies_are_lost() {
    let server = server(&["CREATE drop-reply p=0.4", "SETATTR disconnect p=0.2"]);
    run(async |reactor, counters| {
        let clients = [
            v3::Client::connect(&reactor, &counters, &to(&server)).await.unwrap(),
            v3::Client::connect(&reactor, &counters, &to(&server)).await.unwrap(),
        ];
        for number in 0..30 {
            let name = format!("file {number}").into_bytes();
            let how = OpenHow { create: Create::Exclusive, ..HOW };
            let tries = (0..6).map(|n| {
                let (client, name) = (&clients[n % 2], &name);
                async move { client.open(&client.root(), name, &how).await }
            });
            let tried = all(tries).await;
            let won = tried.iter().filter(|tried| tried.is_ok()).count();
            assert_eq!(won, 1, "{tried:?}");
            let lost = tried.iter().filter_map(|tried| tried.as_ref().err());
            assert!(lost.clone().all(NfsError::is_present), "{tried:?}");
            let (handle, _) = clients[0].lookup(&clients[0].root(), &name).await.unwrap();
            assert_eq!(clients[0].getattr(&handle).await.unwrap().mode, 0o600);
        }
        let counted = counters.snapshot().op(ops::v3::CREATE);
        assert!(counted.transmissions > counted.ops && counted.timeouts == 0, "{counted:?}");
    });
}

/// A counter in a file, incremented under a lock by owners of several clients: none is lost.
async fn count_under_locks<P: Protocol>(clients: &[P], owners: u64, rounds: u64) {
    let root = clients[0].root();
    let file = clients[0].open(&root, b"counter", &HOW).await.unwrap().file;
    clients[0].write(&file, &0u64.to_be_bytes(), 0, Stability::File).await.unwrap();
    let workers = (0..owners * clients.len() as u64).map(|number| {
        let client = &clients[number as usize % clients.len()];
        async move {
            let file = client.open(&root, b"counter", &HOW).await.unwrap().file;
            for _ in 0..rounds {
                client.lock(&file, number, LockKind::Write, ALL, true).await.unwrap();
                let mut counter = [0; 8];
                client.read(&file, &mut counter, 0).await.unwrap();
                let next = u64::from_be_bytes(counter) + 1;
                client.write(&file, &next.to_be_bytes(), 0, Stability::File).await.unwrap();
                client.unlock(&file, number, ALL).await.unwrap();
            }
        }
    });
    all(workers).await;
    let mut counter = [0; 8];
    clients[0].read(&file, &mut counter, 0).await.unwrap();
    assert_eq!(u64::from_be_bytes(counter), owners * clients.len() as u64 * rounds);
}

#[test]
fn locks_of_several_clients_exclude_each_other_when_replies_are_lost() {
    // MOUNT and the lock manager too.
    let server = server(&["CALL drop-reply p=0.05", "* disconnect p=0.01"]);
    run(async |reactor, counters| {
        let named = |number: u32| Connect { identity: format!("client-{number}"), ..to(&server) };
        let clients = all((0..2).map(|number| {
            let (reactor, counters, connect) = (&reactor, &counters, named(number));
            async move { v3::Client::connect(reactor, counters, &connect).await.unwrap() }
        }));
        count_under_locks(&clients.await, 3, 10).await;
        assert!(counters.snapshot().event(Event::LockPolled) > 0);
        assert!(
            counters.snapshot().op(ops::nlm::LOCK).transmissions > counters.snapshot().op(ops::nlm::LOCK).ops
        );
        assert_eq!(counters.snapshot().event(Event::StateLost), 0);
        let clients = all((2..4).map(|number| {
            let (reactor, counters, connect) = (&reactor, &counters, named(number));
            async move { v2::Client::connect(reactor, counters, &connect).await.unwrap() }
        }));
        count_under_locks(&clients.await, 2, 5).await;
    });
}

#[test]
fn who_is_in_the_way_of_a_lock() {
    let server = server(&[]);
    run(async |reactor, counters| {
        let named = |name: &str| Connect { identity: name.to_owned(), ..to(&server) };
        let one = v3::Client::connect(&reactor, &counters, &named("one")).await.unwrap();
        let two = v2::Client::connect(&reactor, &counters, &named("two")).await.unwrap();
        let file = one.open(&one.root(), b"file", &HOW).await.unwrap().file;
        let same = two.open(&two.root(), b"file", &HOW).await.unwrap().file;
        let range = Range { offset: 10, length: 20 };
        one.lock(&file, 3, LockKind::Write, range, false).await.unwrap();
        let holder = two.test_lock(&same, 4, LockKind::Read, ALL).await.unwrap().unwrap();
        assert_eq!((holder.kind, holder.svid, holder.range), (LockKind::Write, 3, range));
        let free = Range { offset: 30, length: 0 };
        assert_eq!(two.test_lock(&same, 4, LockKind::Write, free).await.unwrap(), None);
        two.lock(&same, 4, LockKind::Read, free, false).await.unwrap();
        let holder = one.test_lock(&file, 3, LockKind::Write, ALL).await.unwrap().unwrap();
        assert_eq!((holder.kind, holder.range), (LockKind::Read, free));
        assert_eq!(one.test_lock(&file, 3, LockKind::Read, ALL).await.unwrap(), None);
        // Unmounting gives locks back, and those of others stay.
        let four = v2::Client::connect(&reactor, &counters, &named("four")).await.unwrap();
        let before = Range { offset: 0, length: 5 };
        let again = four.open(&four.root(), b"file", &HOW).await.unwrap().file;
        four.lock(&again, 9, LockKind::Write, before, false).await.unwrap();
        assert!(one.test_lock(&file, 3, LockKind::Write, before).await.unwrap().is_some());
        four.unmount().await.unwrap();
        assert_eq!(one.test_lock(&file, 3, LockKind::Write, before).await.unwrap(), None);
        assert!(two.test_lock(&same, 4, LockKind::Read, ALL).await.unwrap().is_some());
        // A lock that is not given back in time.
        let pause = Duration::from_millis(2);
        let impatient = DelayPolicy { initial: pause, longest: pause, give_up: 10 * pause };
        let connect = Connect { lock_delay: impatient, ..named("three") };
        let three = v3::Client::connect(&reactor, &counters, &connect).await.unwrap();
        let waited = three.lock(&file, 1, LockKind::Write, ALL, true).await;
        assert_eq!(waited, Err(NfsError::TriedTooLong));
    });
}

/// A server at a port of its own whose files survive a restart.
fn keeping(listen: SocketAddr, state: &std::path::Path, rules: &[&str]) -> Server {
    let config = ServerConfig {
        listen,
        threads: 2,
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        state: Some(state.to_owned()),
        // For as long after a restart locks are given for reclaims only.
        lease: Duration::from_secs(5),
        ..ServerConfig::default()
    };
    Server::start(config).unwrap()
}

#[test]
fn a_restart_between_a_change_and_its_reply_is_seen_through() {
    let files = tempfile::tempdir().unwrap();
    let state = files.path().join("state");
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // What is carried out has no answer.
    let rules = [
        "MKDIR drop-reply",
        "RENAME drop-reply",
        "LINK drop-reply",
        "SYMLINK drop-reply",
        "CREATE drop-reply",
        "REMOVE drop-reply",
    ];
    let server = keeping(free, &state, &[]);
    let address = server.address();
    run(async |reactor, counters| {
        let connect = Connect { timeout: Duration::from_secs(100), ..at(address) };
        let client = v3::Client::connect(&reactor, &counters, &connect).await.unwrap();
        let root = client.root();
        client.mkdir(&root, b"old", 0o700).await.unwrap();
        let file = client.open(&root, b"file", &HOW).await.unwrap().file;
        let handle = v3::Client::handle(&file);
        // Something to remove, and locks to reclaim.
        client.open(&root, b"gone", &HOW).await.unwrap();
        client.lock(&file, 1, LockKind::Write, ALL, false).await.unwrap();
        server.stop().unwrap();

        let dropping = keeping(address, &state, &rules);
        // Tells which instance of the server this is.
        client.write(&file, b"data", 0, Stability::File).await.unwrap();
        let kept = state.clone();
        let restart = std::thread::spawn(move || {
            // Every operation was carried out once, as the next server's files show.
            while dropping.report().injected.iter().any(|(_, struck)| *struck == 0) {
                std::thread::sleep(Duration::from_millis(5));
            }
            dropping.stop().unwrap();
            keeping(address, &kept, &[])
        });
        let exclusive = OpenHow { create: Create::Exclusive, ..HOW };
        let (root, client) = (&root, &client);
        let changes = (0..6).map(|number| async move {
            match number {
                0 => client.mkdir(root, b"new", 0o700).await.map(|_| ()),
                1 => client.rename((root, b"old"), (root, b"renamed")).await,
                2 => client.link(&handle, root, b"link").await,
                3 => client.symlink(root, b"symlink", b"target").await,
                4 => client.open(root, b"exclusive", &exclusive).await.map(|_| ()),
                _ => client.remove(root, b"gone").await,
            }
        });
        let results = all(changes).await;
        let _server = restart.join().unwrap();
        assert_eq!(results[..5], [Ok(()); 5]);
        // Of what is gone nobody can say who removed it.
        assert!(matches!(results[5], Err(NfsError::StateLost(_))), "{results:?}");
        assert_eq!(counters.snapshot().event(Event::ReplayAccepted), 4);

        let mut names = Vec::new();
        client.readdir(root, false, &mut |entry| names.push(entry.name.to_vec())).await.unwrap();
        names.sort();
        let expected: [&[u8]; 6] = [b"exclusive", b"file", b"link", b"new", b"renamed", b"symlink"];
        assert_eq!(names, expected);
        assert_eq!(client.getattr(&handle).await.unwrap().links, 2);
        // The lock is held again: by us, and so by nobody else.
        let other = Connect { identity: "other".to_owned(), ..at(address) };
        let other = v3::Client::connect(&reactor, &counters, &other).await.unwrap();
        while other.test_lock(&file, 1, LockKind::Write, ALL).await.unwrap().is_none() {
            reactor.sleep(Duration::from_millis(5)).await;
        }
        client.unlock(&file, 1, ALL).await.unwrap();
        other.lock(&file, 1, LockKind::Write, ALL, false).await.unwrap();
    });
}

#[test]
fn an_absent_server_ends_the_wait() {
    let server = server(&[]);
    run(async |reactor, counters| {
        let connect = Connect { retransmissions: 2, ..to(&server) };
        let client = v3::Client::connect(&reactor, &counters, &connect).await.unwrap();
        server.stop().unwrap();
        let error = client.setattr(&client.root(), None, &SetAttributes::default()).await.unwrap_err();
        assert_eq!(error.errno(), libc::ETIMEDOUT, "{error}");
        // UMNT cannot be told; it ends nevertheless.
        client.unmount().await.unwrap();
    });
}
