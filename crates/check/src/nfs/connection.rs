//! A connection on which one thread calls and waits, and answers what the server calls meanwhile.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record::{self, Joiner};
use benchmaster_nfs_proto::rpc::{
    AuthFlavor, AuthSys, CallHeader, Message, OpaqueAuth, RPC_VERSION, RpcReply,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, List};

use super::callback::{Callback, Held, answer};
use crate::Trouble;

/// No reply is longer.
const LONGEST: usize = 64 << 20;
/// How often a wait looks at its deadline.
const STEP: Duration = Duration::from_millis(20);

/// A user, as AUTH_SYS names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

impl User {
    pub(crate) fn auth_sys(self) -> AuthSys<'static> {
        let Self { uid, gid } = self;
        AuthSys { stamp: 0, machine_name: "benchmaster-check".into(), uid, gid, gids: List::Items(&[]) }
    }

    /// The body of an AUTH_SYS credential.
    pub(crate) fn credential(self) -> Vec<u8> {
        let mut e = Encoder::new();
        e.put(&self.auth_sys());
        e.buffer().to_vec()
    }
}

/// What a call is made of, but for its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Procedure {
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) number: u32,
}

/// A reply: the whole record.
#[derive(Debug, Clone)]
pub(crate) struct Reply(pub(crate) Vec<u8>);

impl Reply {
    /// What became of the call, and the results.
    pub(crate) fn rpc(&self) -> Result<(RpcReply<'_>, &[u8]), Trouble> {
        let mut d = Decoder::new(&self.0);
        match d.get() {
            Ok(Message::Reply { reply, .. }) => Ok((reply, d.rest())),
            Ok(Message::Call(_)) => Err(Trouble::Malformed("a call where a reply was due".into())),
            Err(error) => Err(Trouble::Malformed(error.to_string())),
        }
    }
}

/// A TCP connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    next: u32,
    /// How long a reply is waited for.
    patience: Duration,
    received: Vec<u8>,
    joiner: Joiner,
    /// What the server called, oldest first.
    pub(crate) callbacks: Vec<Callback>,
    /// How CB_GETATTR is answered.
    pub(crate) held: Option<Held>,
    /// Replies that nothing waited for yet.
    early: Vec<(u32, Reply)>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr, patience: Duration) -> Result<Self, Trouble> {
        let failed =
            |error: std::io::Error| Trouble::Connect { address: address.to_string(), why: error.to_string() };
        let stream = TcpStream::connect_timeout(&address, patience).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        stream.set_write_timeout(Some(patience)).map_err(failed)?;
        stream.set_read_timeout(Some(STEP)).map_err(failed)?;
        // Numbers of one run are not those of another, which the server may still remember.
        let start = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u32;
        Ok(Self {
            stream,
            next: start,
            patience,
            received: Vec::new(),
            joiner: Joiner::new(),
            callbacks: Vec::new(),
            held: None,
            early: Vec::new(),
        })
    }

    /// This end.
    pub(crate) fn local(&self) -> Result<SocketAddr, Trouble> {
        self.stream.local_addr().map_err(system)
    }

    /// Sends a call, whose number is returned.
    pub(crate) fn send(
        &mut self,
        procedure: Procedure,
        user: Option<User>,
        args: impl FnOnce(&mut Encoder),
    ) -> Result<u32, Trouble> {
        let body = user.map(User::credential);
        let cred = body
            .as_deref()
            .map_or(OpaqueAuth::NONE, |body| OpaqueAuth { flavor: AuthFlavor::SYS, body: body.into() });
        let xid = self.number();
        let Procedure { program, version, number } = procedure;
        let header = CallHeader {
            xid,
            rpc_version: RPC_VERSION,
            program,
            version,
            procedure: number,
            cred,
            verf: OpaqueAuth::NONE,
        };
        let mut e = Encoder::new();
        e.put(&header);
        args(&mut e);
        self.send_record(e.buffer())?;
        Ok(xid)
    }

    /// The number of the next call.
    pub(crate) fn number(&mut self) -> u32 {
        self.next = self.next.wrapping_add(1);
        self.next
    }

    /// Sends a record of any content.
    pub(crate) fn send_record(&mut self, content: &[u8]) -> Result<(), Trouble> {
        self.send_bytes(&record::framed(content))
    }

    /// Sends bytes as they are.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        self.stream.write_all(bytes).map_err(|error| match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => Trouble::Closed,
            _ => system(error),
        })
    }

    /// Waits for the reply to a call.
    pub(crate) fn receive(&mut self, xid: u32) -> Result<Reply, Trouble> {
        self.receive_for(xid, self.patience)
    }

    /// Waits for the reply to a call, but no longer than this.
    pub(crate) fn receive_for(&mut self, xid: u32, patience: Duration) -> Result<Reply, Trouble> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(at) = self.early.iter().position(|(number, _)| *number == xid) {
                return Ok(self.early.swap_remove(at).1);
            }
            if !self.step(deadline)? {
                return Err(Trouble::Silence { waited: patience });
            }
        }
    }

    /// Waits until the server has made a call that `wanted` takes, at most for `patience`; takes it off the list.
    pub(crate) fn called(
        &mut self,
        patience: Duration,
        wanted: impl Fn(&Callback) -> bool,
    ) -> Result<Option<Callback>, Trouble> {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(at) = self.callbacks.iter().position(&wanted) {
                return Ok(Some(self.callbacks.remove(at)));
            }
            if !self.step(deadline)? {
                return Ok(None);
            }
        }
    }

    /// Receives something; `false` when the time is over.
    fn step(&mut self, deadline: Instant) -> Result<bool, Trouble> {
        let mut piece = [0; 1 << 16];
        match self.stream.read(&mut piece) {
            Ok(0) => return Err(Trouble::Closed),
            Ok(n) => self.received.extend_from_slice(&piece[..n]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                ErrorKind::ConnectionReset => return Err(Trouble::Closed),
                _ => return Err(system(error)),
            },
        }
        while !self.received.is_empty() {
            let fed = self
                .joiner
                .feed(&self.received, LONGEST)
                .map_err(|error| Trouble::Malformed(error.to_string()))?;
            self.received.drain(..fed.consumed);
            if !fed.complete {
                break;
            }
            let record = self.joiner.record().to_vec();
            self.joiner = Joiner::new();
            self.take(record)?;
        }
        Ok(Instant::now() < deadline)
    }

    /// A record came.
    fn take(&mut self, record: Vec<u8>) -> Result<(), Trouble> {
        match Decoder::new(&record).get() {
            Ok(Message::Reply { xid, .. }) => self.early.push((xid, Reply(record))),
            Ok(Message::Call(_)) => {
                let (reply, called) = answer(&record, self.held);
                self.callbacks.extend(called);
                self.send_record(&reply)?;
            }
            Err(error) => return Err(Trouble::Malformed(error.to_string())),
        }
        Ok(())
    }
}

fn system(error: std::io::Error) -> Trouble {
    Trouble::System(error.to_string())
}
