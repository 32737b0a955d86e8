//! What sampling costs, with everything on and 100 NFS mounts.
//!
//! `cargo bench -p benchmaster-telemetry --bench sampling [-- SECONDS]`
//!
//! Files of this host are read where it has them. Those of NFS (`mountstats` with 100 mounts, of which the last one is
//! watched; `nfsd` with 100 clients) and of ext4's journal are recorded ones, read by the same readers. They come from memory:
//! what the kernel takes to write them is not in the figures.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use benchmaster_telemetry::sampling::{Places, SamplerCost, Sampling, SamplingConfig, Watched};

const MOUNTS: usize = 100;
/// Both ends of each are read.
const CONNECTIONS: usize = 8;
const RECORDED: &str = include_str!("../src/mountstats/samples/linux-6.12.txt");

fn main() {
    // Cargo passes `--bench`.
    let seconds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(10);
    let root = tempfile::tempdir_in("/dev/shm").unwrap();
    let length = lay_out(root.path());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connections: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
    println!("{MOUNTS} mounts ({length} bytes of mountstats), {} TCP connections", connections.len());
    for interval in [1000, 100, 10].map(Duration::from_millis) {
        let config = SamplingConfig {
            interval,
            watch: Watched {
                mount: Some(format!("/mnt/{}", MOUNTS - 1).into()),
                server_ports: vec![address.port()],
                ..Watched::default()
            },
            places: Places {
                proc: root.path().join("proc"),
                mounts: Some(root.path().join("mounts")),
                ..Places::default()
            },
            ..SamplingConfig::default()
        };
        let sampling = Sampling::start(&config, vec![]);
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(Duration::from_millis(50));
        }
        let samples = sampling.stop();
        let points: usize = samples.series.iter().map(|series| series.points.len()).sum();
        println!(
            "\nevery {interval:?}: {:.3} % of one processor, {:.0} µs of CPU time per tick; {} ticks, {} late, {} series, {points} points",
            samples.cost.share().unwrap() * 100.0,
            samples.cost.cpu_ns as f64 / 1e3 / f64::from(samples.ticks),
            samples.ticks,
            samples.late,
            samples.series.len(),
        );
        let mut samplers: Vec<_> = samples.cost.samplers.iter().collect();
        samplers.sort_by_key(|(_, cost)| std::cmp::Reverse(cost.cpu_ns));
        let each = |(name, cost): &(&String, &SamplerCost)| {
            format!("{name} {:.1}", cost.cpu_ns as f64 / 1e3 / f64::from(cost.reads.max(1)))
        };
        println!("  µs per reading: {}", samplers.iter().map(each).collect::<Vec<_>>().join(", "));
        for problem in samples.problems {
            println!("  {}: {}", problem.sampler, problem.problem);
        }
    }
}

/// Makes a `/proc` of this host's files and recorded ones; returns the length of `mountstats`.
fn lay_out(root: &Path) -> usize {
    let proc = root.join("proc");
    for folder in ["net/rpc", "fs/nfsd/clients", "fs/jbd2/sda1-8"] {
        std::fs::create_dir_all(proc.join(folder)).unwrap();
    }
    let own =
        ["stat", "meminfo", "vmstat", "diskstats", "interrupts", "softirqs", "slabinfo", "pressure", "self"];
    let net = ["net/dev", "net/snmp", "net/netstat", "net/softnet_stat"];
    for name in own.into_iter().chain(net) {
        symlink(Path::new("/proc").join(name), proc.join(name)).unwrap();
    }
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("proc/net/rpc/nfsd", include_str!("../src/samplers/nfsd/linux-6.12.txt"));
    write("proc/fs/nfsd/threads", "64\n");
    write("proc/fs/nfsd/pool_stats", include_str!("../src/samplers/nfsd/linux-6.12-pool_stats.txt"));
    for client in 0..100 {
        let text = include_str!("../src/samplers/nfsd/linux-6.12-client.txt");
        write(&format!("proc/fs/nfsd/clients/{client}/info"), text);
    }
    write("proc/fs/jbd2/sda1-8/info", include_str!("../src/samplers/jbd2/linux-5.10.txt"));
    // The recorded mount a hundred times, each with a mount point of its own.
    let first = RECORDED.find("device srv.example").unwrap();
    let one = RECORDED[first..].split("\n\n").next().unwrap();
    let (mut stats, mut info) = (String::new(), String::from("1 0 254:0 / / rw - ext4 /dev/vda rw\n"));
    for mount in 0..MOUNTS {
        stats.push_str(&one.replace(" on /mnt/nfs with ", &format!(" on /mnt/{mount} with ")));
        stats.push_str("\n\n");
        writeln!(info, "{} 1 0:{mount} / /mnt/{mount} rw - nfs4 srv.example:/export rw", mount + 2).unwrap();
    }
    write("mounts/mountstats", &stats);
    write("mounts/mountinfo", &info);
    stats.len()
}
