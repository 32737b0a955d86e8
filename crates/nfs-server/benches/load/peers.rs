//! The servers that are measured, each a process of its own, and iperf3.
//!
//! Senders of data, ours and iperf3's, have the same CPUs, and receivers the last one: between two CPUs a byte costs twice as
//! much as within one, and the kernel's choice differs from run to run.
//!
//! nfs-ganesha cannot do without an rpcbind, so all runs in namespaces of its own: network, mounts, processes. What is left
//! behind there goes away with them.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio, exit};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use benchmaster_nfs_server::{Server, ServerConfig};

use super::calls::Target;
use super::option;

/// Set inside the namespaces.
const INSIDE: &str = "LOAD_IN_NAMESPACE";

/// An address besides those of loopback makes resolvers accept 127.0.0.1.
const NAMESPACE: &str = r#"
set -e
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /var/lib/nfs
mkdir -p /run/export /run/rpcbind /run/ganesha /var/lib/nfs/ganesha
ip link set lo up
ip addr add 198.51.100.1/32 dev lo
rpcbind
exec taskset --cpu-list "$CLIENT_CPU" "$0" "$@"
"#;

/// Runs this program again in namespaces of its own, unless it is there already; does not return where it did.
pub(crate) fn enter_namespace() -> Result<()> {
    if std::env::var_os(INSIDE).is_some() {
        return Ok(());
    }
    let mut unshare = Command::new("unshare");
    unshare.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    if !rustix::process::geteuid().is_root() {
        unshare.arg("--map-root-user");
    }
    unshare.args(["sh", "-c", NAMESPACE]).arg(std::env::current_exe()?).args(std::env::args_os().skip(1));
    let status = unshare.env(INSIDE, "1").env("CLIENT_CPU", cpus()?.1).status().context("unshare")?;
    exit(status.code().unwrap_or(1));
}

/// CPUs of servers, and that of clients; the same one if there is no other.
fn cpus() -> Result<(String, String)> {
    // Not what this process may use: it has been confined itself.
    let lines = std::fs::read_to_string("/proc/stat")?.lines().filter(|line| line.starts_with("cpu")).count();
    // The first of these lines is the sum.
    let last = lines.saturating_sub(2);
    Ok((format!("0-{}", last.saturating_sub(1)), last.to_string()))
}

/// A command that runs on the CPUs of servers.
fn on_server_cpus(program: impl AsRef<std::ffi::OsStr>) -> Result<Command> {
    let mut command = Command::new("taskset");
    command.arg("--cpu-list").arg(cpus()?.0).arg(program);
    Ok(command)
}

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// This crate's server.
    Ours,
    /// A server that does nothing.
    Null,
    /// nfs-ganesha with its back end in memory.
    GaneshaMem,
    /// nfs-ganesha on a directory of a tmpfs.
    GaneshaVfs,
}

impl Peer {
    pub(crate) const ALL: [Self; 3] = [Self::Ours, Self::GaneshaMem, Self::GaneshaVfs];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "benchmaster",
            Self::Null => "null",
            Self::GaneshaMem => "ganesha MEM",
            Self::GaneshaVfs => "ganesha VFS",
        }
    }
}

/// A running server; ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    pub(crate) target: Target,
    /// Keeps the configuration.
    _files: tempfile::TempDir,
}

impl Process {
    /// Starts a server and waits until it listens.
    pub(crate) fn start(peer: Peer) -> Result<Self> {
        let files = tempfile::tempdir()?;
        let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (child, target) = match peer {
            Peer::Ours => {
                let target = Target {
                    nfs: local(22049),
                    mount: local(22049),
                    export: "/export".into(),
                    path: "/export".into(),
                };
                let mut command = match option("--server") {
                    Some(command) => {
                        let mut shell = on_server_cpus("sh")?;
                        shell.args(["-c", &format!("exec {}", command.replace("{port}", "22049"))]);
                        shell
                    }
                    None => {
                        let mut serve = on_server_cpus(std::env::current_exe()?)?;
                        serve.args(["serve", "22049"]);
                        serve
                    }
                };
                let out = File::create(files.path().join("out"))?;
                (command.stdin(Stdio::piped()).stdout(out).spawn()?, target)
            }
            Peer::Null => {
                let address = local(22050);
                let target =
                    Target { nfs: address, mount: address, export: String::new(), path: String::new() };
                let mut serve = on_server_cpus(std::env::current_exe()?)?;
                (serve.args(["null", "22050"]).stdin(Stdio::piped()).spawn()?, target)
            }
            Peer::GaneshaMem => ganesha(files.path(), "MEM", "/export", local(23049), local(23050))?,
            Peer::GaneshaVfs => ganesha(files.path(), "VFS", "/run/export", local(24049), local(24050))?,
        };
        let mut process = Self { child, target, _files: files };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(process.target.nfs).is_err()
            || TcpStream::connect(process.target.mount).is_err()
        {
            if let Some(status) = process.child.try_wait()? {
                bail!("{} ended: {status}", peer.name());
            }
            ensure!(Instant::now() < deadline, "{} does not listen", peer.name());
            sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing can be done where it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ganesha(
    files: &Path,
    fsal: &str,
    path: &str,
    nfs: SocketAddr,
    mount: SocketAddr,
) -> Result<(Child, Target)> {
    let config = format!(
        "NFS_CORE_PARAM {{ Protocols = 3, 4; Bind_addr = 127.0.0.1; NFS_Port = {}; MNT_Port = {}; Enable_UDP = false;
            Enable_NLM = false; Enable_RQUOTA = false; }}
        NFSV4 {{ Graceless = true; Minor_Versions = 0, 1, 2; RecoveryBackend = fs; Delegations = false; }}
        EXPORT {{ Export_Id = 77; Path = {path}; Pseudo = /export; Access_Type = RW; Squash = None; SecType = sys;
            Protocols = 3, 4; Transports = TCP; MaxRead = 1048576; MaxWrite = 1048576; FSAL {{ Name = {fsal}; }} }}
        LOG {{ Default_Log_Level = CRIT; }}\n",
        nfs.port(),
        mount.port(),
    );
    let (file, log, pid) = (files.join("ganesha.conf"), files.join("ganesha.log"), files.join("ganesha.pid"));
    std::fs::write(&file, config)?;
    let mut command = on_server_cpus("ganesha.nfsd")?;
    command.arg("-F").arg("-f").arg(file).arg("-L").arg(&log).arg("-p").arg(pid);
    let child = command
        .stdout(File::create(files.join("out"))?)
        .spawn()
        .context("ganesha.nfsd (package nfs-ganesha)")?;
    Ok((child, Target { nfs, mount, export: path.into(), path: "/export".into() }))
}

/// What iperf3 finds: bytes per second, and CPU time of the sender per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    pub(crate) bytes_per_second: f64,
    pub(crate) sender_cores: f64,
}

/// Sends for some seconds with iperf3 over one connection, in pieces of 1 MiB.
pub(crate) fn iperf3(seconds: u64) -> Result<Stream> {
    let mut server = Command::new("iperf3")
        .args(["--server", "--one-off", "--bind", "127.0.0.1", "--port", "25201"])
        .stdout(Stdio::null())
        .spawn()
        .context("iperf3")?;
    sleep(Duration::from_millis(300));
    let args = ["--client", "127.0.0.1", "--port", "25201", "--length", "1M", "--json", "--time"];
    let output = on_server_cpus("iperf3")?.args(args).arg(seconds.to_string()).output();
    let _ = server.kill();
    server.wait()?;
    let json: serde_json::Value = serde_json::from_slice(&output?.stdout)?;
    let number =
        |path: &str| json.pointer(path).and_then(serde_json::Value::as_f64).with_context(|| path.to_owned());
    Ok(Stream {
        bytes_per_second: number("/end/sum_sent/bits_per_second")? / 8.0,
        sender_cores: number("/end/cpu_utilization_percent/host_total")? / 100.0,
    })
}

/// Whether this program was started to be a server, and has been, until its input ended: `PROGRAM serve PORT`, or `null` for
/// one that does nothing.
pub(crate) fn served() -> Result<bool> {
    let mut args = std::env::args().skip(1);
    let kind = args.next();
    if !matches!(kind.as_deref(), Some("serve" | "null")) {
        return Ok(false);
    }
    let port = args.next().context("serve PORT")?.parse()?;
    if kind.as_deref() == Some("null") {
        super::null::serve(port)?;
        return Ok(true);
    }
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    // What is measured here is not how much clients may hold.
    let server = Server::start(ServerConfig { listen, memory: 1 << 42, ..ServerConfig::default() })?;
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    server.stop()?;
    Ok(true)
}
