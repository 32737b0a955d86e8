//! Slots: at most one execution of every request, and its reply for those who ask again (RFC 8881 §2.10.6.1).

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Nfsstat4, SequenceArgs, SequenceOk};
use benchmaster_nfs_proto::xdr::Encoder;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::client::Principal;
use crate::cred::Credentials;

/// How much of a request is looked at to tell a retry from another request in its place.
const FINGERPRINT_BYTES: usize = 128;
/// A slot's buffer that grew beyond this is given back when the next reply is small.
const KEEP_CAPACITY: usize = 4096;
/// Number of SEQUENCE on the wire.
const OP_SEQUENCE: u32 = 53;

/// What is known of a request when its leading SEQUENCE is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Request<'r> {
    /// Length of the RPC message.
    pub len: usize,
    /// Tag of the compound.
    pub tag: &'r [u8],
    /// Number of operations, SEQUENCE included.
    pub operations: u32,
    /// The encoded operations after SEQUENCE.
    pub rest: &'r [u8],
}

/// One slot, in cache lines of its own: neighbours are used by other threads.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct Slot {
    state: Mutex<SlotState>,
}

#[derive(Debug, Default)]
struct SlotState {
    /// Of the last request; 0 before the first.
    sequence: u32,
    running: bool,
    kept: Kept,
    reply: Vec<u8>,
    /// In whose name the last request came: its reply goes to no other caller (RFC 8881 §2.10.6.1.3.1).
    caller: Option<Principal>,
    fingerprint: u64,
    /// Delegations (`other` of their stateids) that the last request was granted.
    granted: SmallVec<[[u8; 12]; 1]>,
}

/// What a retry of the last request gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Kept {
    /// There was no request (RFC 8881 §18.36.4: SEQ_MISORDERED).
    #[default]
    Never,
    /// Its reply.
    Reply,
    /// RETRY_UNCACHED_REP as status of the operation after SEQUENCE.
    Nothing,
}

/// Outcome of claiming a slot.
pub(super) enum Claim {
    New,
    Replay(Vec<u8>),
    /// Retry of a request whose reply was not kept.
    Uncached,
    Status(Nfsstat4),
}

impl Slot {
    /// Claims the slot for a request, or says what a retry gets (RFC 8881 §18.46.3).
    pub(super) fn claim(&self, args: &SequenceArgs, who: &Credentials, request: &Request<'_>) -> Claim {
        let caller = Some(Principal::from(who));
        let mut state = self.state.lock();
        let again = is_broken(Mutant::SessionExecutesAgain) && args.sequenceid == state.sequence;
        if args.sequenceid == state.sequence.wrapping_add(1) || again || is_broken(Mutant::SequenceUnchecked)
        {
            if state.running {
                // The reply to the last request is still to come: the client may not use the slot yet.
                return Claim::Status(Nfsstat4::DELAY);
            }
            state.sequence = args.sequenceid;
            state.running = true;
            state.kept = Kept::Nothing;
            state.caller = caller;
            state.fingerprint = fingerprint(request);
            state.granted.clear();
            return Claim::New;
        }
        if args.sequenceid != state.sequence || state.kept == Kept::Never {
            let wrong = if is_broken(Mutant::MisorderedIsBadSlot) {
                Nfsstat4::BADSLOT
            } else {
                Nfsstat4::SEQ_MISORDERED
            };
            return Claim::Status(wrong);
        }
        if state.caller != caller || state.fingerprint != fingerprint(request) {
            return Claim::Status(Nfsstat4::SEQ_FALSE_RETRY);
        }
        match state.kept {
            _ if state.running => Claim::Status(Nfsstat4::DELAY),
            Kept::Reply => Claim::Replay(state.reply.clone()),
            _ => Claim::Uncached,
        }
    }

    /// Ends the request's execution: keeps what `keep` writes, if anything.
    pub(super) fn release(&self, keep: Option<impl FnOnce(&mut Vec<u8>)>) {
        let mut state = self.state.lock();
        state.running = false;
        if let Some(keep) = keep {
            state.reply.clear();
            if state.reply.capacity() > KEEP_CAPACITY {
                state.reply.shrink_to(KEEP_CAPACITY);
            }
            keep(&mut state.reply);
            state.kept = Kept::Reply;
        }
    }

    /// Gives back the memory of the reply that is kept.
    pub(super) fn forget(&self) {
        let mut state = self.state.lock();
        state.reply = Vec::new();
        if state.kept == Kept::Reply {
            state.kept = Kept::Nothing;
        }
    }

    /// As if the request in execution had not come. The reply before it, which its coming has acknowledged, is gone.
    pub(super) fn take_back(&self) {
        let mut state = self.state.lock();
        state.running = false;
        state.sequence = state.sequence.wrapping_sub(1);
        state.kept = if state.sequence == 0 { Kept::Never } else { Kept::Nothing };
    }

    /// As if the request with this number had been answered.
    #[cfg(test)]
    pub(super) fn set_sequence(&self, sequence: u32) {
        self.state.lock().sequence = sequence;
    }

    pub(super) fn running(&self) -> bool {
        self.state.lock().running
    }

    /// Remembers that the request in execution granted a delegation.
    pub(super) fn granted(&self, other: [u8; 12]) {
        self.state.lock().granted.push(other);
    }

    /// The sequence number of the request that granted a delegation, while the client may not have seen the reply:
    /// until it uses the slot again (RFC 8881 §2.10.6.3).
    pub(super) fn grant(&self, other: &[u8; 12]) -> Option<u32> {
        let state = self.state.lock();
        state.granted.contains(other).then_some(state.sequence)
    }
}

/// The COMPOUND's result for the retry of a request whose reply was not kept: SEQUENCE's result, and
/// RETRY_UNCACHED_REP for the operation after it.
pub(super) fn uncached(result: &SequenceOk, request: &Request<'_>) -> Vec<u8> {
    let second = request.rest.first_chunk().map_or(0, |word| u32::from_be_bytes(*word));
    let mut out = Encoder::new();
    out.put(&Nfsstat4::RETRY_UNCACHED_REP);
    out.opaque(request.tag);
    out.put(&2u32);
    out.put(&OP_SEQUENCE);
    out.put(&Nfsstat4::OK);
    out.put(result);
    out.put(&second);
    out.put(&Nfsstat4::RETRY_UNCACHED_REP);
    out.buffer().to_vec()
}

/// Tells requests apart: the number of operations, their length and the beginning of what follows SEQUENCE. Neither xid
/// nor tag nor SEQUENCE's own arguments: these may differ in an honest retry.
fn fingerprint(request: &Request<'_>) -> u64 {
    const KEY: u64 = 0x9e37_79b9_7f4a_7c15;
    // Sixteen bytes a multiplication; the halves of the product depend on all bits of both factors.
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product as u64) ^ (product >> 64) as u64
    };
    let head = request.rest.get(..FINGERPRINT_BYTES).unwrap_or(request.rest);
    let start = fold(KEY ^ u64::from(request.operations), KEY.rotate_left(32) ^ request.rest.len() as u64);
    let (blocks, tail) = head.as_chunks::<16>();
    let mut last = [0; 16];
    last.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
    blocks.iter().chain([&last]).fold(start, |sum, block| {
        let block = u128::from_le_bytes(*block);
        fold(block as u64 ^ KEY, (block >> 64) as u64 ^ sum)
    })
}
