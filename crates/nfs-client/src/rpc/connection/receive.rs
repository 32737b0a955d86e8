//! Replies and calls of the server, from the socket to whom they are for.

use std::io::{self, IoSliceMut};
use std::task::{Context, Poll};
use std::time::Instant;

use benchmaster_nfs_proto::rpc::CALL;
use benchmaster_nfs_proto::xdr::XdrError;

use super::{Connection, Decode};
use crate::counters::Event;
use crate::rpc::Transport;
use crate::rpc::connection::PendingCall;
use crate::rpc::incoming::{FRONT, Incoming, LANDING, Landing, Next, Taken};
use crate::rpc::pending::State;
use crate::rpc::stream::Stream;

impl Connection {
    /// Takes the reply of a call, if it is here.
    pub(in crate::rpc) fn take(
        &self,
        place: &PendingCall<'_>,
        context: &Context<'_>,
        destination: &mut [u8],
        decode: Decode<'_>,
    ) -> Poll<Taken> {
        let xid = place.xid();
        let mut pending = self.pending.borrow_mut();
        let Some(entry) = pending.get(xid) else { return Poll::Ready(Taken::Lost) };
        match std::mem::replace(&mut entry.state, State::Idle) {
            state @ (State::Waiting | State::Free) => {
                entry.state = state;
                match &entry.waker {
                    Some(waker) if waker.will_wake(context.waker()) => {}
                    _ => entry.waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
            State::Ready(from, len) => {
                drop(pending);
                let mut incoming = self.incoming.borrow_mut();
                incoming.untaken -= 1;
                Poll::Ready(decoded(decode(&incoming.buffer[from..from + len], true, destination)))
            }
            State::Kept(bytes) => {
                drop(pending);
                let taken = decoded(decode(&bytes, true, destination));
                self.incoming.borrow_mut().no_more_needed(bytes);
                Poll::Ready(taken)
            }
            State::Landing => {
                entry.state = State::Landing;
                entry.waker = Some(context.waker().clone());
                drop(pending);
                self.land(xid, destination, decode)
            }
            State::Lost | State::Idle => Poll::Ready(Taken::Lost),
            State::TimedOut => Poll::Ready(Taken::TimedOut),
        }
    }

    /// Goes on receiving a reply whose data belong into `destination`.
    fn land(&self, xid: u32, destination: &mut [u8], decode: Decode<'_>) -> Poll<Taken> {
        let mut guard = self.incoming.borrow_mut();
        let incoming = &mut *guard;
        let Some(mut landing) = incoming.landing.filter(|landing| landing.xid == xid) else {
            return Poll::Ready(Taken::Lost);
        };
        if landing.data.is_none() {
            let from = incoming.start + 4;
            let front = &incoming.buffer[from.min(incoming.end)..incoming.end];
            match decode(front, false, destination) {
                // Not all of the front is here, or it has no data: the reply is received as others are.
                Err(XdrError::Truncated { .. }) | Ok(0) => {
                    incoming.landing = None;
                    self.pending.borrow_mut().lands_no_more(xid);
                    drop(guard);
                    self.receive_rest();
                    return Poll::Pending;
                }
                Err(error) => {
                    drop(guard);
                    self.reset("a reply that cannot be decoded");
                    return Poll::Ready(bad(error));
                }
                Ok(len) => {
                    let padded = len.next_multiple_of(4);
                    let here = front.len();
                    let before = landing.len.checked_sub(padded).filter(|before| *before <= here);
                    let Some(before) = before else {
                        drop(guard);
                        self.reset("a reply whose data is not at its end");
                        return Poll::Ready(bad(XdrError::Truncated { what: "data of a READ" }));
                    };
                    let landed = (here - before).min(len);
                    destination[..landed].copy_from_slice(&front[before..before + landed]);
                    landing.padding = landing.len - before - len - (here - before - landed);
                    landing.data = Some((len, landed));
                    (incoming.start, incoming.end) = (0, 0);
                }
            }
        }
        let Some((len, mut landed)) = landing.data else { return Poll::Pending };
        while landed < len || landing.padding > 0 {
            // What comes behind the data is received at the front of the buffer.
            self.keep_untaken(incoming);
            let received = self.with_stream(|stream| {
                let mut parts = [
                    IoSliceMut::new(&mut destination[landed..len]),
                    IoSliceMut::new(&mut incoming.buffer[..landing.padding + FRONT]),
                ];
                stream.receive(&mut parts)
            });
            match received {
                Ok(None) => {
                    landing.data = Some((len, landed));
                    incoming.landing = Some(landing);
                    return Poll::Pending;
                }
                Ok(Some(n)) if n > 0 => {
                    incoming.bytes += n as u64;
                    let of_data = n.min(len - landed);
                    landed += of_data;
                    let of_padding = (n - of_data).min(landing.padding);
                    landing.padding -= of_padding;
                    (incoming.start, incoming.end) = (of_padding, n - of_data);
                }
                end => {
                    drop(guard);
                    self.broken(end.err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into()));
                    // The entry is lost now.
                    return Poll::Ready(Taken::Lost);
                }
            }
        }
        incoming.landing = None;
        let now = self.reactor.now();
        self.heard.set(now);
        if let Some(entry) = self.pending.borrow_mut().get(xid) {
            entry.state = State::Idle;
            (entry.received, entry.bytes) = (Some(now), landing.len);
        }
        let cut = self.cut(incoming, now);
        drop(guard);
        if let Err(error) = cut {
            self.broken(error);
        }
        self.receive_rest();
        Poll::Ready(Taken::Reply)
    }

    /// Receives what is there.
    pub(super) fn receive(&self) {
        self.receive_once();
        self.receive_rest();
        self.count_traffic();
    }

    /// Receives what TLS has opened already: the socket does not tell of it again. A reply that is to land is left to its
    /// task.
    fn receive_rest(&self) {
        let more = || {
            let stream = self.stream.borrow();
            stream.as_ref().is_some_and(Stream::is_readable) && self.incoming.borrow().landing.is_none()
        };
        while more() {
            self.receive_once();
        }
    }

    fn receive_once(&self) {
        let mut guard = self.incoming.borrow_mut();
        let incoming = &mut *guard;
        if let Some(landing) = incoming.landing {
            if let Some(entry) = self.pending.borrow_mut().get(landing.xid)
                && let Some(waker) = entry.waker.take()
            {
                waker.wake();
            }
            return;
        }
        self.keep_untaken(incoming);
        let expected = self.front_length(incoming);
        incoming.make_room(expected);
        let room = incoming.buffer.len() - incoming.end;
        let room = match self.pending.borrow().landing {
            _ if expected > 0 => room,
            0 => room,
            _ => room.min(FRONT),
        };
        let end = incoming.end;
        let received = self.with_stream(|stream| {
            stream.receive(&mut [IoSliceMut::new(&mut incoming.buffer[end..end + room])])
        });
        let result = match received {
            Ok(None) => Ok(()),
            Ok(Some(0)) if self.transport == Transport::Tcp => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Some(n)) => {
                incoming.bytes += n as u64;
                let now = self.reactor.now();
                self.heard.set(now);
                match self.transport {
                    Transport::Tcp => {
                        incoming.end += n;
                        self.cut(incoming, now)
                    }
                    Transport::Udp => {
                        incoming.end += n;
                        incoming.start = incoming.end;
                        self.message(incoming, end, n, now);
                        Ok(())
                    }
                }
            }
            Err(error) => Err(error),
        };
        drop(guard);
        if let Err(error) = result {
            self.broken(error);
        }
    }

    /// Length of the message whose beginning is in the buffer, as far as it is to be received there.
    fn front_length(&self, incoming: &mut Incoming) -> usize {
        if self.transport == Transport::Udp {
            return 64 << 10;
        }
        match incoming.next(self.max_message) {
            Ok(Next::Front(_, len)) => len,
            _ => 0,
        }
    }

    /// Moves replies that no task has taken yet out of the buffer.
    pub(super) fn keep_untaken(&self, incoming: &mut Incoming) {
        if incoming.untaken == 0 {
            return;
        }
        for entry in self.pending.borrow_mut().iter_mut() {
            if let State::Ready(from, len) = entry.state {
                entry.state = State::Kept(incoming.copy_of(from, len));
                incoming.untaken -= 1;
            }
        }
    }

    /// Cuts what was received into messages.
    fn cut(&self, incoming: &mut Incoming, now: Instant) -> io::Result<()> {
        loop {
            match incoming.next(self.max_message) {
                Ok(Next::Message(from, len)) => self.message(incoming, from, len, now),
                Ok(Next::Joined) => {
                    if let Some(joiner) = incoming.joiner.take() {
                        self.arrived(joiner.record(), now, |bytes| State::Kept(bytes.to_vec()));
                    }
                }
                Ok(Next::Front(xid, len)) => {
                    let mut pending = self.pending.borrow_mut();
                    if len >= LANDING
                        && let Some(entry) = pending.get(xid)
                        && entry.lands
                        && matches!(entry.state, State::Waiting)
                    {
                        incoming.landing = Some(Landing { xid, len, data: None, padding: 0 });
                        entry.wake(State::Landing);
                    }
                    return Ok(());
                }
                Ok(Next::Nothing) => return Ok(()),
                Err(error) => {
                    self.counters.event(Event::Garbage);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
    }

    /// A message lies in the buffer.
    fn message(&self, incoming: &mut Incoming, from: usize, len: usize, now: Instant) {
        let taken = self.arrived(&incoming.buffer[from..from + len], now, |_| State::Ready(from, len));
        incoming.untaken += usize::from(taken);
    }

    /// A message is here. If it is a reply its call finds it in the state given: returns whether there is one.
    fn arrived(&self, bytes: &[u8], now: Instant, state: impl FnOnce(&[u8]) -> State) -> bool {
        let Some((xid, is_call)) = kind(bytes) else {
            self.counters.event(Event::Garbage);
            return false;
        };
        if is_call {
            self.called(bytes);
            return false;
        }
        let mut pending = self.pending.borrow_mut();
        match pending.get(xid) {
            Some(entry) if matches!(entry.state, State::Waiting) => {
                (entry.received, entry.bytes) = (Some(now), bytes.len());
                entry.wake(state(bytes));
                true
            }
            _ => {
                self.counters.event(Event::StrayReply);
                false
            }
        }
    }

    /// The server calls.
    fn called(&self, call: &[u8]) {
        self.counters.event(Event::Callback);
        let Some(rpc) = self.rpc.upgrade() else { return };
        let handler = rpc.handler.borrow().clone();
        if let Some(handler) = handler {
            self.outgoing.borrow_mut().answer(|e| handler(self.number, call, e));
            self.mark();
        }
    }
}

fn decoded(result: Result<usize, XdrError>) -> Taken {
    match result {
        Ok(_) => Taken::Reply,
        Err(error) => bad(error),
    }
}

#[cold]
fn bad(error: XdrError) -> Taken {
    Taken::Bad(Box::new(error))
}

/// Transaction number of a message, and whether it is a call.
fn kind(bytes: &[u8]) -> Option<(u32, bool)> {
    let word = |at: usize| bytes.get(at..at + 4)?.first_chunk().map(|word| u32::from_be_bytes(*word));
    Some((word(0)?, word(4)? == CALL))
}
