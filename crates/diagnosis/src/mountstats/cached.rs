//! Reads that the client's memory answered.

use super::observed::Observed;
use super::rule::Detector;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, Evidence, Finding, Need, Remedy};
use crate::words::{percent, share, size};

/// Less says nothing of throughput.
const LEAST: u64 = 64 << 20;
/// Share of what was read.
const LEAST_SHARE: f64 = 0.3;

pub(super) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

pub(crate) const EXPLANATION: Explanation = Explanation {
    id: "cached-reads",
    group: Group::Doubt,
    title: "Reads were answered from the client's memory",
    mechanism: "What was read or written lately is read again without the server. That is as it should be in production, but what a \
                benchmark then reports is the memory's throughput: it can be many times what the network carries.",
    formula: "of mountstats: found when bytes read by applications exceed those that came from the server by ≥ 30 % of them, and are 64 MiB or \
              more. Of a study: found when > 5 % of the bytes read never went over the wire, or, where that is not counted, when the data set is \
              smaller than memory and was cached at the start or read more than once, and the workload does not say `claims = \"cache\"`; in \
              doubt = that share, or what was read again",
    source: "normal_read, direct_read and server_read of the bytes line in mountstats; the check `cached-reads`; paper 002, section 4 (reads of \
             500 MB/s over 1 Gb/s)",
};

fn detect(observed: &Observed) -> Verdict {
    let (Some(application), Some(wire)) = (observed.application_read(), observed.bytes("server_read")) else {
        return Verdict::Unknown("this kernel's bytes line is too short".into());
    };
    let from_memory = application.saturating_sub(wire);
    let part = share(from_memory as f64, application as f64);
    if application < LEAST || part < LEAST_SHARE {
        return Verdict::Clear;
    }
    Verdict::Found(Finding {
        id: EXPLANATION.id,
        what: format!(
            "{} of the {} that applications read {} came from the client's memory, not from the server.",
            percent(part),
            size(application as f64),
            observed.period()
        ),
        at: None,        tests: Vec::new(),
        place: observed.place(),
        evidence: vec![
            Evidence::bytes("read by applications (normal_read + direct_read)", application as f64),
            Evidence::bytes("read from the server (server_read)", wire as f64),
        ],
        confidence: Confidence::Certain,
        cost: None,
        also: Vec::new(),
        remedy: Remedy::new("In production this is what the cache is for. When throughput of the network or server is to be measured: empty the cache, mount \
                             again, or read past it.")
            .by(Need::KernelClient, "echo 3 > /proc/sys/vm/drop_caches   # or O_DIRECT; in a study `[run] cache = \"remount\"`"),
    })
}
