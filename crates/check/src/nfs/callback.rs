//! The service that servers call: the back channel of 4.1 and later, a port of its own with 4.0.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record::{Joiner, framed};
use benchmaster_nfs_proto::rpc::{Message, OpaqueAuth, RpcReply, put_reply};
use benchmaster_nfs_proto::v4::{
    self, Attributes, Bitmap4, CbArgop, CbCompoundArgs, CbGetattrOk, CbResop, CbSequenceOk,
    CompoundResHeader, Nfsstat4, Nfstime4, Sessionid4, Stateid4, fattr4,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder};

use super::ops::Attrs;
use crate::Trouble;

/// How often a thread looks whether it is to end.
const STEP: Duration = Duration::from_millis(2);
/// No callback is longer.
const LONGEST: usize = 1 << 20;

/// What a server called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Callback {
    /// CB_RECALL.
    Recall { stateid: Stateid4, fh: Vec<u8> },
    /// CB_NOTIFY: kinds of changes with their values, in order.
    Notify { stateid: Stateid4, fh: Vec<u8>, changes: Vec<(Bitmap4, Vec<u8>)> },
    /// CB_GETATTR of these attributes.
    Getattr { fh: Vec<u8>, asked: Bitmap4 },
    /// CB_RECALL_SLOT.
    RecallSlot { target: u32 },
    /// CB_NOTIFY_LOCK.
    NotifyLock { fh: Vec<u8>, owner: Vec<u8> },
    /// CB_SEQUENCE, with session, slot and sequence number.
    Sequence { session: Sessionid4, slot: u32, sequence: u32 },
    /// Any other operation.
    Other,
}

/// What the holder of a write delegation says of the file (CB_GETATTR).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) size: u64,
    pub(crate) change: u64,
    pub(crate) times: Option<Nfstime4>,
}

/// The reply to a call of the server, and what was called.
pub(crate) fn answer(record: &[u8], held: Option<Held>) -> (Vec<u8>, Vec<Callback>) {
    let (mut e, mut seen, mut values) = (Encoder::new(), Vec::new(), Attrs::none());
    let mut d = Decoder::new(record);
    let Ok(Message::Call(call)) = d.get() else { return (Vec::new(), seen) };
    match call.procedure {
        v4::PROC_NULL => put_reply(&mut e, call.xid, RpcReply::Success(OpaqueAuth::NONE)),
        v4::PROC_COMPOUND => match d.get::<CbCompoundArgs<'_>>() {
            Err(_) => put_reply(&mut e, call.xid, RpcReply::GarbageArgs),
            Ok(mut compound) => {
                let (mut results, mut last) = (Vec::new(), Nfsstat4::OK);
                let encoded = |result: &CbResop<'_>| {
                    let mut e = Encoder::new();
                    e.put(result);
                    e.buffer().to_vec()
                };
                while let Some(Ok(op)) = compound.ops.take::<CbArgop<'_>>() {
                    let (result, callback) = operation(&op, held.as_ref(), &mut values);
                    seen.push(callback);
                    let status = result.status();
                    results.push(encoded(&result));
                    last = status;
                    if status != Nfsstat4::OK {
                        break;
                    }
                }
                put_reply(&mut e, call.xid, RpcReply::Success(OpaqueAuth::NONE));
                let (tag, count) = (compound.tag.0.into(), results.len() as u32);
                e.put(&CompoundResHeader { status: last, tag, count });
                results.iter().for_each(|result| e.raw(result));
            }
        },
        _ => put_reply(&mut e, call.xid, RpcReply::ProcUnavail),
    }
    (e.buffer().to_vec(), seen)
}

/// Carries an operation out; `values` keeps those of attributes.
fn operation<'v>(op: &CbArgop<'_>, held: Option<&Held>, values: &'v mut Attrs) -> (CbResop<'v>, Callback) {
    match op {
        CbArgop::Sequence(args) => (
            CbResop::Sequence(Ok(CbSequenceOk {
                sessionid: args.sessionid,
                sequenceid: args.sequenceid,
                slotid: args.slotid,
                highest_slotid: args.highest_slotid,
                target_highest_slotid: args.highest_slotid,
            })),
            Callback::Sequence { session: args.sessionid, slot: args.slotid, sequence: args.sequenceid },
        ),
        CbArgop::Recall(args) => {
            (CbResop::Recall(Ok(())), Callback::Recall { stateid: args.stateid, fh: args.fh.0.to_vec() })
        }
        CbArgop::NotifyLock(args) => (
            CbResop::NotifyLock(Ok(())),
            Callback::NotifyLock { fh: args.fh.0.to_vec(), owner: args.lock_owner.owner.0.to_vec() },
        ),
        CbArgop::RecallAny(_) => (CbResop::RecallAny(Ok(())), Callback::Other),
        CbArgop::Getattr(args) => {
            let callback = Callback::Getattr { fh: args.fh.0.to_vec(), asked: args.attr_request };
            // Nothing is held: attributes as the server has them are right.
            let Some(held) = held else { return (CbResop::Getattr(Err(Nfsstat4::BADHANDLE)), callback) };
            *values = held.attributes(args.attr_request);
            (CbResop::Getattr(Ok(CbGetattrOk { obj_attributes: values.fattr() })), callback)
        }
        CbArgop::Notify(args) => {
            let changes = args.changes.iter().map(|change| (change.mask, change.values.0.to_vec())).collect();
            let (stateid, fh) = (args.stateid, args.fh.0.to_vec());
            (CbResop::Notify(Ok(())), Callback::Notify { stateid, fh, changes })
        }
        CbArgop::RecallSlot(args) => {
            (CbResop::RecallSlot(Ok(())), Callback::RecallSlot { target: args.target_highest_slotid })
        }
        other => (CbResop::Unimplemented(other.opnum(), Nfsstat4::NOTSUPP), Callback::Other),
    }
}

impl Held {
    fn attributes(&self, asked: Bitmap4) -> Attrs {
        let when = |bit: u32| asked.contains(bit);
        Attrs::of(&Attributes {
            size: when(fattr4::SIZE).then_some(self.size),
            change: when(fattr4::CHANGE).then_some(self.change),
            time_deleg_access: self.times.filter(|_| when(fattr4::TIME_DELEG_ACCESS)),
            time_deleg_modify: self.times.filter(|_| when(fattr4::TIME_DELEG_MODIFY)),
            ..Attributes::default()
        })
    }
}

/// A port that a server of 4.0 calls.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Callback>>>,
    held: Arc<Mutex<Option<Held>>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Listener {
    /// Listens at an address of this host.
    pub(crate) fn start(ip: IpAddr) -> Result<Self, Trouble> {
        let failed = |error: std::io::Error| Trouble::System(format!("the port for callbacks: {error}"));
        let listener = TcpListener::bind((ip, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (seen, end) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let held = Arc::<Mutex<Option<Held>>>::default();
        let (list, over, says) = (Arc::clone(&seen), Arc::clone(&end), Arc::clone(&held));
        let serve = move || {
            let mut connections: Vec<(TcpStream, Joiner)> = Vec::new();
            while !over.load(Ordering::Relaxed) {
                if let Ok((stream, _)) = listener.accept()
                    && stream.set_nonblocking(true).is_ok()
                {
                    connections.push((stream, Joiner::new()));
                }
                connections.retain_mut(|(stream, joiner)| serve(stream, joiner, &list, &says));
                std::thread::sleep(STEP);
            }
        };
        let thread = std::thread::Builder::new().name("check-callbacks".into()).spawn(serve);
        Ok(Self { address, seen, held, end, thread: Some(thread.map_err(failed)?) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on CB_GETATTR is answered so.
    pub(crate) fn hold(&self, held: Option<Held>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = held;
    }

    /// Forgets what was called.
    pub(crate) fn clear(&self) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits for a call that `wanted` takes, at most for `patience`; takes it off the list.
    pub(crate) fn called(&self, patience: Duration, wanted: impl Fn(&Callback) -> bool) -> Option<Callback> {
        let deadline = Instant::now() + patience;
        loop {
            {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(at) = seen.iter().position(&wanted) {
                    return Some(seen.remove(at));
                }
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(STEP);
        }
    }
}

/// Answers what came on a connection; `false` when it is over.
fn serve(
    stream: &mut TcpStream,
    joiner: &mut Joiner,
    list: &Mutex<Vec<Callback>>,
    held: &Mutex<Option<Held>>,
) -> bool {
    let mut piece = [0; 4096];
    let mut rest = match stream.read(&mut piece) {
        Ok(0) => return false,
        Ok(n) => &piece[..n],
        Err(error) => {
            return matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
            );
        }
    };
    while !rest.is_empty() {
        let Ok(fed) = joiner.feed(rest, LONGEST) else { return false };
        rest = rest.get(fed.consumed..).unwrap_or_default();
        if fed.complete {
            let held = *held.lock().unwrap_or_else(PoisonError::into_inner);
            let (reply, called) = answer(joiner.record(), held);
            *joiner = Joiner::new();
            list.lock().unwrap_or_else(PoisonError::into_inner).extend(called);
            if stream.write_all(&framed(&reply)).is_err() {
                return false;
            }
        }
    }
    true
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has nothing to give back.
            let _ = thread.join();
        }
    }
}
