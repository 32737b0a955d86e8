//! The texts of the kernel's NFS server.

use std::fmt::Write;

use super::METRICS;
use crate::sampling::text::{Malformed, lines, number, only, signed, word, words};
use crate::sampling::{Metric, MetricInfo, Sink};

/// A metric of the list.
pub(super) fn listed(name: &'static str) -> Metric<'static> {
    METRICS.iter().find(|metric| metric.name == name).map_or(Metric::gauge(name, "1"), MetricInfo::metric)
}

/// Names of procedures and operations by their numbers, in the lines of a file. RFC 1094.
const V2: &str = include_str!("../procedures/nfs2.txt");
/// RFC 1813.
const V3: &str = include_str!("../procedures/nfs3.txt");
/// RFC 7530.
const V4: &str = include_str!("../procedures/nfs4.txt");
/// RFC 7530, 8881, 7862 and 8276; those below 3 are no operations.
const OPERATIONS: &str = include_str!("../procedures/nfs4-operations.txt");

/// Names of the numbers of a line; empty for those that say nothing any more.
const LINES: [(&str, &[&str]); 6] = [
    ("rc", &["reply_cache_hits", "reply_cache_misses", "reply_cache_nocache"]),
    // Of five numbers only the first is still counted.
    ("fh", &["stale_handles", "", "", "", ""]),
    ("io", &["read_bytes", "written_bytes"]),
    // The histogram of busy threads has been zero since Linux 2.6.29; `threads` has the number.
    ("th", &["threads", "", "", "", "", "", "", "", "", "", "", ""]),
    ("net", &["packets", "udp_packets", "tcp_packets", "tcp_connections"]),
    ("rpc", &["rpc_calls", "rpc_bad_calls", "rpc_bad_format", "rpc_bad_auth", "rpc_bad_client"]),
];

/// Parses the text of `/proc/net/rpc/nfsd`. `scratch` is memory that is used again and again.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn rpc(text: &str, scratch: &mut String, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| rpc_line(line, scratch, out))
}

fn rpc_line(line: &str, scratch: &mut String, out: &mut impl Sink) -> Option<()> {
    let (key, rest) = word(line)?;
    let calls = match key {
        "proc2" => Some(("v2 ", V2)),
        "proc3" => Some(("v3 ", V3)),
        "proc4" => Some(("v4 ", V4)),
        "proc4ops" => Some(("", OPERATIONS)),
        _ => None,
    };
    if let Some((version, names)) = calls {
        let metric = listed(if version.is_empty() { "operations" } else { "calls" });
        let mut names = names.lines();
        // The first number says how many follow.
        for (at, value) in words(rest).skip(1).enumerate() {
            scratch.clear();
            scratch.push_str(version);
            match names.next() {
                Some("") => continue,
                Some(name) => scratch.push_str(name),
                None => {
                    let _ = write!(scratch, "{at}");
                }
            }
            out.put(metric, scratch, number(value)?);
        }
        return Some(());
    }
    // The read-ahead cache went away with Linux 5.4, and its numbers meant little before.
    if key == "ra" {
        return Some(());
    }
    let names = LINES.iter().find(|(name, _)| *name == key).map_or(&[][..], |(_, names)| names);
    for (at, value) in words(rest).enumerate() {
        match names.get(at) {
            Some(&"") => {}
            Some(name) => out.put(listed(name), "", number(value)?),
            None => {
                // Numbers with a point have been histograms.
                let Some(value) = signed(value) else { continue };
                scratch.clear();
                let _ = write!(scratch, "{key}.{at}");
                out.put(Metric::counter(scratch, "1"), "", value);
            }
        }
    }
    Some(())
}

/// Parses the text of `/proc/fs/nfsd/threads`, a number. It is more exact than that of `/proc/net/rpc/nfsd`, which some
/// kernels do not keep up to date.
///
/// # Errors
/// When it is none.
pub fn threads(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    only(text, number(text.trim_ascii())).map(|threads| out.put(listed("threads"), "", threads))
}

/// Parses the text of `/proc/fs/nfsd/pool_stats`: a header with names, and a row for each pool.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn pools(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    let header = text.lines().next().unwrap_or_default().strip_prefix('#').unwrap_or_default();
    lines(text, 1, |line| pool(header, line, out))
}

fn pool(header: &str, line: &str, out: &mut impl Sink) -> Option<()> {
    let (pool, rest) = word(line)?;
    number(pool)?;
    let (_, names) = word(header)?;
    for (name, value) in words(names).zip(words(rest)) {
        out.put(Metric::counter(name, "1"), pool, number(value)?);
    }
    Some(())
}

/// What stands of a client in `/proc/fs/nfsd/clients/N/info`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Client {
    /// It is confirmed.
    pub confirmed: bool,
    /// It can be called back.
    pub callback_up: bool,
}

/// Parses the text of `info`: lines `key: value`. What an older kernel does not tell is false.
pub fn client(text: &str) -> Client {
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.split_once(": ").filter(|(name, _)| *name == key).map(|found| found.1))
    };
    Client {
        confirmed: value("status") == Some("confirmed"),
        callback_up: value("callback state") == Some("UP"),
    }
}
