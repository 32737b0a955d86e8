//! The client of a probe: opens connections to the far end, makes tests take turns, and sums up.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Barrier;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use benchmaster_stats::fairness::jain;
use socket2::SockRef;

use crate::far_end::{FarEnd, serve};
use crate::null::{self, NullRepetition};
use crate::protocol::{GO, Kind};
use crate::result::{Direction, Estimate, Flow, Latency, NetworkProbe, Repetition, Throughput};
use crate::session::Client;
use crate::stream::{self, Arrived, MARGIN, Meter};
use crate::tcp_info::TcpSample;
use crate::{ProbeConfig, ProbeError, ServeConfig, handshake};

/// Round trips that are not counted, in every repetition.
const FIRST_ROUND_TRIPS: usize = 20;

/// Probes the network; see [`ProbeConfig`].
///
/// # Errors
/// See [`ProbeError`]. There is no partial result.
pub fn network(config: &ProbeConfig) -> Result<NetworkProbe, ProbeError> {
    network_with(config, &mut |_, _| {})
}

/// As [`network`], and says before each repetition of a test what it is, and which share of the probe is done (0 to 1).
///
/// # Errors
/// As [`network`].
pub fn network_with(
    config: &ProbeConfig,
    progress: &mut dyn FnMut(&str, f64),
) -> Result<NetworkProbe, ProbeError> {
    config.check()?;
    let own = match config.target {
        Some(_) => None,
        None => Some(own_far_end(config)?),
    };
    let target = config.target.or_else(|| own.as_ref().map(FarEnd::address));
    let target = target.ok_or_else(|| ProbeError::Config("no far end".into()))?;
    let began = Instant::now();
    let began_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let mut probe = Client { config, target, warm_up: Duration::ZERO };
    progress("round trips", 0.0);
    let (connects, round_trips, about) = probe.latencies()?;
    probe.warm_up = config.warm_up_for(Duration::from_secs_f64(round_trips.median_us / 1e6));
    let (transfers, nulls) = probe.transfers(progress)?;
    let sum_up = |((direction, flows), repetitions)| throughput(direction, flows, repetitions);
    let null = config.null_data.as_ref();
    Ok(NetworkProbe {
        target,
        own_far_end: own.is_some(),
        began_ms: u64::try_from(began_ms).unwrap_or(u64::MAX),
        seconds: began.elapsed().as_secs_f64(),
        congestion_control: about.congestion_control,
        mss_bytes: about.mss_bytes,
        round_trip: round_trips,
        message_bytes: config.message_bytes,
        connect: connects,
        throughput: tests(config)
            .zip(transfers)
            .map(sum_up)
            .collect::<Option<_>>()
            .ok_or_else(|| probe.too_slow("a transfer"))?,
        null_data: match null {
            Some(null) => {
                Some(null::sum_up(null, &nulls).ok_or_else(|| probe.too_slow("requests of null data"))?)
            }
            None => None,
        },
    })
}

fn own_far_end(config: &ProbeConfig) -> Result<FarEnd, ProbeError> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    serve(ServeConfig { token: config.token.clone(), patience: config.patience, ..ServeConfig::new(listen) })
}

/// Transfers of a repetition, in order.
fn tests(config: &ProbeConfig) -> impl Iterator<Item = (Direction, u16)> + '_ {
    let of = |direction: &Direction| {
        let direction = *direction;
        config.flows.iter().map(move |flows| (direction, *flows))
    };
    config.directions.iter().flat_map(of)
}

fn throughput(direction: Direction, flows: u16, repetitions: Vec<Repetition>) -> Option<Throughput> {
    let fairness: Vec<f64> = repetitions.iter().filter_map(|repetition| repetition.fairness).collect();
    Some(Throughput {
        direction,
        flows,
        bytes_per_s: Estimate::of(repetitions.iter().map(|repetition| repetition.bytes_per_s).collect())?,
        fairness: Estimate::of(fairness),
        repetitions,
    })
}

/// What the kernel says of a connection once.
struct About {
    congestion_control: Option<String>,
    mss_bytes: Option<u64>,
}

impl Client<'_> {
    fn latencies(&self) -> Result<(Latency, Latency, About), ProbeError> {
        let config = self.config;
        let (mut connects, mut trips) = (Vec::new(), Vec::new());
        let mut about = About { congestion_control: None, mss_bytes: None };
        for repetition in 0..config.repetitions {
            config.stopped()?;
            let times = (0..share(config.connects, config.repetitions, repetition)).map(|_| {
                let (_, took) = handshake::connect(self.target, config.patience)?;
                Ok(microseconds(took))
            });
            connects.push(times.collect::<Result<Vec<f64>, ProbeError>>()?);
            let n = share(config.round_trips, config.repetitions, repetition);
            let mut socket = self.open(Kind::Echo, config.message_bytes)?;
            trips.push(self.round_trips(&mut socket, n).map_err(self.io("round trips"))?);
            about = About {
                congestion_control: SockRef::from(&socket).tcp_congestion().ok().and_then(name),
                mss_bytes: TcpSample::read(&socket, Duration::ZERO).ok().map(|sample| sample.mss_bytes),
            };
        }
        let none = || self.too_slow("round trips");
        Ok((Latency::of(&connects).ok_or_else(none)?, Latency::of(&trips).ok_or_else(none)?, about))
    }

    /// Up to this many round trips, as time permits; at least one.
    fn round_trips(&self, socket: &mut TcpStream, n: u32) -> io::Result<Vec<f64>> {
        let mut message = vec![0; self.config.message_bytes as usize];
        socket.set_read_timeout(Some(self.config.patience))?;
        socket.set_write_timeout(Some(self.config.patience))?;
        socket.write_all(&[GO])?;
        let mut trip = |message: &mut [u8]| {
            let began = Instant::now();
            socket.write_all(message)?;
            socket.read_exact(message)?;
            Ok::<_, io::Error>((began.elapsed(), began))
        };
        let first = Instant::now();
        for _ in 0..FIRST_ROUND_TRIPS {
            trip(&mut message)?;
            if first.elapsed() > self.config.duration / 2 {
                break;
            }
        }
        let (mut times, began) = (Vec::new(), Instant::now());
        for _ in 0..n {
            let (took, _) = trip(&mut message)?;
            times.push(microseconds(took));
            if began.elapsed() > self.config.duration {
                break;
            }
        }
        Ok(times)
    }

    /// All repetitions of all transfers, which take turns: by test, and then by repetition.
    fn transfers(
        &self,
        progress: &mut dyn FnMut(&str, f64),
    ) -> Result<(Vec<Vec<Repetition>>, Vec<NullRepetition>), ProbeError> {
        let tests: Vec<_> = tests(self.config).collect();
        let mut transfers: Vec<Vec<Repetition>> = vec![Vec::new(); tests.len()];
        let mut nulls = Vec::new();
        let all = (tests.len() + 1) * usize::from(self.config.repetitions);
        let mut done = 0;
        let mut say = |what: &str| {
            progress(what, done as f64 / all as f64);
            done += 1;
        };
        for _ in 0..self.config.repetitions {
            for ((direction, flows), repetitions) in tests.iter().zip(&mut transfers) {
                self.config.stopped()?;
                let (to, plural) = match direction {
                    Direction::ToFarEnd => ("to the far end", if *flows == 1 { "" } else { "s" }),
                    Direction::ToClient => ("to the client", if *flows == 1 { "" } else { "s" }),
                };
                say(&format!("{flows} flow{plural} {to}"));
                repetitions.push(self.transfer(*direction, *flows)?);
            }
            if let Some(null) = &self.config.null_data {
                self.config.stopped()?;
                say("requests of null data");
                nulls.push(null::repetition(self, null)?);
            }
        }
        Ok((transfers, nulls))
    }

    fn transfer(&self, direction: Direction, flows: u16) -> Result<Repetition, ProbeError> {
        let kind = match direction {
            Direction::ToFarEnd => Kind::Receive,
            Direction::ToClient => Kind::Send,
        };
        let sockets = (0..flows).map(|_| self.open(kind, 0)).collect::<Result<Vec<_>, _>>()?;
        let barrier = Barrier::new(sockets.len());
        let flow = |socket: &TcpStream| {
            barrier.wait();
            match direction {
                Direction::ToFarEnd => self.to_far_end(socket),
                Direction::ToClient => self.to_client(socket),
            }
        };
        let flows = std::thread::scope(|scope| {
            let threads: Vec<_> = sockets.iter().map(|socket| scope.spawn(|| flow(socket))).collect();
            let ended = threads.into_iter().map(|thread| {
                let died = || ProbeError::Resources(io::Error::other("a thread of the probe panicked"));
                thread.join().map_err(|_| died())?
            });
            ended.collect::<Result<Vec<Flow>, ProbeError>>()
        })?;
        let rates: Vec<f64> = flows.iter().map(|flow| flow.bytes_per_s).collect();
        let fairness = (rates.len() > 1).then(|| jain(&rates)).flatten();
        Ok(Repetition { bytes_per_s: rates.iter().sum(), fairness, flows })
    }

    fn to_far_end(&self, mut socket: &TcpStream) -> Result<Flow, ProbeError> {
        const DOING: &str = "a transfer to the far end";
        let config = self.config;
        let length = self.warm_up + config.duration + MARGIN;
        let mut counted = [0; 16];
        let mut transfer = || {
            socket.write_all(&[GO])?;
            let samples = stream::send(socket, length, config.sample_interval, config.patience)?;
            socket.set_read_timeout(Some(config.patience + length))?;
            socket.read_exact(&mut counted)?;
            Ok(samples)
        };
        let samples = transfer().map_err(self.io(DOING))?;
        let (bytes, nanoseconds) = counted.split_at(8);
        let number =
            |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes: &[u8; 8]| u64::from_be_bytes(*bytes));
        let arrived = Arrived { bytes: number(bytes), time: Duration::from_nanos(number(nanoseconds)) };
        if arrived.time.is_zero() {
            return Err(self.too_slow(DOING));
        }
        self.flow(socket, arrived, samples).map_err(self.io(DOING))
    }

    fn to_client(&self, mut socket: &TcpStream) -> Result<Flow, ProbeError> {
        const DOING: &str = "a transfer to the client";
        let (length, patience) = (self.warm_up + self.config.duration, self.config.patience);
        let mut meter = Meter::new(Instant::now(), self.warm_up, self.config.duration);
        let longest = length * 2 + patience;
        let samples = socket
            .write_all(&[GO])
            .and_then(|()| stream::receive(socket, &mut meter, longest, patience))
            .map_err(self.io(DOING))?;
        let arrived = meter.arrived().ok_or_else(|| self.too_slow(DOING))?;
        self.flow(socket, arrived, samples).map_err(self.io(DOING))
    }

    fn flow(&self, socket: &TcpStream, arrived: Arrived, samples: Vec<TcpSample>) -> io::Result<Flow> {
        Ok(Flow {
            port: socket.local_addr()?.port(),
            bytes_per_s: arrived.bytes_per_s(),
            seconds: arrived.time.as_secs_f64(),
            retransmits: samples.last().map_or(0, |sample| sample.retransmits),
            samples,
        })
    }
}

/// A part of `all` for one of several repetitions; the parts add up.
pub(crate) fn share(all: u32, repetitions: u16, repetition: u16) -> u32 {
    let (of, at) = (u32::from(repetitions), u32::from(repetition));
    all / of + u32::from(at < all % of)
}

pub(crate) fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// The kernel fills the rest with zeros.
fn name(bytes: Vec<u8>) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        let shares = |all, of| (0..of).map(|at| share(all, of, at)).collect::<Vec<_>>();
        assert_eq!(shares(20, 5), [4; 5]);
        assert_eq!(shares(7, 3), [3, 2, 2]);
        assert_eq!(shares(1, 3), [1, 0, 0]);
    }
}
