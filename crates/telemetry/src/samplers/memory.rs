//! Memory of the host: `/proc/meminfo`.

use super::{Files, Registered, Sink};
use crate::sampling::text::{Faults, Malformed, number, word};
use crate::sampling::{Metric, MetricInfo};

/// What it reads; every other name of the file is recorded as well.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo::gauge("MemTotal", "B", "", "usable by the system"),
    MetricInfo::gauge("MemFree", "B", "", "free"),
    MetricInfo::gauge("MemAvailable", "B", "", "can be used without swapping (Linux 3.14 and later)"),
    MetricInfo::gauge("Buffers", "B", "", "page cache of block devices"),
    MetricInfo::gauge("Cached", "B", "", "page cache of files, shared memory included"),
    MetricInfo::gauge("Dirty", "B", "", "in the page cache and waiting to be written"),
    MetricInfo::gauge("Writeback", "B", "", "being written"),
    MetricInfo::gauge(
        "NFS_Unstable",
        "B",
        "",
        "sent to NFS servers and not committed (until Linux 5.8; later part of `Writeback`)",
    ),
    MetricInfo::gauge("Slab", "B", "", "objects of the kernel"),
    MetricInfo::gauge(
        "SReclaimable",
        "B",
        "",
        "part of `Slab` that can be reclaimed, such as inodes and names",
    ),
    MetricInfo::gauge("SUnreclaim", "B", "", "part of `Slab` that cannot"),
    MetricInfo::gauge("Shmem", "B", "", "shared memory and tmpfs"),
    MetricInfo::gauge("AnonPages", "B", "", "anonymous memory of programs"),
    MetricInfo::gauge("SwapFree", "B", "", "unused swap space"),
];

pub(crate) const REGISTERED: Registered = Registered {
    name: "memory",
    about: "Memory of the host, from `/proc/meminfo`. All names of the file are recorded, also those not listed here; amounts \
            that the file has in kB are in bytes.",
    metrics: METRICS,
    make: |config| {
        let file = Files::new(&REGISTERED).file(
            config.places.proc.join("meminfo"),
            "is /proc mounted?",
            |text, out| parse(text, out),
        );
        Box::new(file)
    },
};

/// Parses the text of `/proc/meminfo`: lines `Name:   1234 kB`, or without unit where pages are counted.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    let mut faults = Faults::default();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        faults.check(at, line, field(line, out));
    }
    faults.finish()
}

fn field(line: &str, out: &mut impl Sink) -> Option<()> {
    let (name, rest) = line.split_once(':')?;
    let (value, unit) = word(rest)?;
    let value = number(value)?;
    match unit.trim_ascii() {
        "kB" => out.put(Metric::gauge(name, "B"), "", value * 1024.0),
        "" => out.put(Metric::gauge(name, "1"), "", value),
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::Values;

    #[test]
    fn every_line_of_every_kernel_is_kept() {
        for text in [
            include_str!("memory/linux-2.6.32.txt"),
            include_str!("memory/linux-4.18.txt"),
            include_str!("memory/linux-6.18.txt"),
        ] {
            let values = Values::of(|out| parse(text, out));
            values.are_as_listed(&REGISTERED);
            assert_eq!(values.0.len(), text.lines().count());
            assert!(values.get("Dirty", "").is_some() && values.get("NFS_Unstable", "").is_some());
        }
        let values = Values::of(|out| parse(include_str!("memory/linux-4.18.txt"), out));
        let names = ["NFS_Unstable", "Active(anon)", "HugePages_Total", "VmallocTotal"];
        assert_eq!(values.row("", names), [64.0 * 1048576.0, 1_740_800_000.0, 4.0, 35_184_372_087_808.0]);
    }

    #[test]
    fn odd_units_are_faults() {
        let fault = parse("MemTotal: 8 kB\nMemFree: 1 MB\n", &mut Values::default()).unwrap_err();
        assert_eq!(fault.line, 2);
    }
}
