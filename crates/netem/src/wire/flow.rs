//! Which flow a frame belongs to.

use std::fmt;
use std::net::Ipv4Addr;

use super::frame::HEADER;

/// Addresses, protocol and ports of an IPv4 packet. All zeros for what is none, and the ports for fragments and for what
/// is neither TCP nor UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Flow {
    /// Source address, destination address, source port, destination port: what is hashed.
    tuple: [u8; 12],
    protocol: u8,
}

impl Flow {
    /// The flow of a frame as a TAP device gives it.
    pub(crate) fn parse(data: &[u8]) -> Self {
        Self::of_packet(data.get(HEADER..).unwrap_or_default()).unwrap_or_default()
    }

    fn of_packet(frame: &[u8]) -> Option<Self> {
        const IPV4: [u8; 2] = [8, 0];
        let (kind, packet) = (frame.get(12..14)?, frame.get(14..)?);
        let first = *packet.first()?;
        if kind != IPV4 || first >> 4 != 4 {
            return None;
        }
        let mut flow = Self { protocol: *packet.get(9)?, ..Self::default() };
        flow.tuple[..8].copy_from_slice(packet.get(12..20)?);
        let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff != 0;
        let ports = packet.get(usize::from(first & 15) * 4..).and_then(<[u8]>::first_chunk::<4>);
        if let (6 | 17, false, Some(ports)) = (flow.protocol, fragment, ports) {
            flow.tuple[8..].copy_from_slice(ports);
        }
        Some(flow)
    }

    /// What is hashed.
    pub(crate) fn input(&self) -> &[u8] {
        if self.has_ports() { &self.tuple } else { &self.tuple[..8] }
    }

    fn has_ports(&self) -> bool {
        self.tuple[8..] != [0; 4]
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i, ports @ ..] = self.tuple;
        let [from, to] = [[a, b, c, d], [e, g, h, i]].map(Ipv4Addr::from);
        let [from_port, to_port] = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
        if self.has_ports() {
            write!(f, "{from}:{from_port}-{to}:{to_port}")
        } else {
            write!(f, "{from}-{to}")
        }
    }
}

#[cfg(test)]
impl Flow {
    /// A TCP flow.
    pub(crate) fn tcp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Self {
        let mut tuple = [0; 12];
        tuple[..4].copy_from_slice(&from.0.octets());
        tuple[4..8].copy_from_slice(&to.0.octets());
        tuple[8..10].copy_from_slice(&from.1.to_be_bytes());
        tuple[10..].copy_from_slice(&to.1.to_be_bytes());
        Self { tuple, protocol: 6 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A frame with an IPv4 packet whose header has this number of words.
    fn frame(protocol: u8, words: u8, fragment: u16, ports: [u16; 2]) -> Vec<u8> {
        let mut data = vec![0; HEADER + 12];
        data.extend([8, 0, 0x40 | words, 0, 0, 60, 0, 0]);
        data.extend(fragment.to_be_bytes());
        data.extend([64, protocol, 0, 0, 10, 77, 0, 1, 10, 77, 1, 2]);
        data.extend(vec![0; usize::from(words) * 4 - 20]);
        data.extend(ports.map(u16::to_be_bytes).concat());
        data
    }

    #[test]
    fn flows_are_addresses_protocol_and_ports() {
        let tcp = Flow::parse(&frame(6, 5, 0, [2049, 900]));
        assert_eq!(tcp.to_string(), "10.77.0.1:2049-10.77.1.2:900");
        assert_eq!(tcp, Flow::tcp(([10, 77, 0, 1].into(), 2049), ([10, 77, 1, 2].into(), 900)));
        // With options in the header, and "do not fragment".
        assert_eq!(Flow::parse(&frame(6, 8, 0x4000, [2049, 900])), tcp);
        let udp = Flow::parse(&frame(17, 5, 0, [2049, 900]));
        assert!(udp != tcp && udp.input() == tcp.input() && tcp.input().len() == 12);
        // Only the first fragment has ports: none of them is used. ICMP has none.
        for other in [frame(17, 5, 0x2000, [2049, 900]), frame(1, 5, 0, [2049, 900])] {
            let other = Flow::parse(&other);
            assert_eq!((other.to_string(), other.input().len()), ("10.77.0.1-10.77.1.2".into(), 8));
        }
        let mut arp = frame(6, 5, 0, [1, 2]);
        arp[HEADER + 13] = 6;
        assert_eq!(Flow::parse(&arp), Flow::default());
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_flow(data in prop::collection::vec(any::<u8>(), 0..100), words in 0u8..16) {
            let _ = Flow::parse(&data);
            let mut whole = frame(6, 5, 0, [1, 2]);
            whole[HEADER + 14] = 0x40 | words;
            whole.truncate(data.len());
            let _ = Flow::parse(&whole);
        }
    }
}
