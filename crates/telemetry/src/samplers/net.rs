//! Network interfaces and protocols: `/proc/net/dev`, `/proc/net/snmp`, `/proc/net/netstat`.

use super::{Files, Registered, Sink};
use crate::sampling::text::{Faults, Malformed, number, signed, words};
use crate::sampling::{Metric, MetricInfo};

const INTERFACE: &str = "interface";
const PROTOCOL: &str = "protocol, named by the kernel: `Tcp`, `TcpExt`, `Ip`, …";

/// What it reads; every other name of the protocols' files is recorded as well.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo::counter("rx_bytes", "B", INTERFACE, "received, with headers of the link"),
    MetricInfo::counter("rx_packets", "1", INTERFACE, "received; merged packets count as one"),
    MetricInfo::counter("rx_errors", "1", INTERFACE, "received with errors"),
    MetricInfo::counter(
        "rx_dropped",
        "1",
        INTERFACE,
        "received and dropped, for lack of memory or of a receiver",
    ),
    MetricInfo::counter("rx_fifo", "1", INTERFACE, "lost because the device's buffer was full"),
    MetricInfo::counter("rx_frame", "1", INTERFACE, "received with a wrong frame"),
    MetricInfo::counter("rx_compressed", "1", INTERFACE, "received compressed"),
    MetricInfo::counter("rx_multicast", "1", INTERFACE, "multicast packets received"),
    MetricInfo::counter("tx_bytes", "B", INTERFACE, "sent, with headers of the link"),
    MetricInfo::counter(
        "tx_packets",
        "1",
        INTERFACE,
        "sent; a packet that the device segments counts as one",
    ),
    MetricInfo::counter("tx_errors", "1", INTERFACE, "not sent because of errors"),
    MetricInfo::counter("tx_dropped", "1", INTERFACE, "dropped before they were sent"),
    MetricInfo::counter("tx_fifo", "1", INTERFACE, "lost in the device"),
    MetricInfo::counter("tx_collisions", "1", INTERFACE, "collisions"),
    MetricInfo::counter("tx_carrier", "1", INTERFACE, "not sent because there was no link"),
    MetricInfo::counter("tx_compressed", "1", INTERFACE, "sent compressed"),
    MetricInfo::counter("InSegs", "1", PROTOCOL, "`Tcp`: segments received"),
    MetricInfo::counter("OutSegs", "1", PROTOCOL, "`Tcp`: segments sent, without retransmissions"),
    MetricInfo::counter("RetransSegs", "1", PROTOCOL, "`Tcp`: segments retransmitted"),
    MetricInfo::gauge("CurrEstab", "1", PROTOCOL, "`Tcp`: connections now"),
    MetricInfo::counter("TCPTimeouts", "1", PROTOCOL, "`TcpExt`: retransmission timeouts"),
    MetricInfo::counter(
        "TCPLostRetransmit",
        "1",
        PROTOCOL,
        "`TcpExt`: retransmitted segments that were lost again",
    ),
    MetricInfo::counter("TCPFastRetrans", "1", PROTOCOL, "`TcpExt`: segments retransmitted before a timeout"),
    MetricInfo::counter(
        "ListenOverflows",
        "1",
        PROTOCOL,
        "`TcpExt`: connections refused because the listen queue was full",
    ),
    MetricInfo::counter(
        "TCPBacklogDrop",
        "1",
        PROTOCOL,
        "`TcpExt`: segments dropped because a socket was busy",
    ),
    MetricInfo::counter("TCPRcvCollapsed", "1", PROTOCOL, "`TcpExt`: segments merged for lack of memory"),
];
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
        let files = Files::new(&REGISTERED)
            .file(directory.join("dev"), "is /proc mounted?", |text, out| interfaces(text, out))
            .file(directory.join("snmp"), "this kernel has no IPv4", |text, out| protocols(text, out))
            .file(directory.join("netstat"), "this kernel has no IPv4", |text, out| protocols(text, out));
        Box::new(files)
    },
};

/// Parses the text of `/proc/net/dev`: two lines of headers, then a row for each interface.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn interfaces(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    let mut faults = Faults::default();
    for (at, line) in text.lines().enumerate().skip(2) {
        faults.check(at, line, interface(line, out));
    }
    faults.finish()
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
