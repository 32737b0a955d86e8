//! The clients that are measured, and iperf3.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::job::{Job, Operation, Outcome};

/// A client that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Client {
    /// Our client under the executor.
    Recorded,
    /// Our client's mount.
    Mount,
    /// Our client's protocol.
    Protocol,
    /// A program that does the least.
    Null,
    /// Debian's libnfs.
    Libnfs(PathBuf),
    /// The crate `nfs-rs`.
    NfsRs(PathBuf),
}

impl Client {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Recorded => "ours, executor and recording",
            Self::Mount => "ours, mount",
            Self::Protocol => "ours, protocol",
            Self::Null => "null",
            Self::Libnfs(_) => "libnfs",
            Self::NfsRs(_) => "nfs-rs",
        }
    }

    pub(crate) fn does(&self, operation: Operation, version: &str) -> bool {
        match self {
            // libnfs 4.0 has no sessions.
            Self::Libnfs(_) => matches!(version, "3" | "4.0"),
            Self::Null => (operation, version) == (Operation::Read, "3"),
            _ => true,
        }
    }

    /// Has it do the job, on these CPUs.
    pub(crate) fn run(&self, job: &Job, cpus: Option<&str>) -> Result<Outcome> {
        let ours = std::env::current_exe()?;
        let (program, first) = match self {
            Self::Recorded => (&ours, Some("recorded")),
            Self::Mount => (&ours, Some("mount")),
            Self::Protocol => (&ours, Some("protocol")),
            Self::Null => (&ours, Some("null")),
            Self::Libnfs(program) | Self::NfsRs(program) => (program, None),
        };
        // A client that hangs must not hold up the others for ever.
        let limit = (job.seconds * 2.0 + 60.0).to_string();
        let mut command = on_cpus(cpus, Path::new("timeout"));
        command.arg(limit).arg(program).args(first).args(job.arguments());
        let output = command.stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}: {}", output.status, said.trim());
        String::from_utf8_lossy(&output.stdout).trim().parse()
    }
}

/// A command that is run on these CPUs alone.
pub(crate) fn on_cpus(cpus: Option<&str>, program: &Path) -> Command {
    match cpus {
        Some(cpus) => {
            let mut command = Command::new("taskset");
            command.arg("--cpu-list").arg(cpus).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Where the sources of the peers are.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/nfs_clients/peers")
}

/// Builds the client on libnfs.
pub(crate) fn libnfs() -> Result<Client> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peer-libnfs");
    let mut compile = Command::new("cc");
    compile.args(["-O2", "-o"]).arg(&program).arg(sources().join("libnfs.c")).arg("-lnfs");
    let output = compile.output().context("cc")?;
    if !output.status.success() {
        bail!("cc (package libnfs-dev): {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(Client::Libnfs(program))
}

/// Builds the client on the crate nfs-rs.
pub(crate) fn nfs_rs() -> Result<Client> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peer-nfs-rs");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--quiet", "--locked", "--manifest-path"]);
    cargo.arg(sources().join("nfs-rs/Cargo.toml")).arg("--target-dir").arg(&directory);
    let output = cargo.output().context("cargo")?;
    if !output.status.success() {
        bail!("cargo build: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(Client::NfsRs(directory.join("release/peer-nfs-rs")))
}

/// What iperf3 moves over so many connections, in bytes per second, and per CPU second of the side that is the client of
/// `job`.
pub(crate) fn iperf3(job: &Job, cpus: [Option<&str>; 2]) -> Result<[f64; 2]> {
    let [server_cpus, client_cpus] = cpus;
    let mut server = on_cpus(server_cpus, Path::new("iperf3"))
        .args(["--server", "--one-off", "--bind", "127.0.0.1", "--port", "25202"])
        .stdout(Stdio::null())
        .spawn()
        .context("iperf3")?;
    sleep(Duration::from_millis(300));
    let seconds = job.seconds.ceil().max(1.0);
    let mut client = on_cpus(client_cpus, Path::new("iperf3"));
    client.args(["--client", "127.0.0.1", "--port", "25202", "--length", "1M", "--json", "--parallel"]);
    client.arg(job.connections.to_string()).arg("--time").arg(seconds.to_string());
    if job.operation == Operation::Read {
        client.arg("--reverse");
    }
    let output = client.output();
    let _ = server.kill();
    server.wait()?;
    let json: serde_json::Value = serde_json::from_slice(&output?.stdout)?;
    let number =
        |path: &str| json.pointer(path).and_then(serde_json::Value::as_f64).with_context(|| path.to_owned());
    let rate = number("/end/sum_received/bits_per_second")? / 8.0;
    Ok([rate, rate / (number("/end/cpu_utilization_percent/host_total")? / 100.0)])
}
