//! Threads that request null data as fast as they can: the test with which a winner-loser pattern of NFS clients is
//! shown to be one of TCP.
//!
//! The threads of a connection share it as an NFS client's threads do: requests are written one after the other,
//! replies come in the order of requests, and each thread reads its own.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Barrier;
use std::time::Instant;

use benchmaster_stats::fairness::{jain, max_min_ratio};
use hdrhistogram::Histogram;
use parking_lot::{Condvar, Mutex};

use crate::protocol::{GO, Kind, NULL_HEAD};
use crate::result::{Estimate, Latency, NullData};
use crate::session::Client;
use crate::stream::{Arrived, Meter};
use crate::{NullDataConfig, ProbeError};

/// Largest piece of a reply that is read at once.
const PIECE: usize = 256 << 10;

/// What one repetition measured.
#[derive(Debug)]
pub(crate) struct NullRepetition {
    /// Bytes per second of each connection.
    rates: Vec<f64>,
    /// Latencies in nanoseconds.
    latencies: Histogram<u64>,
}

/// A connection that threads share.
struct Shared {
    socket: TcpStream,
    /// Number of the next request; held while one is written, so that requests and their numbers have the same order.
    next: Mutex<u64>,
    turn: Mutex<NextReply>,
    changed: Condvar,
    /// Only the thread whose turn it is counts.
    meter: Mutex<Meter>,
}

#[derive(Default)]
struct NextReply {
    reply: u64,
    failed: bool,
}

/// Requests for warm-up and length.
pub(crate) fn repetition(client: &Client<'_>, null: &NullDataConfig) -> Result<NullRepetition, ProbeError> {
    const DOING: &str = "requests of null data";
    let failed = client.io(DOING);
    let sockets = (0..null.connections)
        .map(|_| client.open(Kind::Null, null.reply_bytes))
        .collect::<Result<Vec<_>, _>>()?;
    let origin = Instant::now();
    let (warm_up, length) = (client.warm_up, client.config.duration);
    let connection = |socket: TcpStream| {
        socket.set_read_timeout(Some(client.config.patience))?;
        socket.set_write_timeout(Some(client.config.patience))?;
        (&socket).write_all(&[GO])?;
        Ok(Shared {
            socket,
            next: Mutex::new(0),
            turn: Mutex::default(),
            changed: Condvar::new(),
            meter: Mutex::new(Meter::new(origin, warm_up, length)),
        })
    };
    let connections =
        sockets.into_iter().map(connection).collect::<io::Result<Vec<Shared>>>().map_err(&failed)?;
    let barrier = Barrier::new(connections.len() * usize::from(null.threads));
    // A little longer than what is measured, so that the last arrival of the window is not the end of the test.
    let window = (origin + warm_up, origin + warm_up + length + length / 10);
    let run = |shared: &Shared| {
        barrier.wait();
        shared.requests(null.reply_bytes as usize, window).inspect_err(|_| shared.fail())
    };
    let latencies = std::thread::scope(|scope| {
        let threads: Vec<_> = connections
            .iter()
            .flat_map(|shared| (0..null.threads).map(move |_| shared))
            .map(|shared| scope.spawn(move || run(shared)))
            .collect();
        let mut all = new_histogram()?;
        for thread in threads {
            let latencies =
                thread.join().map_err(|_| io::Error::other("a thread of the probe panicked")).flatten()?;
            all.add(latencies).map_err(io::Error::other)?;
        }
        Ok(all)
    });
    let latencies = latencies.map_err(&failed)?;
    let now = Instant::now();
    connections.iter().for_each(|shared| shared.meter.lock().end(now));
    let arrived = |shared: &Shared| shared.meter.lock().arrived().as_ref().map(Arrived::bytes_per_s);
    let rates = connections.iter().map(arrived).collect::<Option<_>>();
    Ok(NullRepetition { rates: rates.ok_or_else(|| client.too_slow(DOING))?, latencies })
}

impl Shared {
    /// Requests until the window's end; gives the latencies of those that ended in it.
    fn requests(&self, size: usize, (begin, end): (Instant, Instant)) -> io::Result<Histogram<u64>> {
        let mut latencies = new_histogram()?;
        let mut buffer = vec![0; size.min(PIECE)];
        loop {
            let began = Instant::now();
            if began >= end {
                return Ok(latencies);
            }
            let number = {
                let mut next = self.next.lock();
                let number = *next;
                (&self.socket).write_all(&number.to_be_bytes())?;
                *next += 1;
                number
            };
            {
                let mut turn = self.turn.lock();
                self.changed.wait_while(&mut turn, |turn| turn.reply != number && !turn.failed);
                if turn.failed {
                    return Err(io::Error::new(ErrorKind::BrokenPipe, "another thread's request failed"));
                }
            }
            self.reply(number, size, &mut buffer)?;
            self.turn.lock().reply += 1;
            self.changed.notify_all();
            let now = Instant::now();
            if began >= begin && now < end {
                latencies.saturating_record(u64::try_from((now - began).as_nanos()).unwrap_or(u64::MAX));
            }
        }
    }

    /// Reads a reply; the caller's turn must have come.
    fn reply(&self, number: u64, size: usize, buffer: &mut [u8]) -> io::Result<()> {
        let mut head = [0; NULL_HEAD];
        let mut socket = &self.socket;
        socket.read_exact(&mut head)?;
        if u64::from_be_bytes(head) != number {
            return Err(io::Error::new(ErrorKind::InvalidData, "the reply is of another request"));
        }
        let mut left = size;
        let mut meter = self.meter.lock();
        while left > 0 {
            let piece = left.min(buffer.len());
            match socket.read(buffer.get_mut(..piece).unwrap_or_default()) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    meter.add(n, Instant::now());
                    left -= n;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Wakes the other threads of the connection, which would wait forever.
    fn fail(&self) {
        self.turn.lock().failed = true;
        self.changed.notify_all();
        // One that the other end closed already is as good.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// From 1 µs to 100 s, with an error below 0.1 %.
fn new_histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_bounds(1_000, 100_000_000_000, 3).map_err(io::Error::other)
}

/// `None` when nothing was measured.
pub(crate) fn sum_up(null: &NullDataConfig, repetitions: &[NullRepetition]) -> Option<NullData> {
    let totals: Vec<f64> = repetitions.iter().map(|repetition| repetition.rates.iter().sum()).collect();
    let several = |of: fn(&[f64]) -> Option<f64>| {
        let values = repetitions.iter().filter(|r| r.rates.len() > 1).map(|r| of(&r.rates));
        let values: Option<Vec<f64>> = values.collect();
        Estimate::of(values?)
    };
    let latencies: Vec<_> = repetitions.iter().map(|repetition| &repetition.latencies).collect();
    Some(NullData {
        connections: null.connections,
        threads: null.threads,
        reply_bytes: null.reply_bytes,
        requests_per_s: Estimate::of(totals.iter().map(|rate| rate / f64::from(null.reply_bytes)).collect())?,
        bytes_per_s: Estimate::of(totals)?,
        fairness: several(jain),
        winner_loser_ratio: several(|rates| max_min_ratio(rates).filter(|ratio| ratio.is_finite())),
        latency: Latency::of_histograms(&latencies)?,
        connection_bytes_per_s: repetitions.iter().map(|repetition| repetition.rates.clone()).collect(),
    })
}
