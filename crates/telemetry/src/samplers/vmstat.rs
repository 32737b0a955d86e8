//! What the memory management did: `/proc/vmstat`.

use super::{Files, Registered, Sink, in_proc};
use crate::sampling::text::{Malformed, lines, number};
use crate::sampling::{Kind, Metric, MetricInfo, metrics};

/// What matters most of what it reads; every other name of the file is recorded as well.
pub const METRICS: &[MetricInfo] = &metrics::<20>(include_str!("metrics/vmstat.tsv"));

pub(crate) const REGISTERED: Registered = Registered {
    name: "vmstat",
    about: "Memory management, from `/proc/vmstat`. All names of the file are recorded, also those not listed here.",
    metrics: METRICS,
    make: |config| {
        Box::new(Files::new(&REGISTERED).and(in_proc(config, "vmstat"), |text, out| parse(text, out)))
    },
};

/// Parses the text of `/proc/vmstat`: a name and a number in each line.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| {
        let (name, value) = line.split_once(' ')?;
        out.put(metric(name), "", number(value)?);
        Some(())
    })
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
