//! Portmapper version 2 and rpcbind versions 3 and 4 (RFC 1833), for the programs of this server only: clients find
//! them with a plain `mount`. Programs cannot register, and calls are not passed on.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use benchmaster_nfs_proto::portmap::{
    IPPROTO_TCP, IPPROTO_UDP, Mapping, Netbuf, PROGRAM, PmapProc, Rpcb, RpcbEntry, RpcbProc, SOCKADDR,
    UniversalAddress, VERSION_2, VERSION_3, VERSION_4,
};
use benchmaster_nfs_proto::xdr::Opaque;
use benchmaster_nfs_proto::{mount, nlm, nsm, v2, v3};

use crate::call::{Call, Refusal, Served};

/// Lowest and highest version served.
pub(crate) const VERSIONS: (u32, u32) = (VERSION_2, VERSION_4);

/// Who is said to have registered the programs.
const OWNER: &str = "superuser";

/// A program in a version, and whether it is served over UDP too (over TCP all are).
struct Service {
    program: u32,
    version: u32,
    udp: bool,
}

impl Service {
    /// Whether it is served over UDP, where that is switched on or off; the portmapper always is.
    fn is_on_udp(&self, udp: bool) -> bool {
        self.udp && (udp || self.program == PROGRAM)
    }
}

const fn service(program: u32, version: u32, udp: bool) -> Service {
    Service { program, version, udp }
}

/// All that is served.
const SERVICES: [Service; 13] = [
    service(PROGRAM, VERSION_2, true),
    service(PROGRAM, VERSION_3, true),
    service(PROGRAM, VERSION_4, true),
    service(v2::PROGRAM, v2::VERSION, true),
    service(v3::PROGRAM, v3::VERSION, true),
    service(v3::PROGRAM, 4, false),
    service(mount::PROGRAM, mount::VERSION_1, true),
    service(mount::PROGRAM, mount::VERSION_2, true),
    service(mount::PROGRAM, mount::VERSION_3, true),
    service(nlm::PROGRAM, nlm::v1::VERSION, true),
    service(nlm::PROGRAM, nlm::v1::VERSION_3, true),
    service(nlm::PROGRAM, nlm::v4::VERSION, true),
    service(nsm::PROGRAM, nsm::VERSION, true),
];

pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    if call.version == VERSION_2 { portmapper(call) } else { rpcbind(call) }
}

fn portmapper(call: &mut Call<'_>) -> Served {
    match PmapProc(call.procedure) {
        PmapProc::NULL => {}
        PmapProc::SET | PmapProc::UNSET => {
            let _: Mapping = call.args()?;
            call.reply.encoder.put(&false);
        }
        PmapProc::GETPORT => {
            let asked: Mapping = call.args()?;
            let udp = call.server.config.udp;
            let port =
                find(asked.prog, asked.vers, asked.prot, false, udp).map_or(0, |found| port(call, found));
            call.reply.encoder.put(&u32::from(port));
        }
        PmapProc::DUMP => {
            for (service, prot) in registrations(call.server.config.udp) {
                let (prog, vers) = (service.program, service.version);
                let mapping = Mapping { prog, vers, prot, port: port(call, service).into() };
                call.reply.encoder.put(&true);
                call.reply.encoder.put(&mapping);
            }
            call.reply.encoder.put(&false);
        }
        // RFC 1833 §3.2: a failure is not answered.
        PmapProc::CALLIT => return Err(Refusal::NoReply),
        _ => return Err(Refusal::ProcUnavail),
    }
    Ok(0)
}

fn rpcbind(call: &mut Call<'_>) -> Served {
    match RpcbProc(call.procedure) {
        RpcbProc::NULL => {}
        RpcbProc::SET | RpcbProc::UNSET => {
            let _: Rpcb<'_> = call.args()?;
            call.reply.encoder.put(&false);
        }
        RpcbProc::GETADDR => getaddr(call, false)?,
        RpcbProc::GETVERSADDR if call.version == VERSION_4 => getaddr(call, true)?,
        RpcbProc::DUMP => {
            for (service, prot) in registrations(call.server.config.udp) {
                let address = address(call, service);
                let (netid, text) = (address.netid(prot).unwrap_or_default(), address.to_string());
                let (prog, vers) = (service.program, service.version);
                let rpcb =
                    Rpcb { prog, vers, netid: netid.into(), addr: text[..].into(), owner: OWNER.into() };
                call.reply.encoder.put(&true);
                call.reply.encoder.put(&rpcb);
            }
            call.reply.encoder.put(&false);
        }
        RpcbProc::GETADDRLIST if call.version == VERSION_4 => {
            let asked: Rpcb<'_> = call.args()?;
            let exact = |service: &Service| service.program == asked.prog && service.version == asked.vers;
            for (service, prot) in registrations(call.server.config.udp).filter(|(service, _)| exact(service))
            {
                let address = address(call, service);
                let text = address.to_string();
                let entry = RpcbEntry {
                    maddr: text[..].into(),
                    netid: address.netid(prot).unwrap_or_default().into(),
                    // Connection-oriented with graceful close, or connectionless.
                    semantics: if prot == IPPROTO_TCP { 3 } else { 1 },
                    protofmly: if address.0.is_ipv6() { "inet6" } else { "inet" }.into(),
                    proto: if prot == IPPROTO_TCP { "tcp" } else { "udp" }.into(),
                };
                call.reply.encoder.put(&true);
                call.reply.encoder.put(&entry);
            }
            call.reply.encoder.put(&false);
        }
        RpcbProc::GETTIME => {
            let seconds = call.now.wall.seconds as u32;
            call.reply.encoder.put(&seconds);
        }
        RpcbProc::UADDR2TADDR => {
            let text: Opaque<'_> = call.args()?;
            let (raw, len) = UniversalAddress::from_bytes(text.0)
                .map_or(([0; SOCKADDR], 0), |address| address.to_sockaddr());
            let buf = raw.get(..len).unwrap_or_default().into();
            call.reply.encoder.put(&Netbuf { maxlen: len as u32, buf });
        }
        RpcbProc::TADDR2UADDR => {
            let netbuf: Netbuf<'_> = call.args()?;
            let address = UniversalAddress::from_sockaddr(netbuf.buf.0);
            let text = address.map(|address| address.to_string()).unwrap_or_default();
            call.reply.encoder.opaque(text.as_bytes());
        }
        // RFC 1833 §2.2.1: a failure is not answered.
        RpcbProc::CALLIT => return Err(Refusal::NoReply),
        _ => return Err(Refusal::ProcUnavail),
    }
    Ok(0)
}

/// Universal address of a program, empty when there is none. `exact`: in this very version.
fn getaddr(call: &mut Call<'_>, exact: bool) -> Result<(), Refusal> {
    let asked: Rpcb<'_> = call.args()?;
    let prot = match asked.netid.0 {
        b"tcp" | b"tcp6" => IPPROTO_TCP,
        b"udp" | b"udp6" => IPPROTO_UDP,
        // The transport on which the question came.
        _ if call.peer.outbox.is_some() => IPPROTO_TCP,
        _ => IPPROTO_UDP,
    };
    let found = find(asked.prog, asked.vers, prot, exact, call.server.config.udp);
    let text = found.map(|service| address(call, service).to_string()).unwrap_or_default();
    call.reply.encoder.opaque(text.as_bytes());
    Ok(())
}

/// The program in this version; otherwise, unless `exact`, in any: calling it will tell which there are.
fn find(program: u32, version: u32, prot: u32, exact: bool, udp: bool) -> Option<&'static Service> {
    let served = |service: &&Service| {
        service.program == program && (prot == IPPROTO_TCP || prot == IPPROTO_UDP && service.is_on_udp(udp))
    };
    let all = || SERVICES.iter().filter(served);
    all().find(|service| service.version == version).or_else(|| all().next().filter(|_| !exact))
}

fn registrations(udp: bool) -> impl Iterator<Item = (&'static Service, u32)> {
    SERVICES.iter().flat_map(move |service| {
        let udp = service.is_on_udp(udp).then_some((service, IPPROTO_UDP));
        std::iter::once((service, IPPROTO_TCP)).chain(udp)
    })
}

/// Programs are on the server's port; the portmapper is where it was asked.
fn port(call: &Call<'_>, service: &Service) -> u16 {
    if service.program == PROGRAM { call.peer.local.port() } else { call.server.address.port() }
}

/// Where the client reaches a program: at the address that it used already.
fn address(call: &Call<'_>, service: &Service) -> UniversalAddress {
    let used = call.peer.local.ip();
    let ip = if used.is_unspecified() { towards(call.peer.address).unwrap_or(used) } else { used };
    UniversalAddress(SocketAddr::new(ip, port(call, service)))
}

/// The address from which this host would send to a client: where a datagram to all addresses is likely to have come
/// to.
fn towards(client: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if client.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    // Sends nothing.
    socket.connect(client).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(test)]
mod tests {
    use benchmaster_nfs_proto::portmap::{PmapList, RpcbEntryList, RpcbList};

    use super::*;
    use crate::call::testing::{Caller, decode};
    use crate::config::ServerConfig;
    use crate::v4::testing;

    const NFS: u32 = v3::PROGRAM;

    #[test]
    fn ports_of_programs() {
        let server =
            testing::server(ServerConfig { listen: ([127, 0, 0, 1], 2345).into(), ..Default::default() });
        let mut caller = Caller::new(&server, 0);
        // The portmapper's own port is where it was asked.
        caller.peer.local = ([127, 0, 0, 1], 111).into();
        for (prog, vers, prot, port) in [
            (NFS, 3, IPPROTO_TCP, 2345),
            (NFS, 3, IPPROTO_UDP, 2345),
            (NFS, 4, IPPROTO_TCP, 2345),
            (mount::PROGRAM, 3, IPPROTO_TCP, 2345),
            (nlm::PROGRAM, 4, IPPROTO_UDP, 2345),
            (PROGRAM, 2, IPPROTO_UDP, 111),
            // The program is there, if not in this version.
            (NFS, 7, IPPROTO_TCP, 2345),
            (NFS, 3, 132, 0),
            (100_011, 1, IPPROTO_UDP, 0),
        ] {
            let asked = Mapping { prog, vers, prot, port: 0 };
            let found: u32 = decode(&caller.call((PROGRAM, serve), (2, PmapProc::GETPORT.0), &asked));
            assert_eq!(found, port, "{asked:?}");
        }
        let results = caller.call((PROGRAM, serve), (2, PmapProc::DUMP.0), &());
        let list: PmapList<'_> = decode(&results);
        let has = |vers, prot| list.iter().any(|m| m == Mapping { prog: NFS, vers, prot, port: 2345 });
        assert!(has(2, IPPROTO_UDP) && has(3, IPPROTO_TCP) && has(4, IPPROTO_TCP) && !has(4, IPPROTO_UDP));
        let mut silent = testing::server(ServerConfig { udp: false, ..Default::default() });
        silent.address = server.address;
        let mut other = Caller::new(&silent, 0);
        for (prot, port) in [(IPPROTO_TCP, 2345), (IPPROTO_UDP, 0)] {
            let asked = Mapping { prog: NFS, vers: 3, prot, port: 0 };
            let found: u32 = decode(&other.call((PROGRAM, serve), (2, PmapProc::GETPORT.0), &asked));
            assert_eq!(found, port, "{asked:?}");
        }
        let mapping = Mapping { prog: 1, vers: 1, prot: 6, port: 1 };
        assert!(!decode::<bool>(&caller.call((PROGRAM, serve), (2, PmapProc::SET.0), &mapping)));
        assert!(!decode::<bool>(&caller.call((PROGRAM, serve), (2, PmapProc::UNSET.0), &mapping)));
        assert_eq!(caller.refused((PROGRAM, serve), (2, PmapProc::CALLIT.0), b""), Refusal::NoReply);
        assert_eq!(caller.refused((PROGRAM, serve), (2, 6), b""), Refusal::ProcUnavail);
    }

    #[test]
    fn addresses_of_programs() {
        let server =
            testing::server(ServerConfig { listen: ([127, 0, 0, 1], 2049).into(), ..Default::default() });
        let mut caller = Caller::new(&server, 0);
        let ask = |caller: &mut Caller<'_>, procedure: (u32, RpcbProc), vers, netid: &str| {
            let asked = Rpcb { prog: NFS, vers, netid: netid.into(), addr: "".into(), owner: "".into() };
            let results = caller.call((PROGRAM, serve), (procedure.0, procedure.1.0), &asked);
            String::from_utf8(decode::<Opaque<'_>>(&results).0.to_vec()).unwrap()
        };
        let (get, get_exact) = ((3, RpcbProc::GETADDR), (4, RpcbProc::GETVERSADDR));
        assert_eq!(ask(&mut caller, get, 3, "tcp"), "127.0.0.1.8.1");
        assert_eq!(ask(&mut caller, get, 9, ""), "127.0.0.1.8.1");
        assert_eq!(ask(&mut caller, get_exact, 4, "tcp"), "127.0.0.1.8.1");
        assert_eq!(ask(&mut caller, get_exact, 4, "udp"), "");
        assert_eq!(ask(&mut caller, get_exact, 9, "tcp"), "");
        // Asked over UDP without naming a network; over IPv6 the answer is of that family.
        caller.peer.outbox = None;
        assert_eq!(ask(&mut caller, get_exact, 4, ""), "");
        caller.peer.local = "[::1]:111".parse().unwrap();
        assert_eq!(ask(&mut caller, get, 3, "tcp6"), "::1.8.1");

        // A datagram to a socket on all addresses: the address that the client sees.
        caller.peer.local = ([0, 0, 0, 0], 111).into();
        assert_eq!(ask(&mut caller, get, 3, "udp"), "127.0.0.1.8.1");
        caller.peer.local = "[::1]:111".parse().unwrap();

        let results = caller.call((PROGRAM, serve), (4, RpcbProc::DUMP.0), &());
        let list: RpcbList<'_> = decode(&results);
        assert!(
            list.iter()
                .any(|r| r.prog == NFS && r.vers == 4 && r.netid.0 == b"tcp6" && r.addr.0 == b"::1.8.1")
        );
        let asked = Rpcb { prog: NFS, vers: 3, netid: "".into(), addr: "".into(), owner: "".into() };
        let results = caller.call((PROGRAM, serve), (4, RpcbProc::GETADDRLIST.0), &asked);
        let networks: Vec<_> = decode::<RpcbEntryList<'_>>(&results)
            .iter()
            .map(|entry| (entry.netid, entry.semantics))
            .collect();
        assert_eq!(networks, [("tcp6".into(), 3), ("udp6".into(), 1)]);

        let results = caller.call(
            (PROGRAM, serve),
            (3, RpcbProc::UADDR2TADDR.0),
            &Opaque::<'_, 64>::from("10.0.0.1.8.1"),
        );
        let back =
            caller.call((PROGRAM, serve), (3, RpcbProc::TADDR2UADDR.0), &decode::<Netbuf<'_>>(&results));
        assert_eq!(decode::<Opaque<'_>>(&back).0, b"10.0.0.1.8.1");
        let none =
            caller.call((PROGRAM, serve), (3, RpcbProc::UADDR2TADDR.0), &Opaque::<'_, 64>::from("nowhere"));
        assert_eq!(decode::<Netbuf<'_>>(&none), Netbuf { maxlen: 0, buf: Opaque(&[]) });
        let time: u32 = decode(&caller.call((PROGRAM, serve), (3, RpcbProc::GETTIME.0), &()));
        assert_eq!(time, 1_700_000_001);
        // Only version 4 has it.
        assert_eq!(caller.refused((PROGRAM, serve), (3, RpcbProc::GETVERSADDR.0), b""), Refusal::ProcUnavail);
    }
}
