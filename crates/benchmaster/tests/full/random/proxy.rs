//! A proxy of TCP connections that holds replies up, of which no study knows.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What it does; times in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// Every request later by this.
    All(f64),
    /// The requests of the second connection of each two later by this.
    Connection(f64),
    /// Requests a second, of all connections.
    Rate(f64),
    /// How long nothing passes, in each period.
    Stops(f64, f64),
}

/// Listens until it is dropped.
pub(super) struct Proxy {
    pub(super) port: u16,
    stop: Arc<AtomicBool>,
}

struct Shared {
    fault: Option<Fault>,
    began: Instant,
    /// When the next request may pass.
    free: Mutex<Instant>,
    connections: AtomicUsize,
}

impl Proxy {
    /// In front of a server of this host.
    pub(super) fn start(server: u16, fault: Option<Fault>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let proxy = Self { port: listener.local_addr()?.port(), stop: Arc::default() };
        let stop = Arc::clone(&proxy.stop);
        let now = Instant::now();
        let shared =
            Arc::new(Shared { fault, began: now, free: Mutex::new(now), connections: AtomicUsize::new(0) });
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                match listener.accept() {
                    Ok((client, _)) => {
                        let _ = connect(client, server, &shared);
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        thread::sleep(Duration::from_millis(2))
                    }
                    Err(_) => return,
                }
            }
        });
        Ok(proxy)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn connect(client: TcpStream, server: u16, shared: &Arc<Shared>) -> std::io::Result<()> {
    client.set_nonblocking(false)?;
    let server = TcpStream::connect(("127.0.0.1", server))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let number = shared.connections.fetch_add(1, Ordering::Relaxed);
    let (mut from, mut to) = (client.try_clone()?, server.try_clone()?);
    let (mut back_from, mut back_to) = (server, client);
    let shared = Arc::clone(shared);
    // Requests are what is held up: those of one connection keep their order, as a slow path keeps it.
    thread::spawn(move || {
        let _ = requests(&mut from, &mut to, number, &shared);
        let _ = to.shutdown(Shutdown::Write);
    });
    thread::spawn(move || {
        let _ = std::io::copy(&mut back_from, &mut back_to);
        let _ = back_to.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Record by record (RFC 5531, section 11).
fn requests(from: &mut TcpStream, to: &mut TcpStream, number: usize, shared: &Shared) -> std::io::Result<()> {
    let (sender, receiver) = std::sync::mpsc::channel::<(Instant, Vec<u8>)>();
    let mut sink = to.try_clone()?;
    let writer = thread::spawn(move || {
        for (due, record) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if sink.write_all(&record).is_err() {
                return;
            }
        }
    });
    let mut header = [0; 4];
    while from.read_exact(&mut header).is_ok() {
        let length = (u32::from_be_bytes(header) & 0x7fff_ffff) as usize;
        if length > 4 << 20 {
            break;
        }
        let mut record = vec![0; 4 + length];
        record[..4].copy_from_slice(&header);
        from.read_exact(&mut record[4..])?;
        if sender.send((shared.due(number), record)).is_err() {
            break;
        }
    }
    drop(sender);
    let _ = writer.join();
    Ok(())
}

impl Shared {
    /// When a request of a connection may pass.
    fn due(&self, connection: usize) -> Instant {
        let now = Instant::now();
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1e3);
        match self.fault {
            None => now,
            Some(Fault::All(delay)) => now + ms(delay),
            Some(Fault::Connection(delay)) => now + ms(if connection % 2 == 1 { delay } else { 0.0 }),
            Some(Fault::Rate(rate)) => {
                let mut free = self.free.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                *free = (*free).max(now) + ms(1e3 / rate);
                *free
            }
            Some(Fault::Stops(stop, every)) => {
                let since = now.duration_since(self.began).as_secs_f64() * 1e3;
                now + ms((stop - since % every).max(0.0))
            }
        }
    }
}
