//! What RPC-with-TLS costs: READ over TLS and in the clear, rustls alone moving the same bytes as the limit, the cipher alone,
//! and handshakes. The ways take turns, round by round; medians are printed.
//!
//! `cargo bench -p benchmaster-nfs-client --bench tls [-- ROUNDS]`

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::counters::Counters;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::rpc::{Call, Rpc, RpcOptions, RpcTls, Transport};
use benchmaster_nfs_client::{counters::Event, ops};
use benchmaster_nfs_server::{Loss, Server, ServerConfig};
use benchmaster_rpc_tls::{
    Authority, CA_FILE, ClientFiles, ClientTls, Handshake, Lifetime, SERVER_FILES, ServerFiles, ServerTls,
    Step,
};
use jiff::{SignedDuration, Timestamp};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConnection, ServerConnection, Stream};

use self::reads::{Cost, Nfs, measured, medians};

mod reads;

/// The size of READs, how many are under way at a time, and the bytes that a round moves.
const SIZES: [(usize, usize, u64); 2] = [(1 << 20, 4, 1 << 30), (4 << 10, 16, 200 << 20)];

fn main() {
    let numbers = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let rounds: usize = numbers.unwrap_or(9);
    let directory = tempfile::tempdir().unwrap();
    let now = Timestamp::now();
    let day = SignedDuration::from_hours(24);
    let lifetime = Lifetime { from: now - day, until: now + day };
    Authority::write_set(directory.path(), &["127.0.0.1"], lifetime).unwrap();
    let files = directory.path();
    println!("{rounds} rounds, medians; client and server on one host, one thread each");
    for (size, depth, bytes) in SIZES {
        reads(files, rounds, size, depth, bytes);
    }
    handshakes(files, rounds);
    storms(files, rounds);
}

fn reads(files: &Path, rounds: usize, size: usize, depth: usize, bytes: u64) {
    let (plain, tls) = (mounted(None, size), mounted(Some(files), size));
    let (calls, kib) = (bytes / size as u64, bytes as f64 / 1024.0);
    let mut costs: [Vec<Cost>; 4] = Default::default();
    for _ in 0..=rounds {
        costs[0].push(plain.read(size, depth, calls, kib));
        costs[1].push(tls.read(size, depth, calls, kib));
        costs[2].push(rustls_alone(files, size, bytes));
        costs[3].push(cipher_alone(bytes));
    }
    let names = ["READ in the clear", "READ over TLS", "rustls alone", "AES-256-GCM alone, both ways"];
    println!("\n{:<30} {:>10} {:>14}", format!("{} KiB", size >> 10), "MiB/s", "CPU ns/KiB");
    let medians = medians(costs);
    for (name, (wall, cpu)) in names.iter().zip(&medians) {
        let rate = 1e9 / wall / 1024.0;
        println!("{name:<30} {rate:>10.0} {cpu:>14.1}");
    }
    let added = medians[1].1 - medians[0].1;
    println!(
        "READ over TLS moves {:.0} % of rustls alone; it takes {added:.1} ns/KiB more than in the clear, {:.2} times the cipher",
        100.0 * medians[2].0 / medians[1].0,
        added / medians[3].1,
    );
}

/// A server, with TLS alone where there are files, and a mount.
fn mounted(files: Option<&Path>, size: usize) -> Nfs {
    let tls = files.map(|files| {
        let [cert, key] = SERVER_FILES.map(|name| files.join(name));
        ServerFiles { cert, key, ca: None }
    });
    let require_tls = tls.is_some();
    let secure =
        files.map_or(String::new(), |files| format!("&xprtsec=tls&tls_ca={}", files.join(CA_FILE).display()));
    Nfs::new(ServerConfig { tls, require_tls, ..ServerConfig::default() }, |port| {
        format!("nfs://127.0.0.1:{port}/export?version=4.1&rsize={size}{secure}")
    })
}

/// The same bytes in the same portions through rustls' own connections, from one thread to another.
fn rustls_alone(files: &Path, size: usize, bytes: u64) -> Cost {
    let (client, server) = configurations(files);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sender = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.set_nodelay(true).unwrap();
        let mut connection = ServerConnection::new(server).unwrap();
        // What is written at a time is as much as is asked for.
        connection.set_buffer_limit(None);
        let mut stream = Stream::new(&mut connection, &mut socket);
        let data = vec![7; size];
        let mut start = [0];
        stream.read_exact(&mut start).unwrap();
        for _ in 0..bytes / size as u64 {
            stream.write_all(&data).unwrap();
        }
        stream.flush().unwrap();
        stream.read_exact(&mut start).unwrap();
    });
    let mut socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let mut connection = ClientConnection::new(client, name).unwrap();
    let mut stream = Stream::new(&mut connection, &mut socket);
    stream.flush().unwrap();
    let cost = measured(bytes as f64 / 1024.0, || {
        stream.write_all(&[1]).unwrap();
        let mut buffer = vec![0; size];
        for _ in 0..bytes / size as u64 {
            stream.read_exact(&mut buffer).unwrap();
        }
    });
    stream.write_all(&[1]).unwrap();
    sender.join().unwrap();
    cost
}

fn configurations(files: &Path) -> (Arc<rustls::ClientConfig>, Arc<rustls::ServerConfig>) {
    let provider = || Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(files.join(CA_FILE)).unwrap()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let [cert, key] = SERVER_FILES.map(|name| files.join(name));
    let server = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_file(cert).unwrap()],
            PrivateKeyDer::from_pem_file(key).unwrap(),
        )
        .unwrap();
    (Arc::new(client), Arc::new(server))
}

/// Sealing and opening as many bytes, in records of 16 KiB, by one thread.
fn cipher_alone(bytes: u64) -> Cost {
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[1; 32]).unwrap());
    let mut record = vec![7; (16 << 10) + 16];
    measured(bytes as f64 / 1024.0, || {
        for number in 0..bytes / (16 << 10) {
            let nonce = || {
                let mut nonce = [0; 12];
                nonce[4..].copy_from_slice(&number.to_be_bytes());
                Nonce::assume_unique_for_key(nonce)
            };
            let (body, tag) = record.split_at_mut(16 << 10);
            let sealed = key.seal_in_place_separate_tag(nonce(), Aad::from([0; 5]), body).unwrap();
            tag.copy_from_slice(sealed.as_ref());
            key.open_in_place(nonce(), Aad::from([0; 5]), &mut record).unwrap();
        }
    })
}

/// Handshakes without sockets, both ends by one thread; and connections with their first answer.
fn handshakes(files: &Path, rounds: usize) {
    let [cert, key] = SERVER_FILES.map(|name| files.join(name));
    let files_of_server = ServerFiles { cert, key, ca: None };
    let files_of_client = ClientFiles { ca: files.join(CA_FILE), identity: None };
    let server = ServerTls::new(&files_of_server).unwrap();
    let client = || ClientTls::new("127.0.0.1", &files_of_client).unwrap();
    let rate = |of: &dyn Fn()| {
        let mut rates: Vec<f64> = (0..rounds)
            .map(|_| {
                let began = Instant::now();
                (0..500).for_each(|_| of());
                500.0 / began.elapsed().as_secs_f64()
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let same = client();
    println!("\n{:<44} {:>10}", "handshakes, client and server on one core", "1/s");
    let full = client();
    println!("{:<44} {:>10.0}", "full", rate(&|| assert!(!shake(&full, &server, false))));
    shake(&same, &server, true);
    println!("{:<44} {:>10.0}", "resumed", rate(&|| assert!(shake(&same, &server, true))));

    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = ServerConfig { listen, threads: 1, tls: Some(files_of_server), ..ServerConfig::default() };
    let nfs = Server::start(config).unwrap();
    let reactor = Reactor::new().unwrap();
    println!("\n{:<44} {:>10}", "from connect to the first answer, median", "us");
    let median = |mut options: Box<dyn FnMut() -> RpcOptions>, resumed: bool| {
        let mut times: Vec<f64> = (0..rounds * 50)
            .map(|_| {
                let (options, counters) = (options(), Rc::new(Counters::new()));
                let began = Instant::now();
                let rpc = reactor.block_on(async {
                    let rpc = Rpc::connect_once(&reactor, &counters, options).await.unwrap();
                    let null = Call::new(ops::v3::NULL, 100_003, 3, 0);
                    rpc.call(null, |_, _| {}, |_| Ok(())).await.unwrap();
                    rpc
                });
                let took = began.elapsed().as_secs_f64() * 1e6;
                rpc.unwrap().close();
                let seen = counters.snapshot().event(Event::TlsResumed) > 0;
                (seen == resumed).then_some(took)
            })
            .skip(2)
            .map(Option::unwrap)
            .collect();
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let options = |tls: Option<ClientTls>| options(nfs.address(), tls);
    let (plain, once) = (options(None), options(Some(client())));
    let files_again = files_of_client.clone();
    println!("{:<44} {:>10.0}", "in the clear", median(Box::new(move || plain.clone()), false));
    let fresh = options(None);
    let fresh = move || {
        let tls = ClientTls::new("127.0.0.1", &files_again).unwrap();
        RpcOptions { tls: Some(RpcTls { tls, program: 100_003, version: 3 }), ..fresh.clone() }
    };
    println!("{:<44} {:>10.0}", "TLS, full handshake", median(Box::new(fresh), false));
    println!("{:<44} {:>10.0}", "TLS, resumed", median(Box::new(move || once.clone()), true));
}

fn options(address: SocketAddr, tls: Option<ClientTls>) -> RpcOptions {
    RpcOptions {
        address,
        others: Vec::new(),
        transport: Transport::Tcp,
        nagle: false,
        connections: 1,
        timeout: Duration::from_secs(60),
        retransmissions: 0,
        resend_on_live_connection: true,
        max_message: 1 << 20,
        credential: Vec::new(),
        tls: tls.map(|tls| RpcTls { tls, program: 100_003, version: 3 }),
        gss: None,
    }
}

/// A server restarts, and all clients come back at once: until each has an answer.
fn storms(files: &Path, rounds: usize) {
    const CLIENTS: usize = 500;
    let [cert, key] = SERVER_FILES.map(|name| files.join(name));
    let of_server = ServerFiles { cert, key, ca: None };
    let of_client = ClientFiles { ca: files.join(CA_FILE), identity: None };
    let start = |port: u16| {
        let listen = SocketAddr::from(([127, 0, 0, 1], port));
        let tls = Some(of_server.clone());
        Server::start(ServerConfig { listen, threads: 1, tls, ..ServerConfig::default() }).unwrap()
    };
    let reactor = Reactor::new().unwrap();
    println!("\n{:<44} {:>10}", format!("{CLIENTS} clients after a restart, until all have an answer"), "ms");
    // A server that is a new one has other keys for its tickets.
    for (name, tls, new) in
        [("in the clear", false, false), ("TLS, full handshakes", true, true), ("TLS, resumed", true, false)]
    {
        let mut times: Vec<f64> = (0..rounds)
            .map(|round| {
                let mut server = start(0);
                let address = server.address();
                let counters = Rc::new(Counters::new());
                let connect = |_| {
                    let tls = tls.then(|| ClientTls::new("127.0.0.1", &of_client).unwrap());
                    Box::pin(Rpc::connect_once(&reactor, &counters, options(address, tls)))
                };
                let rpcs = reactor.run_all(&mut (0..CLIENTS).map(connect).collect::<Vec<_>>()).unwrap();
                let rpcs: Vec<Rpc> = rpcs.into_iter().map(Result::unwrap).collect();
                let all = || {
                    let null = Call::new(ops::v3::NULL, 100_003, 3, 0);
                    let calls = rpcs.iter().map(|rpc| Box::pin(rpc.call(null, |_, _| {}, |_| Ok(()))));
                    let answers = reactor.run_all(&mut calls.collect::<Vec<_>>()).unwrap();
                    answers.into_iter().for_each(|answer| answer.unwrap());
                };
                all();
                if new {
                    server.stop().unwrap();
                    server = start(address.port());
                } else {
                    server.crash(Loss::Process, round as u64).unwrap();
                }
                let began = Instant::now();
                all();
                let took = began.elapsed().as_secs_f64() * 1e3;
                let resumed = counters.snapshot().event(Event::TlsResumed);
                assert_eq!(resumed, if tls && !new { CLIENTS as u64 } else { 0 });
                rpcs.iter().for_each(Rpc::close);
                took
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name:<44} {:>10.1}", times[times.len() / 2]);
    }
}

/// One handshake without sockets; whether it was resumed. Tickets are taken only where they are wanted.
fn shake(client: &ClientTls, server: &ServerTls, tickets: bool) -> bool {
    let (mut a, mut b) = (Handshake::client(client).unwrap(), Handshake::server(server).unwrap());
    a.advance(&[]).unwrap();
    let hello = std::mem::take(a.output());
    b.advance(&hello).unwrap();
    let flight = std::mem::take(b.output());
    assert_eq!(a.advance(&flight).unwrap(), Step::Done);
    let finished = std::mem::take(a.output());
    assert_eq!(b.advance(&finished).unwrap(), Step::Done);
    let last = std::mem::take(b.output());
    let mut session = a.finish().unwrap();
    b.finish().unwrap();
    if tickets {
        let (end, mut other) = std::os::unix::net::UnixStream::pair().unwrap();
        other.write_all(&last).unwrap();
        let mut place = [0];
        let received = session.receive(&end, &mut [std::io::IoSliceMut::new(&mut place)]).unwrap();
        assert_eq!(received, None);
    }
    session.facts().resumed
}
