//! The far end of a probe: does for each connection what its client asks for, within limits.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};

use crate::protocol::{GO, Kind, NULL_HEAD, Request};
use crate::stream::{self, MARGIN, Meter, is_timeout};
use crate::{ProbeError, ServeConfig, handshake};

/// How long a client may take to have all connections of a test ready.
const READY: Duration = Duration::from_secs(30);

/// A running far end; dropping it stops it.
#[derive(Debug)]
pub struct FarEnd {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What a far end did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Served {
    /// Connections on which a test was done, or begun.
    pub tests: u64,
    /// Connections that were refused: no or the wrong token, too many, not a request, more than allowed. Connections
    /// that were only opened and closed are not counted.
    pub refused: u64,
    /// Tests that ended with an error: the client went away, or was silent.
    pub failed: u64,
}

#[derive(Debug)]
struct Shared {
    config: ServeConfig,
    wake: OwnedFd,
    stop: AtomicBool,
    open: Mutex<HashMap<u64, TcpStream>>,
    closed: Condvar,
    tests: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

/// Starts a far end. Its address takes connections from the moment this returns.
///
/// # Errors
/// [`ProbeError::Listen`] and [`ProbeError::Resources`].
pub fn serve(config: ServeConfig) -> Result<FarEnd, ProbeError> {
    let failed = |source| ProbeError::Listen { address: config.listen, source };
    let listener = TcpListener::bind(config.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
        .map_err(|error| ProbeError::Resources(error.into()))?;
    let shared = Arc::new(Shared {
        config,
        wake,
        stop: AtomicBool::new(false),
        open: Mutex::default(),
        closed: Condvar::new(),
        tests: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    });
    let thread = {
        let shared = Arc::clone(&shared);
        let run = move || accept(&listener, &shared);
        std::thread::Builder::new().name("probe".into()).spawn(run).map_err(ProbeError::Resources)?
    };
    Ok(FarEnd { address, shared, thread: Some(thread) })
}

impl FarEnd {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it did so far.
    pub fn served(&self) -> Served {
        let shared = &self.shared;
        Served {
            tests: shared.tests.load(Ordering::Relaxed),
            refused: shared.refused.load(Ordering::Relaxed),
            failed: shared.failed.load(Ordering::Relaxed),
        }
    }

    /// Closes all connections, waits for their threads, and returns what was done.
    pub fn stop(mut self) -> Served {
        self.end();
        self.served()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // The counter is never full: this is the only write.
        let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It does not panic; there would be nothing left to stop if it had.
            let _ = thread.join();
        }
        let mut open = self.shared.open.lock();
        for socket in open.values() {
            // One that the other end closed already is as good.
            let _ = socket.shutdown(Shutdown::Both);
        }
        self.shared.closed.wait_while(&mut open, |open| !open.is_empty());
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.end();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for id in 0.. {
        let socket = loop {
            match listener.accept() {
                _ if shared.stop.load(Ordering::Acquire) => return,
                Ok((socket, _)) => break socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => wait(listener, shared),
                // The connection was reset before it was taken, or descriptors are short.
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let Ok(clone) = socket.try_clone() else { continue };
        let busy = {
            let mut open = shared.open.lock();
            let busy = open.len() >= shared.config.connections;
            // Refused connections need threads too, but not without end.
            if open.len() >= 2 * shared.config.connections {
                continue;
            }
            open.insert(id, clone);
            busy
        };
        let close = Close { id, shared: Arc::clone(shared) };
        let work = move || {
            let close = close;
            connection(socket, busy, &close.shared);
        };
        // Without a thread the closure is dropped, and closes the connection.
        let _ = std::thread::Builder::new().name("probe flow".into()).spawn(work);
    }
}

fn wait(listener: &TcpListener, shared: &Shared) {
    let mut ready =
        [PollFd::new(listener, PollFlags::IN), PollFd::from_borrowed_fd(wake(shared), PollFlags::IN)];
    // Interrupted by a signal, it is called again.
    let _ = poll(&mut ready, None);
}

fn wake(shared: &Shared) -> std::os::fd::BorrowedFd<'_> {
    std::os::fd::AsFd::as_fd(&shared.wake)
}

/// Forgets a connection at its end, however that comes.
#[derive(Debug)]
struct Close {
    id: u64,
    shared: Arc<Shared>,
}

impl Drop for Close {
    fn drop(&mut self) {
        self.shared.open.lock().remove(&self.id);
        self.shared.closed.notify_all();
    }
}

fn connection(mut socket: TcpStream, busy: bool, shared: &Shared) {
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    let request = socket
        .set_nonblocking(false)
        .and_then(|()| socket.set_nodelay(true))
        .and_then(|()| handshake::accept(&mut socket, &shared.config, busy));
    match request {
        Ok(Some(request)) => {
            count(&shared.tests);
            if test(&mut socket, &request, &shared.config).is_err() {
                count(&shared.failed);
            }
        }
        // Opened and closed, to see how long that takes.
        Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {}
        Ok(None) | Err(_) => {
            count(&shared.refused);
        }
    }
}

fn test(socket: &mut TcpStream, request: &Request, config: &ServeConfig) -> io::Result<()> {
    let mut go = [0];
    handshake::read_by(socket, &mut go, Instant::now() + READY)?;
    if go != [GO] {
        return Err(ErrorKind::InvalidData.into());
    }
    let milliseconds = |ms: u32| Duration::from_millis(ms.into());
    let (warm_up, length) = (milliseconds(request.warm_up_ms), milliseconds(request.length_ms));
    let patience = config.patience;
    socket.set_read_timeout(Some(patience))?;
    socket.set_write_timeout(Some(patience))?;
    // What was not done in a multiple of its time will not be: no client is served for longer.
    let deadline = Instant::now() + (warm_up + length) * 2 + patience;
    match request.kind {
        Kind::Echo => echo(socket, request.size as usize, deadline),
        Kind::Null => null(socket, request.size as usize, deadline),
        Kind::Send => {
            let every = Duration::from_millis(request.sample_ms.clamp(10, 10_000).into());
            stream::send(socket, warm_up + length + MARGIN, every, patience)?;
            // The client closes when it has read all; closing before would reset what is under way.
            socket.set_read_timeout(Some(patience))?;
            until_closed(socket)
        }
        Kind::Receive => {
            let mut meter = Meter::new(Instant::now(), warm_up, length);
            stream::receive(socket, &mut meter, (warm_up + length) * 2 + patience, patience)?;
            let (bytes, nanoseconds) = match meter.arrived() {
                Some(arrived) => (arrived.bytes, arrived.time.as_nanos() as u64),
                None => (0, 0),
            };
            socket.write_all(&[bytes.to_be_bytes(), nanoseconds.to_be_bytes()].concat())?;
            until_closed(socket)
        }
    }
}

fn until_closed(socket: &mut TcpStream) -> io::Result<()> {
    match socket.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

fn echo(socket: &mut TcpStream, size: usize, deadline: Instant) -> io::Result<()> {
    let mut message = vec![0; size];
    while read_whole(socket, &mut message, deadline)? {
        write_whole(socket, &message, deadline)?;
    }
    Ok(())
}

/// Each request is answered by itself and null data.
fn null(socket: &mut TcpStream, size: usize, deadline: Instant) -> io::Result<()> {
    let mut reply = vec![0; NULL_HEAD + size];
    let mut head = [0; NULL_HEAD];
    while read_whole(socket, &mut head, deadline)? {
        if let Some(front) = reply.first_chunk_mut() {
            *front = head;
        }
        write_whole(socket, &reply, deadline)?;
    }
    Ok(())
}

/// Reads a whole message; `false` when the client closed before its first byte. A client that sends byte by byte puts
/// off the timeout of the socket, but not the deadline.
fn read_whole(socket: &mut TcpStream, message: &mut [u8], deadline: Instant) -> io::Result<bool> {
    let mut filled = 0;
    while let Some(rest) = message.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match socket.read(rest) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
        in_time(deadline)?;
    }
    Ok(true)
}

fn write_whole(socket: &mut TcpStream, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_timeout(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
        in_time(deadline)?;
    }
    Ok(())
}

fn in_time(deadline: Instant) -> io::Result<()> {
    if Instant::now() > deadline { Err(ErrorKind::TimedOut.into()) } else { Ok(()) }
}
