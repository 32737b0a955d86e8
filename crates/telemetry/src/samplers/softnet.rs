//! Packets taken in by each processor: `/proc/net/softnet_stat`.

use super::{Files, Registered, Sink, in_proc};
use crate::sampling::text::{Malformed, lines, words};
use crate::sampling::{MetricInfo, metrics};

/// What it reads.
pub const METRICS: &[MetricInfo] = &metrics::<6>(include_str!("metrics/softnet.tsv"));
/// Their columns.
const COLUMNS: [usize; 6] = [0, 1, 2, 9, 10, 11];
/// The column with the processor's number; before Linux 5.10 rows are those of the processors online, in order.
const PROCESSOR: usize = 12;

pub(crate) const REGISTERED: Registered = Registered {
    name: "softnet",
    about: "Received packets by processor, from `/proc/net/softnet_stat`.",
    metrics: METRICS,
    make: |config| {
        Box::new(
            Files::new(&REGISTERED).and(in_proc(config, "net/softnet_stat"), |text, out| parse(text, out)),
        )
    },
};

/// Parses the text of `/proc/net/softnet_stat`: a row of hexadecimal numbers for each processor.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    let mut rows = 0_u32..;
    lines(text, 0, |line| row(rows.next()?, line, out))
}

fn row(at: u32, line: &str, out: &mut impl Sink) -> Option<()> {
    // The kernel writes 13 columns at most 15; more are left out.
    let mut columns = [0_u32; 16];
    let mut found = 0;
    for (column, word) in columns.iter_mut().zip(words(line)) {
        *column = u32::from_str_radix(word, 16).ok()?;
        found += 1;
    }
    let columns = columns.get(..found)?;
    let mut digits = [0; 10];
    let processor = decimal(columns.get(PROCESSOR).copied().unwrap_or(at), &mut digits);
    for (metric, column) in METRICS.iter().zip(COLUMNS) {
        if let Some(value) = columns.get(column) {
            out.put(metric.metric(), processor, f64::from(*value));
        }
    }
    // Linux 2.6 had nine.
    (found >= 9).then_some(())
}

/// A number in decimal digits, without allocation.
pub(super) fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &str {
    let mut start = digits.len();
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        start -= 1;
        if number == 0 {
            break;
        }
    }
    digits.get(start..).and_then(|digits| std::str::from_utf8(digits).ok()).unwrap_or_default()
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
    fn kernels_have_9_to_15_columns() {
        let old = parsed(include_str!("softnet/linux-2.6.32.txt"));
        assert_eq!(old.row("0", ["processed", "dropped", "time_squeeze"]), [1000.0, 1.0, 2.0]);
        assert_eq!((old.get("received_rps", "0"), old.get("processed", "1")), (None, Some(2000.0)));
        let newer = parsed(include_str!("softnet/linux-4.18.txt"));
        assert_eq!(newer.row("0", ["received_rps", "flow_limit"]), [4.0, 5.0]);
        assert_eq!((newer.get("flow_limit", "1"), newer.get("backlog", "1")), (Some(0.0), None));
        // Processors 1 and 2 are offline.
        let newest = parsed(include_str!("softnet/linux-5.10.txt"));
        assert_eq!(newest.row("3", ["processed", "backlog"]), [4_294_967_280.0, 0.0]);
        assert_eq!((newest.get("backlog", "0"), newest.get("processed", "1")), (Some(6.0), None));
        let recorded = parsed(include_str!("softnet/linux-6.18.txt"));
        assert_eq!(recorded.0.len(), 2 * METRICS.len());
    }

    #[test]
    fn decimal_digits_are_those_of_the_standard_library() {
        for number in [0, 1, 9, 10, 99, 12_345, u32::MAX] {
            assert_eq!(decimal(number, &mut [0; 10]), number.to_string());
        }
    }

    #[test]
    fn what_is_not_hexadecimal_is_a_fault() {
        let mut values = Values::default();
        assert_eq!(parse("0 0 0 0 0 0 0 0 0\n0 x\n", &mut values).unwrap_err().line, 2);
        assert_eq!(values.get("processed", "0"), Some(0.0));
    }
}
