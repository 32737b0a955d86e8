//! What `--durability` costs: requests per second of closed loops over loopback, by what survives, in turn; and what it costs to
//! keep what a loss of power restores (`volatile`).
//!
//! `cargo bench -p benchmaster-nfs-server --bench durability -- [--state DIR] [--seconds 1] [--rounds 5]`: DIR is on the disk that is
//! measured, by default that of the system's temporary files. The last lines are what the disk itself does with one writer.

#![allow(clippy::print_stdout, reason = "a bench prints what it measured")]
#![allow(dead_code, reason = "the load client serves several benches")]

mod load;

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use benchmaster_nfs_proto::v3::{
    CommitArgs, CreateArgs, CreateHow, DirOpArgs, Proc3, ReadArgs, Sattr3, StableHow, WriteArgs,
};
use benchmaster_nfs_proto::xdr::Bulk;
use benchmaster_nfs_server::{Durability, Server, ServerConfig};
use load::client::Client;
use load::{median, option};

/// What survives, and whether data that are not stable can be lost.
const LEVELS: [(Durability, bool); 4] = [
    (Durability::None, false),
    (Durability::None, true),
    (Durability::Process, false),
    (Durability::Power, false),
];
/// Bytes of a file: places are written again, so that the state stays small.
const FILE: u64 = 16 << 20;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Create,
    WriteStable,
    Read,
    WriteCommit,
}

impl Kind {
    const ALL: [(&str, Self); 4] = [
        ("CREATE", Self::Create),
        ("WRITE 4 KiB FILE_SYNC", Self::WriteStable),
        ("READ 4 KiB", Self::Read),
        ("WRITE 1 MiB + COMMIT", Self::WriteCommit),
    ];
}

fn main() -> Result<()> {
    // Run by `cargo test`, too, which has no time for it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return Ok(());
    }
    let time = Duration::from_secs_f64(option("--seconds").map_or(Ok(1.0), |text| text.parse())?);
    let rounds: usize = option("--rounds").map_or(Ok(5), |text| text.parse())?;
    let directory = option("--state").map_or_else(std::env::temp_dir, PathBuf::from);
    println!("| requests | clients | none 1/s | volatile | process | power |\n|---|---|---|---|---|---|");
    for (name, kind) in Kind::ALL {
        for clients in [1, 16] {
            let mut found = LEVELS.map(|_| Vec::new());
            for _ in 0..rounds {
                for (level, found) in LEVELS.into_iter().zip(&mut found) {
                    found.push(measure(&directory, level, kind, clients, time)?);
                }
            }
            let [none, volatile, process, power] = found.map(|found| median(&found));
            println!("| {name} | {clients} | {none:.0} | {volatile:.0} | {process:.0} | {power:.0} |");
        }
    }
    for bytes in [4 << 10, 1 << 20] {
        println!("write of {} KiB and fdatasync: {:.0} /s", bytes >> 10, disk(&directory, bytes, time)?);
    }
    Ok(())
}

/// Requests per second.
fn measure(
    directory: &Path,
    (durability, volatile): (Durability, bool),
    kind: Kind,
    clients: usize,
    time: Duration,
) -> Result<f64> {
    let place = tempfile::tempdir_in(directory)?;
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let state = Some(place.path().join("state"));
    let server =
        Server::start(ServerConfig { listen, state, durability, volatile, ..ServerConfig::default() })?;
    let address = server.address();
    let total: Result<f64> = std::thread::scope(|scope| {
        let client = |number| scope.spawn(move || client(address, kind, number, time));
        let threads: Vec<_> = (0..clients).map(client).collect();
        threads.into_iter().map(|thread| thread.join().ok().context("a client panicked")?).sum()
    });
    server.stop()?;
    total
}

fn client(address: SocketAddr, kind: Kind, number: usize, time: Duration) -> Result<f64> {
    let mut client = Client::connect(address)?;
    let root = client.mount("/export")?;
    let directory = client.mkdir3(&root, &format!("d{number}"))?;
    let file = client.create3(&directory, "file")?;
    client.fill3(&file, FILE)?;
    let (small, large) = (vec![0xa5; 4 << 10], vec![0xa5; 1 << 20]);
    let (mut done, began) = (0u64, Instant::now());
    while began.elapsed() < time {
        let write = |client: &mut Client, data: &[u8], stable| {
            let (offset, count) = (done * data.len() as u64 % FILE, data.len() as u32);
            let args = WriteArgs { file: file[..].into(), offset, count, stable, data: Bulk::Bytes(data) };
            client.v3(Proc3::WRITE, &args)
        };
        let result = match kind {
            Kind::Create => {
                let name = format!("{done:08}");
                let where_ = DirOpArgs { dir: directory[..].into(), name: name.as_bytes().into() };
                let how = CreateHow::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE });
                client.v3(Proc3::CREATE, &CreateArgs { where_, how })?
            }
            Kind::WriteStable => write(&mut client, &small, StableHow::FileSync)?,
            Kind::Read => {
                let args = ReadArgs { file: file[..].into(), offset: done * 4096 % FILE, count: 4096 };
                client.v3(Proc3::READ, &args)?
            }
            Kind::WriteCommit => {
                write(&mut client, &large, StableHow::Unstable)?;
                client.v3(Proc3::COMMIT, &CommitArgs { file: file[..].into(), offset: 0, count: 0 })?
            }
        };
        ensure!(result.starts_with(&[0; 4]), "{kind:?}: {:?}", result.get(..4));
        done += 1;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

/// Writes per second that the disk makes safe.
fn disk(directory: &Path, bytes: usize, time: Duration) -> Result<f64> {
    let place = tempfile::tempdir_in(directory)?;
    let file = File::create(place.path().join("file"))?;
    let (data, began, mut done) = (vec![1; bytes], Instant::now(), 0);
    while began.elapsed() < time {
        file.write_all_at(&data, done * bytes as u64)?;
        file.sync_data()?;
        done += 1;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}
