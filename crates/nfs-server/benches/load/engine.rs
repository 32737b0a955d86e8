//! Keeps a number of calls outstanding on every connection, for a time or a number of operations.

use std::io::ErrorKind;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use benchmaster_nfs_proto::record::LAST_FRAGMENT;
use benchmaster_nfs_proto::xdr::Encoder;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::calls::{Calls, Prepared};
use super::process::cpu_time;

/// Record mark, xid, REPLY, accepted, verifier (none), success, and the status of the operation or compound.
const FRONT: usize = 32;

/// What a measurement found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Outcome {
    pub(crate) operations: u64,
    pub(crate) elapsed: Duration,
    /// CPU time of the server.
    pub(crate) cpu: Duration,
    /// Bytes of replies.
    pub(crate) received: u64,
    /// Receives of the client: how well replies come together.
    pub(crate) receives: u64,
}

impl Outcome {
    /// Operations per second.
    pub(crate) fn rate(&self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64()
    }

    /// CPU time of the server per operation, in microseconds.
    pub(crate) fn cost(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.operations as f64
    }
}

/// When to stop.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Until {
    /// After a warm-up and then this time, of which the latter is measured.
    Time(Duration),
    /// After this many operations, all measured.
    Operations(u64),
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    calls: Calls,
    window: u32,
    outstanding: u32,
    /// Calls to send, and how much of them is sent.
    out: Encoder,
    sent: usize,
    /// Front of a reply that is not whole yet.
    front: Vec<u8>,
    /// Bytes of the reply still to come that nobody looks at.
    skip: usize,
    /// Whether the next record mark continues a reply.
    continued: bool,
    waits_to_send: bool,
}

/// Runs load on connections that were prepared, and measures the server's process `pid`. The connections come back, for more.
pub(crate) fn run(prepared: Vec<Prepared>, until: Until, pid: u32) -> Result<(Outcome, Vec<Prepared>)> {
    let poll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut connections = Vec::new();
    for Prepared { stream, calls, window } in prepared {
        stream.set_nonblocking(true)?;
        epoll::add(&poll, &stream, EventData::new_u64(connections.len() as u64), EventFlags::IN)?;
        connections.push(Connection {
            stream,
            calls,
            window,
            outstanding: 0,
            out: Encoder::new(),
            sent: 0,
            front: Vec::with_capacity(FRONT),
            skip: 0,
            continued: false,
            waits_to_send: false,
        });
    }
    let mut to_start = match until {
        Until::Time(_) => u64::MAX,
        Until::Operations(operations) => operations,
    };
    let mut scratch = vec![0; 1 << 20];
    let mut total = Outcome::default();
    // Counters and times at which the measured part begins.
    let (mut base, mut began, mut cpu) = (Outcome::default(), Instant::now(), cpu_time(pid)?);
    let mut warm = matches!(until, Until::Operations(_));
    let start = began;
    for connection in &mut connections {
        for slot in 0..connection.window {
            connection.start(slot, &mut to_start);
        }
        connection.send(&poll, 0)?;
    }
    for (number, connection) in connections.iter_mut().enumerate() {
        connection.send(&poll, number as u64)?;
    }
    let mut events = Vec::with_capacity(256);
    let mut measured = None;
    loop {
        events.clear();
        let timeout = rustix::event::Timespec { tv_sec: 20, tv_nsec: 0 };
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout))?;
        ensure!(!events.is_empty(), "no reply for 20 s");
        for event in &events {
            let (flags, number) = (event.flags, event.data.u64());
            let connection = &mut connections[number as usize];
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                connection.receive(&mut scratch, &mut to_start, &mut total)?;
            }
            connection.send(&poll, number)?;
        }
        match until {
            Until::Time(time) => {
                let now = Instant::now();
                if !warm && now >= start + time / 4 {
                    (warm, base, began, cpu) = (true, total, now, cpu_time(pid)?);
                } else if warm && measured.is_none() && now >= began + time {
                    measured = Some((total, now - began, cpu_time(pid)? - cpu));
                    to_start = 0;
                }
            }
            Until::Operations(operations) => {
                if total.operations == operations {
                    measured = Some((total, began.elapsed(), cpu_time(pid)? - cpu));
                }
            }
        }
        if let Some((end, elapsed, cpu)) = measured
            && connections.iter().all(Connection::is_idle)
        {
            let outcome = Outcome {
                operations: end.operations - base.operations,
                elapsed,
                cpu,
                received: end.received - base.received,
                receives: end.receives - base.receives,
            };
            let again = connections.into_iter().map(|Connection { stream, calls, window, .. }| {
                stream.set_nonblocking(false)?;
                Ok(Prepared { stream, calls, window })
            });
            return Ok((outcome, again.collect::<Result<_>>()?));
        }
    }
}

impl Connection {
    fn start(&mut self, slot: u32, to_start: &mut u64) {
        if let Some(left) = to_start.checked_sub(1) {
            *to_start = left;
            self.outstanding += 1;
            self.calls.next(slot, self.window, &mut self.out);
        }
    }

    /// Whether nothing is to be sent and every reply has come to its end.
    fn is_idle(&self) -> bool {
        self.outstanding == 0 && self.skip == 0 && self.front.is_empty() && !self.continued
    }

    /// Sends as much as goes; asks to be told when more goes.
    fn send(&mut self, poll: &impl std::os::fd::AsFd, number: u64) -> Result<()> {
        while self.sent < self.out.buffer().len() {
            match self.stream.write(&self.out.buffer()[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    if !self.waits_to_send {
                        self.waits_to_send = true;
                        let flags = EventFlags::IN | EventFlags::OUT;
                        epoll::modify(poll, &self.stream, EventData::new_u64(number), flags)?;
                    }
                    return Ok(());
                }
                Err(e) => return Err(e).context("sending"),
            }
        }
        self.out.clear();
        self.sent = 0;
        if self.waits_to_send {
            self.waits_to_send = false;
            epoll::modify(poll, &self.stream, EventData::new_u64(number), EventFlags::IN)?;
        }
        Ok(())
    }

    /// Takes what has come, and makes a new call for every reply.
    fn receive(&mut self, scratch: &mut [u8], to_start: &mut u64, total: &mut Outcome) -> Result<()> {
        let n = match self.stream.read(scratch) {
            Ok(0) => bail!("the server closed the connection"),
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(e) => return Err(e).context("receiving"),
        };
        total.receives += 1;
        total.received += n as u64;
        let mut bytes = &scratch[..n];
        while !bytes.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                self.skip -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let whole = if self.continued { 4 } else { FRONT };
            let taken = (whole - self.front.len()).min(bytes.len());
            self.front.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.front.len() < whole {
                break;
            }
            let word = |i: usize| u32::from_be_bytes([0, 1, 2, 3].map(|k| self.front[4 * i + k]));
            let mark = word(0);
            let len = (mark & !LAST_FRAGMENT) as usize;
            if self.continued {
                self.skip = len;
            } else {
                ensure!(len + 4 >= FRONT, "a reply of {len} bytes");
                // REPLY, MSG_ACCEPTED, AUTH_NONE of no length, SUCCESS.
                let front = [2, 3, 4, 5, 6].map(word);
                ensure!(front == [1, 0, 0, 0, 0], "the RPC was refused: {front:?}");
                ensure!(word(7) == 0, "an operation failed with status {}", word(7));
                self.skip = len + 4 - FRONT;
                let slot = word(1) % self.window;
                self.outstanding = self.outstanding.checked_sub(1).context("a reply nobody waits for")?;
                total.operations += 1;
                self.start(slot, to_start);
            }
            self.front.clear();
            self.continued = mark & LAST_FRAGMENT == 0;
        }
        Ok(())
    }
}
