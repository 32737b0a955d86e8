//! More bytes on the wire than applications moved.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Cost, CostOf, Evidence, Finding, Need, Remedy};
use crate::words::{percent, share, size};

/// Less says little.
const LEAST: u64 = 64 << 20;
/// Bytes on the wire for each byte moved.
const LEAST_RATIO: f64 = 1.2;

/// The share of the bytes on the wire that is more than applications moved, where it is worth a finding.
fn excess(application: u64, wire: u64) -> Option<f64> {
    let worth = wire >= LEAST && application > 0 && wire as f64 >= LEAST_RATIO * application as f64;
    worth.then(|| share((wire - application) as f64, wire as f64))
}

pub(crate) const WASTE: Detector = Detector { explanation: &READAHEAD, detect: detect_waste };

/// Told of stored results as well.
pub(crate) const READAHEAD: Explanation = Explanation {
    id: "readahead-waste",
    group: Group::Phenomenon,
    title: "More was read from the server than by applications",
    mechanism: "The client reads ahead of what looks sequential: Linux 2.6.32 as soon as one page before was cached, later ones when more were than are asked for. Random reads of large \
                files make it guess wrong once some of the file is cached, and unrequested data take the network from requested data: the application's throughput \
                (ART) falls while the client machine's (CRT) stays.",
    formula: "CRT − ART = data in replies to READ (200 bytes of each taken off for headers) − bytes that the workload read; found when CRT ≥ 1.2 · ART and the difference is ≥ 8 MiB and ≥ 2 MiB for \
              each worker; cost = 1 − ART / CRT of the bytes on the wire. From mountstats alone: server_read ≥ 1.2 · (normal_read + direct_read) ≥ 64 MiB, where reads through mmap are not \
              counted as the application's",
    source: "paper 000 §3, figures 1 to 3, observation 1 (up to 80 % of the throughput); bytes line in mountstats",
};

fn detect_waste(observed: &Observed) -> Verdict {
    let (Some(application), Some(wire)) = (observed.application_read(), observed.bytes("server_read")) else {
        return Verdict::Unknown("this kernel's bytes line is too short".into());
    };
    let Some(part) = excess(application, wire) else { return Verdict::Clear };
    Verdict::Found(Finding {
        id: READAHEAD.id,
        what: format!(
            "{} came from the server {}, and applications read {} of it: {} was for nothing, unless files are read through mmap.",
            size(wire as f64),
            observed.period(),
            size(application as f64),
            percent(part)
        ),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::bytes("read by applications (normal_read + direct_read)", application as f64),
            Evidence::bytes("read from the server (server_read)", wire as f64),
        ],
        confidence: Confidence::Possible,
        cost: Some(Cost { share: part, of: CostOf::WireBytes, estimate: "1 − read by applications / read from the server".into() }),
        also: Vec::new(),
        remedy: Remedy::new("For random reads make the readahead smaller, or let applications tell (`posix_fadvise(POSIX_FADV_RANDOM)`).")
            .by(Need::KernelClient, "echo 16 > /sys/class/bdi/$(mountpoint -d /MOUNT)/read_ahead_kb")
            .confirmed_by("`studies/paper000-random-read.toml` reports both throughputs"),
    })
}

pub(crate) const REWRITTEN: Detector = Detector { explanation: &REWRITE, detect: detect_rewritten };

const REWRITE: Explanation = Explanation {
    id: "written-twice",
    group: Group::Condition,
    title: "More was written to the server than by applications",
    mechanism: "The client writes whole pages where files are mapped or pages are changed again before they are stable, and rewrites what the server lost when it was restarted before a COMMIT.",
    formula: "found when server_written ≥ 1.2 · (normal_written + direct_written) ≥ 64 MiB; cost = 1 − application / server_written",
    source: "bytes line in mountstats; RFC 1813, section 4.8 (write verifiers)",
};

fn detect_rewritten(observed: &Observed) -> Verdict {
    let (Some(application), Some(wire)) = (observed.application_written(), observed.bytes("server_written"))
    else {
        return Verdict::Unknown("this kernel's bytes line is too short".into());
    };
    let Some(part) = excess(application, wire) else { return Verdict::Clear };
    Verdict::Found(Finding {
        id: REWRITE.id,
        what: format!(
            "{} went to the server {}, and applications wrote {}.",
            size(wire as f64),
            observed.period(),
            size(application as f64)
        ),
        at: None,
        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::bytes("written by applications (normal_written + direct_written)", application as f64),
            Evidence::bytes("written to the server (server_written)", wire as f64),
        ],
        confidence: Confidence::Possible,
        cost: Some(Cost {
            share: part,
            of: CostOf::WireBytes,
            estimate: "1 − written by applications / written to the server".into(),
        }),
        also: Vec::new(),
        remedy: Remedy::new(
            "Look whether files are written through mmap, whether records are smaller than a page, and whether the server was restarted.",
        ),
    })
}
