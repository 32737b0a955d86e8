//! Requests on their way into a socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::task::Waker;

use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::xdr::{Bulk, Encoder};

use super::stream::Stream;

/// Writes a request: called again when it has to be sent again.
pub(super) type Message<'m> = &'m dyn Fn(&mut Encoder, Bulk<'_>);

/// Payloads from this size on are sent from the caller's memory.
pub(super) const DIRECT: usize = 16 << 10;

/// Messages queued, and at most one payload among them that is sent from its caller's memory.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    messages: Encoder,
    /// Bytes of `messages` sent.
    sent: usize,
    /// The payload under way: whose call, and before which byte of `messages` it belongs.
    payload: Option<Payload>,
    /// Tasks that wait for the payload under way, to send theirs.
    queue: VecDeque<Waker>,
    /// Calls whose messages were queued since the last time something was sent.
    pub(super) unstamped: Vec<u32>,
    /// Bytes given to the socket.
    pub(super) bytes: u64,
}

#[derive(Debug)]
struct Payload {
    xid: u32,
    at: usize,
    sent: usize,
    /// Its task, when the socket is full.
    waker: Option<Waker>,
}

/// How far sending went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All that can be sent from here is sent.
    Done,
    /// The socket is full.
    Full,
}

impl Outgoing {
    /// Queues a message; returns its length without record mark.
    pub(super) fn queue(&mut self, xid: u32, payload: &[u8], message: Message<'_>) -> usize {
        let mark = record::begin(&mut self.messages);
        message(&mut self.messages, Bulk::Bytes(payload));
        record::end(&mut self.messages, mark);
        self.unstamped.push(xid);
        self.messages.len_since(mark) - record::HEADER
    }

    /// Queues a message of the server's calls: `write` may write nothing.
    pub(super) fn answer(&mut self, write: impl FnOnce(&mut Encoder)) {
        let mark = record::begin(&mut self.messages);
        write(&mut self.messages);
        match self.messages.len_since(mark) {
            record::HEADER => self.messages.rollback(mark),
            _ => record::end(&mut self.messages, mark),
        }
    }

    /// Queues a message whose payload its task will send; `None` (and the task waits) while another's is under way.
    pub(super) fn queue_direct(
        &mut self,
        xid: u32,
        payload: &[u8],
        message: Message<'_>,
        waker: &Waker,
    ) -> Option<usize> {
        if self.payload.is_some() {
            self.queue.push_back(waker.clone());
            return None;
        }
        let mark = record::begin(&mut self.messages);
        message(&mut self.messages, Bulk::Detached(payload.len() as u32));
        record::end(&mut self.messages, mark);
        let at = self.messages.cuts().last().map_or(self.messages.buffer().len(), |cut| cut.at);
        self.payload = Some(Payload { xid, at, sent: 0, waker: None });
        self.unstamped.push(xid);
        Some(self.messages.len_since(mark) - record::HEADER)
    }

    /// Whether the payload of this call is under way.
    pub(super) fn is_sending(&self, xid: u32) -> bool {
        self.payload.as_ref().is_some_and(|payload| payload.xid == xid)
    }

    /// Sends what was queued up to a payload that its task has to send.
    pub(super) fn flush(&mut self, stream: &mut Stream) -> io::Result<Progress> {
        loop {
            let end = self.payload.as_ref().map_or(self.messages.buffer().len(), |payload| payload.at);
            if self.sent >= end {
                if self.payload.is_none() {
                    self.messages.clear();
                    self.sent = 0;
                }
                return Ok(if stream.flush()? { Progress::Done } else { Progress::Full });
            }
            match stream.send(&[IoSlice::new(&self.messages.buffer()[self.sent..end])])? {
                None => return Ok(Progress::Full),
                Some(n) => {
                    self.sent += n;
                    self.bytes += n as u64;
                }
            }
        }
    }

    /// Sends the payload under way with what is queued before and after it. When it is done the next task may go on.
    pub(super) fn send_payload(
        &mut self,
        stream: &mut Stream,
        payload: &[u8],
        waker: &Waker,
    ) -> io::Result<Progress> {
        loop {
            let Some(under_way) = &mut self.payload else { return Ok(Progress::Done) };
            let buffer = self.messages.buffer();
            let before = &buffer[self.sent.min(under_way.at)..under_way.at];
            let rest = payload.get(under_way.sent..).unwrap_or_default();
            let after = &buffer[under_way.at..];
            let parts = [IoSlice::new(before), IoSlice::new(rest), IoSlice::new(after)];
            let Some(n) = stream.send(&parts)? else {
                under_way.waker = Some(waker.clone());
                return Ok(Progress::Full);
            };
            self.bytes += n as u64;
            let of_before = n.min(before.len());
            let of_rest = (n - of_before).min(rest.len());
            self.sent += n - of_rest;
            under_way.sent += of_rest;
            if under_way.sent >= payload.len() && self.sent >= under_way.at {
                self.payload = None;
                self.queue.drain(..).for_each(Waker::wake);
                if self.sent == self.messages.buffer().len() {
                    self.messages.clear();
                    self.sent = 0;
                }
                return Ok(Progress::Done);
            }
        }
    }

    /// Lets the task whose payload is under way go on.
    pub(super) fn writable(&mut self) {
        if let Some(waker) = self.payload.as_mut().and_then(|payload| payload.waker.take()) {
            waker.wake();
        }
    }

    /// Whether something waits to be sent, by the connection or by a task.
    pub(super) fn is_waiting(&self) -> bool {
        self.payload.is_some() || self.sent < self.messages.buffer().len()
    }

    /// Forgets everything, for another connection.
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.sent = 0;
        self.unstamped.clear();
        self.writable();
        self.payload = None;
        self.queue.drain(..).for_each(Waker::wake);
    }
}
