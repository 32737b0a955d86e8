//! What the memory management did: `/proc/vmstat`.

use super::{Files, Registered, Sink};
use crate::sampling::text::{Faults, Malformed, number};
use crate::sampling::{Kind, Metric, MetricInfo};

/// What matters most of what it reads; every other name of the file is recorded as well.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo::gauge("nr_free_pages", "pages", "", "free pages"),
    MetricInfo::gauge("nr_file_pages", "pages", "", "page cache"),
    MetricInfo::gauge("nr_dirty", "pages", "", "waiting to be written"),
    MetricInfo::gauge("nr_writeback", "pages", "", "being written"),
    MetricInfo::gauge(
        "nr_unstable",
        "pages",
        "",
        "sent to NFS servers and not committed (0 since Linux 5.8)",
    ),
    MetricInfo::gauge("nr_dirty_threshold", "pages", "", "dirty limit at which writers are throttled"),
    MetricInfo::gauge("nr_dirty_background_threshold", "pages", "", "dirty limit at which write-back starts"),
    MetricInfo::counter("nr_dirtied", "pages", "", "became dirty"),
    MetricInfo::counter("nr_written", "pages", "", "were written"),
    MetricInfo::counter("pgpgin", "KiB", "", "read from block devices"),
    MetricInfo::counter("pgpgout", "KiB", "", "written to block devices"),
    MetricInfo::counter("pswpin", "pages", "", "read from swap"),
    MetricInfo::counter("pswpout", "pages", "", "written to swap"),
    MetricInfo::counter("pgfault", "1", "", "page faults, with and without I/O"),
    MetricInfo::counter("pgmajfault", "1", "", "page faults that needed I/O"),
    MetricInfo::counter("pgscan_kswapd", "1", "", "pages scanned by the kernel's reclaim thread"),
    MetricInfo::counter("pgscan_direct", "1", "", "pages scanned by programs that had to wait for memory"),
    MetricInfo::counter("pgsteal_kswapd", "1", "", "pages freed by the reclaim thread"),
    MetricInfo::counter("pgsteal_direct", "1", "", "pages freed by programs that needed memory"),
    MetricInfo::counter("oom_kill", "1", "", "programs killed for lack of memory"),
];

pub(crate) const REGISTERED: Registered = Registered {
    name: "vmstat",
    about: "Memory management, from `/proc/vmstat`. All names of the file are recorded, also those not listed here.",
    metrics: METRICS,
    make: |config| {
        let path = config.places.proc.join("vmstat");
        Box::new(Files::new(&REGISTERED).file(path, "is /proc mounted?", |text, out| parse(text, out)))
    },
};

/// Parses the text of `/proc/vmstat`: a name and a number in each line.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    let mut faults = Faults::default();
    for (at, line) in text.lines().enumerate() {
        let found = line.split_once(' ').and_then(|(name, value)| Some((metric(name), number(value)?)));
        faults.check(at, line, found.map(|(metric, value)| out.put(metric, "", value)));
    }
    faults.finish()
}

/// What the name says of the metric: `nr_…` is how many pages are in a state, except where it counts what happened.
fn metric(name: &str) -> Metric<'_> {
    let counts = ["nr_dirtied", "nr_written", "nr_throttled_written"].contains(&name)
        || ["nr_vmscan_", "nr_tlb_", "nr_foll_pin_"].iter().any(|start| name.starts_with(start));
    let is_state = (name.starts_with("nr_") && !counts) || name == "workingset_nodes";
    let unit = match name {
        "pgpgin" | "pgpgout" => "KiB",
        "pswpin" | "pswpout" => "pages",
        _ if name.starts_with("nr_") => "pages",
        _ => "1",
    };
    Metric { name, unit, kind: if is_state { Kind::Gauge } else { Kind::Counter } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::Values;

    #[test]
    fn every_line_is_kept_as_what_it_is() {
        for text in [include_str!("vmstat/linux-4.18.txt"), include_str!("vmstat/linux-6.18.txt")] {
            let values = Values::of(|out| parse(text, out));
            values.are_as_listed(&REGISTERED);
            assert_eq!(values.0.len(), text.lines().count());
            let kind = |name: &str| values.0.iter().find(|value| value.0 == name).unwrap().2;
            for gauge in ["nr_dirty", "nr_mlock", "nr_unstable", "nr_dirty_threshold", "workingset_nodes"] {
                assert_eq!(kind(gauge), Kind::Gauge, "{gauge}");
            }
            for counter in ["nr_dirtied", "nr_vmscan_write", "pgpgin", "pgmajfault", "oom_kill"] {
                assert_eq!(kind(counter), Kind::Counter, "{counter}");
            }
        }
        let values = Values::of(|out| parse(include_str!("vmstat/linux-4.18.txt"), out));
        assert_eq!(values.row("", ["nr_dirty", "pgpgout", "pswpout"]), [5120.0, 91e6, 12.0]);
    }
}
