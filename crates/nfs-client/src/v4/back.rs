//! What the server calls: CB_NULL and CB_COMPOUND, on the session's back channel (RFC 8881 §20) or, in version 4.0,
//! on a connection that the server makes (RFC 7530 §16). Answered at once; what follows from it is done by tasks.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use benchmaster_nfs_proto::rpc::{Message, OpaqueAuth, RPC_VERSION, RpcReply, put_reply};
use benchmaster_nfs_proto::v4::{
    self, CbArgop, CbCompoundHeader, CbGetattrOk, CbOpnum, CbSequenceArgs, CbSequenceOk, Fattr4, NFS_CB,
    Nfsstat4, PROC_COMPOUND, PROC_NULL, Sessionid4, fattr4,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder};

use super::Inner;
use super::establish::CALLBACK_PROGRAM;
use super::slots::next_sequence;
use crate::counters::Event;
use crate::rpc::{CallHandler, CallbackListener};
use crate::types::Handle;

/// Operations of one callback at most.
const MOST: u32 = 16;

/// The back channel, and what else belongs to a session or client id.
#[derive(Debug, Default)]
pub(super) struct Channel {
    session: Cell<Sessionid4>,
    slots: RefCell<Vec<BackSlot>>,
    /// Number of the next CREATE_SESSION.
    pub(super) sequence: Cell<u32>,
    /// Generation of the first connection when it was bound.
    pub(super) generation: Cell<u64>,
    /// Largest READ and WRITE of the session.
    pub(super) limits: Cell<(u32, u32)>,
    /// Number that callbacks of version 4.0 carry.
    pub(super) ident: Cell<u32>,
}

#[derive(Debug, Default)]
struct BackSlot {
    sequence: u32,
    /// The last results, to be given again.
    results: Vec<u8>,
}

/// What to do with a callback of a session.
enum Begun {
    New(usize),
    Again(usize),
}

impl Channel {
    /// A new session.
    pub(super) fn begin(&self, session: Sessionid4, slots: u32) {
        self.session.set(session);
        let mut all = self.slots.borrow_mut();
        all.clear();
        all.resize_with(slots as usize, BackSlot::default);
    }

    fn sequence(&self, args: &CbSequenceArgs<'_>) -> Result<Begun, Nfsstat4> {
        if args.sessionid != self.session.get() {
            return Err(Nfsstat4::BADSESSION);
        }
        let number = args.slotid as usize;
        let mut slots = self.slots.borrow_mut();
        let slot = slots.get_mut(number).ok_or(Nfsstat4::BADSLOT)?;
        if args.sequenceid == next_sequence(slot.sequence) {
            slot.sequence = args.sequenceid;
            slot.results.clear();
            return Ok(Begun::New(number));
        }
        if args.sequenceid == slot.sequence && !slot.results.is_empty() {
            Ok(Begun::Again(number))
        } else {
            Err(Nfsstat4::SEQ_MISORDERED)
        }
    }
}

/// Starts answering calls of the server.
pub(super) fn serve(inner: &Rc<Inner>) -> io::Result<()> {
    let this = Rc::downgrade(inner);
    let handler: CallHandler = Rc::new(move |_, call, e| {
        if let Some(inner) = this.upgrade() {
            inner.answer(call, e);
        }
    });
    if inner.has_sessions() {
        inner.rpc.set_handler(handler);
        return Ok(());
    }
    if inner.options.tls.is_some() || inner.options.gss.is_some() {
        // RFC 9289 §5.1.1 knows only calls within the session; with Kerberos the server would need a ticket for us.
        return Ok(());
    }
    let ours = inner.rpc.local_address(0).map_or_else(|| [0, 0, 0, 0].into(), |address| address.ip());
    let (server, ours) = (inner.options.address, SocketAddr::new(ours, 0));
    let listener = CallbackListener::new(&inner.reactor, server, ours, handler)?;
    *inner.listener.borrow_mut() = Some(listener);
    Ok(())
}

impl Inner {
    fn answer(self: &Rc<Self>, call: &[u8], e: &mut Encoder) {
        let mut d = Decoder::new(call);
        let Ok(Message::Call(header)) = d.get() else { return };
        let xid = header.xid;
        if header.rpc_version != RPC_VERSION {
            return put_reply(e, xid, RpcReply::RpcMismatch(RPC_VERSION, RPC_VERSION));
        }
        if header.program != CALLBACK_PROGRAM {
            return put_reply(e, xid, RpcReply::ProgUnavail);
        }
        if header.version != NFS_CB {
            return put_reply(e, xid, RpcReply::ProgMismatch(NFS_CB, NFS_CB));
        }
        if !self.has_sessions() {
            self.counters.event(Event::Callback);
        }
        match header.procedure {
            PROC_NULL => put_reply(e, xid, RpcReply::Success(OpaqueAuth::NONE)),
            PROC_COMPOUND => {
                let Ok(compound) = d.get::<CbCompoundHeader<'_>>() else {
                    return put_reply(e, xid, RpcReply::GarbageArgs);
                };
                put_reply(e, xid, RpcReply::Success(OpaqueAuth::NONE));
                self.compound(&compound, &mut d, e);
            }
            _ => put_reply(e, xid, RpcReply::ProcUnavail),
        }
    }

    fn compound(self: &Rc<Self>, header: &CbCompoundHeader<'_>, d: &mut Decoder<'_>, e: &mut Encoder) {
        let start = e.mark();
        e.put(&Nfsstat4::OK);
        e.opaque(header.tag.0);
        let count_at = e.mark();
        e.put(&0u32);
        if (header.minorversion > 0) != self.has_sessions() || header.minorversion > self.minor {
            return e.patch_u32(start, Nfsstat4::MINOR_VERS_MISMATCH.0);
        }
        let (mut count, mut slot) = (0, None);
        for at in 0..header.count.min(MOST + 1) {
            let number = d.get::<CbOpnum>().unwrap_or(CbOpnum::ILLEGAL);
            let status = if at == MOST {
                e.put(&number);
                Err(Nfsstat4::RESOURCE)
            } else if number == CbOpnum::SEQUENCE && at == 0 && self.has_sessions() {
                match self.sequence(d, e) {
                    Ok(Begun::New(number)) => {
                        slot = Some(number);
                        Ok(())
                    }
                    Ok(Begun::Again(number)) => {
                        e.rollback(start);
                        return e.raw(&self.back.slots.borrow()[number].results);
                    }
                    Err(status) => Err(status),
                }
            } else if self.has_sessions() && at == 0 {
                e.put(&number);
                Err(Nfsstat4::OP_NOT_IN_SESSION)
            } else {
                self.operation(number, d, e)
            };
            count += 1;
            if let Err(status) = status {
                e.put(&status);
                e.patch_u32(start, status.0);
                break;
            }
        }
        e.patch_u32(count_at, count);
        if let Some(number) = slot
            && let Some(slot) = self.back.slots.borrow_mut().get_mut(number)
        {
            slot.results.extend_from_slice(&e.buffer()[start.buffer..]);
        }
    }

    fn sequence(&self, d: &mut Decoder<'_>, e: &mut Encoder) -> Result<Begun, Nfsstat4> {
        e.put(&CbOpnum::SEQUENCE);
        let args: CbSequenceArgs<'_> = d.get().map_err(|_| Nfsstat4::BADXDR)?;
        let begun = self.back.sequence(&args)?;
        let highest = (self.back.slots.borrow().len() as u32).saturating_sub(1);
        let ok = CbSequenceOk {
            sessionid: args.sessionid,
            sequenceid: args.sequenceid,
            slotid: args.slotid,
            highest_slotid: highest,
            target_highest_slotid: highest,
        };
        e.put(&Nfsstat4::OK);
        e.put(&ok);
        Ok(begun)
    }

    /// One operation. On success number and result are written, else only the number.
    fn operation(
        self: &Rc<Self>,
        number: CbOpnum,
        d: &mut Decoder<'_>,
        e: &mut Encoder,
    ) -> Result<(), Nfsstat4> {
        let known =
            CbOpnum::ALL.contains(&number) && number != CbOpnum::ILLEGAL && number.min_minor() <= self.minor;
        if !known {
            e.put(&CbOpnum::ILLEGAL);
            return Err(Nfsstat4::OP_ILLEGAL);
        }
        e.put(&number);
        let op = CbArgop::decode_body(number, d).map_err(|_| Nfsstat4::BADXDR)?;
        match op {
            CbArgop::Getattr(args) => {
                let handle = Handle::new(args.fh.0).ok_or(Nfsstat4::BADHANDLE)?;
                let (change, size) = self.modified(&handle).ok_or(Nfsstat4::BADHANDLE)?;
                let mut values = Encoder::new();
                let attributes =
                    v4::Attributes { change: Some(change), size: Some(size), ..Default::default() };
                attributes.encode_masked(&mut values, args.attr_request);
                let obj_attributes: Fattr4<'_> =
                    Decoder::new(values.buffer()).get().map_err(|_| Nfsstat4::SERVERFAULT)?;
                debug_assert!(obj_attributes.attrmask.len() <= 2 && fattr4::SIZE > fattr4::CHANGE);
                e.put(&Nfsstat4::OK);
                e.put(&CbGetattrOk { obj_attributes });
                return Ok(());
            }
            CbArgop::Recall(args) => {
                let handle = Handle::new(args.fh.0).ok_or(Nfsstat4::BADHANDLE)?;
                self.recalled(handle, args.stateid)?;
            }
            CbArgop::RecallAny(args) => self.give_back_some(args.objects_to_keep, args.type_mask.word0()),
            CbArgop::RecallSlot(args) => {
                if self.slots.target(args.target_highest_slotid) {
                    self.counters.event(Event::SlotsLowered);
                }
                self.tell_highest_slot();
            }
            // No layouts are asked for.
            CbArgop::Unimplemented(CbOpnum::LAYOUTRECALL) => return Err(Nfsstat4::NOMATCHING_LAYOUT),
            // No directory is delegated to this client.
            CbArgop::Notify(_) => return Err(Nfsstat4::NOTSUPP),
            CbArgop::PushDeleg(_) => return Err(Nfsstat4::REJECT_DELEG),
            // Locks are polled for; wants are not expressed.
            CbArgop::NotifyLock(_) | CbArgop::RecallableObjAvail(_) | CbArgop::WantsCancelled(_) => {}
            CbArgop::Sequence(_) => return Err(Nfsstat4::SEQUENCE_POS),
            CbArgop::Unimplemented(_) => return Err(Nfsstat4::NOTSUPP),
            CbArgop::Illegal(_) => return Err(Nfsstat4::OP_ILLEGAL),
        }
        e.put(&Nfsstat4::OK);
        Ok(())
    }

    /// After CB_RECALL_SLOT: a SEQUENCE shows that the higher slots are not in use any more (RFC 8881 §20.8.3).
    fn tell_highest_slot(self: &Rc<Self>) {
        let this = Rc::downgrade(self);
        self.reactor.spawn(async move {
            if let Some(inner) = this.upgrade() {
                // A failure is met by the next operation, too.
                let _ = inner.renew(false).await;
            }
        });
    }
}
