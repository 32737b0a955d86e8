//! Block devices: `/proc/diskstats`, and what `iostat` makes of it.

use super::{Files, Registered, Sink, in_proc};
use crate::sampling::text::{Malformed, lines, number, words};
use crate::sampling::{MetricInfo, metrics};

mod iostat;

pub use iostat::{Disk, Iostat, iostat};

/// What it reads.
pub const METRICS: &[MetricInfo] = &metrics::<17>(include_str!("metrics/diskstats.tsv"));

pub(crate) const REGISTERED: Registered = Registered {
    name: "diskstats",
    about: "Block devices and partitions, from `/proc/diskstats`. The kernel counts times in ms and bytes in sectors of 512.",
    metrics: METRICS,
    make: |config| {
        Box::new(Files::new(&REGISTERED).and(in_proc(config, "diskstats"), |text, out| parse(text, out)))
    },
};

/// Parses the text of `/proc/diskstats`. Columns of newer kernels are left out.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| device(line, out))
}

fn device(line: &str, out: &mut impl Sink) -> Option<()> {
    let mut fields = words(line);
    let _major_and_minor = (number(fields.next()?)?, number(fields.next()?)?);
    let name = fields.next()?;
    // Linux 2.6 and later have 11, but for partitions of kernels before 2.6.25.
    fields.clone().nth(10)?;
    for (metric, value) in METRICS.iter().zip(fields) {
        let scale = match metric.unit {
            "B" => 512.0,
            "ns" => 1e6,
            _ => 1.0,
        };
        out.put(metric.metric(), name, number(value)? * scale);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::Values;

    fn parsed(text: &str) -> Values {
        let values = Values::of(|out| parse(text, out));
        values.are_as_listed(&REGISTERED);
        values
    }

    #[test]
    fn kernels_have_11_15_and_17_columns() {
        let old = parsed(include_str!("diskstats/linux-4.14.txt"));
        assert_eq!(old.0.len(), 2 * 11);
        let columns = ["reads", "read_bytes", "read_time", "written_bytes", "in_flight", "queue_time"];
        assert_eq!(old.row("sda", columns), [94.0, 2062.0 * 512.0, 110e6, 20_500.0 * 512.0, 2.0, 1020e6]);
        let newer = parsed(include_str!("diskstats/linux-4.18.txt"));
        assert_eq!(
            newer.row("nvme0n1", ["discards", "discarded_bytes", "discard_time"]),
            [20.0, 40_960.0 * 512.0, 8e6]
        );
        assert_eq!(newer.get("flushes", "nvme0n1"), None);
        let newest = parsed(include_str!("diskstats/linux-5.10.txt"));
        assert_eq!(
            newest.row("dm-0", ["writes_merged", "busy_time", "flushes", "flush_time"]),
            [6.0, 10e6, 16.0, 17e6]
        );
        let recorded = parsed(include_str!("diskstats/linux-6.18.txt"));
        assert_eq!(
            recorded.0.len(),
            include_str!("diskstats/linux-6.18.txt").lines().count() * METRICS.len()
        );
        assert!(recorded.get("writes", "vda").unwrap() > 0.0);
    }

    #[test]
    fn columns_of_kernels_to_come_are_left_out_and_short_lines_are_faults() {
        let line = format!("8 0 sda {}", "1 ".repeat(25));
        assert_eq!(parsed(&line).0.len(), METRICS.len());
        let mut values = Values::default();
        assert_eq!(parse("8 0 sda 1 2 3\n", &mut values).unwrap_err().line, 1);
        assert!(values.0.is_empty());
    }
}
