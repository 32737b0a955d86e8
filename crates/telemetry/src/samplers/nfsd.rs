//! The kernel's NFS server: `/proc/net/rpc/nfsd`, and what stands in `/proc/fs/nfsd`.

use super::{Reading, Registered, SampleError, Sampler, SamplingConfig, Sink, Source};
use crate::sampling::MetricInfo;
use crate::sampling::folder::Folder;

mod parse;
mod procedures;

pub use parse::{Client, client, pools, rpc, threads};

const PROCEDURE: &str = "version and procedure, as in `v3 READ`";
const POOL: &str = "number of the thread pool";

/// What it reads; lines with other names are recorded with the places of their numbers, as `name.0`.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo::counter("reply_cache_hits", "1", "", "retransmissions answered from the reply cache"),
    MetricInfo::counter(
        "reply_cache_misses",
        "1",
        "",
        "requests whose replies were put into the reply cache",
    ),
    MetricInfo::counter("reply_cache_nocache", "1", "", "requests that need no reply cache"),
    MetricInfo::counter("stale_handles", "1", "", "stale file handles"),
    MetricInfo::counter("read_bytes", "B", "", "bytes read for clients"),
    MetricInfo::counter("written_bytes", "B", "", "bytes written for clients"),
    MetricInfo::gauge("threads", "1", "", "server threads"),
    MetricInfo::counter("packets", "1", "", "requests of all transports"),
    MetricInfo::counter("udp_packets", "1", "", "requests over UDP"),
    MetricInfo::counter("tcp_packets", "1", "", "requests over TCP"),
    MetricInfo::counter("tcp_connections", "1", "", "TCP connections accepted"),
    MetricInfo::counter("rpc_calls", "1", "", "RPCs"),
    MetricInfo::counter("rpc_bad_calls", "1", "", "RPCs rejected for any of the reasons below"),
    MetricInfo::counter("rpc_bad_format", "1", "", "malformed RPCs"),
    MetricInfo::counter("rpc_bad_auth", "1", "", "RPCs that failed authentication"),
    MetricInfo::counter("rpc_bad_client", "1", "", "RPCs of clients without access to any export"),
    MetricInfo::counter("calls", "1", PROCEDURE, "calls of each procedure; of version 4 there are only two"),
    MetricInfo::counter("operations", "1", "operation of version 4", "operations in compounds of version 4"),
    MetricInfo::counter("packets-arrived", "1", POOL, "requests received for the pool"),
    MetricInfo::counter("sockets-enqueued", "1", POOL, "requests that had to wait for a thread"),
    MetricInfo::counter("threads-woken", "1", POOL, "requests for which a thread was idle"),
    MetricInfo::counter("threads-timedout", "1", POOL, "idle thread timeouts"),
    MetricInfo::gauge("clients", "1", "", "known clients of version 4; read every second"),
    MetricInfo::gauge("clients_confirmed", "1", "", "confirmed ones"),
    MetricInfo::gauge("clients_callback_up", "1", "", "those with a working back channel"),
];

pub(crate) const REGISTERED: Registered = Registered {
    name: "nfsd",
    about: "The kernel's NFS server on this host, from `/proc/net/rpc/nfsd`, and `threads`, `pool_stats` and `clients` in \
            `/proc/fs/nfsd`.",
    metrics: METRICS,
    make: |config| Box::new(Nfsd::new(config)),
};

/// Clients are looked at more seldom: there is a file for each.
const CLIENTS_AGAIN_NS: i64 = 1_000_000_000;

/// Reads the server's files.
#[derive(Debug)]
struct Nfsd {
    rpc: Source,
    threads: Source,
    pools: Source,
    clients: Folder,
    clients_again_ns: i64,
    name: String,
}

impl Nfsd {
    fn new(config: &SamplingConfig) -> Self {
        let proc = &config.places.proc;
        let missing = "the kernel's NFS server does not run here";
        Self {
            rpc: Source::new(proc.join("net/rpc/nfsd"), missing),
            // Where the server does not run, one report is enough.
            threads: Source::optional(proc.join("fs/nfsd/threads")).reopened(),
            pools: Source::optional(proc.join("fs/nfsd/pool_stats")).reopened(),
            // Linux 5.3 and later.
            clients: Folder::new(proc.join("fs/nfsd/clients"), "info", None),
            clients_again_ns: i64::MIN,
            name: String::new(),
        }
    }

    fn read_clients(&mut self, out: &mut Reading<'_>) {
        if out.time_ns() < self.clients_again_ns {
            return;
        }
        self.clients_again_ns = out.time_ns().saturating_add(CLIENTS_AGAIN_NS);
        let Some(clients) = self.clients.entries(out) else { return };
        let (mut all, mut confirmed, mut callback) = (0, 0, 0);
        for (_, file) in clients {
            let Some(text) = file.text(out) else { continue };
            let client = client(text);
            all += 1;
            confirmed += u32::from(client.confirmed);
            callback += u32::from(client.callback_up);
        }
        let names = ["clients", "clients_confirmed", "clients_callback_up"];
        for (name, value) in names.into_iter().zip([all, confirmed, callback]) {
            out.put(parse::listed(name), "", value.into());
        }
    }
}

impl Sampler for Nfsd {
    fn name(&self) -> &'static str {
        REGISTERED.name
    }

    fn metrics(&self) -> &'static [MetricInfo] {
        METRICS
    }

    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        let name = &mut self.name;
        // The number of threads is more exact in its own file: the first value of a reading counts.
        let results = [
            self.threads.text(out).and_then(|text| threads(text, out).err()).map(|f| self.threads.fault(f)),
            self.pools.text(out).and_then(|text| pools(text, out).err()).map(|fault| self.pools.fault(fault)),
            self.rpc.text(out).and_then(|text| rpc(text, name, out).err()).map(|fault| self.rpc.fault(fault)),
        ];
        for problem in results.iter().flatten() {
            out.problem(problem);
        }
        self.read_clients(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
