//! A client for tests of the transport: raw records over a TCP connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record::LAST_FRAGMENT;
use benchmaster_nfs_proto::rpc::{CallHeader, Message, OpaqueAuth, RpcReply};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder};
use benchmaster_nfs_server::{Server, ServerConfig};

pub(crate) const NFS: u32 = 100_003;
pub(crate) const MOUNT: u32 = 100_005;
pub(crate) const NLM: u32 = 100_021;
pub(crate) const PORTMAP: u32 = 100_000;
/// The tests must not wait for ever, and a busy machine may be slow.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn config() -> ServerConfig {
    ServerConfig { listen: SocketAddr::from(([127, 0, 0, 1], 0)), threads: 1, ..ServerConfig::default() }
}

pub(crate) fn start(rules: &[&str]) -> Server {
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    Server::start(ServerConfig { rules, ..config() }).unwrap()
}

/// A call with AUTH_NONE, without record mark; `args` are words.
pub(crate) fn call(xid: u32, program: u32, version: u32, procedure: u32, args: &[u32]) -> Vec<u8> {
    with_cred(xid, OpaqueAuth::NONE, program, version, procedure, args)
}

pub(crate) fn with_cred(
    xid: u32,
    cred: OpaqueAuth<'_>,
    program: u32,
    version: u32,
    procedure: u32,
    args: &[u32],
) -> Vec<u8> {
    let mut e = Encoder::new();
    e.put(&CallHeader { xid, rpc_version: 2, program, version, procedure, cred, verf: OpaqueAuth::NONE });
    args.iter().for_each(|word| e.put(word));
    e.buffer().to_vec()
}

pub(crate) fn null(xid: u32) -> Vec<u8> {
    call(xid, NFS, 3, 0, &[])
}

pub(crate) fn fragment(bytes: &[u8], last: bool) -> Vec<u8> {
    let mark = if last { LAST_FRAGMENT } else { 0 };
    [&(mark | bytes.len() as u32).to_be_bytes(), bytes].concat()
}

pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    fragment(message, true)
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
}

impl Client {
    pub(crate) fn new(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next reply, without record mark; `None` when the server has closed the connection.
    pub(crate) fn reply(&mut self) -> Option<Vec<u8>> {
        let mut mark = [0; 4];
        let first = match self.stream.read(&mut mark) {
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
            Err(error) => panic!("no reply: {error}"),
        };
        if first == 0 {
            return None;
        }
        self.stream.read_exact(&mut mark[first..]).unwrap();
        let mark = u32::from_be_bytes(mark);
        assert_ne!(mark & LAST_FRAGMENT, 0, "replies are one fragment");
        let mut message = vec![0; (mark & !LAST_FRAGMENT) as usize];
        self.stream.read_exact(&mut message).unwrap();
        Some(message)
    }

    /// One call, one successful reply.
    pub(crate) fn ping(&mut self, xid: u32) -> Duration {
        let began = Instant::now();
        self.send(&framed(&null(xid)));
        assert_eq!(xid_of(&self.reply().expect("a reply")), xid);
        began.elapsed()
    }

    pub(crate) fn is_closed(&mut self) -> bool {
        self.reply().is_none()
    }
}

pub(crate) fn xid_of(message: &[u8]) -> u32 {
    u32::from_be_bytes(message[..4].try_into().unwrap())
}

pub(crate) fn outcome(message: &[u8]) -> RpcReply<'_> {
    match Decoder::new(message).get().unwrap() {
        Message::Reply { reply, .. } => reply,
        Message::Call(call) => panic!("a call: {call:?}"),
    }
}

/// Sends calls without reading replies until the server takes no more; returns how many whole calls it got.
pub(crate) fn stall(client: &mut Client) -> u32 {
    client.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut blocked_since) = (0usize, None);
    let record = framed(&null(0)).len();
    let stream: Vec<u8> = (0..10_000).flat_map(|_| framed(&null(0))).collect();
    loop {
        match client.stream.write(&stream[sent % record..]) {
            Ok(n) => {
                sent += n;
                blocked_since = None;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let since = *blocked_since.get_or_insert_with(Instant::now);
                if since.elapsed() > Duration::from_millis(300) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => panic!("{error}"),
        }
        assert!(sent < 1 << 30, "the server takes calls without end");
    }
    client.stream.set_nonblocking(false).unwrap();
    (sent / record) as u32
}
