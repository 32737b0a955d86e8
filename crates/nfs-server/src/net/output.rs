//! Replies on their way into a socket.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use super::stream::Stream;
use crate::reply::Reply;

/// Most pieces of one send (IOV_MAX).
const MOST_PIECES: usize = 1024;

/// Replies that the socket did not take yet.
#[derive(Debug, Default)]
pub(super) struct Output {
    queue: VecDeque<Reply>,
    /// Bytes of the first that are sent.
    sent: usize,
    bytes: usize,
}

/// Whether a socket took everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Everything.
    All,
    /// Its buffer is full.
    Blocked,
    /// The connection is broken.
    Broken,
}

impl Output {
    /// Bytes waiting.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Sends `reply`, or queues what the socket does not take; `reply` is empty afterwards.
    pub(super) fn send(&mut self, stream: &mut Stream, reply: &mut Reply) -> Flushed {
        if reply.is_empty() {
            return self.flush(stream);
        }
        if !self.is_empty() {
            self.queue(std::mem::take(reply), 0);
            return self.flush(stream);
        }
        let len = reply.len();
        let mut sent = 0;
        match send_from(stream, reply, &mut sent) {
            Ok(true) => {
                reply.clear();
                Flushed::All
            }
            Ok(false) => {
                let rest = std::mem::take(reply);
                debug_assert!(sent < len);
                self.queue(rest, sent);
                Flushed::Blocked
            }
            Err(_) => {
                reply.clear();
                Flushed::Broken
            }
        }
    }

    fn queue(&mut self, reply: Reply, sent: usize) {
        if self.queue.is_empty() {
            self.sent = sent;
        }
        self.bytes += reply.len() - sent;
        self.queue.push_back(reply);
    }

    /// Sends what waits.
    pub(super) fn flush(&mut self, stream: &mut Stream) -> Flushed {
        while let Some(first) = self.queue.front() {
            let before = self.sent;
            let outcome = send_from(stream, first, &mut self.sent);
            self.bytes -= self.sent - before;
            match outcome {
                Ok(true) => {
                    self.queue.pop_front();
                    self.sent = 0;
                }
                Ok(false) => return Flushed::Blocked,
                Err(_) => return Flushed::Broken,
            }
        }
        match stream.flush() {
            Ok(true) => Flushed::All,
            Ok(false) => Flushed::Blocked,
            Err(_) => Flushed::Broken,
        }
    }
}

/// Sends the bytes of `reply` from `*sent` on, in as few calls as it takes; `false`: there is no room for all of them.
fn send_from(stream: &mut Stream, reply: &Reply, sent: &mut usize) -> io::Result<bool> {
    let len = reply.len();
    while *sent < len {
        let mut pieces: smallvec::SmallVec<[IoSlice<'_>; 64]> = smallvec::SmallVec::new();
        reply.pieces(*sent, |piece| {
            pieces.push(IoSlice::new(piece));
            pieces.len() < MOST_PIECES
        });
        match stream.send(&pieces)? {
            Some(taken) => *sent += taken,
            None => return Ok(false),
        }
    }
    Ok(true)
}
