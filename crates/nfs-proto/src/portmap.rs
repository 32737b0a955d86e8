//! Portmapper version 2 and rpcbind versions 3 and 4 (RFC 1833), and universal addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::xdr::{Chain, Opaque};

/// RPC program of portmapper and rpcbind.
pub const PROGRAM: u32 = 100_000;
/// TCP and UDP port they listen on.
pub const PORT: u16 = 111;
/// Portmapper.
pub const VERSION_2: u32 = 2;
/// Rpcbind.
pub const VERSION_3: u32 = 3;
/// Rpcbind with more procedures.
pub const VERSION_4: u32 = 4;
/// [`Mapping::prot`] of TCP.
pub const IPPROTO_TCP: u32 = 6;
/// [`Mapping::prot`] of UDP.
pub const IPPROTO_UDP: u32 = 17;

/// Result of the portmapper's DUMP.
pub type PmapList<'a> = Chain<'a, Mapping>;
/// Result of rpcbind's DUMP.
pub type RpcbList<'a> = Chain<'a, Rpcb<'a>>;
/// Result of GETADDRLIST.
pub type RpcbEntryList<'a> = Chain<'a, RpcbEntry<'a>>;

xdr_code! {
    /// Procedure numbers of the portmapper.
    pub struct PmapProc("PMAPPROC_") {
        /// Do nothing.
        NULL = 0,
        /// Register a program.
        SET = 1,
        /// Forget a program.
        UNSET = 2,
        /// Port of a program.
        GETPORT = 3,
        /// All that is registered.
        DUMP = 4,
        /// Call a program through the portmapper.
        CALLIT = 5,
    }
    /// Procedure numbers of rpcbind; from GETVERSADDR on version 4 only.
    pub struct RpcbProc("RPCBPROC_") {
        /// Do nothing.
        NULL = 0,
        /// Register a program.
        SET = 1,
        /// Forget a program.
        UNSET = 2,
        /// Address of a program.
        GETADDR = 3,
        /// All that is registered.
        DUMP = 4,
        /// Call a program through rpcbind; silent when that fails (BCAST in version 4).
        CALLIT = 5,
        /// Seconds since 1970.
        GETTIME = 6,
        /// Universal to transport address.
        UADDR2TADDR = 7,
        /// Transport to universal address.
        TADDR2UADDR = 8,
        /// Address of a program in exactly this version.
        GETVERSADDR = 9,
        /// CALLIT that answers failures too.
        INDIRECT = 10,
        /// All addresses of a program.
        GETADDRLIST = 11,
        /// Statistics.
        GETSTAT = 12,
    }
}

xdr_struct! {
    /// A program and its port.
    pub struct Mapping {
        /// RPC program number.
        pub prog: u32,
        /// RPC program version.
        pub vers: u32,
        /// [`IPPROTO_TCP`] or [`IPPROTO_UDP`].
        pub prot: u32,
        /// TCP or UDP port.
        pub port: u32,
    }
    /// A program and its address.
    pub struct Rpcb<'a> {
        /// RPC program number.
        pub prog: u32,
        /// RPC program version.
        pub vers: u32,
        /// Network: `tcp`, `udp`, `tcp6`, `udp6`.
        pub netid: Opaque<'a>,
        /// Universal address: IP address and port, in dotted decimal.
        pub addr: Opaque<'a>,
        /// Owner of the registration.
        pub owner: Opaque<'a>,
    }
    /// An address of a program and its transport.
    pub struct RpcbEntry<'a> {
        /// Universal address: IP address and port, in dotted decimal.
        pub maddr: Opaque<'a>,
        /// Transport, such as `tcp` or `udp6`.
        pub netid: Opaque<'a>,
        /// 1 connectionless, 2 connection-oriented, 3 with graceful close.
        pub semantics: u32,
        /// Protocol family: `inet` or `inet6`.
        pub protofmly: Opaque<'a>,
        /// Protocol: `tcp` or `udp`.
        pub proto: Opaque<'a>,
    }
    /// Transport address.
    pub struct Netbuf<'a> {
        /// Most bytes of an address of this kind.
        pub maxlen: u32,
        /// The address, in the machine's own form.
        pub buf: Opaque<'a>,
    }
}

/// A universal address (RFC 1833 §2.1, RFC 5665 §5.2.3): the IP address, then the port as two numbers, all joined by
/// dots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniversalAddress(pub SocketAddr);

impl fmt::Display for UniversalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, low] = self.0.port().to_be_bytes();
        write!(f, "{}.{high}.{low}", self.0.ip())
    }
}

/// Text that is no universal address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no universal address")]
pub struct NoUniversalAddress;

impl std::str::FromStr for UniversalAddress {
    type Err = NoUniversalAddress;

    fn from_str(text: &str) -> Result<Self, NoUniversalAddress> {
        let octet = |text: &str| {
            // `u8` would take a sign.
            text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u8>().ok()).flatten()
        };
        let parse = || {
            let (rest, low) = text.rsplit_once('.')?;
            let (ip, high) = rest.rsplit_once('.')?;
            let ip: IpAddr = ip.parse().ok()?;
            Some(Self(SocketAddr::new(ip, u16::from_be_bytes([octet(high)?, octet(low)?]))))
        };
        parse().ok_or(NoUniversalAddress)
    }
}

impl UniversalAddress {
    /// From the bytes of a message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NoUniversalAddress> {
        std::str::from_utf8(bytes).map_err(|_| NoUniversalAddress)?.parse()
    }

    /// The network identifier of this address over `prot` ([`IPPROTO_TCP`] or [`IPPROTO_UDP`]).
    pub fn netid(&self, prot: u32) -> Option<&'static str> {
        match (prot, self.0.is_ipv6()) {
            (IPPROTO_TCP, false) => Some("tcp"),
            (IPPROTO_TCP, true) => Some("tcp6"),
            (IPPROTO_UDP, false) => Some("udp"),
            (IPPROTO_UDP, true) => Some("udp6"),
            _ => None,
        }
    }

    /// As the `sockaddr` of Linux, which is what a [`Netbuf`] holds there, with its length: 16 bytes for IPv4, 28 for
    /// IPv6.
    pub fn to_sockaddr(&self) -> ([u8; SOCKADDR], usize) {
        let mut raw = [0; SOCKADDR];
        raw[2..4].copy_from_slice(&self.0.port().to_be_bytes());
        let family = match self.0 {
            SocketAddr::V4(address) => {
                raw[4..8].copy_from_slice(&address.ip().octets());
                AF_INET
            }
            SocketAddr::V6(address) => {
                raw[4..8].copy_from_slice(&address.flowinfo().to_be_bytes());
                raw[8..24].copy_from_slice(&address.ip().octets());
                raw[24..28].copy_from_slice(&address.scope_id().to_ne_bytes());
                AF_INET6
            }
        };
        raw[..2].copy_from_slice(&family.to_ne_bytes());
        (raw, if family == AF_INET { SOCKADDR_IN } else { SOCKADDR })
    }

    /// From the `sockaddr` of Linux.
    pub fn from_sockaddr(raw: &[u8]) -> Result<Self, NoUniversalAddress> {
        let port = |raw: &[u8]| raw.get(2..4)?.try_into().ok().map(u16::from_be_bytes);
        let parse = || {
            let family = u16::from_ne_bytes(*raw.first_chunk()?);
            let ip: IpAddr = match family {
                AF_INET => Ipv4Addr::from(<[u8; 4]>::try_from(raw.get(4..8)?).ok()?).into(),
                AF_INET6 => Ipv6Addr::from(<[u8; 16]>::try_from(raw.get(8..24)?).ok()?).into(),
                _ => return None,
            };
            Some(Self(SocketAddr::new(ip, port(raw)?)))
        };
        parse().ok_or(NoUniversalAddress)
    }
}

/// Longest `sockaddr` of [`UniversalAddress::to_sockaddr`].
pub const SOCKADDR: usize = 28;
const SOCKADDR_IN: usize = 16;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn universal_addresses() {
        for (text, address) in [
            ("127.0.0.1.8.1", "127.0.0.1:2049"),
            ("10.1.2.3.0.111", "10.1.2.3:111"),
            ("::1.8.1", "[::1]:2049"),
            ("::ffff:1.2.3.4.255.255", "[::ffff:1.2.3.4]:65535"),
        ] {
            let address = UniversalAddress(address.parse().unwrap());
            assert_eq!(text.parse(), Ok(address));
            assert_eq!(address.to_string(), text);
            let (raw, len) = address.to_sockaddr();
            assert_eq!(UniversalAddress::from_sockaddr(&raw[..len]), Ok(address));
            assert_eq!(UniversalAddress::from_sockaddr(&raw[..len.min(7)]), Err(NoUniversalAddress));
        }
        for text in [
            "",
            "1",
            "1.2",
            "127.0.0.1",
            "127.0.0.1.8",
            "127.0.0.1.8.256",
            "127.0.0.1.+8.1",
            "x.8.1",
            "::1.8.",
        ] {
            assert_eq!(text.parse::<UniversalAddress>(), Err(NoUniversalAddress), "{text}");
        }
    }
}
