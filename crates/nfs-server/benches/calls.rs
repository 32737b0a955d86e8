//! Cost of the event loop alone: NULL calls, so many outstanding on so many connections. Prints the CPU time of the serving
//! threads per call.
//!
//! `cargo bench -p benchmaster-nfs-server --bench calls -- --outstanding 64 --connections 1 --seconds 2`; under
//! `strace -f -c` the system calls per call show too.

#![allow(clippy::print_stdout, reason = "a benchmark")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthSys, CallHeader, OpaqueAuth};
use benchmaster_nfs_proto::xdr::{Encoder, List, Opaque};
use benchmaster_nfs_server::{Server, ServerConfig};

/// Record mark, and the header of a successful reply.
const REPLY: usize = 4 + 24;

fn main() -> anyhow::Result<()> {
    // Run by `cargo test`, too, which has no time for it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let outstanding = option("--outstanding", 64);
    let connections = option("--connections", 1);
    let length = Duration::from_secs(option("--seconds", 2) as u64);
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::start(ServerConfig { listen, threads: 1, ..ServerConfig::default() })?;
    let batch = null_calls(outstanding);
    let mut streams = Vec::new();
    for _ in 0..connections {
        let stream = TcpStream::connect(server.address())?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let mut replies = vec![0; outstanding * REPLY];
    let mut round = |streams: &mut [TcpStream]| -> anyhow::Result<()> {
        for stream in &mut *streams {
            stream.write_all(&batch)?;
        }
        for stream in &mut *streams {
            stream.read_exact(&mut replies)?;
        }
        Ok(())
    };
    let warm = Instant::now();
    while warm.elapsed() < length / 4 {
        round(&mut streams)?;
    }
    let (before, began, mut calls) = (serving_nanos()?, Instant::now(), 0u64);
    while began.elapsed() < length {
        round(&mut streams)?;
        calls += (outstanding * connections) as u64;
    }
    let nanos = serving_nanos()? - before;
    println!(
        "{outstanding} outstanding on each of {connections} connections: {:.0} ns of CPU per call, {:.2} million calls/s",
        nanos as f64 / calls as f64,
        calls as f64 / began.elapsed().as_secs_f64() / 1e6,
    );
    Ok(server.stop()?)
}

fn null_calls(count: usize) -> Vec<u8> {
    let mut credential = Encoder::new();
    let gids = [4, 24, 27, 30];
    let (machine_name, gids) = (Opaque(b"client.example.org"), List::Items(&gids));
    credential.put(&AuthSys { stamp: 0, machine_name, uid: 1000, gid: 1000, gids });
    let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: Opaque(credential.buffer()) };
    let mut e = Encoder::new();
    for xid in 0..count as u32 {
        let mark = record::begin(&mut e);
        let (program, version, procedure, verf) = (100_003, 3, 0, OpaqueAuth::NONE);
        e.put(&CallHeader { xid, rpc_version: 2, program, version, procedure, cred, verf });
        record::end(&mut e, mark);
    }
    e.buffer().to_vec()
}

/// CPU time of the threads that serve connections.
fn serving_nanos() -> anyhow::Result<u64> {
    let mut sum = 0;
    for task in std::fs::read_dir("/proc/self/task")? {
        let path = task?.path();
        if std::fs::read_to_string(path.join("comm"))?.trim() == "nfs-0" {
            let schedstat = std::fs::read_to_string(path.join("schedstat"))?;
            sum += schedstat.split_whitespace().next().unwrap_or("0").parse::<u64>()?;
        }
    }
    Ok(sum)
}

fn option(name: &str, default: usize) -> usize {
    let mut args = std::env::args().skip_while(|arg| arg != name).skip(1);
    args.next().and_then(|value| value.parse().ok()).unwrap_or(default)
}
