//! The embedded server in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};

use anyhow::{Context, Result};
use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_server::{Server, ServerConfig};

use super::job::DATA_SIZE;
use super::peers::on_cpus;

/// A running server; ends with this value.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    pub(crate) port: u16,
}

impl Process {
    /// Starts it on these CPUs, with the file that clients read.
    pub(crate) fn start(cpus: Option<&str>) -> Result<Self> {
        let mut command = on_cpus(cpus, &std::env::current_exe()?);
        let mut child = command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().context("standard output of the server")?;
        let mut process = Self { child, lines: BufReader::new(out), port: 0 };
        process.port = process.line()?.parse()?;
        let url = format!("nfs://127.0.0.1:{}/export?version=3", process.port).parse()?;
        let reactor = Reactor::new()?;
        reactor.block_on(async {
            let mount = Mount::connect(&reactor, &url, "bench").await?;
            let file = mount.open(b"data", &OpenFlags::CREATE).await?;
            mount.truncate_file(&file, DATA_SIZE).await?;
            mount.close(file).await?;
            mount.unmount().await?;
            Ok::<_, anyhow::Error>(())
        })??;
        Ok(process)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        Ok(line.trim().to_owned())
    }

    /// RPC calls that it received so far.
    pub(crate) fn calls(&mut self) -> Result<u64> {
        self.child.stdin.as_mut().context("standard input of the server")?.write_all(b"\n")?;
        Ok(self.line()?.parse()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing can be done where it has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves until the input ends. Prints the port, and for every line of input how many calls came so far.
pub(crate) fn serve() -> Result<()> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = ServerConfig { listen, null_data: true, slots: 1024, ..ServerConfig::default() };
    let server = Server::start(config)?;
    println!("{}", server.address().port());
    for line in std::io::stdin().lines() {
        line?;
        println!("{}", server.report().transport.calls);
    }
    server.stop()?;
    Ok(())
}
