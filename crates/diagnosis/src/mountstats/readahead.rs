//! More bytes on the wire than applications moved.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Less says little.
const LEAST: u64 = 64 << 20;
/// Bytes on the wire for each byte moved.
const LEAST_RATIO: f64 = 1.2;

/// The share of the bytes on the wire that is more than applications moved, where it is worth a finding.
fn excess(application: u64, wire: u64) -> Option<f64> {
    let worth = wire >= LEAST && application > 0 && wire as f64 >= LEAST_RATIO * application as f64;
    worth.then(|| share((wire - application) as f64, wire as f64))
}

pub(crate) const WASTE: Detector = Detector { id: "readahead-waste", detect: detect_waste };

fn detect_waste(observed: &Observed) -> Verdict {
    let (Some(application), Some(wire)) = (observed.application_read(), observed.bytes("server_read")) else {
        return Verdict::Unknown("this kernel's bytes line is too short".into());
    };
    let Some(part) = excess(application, wire) else { return Verdict::Clear };
    let what = format!(
        "{} came from the server {}, and applications read {} of it: {} was for nothing, unless files are read through mmap.",
        size(wire as f64),
        observed.period(),
        size(application as f64),
        percent(part)
    );
    Verdict::Found(
        Finding::new(Confidence::Possible, what)
            .with([
                Evidence::bytes("read by applications (normal_read + direct_read)", application as f64),
                Evidence::bytes("read from the server (server_read)", wire as f64),
            ])
            .costs(part),
    )
}

pub(crate) const REWRITTEN: Detector = Detector { id: "written-twice", detect: detect_rewritten };

fn detect_rewritten(observed: &Observed) -> Verdict {
    let (Some(application), Some(wire)) = (observed.application_written(), observed.bytes("server_written"))
    else {
        return Verdict::Unknown("this kernel's bytes line is too short".into());
    };
    let Some(part) = excess(application, wire) else { return Verdict::Clear };
    Verdict::Found(
        Finding::new(
            Confidence::Possible,
            format!(
                "{} went to the server {}, and applications wrote {}.",
                size(wire as f64),
                observed.period(),
                size(application as f64)
            ),
        )
        .with([
            Evidence::bytes("written by applications (normal_written + direct_written)", application as f64),
            Evidence::bytes("written to the server (server_written)", wire as f64),
        ])
        .costs(part),
    )
}
