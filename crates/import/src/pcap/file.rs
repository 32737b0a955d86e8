//! The files: pcap in its four forms, and pcapng.

use std::io::{self, Read};

use super::{CaptureError, Captured};

/// A longer packet or block is no packet.
const LARGEST: usize = 16 << 20;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;
const TIME_RESOLUTION: u16 = 9;

#[derive(Debug)]
pub(super) struct Packet {
    pub(super) at_ns: u64,
    /// LINKTYPE of <https://www.tcpdump.org/linktypes.html>.
    pub(super) link: u32,
    pub(super) data: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Interface {
    link: u32,
    /// Units of time per second.
    per_second: u64,
}

#[derive(Debug)]
pub(super) struct Reader<R> {
    input: R,
    big_endian: bool,
    /// Of pcapng: one interface for each description.
    blocks: bool,
    interfaces: Vec<Interface>,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(mut input: R) -> Result<Self, CaptureError> {
        let mut magic = [0; 4];
        if !fill(&mut input, &mut magic)? {
            return Err(CaptureError::NoCapture);
        }
        let (big_endian, per_second) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1_000_000),
            [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1_000_000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1_000_000_000),
            [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1_000_000_000),
            [0x0a, 0x0d, 0x0d, 0x0a] => {
                let mut reader = Self { input, big_endian: false, blocks: true, interfaces: Vec::new() };
                return if reader.section()? { Ok(reader) } else { Err(CaptureError::NoCapture) };
            }
            _ => return Err(CaptureError::NoCapture),
        };
        let mut rest = [0; 20];
        if !fill(&mut input, &mut rest)? {
            return Err(CaptureError::NoCapture);
        }
        let mut reader = Self { input, big_endian, blocks: false, interfaces: Vec::new() };
        // The upper bits say whether frames have a checksum.
        let link = reader.u32(&rest, 16) & 0x0fff_ffff;
        reader.interfaces.push(Interface { link, per_second });
        Ok(reader)
    }

    /// The next packet; `None` at the end, or where the file is cut off or damaged, which is counted.
    pub(super) fn next(&mut self, captured: &mut Captured) -> io::Result<Option<Packet>> {
        let next = if self.blocks { self.next_block() } else { self.next_packet() };
        match next {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                captured.unusable("end of the capture, which is cut off or damaged", 1);
                Ok(None)
            }
            next => next,
        }
    }

    fn next_packet(&mut self) -> io::Result<Option<Packet>> {
        let mut header = [0; 16];
        if !fill(&mut self.input, &mut header)? {
            return Ok(None);
        }
        let Some(&Interface { link, per_second }) = self.interfaces.first() else { return Ok(None) };
        let (seconds, fraction) = (self.u32(&header, 0), self.u32(&header, 4));
        let data = self.bytes(self.u32(&header, 8) as usize)?;
        let at_ns = nanos(u64::from(seconds) * per_second + u64::from(fraction), per_second);
        Ok(Some(Packet { at_ns, link, data }))
    }

    fn next_block(&mut self) -> io::Result<Option<Packet>> {
        loop {
            let mut header = [0; 4];
            if !fill(&mut self.input, &mut header)? {
                return Ok(None);
            }
            let kind = self.u32(&header, 0);
            if kind == SECTION {
                if !self.section()? {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                continue;
            }
            let length = self.bytes(4)?;
            let length = (self.u32(&length, 0) as usize).checked_sub(12).ok_or(io::ErrorKind::InvalidData)?;
            let body = self.bytes(length)?;
            self.bytes(4)?;
            let short = || io::Error::from(io::ErrorKind::InvalidData);
            match kind {
                INTERFACE => {
                    let interface = self.interface(&body).ok_or_else(short)?;
                    self.interfaces.push(interface);
                }
                // Without a time it is of no use.
                SIMPLE_PACKET => {}
                PACKET => {
                    let word = |at: usize| body.get(at..at + 4).map(|bytes| self.u32(bytes, 0));
                    let interface =
                        word(0).and_then(|at| self.interfaces.get(at as usize)).ok_or_else(short)?;
                    let (high, low) = word(4).zip(word(8)).ok_or_else(short)?;
                    let units = u64::from(high) << 32 | u64::from(low);
                    let length = word(12).ok_or_else(short)? as usize;
                    let data = body.get(20..).and_then(|rest| rest.get(..length)).ok_or_else(short)?.to_vec();
                    let at_ns = nanos(units, interface.per_second);
                    return Ok(Some(Packet { at_ns, link: interface.link, data }));
                }
                _ => {}
            }
        }
    }

    /// The rest of a section's header; whether it is one.
    fn section(&mut self) -> io::Result<bool> {
        let head = self.bytes(8)?;
        self.big_endian = match head[4..] {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return Ok(false),
        };
        self.interfaces.clear();
        match (self.u32(&head, 0) as usize).checked_sub(12) {
            Some(rest) => self.bytes(rest).map(|_| true),
            None => Ok(false),
        }
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        let link = u32::from(self.u16(body.get(..2)?));
        let mut per_second = 1_000_000;
        let mut options = body.get(8..)?;
        while let Some(head) = options.get(..4) {
            let (code, length) = (self.u16(head), usize::from(self.u16(&head[2..])));
            let Some(value) = options.get(4..4 + length) else { break };
            if let (TIME_RESOLUTION, [exponent]) = (code, value) {
                let power = u32::from(exponent & 0x7f);
                per_second =
                    if exponent & 0x80 == 0 { 10u64.checked_pow(power)? } else { 1u64.checked_shl(power)? };
            }
            options = options.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        Some(Interface { link, per_second })
    }

    fn bytes(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > LARGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = Vec::new();
        self.input.by_ref().take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() == length { Ok(bytes) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn u32(&self, bytes: &[u8], at: usize) -> u32 {
        let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if self.big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    }

    fn u16(&self, bytes: &[u8]) -> u16 {
        let word = [bytes[0], bytes[1]];
        if self.big_endian { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
    }
}

/// Fills the buffer; `false` when the input is at its end, and an error when it ends within.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    let mut bytes = Vec::with_capacity(buffer.len());
    input.by_ref().take(buffer.len() as u64).read_to_end(&mut bytes)?;
    match bytes.len() {
        0 => Ok(false),
        length if length == buffer.len() => {
            buffer.copy_from_slice(&bytes);
            Ok(true)
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn nanos(units: u64, per_second: u64) -> u64 {
    let nanos = u128::from(units) * 1_000_000_000 / u128::from(per_second.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
