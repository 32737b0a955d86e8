//! Which agents a listening controller admits, which not, and what an agent sends to whom.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use benchmaster_fleet::protocol::VERSION;
use benchmaster_fleet::secure::{
    AgentOptions, Credentials, DialError, Listener, MOST_WAITING, Missing, agent_stream, build, dial,
};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use crate::support;

const LIMIT: Duration = Duration::from_secs(30);

fn here() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn soon() -> Instant {
    Instant::now() + LIMIT
}

/// Listens, and gives the address too.
async fn listener() -> (Listener, Credentials, String) {
    let (listener, credentials) = Listener::bind(here()).await.unwrap();
    let address = listener.address().to_string();
    (listener, credentials, address)
}

/// The two fields of credentials.
fn fields(credentials: &Credentials) -> (String, String) {
    let text = credentials.to_json();
    let words: Vec<&str> = text.split('"').collect();
    (words[3].to_owned(), words[7].to_owned())
}

fn credentials(fingerprint: &str, token: &str) -> Credentials {
    let text = format!("{{\"key_sha256\":\"{fingerprint}\",\"token\":\"{token}\"}}");
    Credentials::read(text.as_bytes(), "test").unwrap()
}

/// Another token than this.
fn other(token: &str) -> String {
    let last = if token.ends_with('0') { "1" } else { "0" };
    format!("{}{last}", &token[..token.len() - 1])
}

pub(crate) async fn agents_are_taken_by_rank_whenever_they_come() {
    let (listener, credentials, address) = listener().await;
    let agents = async {
        let mut streams = Vec::new();
        for rank in [2, 0, 1] {
            let mut stream = dial(&address, &credentials, rank, &format!("n{rank}"), None).await.unwrap();
            stream.write_all(format!("from {rank}").as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            streams.push(stream);
        }
        streams
    };
    let (admitted, mut streams) = tokio::join!(listener.accept_ranked(3, soon()), agents);
    let mut admitted = admitted.unwrap();
    assert_eq!(admitted.refused, []);
    for (rank, agent) in (0..).zip(&mut admitted.joined) {
        assert_eq!((agent.rank, agent.host.as_str()), (rank, format!("n{rank}").as_str()));
        let mut said = [0; 6];
        agent.stream.read_exact(&mut said).await.unwrap();
        assert_eq!(said, format!("from {rank}").as_bytes());
        agent.stream.write_all(&[b'x'; 100_000]).await.unwrap();
        agent.stream.flush().await.unwrap();
        drop(std::mem::replace(&mut agent.stream, Box::new(tokio::io::empty())));
    }
    for stream in &mut streams {
        let mut got = Vec::new();
        // The controller went without a word, which ends the stream one way or another.
        let _ = timeout(LIMIT, stream.read_to_end(&mut got)).await.unwrap();
        assert_eq!(got.len(), 100_000);
    }
}

pub(crate) async fn agents_that_come_late_or_not_at_all_are_named() {
    let (listener, credentials, address) = listener().await;
    let _agent = tokio::spawn(async move { dial(&address, &credentials, 1, "n1", None).await });
    let deadline = Instant::now() + Duration::from_millis(1500);
    let Missing { joined, missing, refused } = listener.accept_ranked(3, deadline).await.unwrap_err();
    assert_eq!((joined.len(), joined[0].rank, missing, refused.len()), (1, 1, vec![0, 2], 0));
}

pub(crate) async fn a_wrong_token_a_rank_twice_and_an_unknown_rank_are_refused() {
    let (listener, good, address) = listener().await;
    let (fingerprint, token) = fields(&good);
    let agents = async {
        let refusal = |error: DialError| match error {
            DialError::Refused { reason, .. } => reason,
            other => panic!("{other}"),
        };
        let wrong = credentials(&fingerprint, &other(&token));
        let said = refusal(dial(&address, &wrong, 0, "evil", None).await.err().unwrap());
        assert_eq!(said, "the token is not that of its launch");
        let first = dial(&address, &good, 0, "n0", None).await.unwrap();
        let said = refusal(dial(&address, &good, 0, "again", None).await.err().unwrap());
        assert_eq!(said, "an agent of rank 0 is already connected");
        let said = refusal(dial(&address, &good, 2, "n2", None).await.err().unwrap());
        assert_eq!(said, "it has no rank 2");
        (first, dial(&address, &good, 1, "n1", None).await.unwrap())
    };
    let (admitted, _streams) = tokio::join!(listener.accept_ranked(2, soon()), agents);
    let admitted = admitted.unwrap();
    let reasons: Vec<&str> = admitted.refused.iter().map(|refusal| refusal.reason.as_str()).collect();
    assert_eq!(
        reasons,
        [
            "its token is not that of this launch",
            "again reports rank 0, which is already connected",
            "n2 says it is rank 2, but the ranks of this launch are below 2"
        ]
    );
    assert_eq!(admitted.joined[0].host, "n0");
}

/// Takes any key.
#[derive(Debug)]
struct Careless;

impl ServerCertVerifier for Careless {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519]
    }
}

/// TLS to an address, and then whatever a test says.
async fn tls(address: &str) -> tokio_rustls::client::TlsStream<TcpStream> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Careless))
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect("x".try_into().unwrap(), TcpStream::connect(address).await.unwrap()).await.unwrap()
}

/// What an agent says first.
fn greeting(token: &[u8], rank: u32, host: &str, identity: &str) -> Vec<u8> {
    let mut bytes = b"bmagent\x01".to_vec();
    bytes.extend_from_slice(token);
    bytes.extend_from_slice(&rank.to_be_bytes());
    for text in [host, identity] {
        bytes.push(u8::try_from(text.len()).unwrap());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
}

pub(crate) async fn another_build_is_refused_with_the_reason() {
    let (listener, good, address) = listener().await;
    let token = unhex(&fields(&good).1);
    let agents = async {
        let ours = build::identity().unwrap();
        let theirs = format!("{VERSION} {}", "0".repeat(64));
        for identity in [theirs.as_str(), "", "9.9.9"] {
            let mut stream = tls(&address).await;
            stream.write_all(&greeting(&token, 0, "old", identity)).await.unwrap();
            let mut answer = Vec::new();
            let _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap();
            assert_eq!((answer[0], &answer[2..]), (2, ours.as_bytes()));
        }
        // Without the token not even the build is told.
        let mut stream = tls(&address).await;
        stream.write_all(&greeting(&[7; 32], 0, "evil", ours)).await.unwrap();
        let mut answer = Vec::new();
        let _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer, [1, 0]);
        let mut stream = tls(&address).await;
        stream.write_all(&greeting(&token, 0, "good", ours)).await.unwrap();
        assert_eq!(stream.read_u8().await.unwrap(), 0);
        stream
    };
    let (admitted, _stream) = tokio::join!(listener.accept_ranked(1, soon()), agents);
    let admitted = admitted.unwrap();
    assert_eq!(admitted.joined[0].host, "good");
    let reason = &admitted.refused[0].reason;
    assert!(
        reason.starts_with("rank 0 on old runs a different build of Benchmaster (0.1.0 0000"),
        "{reason}"
    );
    assert_eq!(admitted.refused.len(), 4);
}

pub(crate) async fn garbage_and_silence_are_turned_away_while_agents_get_in() {
    let (listener, good, address) = listener().await;
    let listener = listener.handshake_within(Duration::from_secs(2));
    let token = unhex(&fields(&good).1);
    let agents = async {
        // Not TLS.
        let mut plain = TcpStream::connect(&address).await.unwrap();
        plain.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        // TLS, but no agent.
        let mut web = tls(&address).await;
        web.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        // A name that would make a mess of terminals and logs.
        let mut rude = tls(&address).await;
        rude.write_all(&greeting(&token, 0, "\u{1b}[2J", build::identity().unwrap())).await.unwrap();
        // Half a greeting, then nothing; one without a word; and one that leaves.
        let mut half = tls(&address).await;
        half.write_all(b"bmagent\x01half").await.unwrap();
        let mut silent = TcpStream::connect(&address).await.unwrap();
        drop(tls(&address).await);
        let stream = dial(&address, &good, 0, "n0", None).await.unwrap();
        for stream in [&mut web, &mut rude, &mut half] {
            let mut answer = Vec::new();
            let _ = timeout(LIMIT, stream.read_to_end(&mut answer)).await.expect("turned away in time");
            assert_eq!(answer, Vec::<u8>::new(), "nobody is told anything");
        }
        let _ = timeout(LIMIT, silent.read_to_end(&mut Vec::new())).await.expect("turned away in time");
        stream
    };
    // Nobody comes as the second rank: it takes until the deadline, by which all others are turned away.
    let deadline = Instant::now() + Duration::from_secs(6);
    let (admitted, _stream) = tokio::join!(listener.accept_ranked(2, deadline), agents);
    let missing = admitted.unwrap_err();
    assert_eq!((missing.joined.len(), missing.missing), (1, vec![1]));
    let mut reasons: Vec<&str> = missing.refused.iter().map(|refusal| refusal.reason.as_str()).collect();
    reasons.sort_unstable();
    assert_eq!(
        reasons,
        [
            "it did not show a token within 2s",
            "it did not show a token within 2s",
            "it is not a Benchmaster agent",
            "it is not a Benchmaster agent",
            "it left before it had shown a token",
            "received corrupt message of type InvalidContentType",
        ]
    );
}

pub(crate) async fn a_crowd_is_turned_away_and_agents_get_in_when_it_goes() {
    let (listener, good, address) = listener().await;
    let listener = listener.handshake_within(LIMIT);
    let agents = async {
        let mut crowd = Vec::new();
        for _ in 0..MOST_WAITING {
            crowd.push(TcpStream::connect(&address).await.unwrap());
        }
        // The crowd is silent and may stay; those behind it are sent away at once.
        for _ in 0..30 {
            let mut late = TcpStream::connect(&address).await.unwrap();
            let end = timeout(LIMIT, late.read_to_end(&mut Vec::new())).await;
            assert!(end.is_ok(), "turned away in time");
        }
        let (agent, ()) = tokio::join!(dial(&address, &good, 0, "n0", None), async {
            // The agent's first attempts are in vain too.
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(crowd);
        });
        agent.unwrap()
    };
    let (admitted, _stream) = tokio::join!(listener.accept_ranked(1, soon()), agents);
    let refused = admitted.unwrap().refused;
    assert_eq!(refused.len(), 20, "what is kept has a bound");
    assert!(
        refused.iter().all(|refusal| refusal.reason == "512 connections have not shown a token yet"),
        "{refused:?}"
    );
}

pub(crate) async fn an_agent_says_nothing_to_another_server() {
    let (listener, good, _) = listener().await;
    // A stranger with a key of its own, which would take any token.
    let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new()).unwrap();
    let key = any_supported_type(&PrivatePkcs8KeyDer::from(pair.as_ref()).into()).unwrap();
    let public = CertificateDer::from(key.public_key().unwrap().to_vec());
    let shown = Arc::new(CertifiedKey::new(vec![public], key));
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(shown)));
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let thief = TcpListener::bind(here()).await.unwrap();
    let address = thief.local_addr().unwrap().to_string();
    let robbed = async {
        let (stream, _) = thief.accept().await.unwrap();
        // It ends in the handshake, before anything could be said.
        acceptor.accept(stream).await.expect_err("the agent goes").to_string()
    };
    let (error, seen) = tokio::join!(dial(&address, &good, 0, "n0", None), robbed);
    let error = error.err().unwrap();
    assert!(matches!(error, DialError::Key { .. }), "{error}");
    assert!(error.to_string().ends_with("(its key differs); nothing was sent to it"), "{error}");
    assert!(seen.contains("alert"), "{seen}");
    // The right server with another fingerprint in the credentials is as wrong.
    let (fingerprint, token) = fields(&good);
    let wrong = credentials(&other(&fingerprint), &token);
    let address = listener.address().to_string();
    let accepting = listener.accept_ranked(1, Instant::now() + Duration::from_secs(5));
    let (missing, error) = tokio::join!(accepting, dial(&address, &wrong, 0, "n0", None));
    assert!(matches!(error, Err(DialError::Key { .. })));
    assert_eq!(missing.unwrap_err().refused.len(), 1);
    // Somebody who does not speak TLS at all.
    let plain = TcpListener::bind(here()).await.unwrap();
    let address = plain.local_addr().unwrap().to_string();
    let speaking = async {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"SSH-2.0-OpenSSH_9.2\r\n").await.unwrap();
        let mut got = Vec::new();
        let _ = stream.read_to_end(&mut got).await;
        got
    };
    let (error, got) = tokio::join!(dial(&address, &good, 0, "n0", None), speaking);
    assert!(matches!(error, Err(DialError::Key { .. })));
    let secret = unhex(&token);
    assert!(!got.windows(32).any(|bytes| bytes == secret), "the token never leaves in the clear");
}

/// A process of its own as the agent: what others on its host can see of it has no secret.
pub(crate) fn nothing_secret_is_seen_of_an_agent() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap();
    let (listener, good, address) = runtime.block_on(listener());
    let (fingerprint, token) = fields(&good);
    let run = |input: String| {
        let mut agent = Command::new(std::env::current_exe().unwrap())
            .args(["secure-agent", &address])
            .env("RUST_LOG", "trace")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        agent.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        agent
    };
    let hidden = |text: &[u8], place: &str| {
        let text = String::from_utf8_lossy(text);
        assert!(!text.contains(&token) && !text.contains(&token[..16]), "{place}: {text}");
    };
    let mut agent = run(good.to_json().to_string());
    let mut joined = runtime.block_on(listener.accept_ranked(1, soon())).unwrap().joined;
    for file in ["cmdline", "environ"] {
        let content = std::fs::read(format!("/proc/{}/{file}", agent.id())).unwrap();
        assert!(!content.is_empty());
        hidden(&content, file);
    }
    hidden(format!("{joined:?} {listener:?} {good:?}").as_bytes(), "debug");
    let mut said = [0; 6];
    runtime.block_on(joined[0].stream.read_exact(&mut said)).unwrap();
    assert_eq!(&said, b"inside");
    drop(joined);
    let mut output = Vec::new();
    agent.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    agent.stderr.take().unwrap().read_to_end(&mut output).unwrap();
    assert!(String::from_utf8_lossy(&output).contains("agent ended"), "{output:?}");
    hidden(&output, "output");
    assert!(agent.wait().unwrap().success());

    // Failures have no secrets either: damaged credentials, another fingerprint, a wrong token.
    let text = |fingerprint: &str, token: &str| {
        format!("{{\"key_sha256\":\"{fingerprint}\",\"token\":\"{token}\"}}\n")
    };
    let inputs = [
        text(&fingerprint, &format!("{token}0")),
        format!("{token}\n"),
        text(&other(&fingerprint), &token),
        text(&fingerprint, &format!("{}zz", &token[..62])),
        String::new(),
    ];
    for input in inputs {
        let agent = run(input);
        let ended = std::thread::spawn(|| agent.wait_with_output().unwrap());
        let deadline = Instant::now() + Duration::from_millis(1500);
        // Whoever comes, nobody is let in.
        assert_eq!(runtime.block_on(listener.accept_ranked(2, deadline)).unwrap_err().joined.len(), 0);
        let output = ended.join().unwrap();
        assert!(!output.status.success());
        hidden(&output.stdout, "output");
        hidden(&output.stderr, "errors");
        assert!(String::from_utf8_lossy(&output.stderr).contains("agent failed: "), "{output:?}");
    }
}

/// The agent of the test above, as a process of its own.
pub(crate) fn agent(dial: &str) {
    let options = AgentOptions { dial: dial.to_owned(), rank: Some(0), credentials: None, wait: None };
    support::block_on(async {
        match agent_stream(&options).await {
            Ok(mut stream) => {
                stream.write_all(b"inside").await.unwrap();
                stream.flush().await.unwrap();
                let _ = stream.read_u8().await;
                eprintln!("agent ended");
            }
            Err(error) => {
                eprintln!("agent failed: {error} {error:?}");
                std::process::exit(1);
            }
        }
    });
}
