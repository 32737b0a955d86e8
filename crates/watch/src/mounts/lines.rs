//! Mounts as lines, for pipes, and as values, for JSON.

use std::fmt::Write;

use serde::Serialize;

use super::{Interval, Mounts, OperationRates};
use crate::numbers::{clean, milliseconds, short, spaced};

/// What all mounts did in an interval, for JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Snapshot<'a> {
    /// Milliseconds since 1970 at its end.
    pub time_ms: u64,
    pub mounts: Vec<Mount<'a>>,
}

/// What a mount did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mount<'a> {
    /// What is mounted.
    pub device: &'a str,
    pub mount_point: String,
    /// Version of NFS.
    pub version: &'a str,
    /// `None` for a mount that was not there when the interval began, and when there is a note.
    pub interval: Option<&'a Interval>,
    /// Why two readings could not be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'a str>,
}

impl<'a> Snapshot<'a> {
    /// Of the latest interval.
    pub fn of(mounts: &'a Mounts, time_ms: u64) -> Self {
        let mount = |watched: &'a super::Watched| Mount {
            device: &watched.stats.device,
            mount_point: watched.stats.mount_point.display().to_string(),
            version: watched.version(),
            interval: watched.interval.as_ref(),
            note: watched.note.as_deref(),
        };
        Self { time_ms, mounts: mounts.mounts().iter().map(mount).collect() }
    }
}

/// The latest interval as text: for each mount a few lines, and one for each operation that was used.
pub fn lines(mounts: &Mounts) -> String {
    let mut text = String::new();
    for watched in mounts.mounts() {
        let (device, point) =
            (clean(&watched.stats.device), clean(&watched.stats.mount_point.to_string_lossy()));
        // Writing into a string never fails.
        let _ = write!(text, "{point} ({device}, NFS {})", clean(watched.version()));
        let _ = match (&watched.interval, &watched.note) {
            (Some(interval), _) => interval_lines(&mut text, interval),
            (None, Some(note)) => writeln!(text, ": {}", clean(note)),
            (None, None) => writeln!(text, ": new"),
        };
    }
    if mounts.mounts().is_empty() {
        text.push_str("no NFS mounts\n");
    }
    text
}

fn interval_lines(text: &mut String, interval: &Interval) -> std::fmt::Result {
    let rate = |bytes: f64| format!("{}B/s", spaced(bytes));
    let total = &interval.total;
    writeln!(
        text,
        ", {:.1} s: {} ops/s; applications read {}{}, wrote {}; server: read {}, written {}",
        interval.seconds,
        short(total.ops_per_s),
        rate(interval.application_read_bytes_per_s),
        interval.cached_share.map_or_else(String::new, |share| format!(" ({:.0} % cached)", share * 100.0)),
        rate(interval.application_written_bytes_per_s),
        rate(interval.server_read_bytes_per_s),
        rate(interval.server_written_bytes_per_s),
    )?;
    let used: Vec<&OperationRates> =
        interval.operations.iter().filter(|operation| is_used(operation)).collect();
    if used.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "  {:<20}{:>8}{:>8}{:>8}{:>9}{:>9}{:>9}{:>8}{:>8}{:>9}",
        "operation", "ops/s", "B/op", "B/s", "queue ms", "RTT ms", "exec ms", "errors", "resent", "timeouts"
    )?;
    for operation in used {
        let ms = |mean| milliseconds(mean, operation.ops);
        writeln!(
            text,
            "  {:<20}{:>8}{:>8}{:>8}{:>9}{:>9}{:>9}{:>8}{:>8}{:>9}",
            clean(&operation.name),
            short(operation.ops_per_s),
            operation.bytes_per_op.map(short).unwrap_or_default(),
            short(operation.sent_bytes_per_s + operation.received_bytes_per_s),
            ms(operation.queue_ms),
            ms(operation.rtt_ms),
            ms(operation.execute_ms),
            operation.errors.map_or_else(|| "?".into(), |errors| errors.to_string()),
            operation.retransmissions,
            operation.timeouts,
        )?;
    }
    Ok(())
}

/// Something happened: calls completed, or were sent again without completing.
pub(super) fn is_used(operation: &OperationRates) -> bool {
    operation.ops > 0 || operation.timeouts > 0 || operation.retransmissions > 0
}
