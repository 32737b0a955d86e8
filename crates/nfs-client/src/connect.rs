//! How to mount with version 2 or 3.

use std::net::IpAddr;
use std::time::Duration;

use benchmaster_rpc_tls::ClientTls;

use crate::delay::DelayPolicy;
use crate::rpc::{ClientGss, Transport};

/// Largest READ and WRITE unless asked for: what Linux takes.
const LARGEST: u32 = 1 << 20;
/// Largest READ and WRITE that fits into a datagram with the rest of the message.
const LARGEST_DATAGRAM: u32 = 32 << 10;
/// Room for the rest of a READ's reply, and for the replies of other procedures.
const REST: usize = 128 << 10;

/// How to mount an export with version 2 or 3.
#[derive(Debug, Clone)]
pub struct Connect {
    /// Addresses of the server; the first one that takes a connection is used.
    pub addresses: Vec<IpAddr>,
    /// How messages of NFS, MOUNT and NLM travel.
    pub transport: Transport,
    /// Port of NFS. `None`: the portmapper is asked, and 2049 taken if there is none.
    pub port: Option<u16>,
    /// Port of MOUNT. `None`: where [`Self::port`] is given, that one if the server has MOUNT there, else what the
    /// portmapper says; where it is not, what the portmapper says, and that of NFS without a portmapper.
    pub mount_port: Option<u16>,
    /// Port of the lock manager; `None` as for [`Self::mount_port`], when the first lock is asked for.
    pub lock_port: Option<u16>,
    /// Path of the export on the server.
    pub export: Vec<u8>,
    /// TLS, for NFS, MOUNT and NLM alike; the portmapper, which has none, is not asked then.
    pub tls: Option<ClientTls>,
    /// Kerberos for NFS and NLM. MOUNT and the portmapper are asked with AUTH_SYS, as they know nothing else on most servers.
    pub gss: Option<ClientGss>,
    /// Number of TCP connections.
    pub connections: u32,
    /// Whether TCP holds small segments back until earlier ones are acknowledged (Nagle's algorithm).
    pub nagle: bool,
    /// Largest READ; 0: what the server prefers, up to 1 MiB.
    pub read_size: u32,
    /// Largest WRITE; 0: what the server prefers, up to 1 MiB.
    pub write_size: u32,
    /// How long a reply is waited for before the request is sent again.
    pub timeout: Duration,
    /// How often that happens before the call fails.
    pub retransmissions: u32,
    /// User that calls are made for.
    pub uid: u32,
    /// Group id sent with every call.
    pub gid: u32,
    /// Its other groups; the first 16 are used.
    pub gids: Vec<u32>,
    /// Name of the machine in credentials.
    pub machine: String,
    /// Tells the clients of a process apart: with [`Self::machine`] and the number of the process it is whose locks
    /// are.
    pub identity: String,
    /// Pauses when the server asks for patience (`NFS3ERR_JUKEBOX`, grace period of locks).
    pub delay: DelayPolicy,
    /// Pauses between two attempts to get a lock that another holds.
    pub lock_delay: DelayPolicy,
}

/// Least that a server is taken to read and write at a time.
const SMALLEST: u32 = 1024;

impl Connect {
    /// An export of the server at `address`; for user 0 over one TCP connection, with Linux' times (`timeo=600`,
    /// `retrans=2`).
    pub fn new(address: IpAddr, export: impl Into<Vec<u8>>) -> Self {
        Self {
            addresses: vec![address],
            transport: Transport::Tcp,
            port: None,
            mount_port: None,
            lock_port: None,
            export: export.into(),
            tls: None,
            gss: None,
            connections: 1,
            nagle: false,
            read_size: 0,
            write_size: 0,
            timeout: Duration::from_secs(60),
            retransmissions: 2,
            uid: 0,
            gid: 0,
            gids: Vec::new(),
            machine: "benchmaster".to_owned(),
            identity: "client".to_owned(),
            delay: DelayPolicy::default(),
            lock_delay: DelayPolicy::LOCK,
        }
    }

    /// Size of READ or WRITE: what was asked for (0: nothing), what the server prefers and what it takes at most.
    pub(crate) fn size(&self, asked: u32, preferred: u32, most: u32) -> u32 {
        let limit = match self.transport {
            Transport::Tcp if asked == 0 => LARGEST,
            Transport::Tcp => u32::MAX,
            Transport::Udp => LARGEST_DATAGRAM,
        };
        // A server that says less takes more all the same, as Linux has it: with a byte at a time nothing would end.
        let most = most.max(SMALLEST);
        let wanted = match asked {
            0 if preferred == 0 => most,
            0 => preferred.max(SMALLEST),
            asked => asked,
        };
        wanted.min(most).min(limit)
    }

    /// Longest message that can come.
    pub(crate) fn largest_message(&self) -> usize {
        self.read_size.max(LARGEST) as usize + REST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_what_is_asked_for_as_far_as_the_server_goes() {
        let tcp = Connect::new([127, 0, 0, 1].into(), "/");
        assert_eq!(tcp.size(0, 65_536, 1 << 20), 65_536);
        assert_eq!(tcp.size(0, 4 << 20, 4 << 20), 1 << 20);
        assert_eq!(tcp.size(0, 0, 8192), 8192);
        assert_eq!((tcp.size(0, 1, 1), tcp.size(0, 0, 1), tcp.size(4096, 1, 1)), (1024, 1024, 1024));
        assert_eq!(tcp.size(512, 4096, 4096), 512, "asked for");
        assert_eq!(tcp.size(4096, 65_536, 1 << 20), 4096);
        assert_eq!(tcp.size(2 << 20, 65_536, 4 << 20), 2 << 20);
        assert_eq!(tcp.size(2 << 20, 65_536, 1 << 20), 1 << 20);
        let udp = Connect { transport: Transport::Udp, ..tcp };
        assert_eq!((udp.size(0, 1 << 20, 1 << 20), udp.size(4096, 1 << 20, 1 << 20)), (32 << 10, 4096));
    }
}
