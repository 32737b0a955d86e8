//! Bulk transfer: one end sends zeros in frames as fast as it can, the other counts what arrives in a window of time.
//!
//! A frame is its kind (u8), three zero bytes, its length (u32), and that many bytes. The last frame carries what its
//! sender knows: TCP_INFO over time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::tcp_info::TcpSample;

/// Zeros in a frame.
const FRAME: usize = 256 << 10;
const HEAD: usize = 8;
const DATA: u8 = 0;
const END: u8 = 1;
/// Readings of TCP_INFO in an end frame; a minute at the shortest interval is fewer.
const MOST_SAMPLES: usize = 8_000;
/// Numbers of a reading.
const FIELDS: usize = 12;
/// The sender goes on for so long after the window, because the receiver's began later.
pub(crate) const MARGIN: Duration = Duration::from_millis(50);

/// Counts bytes in a window of time: from the first arrival after the warm-up to the first at or after the window's
/// length. Both ends are arrivals, so that the rate is that of whole pieces. Where arrivals are too few for that, it
/// is what arrived from the warm-up's end to the stream's: a flow that gets nothing has the rate 0.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    begin: Instant,
    length: Duration,
    start: Option<Instant>,
    last: Option<Instant>,
    bytes: u64,
    done: bool,
    /// Bytes since the warm-up, those of the first arrival too.
    all: u64,
    end: Option<Instant>,
}

/// What arrived, in which time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrived {
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

impl Arrived {
    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 / self.time.as_secs_f64()
    }
}

impl Meter {
    /// The window begins `warm_up` after `origin`.
    pub(crate) fn new(origin: Instant, warm_up: Duration, length: Duration) -> Self {
        Self {
            begin: origin + warm_up,
            length,
            start: None,
            last: None,
            bytes: 0,
            done: false,
            all: 0,
            end: None,
        }
    }

    /// Counts bytes that had arrived at `now`.
    pub(crate) fn add(&mut self, bytes: usize, now: Instant) {
        if now >= self.begin {
            self.all += bytes as u64;
        }
        match self.start {
            _ if self.done => {}
            None if now >= self.begin => self.start = Some(now),
            None => {}
            Some(start) => {
                self.bytes += bytes as u64;
                self.last = Some(now);
                self.done = now - start >= self.length;
            }
        }
    }

    /// The stream ended.
    pub(crate) fn end(&mut self, now: Instant) {
        self.end = Some(now);
    }

    /// What arrived in the window, or half of it; else from its beginning to the stream's end. `None` when that came
    /// before half of the window had passed.
    pub(crate) fn arrived(&self) -> Option<Arrived> {
        let enough = |time: &Duration| *time >= self.length / 2 && *time > Duration::ZERO;
        let between = || Some((self.bytes, (self.last? - self.start?)));
        let until_end = || Some((self.all, self.end?.checked_duration_since(self.begin)?));
        let long = |(bytes, time): (u64, Duration)| enough(&time).then_some(Arrived { bytes, time });
        between().and_then(long).or_else(|| until_end().and_then(long))
    }
}

/// Takes readings at an interval.
#[derive(Debug)]
pub(crate) struct Sampler {
    began: Instant,
    every: Duration,
    next: Instant,
    samples: Vec<TcpSample>,
}

impl Sampler {
    pub(crate) fn new(every: Duration) -> Self {
        let now = Instant::now();
        Self { began: now, every, next: now, samples: Vec::new() }
    }

    /// Reads if it is time.
    pub(crate) fn tick(&mut self, socket: &TcpStream, now: Instant) -> io::Result<()> {
        if now < self.next || self.samples.len() >= MOST_SAMPLES - 1 {
            return Ok(());
        }
        // Readings that were missed are not made up for.
        self.next = now + self.every;
        self.read(socket, now)
    }

    fn read(&mut self, socket: &TcpStream, now: Instant) -> io::Result<()> {
        self.samples.push(TcpSample::read(socket, now - self.began)?);
        Ok(())
    }

    /// A last reading, and all of them.
    pub(crate) fn finish(mut self, socket: &TcpStream) -> io::Result<Vec<TcpSample>> {
        self.read(socket, Instant::now())?;
        Ok(self.samples)
    }
}

/// Sends frames for `length`, then the end frame. Gives the readings that the end frame carries. No write waits
/// longer than `patience`, and all that follows `length` takes no longer than `length` and `patience` together.
pub(crate) fn send(
    mut socket: &TcpStream,
    length: Duration,
    every: Duration,
    patience: Duration,
) -> io::Result<Vec<TcpSample>> {
    // A write that waits is cut short, so that readings are taken while the network is slow.
    socket.set_write_timeout(Some(every))?;
    let mut frame = vec![0; HEAD + FRAME];
    frame[..HEAD].copy_from_slice(&head(DATA, FRAME));
    let mut sampler = Sampler::new(every);
    let (began, mut progress, mut at) = (Instant::now(), Instant::now(), 0);
    let deadline = began + length * 2 + patience;
    let in_time = |now| if now > deadline { Err(io::Error::from(ErrorKind::TimedOut)) } else { Ok(()) };
    loop {
        let now = Instant::now();
        in_time(now)?;
        sampler.tick(socket, now)?;
        if at == 0 && now - began >= length {
            break;
        }
        let written = written(socket.write(&frame[at..]), now - progress, patience)?;
        if written > 0 {
            (at, progress) = ((at + written) % frame.len(), now);
        }
    }
    let samples = sampler.finish(socket)?;
    let content = encode(&samples);
    let end = [&head(END, content.len())[..], &content].concat();
    let mut rest = &end[..];
    while !rest.is_empty() {
        let now = Instant::now();
        in_time(now)?;
        let written = written(socket.write(rest), now - progress, patience)?;
        if written > 0 {
            (rest, progress) = (&rest[written..], now);
        }
    }
    Ok(samples)
}

/// Bytes written; 0 when the buffer was full until the timeout.
fn written(result: io::Result<usize>, waited: Duration, patience: Duration) -> io::Result<usize> {
    match result {
        Ok(0) => Err(ErrorKind::WriteZero.into()),
        Ok(n) => Ok(n),
        Err(error) if is_timeout(&error) && waited < patience => Ok(0),
        Err(error) if is_timeout(&error) => Err(ErrorKind::TimedOut.into()),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

pub(crate) fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Receives until the end frame; gives the sender's readings. No receive waits longer than `patience`.
pub(crate) fn receive(
    mut socket: &TcpStream,
    meter: &mut Meter,
    longest: Duration,
    patience: Duration,
) -> io::Result<Vec<TcpSample>> {
    socket.set_read_timeout(Some(patience))?;
    let (mut frames, mut buffer) = (Frames::default(), vec![0; FRAME]);
    let deadline = Instant::now() + longest;
    loop {
        let read = match socket.read(&mut buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_timeout(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        };
        let now = Instant::now();
        let (data, end) = frames.take(&buffer[..read])?;
        if data > 0 {
            meter.add(data, now);
        }
        if end {
            meter.end(now);
            return decode(&frames.end);
        }
        if now > deadline {
            return Err(io::Error::new(ErrorKind::InvalidData, "the stream goes on after its time"));
        }
    }
}

/// Cuts a stream into frames.
#[derive(Debug, Default)]
struct Frames {
    head: Vec<u8>,
    kind: u8,
    left: usize,
    end: Vec<u8>,
}

impl Frames {
    /// How many bytes of data there are in `bytes`, and whether the end frame is whole.
    fn take(&mut self, mut bytes: &[u8]) -> io::Result<(usize, bool)> {
        let wrong = |problem: &str| Err(io::Error::new(ErrorKind::InvalidData, problem));
        let mut data = 0;
        loop {
            if self.left == 0 {
                let (head, rest) = bytes.split_at(bytes.len().min(HEAD - self.head.len()));
                self.head.extend_from_slice(head);
                bytes = rest;
                let Some(&[kind, _, _, _, a, b, c, d]) = self.head.first_chunk::<HEAD>() else {
                    return Ok((data, false));
                };
                self.head.clear();
                (self.kind, self.left) = (kind, u32::from_be_bytes([a, b, c, d]) as usize);
                let most = match kind {
                    DATA => FRAME,
                    END => MOST_SAMPLES * FIELDS * 8,
                    _ => return wrong("a frame of an unknown kind"),
                };
                if self.left > most || (self.left == 0 && kind == DATA) {
                    return wrong("a frame with a wrong length");
                }
            }
            let (content, rest) = bytes.split_at(bytes.len().min(self.left));
            (self.left, bytes) = (self.left - content.len(), rest);
            match self.kind {
                END => self.end.extend_from_slice(content),
                _ => data += content.len(),
            }
            match (self.kind, self.left) {
                (END, 0) if bytes.is_empty() => return Ok((data, true)),
                (END, 0) => return wrong("something follows the end frame"),
                (_, 0) => {}
                _ => return Ok((data, false)),
            }
        }
    }
}

fn head(kind: u8, length: usize) -> [u8; HEAD] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [kind, 0, 0, 0, a, b, c, d]
}

/// Numbers that are not known are all ones.
pub(crate) fn encode(samples: &[TcpSample]) -> Vec<u8> {
    let optional = |value: Option<u64>| value.unwrap_or(u64::MAX);
    let fields = |s: &TcpSample| -> [u64; FIELDS] {
        [
            s.at_us,
            s.cwnd_segments,
            s.mss_bytes,
            s.rtt_us,
            s.rttvar_us,
            s.retransmits,
            optional(s.min_rtt_us),
            optional(s.delivery_rate),
            optional(s.bytes_acked),
            optional(s.busy_us),
            optional(s.receive_window_limited_us),
            optional(s.send_buffer_limited_us),
        ]
    };
    samples.iter().flat_map(fields).flat_map(u64::to_be_bytes).collect()
}

pub(crate) fn decode(bytes: &[u8]) -> io::Result<Vec<TcpSample>> {
    let (samples, rest) = bytes.as_chunks::<{ FIELDS * 8 }>();
    if !rest.is_empty() {
        return Err(io::Error::new(ErrorKind::InvalidData, "an end frame with a wrong length"));
    }
    let sample = |bytes: &[u8; FIELDS * 8]| {
        let (words, _) = bytes.as_chunks::<8>();
        let number = |at: usize| words.get(at).map_or(0, |word| u64::from_be_bytes(*word));
        let optional = |at: usize| Some(number(at)).filter(|value| *value != u64::MAX);
        TcpSample {
            at_us: number(0),
            cwnd_segments: number(1),
            mss_bytes: number(2),
            rtt_us: number(3),
            rttvar_us: number(4),
            retransmits: number(5),
            min_rtt_us: optional(6),
            delivery_rate: optional(7),
            bytes_acked: optional(8),
            busy_us: optional(9),
            receive_window_limited_us: optional(10),
            send_buffer_limited_us: optional(11),
        }
    };
    Ok(samples.iter().map(sample).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_window_lies_between_arrivals() {
        let origin = Instant::now();
        let at = |ms: u64| origin + Duration::from_millis(ms);
        let mut meter = Meter::new(origin, Duration::from_millis(10), Duration::from_millis(20));
        meter.add(1_000, at(5));
        meter.add(1_000, at(12));
        assert_eq!(meter.arrived(), None);
        meter.add(100, at(15));
        assert_eq!(meter.arrived(), None, "less than half");
        meter.add(100, at(31));
        let half = Arrived { bytes: 200, time: Duration::from_millis(19) };
        assert_eq!(meter.arrived(), Some(half), "the stream may end here");
        meter.add(100, at(36));
        meter.add(100, at(37));
        let whole = Arrived { bytes: 300, time: Duration::from_millis(24) };
        assert_eq!(meter.arrived(), Some(whole));
        assert_eq!(whole.bytes_per_s(), 12_500.0);
    }

    #[test]
    fn a_flow_that_gets_little_has_a_rate_too() {
        let origin = Instant::now();
        let at = |ms: u64| origin + Duration::from_millis(ms);
        let meter = || Meter::new(origin, Duration::from_millis(10), Duration::from_millis(20));
        let mut starved = meter();
        starved.add(1_000, at(5));
        starved.end(at(19));
        assert_eq!(starved.arrived(), None, "the stream ended early");
        starved.end(at(35));
        assert_eq!(starved.arrived(), Some(Arrived { bytes: 0, time: Duration::from_millis(25) }));
        let mut burst = meter();
        burst.add(1_000, at(34));
        burst.add(500, at(35));
        burst.end(at(35));
        assert_eq!(burst.arrived(), Some(Arrived { bytes: 1_500, time: Duration::from_millis(25) }));
    }

    fn sample(n: u64) -> TcpSample {
        TcpSample { at_us: n, rtt_us: 7, delivery_rate: Some(n), ..TcpSample::default() }
    }

    #[test]
    fn frames_are_cut_however_they_arrive() {
        let samples: Vec<_> = (0..5).map(sample).collect();
        let content = encode(&samples);
        let stream =
            [&head(DATA, 10)[..], &[0; 10], &head(DATA, 3), &[0; 3], &head(END, content.len()), &content]
                .concat();
        for step in 1..stream.len() {
            let (mut frames, mut data, mut ended) = (Frames::default(), 0, false);
            for piece in stream.chunks(step) {
                assert!(!ended);
                let (more, end) = frames.take(piece).unwrap();
                (data, ended) = (data + more, end);
            }
            assert!(ended);
            assert_eq!((data, decode(&frames.end).unwrap()), (13, samples.clone()));
        }
    }

    #[test]
    fn hostile_frames_are_refused() {
        let refused = |bytes: &[u8]| Frames::default().take(bytes).unwrap_err().kind();
        for bytes in [head(2, 1), head(DATA, FRAME + 1), head(DATA, 0), head(END, u32::MAX as usize)] {
            assert_eq!(refused(&bytes), ErrorKind::InvalidData);
        }
        assert_eq!(refused(&[&head(END, 0)[..], b"x"].concat()), ErrorKind::InvalidData);
        assert!(decode(&[0; 95]).is_err());
        assert_eq!(decode(&[]).unwrap(), []);
    }

    proptest! {
        #[test]
        fn any_stream_is_counted_or_refused(
            bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1u8), any::<u8>()], 0..200),
        ) {
            if let Ok((data, _)) = Frames::default().take(&bytes) {
                prop_assert!(data <= bytes.len());
            }
        }
    }
}
