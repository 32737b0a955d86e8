//! A baseline without a far end: what any NFS server over TCP lets one measure.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record::{self, Scan, next_record};
use benchmaster_nfs_proto::rpc::{CallHeader, Message, OpaqueAuth, RPC_VERSION, RpcReply};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder};

use crate::client::{microseconds, share};
use crate::result::{Latency, RpcProbe};
use crate::{ProbeError, handshake};

/// Repetitions over which intervals are; each opens new connections.
const REPETITIONS: u16 = 5;
/// A server that says nothing for so long does not answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// No reply to a call without results is longer.
const LONGEST_REPLY: usize = 4096;
const NFS: u32 = 100_003;

/// Opens `n` connections to an NFS server, and calls its procedure NULL `n` times, in five repetitions.
///
/// NULL does nothing, needs no credentials, and is answered by every version; version 3 is called, or the highest
/// that the server has. The first call of each connection is not counted: a server may only then give it a thread.
///
/// # Errors
/// When no server listens, or it is not an NFS server.
pub fn rpc_null(target: SocketAddr, n: u32) -> Result<RpcProbe, ProbeError> {
    let n = n.max(u32::from(REPETITIONS));
    let (mut connects, mut calls, mut version) = (Vec::new(), Vec::new(), 3);
    for repetition in 0..REPETITIONS {
        let part = share(n, REPETITIONS, repetition);
        let mut times = Vec::new();
        let mut last = None;
        for _ in 0..part {
            let (socket, took) = handshake::connect(target, PATIENCE)?;
            times.push(microseconds(took));
            last = Some(socket);
        }
        connects.push(times);
        let Some(socket) = last else { continue };
        let mut server = Server { target, socket, xid: u32::from(repetition) << 16, patience: PATIENCE };
        version = server.version(version)?;
        let times = (0..part).map(|_| server.null(version).map(microseconds));
        calls.push(times.collect::<Result<Vec<f64>, _>>()?);
    }
    let none = || ProbeError::TooSlow { doing: "calls of NULL", target };
    Ok(RpcProbe {
        target,
        version,
        connect: Latency::of(&connects).ok_or_else(none)?,
        null: Latency::of(&calls).ok_or_else(none)?,
    })
}

/// Whether an NFS server answers at an address: connects and calls NULL once. Any reply of ONC RPC will do.
///
/// # Errors
/// When no server listens, nothing is said for `patience`, or what is said is no reply.
pub fn answers(target: SocketAddr, patience: Duration) -> Result<(), ProbeError> {
    let (socket, _) = handshake::connect(target, patience)?;
    Server { target, socket, xid: 0, patience }.call(3).map(|_| ())
}

struct Server {
    target: SocketAddr,
    socket: TcpStream,
    xid: u32,
    /// How long a reply is waited for.
    patience: Duration,
}

impl Server {
    /// A version that the server has; `wanted` if it can be.
    fn version(&mut self, wanted: u32) -> Result<u32, ProbeError> {
        match self.call(wanted)?.1 {
            Said::Done => Ok(wanted),
            Said::Highest(high) => self.null(high).map(|_| high),
            Said::Other(reply) => Err(self.wrong(format!("it replies to an NFS call with {reply}"))),
        }
    }

    /// A call that must succeed, and how long it took.
    fn null(&mut self, version: u32) -> Result<Duration, ProbeError> {
        match self.call(version)? {
            (took, Said::Done) => Ok(took),
            (_, said) => Err(self.wrong(format!("it replies to a call of version {version} with {said:?}"))),
        }
    }

    fn call(&mut self, version: u32) -> Result<(Duration, Said), ProbeError> {
        self.xid = self.xid.wrapping_add(1);
        let mut call = Encoder::new();
        let mark = record::begin(&mut call);
        call.put(&CallHeader {
            xid: self.xid,
            rpc_version: RPC_VERSION,
            program: NFS,
            version,
            procedure: 0,
            cred: OpaqueAuth::NONE,
            verf: OpaqueAuth::NONE,
        });
        record::end(&mut call, mark);
        let began = Instant::now();
        let reply = self.exchange(call.buffer()).map_err(|source| ProbeError::Io {
            doing: "a call of NULL",
            target: self.target,
            source,
        })?;
        let took = began.elapsed();
        let reply = reply.ok_or_else(|| self.wrong("its reply is not an ONC RPC record".into()))?;
        match Decoder::new(&reply).get() {
            Ok(Message::Reply { xid, reply }) if xid == self.xid => Ok((
                took,
                match reply {
                    RpcReply::Success(_) => Said::Done,
                    RpcReply::ProgMismatch(_, high) => Said::Highest(high),
                    other => Said::Other(format!("{other:?}")),
                },
            )),
            Ok(other) => Err(self.wrong(format!("it sends something else: {other:?}"))),
            Err(error) => Err(self.wrong(format!("its reply cannot be read: {error}"))),
        }
    }

    /// Sends a call and reads a record; `None` for what is no record of one fragment.
    fn exchange(&mut self, call: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.socket.set_read_timeout(Some(self.patience))?;
        self.socket.write_all(call)?;
        let (mut buffer, mut filled) = (vec![0; record::HEADER + LONGEST_REPLY], 0);
        loop {
            let read = self.socket.read(buffer.get_mut(filled..).unwrap_or_default())?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            match next_record(&buffer[..filled], LONGEST_REPLY) {
                Ok(Scan::Record { payload, .. }) => return Ok(buffer.get(payload).map(<[u8]>::to_vec)),
                Ok(Scan::Need(_)) => {}
                Ok(Scan::Fragmented) | Err(_) => return Ok(None),
            }
        }
    }

    fn wrong(&self, problem: String) -> ProbeError {
        ProbeError::Protocol { doing: "a call of NULL", target: self.target, problem }
    }
}

/// What a server says to a call.
#[derive(Debug)]
enum Said {
    Done,
    /// It does not have this version, but one up to that.
    Highest(u32),
    Other(String),
}
