//! Packets as segments of TCP, segments as streams, and streams as RPC records.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use benchmaster_nfs_proto::record::LAST_FRAGMENT;
use benchmaster_nfs_proto::rpc::{CALL, REPLY, RPC_VERSION};

use super::Captured;

pub(super) type End = (IpAddr, u16);

/// A longer record is none of NFS.
const LARGEST: usize = 8 << 20;
/// The shortest reply.
const SHORTEST: usize = 24;
/// Bytes that wait for one that is missing before it is given up.
const PATIENCE: usize = 4 << 20;

const TCP: u8 = 6;

#[derive(Debug)]
pub(super) struct Segment<'p> {
    pub(super) from: End,
    pub(super) to: End,
    sequence: u32,
    /// Number of the next byte that the other end is to send.
    acknowledges: Option<u32>,
    begins: bool,
    data: &'p [u8],
}

/// The segment in a packet, or why there is none.
pub(super) fn segment(link: u32, packet: &[u8]) -> Result<Segment<'_>, &'static str> {
    let short = "packets that are cut off before their data";
    let mut rest = match link {
        // BSD loopback, Ethernet, raw IP, Linux "cooked" captures.
        0 | 108 => packet.get(4..),
        1 => ethernet(packet),
        12 | 101 | 228 | 229 => Some(packet),
        113 => packet.get(16..),
        276 => packet.get(20..),
        _ => return Err("packets of an unknown kind of network"),
    }
    .ok_or(short)?;
    let version = rest.first().ok_or(short)? >> 4;
    let (from, to, protocol) = match version {
        4 => {
            let header = rest.get(..20).ok_or(short)?;
            if u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0 {
                return Err("fragments of IP packets");
            }
            let address = |at: usize| {
                IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]))
            };
            let addresses = (address(12), address(16), header[9]);
            // Behind the packet an Ethernet frame may be padded; 0 stands for one that the card cuts up.
            let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let end = if total == 0 { rest.len() } else { total.min(rest.len()) };
            rest = rest.get(usize::from(header[0] & 15) * 4..end).ok_or(short)?;
            addresses
        }
        6 => {
            let header = rest.get(..40).ok_or(short)?;
            let address = |at: usize| {
                let mut bytes = [0; 16];
                bytes.copy_from_slice(&header[at..at + 16]);
                IpAddr::V6(Ipv6Addr::from(bytes))
            };
            let addresses = (address(8), address(24), header[6]);
            let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let end = if length == 0 { rest.len() } else { (40 + length).min(rest.len()) };
            rest = rest.get(40..end).ok_or(short)?;
            addresses
        }
        _ => return Err("packets that are not IP"),
    };
    if protocol != TCP {
        return Err("packets that are not TCP");
    }
    let header = rest.get(..20).ok_or(short)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let data = rest.get(usize::from(header[12] >> 4) * 4..).ok_or(short)?;
    Ok(Segment {
        from: (from, word(0)),
        to: (to, word(2)),
        sequence: number(4),
        acknowledges: (header[13] & 16 != 0).then(|| number(8)),
        begins: header[13] & 2 != 0,
        data,
    })
}

/// What an Ethernet frame carries, behind the tags of virtual networks.
fn ethernet(frame: &[u8]) -> Option<&[u8]> {
    let mut at = 12;
    while matches!(frame.get(at..at + 2)?, [0x81, 0x00] | [0x88, 0xa8]) {
        at += 4;
    }
    frame.get(at + 2..)
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Stream {
    /// Sequence number of the next byte; none before the first segment.
    next: Option<u32>,
    /// Segments behind one that is missing, by their distance from the stream's first byte.
    waiting: BTreeMap<u64, Vec<u8>>,
    waiting_bytes: usize,
    /// Bytes taken so far.
    position: u64,
    /// Whether records begin where the last one ended; else one is looked for at the start of each segment.
    aligned: bool,
    /// It carries something else.
    foreign: bool,
    buffer: Vec<u8>,
    record: Vec<u8>,
    last_ns: u64,
}

/// Is given each record: between which ends, when, and its bytes.
pub(super) type Emit<'a> = dyn FnMut((End, End), u64, &[u8], &mut Captured) + 'a;

/// All streams of a capture.
#[derive(Debug, Default)]
pub(super) struct Streams(HashMap<(End, End), Stream>);

impl Streams {
    /// Takes in a segment, and gives the records that it completes, with their ends and time.
    pub(super) fn take(
        &mut self,
        segment: &Segment<'_>,
        at_ns: u64,
        captured: &mut Captured,
        emit: &mut Emit<'_>,
    ) {
        let (ends, back) = ((segment.from, segment.to), (segment.to, segment.from));
        if let (Some(acknowledged), Some(stream)) = (segment.acknowledges, self.0.get_mut(&back)) {
            // What the other end has received and the capture has not is not going to come.
            while !stream.foreign && stream.lacks(acknowledged) {
                stream.give_up(captured, &mut |record, captured| emit(back, at_ns, record, captured));
            }
        }
        let stream = self.0.entry(ends).or_default();
        if segment.begins {
            // A new connection of the same two ends.
            *stream =
                Stream { next: Some(segment.sequence.wrapping_add(1)), aligned: true, ..Stream::default() };
            return;
        }
        stream.last_ns = at_ns;
        if !stream.foreign && !segment.data.is_empty() {
            let emit = &mut |record: &[u8], captured: &mut Captured| emit(ends, at_ns, record, captured);
            stream.segment(segment.sequence, segment.data, captured, emit);
        }
    }

    /// The capture is over: what waits for missing bytes goes on without them.
    pub(super) fn end(self, captured: &mut Captured, emit: &mut Emit<'_>) {
        for (ends, mut stream) in self.0 {
            let at_ns = stream.last_ns;
            while !stream.waiting.is_empty() && !stream.foreign {
                stream.give_up(captured, &mut |record, captured| emit(ends, at_ns, record, captured));
            }
        }
    }
}

impl Stream {
    /// Whether bytes before this number are missing, and later ones are here.
    fn lacks(&self, number: u32) -> bool {
        let ahead = self.next.map_or(0, |next| number.wrapping_sub(next).cast_signed());
        let first = self.waiting.first_key_value().map(|(at, _)| at - self.position);
        first.is_some_and(|first| i64::from(ahead) >= first.cast_signed())
    }

    fn segment(
        &mut self,
        sequence: u32,
        data: &[u8],
        captured: &mut Captured,
        emit: &mut dyn FnMut(&[u8], &mut Captured),
    ) {
        let next = *self.next.get_or_insert(sequence);
        let ahead = sequence.wrapping_sub(next).cast_signed();
        if ahead > 0 {
            let at = self.position + u64::from(ahead.unsigned_abs());
            let known = self.waiting.get(&at).map_or(0, Vec::len);
            if data.len() > known {
                self.waiting_bytes += data.len() - known;
                self.waiting.insert(at, data.to_vec());
            }
            while self.waiting_bytes > PATIENCE {
                self.give_up(captured, emit);
            }
            return;
        }
        // What was there before stays.
        let old = ahead.unsigned_abs() as usize;
        if let Some(new) = data.get(old..).filter(|new| !new.is_empty()) {
            self.accept(new, captured, emit);
            self.follow(captured, emit);
        }
    }

    /// Goes on with the segments that are no longer ahead.
    fn follow(&mut self, captured: &mut Captured, emit: &mut dyn FnMut(&[u8], &mut Captured)) {
        while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() <= self.position) {
            let (at, data) = entry.remove_entry();
            self.waiting_bytes -= data.len();
            let old = (self.position - at) as usize;
            if let Some(new) = data.get(old..).filter(|new| !new.is_empty()) {
                self.accept(new, captured, emit);
            }
        }
    }

    /// Goes on behind bytes that are missing.
    fn give_up(&mut self, captured: &mut Captured, emit: &mut dyn FnMut(&[u8], &mut Captured)) {
        let Some((&at, _)) = self.waiting.first_key_value() else { return };
        let missing = at - self.position;
        captured.unusable("gaps in streams", 1);
        captured.unusable("bytes missing in gaps", missing);
        self.next = self.next.map(|next| next.wrapping_add(missing as u32));
        self.position = at;
        self.realign();
        self.follow(captured, emit);
    }

    fn realign(&mut self) {
        self.aligned = false;
        self.buffer.clear();
        self.record.clear();
    }

    /// Takes the next bytes of the stream.
    fn accept(&mut self, data: &[u8], captured: &mut Captured, emit: &mut dyn FnMut(&[u8], &mut Captured)) {
        let first = self.position == 0;
        self.position += data.len() as u64;
        self.next = self.next.map(|next| next.wrapping_add(data.len() as u32));
        if !self.aligned {
            if !begins_a_record(data) {
                return;
            }
            self.aligned = true;
        } else if first && data.len() >= 16 && !begins_a_record(data) {
            self.foreign = true;
            return;
        }
        self.buffer.extend_from_slice(data);
        let mut at = 0;
        while let Some(header) = self.buffer[at..].first_chunk::<4>() {
            let header = u32::from_be_bytes(*header);
            let length = (header & !LAST_FRAGMENT) as usize;
            if self.record.len() + length > LARGEST {
                captured.unusable("streams that go on with something else than records", 1);
                return self.realign();
            }
            let Some(fragment) = self.buffer.get(at + 4..at + 4 + length) else { break };
            self.record.extend_from_slice(fragment);
            at += 4 + length;
            if header & LAST_FRAGMENT != 0 {
                emit(&std::mem::take(&mut self.record), captured);
            }
        }
        self.buffer.drain(..at);
    }
}

/// Whether these bytes look like the beginning of a call or a reply.
fn begins_a_record(data: &[u8]) -> bool {
    let word =
        |at: usize| data.get(at..at + 4).map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
    let (Some(header), Some(kind)) = (word(0), word(8)) else { return false };
    let length = (header & !LAST_FRAGMENT) as usize;
    let plausible = match kind {
        CALL => word(12) == Some(RPC_VERSION),
        REPLY => word(12).is_some_and(|status| status <= 1),
        _ => false,
    };
    plausible && (SHORTEST..=LARGEST).contains(&length)
}
