//! Calls and their replies.

use std::collections::{HashMap, HashSet};

use benchmaster_nfs_proto::rpc::{CallHeader, Message, RpcReply};
use benchmaster_nfs_proto::xdr::Decoder;
use benchmaster_nfs_proto::{mount, v3};

use super::operation::{self, Operation};
use super::stream::End;
use super::{Captured, Exchange};

#[derive(Debug)]
struct Pending {
    at_ns: u64,
    call: Vec<u8>,
}

/// Calls that wait for their replies, and those that have them.
#[derive(Debug, Default)]
pub(super) struct Exchanges {
    pending: HashMap<(End, End, u32), Pending>,
    /// Answered before: what comes again was sent again.
    answered: HashSet<(End, End, u32)>,
    /// Calls of other programs, such as callbacks on the same connection.
    foreign: HashSet<(End, End, u32)>,
    done: Vec<Exchange>,
}

impl Exchanges {
    /// Takes in a record that `from` sent to `to`.
    pub(super) fn record(&mut self, from: End, to: End, at_ns: u64, record: &[u8], captured: &mut Captured) {
        let mut decoder = Decoder::new(record);
        match decoder.get::<Message<'_>>() {
            Ok(Message::Call(call)) if is_ours(&call) => {
                let key = (from, to, call.xid);
                if self.pending.contains_key(&key) {
                    return captured.unusable("calls sent again", 1);
                }
                // Numbers may be used once more later.
                self.answered.remove(&key);
                self.pending.insert(key, Pending { at_ns, call: record.to_vec() });
            }
            Ok(Message::Call(call)) => {
                let what = "callbacks, and calls of other programs and versions".to_owned();
                *captured.left_out.entry(what).or_default() += 1;
                self.foreign.insert((from, to, call.xid));
            }
            Ok(Message::Reply { xid, reply }) => {
                let key = (to, from, xid);
                let Some(pending) = self.pending.remove(&key) else {
                    if self.foreign.remove(&key) {
                        return;
                    }
                    let what = if self.answered.contains(&key) {
                        "replies sent again"
                    } else {
                        "replies without a call"
                    };
                    return captured.unusable(what, 1);
                };
                self.answered.insert(key);
                if !matches!(reply, RpcReply::Success(_)) {
                    return captured.unusable("calls that were refused", 1);
                }
                match operations(&pending.call, decoder) {
                    Some(operations) => self.done.push(Exchange {
                        client: to.0,
                        server: from.0,
                        at_ns: pending.at_ns,
                        took_ns: at_ns.saturating_sub(pending.at_ns),
                        operations,
                    }),
                    None => captured.unusable("calls that do not decode", 1),
                }
            }
            Err(_) => captured.unusable("records that are not RPC", 1),
        }
    }

    /// All exchanges, in the order of the calls.
    pub(super) fn end(mut self, captured: &mut Captured) -> Vec<Exchange> {
        captured.unusable("calls without a reply", self.pending.len() as u64);
        self.done.sort_by_key(|exchange| exchange.at_ns);
        self.done
    }
}

fn is_ours(call: &CallHeader<'_>) -> bool {
    matches!((call.program, call.version), (v3::PROGRAM, 3 | 4) | (mount::PROGRAM, 3))
}

/// What a call asks for and got.
fn operations(call: &[u8], mut reply: Decoder<'_>) -> Option<Vec<Operation>> {
    let mut arguments = Decoder::new(call);
    let Ok(Message::Call(header)) = arguments.get() else { return None };
    match (header.program, header.version, header.procedure) {
        (mount::PROGRAM, ..) => operation::mount(header.procedure, &mut arguments, &mut reply),
        (_, _, 0) => Some(vec![Operation::Other("NULL")]),
        (_, 3, procedure) => operation::v3(v3::Proc3(procedure), &mut arguments, &mut reply),
        _ => operation::v4(&mut arguments, &mut reply),
    }
}
