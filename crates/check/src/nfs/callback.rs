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
    self, CbArgop, CbCompoundArgs, CbResop, CbSequenceOk, CompoundResHeader, Nfsstat4, Sessionid4, Stateid4,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder};

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
    /// CB_NOTIFY_LOCK.
    NotifyLock { fh: Vec<u8>, owner: Vec<u8> },
    /// CB_SEQUENCE, with session, slot and sequence number.
    Sequence { session: Sessionid4, slot: u32, sequence: u32 },
    /// Any other operation.
    Other,
}

/// The reply to a call of the server, and what was called.
pub(crate) fn answer(record: &[u8]) -> (Vec<u8>, Vec<Callback>) {
    let (mut e, mut seen) = (Encoder::new(), Vec::new());
    let mut d = Decoder::new(record);
    let Ok(Message::Call(call)) = d.get() else { return (Vec::new(), seen) };
    match call.procedure {
        v4::PROC_NULL => put_reply(&mut e, call.xid, RpcReply::Success(OpaqueAuth::NONE)),
        v4::PROC_COMPOUND => match d.get::<CbCompoundArgs<'_>>() {
            Err(_) => put_reply(&mut e, call.xid, RpcReply::GarbageArgs),
            Ok(mut compound) => {
                let mut results = Vec::new();
                while let Some(Ok(op)) = compound.ops.take::<CbArgop<'_>>() {
                    let (result, callback) = operation(&op);
                    seen.push(callback);
                    let status = result.status();
                    results.push(result);
                    if status != Nfsstat4::OK {
                        break;
                    }
                }
                put_reply(&mut e, call.xid, RpcReply::Success(OpaqueAuth::NONE));
                let status = results.last().map_or(Nfsstat4::OK, CbResop::status);
                e.put(&CompoundResHeader { status, tag: compound.tag.0.into(), count: results.len() as u32 });
                results.iter().for_each(|result| e.put(result));
            }
        },
        _ => put_reply(&mut e, call.xid, RpcReply::ProcUnavail),
    }
    (e.buffer().to_vec(), seen)
}

fn operation(op: &CbArgop<'_>) -> (CbResop<'static>, Callback) {
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
        // Attributes as the server has them are right where nothing was written.
        CbArgop::Getattr(_) => (CbResop::Getattr(Err(Nfsstat4::BADHANDLE)), Callback::Other),
        other => (CbResop::Unimplemented(other.opnum(), Nfsstat4::NOTSUPP), Callback::Other),
    }
}

/// A port that a server of 4.0 calls.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Callback>>>,
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
        let (list, over) = (Arc::clone(&seen), Arc::clone(&end));
        let serve = move || {
            let mut connections: Vec<(TcpStream, Joiner)> = Vec::new();
            while !over.load(Ordering::Relaxed) {
                if let Ok((stream, _)) = listener.accept()
                    && stream.set_nonblocking(true).is_ok()
                {
                    connections.push((stream, Joiner::new()));
                }
                connections.retain_mut(|(stream, joiner)| serve(stream, joiner, &list));
                std::thread::sleep(STEP);
            }
        };
        let thread = std::thread::Builder::new().name("check-callbacks".into()).spawn(serve);
        Ok(Self { address, seen, end, thread: Some(thread.map_err(failed)?) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
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
fn serve(stream: &mut TcpStream, joiner: &mut Joiner, list: &Mutex<Vec<Callback>>) -> bool {
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
            let (reply, called) = answer(joiner.record());
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
