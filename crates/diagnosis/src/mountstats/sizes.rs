//! Requests that are smaller than they could be.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// What Linux clients and servers use with each other.
const USUAL: u64 = 256 << 10;
/// Fewer calls say little.
const LEAST_CALLS: u64 = 200;
/// Share of the size that would be possible, in the mean.
const SMALL: f64 = 0.125;
/// Files read whole in one call are no reason.
const PER_OPEN: f64 = 8.0;

pub(crate) const OPTIONS: Detector = Detector { id: "small-transfer-size", detect: detect_options };

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
    Verdict::Found(
        Finding::new(Confidence::Likely, format!("Data move in small pieces: {}.", words.join(" and ")))
            .with(evidence),
    )
}

pub(crate) const SMALL_READS: Detector = Detector { id: "small-reads", detect: detect_small_reads };

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
    Verdict::Found(
        Finding::new(
            Confidence::Possible,
            format!(
                "READs have {} on average, and could have {}: {} of them {}.",
                size(mean),
                size(limit as f64),
                read.ops,
                observed.period()
            ),
        )
        .with([
            Evidence::bytes("mean bytes of a READ (server_read / ops)", mean),
            Evidence::bytes("`rsize`", limit as f64),
            Evidence::bytes("read past the cache (direct_read)", direct as f64),
        ])
        .costs(share(read.execute_ms as f64 / 1e3, observed.call_seconds())),
    )
}
