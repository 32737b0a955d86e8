//! One call, from the wish to the result.

use std::cell::Cell;
use std::future::poll_fn;
use std::time::Instant;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::rpc::{Message, REPLY, RpcReply};
use benchmaster_nfs_proto::xdr::{Bulk, Decoder, Encoder, XdrError};

use super::connection::{Connection, PendingCall, Sent};
use super::gss::{Denied, Protected};
use super::incoming::Taken;
use super::outgoing::Message as Request;
use super::{Call, Rpc, RpcError};
use crate::counters::{Counters, Event, OpCounters};

/// Reads the results of a call and puts their data into the buffer given. Returns how many bytes of data are still to come.
type Results<'d> = &'d mut dyn FnMut(&mut Decoder<'_>, &mut [u8]) -> Result<usize, XdrError>;

impl Rpc {
    /// Calls a procedure. `encode` writes the arguments, and is called again when the request has to be sent again;
    /// `decode` reads the results.
    ///
    /// # Errors
    /// See [`RpcError`]; errors of the protocol called are results to `decode`.
    pub async fn call<R>(
        &self,
        call: Call<'_>,
        encode: impl Fn(&mut Encoder, Bulk<'_>),
        decode: impl Fn(&mut Decoder<'_>) -> Result<R, XdrError>,
    ) -> Result<R, RpcError> {
        self.call_into(call, &mut [], encode, |d, _| Ok((decode(d)?, 0))).await
    }

    /// Calls a procedure whose results end with data that belong into `destination`. `decode` reads the results and
    /// puts the data there with [`land`](super::land), whose value it returns beside its own: data of large replies are
    /// received into `destination` after it.
    ///
    /// # Errors
    /// See [`RpcError`].
    pub async fn call_into<R>(
        &self,
        call: Call<'_>,
        destination: &mut [u8],
        encode: impl Fn(&mut Encoder, Bulk<'_>),
        mut decode: impl FnMut(&mut Decoder<'_>, &mut [u8]) -> Result<(R, usize), XdrError>,
    ) -> Result<R, RpcError> {
        let mut value = None;
        let mut read = |d: &mut Decoder<'_>, destination: &mut [u8]| {
            let (result, rest) = decode(d, destination)?;
            value = Some(result);
            Ok(rest)
        };
        self.transact(&call, destination, &encode, &mut read).await?;
        value.ok_or(RpcError::TimedOut)
    }

    /// The part of a call that does not depend on its types: compiled once, not once per procedure. Returns when it began.
    ///
    /// All of it is one future: each one within another would copy what it is given, once when it is made and once when it
    /// is first polled, and what it returns, which shows in the cost of a call.
    pub(crate) async fn transact(
        &self,
        call: &Call<'_>,
        destination: &mut [u8],
        encode: Request<'_>,
        decode: Results<'_>,
    ) -> Result<Instant, RpcError> {
        let inner = &*self.0;
        let counting = Counting::new(self, call);
        let connection = self.choose(call.connection);
        let mut protected = inner.gss.as_ref().and_then(|gss| gss.call(call));
        let sealed = protected.as_ref().is_some_and(|protected| protected.is_sealed());
        // What is sealed is not the caller's memory any more.
        let payload = if sealed { &[][..] } else { call.payload };
        let place = connection
            .place(!destination.is_empty() && destination.len() >= super::incoming::LANDING && !sealed);
        let failure = loop {
            if counting.transmissions.get() > 0 && is_broken(Mutant::NewNumberOnResend) {
                return Box::pin(self.transact(call, destination, encode, decode)).await;
            }
            let deadline = counting.began + inner.patience;
            if let Some(protected) = &mut protected {
                let sealing = protected.seal(self, call, place.xid(), encode, deadline);
                if let Err(error) = Box::pin(sealing).await {
                    break error;
                }
            }
            let message = |e: &mut Encoder, payload: Bulk<'_>| match &protected {
                None => {
                    inner.write_header(e, place.xid(), call);
                    encode(e, payload);
                }
                Some(protected) => {
                    e.raw(&protected.front);
                    if !sealed {
                        encode(e, payload);
                    }
                }
            };
            let mut waited = !connection.is_up();
            if waited && !connection.up(deadline).await {
                break connection.failure();
            }
            // Reading the clock shows in the cost of a call: a request that waited for nothing leaves about now.
            waited |= counting.transmissions.get() > 0 || call.since.is_some();
            let now = if waited { inner.reactor.now() } else { counting.began };
            let until = (now + inner.options.timeout).min(deadline);
            let sent = match connection.send(&place, payload, &message, until) {
                Sent::Queued(bytes) => bytes,
                Sent::Direct => {
                    let sent = connection.send_from(&place, payload, &message, deadline).await;
                    place.wait_until((inner.reactor.now() + inner.options.timeout).min(deadline));
                    sent
                }
            };
            counting.transmitted(sent);
            let mut refused = None;
            let taken = poll_fn(|context| {
                connection.take(&place, context, destination, &mut |bytes, whole, destination| {
                    let mut d = if whole { Decoder::new(bytes) } else { Decoder::of_front(bytes) };
                    let mut header = || match &protected {
                        None => header_of(&mut d, call).and_then(|()| Ok(decode(&mut d, destination)?)),
                        Some(protected) => protected_reply(protected, &inner.counters, &mut d, call, |d| {
                            decode(d, destination)
                        }),
                    };
                    match header() {
                        Ok(rest) => Ok(rest),
                        Err(Reply::Bad(error)) => Err(error),
                        Err(Reply::Failed(error)) => {
                            refused = Some(error);
                            Ok(0)
                        }
                    }
                })
            })
            .await;
            match taken {
                Taken::Reply => match refused {
                    None => {
                        counting.done(connection, &place, None);
                        return Ok(counting.began);
                    }
                    Some(error) => {
                        let again = protected.as_mut().is_some_and(|protected| protected.refused(error));
                        if !again {
                            break error;
                        }
                    }
                },
                Taken::Bad(error) => break RpcError::BadReply(*error),
                Taken::Lost => {
                    if connection.is_closed() {
                        break RpcError::Closed;
                    }
                    inner.event(Event::Resent);
                    if let Some(history) = call.history {
                        history.reconnected.set(true);
                    }
                }
                Taken::TimedOut => {
                    if inner.reactor.now() >= deadline {
                        break RpcError::TimedOut;
                    }
                    inner.event(Event::Retransmission);
                    if !inner.options.resend_on_live_connection {
                        connection.reset("no reply in time");
                    }
                }
            }
        };
        counting.done(connection, &place, Some(&failure));
        Err(failure)
    }

    fn choose(&self, wanted: Option<usize>) -> &Connection {
        let connections = &self.0.connections;
        if let [only] = &connections[..] {
            return only;
        }
        let number = wanted.unwrap_or_else(|| {
            let turn = self.0.turn.get();
            self.0.turn.set(turn.wrapping_add(1));
            turn
        });
        &connections[number % connections.len()]
    }
}

/// What is wrong with a reply.
enum Reply {
    Bad(XdrError),
    Failed(RpcError),
}

impl From<XdrError> for Reply {
    fn from(error: XdrError) -> Self {
        Self::Bad(error)
    }
}

/// A reply to a call that was carried out, after its transaction number: REPLY, MSG_ACCEPTED, a verifier of AUTH_NONE
/// without a body, SUCCESS.
const CARRIED_OUT: [u8; 20] = {
    let mut bytes = [0; 20];
    bytes[3] = REPLY as u8;
    bytes
};

/// Reads the header of a reply.
#[inline]
fn header_of(d: &mut Decoder<'_>, call: &Call<'_>) -> Result<(), Reply> {
    if d.rest().get(4..24) == Some(&CARRIED_OUT) {
        return d.bytes(24, "header of a reply").map(drop).map_err(Reply::Bad);
    }
    any_header(d, call)
}

#[cold]
fn any_header(d: &mut Decoder<'_>, call: &Call<'_>) -> Result<(), Reply> {
    let Call { program, version: wanted, procedure, .. } = *call;
    let reply = match d.get().map_err(Reply::Bad)? {
        Message::Reply { reply, .. } => reply,
        Message::Call(_) => return Err(Reply::Bad(XdrError::BadValue { what: "msg_type", value: 0 })),
    };
    Err(Reply::Failed(match reply {
        RpcReply::Success(verf) => {
            if let Some(place) = call.verifier {
                *place.borrow_mut() = verf.body.0.to_vec();
            }
            return Ok(());
        }
        RpcReply::ProgUnavail => RpcError::ProgramUnavailable(program),
        RpcReply::ProgMismatch(low, high) => RpcError::VersionMismatch { program, wanted, low, high },
        RpcReply::ProcUnavail => RpcError::ProcedureUnavailable { program, procedure },
        RpcReply::GarbageArgs => RpcError::GarbageArguments,
        RpcReply::SystemErr => RpcError::SystemError,
        RpcReply::RpcMismatch(..) => RpcError::UnknownStatus(0),
        RpcReply::AuthError(stat) => RpcError::Denied(stat),
        RpcReply::Unknown(stat) => RpcError::UnknownStatus(stat),
    }))
}

/// Reads a reply that is to be protected, or one that says why the call was not carried out.
#[cold]
fn protected_reply(
    protected: &Protected<'_>,
    counters: &Counters,
    d: &mut Decoder<'_>,
    call: &Call<'_>,
    results: impl FnOnce(&mut Decoder<'_>) -> Result<usize, XdrError>,
) -> Result<usize, Reply> {
    let mut unprotected = *d;
    match protected.reply(counters, d, results) {
        Ok(rest) => Ok(rest),
        Err(Denied::Bad(error)) => Err(Reply::Bad(error)),
        Err(Denied::Forged) => Err(Reply::Failed(RpcError::Forged)),
        Err(Denied::Other(())) => match any_header(&mut unprotected, call) {
            Ok(()) => Err(Reply::Failed(RpcError::Forged)),
            Err(failure) => Err(failure),
        },
    }
}

/// Counts one call, all at once when it ends, as Linux does: what is under way shows in no column, so that between any
/// two snapshots `transmissions` are more than `ops` only where the same request was sent again.
struct Counting<'c> {
    rpc: &'c Rpc,
    call: &'c Call<'c>,
    began: Instant,
    transmissions: Cell<u32>,
    bytes_sent: Cell<u64>,
    counted: Cell<bool>,
}

impl<'c> Counting<'c> {
    fn new(rpc: &'c Rpc, call: &'c Call<'c>) -> Self {
        rpc.0.counters.begun();
        let began = call.since.unwrap_or_else(|| rpc.0.reactor.now());
        let (transmissions, bytes_sent, counted) = Default::default();
        Self { rpc, call, began, transmissions, bytes_sent, counted }
    }

    /// The request was sent, with this many bytes; 0 is one that the connection broke before.
    fn transmitted(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.transmissions.set(self.transmissions.get() + 1);
        self.bytes_sent.set(self.bytes_sent.get() + bytes as u64);
        if let Some(history) = self.call.history {
            history.transmissions.set(history.transmissions.get() + 1);
        }
    }

    fn done(&self, connection: &Connection, place: &PendingCall<'_>, failed: Option<&RpcError>) {
        let times = connection.times(place);
        let end = times.received.unwrap_or_else(|| self.rpc.0.reactor.now());
        let sent = times.sent.unwrap_or(end).clamp(self.began, end.max(self.began));
        let rtt_ns = end.saturating_duration_since(sent).as_nanos() as u64;
        let queue_ns = (sent - self.began).as_nanos() as u64;
        self.rpc.0.counters.on_connection(connection.number, rtt_ns);
        self.count(|counters| {
            counters.bytes_received += times.bytes as u64;
            counters.queue_ns += queue_ns;
            counters.rtt_ns += rtt_ns;
            counters.execute_ns += queue_ns + rtt_ns;
            counters.errors += u64::from(failed.is_some());
            counters.timeouts += u64::from(matches!(failed, Some(RpcError::TimedOut)));
        });
    }

    fn count(&self, more: impl FnOnce(&mut OpCounters)) {
        self.counted.set(true);
        self.rpc.0.counters.update(self.call.op, |counters| {
            counters.ops += 1;
            // A call that never came to be sent is one transmission too, or it would hide another's second one.
            counters.transmissions += u64::from(self.transmissions.get().max(1));
            counters.bytes_sent += self.bytes_sent.get();
            more(counters);
        });
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.rpc.0.counters.ended();
        // Given up by its caller: a call that was sent is one without success.
        if !self.counted.get() && self.transmissions.get() > 0 {
            let took = self.rpc.0.reactor.now().saturating_duration_since(self.began).as_nanos() as u64;
            self.count(|counters| {
                counters.execute_ns += took;
                counters.errors += 1;
            });
        }
    }
}
