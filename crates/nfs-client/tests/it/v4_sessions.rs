//! What a server says with SEQUENCE, and random plans of injection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use benchmaster_nfs_client::counters::Event;
use benchmaster_nfs_client::delay::DelayPolicy;
use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::types::{Create, OpenHow, Stability};
use benchmaster_nfs_client::v4::{Client, Connect};
use benchmaster_nfs_proto::v4::{
    Nfsstat4, Opnum, SEQ_STATUS_ADMIN_STATE_REVOKED, SEQ_STATUS_BACKCHANNEL_FAULT, SEQ_STATUS_CB_PATH_DOWN,
};

use crate::support::embedded::{run, server, server_with};
use crate::support::futures::all;
use crate::support::model::{check, work};

const HOW: OpenHow =
    OpenHow { read: true, write: true, create: Create::IfAbsent, truncate: false, mode: 0o600 };

fn to(address: SocketAddr, minor: u32) -> Connect {
    let pause = Duration::from_millis(1);
    Connect {
        timeo: Duration::from_millis(300),
        retrans: 60,
        delay: DelayPolicy { initial: pause, longest: 20 * pause, give_up: Duration::from_secs(60) },
        ..Connect::new(address, "/export", minor, "a test", [minor as u8 + 1; 8])
    }
}

/// What replies are changed to.
#[derive(Debug, Default)]
struct Wishes {
    /// `sr_target_highest_slotid`, plus one.
    target: AtomicU32,
    /// `sr_status_flags`, once.
    flags: AtomicU32,
    /// A status for the SEQUENCE of so many requests, which the server does not see.
    status: AtomicU32,
    refused: AtomicU32,
    /// The reply to the next request with this operation is lost with its connection, and the session with it.
    lose: AtomicU32,
}

/// Word of a reply at which the results of SEQUENCE begin: RPC header, status, tag, count.
const RESULTS: usize = 9;

fn word(message: &[u8], at: usize) -> u32 {
    let bytes = message.get(at * 4..at * 4 + 4).unwrap_or(&[0; 4]);
    u32::from_be_bytes(bytes.try_into().unwrap())
}

fn set(message: &mut [u8], at: usize, value: u32) {
    if let Some(place) = message.get_mut(at * 4..at * 4 + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}

fn receive(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark)?;
    let mut message = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
    stream.read_exact(&mut message)?;
    Ok(message)
}

fn send(stream: &mut TcpStream, message: &[u8]) -> std::io::Result<()> {
    let mut record = (1 << 31 | message.len() as u32).to_be_bytes().to_vec();
    record.extend_from_slice(message);
    stream.write_all(&record)
}

/// Whether a request contains this operation as a word (arguments of other operations do not have it in these tests).
fn contains(message: &[u8], op: Opnum) -> bool {
    (0..message.len() / 4).skip(16).any(|at| word(message, at) == op.0)
}

/// Stands between client and server and changes what SEQUENCE says, one request at a time for each connection.
fn between(server: SocketAddr, wishes: Arc<Wishes>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(client), Ok(server)) = (stream, TcpStream::connect(server)) else { return };
            let wishes = wishes.clone();
            std::thread::spawn(move || {
                let (mut back, mut up) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let replies = wishes.clone();
                std::thread::spawn(move || {
                    let (mut server, mut client) = (server, client);
                    let _ = answers(&mut server, &mut client, &replies);
                    let _ = client.shutdown(std::net::Shutdown::Both);
                });
                let _ = requests(&mut back, &mut up, &wishes);
                let _ = up.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    address
}

fn requests(client: &mut TcpStream, server: &mut TcpStream, wishes: &Wishes) -> std::io::Result<()> {
    loop {
        let message = receive(client)?;
        let is_call = word(&message, 1) == 0;
        let refuse = |client: &mut TcpStream, status: u32| {
            let refusal = [word(&message, 0), 1, 0, 0, 0, 0, status, 0, 1, Opnum::SEQUENCE.0, status];
            let bytes: Vec<u8> = refusal.iter().flat_map(|word| word.to_be_bytes()).collect();
            send(client, &bytes)
        };
        let in_session = is_call && contains(&message, Opnum::SEQUENCE);
        let status = wishes.status.load(Ordering::Relaxed);
        if status != 0 && in_session && contains(&message, Opnum::GETATTR) {
            wishes.status.store(0, Ordering::Relaxed);
            wishes.refused.fetch_add(1, Ordering::Relaxed);
            refuse(client, status)?;
            continue;
        }
        let lose = wishes.lose.load(Ordering::Relaxed);
        if is_call && lose != 0 && contains(&message, Opnum(lose)) {
            // Executed; and when it comes again the session is another one.
            wishes.lose.store(0, Ordering::Relaxed);
            wishes.refused.store(u32::MAX, Ordering::Relaxed);
            client.shutdown(std::net::Shutdown::Both)?;
            return send(server, &message);
        }
        if in_session && lose == 0 && wishes.refused.load(Ordering::Relaxed) == u32::MAX {
            wishes.refused.store(0, Ordering::Relaxed);
            refuse(client, Nfsstat4::BADSESSION.0)?;
            continue;
        }
        send(server, &message)?;
    }
}

fn answers(server: &mut TcpStream, client: &mut TcpStream, wishes: &Wishes) -> std::io::Result<()> {
    loop {
        let mut message = receive(server)?;
        let of_sequence = word(&message, 1) == 1
            && word(&message, RESULTS) == Opnum::SEQUENCE.0
            && word(&message, RESULTS + 1) == 0;
        if of_sequence {
            let target = wishes.target.load(Ordering::Relaxed);
            if target > 0 {
                set(&mut message, RESULTS + 9, target - 1);
            }
            let flags = wishes.flags.swap(0, Ordering::Relaxed);
            if flags > 0 {
                set(&mut message, RESULTS + 10, flags);
            }
        }
        send(client, &message)?;
    }
}

#[test]
fn the_server_lowers_the_number_of_slots_and_raises_it_again() {
    let server = server(&["GETATTR delay=2ms"]);
    for minor in [1, 2] {
        let wishes = Arc::new(Wishes::default());
        let address = between(server.address(), wishes.clone());
        run(async |reactor, counters| {
            let client = Client::connect(&reactor, &counters, &to(address, minor)).await.unwrap();
            let root = client.root();
            let many = || async { drop(all((0..50).map(|_| client.getattr(&root))).await) };
            many().await;
            assert_eq!(client.slots(), (64, 64));
            assert_eq!(counters.snapshot().event(Event::SlotWait), 0);
            wishes.target.store(3, Ordering::Relaxed);
            client.getattr(&root).await.unwrap();
            assert_eq!(client.slots(), (64, 3));
            many().await;
            let counted = counters.snapshot();
            assert_eq!(counted.event(Event::SlotsLowered), 1, "{counted:?}");
            assert_eq!(counted.event(Event::SlotWait), 47, "{counted:?}");
            wishes.target.store(0, Ordering::Relaxed);
            client.getattr(&root).await.unwrap();
            assert_eq!(client.slots(), (64, 64));
            many().await;
            let counted = counters.snapshot();
            assert_eq!((counted.event(Event::SlotWait), counted.op(ops::v4::GETATTR).errors), (47, 0));
            client.unmount().await.unwrap();
        });
    }
}

#[test]
fn whatever_a_sequence_fails_with_the_operation_is_done() {
    let server = server(&[]);
    for (status, event) in [
        (Nfsstat4::BADSESSION, Some(Event::SessionRecovered)),
        (Nfsstat4::DEADSESSION, Some(Event::SessionRecovered)),
        (Nfsstat4::BAD_HIGH_SLOT, Some(Event::SessionRecovered)),
        (Nfsstat4::CONN_NOT_BOUND_TO_SESSION, Some(Event::ConnectionBound)),
        (Nfsstat4::DELAY, Some(Event::Delay)),
        (Nfsstat4::SEQ_MISORDERED, None),
        (Nfsstat4::BADSLOT, Some(Event::SessionRecovered)),
    ] {
        let wishes = Arc::new(Wishes::default());
        let address = between(server.address(), wishes.clone());
        run(async |reactor, counters| {
            let connect = Connect { identity: status.to_string().into(), ..to(address, 1) };
            let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
            let file = client.open(&client.root(), b"file", &HOW).await.unwrap().file;
            wishes.status.store(status.0, Ordering::Relaxed);
            client.getattr(&file.handle()).await.unwrap();
            assert_eq!(wishes.refused.load(Ordering::Relaxed), 1, "{status}");
            client.write(&file, b"text", 0, Stability::File).await.unwrap();
            client.close(file).await.unwrap();
            let counted = counters.snapshot();
            assert!(event.is_none_or(|event| counted.event(event) > 0), "{status}: {counted:?}");
            assert_eq!(counted.event(Event::StateLost), 0);
            // The server still has a session that it is said not to have.
            let busy = status == Nfsstat4::BADSESSION;
            let expected = if busy { Err(NfsError::V4(Nfsstat4::CLIENTID_BUSY)) } else { Ok(()) };
            assert_eq!(client.unmount().await, expected, "{status}");
        });
        assert_eq!(server.report().state.files, 0);
    }
}

#[test]
fn flags_of_a_sequence_are_acted_on() {
    let server = server(&[]);
    for (flags, op) in [
        (SEQ_STATUS_CB_PATH_DOWN, ops::v4::BIND_CONN_TO_SESSION),
        (SEQ_STATUS_ADMIN_STATE_REVOKED, ops::v4::TEST_STATEID),
        (SEQ_STATUS_BACKCHANNEL_FAULT, ops::v4::CREATE_SESSION),
    ] {
        let wishes = Arc::new(Wishes::default());
        let address = between(server.address(), wishes.clone());
        run(async |reactor, counters| {
            let client = Client::connect(&reactor, &counters, &to(address, 2)).await.unwrap();
            let file = client.open(&client.root(), b"file", &HOW).await.unwrap().file;
            let before = counters.snapshot();
            wishes.flags.store(flags, Ordering::Relaxed);
            for _ in 0..10 {
                client.write(&file, b"text", 0, Stability::File).await.unwrap();
            }
            client.close(file).await.unwrap();
            assert_eq!(counters.snapshot().since(&before).op(op).ops, 1, "{flags:#x}");
            client.unmount().await.unwrap();
        });
    }
}

#[test]
fn a_server_that_never_knows_its_sessions_is_given_up() {
    for minor in [1, 2] {
        let server = server(&["SEQUENCE error=NFS4ERR_BADSESSION"]);
        run(async |reactor, counters| {
            let client = Client::connect(&reactor, &counters, &to(server.address(), minor)).await;
            let error = client.unwrap_err().to_string();
            assert!(error.contains("BADSESSION"), "{error}");
        });
    }
    // After a restart in the middle it goes on.
    let server = server(&["SEQUENCE error=NFS4ERR_BADSESSION count=3"]);
    run(async |reactor, counters| {
        let client = Client::connect(&reactor, &counters, &to(server.address(), 1)).await.unwrap();
        // This server does know the sessions that it disowned.
        assert_eq!(client.unmount().await, Err(NfsError::V4(Nfsstat4::CLIENTID_BUSY)));
    });
}

#[test]
fn a_change_under_way_when_the_session_is_lost_is_not_repeated() {
    let server = server(&[]);
    for (op, repeatable) in
        [(Opnum::REMOVE, false), (Opnum::RENAME, false), (Opnum::CREATE, false), (Opnum::SETATTR, true)]
    {
        let wishes = Arc::new(Wishes::default());
        let address = between(server.address(), wishes.clone());
        run(async |reactor, counters| {
            let client = Client::connect(&reactor, &counters, &to(address, 1)).await.unwrap();
            let root = client.root();
            let file = client.open(&root, b"file", &HOW).await.unwrap().file;
            let handle = file.handle();
            client.close(file).await.unwrap();
            wishes.lose.store(op.0, Ordering::Relaxed);
            let set =
                benchmaster_nfs_client::types::SetAttributes { mode: Some(0o640), ..Default::default() };
            let result = match op {
                Opnum::REMOVE => client.remove(&root, b"file").await,
                Opnum::RENAME => client.rename((&root, b"file"), (&root, b"other")).await,
                Opnum::CREATE => client.mkdir(&root, b"directory", 0o755).await.map(drop),
                _ => client.setattr(&handle, None, &set).await,
            };
            if repeatable {
                assert_eq!(result, Ok(()))
            } else {
                assert!(matches!(result, Err(NfsError::StateLost(_))), "{op}: {result:?}")
            }
            let counted = counters.snapshot();
            assert_eq!(counted.event(Event::SessionRecovered), 1, "{counted:?}");
            for name in [&b"file"[..], b"other"] {
                let _ = client.remove(&root, name).await;
            }
            let _ = client.rmdir(&root, b"directory").await;
            assert_eq!(client.unmount().await, Err(NfsError::V4(Nfsstat4::CLIENTID_BUSY)));
        });
    }
}

#[test]
fn random_plans_of_injection_leave_what_the_model_says() {
    const RULES: [&str; 10] = [
        "* drop-reply p=0.02",
        "* disconnect p=0.02",
        "* error=NFS4ERR_DELAY p=0.03",
        "OPEN drop-reply p=0.1",
        "OPEN error=NFS4ERR_GRACE p=0.1",
        "WRITE disconnect p=0.1",
        "CLOSE drop-reply p=0.1",
        "SEQUENCE error=NFS4ERR_DELAY p=0.05",
        "READ delay=3ms p=0.2",
        "* delay=1ms p=0.1",
    ];
    for seed in 0..9u64 {
        let minor = (seed % 3) as u32;
        let chosen: Vec<&str> =
            (0..RULES.len()).filter(|n| (seed * 7919 + 13) >> n & 1 == 1).map(|n| RULES[n]).collect();
        let server = server_with(&chosen, |config| config.seed = seed);
        run(async |reactor, counters| {
            let connect =
                Connect { nconnect: 1 + (seed % 2) as u32, slots: 5, ..to(server.address(), minor) };
            let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
            let models = work(&client, seed, 6, 40).await;
            check(&client, &models).await;
            client.unmount().await.unwrap();
        });
        assert_eq!(server.report().state.files, 0, "{chosen:?}");
    }
}
