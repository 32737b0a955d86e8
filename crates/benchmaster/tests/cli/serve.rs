//! The in-memory NFS server as a command.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Command;

use benchmaster_nfs_proto::mount;
use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::rpc::{CallHeader, Message, OpaqueAuth, RpcReply};
use benchmaster_nfs_proto::v3::{
    CreateRes, DirOpArgs, Fh3, GetattrArgs, GetattrRes, MkdirArgs, Nfsstat3, Proc3, Sattr3,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encode, Encoder, Opaque};
use rustix::process::Signal;

use crate::place::{Place, Running, snapshot, stderr};

/// A client with one connection, in nobody's name.
struct Client(TcpStream);

impl Client {
    fn new(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).unwrap())
    }

    fn call(&mut self, program: u32, procedure: u32, arguments: &impl Encode) -> Vec<u8> {
        let mut e = Encoder::new();
        let mark = record::begin(&mut e);
        let (cred, verf) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
        e.put(&CallHeader { xid: 1, rpc_version: 2, program, version: 3, procedure, cred, verf });
        e.put(arguments);
        record::end(&mut e, mark);
        self.0.write_all(e.buffer()).unwrap();
        let mut header = [0; 4];
        self.0.read_exact(&mut header).unwrap();
        let mut reply = vec![0; (u32::from_be_bytes(header) & !record::LAST_FRAGMENT) as usize];
        self.0.read_exact(&mut reply).unwrap();
        let mut d = Decoder::new(&reply);
        let Message::Reply { reply: RpcReply::Success(_), .. } = d.get().unwrap() else {
            panic!("{reply:?}")
        };
        d.rest().to_vec()
    }

    fn root(&mut self) -> Vec<u8> {
        let reply = self.call(mount::PROGRAM, 1, &Opaque::<1024>(b"/export"));
        let mut d = Decoder::new(&reply);
        assert_eq!(d.get::<u32>().unwrap(), 0);
        d.get::<Fh3<'_>>().unwrap().0.to_vec()
    }

    fn make_directory(&mut self, root: &[u8], name: &str) -> Vec<u8> {
        let place = DirOpArgs { dir: Opaque(root), name: name.into() };
        let args = MkdirArgs { where_: place, attributes: Sattr3::NONE };
        let reply = self.call(100_003, Proc3::MKDIR.0, &args);
        let made: CreateRes<'_> = Decoder::new(&reply).get().unwrap();
        made.ok().unwrap().obj.unwrap().0.to_vec()
    }

    fn status(&mut self, file: &[u8]) -> Nfsstat3 {
        let reply = self.call(100_003, Proc3::GETATTR.0, &GetattrArgs { object: Opaque(file) });
        Decoder::new(&reply).get::<GetattrRes>().unwrap().status()
    }
}

/// Starts a server and waits until it serves.
pub(crate) fn serve(place: &Place, arguments: &[&str]) -> (Running, SocketAddr) {
    let mut all = vec!["serve"];
    if !arguments.contains(&"--listen") {
        all.extend(["--listen", "0"]);
    }
    all.extend(arguments);
    let mut running = Running::start(place.command(&all));
    let line = running.wait_for("serving ");
    (running, line.rsplit(' ').next().unwrap().parse().unwrap())
}

fn json(line: &str) -> serde_json::Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn it_serves_until_it_is_told_to_stop_and_gives_its_statistics() {
    let place = Place::new();
    for signal in [Signal::TERM, Signal::INT] {
        let (running, address) = serve(&place, &["--stats-socket", "stats.sock"]);
        assert!(address.ip().is_loopback());
        let mut client = Client::new(address);
        let root = client.root();
        client.make_directory(&root, "d");

        let mut line = String::new();
        UnixStream::connect(place.path("stats.sock")).unwrap().read_to_string(&mut line).unwrap();
        let operation = |report: &serde_json::Value, name: &str| {
            report["operations"].as_array().unwrap().iter().find(|op| op["operation"] == name).cloned()
        };
        let mkdir = operation(&json(&line), "MKDIR").unwrap();
        assert_eq!((mkdir["ops"].as_u64(), mkdir["errors"].as_u64()), (Some(1), Some(0)));

        running.signal(Signal::USR1);
        // The signal is answered before the next one is taken; it needs no waiting here.
        running.signal(signal);
        let (status, out, err) = running.end();
        assert_eq!(status.code(), Some(0), "{err}");
        let last = json(out.lines().last().unwrap());
        assert_eq!(operation(&last, "MKDIR").unwrap()["ops"], 1);
        assert_eq!(last["clients"][0]["address"], "127.0.0.1");
        assert!(!place.path("stats.sock").exists());
    }
}

#[test]
fn sigusr1_writes_statistics_meanwhile() {
    let place = Place::new();
    let (running, _) = serve(&place, &["--stats", "stats.json"]);
    running.signal(Signal::USR1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !place.path("stats.json").exists() {
        assert!(std::time::Instant::now() < deadline, "no statistics");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    json(&std::fs::read_to_string(place.path("stats.json")).unwrap());
    running.signal(Signal::TERM);
    let (status, out, _) = running.end();
    assert_eq!((status.code(), out.as_str()), (Some(0), ""));
}

#[test]
fn files_survive_a_restart_with_state_and_only_then() {
    let place = Place::new();
    let (running, address) = serve(&place, &["--state", "state"]);
    let mut client = Client::new(address);
    let root = client.root();
    let kept = client.make_directory(&root, "kept");
    running.signal(Signal::TERM);
    assert_eq!(running.end().0.code(), Some(0));

    let (mut running, address) = serve(&place, &["--state", "state"]);
    let mut client = Client::new(address);
    assert_eq!(client.status(&kept), Nfsstat3::OK);
    let lost = client.make_directory(&root, "lost");
    running.child.kill().unwrap();
    running.end();

    let (running, address) = serve(&place, &["--state", "state"]);
    let mut client = Client::new(address);
    assert_eq!(client.status(&kept), Nfsstat3::OK, "the state file is as it was");
    assert_eq!(client.status(&lost), Nfsstat3::STALE);
    running.signal(Signal::TERM);
    running.end();

    let (running, address) = serve(&place, &[]);
    assert_eq!(Client::new(address).status(&kept), Nfsstat3::STALE);
    running.signal(Signal::TERM);
    running.end();
}

#[test]
fn a_state_file_that_is_none_is_left_alone() {
    let place = Place::new();
    place.write("notes.txt", "shopping list");
    let output = place.run(&["serve", "--listen", "0", "--state", "notes.txt"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("notes.txt is not a state file"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(place.path("notes.txt")).unwrap(), "shopping list");
}

#[test]
fn an_address_in_use_is_named() {
    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = place.run(&["serve", "--listen", &address]);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output).replace(&address, "ADDRESS");
    snapshot("serve_address_in_use", &place, &text);
}

#[test]
fn an_address_for_others_is_allowed_with_a_warning() {
    let place = Place::new();
    let (running, address) = serve(&place, &["--listen", "0.0.0.0:0", "--allow-remote"]);
    running.signal(Signal::TERM);
    let (status, _, err) = running.end();
    assert_eq!(status.code(), Some(0));
    snapshot("serve_allow_remote", &place, &err.replace(&address.port().to_string(), "PORT"));
}

#[test]
fn injected_behaviour_is_that_of_the_command_line() {
    let place = Place::new();
    let (running, address) = serve(&place, &["--inject", "GETATTR error=NFS3ERR_IO count=1"]);
    let mut client = Client::new(address);
    let root = client.root();
    assert_eq!(client.status(&root), Nfsstat3::IO);
    assert_eq!(client.status(&root), Nfsstat3::OK);
    running.signal(Signal::TERM);
    let (_, out, _) = running.end();
    assert_eq!(json(&out)["injected"][0], serde_json::json!(["GETATTR error=NFS3ERR_IO count=1", 1]));
}

#[test]
fn libnfs_reads_what_it_wrote() {
    if Command::new("nfs-ls").output().is_err() {
        eprintln!("skipped: nfs-ls (Debian's libnfs-utils) is not installed");
        return;
    }
    let place = Place::new();
    let (running, address) = serve(&place, &[]);
    let port = address.port();
    let v3 = format!("version=3&nfsport={port}&mountport={port}");
    let v4 = format!("version=4&nfsport={port}");
    // libnfs 4.0 cannot encode larger writes of v4.
    for (version, lines) in [(v3, 100_000), (v4, 300)] {
        place.write("file", &"content\n".repeat(lines));
        let url = format!("nfs://127.0.0.1/export/file-{}?{version}", &version[8..9]);
        let copy = |from: &str, to: &str| {
            let done = Command::new("nfs-cp").args([from, to]).current_dir(place.root()).output().unwrap();
            assert!(done.status.success(), "{from} → {to}: {done:?}");
        };
        copy("file", &url);
        copy(&url, "back");
        let read = |name| std::fs::read(place.path(name)).unwrap();
        assert!(read("back") == read("file"), "{url} differs");
        std::fs::remove_file(place.path("back")).unwrap();
    }
    running.signal(Signal::TERM);
    assert_eq!(running.end().0.code(), Some(0));
}
