//! ONC RPC under all versions, and the protocols beside versions 2 and 3: portmapper, MOUNT.

use std::net::SocketAddr;

use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthSys, CallHeader, OpaqueAuth, RPC_VERSION, RpcReply};
use benchmaster_nfs_proto::xdr::{Decode, Decoder, Encoder, List};
use benchmaster_nfs_proto::{mount, portmap, record, v3};
use benchmaster_record::nfs::NfsVersion;

use crate::nfs::connection::{Connection, Procedure, Reply};
use crate::nfs::hold;
use crate::nfs::stateless;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried, Trouble};

/// A call whose header is made by hand, and its reply.
fn call(
    t: &mut Trial,
    sent: &str,
    cred: OpaqueAuth<'_>,
    change: impl FnOnce(&mut CallHeader<'_>),
    args: &[u8],
) -> Result<Reply, Stop> {
    let (mut connection, version) = (t.connect()?, t.version.major());
    let xid = connection.number();
    let mut header = CallHeader {
        xid,
        rpc_version: RPC_VERSION,
        program: v3::PROGRAM,
        version,
        procedure: 0,
        cred,
        verf: OpaqueAuth::NONE,
    };
    change(&mut header);
    let mut e = Encoder::new();
    e.put(&header);
    e.raw(args);
    let stop = |trouble| Stop::Trouble { sent: sent.to_owned(), trouble };
    connection.send_record(e.buffer()).map_err(stop)?;
    connection.receive(xid).map_err(stop)
}

/// The reply must be what `right` takes; `what` says what that is.
fn answered(
    t: &mut Trial,
    sent: &str,
    change: impl FnOnce(&mut CallHeader<'_>),
    args: &[u8],
    what: &str,
    right: impl Fn(&RpcReply<'_>) -> bool,
) -> Tried {
    let reply = call(t, sent, OpaqueAuth::NONE, change, args)?;
    let (rpc, _) = reply.rpc().map_err(|trouble| Stop::Trouble { sent: sent.to_owned(), trouble })?;
    hold(right(&rpc), sent, || format!("{rpc:?}; {what} is right"))
}

/// A call of procedure 1 with this credential.
fn refused(t: &mut Trial, sent: &str, flavor: AuthFlavor, body: &[u8]) -> Tried {
    let cred = OpaqueAuth { flavor, body: body.into() };
    let reply = call(t, sent, cred, |header| header.procedure = 1, &[])?;
    let (rpc, _) = reply.rpc().map_err(|trouble| Stop::Trouble { sent: sent.to_owned(), trouble })?;
    hold(matches!(rpc, RpcReply::AuthError(_)), sent, || format!("{rpc:?}; AuthError is right"))
}

/// NULL in bytes, and its number.
fn null_call(connection: &mut Connection, version: NfsVersion) -> (u32, Vec<u8>) {
    let xid = connection.number();
    let mut e = Encoder::new();
    let mark = record::begin(&mut e);
    e.put(&CallHeader {
        xid,
        rpc_version: RPC_VERSION,
        program: v3::PROGRAM,
        version: version.major(),
        procedure: 0,
        cred: OpaqueAuth::NONE,
        verf: OpaqueAuth::NONE,
    });
    record::end(&mut e, mark);
    (xid, e.buffer().to_vec())
}

/// The reply to NULL on this connection is success.
fn null_answered(connection: &mut Connection, xid: u32, sent: &str) -> Tried {
    let stop = |trouble: Trouble| Stop::Trouble { sent: sent.to_owned(), trouble };
    let reply = connection.receive(xid).map_err(stop)?;
    let (rpc, _) = reply.rpc().map_err(stop)?;
    hold(matches!(rpc, RpcReply::Success(_)), sent, || format!("{rpc:?}; success is right"))
}

/// A call of MOUNT or the portmapper, decoded.
fn ask<T: for<'r> Decode<'r>>(
    t: &Trial,
    address: SocketAddr,
    procedure: Procedure,
    sent: &str,
    args: impl FnOnce(&mut Encoder),
) -> Result<T, Stop> {
    let mut connection = t.connect_to(address)?;
    let bytes = stateless::results(&mut connection, procedure, Some(t.target.user), sent, args)?;
    Decoder::new(&bytes)
        .get()
        .map_err(|error| Stop::failed(sent, format!("the result cannot be decoded: {error}")))
}

fn mount_call(t: &Trial, number: mount::Proc) -> Procedure {
    let version = if t.version == NfsVersion::V2 { mount::VERSION_1 } else { mount::VERSION_3 };
    Procedure { program: mount::PROGRAM, version, number: number.0 }
}

/// The status of MNT of a path.
fn mnt(t: &Trial, path: &[u8]) -> Result<u32, Stop> {
    let address = t.mount_address()?;
    ask(t, address, mount_call(t, mount::Proc::MNT), "MNT", |e| e.put(&mount::DirPath::from(path)))
}

/// The paths of a list that MOUNT gives, each behind a `true`; names follow.
fn exports(t: &Trial) -> Result<Vec<Vec<u8>>, Stop> {
    let mut connection = t.connect_to(t.mount_address()?)?;
    let procedure = mount_call(t, mount::Proc::EXPORT);
    let bytes = stateless::results(&mut connection, procedure, Some(t.target.user), "EXPORT", |_| {})?;
    let list: mount::Exports<'_> = Decoder::new(&bytes)
        .get()
        .map_err(|error| Stop::failed("EXPORT", format!("the result cannot be decoded: {error}")))?;
    Ok(list.iter().map(|node| node.dir.0.to_vec()).collect())
}

/// The portmapper: at the server's own port, or at that for it.
fn portmapper(t: &Trial) -> Result<SocketAddr, Stop> {
    let missing = || Stop::not_applicable("there is no portmapper");
    let here = t.target.nfs;
    for address in [here, SocketAddr::new(here.ip(), portmap::PORT)] {
        let Ok(mut connection) = t.connect_to(address) else { continue };
        if stateless::null(&mut connection, portmap::PROGRAM, portmap::VERSION_2).is_ok_and(|there| there) {
            return Ok(address);
        }
    }
    Err(missing())
}

fn pmap(number: portmap::PmapProc) -> Procedure {
    Procedure { program: portmap::PROGRAM, version: portmap::VERSION_2, number: number.0 }
}

/// GETPORT of a program.
fn getport(t: &Trial, prog: u32, vers: u32) -> Result<u32, Stop> {
    let mapping = portmap::Mapping { prog, vers, prot: portmap::IPPROTO_TCP, port: 0 };
    ask(t, portmapper(t)?, pmap(portmap::PmapProc::GETPORT), &format!("GETPORT {mapping:?}"), |e| {
        e.put(&mapping)
    })
}

checks! {
    /// Remote procedure calls.
    RPC, Rpc;
    "rpc-null" ALL_VERSIONS Must [ALL_VERSIONS 5531 "9"]
        "NULL does nothing, and needs no credential."
        => |t| {
        answered(t, "NULL with AUTH_NONE", |_| {}, &[], "success", |rpc| matches!(rpc, RpcReply::Success(_)))
    };
    "rpc-version" ALL_VERSIONS Should [ALL_VERSIONS 5531 "9"]
        "Another version of RPC than 2 is RPC_MISMATCH."
        => |t| {
        let other = |header: &mut CallHeader<'_>| header.rpc_version = 3;
        answered(t, "a call of RPC version 3", other, &[], "RpcMismatch(2, 2)", |rpc| matches!(rpc, RpcReply::RpcMismatch(2, 2)))
    };
    "rpc-program" ALL_VERSIONS Must [ALL_VERSIONS 5531 "9"]
        "A program that is not there is PROG_UNAVAIL."
        => |t| {
        let other = |header: &mut CallHeader<'_>| header.program = 0x2fff_fff0;
        answered(t, "a call of an unknown program", other, &[], "ProgUnavail", |rpc| matches!(rpc, RpcReply::ProgUnavail))
    };
    "rpc-program-version" ALL_VERSIONS Must [ALL_VERSIONS 5531 "9"]
        "A version of NFS that is not there is PROG_MISMATCH, with those that are."
        => |t| {
        let other = |header: &mut CallHeader<'_>| header.version = 99;
        answered(t, "NULL of NFS version 99", other, &[], "ProgMismatch with the lowest and highest version", |rpc| {
            matches!(rpc, RpcReply::ProgMismatch(low, high) if low <= high && (2..=4).contains(high))
        })
    };
    "rpc-procedure" ALL_VERSIONS Must [ALL_VERSIONS 5531 "9"]
        "A procedure that is not there is PROC_UNAVAIL."
        => |t| {
        let other = |header: &mut CallHeader<'_>| header.procedure = 99;
        answered(t, "procedure 99", other, &[], "ProcUnavail", |rpc| matches!(rpc, RpcReply::ProcUnavail))
    };
    "rpc-garbage" V23 Must [V23 5531 "9"]
        "Arguments that do not decode are GARBAGE_ARGS."
        => |t| {
        let (body, sent) = (t.target.user.credential(), "GETATTR with two bytes of arguments");
        let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: (&body[..]).into() };
        let reply = call(t, sent, cred, |header| header.procedure = 1, &[1, 2])?;
        let (rpc, _) = reply.rpc().map_err(|trouble| Stop::Trouble { sent: sent.to_owned(), trouble })?;
        hold(matches!(rpc, RpcReply::GarbageArgs), sent, || format!("{rpc:?}; GarbageArgs is right"))
    };
    "rpc-handle-too-long" V3 Must [V3 5531 "9"]
        "A handle of more than 64 bytes does not decode: GARBAGE_ARGS (or BADHANDLE)."
        => |t| {
        let body = t.target.user.credential();
        let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: (&body[..]).into() };
        let mut e = Encoder::new();
        e.opaque(&[7; 100]);
        let sent = "GETATTR with a handle of 100 bytes";
        let reply = call(t, sent, cred, |header| header.procedure = 1, e.buffer())?;
        match reply.rpc().map_err(|trouble| Stop::Trouble { sent: sent.to_owned(), trouble })? {
            (RpcReply::GarbageArgs, _) => Ok(()),
            (RpcReply::Success(_), results) => {
                let status = Decoder::new(results).get::<v3::Nfsstat3>();
                hold(status == Ok(v3::Nfsstat3::BADHANDLE), sent, || format!("{status:?}; BADHANDLE is right"))
            }
            (other, _) => Err(Stop::failed(sent, format!("{other:?}; GarbageArgs is right"))),
        }
    };
    "rpc-bad-credential" ALL_VERSIONS Must [ALL_VERSIONS 5531 "8.2"]
        "AUTH_SYS whose body does not decode is refused (AUTH_BADCRED)."
        => |t| {
        refused(t, "AUTH_SYS with a body of three bytes", AuthFlavor::SYS, &[1, 2, 3])
    };
    "rpc-too-many-groups" ALL_VERSIONS Must [ALL_VERSIONS 5531 "A"]
        "AUTH_SYS with more than 16 groups is refused (AUTH_BADCRED)."
        => |t| {
        let gids: Vec<u32> = (0..40).collect();
        let mut e = Encoder::new();
        e.put(&AuthSys { stamp: 0, machine_name: "check".into(), uid: 0, gid: 0, gids: List::Items(&gids) });
        refused(t, "AUTH_SYS with 40 groups", AuthFlavor::SYS, e.buffer())
    };
    "rpc-unknown-flavor" ALL_VERSIONS Must [ALL_VERSIONS 5531 "8.2"]
        "A credential of a flavour that does not exist is refused."
        => |t| {
        refused(t, "a credential of flavour 77", AuthFlavor(77), &[])
    };
    "rpc-fragments" ALL_VERSIONS Must [ALL_VERSIONS 5531 "11"]
        "A call in several fragments is one call."
        => |t| {
        let (mut connection, version) = (t.connect()?, t.version);
        let (xid, record) = null_call(&mut connection, version);
        let sent = "NULL in fragments of 8 bytes";
        let content = record.get(4..).unwrap_or_default();
        let pieces: Vec<&[u8]> = content.chunks(8).collect();
        let mut bytes = Vec::new();
        for (n, piece) in pieces.iter().enumerate() {
            let last = if n + 1 == pieces.len() { record::LAST_FRAGMENT } else { 0 };
            bytes.extend((last | piece.len() as u32).to_be_bytes());
            bytes.extend(*piece);
        }
        connection.send_bytes(&bytes).map_err(|trouble| Stop::Trouble { sent: sent.into(), trouble })?;
        null_answered(&mut connection, xid, sent)
    };
    "rpc-slow-bytes" ALL_VERSIONS Must [ALL_VERSIONS 5531 "11"]
        "A call whose bytes come one after the other is answered."
        => |t| {
        let (mut connection, version) = (t.connect()?, t.version);
        let (xid, record) = null_call(&mut connection, version);
        let sent = "NULL, byte after byte";
        for byte in record.chunks(3) {
            connection.send_bytes(byte).map_err(|trouble| Stop::Trouble { sent: sent.into(), trouble })?;
        }
        null_answered(&mut connection, xid, sent)
    };
    "rpc-several-at-once" ALL_VERSIONS Must [ALL_VERSIONS 5531 "9"]
        "Calls that come together are answered each, by their numbers."
        => |t| {
        let (mut connection, version) = (t.connect()?, t.version);
        let calls: Vec<(u32, Vec<u8>)> = (0..20).map(|_| null_call(&mut connection, version)).collect();
        let sent = "20 calls of NULL in one piece";
        let bytes = calls.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<u8>>();
        connection.send_bytes(&bytes).map_err(|trouble| Stop::Trouble { sent: sent.into(), trouble })?;
        calls.iter().try_for_each(|(xid, _)| null_answered(&mut connection, *xid, sent))
    };
    "rpc-after-damage" ALL_VERSIONS Must [ALL_VERSIONS 5531 "11"]
        "A connection that sends no RPC does not disturb others."
        => |t| {
        let version = t.version;
        let mut damaged = t.connect()?;
        let sent = "bytes that are no record, then NULL on another connection";
        // Whether the server closes this one or waits for more is its own affair.
        damaged.send_bytes(&[0xff; 64]).map_err(|trouble| Stop::Trouble { sent: sent.into(), trouble })?;
        let mut other = t.connect()?;
        let (xid, record) = null_call(&mut other, version);
        other.send_bytes(&record).map_err(|trouble| Stop::Trouble { sent: sent.into(), trouble })?;
        null_answered(&mut other, xid, sent)
    };
    "rpc-repeated-call" V3 Should [V3 1813 "4.5"]
        "A call that comes a second time with its number, on the same connection, is not carried out again."
        => |t| {
        let dir = t.dir();
        let user = t.target.user;
        let client = t.s()?;
        let sent = "MKDIR sent twice with one number";
        let stop = |trouble| Stop::Trouble { sent: sent.to_owned(), trouble };
        let body = user.credential();
        let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: (&body[..]).into() };
        let xid = client.connection.number();
        let mut e = Encoder::new();
        let (version, procedure) = (v3::VERSION, v3::Proc3::MKDIR.0);
        e.put(&CallHeader { xid, rpc_version: RPC_VERSION, program: v3::PROGRAM, version, procedure, cred, verf: OpaqueAuth::NONE });
        e.put(&v3::MkdirArgs { where_: super::names3::place(&dir, "x"), attributes: v3::Sattr3::NONE });
        let mut statuses = Vec::new();
        for _ in 0..2 {
            client.connection.send_record(e.buffer()).map_err(stop)?;
            let reply = client.connection.receive(xid).map_err(stop)?;
            let (_, results) = reply.rpc().map_err(stop)?;
            statuses.push(Decoder::new(results).get::<v3::Nfsstat3>().ok());
        }
        hold(statuses == [Some(v3::Nfsstat3::OK); 2], sent, || format!("{statuses:?}; OK both times is right"))
    };
}

checks! {
    /// MOUNT.
    MOUNT, Mount;
    "mount" V23 Must [V3 1813 "5.2.1", V2 1094 "A.5.2"]
        "MNT of the export gives the handle of a directory, each time the same."
        => |t| {
        let again = t.connect_to(t.mount_address()?)?;
        let mut again = again;
        let fh = stateless::mount(&mut again, t.version, t.target.user, &t.target.export)?;
        hold(fh == t.export, "MNT", || "another handle than before".into())
    };
    "mount-missing" V23 Must [V3 1813 "5.2.1", V2 1094 "A.5.2"]
        "MNT of a path that is not exported is NOENT or ACCES."
        => |t| {
        let status = mnt(t, b"/benchmaster-no-such-export")?;
        hold([2, 13].contains(&status), "MNT of /benchmaster-no-such-export", || format!("status {status}; 2 or 13 is right"))
    };
    "mount-relative" V23 Must [V3 1813 "5.2.1", V2 1094 "A.5.2"]
        "MNT of a path that is not absolute is refused."
        => |t| {
        let status = mnt(t, b"not/absolute")?;
        hold(status != 0, "MNT of not/absolute", || "success".into())
    };
    "mount-empty" V23 Must [V3 1813 "5.2.1", V2 1094 "A.5.2"]
        "MNT of an empty path is refused."
        => |t| {
        let status = mnt(t, b"")?;
        hold(status != 0, "MNT of an empty path", || "success".into())
    };
    "mount-export-list" V23 Must [V3 1813 "5.2.5", V2 1094 "A.5.6"]
        "EXPORT lists the export, or a directory above it."
        => |t| {
        let (list, path) = (exports(t)?, t.target.export.clone());
        let above = |dir: &Vec<u8>| path.starts_with(dir);
        hold(list.iter().any(above), "EXPORT", || {
            let list: Vec<String> = list.iter().map(|dir| String::from_utf8_lossy(dir).into_owned()).collect();
            format!("{list:?}, without the export")
        })
    };
    "mount-unmount" V23 Must [V3 1813 "5.2.3", V2 1094 "A.5.4"]
        "UMNT succeeds, also of what is not mounted; the handle stays good."
        => |t| {
        let address = t.mount_address()?;
        let path = t.target.export.clone();
        let mut connection = t.connect_to(address)?;
        let procedure = mount_call(t, mount::Proc::UMNT);
        for _ in 0..2 {
            let user = Some(t.target.user);
            stateless::results(&mut connection, procedure, user, "UMNT", |e| e.put(&mount::DirPath::from(&path[..])))?;
        }
        let dir = t.dir();
        t.s()?.names(&dir).map(|_| ())
    };
    "mount-dump" V23 Must [V3 1813 "5.2.2", V2 1094 "A.5.3"]
        "DUMP gives a list."
        => |t| {
        let mut connection = t.connect_to(t.mount_address()?)?;
        let procedure = mount_call(t, mount::Proc::DUMP);
        let bytes = stateless::results(&mut connection, procedure, Some(t.target.user), "DUMP", |_| {})?;
        let list = Decoder::new(&bytes).get::<mount::MountList<'_>>();
        hold(list.is_ok(), "DUMP", || "a result that does not decode".into())
    };
    "mount-flavors" V3 Must [V3 1813 "5.2.1"]
        "MNT says which flavours the export takes, of which this connection's is one."
        => |t| {
        let mut connection = t.connect_to(t.mount_address()?)?;
        let (procedure, path) = (mount_call(t, mount::Proc::MNT), t.target.export.clone());
        let user = Some(t.target.user);
        let bytes = stateless::results(&mut connection, procedure, user, "MNT", |e| e.put(&mount::DirPath::from(&path[..])))?;
        let flavors: Vec<u32> = match Decoder::new(&bytes).get() {
            Ok(mount::MountRes3::Ok(ok)) => ok.auth_flavors.iter().collect(),
            other => return Err(Stop::failed("MNT", format!("{other:?}"))),
        };
        hold(flavors.contains(&1), "MNT", || format!("flavours {flavors:?}, without AUTH_SYS"))
    };
}

checks! {
    /// The portmapper.
    PORTMAP, Portmap;
    "portmap-nfs" V23 Must [V23 1833 "3.2"]
        "GETPORT of NFS gives the port where it listens."
        => |t| {
        let (port, version) = (getport(t, v3::PROGRAM, t.version.major())?, t.version);
        let address = SocketAddr::new(t.target.nfs.ip(), u16::try_from(port).unwrap_or_default());
        let mut connection = t.connect_to(address)?;
        let (xid, record) = null_call(&mut connection, version);
        let sent = format!("GETPORT of NFS {version}, then NULL at port {port}");
        connection.send_bytes(&record).map_err(|trouble| Stop::Trouble { sent: sent.clone(), trouble })?;
        null_answered(&mut connection, xid, &sent)
    };
    "portmap-unknown" V23 Must [V23 1833 "3.2"]
        "GETPORT of a program that is not there gives 0."
        => |t| {
        let port = getport(t, 0x2fff_fff0, 1)?;
        hold(port == 0, "GETPORT of an unknown program", || format!("port {port}"))
    };
    "portmap-dump" V23 Must [V23 1833 "3.2"]
        "DUMP lists NFS and MOUNT."
        => |t| {
        let mut connection = t.connect_to(portmapper(t)?)?;
        let bytes = stateless::results(&mut connection, pmap(portmap::PmapProc::DUMP), None, "DUMP", |_| {})?;
        let list: portmap::PmapList<'_> = Decoder::new(&bytes)
            .get()
            .map_err(|error| Stop::failed("DUMP", format!("the result cannot be decoded: {error}")))?;
        let has = |program| list.iter().any(|mapping| mapping.prog == program);
        hold(has(v3::PROGRAM) && has(mount::PROGRAM), "DUMP", || format!("{list:?}"))
    };
    "portmap-set-of-stranger" V23 Should [V23 1833 "3.2"]
        "SET from another host or by a user without rights registers nothing."
        => |t| {
        let mapping = portmap::Mapping { prog: 0x2fff_fff1, vers: 1, prot: portmap::IPPROTO_TCP, port: 9 };
        let address = portmapper(t)?;
        let set = match ask::<bool>(t, address, pmap(portmap::PmapProc::SET), "SET", |e| e.put(&mapping)) {
            // The call itself may be refused.
            Err(Stop::Failed { .. }) => return Ok(()),
            set => set?,
        };
        if set {
            let _: bool = ask(t, address, pmap(portmap::PmapProc::UNSET), "UNSET", |e| e.put(&mapping))?;
            if address.ip().is_loopback() {
                return Err(Stop::not_applicable("the portmapper is on this host, which may register"));
            }
        }
        hold(!set, "SET over the network", || "registered".into())
    };
}
