//! A server of versions 2 and 3, MOUNT and NLM that can be mounted; a test scripts the calls it is about.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Mutex;
use std::time::Duration;

use benchmaster_nfs_client::counters::Counters;
use benchmaster_nfs_client::delay::DelayPolicy;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{Create, OpenHow};
use benchmaster_nfs_client::v3::{Client, Connect, File};
use benchmaster_nfs_proto::mount::{self, FhStatus, MountOk3, MountRes3};
use benchmaster_nfs_proto::rpc::Message;
use benchmaster_nfs_proto::v2::{self, StatfsOk, StatfsRes};
use benchmaster_nfs_proto::v3::{
    self, Fattr3, FsinfoOk, FsinfoRes, Ftype3, LookupOk, LookupRes, Nfstime3, PathconfOk, PathconfRes, Proc3,
    Specdata3,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encode, Encoder, List};

use super::embedded::run;
use super::scripted::{Act, Server, reply};

/// Handle of the exported directory.
pub(crate) const ROOT: [u8; 32] = [7; 32];

/// A call as the server sees it.
#[derive(Debug)]
pub(crate) struct Call<'c> {
    pub(crate) xid: u32,
    pub(crate) program: u32,
    pub(crate) version: u32,
    pub(crate) procedure: u32,
    pub(crate) args: &'c [u8],
}

impl Call<'_> {
    /// Whether it is this procedure of version 3.
    pub(crate) fn is(&self, procedure: Proc3) -> bool {
        (self.program, self.version, self.procedure) == (v3::PROGRAM, v3::VERSION, procedure.0)
    }
}

/// What the server does with a call.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Success, with these results.
    Results(Vec<u8>),
    /// These bytes, as they are.
    Raw(Vec<u8>),
    /// Nothing.
    Silence,
    /// Closes the connection.
    Close,
}

/// Results from a value.
pub(crate) fn results(value: &impl Encode) -> Option<Reply> {
    let mut e = Encoder::new();
    e.put(value);
    Some(Reply::Results(e.buffer().to_vec()))
}

/// Starts a server: `script` says what becomes of a call; `None` is what a server does that lets itself be mounted.
pub(crate) fn serve(script: impl FnMut(&Call<'_>) -> Option<Reply> + Send + 'static) -> Server {
    let script = Mutex::new(script);
    Server::start(move |seen| {
        let mut d = Decoder::new(seen.message);
        let Ok(Message::Call(header)) = d.get::<Message<'_>>() else { panic!("no call") };
        let call = Call {
            xid: header.xid,
            program: header.program,
            version: header.version,
            procedure: header.procedure,
            args: d.rest(),
        };
        // A script that panics fails the test in its own thread, which then waits in vain: the connection closes.
        let scripted = match script.lock() {
            Ok(mut script) => script(&call),
            Err(_) => Some(Reply::Close),
        };
        match scripted.unwrap_or_else(|| ordinary(&call)) {
            Reply::Results(results) => vec![Act::Send(reply(call.xid, &results))],
            Reply::Raw(bytes) => vec![Act::Send(bytes)],
            Reply::Silence => Vec::new(),
            Reply::Close => vec![Act::Close],
        }
    })
}

fn ordinary(call: &Call<'_>) -> Reply {
    let reply = match (call.program, call.version, call.procedure) {
        (mount::PROGRAM, mount::VERSION_3, 1) => {
            let auth_flavors = List::Items(&[1][..]);
            results(&MountRes3::Ok(MountOk3 { fhandle: ROOT[..].into(), auth_flavors }))
        }
        (mount::PROGRAM, mount::VERSION_1, 1) => results(&FhStatus::Ok(ROOT)),
        (v3::PROGRAM, v3::VERSION, 19) => results(&FsinfoRes::Ok(FsinfoOk {
            obj_attributes: None,
            rtmax: 1 << 20,
            rtpref: 1 << 20,
            rtmult: 1,
            wtmax: 1 << 20,
            wtpref: 1 << 20,
            wtmult: 1,
            dtpref: 8192,
            maxfilesize: u64::MAX,
            time_delta: Nfstime3 { seconds: 0, nseconds: 1 },
            properties: 0x1b,
        })),
        (v3::PROGRAM, v3::VERSION, 20) => results(&PathconfRes::Ok(PathconfOk {
            obj_attributes: None,
            linkmax: 100,
            name_max: 255,
            no_trunc: true,
            chown_restricted: true,
            case_insensitive: false,
            case_preserving: true,
        })),
        (v2::PROGRAM, v2::VERSION, 17) => {
            results(&StatfsRes::Ok(StatfsOk { tsize: 8192, bsize: 512, blocks: 9, bfree: 9, bavail: 9 }))
        }
        // NULL of MOUNT and NLM, UMNT.
        (_, _, 0) | (mount::PROGRAM, _, 3) => results(&()),
        other => panic!("an unexpected call: {other:?}"),
    };
    reply.unwrap()
}

/// Attributes of version 3 that changed last at a time in seconds.
pub(crate) fn attributes(ftype: Ftype3, fileid: u64, changed: u32) -> Fattr3 {
    let time = Nfstime3 { seconds: changed, nseconds: 0 };
    Fattr3 {
        ftype,
        mode: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: 0,
        used: 0,
        rdev: Specdata3 { major: 0, minor: 0 },
        fsid: 1,
        fileid,
        atime: time,
        mtime: time,
        ctime: time,
    }
}

/// How to mount it: with patience, and short pauses.
pub(crate) fn to(server: &Server) -> Connect {
    let pause = Duration::from_millis(1);
    let delay = DelayPolicy { initial: pause, longest: 4 * pause, give_up: Duration::from_secs(30) };
    Connect {
        port: Some(server.address.port()),
        timeout: Duration::from_secs(20),
        delay,
        lock_delay: delay,
        ..Connect::new(IpAddr::V4(Ipv4Addr::LOCALHOST), "/export")
    }
}

/// Mounts with this script and runs a test.
pub(crate) fn with<T>(
    change: impl FnOnce(&mut Connect),
    script: impl FnMut(&Call<'_>) -> Option<Reply> + Send + 'static,
    test: impl AsyncFnOnce(&Client, &Counters) -> T,
) -> T {
    let server = serve(script);
    let mut connect = to(&server);
    change(&mut connect);
    run(async |reactor: Reactor, counters: Rc<Counters>| {
        let client = Client::connect(&reactor, &counters, &connect).await.unwrap();
        let result = test(&client, &counters).await;
        client.unmount().await.unwrap();
        result
    })
}

pub(crate) fn handle_of(file: u8) -> [u8; 8] {
    [file; 8]
}

pub(crate) fn file_found(ftype: Ftype3, file: u8, changed: u32) -> Option<Reply> {
    results(&LookupRes::Ok(LookupOk {
        object: handle_of(file)[..].into(),
        obj_attributes: Some(attributes(ftype, file.into(), changed)),
        dir_attributes: None,
    }))
}

pub(crate) async fn opened(client: &Client) -> File {
    let how = OpenHow { read: true, write: true, create: Create::No, truncate: false, mode: 0 };
    client.open(&client.root(), b"file", &how).await.unwrap().file
}
