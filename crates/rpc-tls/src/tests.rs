//! Sessions between two ends of a socket pair.

use std::io::{IoSlice, IoSliceMut};
use std::os::unix::net::UnixStream;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::*;

fn days(from: i64, until: i64) -> Lifetime {
    let day = |n: i64| Timestamp::now() + SignedDuration::from_hours(24 * n);
    Lifetime { from: day(from), until: day(until) }
}

/// Files of a set in a directory of its own.
struct Set {
    directory: tempfile::TempDir,
}

impl Set {
    fn new(names: &[&str], lifetime: Lifetime) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Authority::write_set(directory.path(), names, lifetime).unwrap();
        Self { directory }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    fn server(&self, ca: Option<&Self>) -> ServerTls {
        let ca = ca.map(|set| set.path("ca.pem"));
        ServerTls::new(&ServerFiles { cert: self.path("server.pem"), key: self.path("server.key"), ca })
            .unwrap()
    }

    fn client(&self, host: &str, identity: Option<&Self>) -> ClientTls {
        let identity = identity.map(|set| (set.path("client.pem"), set.path("client.key")));
        ClientTls::new(host, &ClientFiles { ca: self.path("ca.pem"), identity }).unwrap()
    }
}

/// Both sessions, or what either side says.
type Both = (Result<Session, TlsError>, Result<Session, TlsError>);

fn shake(client: &ClientTls, server: &ServerTls) -> Both {
    let (mut a, mut b) = (Handshake::client(client).unwrap(), Handshake::server(server).unwrap());
    let mut steps = (a.advance(&[]), Ok(Step::More));
    for _ in 0..10 {
        let out = std::mem::take(a.output());
        if steps.1 == Ok(Step::More) {
            steps.1 = b.advance(&out);
        }
        let out = std::mem::take(b.output());
        if steps.0 == Ok(Step::More) {
            steps.0 = a.advance(&out);
        } else if let Ok(Step::Done) = steps.0 {
            // Tickets belong to the session.
            a.input_of_session(&out);
        }
    }
    let done = |step: Result<Step, TlsError>, shake: Handshake| match step? {
        Step::Done => shake.finish(),
        Step::More => Err(TlsError::Ended),
    };
    (done(steps.0, a), done(steps.1, b))
}

struct Pair {
    client: (Session, UnixStream),
    server: (Session, UnixStream),
}

impl Pair {
    fn new(client: &ClientTls, server: &ServerTls) -> Self {
        let (a, b) = UnixStream::pair().unwrap();
        [&a, &b].into_iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        let (client, server) = shake(client, server);
        Self { client: (client.unwrap(), a), server: (server.unwrap(), b) }
    }
}

fn send_all((session, socket): &mut (Session, UnixStream), bytes: &[u8], mut meanwhile: impl FnMut()) {
    let mut sent = 0;
    while sent < bytes.len() || session.is_sending() {
        let (x, y) = bytes[sent..].split_at((bytes.len() - sent) / 3);
        match session.send(&*socket, &[IoSlice::new(x), IoSlice::new(&[]), IoSlice::new(y)]).unwrap() {
            Some(n) => sent += n,
            None => meanwhile(),
        }
    }
}

fn receive_some(
    (session, socket): &mut (Session, UnixStream),
    into: &mut Vec<u8>,
    size: usize,
) -> Option<usize> {
    let (mut x, mut y) = (vec![0; size], vec![0; size / 2]);
    let n = session.receive(&*socket, &mut [IoSliceMut::new(&mut x), IoSliceMut::new(&mut y)]).unwrap()?;
    into.extend_from_slice(&[x, y].concat()[..n]);
    Some(n)
}

#[test]
fn files_that_are_made_serve_both_sides() {
    let set = Set::new(&["server.example", "127.0.0.1", "::1"], days(-1, 1));
    for host in ["server.example", "127.0.0.1", "::1"] {
        for mutual in [None, Some(&set)] {
            let (client, server) = shake(&set.client(host, mutual), &set.server(mutual));
            let (client, server) = (client.unwrap(), server.unwrap());
            assert!(!client.facts().resumed && client.facts().peer_certified);
            assert_eq!(server.facts().peer_certified, mutual.is_some());
            assert!(client.facts().suite.starts_with("TLS13_"), "{:?}", client.facts());
        }
    }
    let again = Authority::write_set(set.directory.path(), &["x"], days(-1, 1));
    assert!(matches!(again, Err(TlsError::File { .. })), "nothing is overwritten");
    let mode = |name| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::metadata(set.path(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("server.key"), mode("client.key")), (0o600, 0o600));
}

#[test]
fn who_is_not_who_he_should_be_is_refused() {
    let (good, other) = (Set::new(&["good"], days(-1, 1)), Set::new(&["good"], days(-1, 1)));
    let refused = |both: Both| match both.0 {
        Err(TlsError::Refused(refusal)) => (refusal, both.1.unwrap_err()),
        other => panic!("{other:?}"),
    };
    let (refusal, told) = refused(shake(&good.client("good", None), &other.server(None)));
    assert_eq!((refusal, told), (Refusal::Issuer, TlsError::Alert("UnknownCA")));
    let (refusal, _) = refused(shake(&good.client("evil", None), &good.server(None)));
    assert_eq!(refusal, Refusal::Name { expected: "evil".into(), presented: "good".into() });
    let (refusal, _) = refused(shake(&good.client("192.0.2.1", None), &good.server(None)));
    assert!(matches!(refusal, Refusal::Name { .. }), "{refusal}");
    for lifetime in [days(-2, -1), days(1, 2)] {
        let old = Set::new(&["good"], lifetime);
        let (refusal, _) = refused(shake(&old.client("good", None), &old.server(None)));
        assert_eq!(refusal, Refusal::Expired);
    }
    // A client learns only from the first record after the handshake that it was refused.
    let (client, server) = shake(&good.client("good", None), &good.server(Some(&good)));
    assert_eq!(server.unwrap_err(), TlsError::Refused(Refusal::NoCertificate));
    assert!(client.is_ok());
    let (_, server) = shake(&good.client("good", Some(&other)), &good.server(Some(&good)));
    assert_eq!(server.unwrap_err(), TlsError::Refused(Refusal::Issuer));
}

#[test]
fn without_the_name_of_the_protocol_there_is_no_session() {
    let set = Set::new(&["good"], days(-1, 1));
    let (mut client, server) = (set.client("good", None), set.server(None));
    let config = std::sync::Arc::make_mut(&mut client.config);
    config.alpn_protocols.clear();
    let (ours, theirs) = shake(&client, &server);
    assert_eq!(ours.unwrap_err(), TlsError::Refused(Refusal::Protocol));
    assert_eq!(theirs.unwrap_err(), TlsError::Refused(Refusal::Protocol));
    std::sync::Arc::make_mut(&mut client.config).alpn_protocols = vec![b"http/1.1".to_vec()];
    let (_, theirs) = shake(&client, &server);
    assert_eq!(theirs.unwrap_err(), TlsError::Refused(Refusal::Protocol));
}

#[test]
fn files_that_do_not_fit_are_named() {
    let (set, other) = (Set::new(&["good"], days(-1, 1)), Set::new(&["good"], days(-1, 1)));
    let server = |cert: &Path, key: &Path| {
        ServerTls::new(&ServerFiles { cert: cert.into(), key: key.into(), ca: None }).unwrap_err().to_string()
    };
    let message = server(&set.path("server.pem"), &other.path("server.key"));
    assert!(message.contains("server.pem: the private key is not the one"), "{message}");
    let message = server(&set.path("server.pem"), &set.path("none"));
    assert!(message.contains("none: No such file"), "{message}");
    let message = server(&set.path("server.key"), &set.path("server.key"));
    assert!(message.contains("has no certificate in PEM form"), "{message}");
    let message = server(&set.path("server.pem"), &set.path("ca.pem"));
    assert!(message.contains("has no private key in PEM form"), "{message}");
    let files = ClientFiles { ca: set.path("ca.pem"), identity: None };
    assert_eq!(ClientTls::new("a b", &files).unwrap_err(), TlsError::Name("a b".into()));
}

#[test]
fn a_session_is_resumed_with_a_ticket() {
    let set = Set::new(&["good"], days(-1, 1));
    let (client, server) = (set.client("good", Some(&set)), set.server(Some(&set)));
    let mut first = Pair::new(&client, &server);
    // The tickets came with the end of the handshake.
    let mut got = Vec::new();
    assert_eq!(receive_some(&mut first.client, &mut got, 100), None);
    assert_eq!(first.client.0.traffic().tickets, 2);
    let second = Pair::new(&client, &server);
    for session in [&second.client.0, &second.server.0] {
        assert!(session.facts().resumed && session.facts().peer_certified, "{:?}", session.facts());
    }
    let other = set.server(Some(&set));
    assert!(!Pair::new(&client, &other).client.0.facts().resumed, "tickets of another server");
}

#[test]
fn keys_change_under_way() {
    let set = Set::new(&["good"], days(-1, 1));
    let mut pair = Pair::new(&set.client("good", None), &set.server(None));
    pair.client.0.rekey_after(3);
    pair.server.0.rekey_after(2);
    let data: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    for _ in 0..2 {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        let (client, server) = (&mut pair.client, &mut pair.server);
        send_all(client, &data, || while receive_some(server, &mut there, 5000).is_some() {});
        while there.len() < data.len() {
            receive_some(server, &mut there, 5000);
        }
        send_all(server, &data, || while receive_some(client, &mut back, 70_000).is_some() {});
        while back.len() < data.len() {
            receive_some(client, &mut back, 70_000);
        }
        assert!(there == data && back == data);
    }
    let (client, server) = (pair.client.0.traffic(), pair.server.0.traffic());
    assert!(client.key_updates > 20 && client.key_updates == server.key_updates, "{client:?} {server:?}");
    assert_eq!((client.records_sent, client.bytes_sent), (server.records_received, server.bytes_received));
}

#[test]
fn a_changed_record_ends_the_session() {
    use std::io::{Read as _, Write as _};
    let set = Set::new(&["good"], days(-1, 1));
    for flipped in [0, 3, 5, 20, 60] {
        let mut pair = Pair::new(&set.client("good", None), &set.server(None));
        pair.client.0.send(&pair.client.1, &[IoSlice::new(&[7; 100])]).unwrap();
        let mut wire = vec![0; 1000];
        let len = pair.server.1.read(&mut wire).unwrap();
        wire.truncate(len);
        wire[flipped] ^= 1;
        let (mut evil, end) = UnixStream::pair().unwrap();
        end.set_nonblocking(true).unwrap();
        evil.write_all(&wire).unwrap();
        drop(evil);
        let mut place = [0; 100];
        let received = pair.server.0.receive(&end, &mut [IoSliceMut::new(&mut place)]);
        match (flipped, received) {
            // The record seems longer than what comes.
            (3, Ok(None | Some(0))) => {}
            (_, Err(error)) => {
                let tls = TlsError::of(&error).unwrap();
                assert!(matches!(tls, TlsError::Record | TlsError::Protocol(_)), "{tls}");
            }
            (at, other) => panic!("byte {at}: {other:?}"),
        }
        assert_eq!(place, [0; 100], "byte {flipped}");
    }
}

#[test]
fn a_record_sent_twice_is_refused() {
    use std::io::{Read as _, Write as _};
    let set = Set::new(&["good"], days(-1, 1));
    let mut pair = Pair::new(&set.client("good", None), &set.server(None));
    pair.client.0.send(&pair.client.1, &[IoSlice::new(b"once")]).unwrap();
    let mut wire = [0; 100];
    let len = pair.server.1.read(&mut wire).unwrap();
    let (mut evil, end) = UnixStream::pair().unwrap();
    end.set_nonblocking(true).unwrap();
    evil.write_all(&[&wire[..len], &wire[..len]].concat()).unwrap();
    let mut place = [0; 4];
    let n = pair.server.0.receive(&end, &mut [IoSliceMut::new(&mut place)]).unwrap();
    assert_eq!((n, &place), (Some(4), b"once"));
    let error = pair.server.0.receive(&end, &mut [IoSliceMut::new(&mut place)]).unwrap_err();
    assert_eq!(TlsError::of(&error), Some(&TlsError::Record));
}

#[test]
fn the_end_is_told_from_a_cut() {
    let set = Set::new(&["good"], days(-1, 1));
    let mut pair = Pair::new(&set.client("good", None), &set.server(None));
    pair.client.0.close(&pair.client.1);
    assert_eq!(receive_some(&mut pair.server, &mut Vec::new(), 10), Some(0));
    let message = TlsError::NotOffered { answer: "it refuses AUTH_TLS" }.to_string();
    assert_eq!(
        message,
        "the server does not offer TLS (it refuses AUTH_TLS), and no call is sent without it"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// However data are cut into sends and receives, they arrive once, whole and in order.
    #[test]
    fn data_survive_any_cut(
        sizes in prop::collection::vec(prop_oneof![1usize..300, 16_000usize..17_000, 100_000usize..600_000], 1..8),
        part in prop_oneof![1usize..50, 1000usize..100_000],
    ) {
        let set = Set::new(&["good"], days(-1, 1));
        let mut pair = Pair::new(&set.client("good", None), &set.server(None));
        let (mut wanted, mut got) = (Vec::new(), Vec::new());
        for (number, size) in sizes.iter().enumerate() {
            let data: Vec<u8> = (0..*size).map(|n| (n * 31 + number) as u8).collect();
            let server = &mut pair.server;
            send_all(&mut pair.client, &data, || { receive_some(server, &mut got, part); });
            wanted.extend(data);
        }
        while receive_some(&mut pair.server, &mut got, part).is_some() {}
        prop_assert!(got == wanted);
        prop_assert!(!pair.server.0.is_readable() && !pair.client.0.is_sending());
    }

    /// Whatever a peer sends in the place of a handshake, there is no panic and no session.
    #[test]
    fn noise_is_no_handshake(noise in prop::collection::vec(any::<u8>(), 0..2000)) {
        let set = Set::new(&["good"], days(-1, 1));
        let mut server = Handshake::server(&set.server(None)).unwrap();
        prop_assert_ne!(server.advance(&noise), Ok(Step::Done));
    }
}
