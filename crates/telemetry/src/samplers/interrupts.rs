//! Interrupts and soft interrupts: `/proc/interrupts` and `/proc/softirqs`.

use super::{Files, Registered, Sink, in_proc};
use crate::sampling::text::{Malformed, lines, number, word, words};
use crate::sampling::{MetricInfo, metrics};

/// What it reads.
pub const METRICS: &[MetricInfo] = &metrics::<3>(include_str!("metrics/interrupts.tsv"));
const INTERRUPTS: MetricInfo = METRICS[0];
const SOFTIRQS: MetricInfo = METRICS[1];
const NET_RX: MetricInfo = METRICS[2];

pub(crate) const REGISTERED: Registered = Registered {
    name: "interrupts",
    about: "Interrupts summed over processors, from `/proc/interrupts`, and soft interrupts, from `/proc/softirqs`, where those for \
            packets are recorded for each processor too.",
    metrics: METRICS,
    make: |config| {
        let mut instance = String::new();
        let files = Files::new(&REGISTERED)
            .and(in_proc(config, "interrupts"), move |text, out| interrupts(text, &mut instance, out))
            .and(in_proc(config, "softirqs"), |text, out| softirqs(text, out));
        Box::new(files)
    },
};

/// Parses the text of `/proc/interrupts`: a header with the processors, then a row for each interrupt. `scratch` is memory
/// that is used again and again.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn interrupts(text: &str, scratch: &mut String, out: &mut impl Sink) -> Result<(), Malformed> {
    let processors = text.lines().next().map_or(0, |header| words(header).count());
    lines(text, 1, |line| interrupt(line, processors, scratch, out))
}

/// ` 36:   0   542387 PCI-MSIX-0000:00:02.0   1-edge   virtio1-req.0`, or `LOC:  1  2   Local timer interrupts`.
fn interrupt(line: &str, processors: usize, scratch: &mut String, out: &mut impl Sink) -> Option<()> {
    let (name, mut rest) = line.split_once(':')?;
    let name = name.trim_ascii();
    let mut sum = 0.0;
    for at in 0..processors {
        // Some (ERR, MIS) are not counted by processor.
        let Some((value, after)) = word(rest) else {
            if at == 0 {
                return None;
            }
            break;
        };
        sum += number(value)?;
        rest = after;
    }
    scratch.clear();
    scratch.push_str(name);
    // The device is the last word; what abbreviations mean needs no saying in each name.
    if name.bytes().all(|byte| byte.is_ascii_digit())
        && let Some(device) = rest.trim_ascii_end().rsplit(' ').next().filter(|device| !device.is_empty())
    {
        scratch.push(' ');
        scratch.push_str(device);
    }
    out.put(INTERRUPTS.metric(), scratch, sum);
    Some(())
}

/// Parses the text of `/proc/softirqs`.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn softirqs(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    // Processors that are offline have no column.
    let header = text.lines().next().unwrap_or_default();
    lines(text, 1, |line| softirq(line, header, out))
}

fn softirq(line: &str, header: &str, out: &mut impl Sink) -> Option<()> {
    let (name, rest) = line.split_once(':')?;
    let name = name.trim_ascii();
    let mut sum = 0.0;
    for (processor, value) in words(header).zip(words(rest)) {
        let (processor, value) = (processor.strip_prefix("CPU")?, number(value)?);
        sum += value;
        if name == "NET_RX" {
            out.put(NET_RX.metric(), processor, value);
        }
    }
    out.put(SOFTIRQS.metric(), name, sum);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::Values;

    #[test]
    fn interrupts_are_summed_and_named() {
        let values = Values::of(|out| {
            interrupts(include_str!("interrupts/linux-4.18-interrupts.txt"), &mut String::new(), out)
        });
        let names: Vec<_> = values.0.iter().map(|value| (value.1.as_str(), value.4)).collect();
        let expected = [
            ("0 timer", 40.0),
            ("8 rtc0", 1.0),
            ("16 uhci_hcd:usb2", 0.0),
            ("130 eth0-TxRx-0", 600_000.0),
            ("131 524289-edge", 12.0),
            ("NMI", 6.0),
            ("LOC", 6_000_000.0),
            ("ERR", 4.0),
            ("MIS", 0.0),
        ];
        assert_eq!(names, expected);
        let arm = include_str!("interrupts/linux-6.1-arm64-interrupts.txt");
        let values = Values::of(|out| interrupts(arm, &mut String::new(), out));
        assert_eq!(values.get("interrupts", "47 nvme0q0"), Some(12.0));
        assert_eq!(values.get("interrupts", "IPI0"), Some(3000.0));
        let recorded = include_str!("interrupts/linux-6.18-interrupts.txt");
        let values = Values::of(|out| interrupts(recorded, &mut String::new(), out));
        assert_eq!(values.0.len(), recorded.lines().count() - 1);
        assert!(values.get("interrupts", "36 virtio1-req.0").unwrap() > 0.0);
    }

    #[test]
    fn soft_interrupts_for_packets_are_kept_by_processor() {
        let values = Values::of(|out| softirqs(include_str!("interrupts/linux-4.18-softirqs.txt"), out));
        values.are_as_listed(&REGISTERED);
        assert_eq!(values.get("softirqs", "NET_RX"), Some(600.0));
        assert_eq!(
            ["0", "1", "2", "3"].map(|cpu| values.get("net_rx", cpu)),
            [Some(100.0), Some(200.0), None, Some(300.0)]
        );
        assert_eq!(values.get("softirqs", "BLOCK"), Some(24.0));
        let recorded = Values::of(|out| softirqs(include_str!("interrupts/linux-6.18-softirqs.txt"), out));
        assert_eq!(recorded.0.len(), 10 + 2);
    }
}
