//! Checks of what was read and written: wrong data, failed operations, data that never reached the server.

use std::collections::BTreeMap;

use benchmaster_record::environment::TargetEnvironment;
use benchmaster_record::model::{Claim, OpenFlag, OperationKind, Step, Workload};
use benchmaster_record::phase::Phase;
use benchmaster_record::results::{Check, CheckKind, Evidence, Severity};

use super::rule::{Consequence, Follows, Rule, Subject, all_of_it, always, any, failed, when};
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Need, Plot, Remedy};
use crate::words::{percent, size};

/// Runs that failed by it are compared by [`crate::results::doubts::failed`].
pub(crate) static CORRUPTION: Rule = Rule {
    kind: CheckKind::Corruption,
    explanation: Explanation {
        id: "corruption",
        group: Group::Doubt,
        title: "Wrong data were read",
        mechanism: "Data written with a known pattern were read back different. The file system, its client or the network has lost or exchanged data.",
        formula: "found when verification (`verify = true`) reads a block that differs from what was written; all of the run is in doubt",
        source: "the check `corruption`; docs/metrics.md, \"Validity checks\"",
    },
    check: |s| {
        let message = wrong_data(s.recording.corruption.as_ref()?);
        failed(s, CheckKind::Corruption, Severity::Invalid, message, [])
    },
    remedy: |_| keep_and_read_again(),
    finding: Follows::Comparison,
};

pub(crate) fn keep_and_read_again() -> Remedy {
    Remedy::new("Keep the files, and read the same blocks from another client: this shows whether the data are wrong on the server or were changed on the way.")
        .by(Need::Anywhere, "benchmaster run STUDY.toml -o AGAIN   # with `verify = true` in the workload")
        .confirmed_by("the same study with `sec=krb5i`, which protects data on the wire")
}

/// The sentence about data that a verification found wrong.
pub(crate) fn wrong_data(first: &str) -> String {
    format!("Wrong data were read: {}.", first.trim_end_matches('.'))
}

pub(crate) static ERRORS: Rule = Rule {
    kind: CheckKind::Errors,
    explanation: Explanation {
        id: "errors",
        group: Group::Doubt,
        title: "Operations of the workload failed",
        mechanism: "An operation that fails is often faster, or much slower, than one that succeeds, and its work is missing: rates and latencies of such a run \
                    are those of another workload.",
        formula: "found when one or more operations failed, before, during or after the measured phase; all of the run is in doubt",
        source: "the check `errors`; docs/metrics.md, \"Validity checks\"",
    },
    check: errors,
    remedy: |_| {
        Remedy::new("The text of the first error names the file and the reason. Errors that belong to the workload (a name that may be missing) can be allowed by its flow.")
            .by(Need::Anywhere, "benchmaster analyze DIR; dmesg -T | grep -i nfs")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: always,
        worth: any,
        numbers: &[
            ("measured", "operations that failed in the measured phase"),
            ("outside", "operations that failed before and after"),
        ],
        cost: all_of_it,
        plot: None,
    }),
};

fn errors(s: Subject<'_>) -> Option<Check> {
    let measured: u64 = s.recording.series.iter().map(|series| series.total.errors).sum();
    let around: u64 = s.recording.phases.iter().filter(|p| p.phase != Phase::Measure).map(|p| p.errors).sum();
    if measured + around == 0 {
        return None;
    }
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in s.recording.series.iter().flat_map(|series| &series.errors) {
        *names.entry(name).or_default() += count;
    }
    let mut kinds: Vec<String> = names.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    if around > 0 {
        kinds.push(format!("{around} outside the measured phase"));
    }
    let first = s.recording.error_details.first();
    let first = first.map_or_else(String::new, |first| format!("; first: {}", first.trim_end_matches('.')));
    let message = format!("{} operations failed ({}){first}.", measured + around, kinds.join(", "));
    let evidence =
        [Evidence::number("measured", measured as f64), Evidence::number("outside", around as f64)];
    failed(s, CheckKind::Errors, Severity::Invalid, message, evidence)
}

pub(crate) static FILE_SYSTEM_FULL: Rule = Rule {
    kind: CheckKind::FileSystemFull,
    explanation: Explanation {
        id: "file-system-full",
        group: Group::Doubt,
        title: "The file system was full, or nearly",
        mechanism: "With little space left a file system searches longer for free blocks and fragments the data, so that writing is slower than normal.",
        formula: "found when operations were refused for lack of space (all of the run is in doubt), or less than 1 % of the file system was free at the end",
        source: "the check `file-system-full`; docs/metrics.md, \"Validity checks\"",
    },
    check: file_system_full,
    remedy: |_| {
        Remedy::new("Free some space, or let the workload write less (`file_size`, `bytes`).")
            .by(Need::Anywhere, "df -h TARGET; df -i TARGET")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: always,
        worth: any,
        numbers: &[
            ("refused", "operations refused for lack of space"),
            ("free", "bytes free at the end"),
            ("total", "bytes of the file system"),
        ],
        cost: all_of_it,
        plot: None,
    }),
};

fn file_system_full(s: Subject<'_>) -> Option<Check> {
    const KIND: CheckKind = CheckKind::FileSystemFull;
    let full = |name: &str| name == "ENOSPC" || name == "EDQUOT";
    let errors = s.recording.series.iter().flat_map(|series| &series.errors);
    let refused: u64 = errors.filter(|(name, _)| full(name)).map(|(_, count)| count).sum();
    if refused > 0 {
        let message =
            format!("The file system was full: {refused} operations were refused for lack of space.");
        return failed(s, KIND, Severity::Invalid, message, [Evidence::number("refused", refused as f64)]);
    }
    let total = s.environment.target.as_ref()?.total_bytes as f64;
    let free = s.recording.host.free_after? as f64;
    if total == 0.0 || free >= total * 0.01 {
        return None;
    }
    let message = format!(
        "The file system is nearly full ({} of {} free): allocation may be slow.",
        size(free),
        size(total)
    );
    failed(
        s,
        KIND,
        Severity::Warning,
        message,
        [Evidence::bytes("free", free), Evidence::bytes("total", total)],
    )
}

pub(crate) static CACHED_READS: Rule = Rule {
    kind: CheckKind::CachedReads,
    explanation: crate::mountstats::CACHED_READS,
    check: |s| {
        if s.workload.claims == Claim::Cache {
            return None;
        }
        // Where reads over the wire were counted no guess is needed.
        match s.recording.rpc.as_ref().and_then(|rpc| rpc.phase(Phase::Measure)) {
            Some(phase) => {
                let reads = phase.rows.iter().filter(|row| row.operation.starts_with("READ"));
                never_on_the_wire(s, reads.map(|row| row.bytes_received).sum())
            }
            None => may_be_cached(s),
        }
    },
    remedy: |_| {
        Remedy::new("To measure the server, read more than fits into memory, bypass the cache, or empty it before each run. To measure the cache, declare it with \
                     `claims`: the result is then no longer in doubt.")
            .by(Need::Anywhere, "direct = true   # or a larger `file_size`, [run] cache = \"remount\", `cache=off` in an nfs:// URL, or claims = \"cache\"")
            .confirmed_by("the same study with `direct = true`; studies/paper002-file-size.toml shows where the cache ends")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| when(measured.bytes(OperationKind::Read) > 0),
        worth: any,
        numbers: &[
            ("read", "bytes read by the workload"),
            ("cached_share", "share of them that a cache answered"),
            ("data_set", "bytes of the data set"),
            ("memory", "memory of the host"),
            ("passes", "times that the data set was read"),
        ],
        cost: |failed| {
            let cached = failed.number("cached_share")?;
            Some((
                in_doubt(cached, failed.number("passes").unwrap_or(1.0)),
                CostOf::Result,
                "the share of the bytes read that did not come from the server, or may not have",
            ))
        },
        plot: Some(Plot::Response),
    }),
};

/// What was read and did not go over the wire came from a cache: the user-space client's own, or the kernel client's.
fn never_on_the_wire(s: Subject<'_>, wire: u64) -> Option<Check> {
    let read = read(s);
    let cached = read.saturating_sub(wire);
    if cached * 20 <= read {
        return None;
    }
    let share = cached as f64 / read as f64;
    let message = format!(
        "Reads came from the client's cache: {} of {} never went over the wire.",
        percent(share),
        size(read as f64)
    );
    let evidence = [Evidence::bytes("read", read as f64), Evidence::number("cached_share", share)];
    failed(s, CheckKind::CachedReads, Severity::Warning, message, evidence)
}

/// What may have come from the page cache of this host.
fn may_be_cached(s: Subject<'_>) -> Option<Check> {
    // Where memory is the storage there is no cache to be mistaken for it.
    let memory_is_storage = s.environment.target.as_ref().is_some_and(TargetEnvironment::is_memory);
    let direct = steps(s.workload).any(|step| step.flags.contains(&OpenFlag::Direct));
    let over_the_wire = s.service.is_some_and(|service| service.url.contains("://"));
    if memory_is_storage || direct || over_the_wire {
        return None;
    }
    let read = read(s);
    let data: u64 = s.recording.filesets.iter().map(|facts| facts.bytes).sum();
    let memory = s.environment.memory_total?;
    if read == 0 || data == 0 || data >= memory {
        return None;
    }
    let cached: Option<u64> = s.recording.filesets.iter().map(|facts| facts.cached_bytes).sum();
    let share = cached.map(|cached| cached as f64 / data as f64);
    let passes = read as f64 / data as f64;
    if share.is_some_and(|share| share < 0.05) && passes <= 1.0 {
        return None;
    }
    let known = match share {
        Some(share) => format!("{} of it was cached at the start", percent(share)),
        None => "how much of it was cached is not known".into(),
    };
    let message = format!(
        "Reads may have come from this host's page cache: the data set ({}) is smaller than its memory ({}), {known}, and \
         it was read {passes:.1} times, so that {} of the reads may have come from there.",
        size(data as f64),
        size(memory as f64),
        percent(in_doubt(share.unwrap_or(0.0), passes))
    );
    let evidence = [
        Evidence::bytes("data_set", data as f64),
        Evidence::bytes("memory", memory as f64),
        Evidence::number("cached_share", share.unwrap_or(f64::NAN)),
        Evidence::number("passes", passes),
    ];
    failed(s, CheckKind::CachedReads, Severity::Warning, message, evidence)
}

/// The share of reads that a cache may have answered: what was there, and what is read again.
fn in_doubt(cached: f64, passes: f64) -> f64 {
    cached.max(1.0 - 1.0 / passes.max(1.0))
}

fn read(s: Subject<'_>) -> u64 {
    let reads = s.recording.series.iter().filter(|series| series.key.operation == OperationKind::Read);
    reads.map(|series| series.total.bytes).sum()
}

fn steps(workload: &Workload) -> impl Iterator<Item = &Step> {
    let groups = workload.groups.iter();
    groups.flat_map(|group| group.setup.iter().chain(benchmaster_record::model::leaves(&group.flow)))
}

pub(crate) static UNFLUSHED_WRITES: Rule = Rule {
    kind: CheckKind::UnflushedWrites,
    explanation: Explanation {
        id: "unflushed-writes",
        group: Group::Doubt,
        title: "Writes were not on the server yet when the measurement ended",
        mechanism: "write() returns when the data are in the client's page cache. What is still there at the end of the measured phase has \
                    cost nothing yet: the rate is that of memory until the cache is full, and only then that of the server.",
        formula: "found when the flush after the measured phase took ≥ 10 % of its length; in doubt = flush / (measured + flush)",
        source: "the check `unflushed-writes`; paper 000, section 6 (bursts into the client's cache); paper 003, section 2 (write, flush and close timed apart)",
    },
    check: unflushed_writes,
    remedy: |_| {
        Remedy::new("Count the flush: write with `sync`, flush in the flow, or measure until the cache has been full most of the time.")
            .by(Need::Anywhere, "sync = \"o_sync\"   # or an `fsync` step; in the workload")
            .confirmed_by("studies/paper000-unsynchronised-write.toml shows the same with and without O_SYNC; `benchmaster quick` times write, flush and close apart")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| when(measured.bytes(OperationKind::Write) > 0),
        worth: any,
        numbers: &[
            ("flush_s", "time of the flush after the measured phase"),
            ("measured_s", "length of the measured phase"),
        ],
        cost: |failed| {
            let (flush, measured) = (failed.number("flush_s")?, failed.number("measured_s")?);
            Some((
                flush / (flush + measured),
                CostOf::Result,
                "flush / (measured + flush): with the flush counted the rate is lower by this share",
            ))
        },
        plot: Some(Plot::Time),
    }),
};

fn unflushed_writes(s: Subject<'_>) -> Option<Check> {
    if s.workload.claims == Claim::Cache {
        return None;
    }
    let flush =
        s.recording.phases.iter().find(|phase| phase.phase == Phase::TearDown && phase.operations > 0)?;
    let (flush, measured) =
        ((flush.end_ns - flush.start_ns) as f64 / 1e9, s.recording.length_ns as f64 / 1e9);
    let written = s.recording.series.iter().any(|series| series.key.operation == OperationKind::Write);
    if !written || flush < 0.1 * measured {
        return None;
    }
    let message = format!(
        "Written data were still in the client's cache when the measured phase ended: flushing them took {flush:.2} s after \
         {measured:.2} s; the throughput is that of the cache."
    );
    let evidence = [Evidence::seconds("flush_s", flush), Evidence::seconds("measured_s", measured)];
    failed(s, CheckKind::UnflushedWrites, Severity::Warning, message, evidence)
}
