//! Network interfaces and protocols: `/proc/net/dev`, `/proc/net/snmp`, `/proc/net/netstat`.

use super::{Files, Registered, Sink, Source, in_proc};
use crate::sampling::text::{Faults, Malformed, lines, number, signed, words};
use crate::sampling::{Metric, MetricInfo, metrics};

/// What it reads; every other name of the protocols' files is recorded as well.
pub const METRICS: &[MetricInfo] = &metrics::<26>(include_str!("metrics/net.tsv"));
/// How many of them are columns of `/proc/net/dev`.
const COLUMNS: usize = 16;
/// Names of the protocols' files that are no counters.
const STATES: [&str; 8] =
    ["Forwarding", "DefaultTTL", "RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn", "CurrEstab", "ReasmTimeout"];

pub(crate) const REGISTERED: Registered = Registered {
    name: "net",
    about: "Network interfaces, from `/proc/net/dev`, and protocols, from `/proc/net/snmp` and `/proc/net/netstat`, of this process's \
            network namespace. All names of the protocols' files are recorded, also those not listed here; where two protocols use \
            the same name, the instance tells them apart. MPTCP and UDP-Lite are left out.",
    metrics: METRICS,
    make: |config| {
        let directory = config.places.proc.join("net");
        let protocol_file = |name| Source::new(directory.join(name), "this kernel has no IPv4");
        let files = Files::new(&REGISTERED)
            .and(in_proc(config, "net/dev"), |text, out| interfaces(text, out))
            .and(protocol_file("snmp"), |text, out| protocols(text, out))
            .and(protocol_file("netstat"), |text, out| protocols(text, out));
        Box::new(files)
    },
};

/// Parses the text of `/proc/net/dev`: two lines of headers, then a row for each interface.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn interfaces(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 2, |line| interface(line, out))
}

fn interface(line: &str, out: &mut impl Sink) -> Option<()> {
    // Names of aliases contain colons, and nothing need stand between the last one and the number.
    let (name, rest) = line.rsplit_once(':')?;
    let name = name.trim_ascii();
    words(rest).nth(COLUMNS - 1)?;
    for (metric, value) in METRICS.iter().take(COLUMNS).zip(words(rest)) {
        out.put(metric.metric(), name, number(value)?);
    }
    Some(())
}

/// Parses the text of `/proc/net/snmp` or `/proc/net/netstat`: pairs of lines, one with names and one with their values.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn protocols(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    let mut faults = Faults::default();
    let mut lines = text.lines().enumerate();
    while let (Some((at, names)), Some((_, values))) = (lines.next(), lines.next()) {
        // A quarter of all numbers, of protocols that NFS does not use.
        if names.starts_with("MPTcpExt:") || names.starts_with("UdpLite:") {
            continue;
        }
        faults.check(at, names, protocol(names, values, out));
    }
    faults.finish()
}

fn protocol(names: &str, values: &str, out: &mut impl Sink) -> Option<()> {
    let ((protocol, names), (same, values)) = (names.split_once(':')?, values.split_once(':')?);
    let (mut names, mut values) = (words(names), words(values));
    if protocol != same {
        return None;
    }
    loop {
        match (names.next(), values.next()) {
            (Some(name), Some(value)) => {
                let state = STATES.contains(&name);
                let metric = if state { Metric::gauge(name, "1") } else { Metric::counter(name, "1") };
                out.put(metric, protocol, signed(value)?);
            }
            (None, None) => return Some(()),
            // More of one than of the other.
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::Values;

    #[test]
    fn interfaces_have_sixteen_columns() {
        let values = Values::of(|out| interfaces(include_str!("net/linux-4.18-dev.txt"), out));
        values.are_as_listed(&REGISTERED);
        let columns = METRICS.iter().take(COLUMNS).map(|metric| values.get(metric.name, "eth0").unwrap());
        let expected = [u64::MAX as f64, 200.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let sent = [4000.0, 300.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0];
        assert_eq!(columns.collect::<Vec<_>>(), [expected, sent].concat());
        assert_eq!(values.row("eth0:1", ["rx_bytes", "tx_bytes"]), [5.0, 6.0]);
        let recorded = Values::of(|out| interfaces(include_str!("net/linux-6.18-dev.txt"), out));
        assert!(recorded.get("rx_bytes", "lo") == recorded.get("tx_bytes", "lo"));
        assert_eq!(recorded.0.len(), 4 * COLUMNS);
    }

    #[test]
    fn protocols_are_told_apart() {
        let values = Values::of(|out| protocols(include_str!("net/linux-4.18-snmp.txt"), out));
        values.are_as_listed(&REGISTERED);
        assert_eq!(
            values.row("Tcp", ["InSegs", "RetransSegs", "MaxConn", "InErrs"]),
            [70_000.0, 90.0, -1.0, 1.0]
        );
        assert_eq!(values.get("InErrors", "Icmp"), Some(0.0));
        let values = Values::of(|out| protocols(include_str!("net/linux-4.18-netstat.txt"), out));
        assert_eq!(values.row("TcpExt", ["ListenOverflows", "TCPTimeouts"]), [2.0, 7.0]);
        for text in [include_str!("net/linux-6.18-snmp.txt"), include_str!("net/linux-6.18-netstat.txt")] {
            let values = Values::of(|out| protocols(text, out));
            values.are_as_listed(&REGISTERED);
            // A name and a number each, but for the protocol's.
            let lines =
                text.lines().filter(|line| !line.starts_with("MPTcp") && !line.starts_with("UdpLite"));
            let words =
                lines.flat_map(str::split_ascii_whitespace).filter(|word| !word.ends_with(':')).count();
            assert_eq!(values.0.len() * 2, words);
        }
    }

    #[test]
    fn pairs_that_do_not_fit_are_faults() {
        for broken in ["Tcp: A B\nTcp: 1\n", "Tcp: A\nUdp: 1\n", "Tcp: A\nTcp: 1 2\n", "Tcp A\nTcp 1\n"] {
            assert_eq!(protocols(broken, &mut Values::default()).unwrap_err().line, 1, "{broken}");
        }
    }
}
