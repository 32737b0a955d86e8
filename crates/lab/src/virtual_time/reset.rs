//! Connections are broken as a middle box breaks them: a reset comes for the client, with the number that it expects next.

use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::thread;
use std::time::{Duration, Instant};

use benchmaster_netem::namespace::Namespace;
use benchmaster_netem::wire::server_address;
use socket2::{Domain, Protocol, Socket, Type};

/// The port of NFS.
const NFS: u16 = 2049;
/// Bytes of a TCP header without options.
const HEADER: usize = 20;
const RST: u8 = 0x04;
const SYN: u8 = 0x02;

/// Begins to break the connections of a client to the server: it answers what comes by them, until they are new ones or for `limit`.
pub(super) fn begin(server: &Namespace, client: Ipv4Addr, limit: Duration) -> io::Result<()> {
    let open = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::TCP));
    let mut socket = server.run(open).map_err(io::Error::other)??;
    let end = Instant::now() + limit;
    let mut answer = move || -> io::Result<()> {
        let mut packet = [0; 128];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            socket.set_read_timeout(Some(left))?;
            let length = socket.read(&mut packet)?;
            let Some(segment) = Segment::parse(&packet[..length]).filter(|segment| segment.from == client)
            else {
                continue;
            };
            if segment.flags & SYN != 0 {
                return Ok(());
            }
            let reset = segment.reset(server_address());
            socket.send_to(&reset, &SocketAddrV4::new(client, 0).into())?;
        }
    };
    // That nothing came in time is its normal end.
    thread::Builder::new().name("reset".into()).spawn(move || drop(answer())).map(drop)
}

/// What matters of a segment that a client sent to the NFS server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    from: Ipv4Addr,
    port: u16,
    /// The number of the byte that it expects next.
    expects: u32,
    flags: u8,
}

impl Segment {
    /// Of an IPv4 packet (RFC 791 §3.1, RFC 9293 §3.1); `None` when it is another one.
    fn parse(packet: &[u8]) -> Option<Self> {
        let from: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
        let tcp = packet.get(usize::from(packet.first()? & 0xf) * 4..)?;
        let number = |at: usize| Some(u16::from_be_bytes(tcp.get(at..at + 2)?.try_into().ok()?));
        let expects = u32::from_be_bytes(tcp.get(8..12)?.try_into().ok()?);
        (number(2)? == NFS).then_some(())?;
        Some(Self { from: from.into(), port: number(0)?, expects, flags: *tcp.get(13)? })
    }

    /// The TCP segment that breaks its connection (RFC 5961 §3.2 wants the very number that is expected).
    fn reset(&self, server: Ipv4Addr) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..2].copy_from_slice(&NFS.to_be_bytes());
        header[2..4].copy_from_slice(&self.port.to_be_bytes());
        header[4..8].copy_from_slice(&self.expects.to_be_bytes());
        header[12] = (HEADER as u8 / 4) << 4;
        header[13] = RST;
        let sum = checksum(server, self.from, &header);
        header[16..18].copy_from_slice(&sum.to_be_bytes());
        header
    }
}

/// The checksum of a TCP segment between two hosts (RFC 9293 §3.1).
fn checksum(from: Ipv4Addr, to: Ipv4Addr, segment: &[u8]) -> u16 {
    let pseudo = [from.octets(), to.octets(), [0, 6, 0, segment.len() as u8]].concat();
    let words = pseudo.chunks(2).chain(segment.chunks(2));
    let mut sum: u32 =
        words.map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_answered_with_the_number_that_is_expected() {
        let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 77, 1, 1, 10, 77, 0, 1];
        packet.extend([
            0x03, 0x84, 0x08, 0x01, 0, 0, 0, 1, 0x12, 0x34, 0x56, 0x78, 0x50, 0x10, 0, 0, 0, 0, 0, 0,
        ]);
        let segment = Segment::parse(&packet).unwrap();
        let client = Ipv4Addr::new(10, 77, 1, 1);
        assert_eq!(segment, Segment { from: client, port: 900, expects: 0x1234_5678, flags: 0x10 });
        let server = Ipv4Addr::new(10, 77, 0, 1);
        let reset = segment.reset(server);
        assert_eq!(reset[..8], [0x08, 0x01, 0x03, 0x84, 0x12, 0x34, 0x56, 0x78]);
        assert_eq!((reset[12], reset[13]), (0x50, RST));
        // With its checksum in it, a segment has the sum 0.
        assert_eq!(checksum(server, client, &reset), 0);
        packet[23] = 0;
        assert_eq!(Segment::parse(&packet), None, "another port");
        assert_eq!(Segment::parse(&packet[..30]), None);
    }
}
