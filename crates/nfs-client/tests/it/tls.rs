//! TLS between the client and the embedded server, in every version, and those who try to prevent or change it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use benchmaster_nfs_client::counters::{Event, Snapshot};
use benchmaster_nfs_client::mount::{Mount, MountError, OpenFlags};
use benchmaster_nfs_client::options::{MountOptions, OptionError};
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::rpc::{Call, Rpc, RpcError, RpcOptions, RpcTls, Transport};
use benchmaster_nfs_client::types::{LockKind, Range};
use benchmaster_nfs_client::{counters::Counters, ops};
use benchmaster_nfs_server::Server;
use benchmaster_rpc_tls::{Authority, Lifetime, Maker, Refusal, ServerFiles, TlsError};

use crate::support::embedded::{run, server_with};

const CREATE: OpenFlags = OpenFlags { read: true, ..OpenFlags::CREATE };
const VERSIONS: [&str; 5] = ["2", "3", "4.0", "4.1", "4.2"];

/// Certificates in a directory of their own.
struct Files {
    directory: tempfile::TempDir,
}

impl Files {
    fn new() -> Self {
        Self::made(&["127.0.0.1", "localhost"], Self::days(-1, 1))
    }

    fn days(from: i64, until: i64) -> Lifetime {
        let now = jiff::Timestamp::now();
        let day = |n: i64| now + jiff::SignedDuration::from_hours(24 * n);
        Lifetime { from: day(from), until: day(until) }
    }

    fn made(names: &[&str], lifetime: Lifetime) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Authority::write_set(directory.path(), names, lifetime).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn of_server(&self, mutual: bool) -> ServerFiles {
        let ca = mutual.then(|| self.path("ca.pem"));
        ServerFiles { cert: self.path("server.pem"), key: self.path("server.key"), ca }
    }

    /// Options of a URL.
    fn tls(&self) -> String {
        format!("&xprtsec=tls&tls_ca={}", self.path("ca.pem").display())
    }

    fn mtls(&self) -> String {
        let [ca, cert, key] = ["ca.pem", "client.pem", "client.key"].map(|name| self.path(name));
        let (ca, cert, key) = (ca.display(), cert.display(), key.display());
        format!("&xprtsec=mtls&tls_ca={ca}&tls_cert={cert}&tls_key={key}")
    }

    fn serve(&self, mutual: bool, require: bool) -> Server {
        server_with(&[], |config| {
            (config.tls, config.require_tls) = (Some(self.of_server(mutual)), require);
        })
    }
}

fn options(address: SocketAddr, version: &str, more: &str) -> MountOptions {
    let (host, port) = (address.ip(), address.port());
    format!("nfs://{host}:{port}/export?version={version}{more}").parse().unwrap()
}

async fn mount(reactor: &Reactor, address: SocketAddr, version: &str, more: &str) -> Mount {
    let options = options(address, version, more);
    Mount::connect(reactor, &options, "test").await.unwrap_or_else(|error| panic!("{options}: {error}"))
}

fn refused(address: SocketAddr, version: &str, more: &str) -> TlsError {
    run(async |reactor, _| match Mount::connect(&reactor, &options(address, version, more), "test").await {
        Err(MountError::Tls { error, .. }) => error,
        other => panic!("{other:?}"),
    })
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 9) as u8).collect()
}

/// Writes and reads files of all sizes, lists, locks, and removes; returns what was counted.
pub(super) async fn work(mount: &Mount) -> Snapshot {
    mount.create_dirs(b"d").await.unwrap();
    for len in [0, 1, 511, 20_000, 100_001, 3 << 20] {
        let data = pattern(len);
        let file = mount.open(b"d/f", &CREATE).await.unwrap();
        let mut at = 0;
        while at < len {
            at += mount.write(&file, &data[at..], at as u64).await.unwrap();
        }
        mount.fsync(&file).await.unwrap();
        let (mut read, mut at) = (vec![0; len], 0);
        while at < len {
            at += mount.read(&file, &mut read[at..], at as u64).await.unwrap();
        }
        assert!(read == data, "{len} bytes");
        mount.close(file).await.unwrap();
        mount.remove(b"d/f").await.unwrap();
    }
    mount.counters().snapshot()
}

#[test]
fn every_version_works_over_tls_and_mutual_tls() {
    let files = Files::new();
    for mutual in [false, true] {
        let server = files.serve(mutual, true);
        for version in VERSIONS {
            for cache in ["", "&cache=linux"] {
                if version == "2" && !cache.is_empty() {
                    continue;
                }
                let more = if mutual { files.mtls() } else { files.tls() };
                let counted = run(async |reactor, _| {
                    let mount = mount(&reactor, server.address(), version, &format!("{more}{cache}")).await;
                    let counted = work(&mount).await;
                    let facts = mount.counters().tls().unwrap();
                    assert!(facts.suite.starts_with("TLS13_") && facts.peer_certified && !facts.resumed);
                    mount.unmount().await.unwrap();
                    counted
                });
                assert_eq!(counted.event(Event::TlsHandshake), 1, "version {version}");
                assert_eq!(counted.event(Event::TlsRefused) + counted.event(Event::TlsBroken), 0);
                let data = 3 << 20;
                assert!(counted.event(Event::TlsBytesSent) > data);
                let read = counted.event(Event::TlsBytesReceived) > data;
                assert!(read || !cache.is_empty(), "{counted:?}");
                assert!(counted.event(Event::TlsRecordsSent) >= data / (16 << 10));
            }
        }
        let transport = server.report().transport;
        assert_eq!((transport.tls_handshakes, transport.tls_failed, transport.bad_auth), (9, 0, 0));
    }
}

#[test]
fn many_calls_at_once_over_many_connections() {
    let files = Files::new();
    let server = files.serve(false, true);
    let more = format!("{}&nconnect=4&cache=off", files.tls());
    run(async |reactor, _| {
        let mount = &mount(&reactor, server.address(), "4.1", &more).await;
        let tasks = (0..64usize).map(|n| {
            Box::pin(async move {
                let name = format!("f{n}");
                let data = pattern(1000 + n * 4099);
                let file = mount.open(name.as_bytes(), &CREATE).await.unwrap();
                for _ in 0..3 {
                    assert_eq!(mount.write(&file, &data, 0).await, Ok(data.len()));
                    let mut read = vec![0; data.len()];
                    assert_eq!(mount.read(&file, &mut read, 0).await, Ok(data.len()));
                    assert!(read == data);
                }
                mount.close(file).await.unwrap();
            })
        });
        crate::support::futures::all(tasks).await;
        let counted = mount.counters().snapshot();
        assert_eq!((counted.event(Event::Reconnect), counted.event(Event::TlsBroken)), (0, 0));
    });
    // Those of a mount share tickets: whoever connects after the first can resume.
    assert!(server.report().transport.tls_handshakes >= 4);
}

#[test]
fn who_does_not_fit_is_refused_and_told_why() {
    let (files, other) = (Files::new(), Files::new());
    for version in ["3", "4.0", "4.1"] {
        let server = files.serve(false, true);
        assert_eq!(refused(server.address(), version, &other.tls()), TlsError::Refused(Refusal::Issuer));
        let wrong_name = Files::made(&["server.example"], Files::days(-1, 1));
        let name = wrong_name.serve(false, true);
        let refusal = refused(name.address(), version, &wrong_name.tls());
        let (expected, presented) = ("127.0.0.1".into(), "server.example".into());
        assert_eq!(refusal, TlsError::Refused(Refusal::Name { expected, presented }));
        let expired = Files::made(&["127.0.0.1"], Files::days(-3, -1));
        let old = expired.serve(false, true);
        assert_eq!(refused(old.address(), version, &expired.tls()), TlsError::Refused(Refusal::Expired));
        let mutual = files.serve(true, true);
        let error = refused(mutual.address(), version, &files.tls());
        assert!(matches!(error, TlsError::Alert("CertificateRequired") | TlsError::Dropped), "{error}");
        // A client certificate of an authority that the server does not know.
        let mixed = format!(
            "&xprtsec=mtls&tls_ca={}&tls_cert={}&tls_key={}",
            files.path("ca.pem").display(),
            other.path("client.pem").display(),
            other.path("client.key").display()
        );
        let error = refused(mutual.address(), version, &mixed);
        assert!(matches!(error, TlsError::Alert("UnknownCA") | TlsError::Dropped), "{error}");
        // Counted once the client has been told.
        for _ in 0..200 {
            if mutual.report().transport.tls_failed >= 2 {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(mutual.report().transport.tls_failed, 2);
        // And an expired one.
        let lifetime = Files::days(-1, 1);
        let authority = Authority::new(lifetime).unwrap();
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("ca.pem"), authority.certificate()).unwrap();
        for (name, names, lifetime) in
            [("server", "127.0.0.1", lifetime), ("client", "client", Files::days(-9, -8))]
        {
            let pem = authority.issue(&Maker { common_name: name, names: &[names], lifetime }).unwrap();
            std::fs::write(at(&format!("{name}.pem")), pem.certificate).unwrap();
            std::fs::write(at(&format!("{name}.key")), pem.key).unwrap();
        }
        let set = Files { directory: place };
        let error = refused(set.serve(true, true).address(), version, &set.mtls());
        assert!(matches!(error, TlsError::Alert("CertificateExpired") | TlsError::Dropped), "{error}");
    }
    let error = run(async |reactor, _| {
        let server = files.serve(false, true);
        Mount::connect(&reactor, &options(server.address(), "4.1", &other.tls()), "test").await.unwrap_err()
    });
    let message = error.to_string();
    assert!(message.contains("cannot be reached over TLS") && message.contains("tls_ca=FILE"), "{message}");
}

#[test]
fn a_server_without_tls_gets_no_call_with_data() {
    let files = Files::new();
    let server = server_with(&[], |_| {});
    for version in VERSIONS {
        let error = refused(server.address(), version, &files.tls());
        assert_eq!(error, TlsError::NotOffered { answer: "it refuses AUTH_TLS" }, "version {version}");
    }
    let report = server.report();
    assert_eq!(report.operations.iter().map(|op| op.ops).sum::<u64>(), 0, "{:?}", report.operations);
}

#[test]
fn a_server_that_requires_tls_refuses_calls_in_the_clear() {
    let files = Files::new();
    let server = files.serve(false, true);
    for version in VERSIONS {
        let error = run(async |reactor, _| {
            Mount::connect(&reactor, &options(server.address(), version, ""), "test").await.unwrap_err()
        });
        let message = error.to_string();
        assert!(message.contains("TOOWEAK") && message.contains("add xprtsec=tls"), "{version}: {message}");
    }
    assert!(server.report().transport.bad_auth >= 5);
    // Without the requirement both are served.
    let server = files.serve(false, false);
    for more in [String::new(), files.tls()] {
        run(async |reactor, _| {
            let mount = mount(&reactor, server.address(), "4.1", &more).await;
            work(&mount).await;
            mount.unmount().await.unwrap();
        });
    }
}

#[test]
fn the_probe_is_allowed_once_and_only_as_null() {
    let files = Files::new();
    let server = files.serve(false, true);
    let reply_to = |calls: &[Vec<u8>]| {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&calls.concat()).unwrap();
        let mut reply = vec![0; 1000];
        let n = stream.read(&mut reply).unwrap();
        reply.truncate(n);
        reply
    };
    let probe = benchmaster_rpc_tls::probe(7, 100_003, 3);
    let reply = reply_to(std::slice::from_ref(&probe));
    assert_eq!(benchmaster_rpc_tls::answer(&reply[4..], 7), Ok(()));
    // What comes behind the probe in the clear is not looked at: the connection is closed.
    assert!(reply_to(&[probe.clone(), probe.clone()]).len() <= reply.len());
    let mut not_null = probe;
    not_null[27] = 1;
    let error = benchmaster_rpc_tls::answer(&reply_to(&[not_null])[4..], 7);
    assert_eq!(error, Err(TlsError::NotOffered { answer: "it refuses AUTH_TLS" }));
    assert_eq!(server.report().transport.bad_auth, 1);
    // Within a session, too.
    let (tls, reactor) =
        (options(server.address(), "3", &files.tls()).tls().unwrap().unwrap(), Reactor::new().unwrap());
    let rpc = rpc(server.address(), Some(tls));
    let counters = std::rc::Rc::new(Counters::new());
    let rpc = reactor.block_on(Rpc::connect(&reactor, &counters, rpc)).unwrap().unwrap();
    let call = Call::new(ops::v3::NULL, 100_003, 3, 0);
    let said = reactor.block_on(rpc.call(call, |_, _| {}, |_| Ok(()))).unwrap();
    assert_eq!(said, Ok(()));
}

fn rpc(address: SocketAddr, tls: Option<benchmaster_rpc_tls::ClientTls>) -> RpcOptions {
    RpcOptions {
        address,
        others: Vec::new(),
        transport: Transport::Tcp,
        nagle: false,
        connections: 1,
        timeout: Duration::from_secs(5),
        retransmissions: 1,
        resend_on_live_connection: true,
        max_message: 1 << 20,
        credential: Vec::new(),
        tls: tls.map(|tls| RpcTls { tls, program: 100_003, version: 3 }),
        gss: None,
    }
}

/// Someone between client and server, who changes what the client receives.
pub(super) struct Middle {
    pub(super) address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

/// What he makes of bytes of the server: connection, position in the stream, bytes.
type Change = Arc<dyn Fn(usize, usize, &mut [u8]) + Send + Sync>;

impl Middle {
    pub(super) fn new(
        server: SocketAddr,
        change: impl Fn(usize, usize, &mut [u8]) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (change, count): (Change, _) = (Arc::new(change), connections.clone());
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let number = count.fetch_add(1, Ordering::SeqCst);
                let Ok(server) = TcpStream::connect(server) else { return };
                let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let change = change.clone();
                thread::spawn(move || pass(&client, &forth, |_, _| {}));
                thread::spawn(move || pass(&server, &back, |at, bytes| change(number, at, bytes)));
            }
        });
        Self { address, connections }
    }
}

fn pass(mut from: &TcpStream, mut to: &TcpStream, change: impl Fn(usize, &mut [u8])) {
    let (mut buffer, mut at) = (vec![0; 64 << 10], 0);
    while let Ok(n @ 1..) = from.read(&mut buffer) {
        change(at, &mut buffer[..n]);
        at += n;
        if to.write_all(&buffer[..n]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn a_man_in_the_middle_who_strips_the_answer_gets_nothing() {
    let files = Files::new();
    let server = files.serve(false, false);
    // Record mark, xid, REPLY, MSG_ACCEPTED, verifier: flavour, length, STARTTLS.
    let middle = Middle::new(server.address(), |_, at, bytes| {
        if at == 0 {
            bytes[24..32].fill(b'x');
        }
    });
    let error = refused(middle.address, "4.1", &files.tls());
    assert_eq!(error, TlsError::NotOffered { answer: "its answer to the probe does not say STARTTLS" });
    let report = server.report();
    assert_eq!(report.operations.iter().map(|op| op.ops).sum::<u64>(), 0);
    assert_eq!(middle.connections.load(Ordering::SeqCst), 1, "it does not try in another way");
}

#[test]
fn a_changed_byte_ends_the_connection_and_the_session_is_resumed() {
    let files = Files::new();
    let server = files.serve(true, true);
    let armed = Arc::new(AtomicBool::new(false));
    let fires = armed.clone();
    let middle = Middle::new(server.address(), move |_, _, bytes| {
        if bytes.len() > 10_000 && fires.swap(false, Ordering::SeqCst) {
            bytes[5000] ^= 4;
        }
    });
    for version in ["3", "4.0", "4.1"] {
        run(async |reactor, _| {
            let mount = mount(&reactor, middle.address, version, &files.mtls()).await;
            let data = pattern(200_000);
            let file = mount.open(version.as_bytes(), &CREATE).await.unwrap();
            assert_eq!(mount.write(&file, &data, 0).await, Ok(data.len()));
            armed.store(true, Ordering::SeqCst);
            let mut read = vec![0; data.len()];
            assert_eq!(mount.read(&file, &mut read, 0).await, Ok(data.len()));
            assert!(read == data, "no changed byte reaches the caller");
            let counted = mount.counters().snapshot();
            let events = [Event::TlsBroken, Event::Reconnect, Event::TlsHandshake, Event::TlsResumed];
            assert_eq!(events.map(|event| counted.event(event)), [1, 1, 2, 1], "version {version}");
            assert!(mount.counters().tls().unwrap().resumed);
            mount.close(file).await.unwrap();
            mount.unmount().await.unwrap();
        });
    }
    assert_eq!(server.report().transport.tls_resumed, 3);
}

#[test]
fn a_server_that_loses_its_certificate_gets_no_more_calls() {
    let files = Files::new();
    let server = files.serve(false, false);
    let address = server.address();
    run(async |reactor, _| {
        let more = format!("{}&timeo=1s&retrans=1", files.tls());
        let mount = mount(&reactor, address, "3", &more).await;
        let file = mount.open(b"f", &CREATE).await.unwrap();
        server.stop().unwrap();
        drop(server);
        let plain = server_with(&[], |config| config.listen = address);
        let error = mount.write(&file, b"secret", 0).await.unwrap_err();
        assert_eq!(error, RpcError::Insecure.into());
        assert_eq!(error.errno(), libc::EACCES);
        assert!(mount.counters().snapshot().event(Event::TlsRefused) >= 1);
        assert_eq!(plain.report().operations.iter().map(|op| op.ops).sum::<u64>(), 0);
    });
}

#[test]
fn delegations_are_recalled_within_the_session() {
    let files = Files::new();
    let server = server_with(&[], |config| {
        (config.tls, config.require_tls) = (Some(files.of_server(true)), true);
        config.write_delegations = true;
    });
    let more = format!("{}&cache=linux", files.mtls());
    for (version, granted) in [("4.0", 0), ("4.1", 1), ("4.2", 1)] {
        run(async |reactor, _| {
            let holder = mount(&reactor, server.address(), version, &more).await;
            let name = version.as_bytes();
            let file = holder.open(name, &CREATE).await.unwrap();
            assert_eq!(holder.write(&file, b"of the holder", 0).await, Ok(13));
            let counted = holder.counters().snapshot();
            assert_eq!(counted.event(Event::DelegationGranted), granted, "version {version}");
            let options = options(server.address(), version, &more);
            let other = Mount::connect(&reactor, &options, "other").await.unwrap();
            let theirs = other.open(name, &OpenFlags::READ).await.unwrap();
            if granted == 1 {
                let mut read = [0; 13];
                assert_eq!(other.read(&theirs, &mut read, 0).await, Ok(13));
                assert_eq!(&read, b"of the holder");
            }
            let counted = holder.counters().snapshot();
            assert_eq!(counted.event(Event::DelegationRecalled), granted, "version {version}");
            other.close(theirs).await.unwrap();
            holder.close(file).await.unwrap();
            other.unmount().await.unwrap();
            holder.unmount().await.unwrap();
        });
    }
}

#[test]
fn locks_of_version_3_go_over_tls() {
    let files = Files::new();
    let server = files.serve(false, true);
    run(async |reactor, _| {
        let mount = mount(&reactor, server.address(), "3", &files.tls()).await;
        let file = mount.open(b"f", &CREATE).await.unwrap();
        let all = Range { offset: 0, length: 0 };
        mount.lock(&file, LockKind::Write, all, false).await.unwrap();
        mount.unlock(&file, all).await.unwrap();
        mount.close(file).await.unwrap();
        mount.unmount().await.unwrap();
    });
    assert_eq!(server.report().transport.bad_auth, 0);
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let wrong = |query: &str| match format!("nfs://h/e?version=4.1&{query}").parse::<MountOptions>() {
        Err(error @ (OptionError::Conflict { .. } | OptionError::Value { .. })) => error.to_string(),
        other => panic!("{query}: {other:?}"),
    };
    for (query, part) in [
        ("xprtsec=tls", "no tls_ca"),
        ("xprtsec=mtls&tls_ca=a", "no tls_cert"),
        ("xprtsec=mtls&tls_ca=a&tls_cert=b", "no tls_key"),
        ("tls_ca=a", "xprtsec=none"),
        ("xprtsec=tls&tls_ca=a&tls_cert=b", "need xprtsec=mtls"),
        ("xprtsec=ssl", "one of none, tls, mtls"),
        ("xprtsec=tls&tls_ca=", "a path of a file"),
        ("version=3&proto=udp&xprtsec=tls&tls_ca=a", "TLS needs TCP"),
        ("version=4.0&cache=linux&delegations=on&xprtsec=tls&tls_ca=a", "use version=4.1"),
    ] {
        let message = wrong(query);
        assert!(message.contains(part), "{query}: {message}");
    }
    let url = "nfs://h/e?version=4.2&xprtsec=mtls&tls_ca=a.pem&tls_cert=c.pem&tls_key=c.key";
    let options: MountOptions = url.parse().unwrap();
    assert_eq!(options.to_string(), url);
    let error = options.tls().unwrap_err().to_string();
    assert!(error.contains("a.pem: "), "{error}");
}
