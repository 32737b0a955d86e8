//! Interfaces of a namespace: addresses, neighbours, sizes, and up.
//!
//! By the `ioctl`s of netdevice(7) and arp(7), and rtnetlink(7), on sockets of the namespace, which may be used from
//! threads of others.

use std::ffi::c_char;
use std::fmt;
use std::io;
use std::mem::size_of;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use super::NamespaceError;

// From linux/sockios.h.
const SIOCBRADDIF: libc::c_ulong = 0x89a2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// Whether frames to it are for more than one receiver (multicast, broadcast).
    pub fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Sets up the interfaces of one namespace.
#[derive(Debug)]
pub struct Interfaces {
    socket: OwnedFd,
    pub(super) netlink: OwnedFd,
}

impl Interfaces {
    /// Those of the calling thread's namespace.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn here() -> io::Result<Self> {
        // Unspecified on purpose: binding needs no interface that is up.
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?.into();
        let kind = (AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC);
        // The protocol without a number, 0, is NETLINK_ROUTE.
        let netlink = socket_with(kind.0, kind.1, kind.2, None)?;
        Ok(Self { socket, netlink })
    }

    /// Brings it up.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`], as of all of these.
    pub fn up(&self, name: &str) -> Result<(), NamespaceError> {
        const ACTION: &str = "change the state";
        let mut request = request(name, ACTION)?;
        self.call(libc::SIOCGIFFLAGS, &mut request, name, ACTION)?;
        // SAFETY: the kernel has just written the flags.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
        self.call(libc::SIOCSIFFLAGS, &mut request, name, ACTION)
    }

    /// Makes a bridge, which forwards at once: it neither looks for other bridges nor for who listens to which group
    /// (a bridge that does sends frames of its own, seconds later). It has no address, and so answers no requests.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]
    pub fn add_bridge(&self, name: &str) -> Result<(), NamespaceError> {
        const ACTION: &str = "create the bridge";
        device(name, ACTION)?;
        self.tell(&quiet_bridge(name)).map_err(failed(name, ACTION))
    }

    /// Makes an interface a port of a bridge.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]
    pub fn add_port(&self, bridge: &str, port: &str) -> Result<(), NamespaceError> {
        const ACTION: &str = "connect a bridge";
        let mut request = request(bridge, ACTION)?;
        request.ifr_ifru.ifru_ifindex = self.index(port)?;
        self.call(SIOCBRADDIF, &mut request, bridge, ACTION)
    }

    /// The kernel's number of it.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]
    pub fn index(&self, name: &str) -> Result<i32, NamespaceError> {
        const ACTION: &str = "find the number";
        let mut request = request(name, ACTION)?;
        self.call(libc::SIOCGIFINDEX, &mut request, name, ACTION)?;
        // SAFETY: the kernel has just written the number.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    }

    /// Gives it an address in a network with a prefix of this many bits.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]
    pub fn set_address(&self, name: &str, address: Ipv4Addr, bits: u8) -> Result<(), NamespaceError> {
        let mask = mask(bits);
        for (kind, value, action) in [
            (libc::SIOCSIFADDR, address, "set the address"),
            (libc::SIOCSIFNETMASK, Ipv4Addr::from(mask), "set the network mask"),
        ] {
            let mut request = request(name, action)?;
            request.ifr_ifru.ifru_addr = inet(value);
            self.call(kind, &mut request, name, action)?;
        }
        Ok(())
    }

    /// Sets the largest packet, in bytes without the Ethernet header.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]
    pub fn set_mtu(&self, name: &str, mtu: u16) -> Result<(), NamespaceError> {
        const ACTION: &str = "set the MTU";
        let mut request = request(name, ACTION)?;
        request.ifr_ifru.ifru_mtu = mtu.into();
        self.call(libc::SIOCSIFMTU, &mut request, name, ACTION)
    }

    /// Gives the route to its own network, with a prefix of this many bits, these attributes. The interface has the address
    /// and is up.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]; `EINVAL` when the kernel has no congestion control of the name.
    pub fn set_route(
        &self,
        name: &str,
        address: Ipv4Addr,
        bits: u8,
        metrics: RouteMetrics<'_>,
    ) -> Result<(), NamespaceError> {
        const ACTION: &str = "set the congestion control";
        let index = self.index(name)?;
        self.tell(&route(index, address, bits, metrics)).map_err(failed(name, ACTION))
    }

    /// Sets the length of the queue in front of it, in packets.
    ///
    /// By rtnetlink(7): the `ioctl` for it is root's alone, also in a user namespace.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]
    pub fn set_queue_length(&self, name: &str, packets: u32) -> Result<(), NamespaceError> {
        const ACTION: &str = "set the queue length";
        device(name, ACTION)?;
        self.tell(&queue_length(name, packets)).map_err(failed(name, ACTION))
    }

    /// Sets its Ethernet address; it must be down.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]
    pub fn set_mac(&self, name: &str, mac: MacAddress) -> Result<(), NamespaceError> {
        const ACTION: &str = "set the Ethernet address";
        let mut request = request(name, ACTION)?;
        request.ifr_ifru.ifru_hwaddr = ethernet(mac);
        self.call(libc::SIOCSIFHWADDR, &mut request, name, ACTION)
    }

    /// Makes a neighbour known for good: no ARP is needed to send to it. The interface must be up.
    ///
    /// # Errors
    /// [`NamespaceError::Interface`]
    pub fn add_neighbour(
        &self,
        name: &str,
        address: Ipv4Addr,
        mac: MacAddress,
    ) -> Result<(), NamespaceError> {
        const ACTION: &str = "add a neighbour";
        let mut request = libc::arpreq {
            arp_pa: inet(address),
            arp_ha: ethernet(mac),
            arp_flags: libc::ATF_PERM | libc::ATF_COM,
            arp_netmask: inet(Ipv4Addr::UNSPECIFIED),
            arp_dev: device(name, ACTION)?,
        };
        // SAFETY: SIOCSARP reads a `struct arpreq`, which `request` is.
        unsafe { self.ioctl(libc::SIOCSARP, &raw mut request) }.map_err(failed(name, ACTION))
    }

    fn call(
        &self,
        kind: libc::c_ulong,
        request: &mut libc::ifreq,
        name: &str,
        action: &'static str,
    ) -> Result<(), NamespaceError> {
        // SAFETY: all kinds used here read or write a `struct ifreq`.
        unsafe { self.ioctl(kind, &raw mut *request) }.map_err(failed(name, action))
    }

    /// Sends a message of netlink, and waits for what the kernel says to it.
    fn tell(&self, message: &[u8]) -> io::Result<()> {
        send(&self.netlink, message, SendFlags::empty())?;
        let mut reply = [0; 512];
        let (length, _) = recv(&self.netlink, &mut reply[..], RecvFlags::empty())?;
        acknowledged(&reply[..length])
    }

    /// # Safety
    /// The kernel takes a `T` with this kind of request, and `request` is valid for reads and writes.
    unsafe fn ioctl<T>(&self, kind: libc::c_ulong, request: *mut T) -> io::Result<()> {
        // SAFETY: the descriptor is open; the rest is the caller's promise.
        match unsafe { libc::ioctl(self.socket.as_raw_fd(), kind as _, request) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

fn failed(name: &str, action: &'static str) -> impl FnOnce(io::Error) -> NamespaceError {
    move |source| NamespaceError::Interface { action, name: name.to_owned(), source }
}

/// A request about an interface, with nothing else in it.
fn request(name: &str, action: &'static str) -> Result<libc::ifreq, NamespaceError> {
    // SAFETY: all zeros are a valid `ifreq`: an empty name and numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name = device(name, action)?;
    Ok(request)
}

/// The name as the kernel takes it; at most 15 bytes.
pub(crate) fn device(name: &str, action: &'static str) -> Result<[c_char; libc::IFNAMSIZ], NamespaceError> {
    let mut device = [0; libc::IFNAMSIZ];
    if name.len() >= device.len() || name.is_empty() || name.contains('\0') {
        return Err(failed(name, action)(io::ErrorKind::InvalidInput.into()));
    }
    for (to, from) in device.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    Ok(device)
}

/// Bytes of a header of netlink messages.
pub(super) const NETLINK_HEADER: usize = 16;
// From linux/rtnetlink.h and linux/if_link.h.
const IFLA_IFNAME: u16 = 3;

/// A message that sets the length of a device's queue.
fn queue_length(name: &str, packets: u32) -> Vec<u8> {
    const RTM_SETLINK: u16 = 19;
    const IFLA_TXQLEN: u16 = 13;
    let name = attribute(IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    link_message(RTM_SETLINK, 0, &[name, attribute(IFLA_TXQLEN, &packets.to_ne_bytes())])
}

/// A message that makes a bridge which does not listen for who is in which group.
fn quiet_bridge(name: &str) -> Vec<u8> {
    const RTM_NEWLINK: u16 = 16;
    const CREATE_NEW: u16 = 0x600;
    const IFLA_LINKINFO: u16 = 18;
    const IFLA_INFO_KIND: u16 = 1;
    const IFLA_INFO_DATA: u16 = 2;
    const IFLA_BR_MCAST_SNOOPING: u16 = 23;
    let data = attribute(IFLA_INFO_DATA, &attribute(IFLA_BR_MCAST_SNOOPING, &[0]));
    let information = attribute(IFLA_LINKINFO, &[attribute(IFLA_INFO_KIND, b"bridge"), data].concat());
    let name = attribute(IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
    link_message(RTM_NEWLINK, CREATE_NEW, &[name, information])
}

/// Attributes of a route that TCP connections over it take from it.
#[derive(Debug, Clone, Copy, Default)]
pub struct RouteMetrics<'a> {
    /// The congestion control (`congctl` of ip-route(8)).
    pub congestion: Option<&'a str>,
    /// The largest congestion window, in segments (`cwnd lock`).
    pub cwnd_clamp: Option<u32>,
}

/// A message that replaces the route of an interface to its own network by one with these attributes.
fn route(index: i32, address: Ipv4Addr, bits: u8, metrics: RouteMetrics<'_>) -> Vec<u8> {
    const RTM_NEWROUTE: u16 = 24;
    const CREATE_OR_REPLACE: u16 = 0x500;
    const RTA_DST: u16 = 1;
    const RTA_OIF: u16 = 4;
    const RTA_PREFSRC: u16 = 7;
    const RTA_METRICS: u16 = 8;
    const RTAX_LOCK: u16 = 1;
    const RTAX_CWND: u16 = 7;
    const RTAX_CC_ALGO: u16 = 16;
    // Family, bits of destination and source, service, table (main), protocol (kernel), scope (link), type (unicast),
    // flags.
    const AF_INET: u8 = libc::AF_INET as u8;
    let information = [AF_INET, bits, 0, 0, 254, 2, 253, 1, 0, 0, 0, 0];
    let network = Ipv4Addr::from(u32::from(address) & mask(bits));
    let congestion =
        metrics.congestion.map(|name| attribute(RTAX_CC_ALGO, &[name.as_bytes(), &[0]].concat()));
    // The kernel obeys the window of a route only if it is locked.
    let clamp = metrics.cwnd_clamp.map(|segments| {
        let lock = attribute(RTAX_LOCK, &(1u32 << RTAX_CWND).to_ne_bytes());
        [lock, attribute(RTAX_CWND, &segments.to_ne_bytes())].concat()
    });
    let metrics: Vec<u8> = congestion.into_iter().chain(clamp).flatten().collect();
    let attributes = [
        attribute(RTA_DST, &network.octets()),
        attribute(RTA_PREFSRC, &address.octets()),
        attribute(RTA_OIF, &index.to_ne_bytes()),
        attribute(RTA_METRICS, &metrics),
    ];
    message(RTM_NEWROUTE, CREATE_OR_REPLACE, &information, &attributes)
}

/// The network mask of this many bits.
fn mask(bits: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0)
}

/// An attribute of a message, with what fills it up to the next.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = 4 + value.len() as u16;
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A message about a device, to be acknowledged.
fn link_message(kind: u16, flags: u16, attributes: &[Vec<u8>]) -> Vec<u8> {
    // A `struct ifinfomsg` that names no device: an attribute does.
    message(kind, flags, &[0; 16], attributes)
}

/// A message to be acknowledged: what it is about, and attributes.
pub(super) fn message(kind: u16, flags: u16, information: &[u8], attributes: &[Vec<u8>]) -> Vec<u8> {
    const REQUEST_AND_ACKNOWLEDGE: u16 = 5;
    let length = NETLINK_HEADER + information.len() + attributes.iter().map(Vec::len).sum::<usize>();
    let mut message = (length as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST_AND_ACKNOWLEDGE | flags).to_ne_bytes());
    // Number and sender: the kernel gives them.
    message.resize(NETLINK_HEADER, 0);
    message.extend(information);
    attributes.iter().for_each(|attribute| message.extend(attribute));
    message
}

/// What the kernel answers: an error number, 0 for none.
fn acknowledged(reply: &[u8]) -> io::Result<()> {
    const NLMSG_ERROR: u16 = 2;
    let kind = reply.get(4..6).and_then(|kind| kind.try_into().ok()).map(u16::from_ne_bytes);
    let error = reply
        .get(NETLINK_HEADER..)
        .and_then(|rest| rest.first_chunk())
        .map(|error| i32::from_ne_bytes(*error));
    match (kind, error) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// An IPv4 address as a general one.
fn inet(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    // After the port.
    for (to, from) in data[2..].iter_mut().zip(address.octets()) {
        *to = from as c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}

fn ethernet(mac: MacAddress) -> libc::sockaddr {
    let mut data = [0; 14];
    for (to, from) in data.iter_mut().zip(mac.0) {
        *to = from as c_char;
    }
    libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: data }
}

const _: () = assert!(size_of::<libc::sockaddr>() == size_of::<libc::sockaddr_in>());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_kernel() {
        let message = queue_length("bm0", 500);
        assert_eq!(message.len(), 16 + 16 + 8 + 8);
        assert_eq!(message[..4], 48u32.to_ne_bytes());
        assert_eq!(message[32..40], [&8u16.to_ne_bytes()[..], &3u16.to_ne_bytes(), b"bm0\0"].concat());
        assert_eq!(message[44..], 500u32.to_ne_bytes());
        let bridge = quiet_bridge("data");
        assert_eq!(bridge[..4], (bridge.len() as u32).to_ne_bytes());
        let metrics = RouteMetrics { congestion: Some("cubic"), cwnd_clamp: None };
        let with = |metrics| route(7, Ipv4Addr::new(10, 77, 1, 2), 16, metrics);
        let route = with(metrics);
        assert_eq!(route[..4], (route.len() as u32).to_ne_bytes());
        assert_eq!(route[16..18], [libc::AF_INET as u8, 16]);
        // Length, kind (destination), and the network without the host.
        assert_eq!(route[28..36], [&8u16.to_ne_bytes()[..], &1u16.to_ne_bytes(), &[10, 77, 0, 0]].concat());
        assert_eq!(
            route[52..],
            [
                &16u16.to_ne_bytes()[..],
                &8u16.to_ne_bytes(),
                &10u16.to_ne_bytes(),
                &16u16.to_ne_bytes(),
                b"cubic\0\0\0"
            ]
            .concat()
        );
        let clamped = with(RouteMetrics { cwnd_clamp: Some(64), ..metrics });
        let number = |kind: u16, value: u32| {
            [&8u16.to_ne_bytes()[..], &kind.to_ne_bytes(), &value.to_ne_bytes()].concat()
        };
        // Locked, and how much.
        assert_eq!(clamped[route.len()..], [number(1, 1 << 7), number(7, 64)].concat());
        // The name with its end takes 9 of 12 bytes; the rest is one attribute, up to its end.
        assert_eq!(bridge[44..46], (bridge.len() as u16 - 44).to_ne_bytes());
    }

    #[test]
    fn answers_are_errors_or_none() {
        let reply = |kind: u16, error: i32| {
            let mut reply = vec![0; 16];
            reply[4..6].copy_from_slice(&kind.to_ne_bytes());
            reply.extend(error.to_ne_bytes());
            reply
        };
        assert!(acknowledged(&reply(2, 0)).is_ok());
        let error = acknowledged(&reply(2, -libc::EPERM)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(acknowledged(&reply(2, i32::MIN)).is_err());
        assert!(acknowledged(&reply(3, 0)).is_err());
        assert!(acknowledged(&[]).is_err());
        assert!(acknowledged(&reply(2, 0)[..18]).is_err());
    }
}
