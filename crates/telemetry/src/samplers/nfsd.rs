//! The kernel's NFS server: `/proc/net/rpc/nfsd`, and what stands in `/proc/fs/nfsd`.

use super::{Reading, Registered, SampleError, Sampler, SamplingConfig, Sink, Source};
use crate::sampling::folder::Folder;
use crate::sampling::{MetricInfo, metrics};

mod parse;

pub use parse::{Client, client, pools, rpc, threads};

/// What it reads; lines with other names are recorded with the places of their numbers, as `name.0`.
pub const METRICS: &[MetricInfo] = &metrics::<25>(include_str!("metrics/nfsd.tsv"));

pub(crate) const REGISTERED: Registered = Registered {
    name: "nfsd",
    about: "The kernel's NFS server on this host, from `/proc/net/rpc/nfsd`, and `threads`, `pool_stats` and `clients` in \
            `/proc/fs/nfsd`.",
    metrics: METRICS,
    make: |config| Box::new(Nfsd::new(config)),
};

/// Clients are looked at more seldom: there is a file for each. While they are the same, it takes twice as long each time until
/// their files are read again, up to the longest; new ones are noticed when the folder is listed, every second.
const CLIENTS_AGAIN_NS: i64 = 1_000_000_000;
const LONGEST_PAUSE_NS: i64 = 8 * CLIENTS_AGAIN_NS;

/// Reads the server's files.
#[derive(Debug)]
struct Nfsd {
    rpc: Source,
    threads: Source,
    pools: Source,
    clients: Folder,
    clients_again_ns: i64,
    clients_pause_ns: i64,
    /// What was found last: which clients, and their states.
    last: Option<(u32, [u32; 3])>,
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
            clients_pause_ns: CLIENTS_AGAIN_NS,
            last: None,
            name: String::new(),
        }
    }

    fn read_clients(&mut self, out: &mut Reading<'_>) {
        if self.clients.entries(out).is_none() {
            return;
        }
        let changes = self.clients.changes();
        let are_others = self.last.is_none_or(|(before, _)| before != changes);
        if out.time_ns() < self.clients_again_ns && !are_others {
            return;
        }
        let (mut all, mut confirmed, mut callback) = (0, 0, 0);
        for (_, file) in self.clients.entries(out).into_iter().flatten() {
            let Some(text) = file.text(out) else { continue };
            let client = client(text);
            all += 1;
            confirmed += u32::from(client.confirmed);
            callback += u32::from(client.callback_up);
        }
        let found = Some((changes, [all, confirmed, callback]));
        let pause = if found == self.last { self.clients_pause_ns * 2 } else { CLIENTS_AGAIN_NS };
        self.clients_pause_ns = pause.min(LONGEST_PAUSE_NS);
        self.clients_again_ns = out.time_ns().saturating_add(self.clients_pause_ns);
        self.last = found;
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
