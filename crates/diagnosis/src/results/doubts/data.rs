//! Checks of what was read and written: wrong data, failed operations, data that never reached the server.

use benchmaster_record::model::OperationKind;

use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Plot, Remedy};
use crate::results::measured::Measured;
use crate::results::stored::{Could, Stored, all_of_it, always, nothing, when, with_rpcs, worth_it};

/// Of runs that failed by it; see [`super::failed`].
pub(super) const CORRUPTION: Explanation = Explanation {
    id: "corruption",
    group: Group::Doubt,
    title: "Wrong data were read",
    mechanism: "Data that were written with a known pattern came back as something else. Whatever else is measured, the file system, its \
                    client or the network lost or mixed up what it was given.",
    formula: "found when verification (`verify = true`) reads a block that is not what was written; all of the run is in doubt",
    source: "the check `corruption`; docs/metrics.md, \"Validity checks\"",
};

pub(super) static ERRORS: Stored = Stored {
    check: "errors",
    explanation: Explanation {
        id: "errors",
        group: Group::Doubt,
        title: "Operations of the workload failed",
        mechanism: "An operation that fails is often faster, or much slower, than one that does its work, and the work it was to do is missing: rates and \
                    latencies of such a run are of something else.",
        formula: "found when one or more operations failed, before, while or after it was measured; all of the run is in doubt",
        source: "the check `errors`; docs/metrics.md, \"Validity checks\"",
    },
    confidence: Confidence::Certain,
    could: always,
    worth: worth_it,
    numbers: &[
        ("measured", "operations that failed while it was measured", "1"),
        ("outside", "operations that failed before and after", "1"),
    ],
    cost: all_of_it,
    remedy: |_| {
        Remedy::new("The first error in full names the file and the reason. Errors that belong to the workload (a name that may be missing) can be allowed by its flow.")
            .by("benchmaster analyze DIR; dmesg -T | grep -i nfs")
    },
    plot: None,
};

pub(super) static FILE_SYSTEM_FULL: Stored = Stored {
    check: "file-system-full",
    explanation: Explanation {
        id: "file-system-full",
        group: Group::Doubt,
        title: "The file system was full, or nearly",
        mechanism: "With little room left a file system searches longer for free blocks and places data in pieces, so that writing is slower than it is otherwise.",
        formula: "found when operations were refused for lack of space (all of the run is in doubt), or less than 1 % of the file system was free in the end",
        source: "the check `file-system-full`; docs/metrics.md, \"Validity checks\"",
    },
    confidence: Confidence::Certain,
    could: always,
    worth: worth_it,
    numbers: &[
        ("refused", "operations refused for lack of space", "1"),
        ("free", "bytes free in the end", "B"),
        ("total", "bytes of the file system", "B"),
    ],
    cost: all_of_it,
    remedy: |_| {
        Remedy::new("Make room, or let the workload write less (`file_size`, `bytes`).")
            .by("df -h TARGET; df -i TARGET")
    },
    plot: None,
};

pub(super) static UNFLUSHED_WRITES: Stored = Stored {
    check: "unflushed-writes",
    explanation: Explanation {
        id: "unflushed-writes",
        group: Group::Doubt,
        title: "Writes were not on the server yet when the measurement ended",
        mechanism: "write() returns when the data are in the client's page cache. What is still there at the end of the measured phase has \
                    cost nothing yet: the rate is that of memory, and the server's begins when the cache is full.",
        formula: "found when the flush after the measured phase took ≥ 10 % of its length; in doubt = flush / (measured + flush)",
        source: "the check `unflushed-writes`; paper 000, section 6 (bursts into the client's cache); paper 003, section 2 (write, flush and close timed apart)",
    },
    confidence: Confidence::Certain,
    could: |measured| when(measured.bytes(OperationKind::Write) > 0),
    worth: worth_it,
    numbers: &[
        ("flush_s", "time of the flush after the measured phase", "s"),
        ("measured_s", "length of the measured phase", "s"),
    ],
    cost: |told| {
        let (flush, measured) = (told.number("flush_s")?, told.number("measured_s")?);
        Some((
            flush / (flush + measured),
            CostOf::Result,
            "flush / (measured + flush): so much lower is the rate with the flush counted",
        ))
    },
    remedy: |_| {
        Remedy::new("Count the flush: write with `sync`, flush in the flow, or measure so long that the cache is full most of the time.")
            .by("sync = \"o_sync\"   # or an `fsync` step; in the workload")
            .confirmed_by("studies/paper000-unsynchronised-write.toml shows the same with and without O_SYNC; `benchmaster quick` times write, flush and close apart")
    },
    plot: Some(Plot::Time),
};

pub(super) static CACHED_READS: Stored = Stored {
    check: "cached-reads",
    explanation: crate::mountstats::CACHED_READS,
    confidence: Confidence::Certain,
    could: reads,
    worth: worth_it,
    numbers: &[
        ("read", "bytes read by the workload", "B"),
        ("cached_share", "share of them that a cache answered", "1"),
        ("data_set", "bytes of the data set", "B"),
        ("memory", "memory of the host", "B"),
        ("passes", "times that the data set was read", "1"),
    ],
    cost: |told| {
        let cached = told.number("cached_share")?;
        // What is read again is cached by then.
        let again = told.number("passes").map_or(0.0, |passes| 1.0 - 1.0 / passes.max(1.0));
        Some((
            cached.max(again),
            CostOf::Result,
            "the share of the bytes read that did not come from the server, or may not have",
        ))
    },
    remedy: |_| {
        Remedy::new("If the server is what is to be measured: read more than fits into memory, read past the cache, or empty it before each run. If the \
                     cache is: say so, and the result is no longer in doubt.")
            .by("direct = true   # or a larger `file_size`, [run] cache = \"remount\", or claims = \"cache\"")
            .confirmed_by("the same study with `direct = true`; studies/paper002-file-size.toml shows where the cache ends")
    },
    plot: Some(Plot::Response),
};

fn reads(measured: &Measured<'_>) -> Could {
    when(measured.bytes(OperationKind::Read) > 0)
}

pub(super) static CLIENT_STATE: Stored = Stored {
    check: "client-state",
    explanation: Explanation {
        id: "client-state",
        group: Group::Doubt,
        title: "Clients did not end in good order",
        mechanism: "Calls that are still outstanding, opens and locks that were lost, or an unmount that failed: part of the work was not done, or not as it \
                    was meant to be.",
        formula: "found when a client of this program had calls outstanding, state lost, or could not unmount when the run ended",
        source: "the check `client-state`; RFC 8881, section 8.4 (loss of state)",
    },
    confidence: Confidence::Certain,
    could: with_rpcs,
    worth: worth_it,
    numbers: &[("problems", "problems of clients", "1")],
    cost: nothing,
    remedy: |_| {
        Remedy::new("The server's log at that time says why it took state away: a lease that ran out, a restart, an administrator.")
            .by("journalctl -k --grep nfsd --since TIME   # on a Linux server")
    },
    plot: None,
};
