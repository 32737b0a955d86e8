//! Messages of `NETLINK_SOCK_DIAG` about one socket: `inet_diag_msg` with `tcp_info` among its attributes.

use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::METRICS;
use crate::sampling::Sink;

/// Length of `inet_diag_msg`.
const HEADER: usize = 72;
/// The attribute with `tcp_info`.
const INET_DIAG_INFO: u16 = 2;

/// Which connections are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Ports of servers.
    pub ports: Vec<u16>,
    /// Their addresses; empty for any.
    pub addresses: Vec<IpAddr>,
}

impl Wanted {
    /// Whether one end of the connection is a server wanted.
    pub fn contains(&self, connection: &Connection<'_>) -> bool {
        [connection.local, connection.remote].into_iter().any(|end| {
            let is = |address: &IpAddr| address.to_canonical() == end.ip().to_canonical();
            self.ports.contains(&end.port()) && (self.addresses.is_empty() || self.addresses.iter().any(is))
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection<'a> {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Bytes received and not read by the program.
    pub receive_queue: u32,
    /// Bytes written by the program and not acknowledged.
    pub send_queue: u32,
    /// `tcp_info`, as long as the kernel knows it.
    pub info: &'a [u8],
}

/// Parses a message without its netlink header. `None` if it is not in the kernel's format, or has no `tcp_info`.
pub fn parse(message: &[u8]) -> Option<Connection<'_>> {
    let family = *message.first()?;
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| -> Option<IpAddr> {
        match i32::from(family) {
            libc::AF_INET => {
                let octets: [u8; 4] = message.get(at..at + 4)?.try_into().ok()?;
                Some(Ipv4Addr::from(octets).into())
            }
            libc::AF_INET6 => {
                let octets: [u8; 16] = message.get(at..at + 16)?.try_into().ok()?;
                Some(Ipv6Addr::from(octets).to_canonical())
            }
            _ => None,
        }
    };
    Some(Connection {
        local: SocketAddr::new(address(8)?, port(4)?),
        remote: SocketAddr::new(address(24)?, port(6)?),
        receive_queue: u32_at(message, 56)?,
        send_queue: u32_at(message, 60)?,
        info: attribute(message.get(HEADER..)?, INET_DIAG_INFO)?,
    })
}

/// The content of the attribute of that type.
fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
        let content = attributes.get(4..length)?;
        if kind == wanted {
            return Some(content);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// How a field of `tcp_info` is written.
#[derive(Clone, Copy)]
enum Field {
    U8(usize),
    U32(usize),
    U64(usize),
    Micros32(usize),
    Micros64(usize),
    /// Not in `tcp_info`.
    Receive,
    Send,
}

/// Where each metric is, in the order of the list.
const FIELDS: [Field; 31] = [
    Field::U8(0),
    Field::U8(1),
    Field::U8(2),
    Field::U8(4),
    Field::Receive,
    Field::Send,
    Field::Micros32(8),
    Field::U32(16),
    Field::U32(24),
    Field::U32(32),
    Field::U32(36),
    Field::Micros32(68),
    Field::Micros32(72),
    Field::U32(76),
    Field::U32(80),
    Field::U32(88),
    Field::U32(96),
    Field::U32(100),
    Field::U64(104),
    Field::U64(120),
    Field::U64(128),
    Field::U32(136),
    Field::U32(140),
    Field::U32(144),
    Field::Micros32(148),
    Field::U64(160),
    Field::Micros64(168),
    Field::Micros64(176),
    Field::Micros64(184),
    Field::U64(200),
    Field::U64(208),
];

impl Connection<'_> {
    /// Records what the kernel told. `instance` is memory that is used again and again.
    pub fn record(&self, instance: &mut String, out: &mut impl Sink) {
        instance.clear();
        // Writing into a string cannot fail.
        let _ = write!(instance, "{}-{}", self.local, self.remote);
        for (metric, field) in METRICS.iter().zip(FIELDS) {
            if let Some(value) = self.value(field) {
                out.put(metric.metric(), instance, value);
            }
        }
    }

    fn value(&self, field: Field) -> Option<f64> {
        let u64_at = |at: usize| Some(u64::from_ne_bytes(self.info.get(at..at + 8)?.try_into().ok()?));
        Some(match field {
            Field::U8(at) => f64::from(*self.info.get(at)?),
            Field::U32(at) => f64::from(u32_at(self.info, at)?),
            // All ones stand for a rate without limit.
            Field::U64(at) => u64_at(at).filter(|value| *value != u64::MAX)? as f64,
            Field::Micros32(at) => f64::from(u32_at(self.info, at).filter(|value| *value != u32::MAX)?) * 1e3,
            Field::Micros64(at) => u64_at(at)? as f64 * 1e3,
            Field::Receive => f64::from(self.receive_queue),
            Field::Send => f64::from(self.send_queue),
        })
    }
}
