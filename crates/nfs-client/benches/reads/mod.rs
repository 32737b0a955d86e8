//! READs of a file through a mount of the in-memory server, and what they cost.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_server::{Server, ServerConfig};

/// Nanoseconds per unit (a call, a KiB): of wall time, and of all threads' CPU.
pub(crate) type Cost = (f64, f64);

/// A server with a file, and a mount of it.
pub(crate) struct Nfs {
    reactor: Reactor,
    mount: Mount,
    _server: Server,
}

const FILE: u64 = 64 << 20;

impl Nfs {
    /// `url` makes the URL for the server's port.
    pub(crate) fn new(config: ServerConfig, url: impl FnOnce(u16) -> String) -> Self {
        let listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let server = Server::start(ServerConfig { listen, threads: 1, ..config }).unwrap();
        let options: MountOptions = url(server.address().port()).parse().unwrap();
        let reactor = Reactor::new().unwrap();
        let mount = reactor.block_on(async {
            let mount = Mount::connect(&reactor, &options, "bench").await.unwrap();
            let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
            let data = vec![7; 1 << 20];
            for at in (0..FILE).step_by(data.len()) {
                mount.write(&file, &data, at).await.unwrap();
            }
            mount.close(file).await.unwrap();
            mount
        });
        Self { reactor, mount: mount.unwrap(), _server: server }
    }

    /// Reads so that `depth` READs of `size` bytes are under way; the cost is that of each of `units`.
    pub(crate) fn read(&self, size: usize, depth: usize, calls: u64, units: f64) -> Cost {
        let each = |n: usize| async move {
            let file = self.mount.open(b"f", &OpenFlags::READ).await.unwrap();
            let mut buffer = vec![0; size];
            for call in (n as u64..calls).step_by(depth) {
                let offset = call * size as u64 % FILE;
                assert_eq!(self.mount.read(&file, &mut buffer, offset).await, Ok(size));
            }
            self.mount.close(file).await.unwrap();
        };
        measured(units, || {
            let mut tasks: Vec<_> = (0..depth).map(|n| Box::pin(each(n))).collect();
            self.reactor.run_all(&mut tasks).unwrap();
        })
    }
}

/// What each of `units` costs.
pub(crate) fn measured(units: f64, work: impl FnOnce()) -> Cost {
    let (cpu, began) = (cpu(), Instant::now());
    work();
    let (took, cpu) = (began.elapsed(), self::cpu() - cpu);
    (took.as_nanos() as f64 / units, cpu.as_nanos() as f64 / units)
}

/// Time that all threads of this process have computed.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The median of each way's rounds but the first, which warms up.
pub(crate) fn medians<const WAYS: usize>(costs: [Vec<Cost>; WAYS]) -> [Cost; WAYS] {
    costs.map(|rounds| {
        let median = |of: fn(&Cost) -> f64| {
            let mut values: Vec<f64> = rounds[1..].iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        (median(|cost| cost.0), median(|cost| cost.1))
    })
}
