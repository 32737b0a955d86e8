//! Objects of the kernel's NFS and RPC code: `/proc/slabinfo`.

use std::time::Duration;

use super::{Files, Registered, Sink, Source};
use crate::sampling::text::{Malformed, lines, number, word, words};
use crate::sampling::{MetricInfo, metrics};

/// What it reads.
pub const METRICS: &[MetricInfo] = &metrics::<3>(include_str!("metrics/slab.tsv"));

pub(crate) const REGISTERED: Registered = Registered {
    name: "slab",
    about: "Objects of the kernel's NFS client, NFS server, lock manager and RPC, from `/proc/slabinfo` (root only). A kernel that \
            merges caches of equal size does not show all of them (`slab_nomerge`). Read at most every ten seconds: the kernel \
            counts all its caches for it, which takes one to two milliseconds.",
    metrics: METRICS,
    make: |config| {
        let file = Source::new(config.places.proc.join("slabinfo"), "this kernel has no slabinfo");
        let files = Files::new(&REGISTERED).not_more_often_than(Duration::from_secs(10));
        Box::new(files.and(file, |text, out| parse(text, out)))
    },
};

/// Parses the text of `/proc/slabinfo` (version 2), for the caches of NFS and RPC.
///
/// # Errors
/// The first line of theirs that is not in the kernel's format.
pub fn parse(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    // Hundreds of others come before and after.
    let ours = |line: &str| ["nfs", "rpc_", "nlm", "lockd"].iter().any(|start| line.starts_with(start));
    lines(text, 0, |line| if ours(line) { cache(line, out) } else { Some(()) })
}

/// `name active objects size per_slab pages_per_slab : tunables … : slabdata …`.
fn cache(line: &str, out: &mut impl Sink) -> Option<()> {
    let (name, rest) = word(line)?;
    let mut numbers = words(rest).map(number);
    let (active, objects, size) = (numbers.next()??, numbers.next()??, numbers.next()??);
    for (metric, value) in METRICS.iter().zip([active, objects, objects * size]) {
        out.put(metric.metric(), name, value);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::Values;

    #[test]
    fn caches_of_nfs_and_rpc_are_found_among_all() {
        let values = Values::of(|out| parse(include_str!("slab/linux-4.18.txt"), out));
        values.are_as_listed(&REGISTERED);
        assert_eq!(
            values.row("nfs_inode_cache", ["active", "objects", "bytes"]),
            [400.0, 480.0, 480.0 * 1088.0]
        );
        assert_eq!(values.0.len(), 5 * METRICS.len());
        let values = Values::of(|out| parse(include_str!("slab/linux-6.12.txt"), out));
        assert_eq!(values.get("active", "nfsd_file"), Some(100.0));
        assert_eq!(values.0.len(), 6 * METRICS.len());
        assert_eq!(parse("nfs_page 1 x 3\n", &mut Values::default()).unwrap_err().line, 1);
    }
}
