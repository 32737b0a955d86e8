//! Answering calls that a server of version 4.0 makes on a connection of its own (RFC 7530 §2.1, §10.4).

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::{Rc, Weak};

use benchmaster_nfs_proto::record::{self, Scan};
use benchmaster_nfs_proto::xdr::Encoder;
use rustix::net::{SocketFlags, accept_with};
use slab::Slab;

use super::CallHandler;
use crate::reactor::{EventFlags, Reactor, Registration, Source};

/// Longest call taken.
const MAX_CALL: usize = 64 << 10;

/// Listens for connections of the server and answers what it calls on them. Ends when dropped.
pub struct CallbackListener {
    inner: Rc<Listening>,
    address: SocketAddr,
}

impl fmt::Debug for CallbackListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallbackListener").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Listening {
    listener: OwnedFd,
    registration: Registration,
    reactor: Reactor,
    handler: CallHandler,
    served: RefCell<Slab<Rc<Served>>>,
    this: Weak<Self>,
}

struct Served {
    number: usize,
    stream: TcpStream,
    registration: Registration,
    handler: CallHandler,
    listening: Weak<Listening>,
    buffers: RefCell<(Vec<u8>, Vec<u8>)>,
    /// The socket was full, and is watched for room.
    full: Cell<bool>,
}

impl CallbackListener {
    /// Listens for the server at `server` on `address` (port 0: any).
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn new(
        reactor: &Reactor,
        server: SocketAddr,
        address: SocketAddr,
        handler: CallHandler,
    ) -> io::Result<Self> {
        let (listener, address) = match reactor.world() {
            Some(world) => world.listen(server)?,
            None => {
                let listener = TcpListener::bind(address)?;
                listener.set_nonblocking(true)?;
                let address = listener.local_addr()?;
                (listener.into(), address)
            }
        };
        let inner = Rc::new_cyclic(|this: &Weak<Listening>| Listening {
            registration: reactor.register(this.clone() as Weak<dyn Source>),
            listener,
            reactor: reactor.clone(),
            handler,
            served: RefCell::default(),
            this: this.clone(),
        });
        inner.registration.watch(inner.listener.as_fd(), EventFlags::IN)?;
        Ok(Self { inner, address })
    }

    /// Address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Connections that the server has open.
    pub fn connections(&self) -> usize {
        self.inner.served.borrow().len()
    }
}

impl Source for Listening {
    fn ready(&self, _: EventFlags) {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        while let Ok(stream) = accept_with(&self.listener, flags) {
            let stream = TcpStream::from(stream);
            // Only replies of one segment are sent; sockets of a simulation have no such option.
            let _ = stream.set_nodelay(true);
            let mut served = self.served.borrow_mut();
            let entry = served.vacant_entry();
            let number = entry.key();
            let listening = self.this.clone();
            let connection = Rc::new_cyclic(|this: &Weak<Served>| Served {
                number,
                registration: self.reactor.register(this.clone() as Weak<dyn Source>),
                stream,
                handler: self.handler.clone(),
                listening,
                buffers: RefCell::default(),
                full: Cell::new(false),
            });
            if connection.registration.watch(connection.stream.as_fd(), EventFlags::IN).is_ok() {
                entry.insert(connection);
            }
        }
    }

    fn end_of_turn(&self) {}
}

impl Source for Served {
    fn ready(&self, _: EventFlags) {
        if self.serve().is_err()
            && let Some(listening) = self.listening.upgrade()
        {
            listening.served.borrow_mut().try_remove(self.number);
        }
    }

    fn end_of_turn(&self) {}
}

impl Served {
    fn serve(&self) -> io::Result<()> {
        let (received, to_send) = &mut *self.buffers.borrow_mut();
        let mut part = [0; 4096];
        match (&self.stream).read(&mut part) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => received.extend_from_slice(&part[..n]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        loop {
            match record::next_record(received, MAX_CALL).map_err(io::Error::other)? {
                Scan::Record { payload, consumed } => {
                    let mut e = Encoder::new();
                    let mark = record::begin(&mut e);
                    (self.handler)(self.number, &received[payload], &mut e);
                    if e.len_since(mark) > record::HEADER {
                        record::end(&mut e, mark);
                        to_send.extend_from_slice(e.buffer());
                    }
                    received.drain(..consumed);
                }
                Scan::Need(_) => break,
                Scan::Fragmented => return Err(io::Error::other("a fragmented callback")),
            }
        }
        while !to_send.is_empty() {
            match (&self.stream).write(to_send) {
                Ok(n) => {
                    to_send.drain(..n);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return self.watch_room(true);
                }
                Err(error) => return Err(error),
            }
        }
        self.watch_room(false)
    }

    fn watch_room(&self, wanted: bool) -> io::Result<()> {
        if self.full.replace(wanted) == wanted {
            return Ok(());
        }
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        self.registration.change(self.stream.as_fd(), flags)
    }
}
