//! Memory of the host: `/proc/meminfo`.

use super::{Files, Registered, Sink, in_proc};
use crate::sampling::text::{Malformed, lines, number, word};
use crate::sampling::{Metric, MetricInfo, metrics};

/// What it reads; every other name of the file is recorded as well.
pub const METRICS: &[MetricInfo] = &metrics::<14>(include_str!("metrics/memory.tsv"));

pub(crate) const REGISTERED: Registered = Registered {
    name: "memory",
    about: "Memory of the host, from `/proc/meminfo`. All names of the file are recorded, also those not listed here; amounts \
            that the file has in kB are in bytes.",
    metrics: METRICS,
    make: |config| {
        Box::new(Files::new(&REGISTERED).and(in_proc(config, "meminfo"), |text, out| parse(text, out)))
    },
};

/// Parses the text of `/proc/meminfo`: lines `Name:   1234 kB`, or without unit where pages are counted.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| if line.is_empty() { Some(()) } else { field(line, out) })
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
