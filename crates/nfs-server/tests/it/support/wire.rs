//! A small client for tests: one request at a time, sent again, unchanged, until it is answered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthSys, CallHeader, Message, OpaqueAuth, RpcReply};
use benchmaster_nfs_proto::v4::{Nfsstat4, Opnum};
use benchmaster_nfs_proto::xdr::{Decoder, Encode, Encoder, List, Opaque};

/// A connection that heals itself.
#[derive(Debug)]
pub(crate) struct Wire {
    address: SocketAddr,
    stream: Option<TcpStream>,
    credential: Vec<u8>,
    xid: u32,
    patience: Duration,
    /// Requests sent again because the reply did not come or the connection broke.
    pub(crate) retries: u64,
    /// Messages received that were not the awaited reply: calls of the server and late replies.
    pub(crate) others: Vec<Vec<u8>>,
}

impl Wire {
    pub(crate) fn new(address: SocketAddr, machine: &str, uid: u32) -> Self {
        let mut e = Encoder::new();
        let machine_name = Opaque(machine.as_bytes());
        e.put(&AuthSys { stamp: 0, machine_name, uid, gid: uid, gids: List::Items(&[]) });
        let credential = e.buffer().to_vec();
        let xid =
            machine.bytes().fold(17, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) << 8;
        let patience = Duration::from_millis(40);
        Self { address, stream: None, credential, xid, patience, retries: 0, others: Vec::new() }
    }

    /// Calls and returns the results after a successful RPC header.
    pub(crate) fn call(
        &mut self,
        program: u32,
        version: u32,
        procedure: u32,
        arguments: impl FnOnce(&mut Encoder),
    ) -> Vec<u8> {
        self.xid = self.xid.wrapping_add(1);
        let mut e = Encoder::new();
        let mark = record::begin(&mut e);
        e.put(&CallHeader {
            xid: self.xid,
            rpc_version: 2,
            program,
            version,
            procedure,
            cred: OpaqueAuth { flavor: AuthFlavor::SYS, body: Opaque(&self.credential) },
            verf: OpaqueAuth::NONE,
        });
        arguments(&mut e);
        record::end(&mut e, mark);
        for _ in 0..200 {
            if let Some(message) = self.attempt(e.buffer()) {
                let mut d = Decoder::new(&message);
                match d.get().unwrap() {
                    Message::Reply { reply: RpcReply::Success(_), .. } => return d.rest().to_vec(),
                    other => panic!("RPC failed: {other:?}"),
                }
            }
            self.retries += 1;
        }
        panic!("no answer after 200 attempts");
    }

    fn attempt(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).ok()?;
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(self.patience)).unwrap();
            self.stream = Some(stream);
        }
        let outcome = self.exchange(request);
        if outcome.is_none() {
            // Late replies on the old connection would only confuse.
            self.stream = None;
        }
        outcome
    }

    fn exchange(&mut self, request: &[u8]) -> Option<Vec<u8>> {
        let stream = self.stream.as_mut()?;
        stream.write_all(request).ok()?;
        loop {
            let mut header = [0; 4];
            stream.read_exact(&mut header).ok()?;
            let header = u32::from_be_bytes(header);
            assert!(header & record::LAST_FRAGMENT != 0, "replies are of one fragment");
            let mut message = vec![0; (header & !record::LAST_FRAGMENT) as usize];
            stream.read_exact(&mut message).ok()?;
            if message[..4] == self.xid.to_be_bytes() && message[4..8] == [0, 0, 0, 1] {
                return Some(message);
            }
            self.others.push(message);
        }
    }

    /// Sends a COMPOUND; returns its status and, for each operation carried out, number, status and body. `ops` puts each
    /// operation with [`op`].
    pub(crate) fn compound(&mut self, minor: u32, ops: &[Vec<u8>]) -> Compound {
        let results = self.call(100_003, 4, 1, |e| {
            e.opaque(b"");
            e.put(&minor);
            e.put(&(ops.len() as u32));
            ops.iter().for_each(|op| e.raw(op));
        });
        Compound { results }
    }
}

/// An operation of a COMPOUND with its arguments, encoded.
pub(crate) fn op(number: Opnum, arguments: impl Encode) -> Vec<u8> {
    let mut e = Encoder::new();
    e.put(&number);
    e.put(&arguments);
    e.buffer().to_vec()
}

/// The results of a COMPOUND.
#[derive(Debug)]
pub(crate) struct Compound {
    results: Vec<u8>,
}

impl Compound {
    /// Status of the last operation.
    pub(crate) fn status(&self) -> Nfsstat4 {
        Decoder::new(&self.results).get().unwrap()
    }

    /// The decoder after status, tag and count of results.
    pub(crate) fn ops(&self) -> Decoder<'_> {
        let mut d = Decoder::new(&self.results);
        let _: (Nfsstat4, Opaque<'_>, u32) = (d.get().unwrap(), d.get().unwrap(), d.get().unwrap());
        d
    }
}

/// Takes the result of one operation: it must be `number`; its body is left in the decoder when it succeeded.
pub(crate) fn result(d: &mut Decoder<'_>, number: Opnum) -> Nfsstat4 {
    assert_eq!(d.get::<Opnum>().unwrap(), number);
    d.get().unwrap()
}
