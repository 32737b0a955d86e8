//! The networks of a lab: data, over which NFS goes, and control.
//!
//! Data is 10.77.0.0/16 (the server is 10.77.0.1, the first client 10.77.1.1), control 10.78.0.0/16 (the host is 10.78.0.1, the
//! server machine 10.78.0.2, the first client 10.78.1.1). Neighbours are known for good on both: no ARP travels.

use std::net::Ipv4Addr;

use benchmaster_netem::namespace::MacAddress;
use benchmaster_netem::wire;

/// Bits of both networks.
pub const NETWORK_BITS: u8 = 16;

/// The server's data address.
pub fn server_address() -> Ipv4Addr {
    wire::server_address()
}

/// The data address of a client, counted from 1.
pub fn client_address(client: u32) -> Ipv4Addr {
    wire::client_address(client.saturating_sub(1))
}

/// The server's Ethernet address on the data network.
pub fn server_mac() -> MacAddress {
    wire::server_mac()
}

/// A client's Ethernet address on the data network, counted from 1.
pub fn client_mac(client: u32) -> MacAddress {
    wire::client_mac(client.saturating_sub(1))
}

/// The host's address on the control network.
pub fn control_host() -> Ipv4Addr {
    Ipv4Addr::new(10, 78, 0, 1)
}

/// The control address of a machine; 0 is the server, clients are counted from 1.
pub fn control_address(machine: u32) -> Ipv4Addr {
    match machine {
        0 => Ipv4Addr::new(10, 78, 0, 2),
        client => {
            let [_, _, high, low] = client_address(client).octets();
            Ipv4Addr::new(10, 78, high, low)
        }
    }
}

/// The host's Ethernet address on the control network.
pub fn control_host_mac() -> MacAddress {
    MacAddress([0x02, 0x62, 0x6d, 1, 0xff, 0xff])
}

/// The Ethernet address of a machine on the control network; 0 is the server, clients are counted from 1.
pub fn control_mac(machine: u32) -> MacAddress {
    let [_, _, high, low] = machine.to_be_bytes();
    MacAddress([0x02, 0x62, 0x6d, 1, high, low])
}
