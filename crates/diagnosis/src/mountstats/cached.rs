//! Reads that the client's memory answered.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Less says nothing of throughput.
const LEAST: u64 = 64 << 20;
/// Share of what was read.
const LEAST_SHARE: f64 = 0.3;

pub(super) const DETECTOR: Detector = Detector { id: "cached-reads", detect };

fn detect(observed: &Observed) -> Verdict {
    let (Some(application), Some(wire)) = (observed.application_read(), observed.bytes("server_read")) else {
        return Verdict::Unknown("this kernel's bytes line is too short".into());
    };
    let from_memory = application.saturating_sub(wire);
    let part = share(from_memory as f64, application as f64);
    if application < LEAST || part < LEAST_SHARE {
        return Verdict::Clear;
    }
    Verdict::Found(
        Finding::new(
            Confidence::Certain,
            format!(
                "{} of the {} that applications read {} came from the client's memory, not from the server.",
                percent(part),
                size(application as f64),
                observed.period()
            ),
        )
        .with([
            Evidence::bytes("read by applications (normal_read + direct_read)", application as f64),
            Evidence::bytes("read from the server (server_read)", wire as f64),
        ])
        .advised(case("cached-reads", "mounts")),
    )
}
