//! Accepting connections.

use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use crate::mailbox::{Mailbox, Message};

/// Most connections accepted before the thread looks after those it has.
const BATCH: usize = 64;

/// A listening socket and the threads that share its connections.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
    threads: Vec<Arc<Mailbox>>,
    /// A descriptor to give up when there are no more: the connection can then be accepted and closed, instead of
    /// waking this thread forever.
    reserve: Option<File>,
}

impl Listener {
    pub(crate) fn new(socket: TcpListener, threads: Vec<Arc<Mailbox>>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket, threads, reserve: File::open("/dev/null").ok() })
    }

    /// Accepts what is waiting; each connection goes to the thread with the fewest.
    pub(super) fn accept(&mut self) {
        for _ in 0..BATCH {
            match self.socket.accept() {
                Ok((socket, address)) => self.assign(socket, address),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error)
                    if [Errno::MFILE, Errno::NFILE]
                        .iter()
                        .any(|e| error.raw_os_error() == Some(e.raw_os_error())) =>
                {
                    log::warn!("no descriptor left for a new connection: it is closed");
                    self.reserve = None;
                    drop(self.socket.accept());
                    self.reserve = File::open("/dev/null").ok();
                    return;
                }
                // No memory, for this and therefore for the next.
                Err(error)
                    if error.raw_os_error() == Some(Errno::NOBUFS.raw_os_error())
                        || error.kind() == io::ErrorKind::OutOfMemory =>
                {
                    log::warn!("no memory for a new connection: {error}");
                    return;
                }
                // The client gave up (ECONNABORTED) or the like.
                Err(error) => log::debug!("accept: {error}"),
            }
        }
    }

    fn assign(&self, socket: TcpStream, address: SocketAddr) {
        let least = self.threads.iter().min_by_key(|thread| thread.load.load(Ordering::Relaxed));
        if let Some(thread) = least {
            thread.load.fetch_add(1, Ordering::Relaxed);
            thread.post(Message::Serve(socket, address));
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
