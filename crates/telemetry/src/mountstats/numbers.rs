//! Lines of numbers whose names are known by their places.

use crate::sampling::MetricInfo;
use crate::sampling::table::{metrics, names, rows};

/// All numbers of a mount that have a name and are not rare.
pub(crate) const METRICS: &[MetricInfo] = &metrics::<65>(include_str!("../samplers/metrics/mountstats.tsv"));
const TCP: [&str; 13] = names(METRICS, 52);
const UDP: [[&str; 1]; 10] = rows(include_str!("udp.txt"));
const RDMA: [[&str; 1]; 27] = rows(include_str!("rdma.txt"));

/// Numbers of a line. Older kernels write fewer than there are names; those of newer ones have no names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    names: &'static [&'static str],
    /// As written; some can be negative, and some were written as unsigned although they were.
    pub(super) values: Vec<i128>,
}

impl Numbers {
    /// Names of the events (`enum nfs_stat_eventcounters`); the last two came with pNFS.
    pub const EVENTS: &'static [&'static str] = &names::<27>(METRICS, 3);

    /// Names of the bytes (`enum nfs_stat_bytecounters`).
    pub const BYTES: &'static [&'static str] = &names::<8>(METRICS, 30);

    /// Names of the pages of FS-Cache.
    pub const CACHE: &'static [&'static str] = &names::<5>(METRICS, 38);

    /// Names of a transport's numbers (`print_stats` of `struct rpc_xprt_ops`); none for kinds that are not known.
    /// Connect and idle time are in seconds since the last one.
    pub fn transport(kind: &str) -> &'static [&'static str] {
        match kind {
            "tcp" => &TCP,
            "udp" => UDP.as_flattened(),
            // It has no port.
            "local" => &TCP[1..],
            "rdma" => RDMA.as_flattened(),
            _ => &[],
        }
    }

    /// Numbers for all names, for clients of which the kernel has no file.
    pub fn named_by(names: &'static [&'static str], value: impl Fn(&str) -> u64) -> Self {
        Self { names, values: names.iter().map(|name| value(name).into()).collect() }
    }

    pub(super) fn new(names: &'static [&'static str], values: Vec<i128>) -> Self {
        Self { names, values }
    }

    /// A number by name; `None` where this kernel does not write it.
    pub fn get(&self, name: &str) -> Option<i128> {
        let at = self.names.iter().position(|other| *other == name)?;
        self.values.get(at).copied()
    }

    /// All of them in order, as written.
    pub fn values(&self) -> &[i128] {
        &self.values
    }

    /// Those with names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, i128)> {
        self.names.iter().copied().zip(self.values.iter().copied())
    }

    /// Places of what is no count but a state now.
    pub(super) fn is_state(&self, at: usize) -> bool {
        matches!(self.names.get(at), Some(&("port" | "connect_time" | "idle_time" | "max_slots")))
    }
}
