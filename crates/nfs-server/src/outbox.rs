//! Calls that wait to be sent to a client over its own connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::mailbox::{Mailbox, Message};
use crate::stats::ClientIndex;

/// Most bytes of calls to a client that wait to be sent; a client that reads nothing gets no more.
const MOST_QUEUED: usize = 1 << 20;

/// Calls to a client waiting to be sent over its own connection (RFC 8881 §2.10.3.1: the back channel).
#[derive(Debug, Default)]
pub struct Outbox {
    queue: Mutex<Queue>,
    /// The thread to wake, and the connection's place there. None in tests without sockets.
    owner: Option<(Arc<Mailbox>, u64)>,
    /// Who sent the last request, 0 before the first.
    client: AtomicU32,
}

#[derive(Debug, Default)]
struct Queue {
    messages: Vec<Vec<u8>>,
    bytes: usize,
    closed: bool,
}

impl Outbox {
    pub(crate) fn new(mailbox: Arc<Mailbox>, token: u64) -> Self {
        Self { owner: Some((mailbox, token)), ..Self::default() }
    }

    /// Queues an RPC call message (without record mark) and wakes the connection's thread. `false`: the connection is
    /// closed, or its client has not read what was sent before.
    pub fn send(&self, message: Vec<u8>) -> bool {
        {
            let mut queue = self.queue.lock();
            if queue.closed || queue.bytes + message.len() > MOST_QUEUED {
                return false;
            }
            queue.bytes += message.len();
            queue.messages.push(message);
        }
        if let Some((mailbox, token)) = &self.owner {
            mailbox.post(Message::Outbox(*token));
        }
        true
    }

    /// Whether the connection still stands.
    pub fn is_open(&self) -> bool {
        !self.queue.lock().closed
    }

    /// What is to be sent.
    pub fn take(&self) -> Vec<Vec<u8>> {
        let mut queue = self.queue.lock();
        queue.bytes = 0;
        std::mem::take(&mut queue.messages)
    }

    /// The connection is over: nothing more is taken.
    pub fn close(&self) {
        let mut queue = self.queue.lock();
        *queue = Queue { closed: true, ..Queue::default() };
    }

    /// Remembers whose connection it is.
    #[inline]
    pub(crate) fn note_client(&self, client: ClientIndex) {
        self.client.store(client.0, Ordering::Relaxed);
    }

    pub(crate) fn client(&self) -> ClientIndex {
        ClientIndex(self.client.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outbox_takes_so_much_and_after_closing_nothing() {
        let outbox = Outbox::default();
        let sent = (0..10_000).take_while(|_| outbox.send(vec![0; 1000])).count();
        assert_eq!(sent, MOST_QUEUED / 1000);
        assert!(outbox.is_open());
        assert_eq!(outbox.take().len(), sent);
        assert!(outbox.send(vec![0; 1000]), "room again");
        outbox.close();
        assert!(!outbox.is_open() && !outbox.send(Vec::new()));
        assert!(outbox.take().is_empty());
    }
}
