//! Connections that are lost, and connections that are not used alike.

use super::observed::Observed;
use super::rule::Detector;
use crate::prelude::*;

/// Seconds without calls after which the client closes a connection itself (`XS_IDLE_DISC_TO`).
const IDLE: u64 = 300;
/// Fewer are no pattern.
const LEAST: u64 = 3;
/// Requests from which on shares of connections tell.
const LEAST_SENDS: u64 = 10_000;
/// Difference between the busiest and the idlest, as a share of the mean.
const UNEVEN: f64 = 0.5;

pub(crate) const RECONNECTS: Detector = Detector { id: "reconnects", detect: detect_reconnects };

fn detect_reconnects(observed: &Observed) -> Verdict {
    let connects: Vec<u64> = observed.of_connections("connects").collect();
    if connects.is_empty() {
        return Verdict::Unknown("connections of this kind (UDP) are not counted".into());
    }
    let first = u64::from(observed.since_mount);
    let again: u64 = connects.iter().map(|connects| connects.saturating_sub(first)).sum();
    let idle = observed.seconds / IDLE * connects.len() as u64;
    if again < LEAST || again <= idle {
        return Verdict::Clear;
    }
    let what = format!(
        "Connections to the server were re-established {again} times {}, more often than idle ones are closed.",
        observed.period()
    );
    Verdict::Found(
        Finding::new(Confidence::Likely, what)
            .with([
                Evidence::number("connections re-established", again as f64),
                Evidence::number("connections", connects.len() as f64),
                Evidence::number("most that idleness can explain", idle as f64),
            ])
            .advised(case("reconnects", "mounts")),
    )
}

pub(crate) const IMBALANCE: Detector = Detector { id: "uneven-connections", detect: detect_imbalance };

fn detect_imbalance(observed: &Observed) -> Verdict {
    let sends: Vec<u64> = observed.of_connections("sends").collect();
    let total: u64 = sends.iter().sum();
    let (Some(most), Some(fewest)) = (sends.iter().max(), sends.iter().min()) else {
        return Verdict::Unknown("connections of this kind are not counted".into());
    };
    let spread = (most - fewest) as f64 * sends.len() as f64 / total.max(1) as f64;
    if sends.len() < 2 || total < LEAST_SENDS || spread < UNEVEN {
        return Verdict::Clear;
    }
    Verdict::Found(
        Finding::new(
            Confidence::Possible,
            format!(
                "The {} connections carry between {} and {} of the requests.",
                sends.len(),
                percent(*fewest as f64 / total as f64),
                percent(*most as f64 / total as f64)
            ),
        )
        .with((1..).zip(&sends).map(|(number, sends)| {
            Evidence::number(format!("requests of connection {number}"), *sends as f64)
        })),
    )
}
