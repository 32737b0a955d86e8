//! The lines of one mount, without making anything of them but values.

use std::fmt::Write;

use super::METRICS;
use crate::mountstats::Numbers;
use crate::sampling::text::{Malformed, lines, number, signed, words};
use crate::sampling::{Metric, Sink};

/// Columns of an operation that have names.
const COLUMNS: usize = 9;
/// Where they begin in the list of metrics.
const FIRST_COLUMN: usize = 43;

/// Parses the part of a mount. Instances begin with `mount`; `scratch` is memory that is used again and again.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, mount: &str, scratch: &mut String, out: &mut impl Sink) -> Result<(), Malformed> {
    let (mut operations, mut transports) = (false, 0);
    lines(text, 1, |line| {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Some(());
        }
        if line == "per-op statistics" {
            operations = true;
            return Some(());
        }
        match line.split_once(':')? {
            (key, value) if operations => operation(key, value, mount, scratch, out),
            ("xprt", value) => {
                transports += 1;
                transport(transports - 1, value, mount, scratch, out)
            }
            (key, value) => field(key, value, mount, scratch, out),
        }
    })
}

fn operation(name: &str, values: &str, mount: &str, scratch: &mut String, out: &mut impl Sink) -> Option<()> {
    // The kernel writes `NAME: 1 2 …`; it has had eight columns at least.
    scratch.clear();
    scratch.push_str(mount);
    scratch.push(' ');
    scratch.push_str(name);
    let mut found = 0;
    for (at, value) in words(values).enumerate() {
        let value = number(value)?;
        found += 1;
        match METRICS.get(FIRST_COLUMN + at).filter(|_| at < COLUMNS) {
            Some(metric) => {
                let scale = if metric.unit == "ns" { 1e6 } else { 1.0 };
                out.put(metric.metric(), scratch, value * scale);
            }
            None => {
                // Columns of kernels to come.
                let metric = format!("column.{at}");
                out.put(Metric::counter(&metric, "1"), scratch, value);
            }
        }
    }
    (found >= 8).then_some(())
}

fn transport(
    number: usize,
    value: &str,
    mount: &str,
    scratch: &mut String,
    out: &mut impl Sink,
) -> Option<()> {
    let value = value.trim_ascii();
    let (kind, values) = value.split_once(' ').unwrap_or((value, ""));
    scratch.clear();
    let _ = write!(scratch, "{mount} xprt {number} {kind}");
    numbers("xprt", Numbers::transport(kind), values, scratch, out)
}

fn field(key: &str, value: &str, mount: &str, scratch: &mut String, out: &mut impl Sink) -> Option<()> {
    match key {
        "age" => out.put(listed("age"), mount, number(value.trim_ascii())?),
        "events" => numbers(key, Numbers::EVENTS, value, mount, out)?,
        "bytes" => numbers(key, Numbers::BYTES, value, mount, out)?,
        "fsc" => numbers(key, Numbers::CACHE, value, mount, out)?,
        "nfsv4" => {
            for (name, value) in value.split(',').filter_map(|field| field.split_once('=')) {
                if matches!(name, "lease_time" | "lease_expired") {
                    out.put(listed(name), mount, number(value)?);
                }
            }
        }
        // What it is, not what it did.
        "opts" | "impl_id" | "caps" | "sec" | "RPC iostats version" => {}
        // Lines of kernels to come, if they are all numbers.
        _ if words(value).all(|word| signed(word).is_some()) => {
            for (at, value) in words(value).enumerate() {
                scratch.clear();
                let _ = write!(scratch, "{key}.{at}");
                out.put(Metric::counter(scratch, "1"), mount, signed(value)?);
            }
        }
        _ => {}
    }
    Some(())
}

/// A line of numbers, those without name by their places.
fn numbers(
    key: &str,
    names: &[&'static str],
    values: &str,
    instance: &str,
    out: &mut impl Sink,
) -> Option<()> {
    for (at, value) in words(values).enumerate() {
        let value = signed(value)?;
        match names.get(at) {
            Some(name) => out.put(listed(name), instance, value),
            None => {
                let metric = format!("{key}.{at}");
                out.put(Metric::counter(&metric, "1"), instance, value);
            }
        }
    }
    Some(())
}

/// A metric of the list; numbers of rare transports are not in it.
fn listed(name: &str) -> Metric<'_> {
    match METRICS.iter().find(|metric| metric.name == name) {
        Some(metric) => metric.metric(),
        None => Metric::counter(name, "1"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_operations_are_where_they_are_looked_for() {
        let columns: Vec<_> =
            METRICS.iter().skip(FIRST_COLUMN).take(COLUMNS).map(|metric| metric.name).collect();
        let expected =
            "ops transmissions timeouts bytes_sent bytes_received queue_time rtt_time execute_time errors";
        assert_eq!(columns.join(" "), expected);
    }
}
