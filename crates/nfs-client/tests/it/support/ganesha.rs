//! nfs-ganesha, in namespaces of its own: network, mounts, processes. It cannot do without an rpcbind, nor its lock manager
//! without a status monitor; what they leave behind goes away with the namespaces.
//!
//! ```ignore
//! #[test]
//! fn a_test() {
//!     ganesha::inside("a_test", || {
//!         let server = Ganesha::start(Fsal::Mem);
//!         // …mount 127.0.0.1 at server.nfs, export Ganesha::path()…
//!     });
//! }
//! ```
//!
//! Where `ganesha.nfsd`, `rpcbind` or namespaces are not to be had, the test says so and passes; with
//! `BENCHMASTER_REQUIRE_GANESHA=1` it fails.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Set inside the namespaces.
const INSIDE: &str = "BENCHMASTER_IN_NAMESPACE";
/// Set where a missing server is an error.
const REQUIRED: &str = "BENCHMASTER_REQUIRE_GANESHA";

/// An address besides those of loopback makes resolvers accept 127.0.0.1.
const NAMESPACE: &str = r#"
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /run/export /run/rpcbind /run/ganesha /var/lib/nfs/ganesha /var/lib/nfs/sm /var/lib/nfs/sm.bak
ip link set lo up
ip addr add 198.51.100.1/32 dev lo
rpcbind
if command -v rpc.statd > /dev/null; then rpc.statd --no-notify --no-syslog 2> /run/statd.log; fi
exec "$0" "$@"
"#;

/// Runs `body` of the test function `test` inside namespaces, or not at all where that is not possible.
pub(crate) fn inside(test: &str, body: impl FnOnce()) {
    in_namespaces(test, &["ganesha.nfsd", "rpcbind", "ip"], NAMESPACE, body);
}

/// The same where nothing runs, and every port is free.
pub(crate) fn alone(test: &str, body: impl FnOnce()) {
    in_namespaces(test, &["ip"], "ip link set lo up && exec \"$0\" \"$@\"", body);
}

fn in_namespaces(test: &str, programs: &[&str], script: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    if let Err(reason) = available(programs) {
        assert!(std::env::var_os(REQUIRED).is_none_or(|value| value == "0"), "{reason}");
        println!("skipped: {reason}");
        return;
    }
    let status = unshare()
        .args(["sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "the test failed in its namespace: {status}");
}

fn unshare() -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare
}

/// Whether it can be run here, or why not.
fn available(programs: &[&str]) -> Result<(), String> {
    for program in programs {
        let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
        if !found.is_ok_and(|found| found.status.success()) {
            return Err(format!(
                "{program} is not installed (packages nfs-ganesha, nfs-ganesha-mem, \
                 nfs-ganesha-vfs, rpcbind, iproute2)"
            ));
        }
    }
    match unshare().arg("true").output() {
        Ok(tried) if tried.status.success() => Ok(()),
        Ok(tried) => Err(format!("no namespaces: {}", String::from_utf8_lossy(&tried.stderr).trim())),
        Err(error) => Err(format!("no namespaces: unshare: {error}")),
    }
}

/// Where files are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fsal {
    /// In memory.
    Mem,
    /// In a directory of a tmpfs; needs root.
    Vfs,
}

/// A running server; ends with this value.
#[derive(Debug)]
pub(crate) struct Ganesha {
    child: Child,
    /// Port of NFS.
    pub(crate) nfs: u16,
    /// Port of MOUNT.
    pub(crate) mount: u16,
    /// Port of the lock manager.
    pub(crate) nlm: u16,
    files: tempfile::TempDir,
}

impl Ganesha {
    /// Path of the export for versions 2 and 3.
    pub(crate) fn path(fsal: Fsal) -> &'static str {
        match fsal {
            Fsal::Mem => "/export",
            Fsal::Vfs => "/run/export",
        }
    }

    /// Path of the export for version 4.
    pub(crate) const PSEUDO: &'static str = "/export";

    /// Whether it can lock: its lock manager needs a status monitor.
    pub(crate) fn locks() -> bool {
        Command::new("rpc.statd").arg("--version").output().is_ok()
    }

    /// Starts a server and waits until it listens. `v4` are further parameters of its block NFSV4, such as
    /// `Delegations = true; Lease_Lifetime = 10;`.
    pub(crate) fn start_with(fsal: Fsal, v4: &str) -> Self {
        Self::start_secured(fsal, v4, "sys", "")
    }

    /// The same with these security flavours, and `blocks` of the configuration besides.
    pub(crate) fn start_secured(fsal: Fsal, v4: &str, flavors: &str, blocks: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        let (nfs, mount, nlm) = (23049, 23050, 23051);
        let (name, path) = match fsal {
            Fsal::Mem => ("MEM", Self::path(fsal)),
            Fsal::Vfs => ("VFS", Self::path(fsal)),
        };
        let config = format!(
            "NFS_CORE_PARAM {{ Protocols = 3, 4; Bind_addr = 127.0.0.1; NFS_Port = {nfs}; MNT_Port = {mount};
                NLM_Port = {nlm}; Enable_UDP = true; Enable_NLM = {}; Enable_RQUOTA = false; }}
            NFSV4 {{ Minor_Versions = 0, 1, 2; RecoveryBackend = fs; {v4} }}
            EXPORT {{ Export_Id = 77; Path = {path}; Pseudo = {}; Access_Type = RW; Squash = None; SecType = {flavors};
                Protocols = 3, 4; Transports = TCP, UDP; MaxRead = 1048576; MaxWrite = 1048576;
                FSAL {{ Name = {name}; }} }}
            LOG {{ Default_Log_Level = EVENT; }}
            {blocks}\n",
            Self::locks(),
            Self::PSEUDO,
        );
        std::fs::write(files.path().join("ganesha.conf"), config).unwrap();
        let child = spawn(&files);
        let mut ganesha = Self { child, nfs, mount, nlm, files };
        ganesha.wait();
        ganesha
    }

    /// [`Self::start_with`], without a grace period.
    pub(crate) fn start(fsal: Fsal) -> Self {
        Self::start_with(fsal, "Graceless = true;")
    }

    /// Kills the server and starts it again. What it kept in memory is lost.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.child = spawn(&self.files);
        self.wait();
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listens = |port| TcpStream::connect(local(port)).is_ok();
        while !listens(self.nfs) || !listens(self.mount) {
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("ganesha.nfsd ended: {status}\n{}", self.log());
            }
            assert!(Instant::now() < deadline, "ganesha.nfsd does not listen\n{}", self.log());
            sleep(Duration::from_millis(20));
        }
    }

    /// What it logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    fn log_file(&self) -> PathBuf {
        self.files.path().join("ganesha.log")
    }

    fn end(&mut self) {
        // Nothing can be done where it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(files: &tempfile::TempDir) -> Child {
    let file = |name| files.path().join(name);
    let mut command = Command::new("ganesha.nfsd");
    command.arg("-F").arg("-f").arg(file("ganesha.conf")).arg("-L").arg(file("ganesha.log"));
    command.arg("-p").arg(file("ganesha.pid")).stdin(Stdio::null());
    command.stdout(File::create(file("out")).unwrap()).spawn().unwrap()
}

impl Drop for Ganesha {
    fn drop(&mut self) {
        self.end();
        if std::thread::panicking() {
            eprintln!("{}", self.log());
        }
    }
}
