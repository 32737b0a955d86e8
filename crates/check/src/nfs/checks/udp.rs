//! Versions 2 and 3, and the protocols beside them, over UDP.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use benchmaster_nfs_proto::rpc::{AuthFlavor, CallHeader, OpaqueAuth, RPC_VERSION, RpcReply};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder};
use benchmaster_nfs_proto::{mount, nlm, v3};
use benchmaster_record::nfs::NfsVersion;

use crate::nfs::connection::{Procedure, Reply};
use crate::nfs::hold;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried, Trouble};

/// How long a datagram is waited for, and how often it is sent.
const PATIENCE: Duration = Duration::from_millis(700);
const TRIES: u32 = 2;
/// A reply is no longer.
const LONGEST: usize = 1 << 16;
/// A program that no server has.
const NO_PROGRAM: u32 = 0x3fff_fff0;

/// The replies to a call that is sent this often; fewer where datagrams get lost.
fn replies(to: SocketAddr, call: &[u8], times: u32) -> Result<Vec<Reply>, Trouble> {
    let failed = |error: std::io::Error| Trouble::System(format!("UDP to {to}: {error}"));
    let any: SocketAddr = if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(to).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let mut got = Vec::new();
    for _ in 0..times {
        let mut bytes = vec![0; LONGEST];
        match socket.send(call).and_then(|_| socket.recv(&mut bytes)) {
            Ok(len) => {
                bytes.truncate(len);
                got.push(Reply(bytes));
            }
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused
                ) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(got)
}

/// A call as a datagram, in the name of the user of the checks.
fn datagram(t: &Trial, xid: u32, procedure: Procedure, args: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let body = t.target.user.credential();
    let Procedure { program, version, number } = procedure;
    let mut e = Encoder::new();
    e.put(&CallHeader {
        xid,
        rpc_version: RPC_VERSION,
        program,
        version,
        procedure: number,
        cred: OpaqueAuth { flavor: AuthFlavor::SYS, body: (&body[..]).into() },
        verf: OpaqueAuth::NONE,
    });
    args(&mut e);
    e.buffer().to_vec()
}

/// NULL of a program is answered; where nothing is, UDP is not offered.
fn null(t: &Trial, to: SocketAddr, program: u32, version: u32) -> Tried {
    let call = datagram(t, 0x7564_7001, Procedure { program, version, number: 0 }, |_| {});
    let sent = format!("NULL of program {program}, version {version}, over UDP");
    let stop = |trouble| Stop::Trouble { sent: sent.clone(), trouble };
    let got = replies(to, &call, TRIES).map_err(stop)?;
    let Some(first) = got.first() else {
        return Err(Stop::not_applicable(format!("{to} does not answer over UDP")));
    };
    let (rpc, rest) = first.rpc().map_err(stop)?;
    hold(matches!(rpc, RpcReply::Success(_)) && rest.is_empty(), &sent, || format!("{rpc:?}"))
}

/// NULL of NFS, without which nothing else is tried.
fn offered(t: &Trial) -> Tried {
    null(t, t.target.nfs, v3::PROGRAM, t.version.major())
}

checks! {
    /// Over UDP.
    LIST, Rpc;
    "udp-null" V23 Must [V2 1094 "2.1", V3 1813 "2.1"]
        "A server that takes calls over UDP answers NULL there."
        => |t| offered(t);
    "udp-unknown-program" V23 Must [V2 5531 "9", V3 5531 "9"]
        "A call over UDP of a program that the server does not have is PROG_UNAVAIL."
        => |t| {
            offered(t)?;
            let sent = "NULL of a program that is not there, over UDP";
            let call = datagram(t, 0x7564_7002, Procedure { program: NO_PROGRAM, version: 1, number: 0 }, |_| {});
            let stop = |trouble| Stop::Trouble { sent: sent.into(), trouble };
            let got = replies(t.target.nfs, &call, TRIES).map_err(stop)?;
            let first = got.first().ok_or_else(|| Stop::failed(sent, "no reply"))?;
            let (rpc, _) = first.rpc().map_err(stop)?;
            hold(matches!(rpc, RpcReply::ProgUnavail), sent, || format!("{rpc:?}; PROG_UNAVAIL is right"))
        };
    "udp-getattr" V3 Must [V3 1813 "2.1"]
        "GETATTR over UDP gives what it gives over TCP: fileid, type, mode."
        => |t| {
            offered(t)?;
            let dir = t.dir();
            let object = (&dir[..]).into();
            let getattr = Procedure { program: v3::PROGRAM, version: v3::VERSION, number: v3::Proc3::GETATTR.0 };
            let sent = "GETATTR of a directory over UDP";
            let call = datagram(t, 0x7564_7003, getattr, |e| e.put(&v3::GetattrArgs { object }));
            let stop = |trouble| Stop::Trouble { sent: sent.into(), trouble };
            let got = replies(t.target.nfs, &call, TRIES).map_err(stop)?;
            let first = got.first().ok_or_else(|| Stop::failed(sent, "no reply"))?;
            let (_, results) = first.rpc().map_err(stop)?;
            let over_udp: Option<v3::GetattrRes> = Decoder::new(results).get().ok();
            let answer = t.s()?.call(&v3::GetattrArgs { object })?;
            let over_tcp = Some(answer.get()?);
            hold(over_udp == over_tcp, sent, || format!("{over_udp:?}; {over_tcp:?} over TCP"))
        };
    "udp-repeated-call" V3 Should [V3 1813 "4.5"]
        "A datagram that comes a second time, as when its reply was lost, is not carried out again."
        => |t| {
            offered(t)?;
            let dir = t.dir();
            let mkdir = Procedure { program: v3::PROGRAM, version: v3::VERSION, number: v3::Proc3::MKDIR.0 };
            let (where_, attributes) = (super::names3::place(&dir, "x"), v3::Sattr3::NONE);
            let call = datagram(t, 0x7564_7004, mkdir, |e| e.put(&v3::MkdirArgs { where_, attributes }));
            let sent = "MKDIR sent twice over UDP";
            let stop = |trouble| Stop::Trouble { sent: sent.into(), trouble };
            let got = replies(t.target.nfs, &call, 2).map_err(stop)?;
            let status = |reply: &Reply| {
                let (_, results) = reply.rpc().ok()?;
                Decoder::new(results).get::<v3::Nfsstat3>().ok()
            };
            let statuses: Vec<_> = got.iter().map(status).collect();
            let right = !statuses.is_empty() && statuses.iter().all(|status| *status == Some(v3::Nfsstat3::OK));
            hold(right, sent, || format!("{statuses:?}; OK each time is right"))
        };
    "udp-mount" V23 Must [V2 1094 "A", V3 1813 "5.1"]
        "MOUNT answers NULL over UDP where it does over TCP."
        => |t| {
            let version = if t.version == NfsVersion::V2 { mount::VERSION_1 } else { mount::VERSION_3 };
            null(t, t.mount_address()?, mount::PROGRAM, version)
        };
    "udp-nlm" V3 Must [V3 1813 "6.1"]
        "The lock manager answers NULL over UDP where it does over TCP."
        => |t| null(t, t.nlm_address()?, nlm::PROGRAM, nlm::v4::VERSION);
}
