//! What other threads want of a serving thread.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use crate::stats::ClientIndex;

/// A request to a serving thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// Serve this connection.
    Serve(TcpStream, SocketAddr),
    /// The outbox of the connection at this place has something to send.
    Outbox(u64),
    /// Close the connections of a client, or all.
    Close(Option<ClientIndex>),
    /// Finish.
    Stop,
    /// Close all connections, whatever they are about.
    Crash,
}

/// A thread's mailbox; posting wakes the thread.
#[derive(Debug)]
pub(crate) struct Mailbox {
    messages: Mutex<Vec<Message>>,
    wake: OwnedFd,
    /// Whether the thread has been woken and has not yet looked.
    rung: AtomicBool,
    /// Connections that the thread serves.
    pub(crate) load: AtomicUsize,
}

impl Mailbox {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            messages: Mutex::default(),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            rung: AtomicBool::new(false),
            load: AtomicUsize::new(0),
        })
    }

    pub(crate) fn post(&self, message: Message) {
        self.messages.lock().push(message);
        if !self.rung.swap(true, Ordering::AcqRel) {
            // Fails only when the counter is full, and then the thread is awake anyway.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }

    /// Everything posted, in order.
    pub(crate) fn take(&self) -> Vec<Message> {
        let mut count = [0; 8];
        // Empty when another reason woke the thread.
        let _ = rustix::io::read(&self.wake, &mut count);
        self.rung.store(false, Ordering::Release);
        std::mem::take(&mut *self.messages.lock())
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
