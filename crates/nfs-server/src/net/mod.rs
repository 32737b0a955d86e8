//! Sockets: event loops that receive many records at once and answer them with one vectored send. (Signatures first.)

use parking_lot::Mutex;

/// Calls to a client waiting to be sent over its own connection (RFC 8881 §2.10.3.1: the back channel).
#[derive(Debug, Default)]
pub struct Outbox {
    queue: Mutex<Vec<Vec<u8>>>,
}

impl Outbox {
    /// Queues an RPC call message (without record mark) and wakes the connection's thread. `false`: the connection is closed.
    pub fn send(&self, message: Vec<u8>) -> bool {
        self.queue.lock().push(message);
        true
    }

    /// Whether the connection still stands.
    pub fn is_open(&self) -> bool {
        true
    }
}
