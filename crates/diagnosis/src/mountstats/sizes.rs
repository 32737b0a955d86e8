//! Requests that are smaller than they could be.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Need, Remedy};
use crate::words::{share, size};

/// What Linux clients and servers use with each other.
const USUAL: u64 = 256 << 10;
/// Fewer calls say little.
const LEAST_CALLS: u64 = 200;
/// Share of the size that would be possible, in the mean.
const SMALL: f64 = 0.125;
/// Files read whole in one call are no reason.
const PER_OPEN: f64 = 8.0;

pub(crate) const OPTIONS: Detector = Detector { explanation: &LIMITED, detect: detect_options };

const LIMITED: Explanation = Explanation {
    id: "small-transfer-size",
    group: Group::Condition,
    title: "READs and WRITEs are limited to small sizes",
    mechanism: "`rsize` and `wsize` are the most bytes of one READ or WRITE: the lower of what the mount asks for and the server offers. Small ones mean more calls for the \
                same data, each with its costs on both sides. A Linux server offers less when it has little memory.",
    formula: "found when rsize or wsize < 256 KiB and 200 or more calls were of half that size or larger",
    source: "nfs(5), `rsize`, `wsize`; /proc/fs/nfsd/max_block_size of Linux servers",
};

fn detect_options(observed: &Observed) -> Verdict {
    let limited = |option: &'static str, operation: &'static str, received: bool| {
        let limit: u64 = observed.mount.option(option)?.parse().ok()?;
        let used = observed.operation(operation)?;
        let bytes = if received { used.bytes_received } else { used.bytes_sent };
        let mean = bytes as f64 / used.ops as f64;
        let counts = limit < USUAL && used.ops >= LEAST_CALLS && mean >= limit as f64 / 2.0;
        counts.then_some((option, operation, limit, used.ops, mean))
    };
    let found: Vec<_> =
        [limited("rsize", "READ", true), limited("wsize", "WRITE", false)].into_iter().flatten().collect();
    if found.is_empty() {
        return Verdict::Clear;
    }
    let words: Vec<String> = found
        .iter()
        .map(|(option, operation, limit, ops, _)| {
            format!("{ops} {operation}s of at most {} (`{option}`)", size(*limit as f64))
        })
        .collect();
    let mut evidence = Vec::new();
    for (option, operation, limit, _, mean) in &found {
        evidence.push(Evidence::bytes(*option, *limit as f64));
        evidence.push(Evidence::bytes(format!("mean bytes of a {operation}, with headers"), *mean));
    }
    Verdict::Found(Finding {
        id: LIMITED.id,
        what: format!("Data move in small pieces: {}.", words.join(" and ")),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence,
        confidence: Confidence::Likely,
        cost: None,
        also: Vec::new(),
        remedy: Remedy::new("Mount without these options; if they stay small, the server limits them.")
            .by(Need::OwnClient, "--set target.rsize=1MiB --set target.wsize=1MiB")
            .by(Need::KernelClient, "mount -o rsize=1048576,wsize=1048576; cat /proc/fs/nfsd/max_block_size   # the second on a Linux server")
            .confirmed_by("the same workload with `rsize` and `wsize` as factors"),
    })
}

pub(crate) const SMALL_READS: Detector = Detector { explanation: &SMALL_READ, detect: detect_small_reads };

const SMALL_READ: Explanation = Explanation {
    id: "small-reads",
    group: Group::Condition,
    title: "READs are much smaller than they may be",
    mechanism: "Sequential reading through the page cache asks for whole `rsize` blocks by readahead. READs of a few pages mean random access, a readahead that is \
                switched off or too small (128 KiB on kernels from 5.4 on, whatever `rsize` is), or direct I/O with small buffers.",
    formula: "found when the mean READ ≤ rsize / 8, with 200 or more, and 8 or more for each file opened",
    source: "READ in mountstats; nfs(5); `read_ahead_kb` of the mount's bdi; paper 000, section 3",
};

fn detect_small_reads(observed: &Observed) -> Verdict {
    let limit = observed.mount.option("rsize").and_then(|text| text.parse::<u64>().ok());
    let Some(limit) = limit else {
        return Verdict::Unknown("the mount's options do not have `rsize`".into());
    };
    let Some(read) = observed.operation("READ") else { return Verdict::Clear };
    let Some(bytes) = observed.bytes("server_read") else {
        return Verdict::Unknown("this kernel's bytes line is too short".into());
    };
    let mean = bytes as f64 / read.ops as f64;
    let opens = observed.event("vfs_open").unwrap_or(0).max(1) as f64;
    if read.ops < LEAST_CALLS || mean > limit as f64 * SMALL || (read.ops as f64) < PER_OPEN * opens {
        return Verdict::Clear;
    }
    let direct = observed.bytes("direct_read").unwrap_or(0);
    Verdict::Found(Finding {
        id: SMALL_READ.id,
        what: format!(
            "READs have {} on average, and could have {}: {} of them {}.",
            size(mean),
            size(limit as f64),
            read.ops,
            observed.period()
        ),
        at: None,
        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::bytes("mean bytes of a READ (server_read / ops)", mean),
            Evidence::bytes("`rsize`", limit as f64),
            Evidence::bytes("read past the cache (direct_read)", direct as f64),
        ],
        confidence: Confidence::Possible,
        cost: Some(Cost {
            share: share(read.execute_ms as f64 / 1e3, observed.call_seconds()),
            of: CostOf::CallTime,
            estimate: "execute time of READ: at most all of it".into(),
        }),
        also: Vec::new(),
        remedy: Remedy::new("If files are read from start to end, make the readahead larger.")
            .by(
                Need::KernelClient,
                "echo 15360 > /sys/class/bdi/$(mountpoint -d /MOUNT)/read_ahead_kb   # 15 · rsize",
            )
            .confirmed_by("the same workload with another `read_ahead_kb`"),
    })
}
