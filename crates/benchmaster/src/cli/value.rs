//! Values of options: what is written, and what it means.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use benchmaster_netem::interface::Discipline;
use benchmaster_record::nfs::NfsVersion;
use benchmaster_units::{Bandwidth, ByteSize, TimeSpan, UnitError};

/// `1Gbit`, `1Gbit/s` or `20MB/s`, as bit/s.
pub(super) fn bits_per_second(text: &str) -> Result<u64, String> {
    let text = if text.ends_with("bit") { format!("{text}/s") } else { text.to_owned() };
    let bandwidth: Bandwidth = text.parse().map_err(|error: UnitError| error.to_string())?;
    Ok((bandwidth.0 * 8.0).round() as u64)
}

/// `fifo`, `sfq` or `fq`.
pub(super) fn discipline(text: &str) -> Result<Discipline, String> {
    let found = Discipline::ALL.into_iter().find(|discipline| discipline.name() == text);
    found.ok_or_else(|| format!("write {}", Discipline::ALL.map(Discipline::name).join(", ")))
}

/// `0.1%` or `0.001`.
pub(super) fn part(text: &str) -> Result<f64, String> {
    let (number, whole) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let part = number.trim().parse::<f64>().ok().map(|number| number / whole);
    part.filter(|part| (0.0..=1.0).contains(part)).ok_or_else(|| "write a part such as 0.1% or 0.001".into())
}

/// A number strictly between 0 and 1.
pub(super) fn level(text: &str) -> Result<f64, String> {
    let level = text.parse::<f64>().ok().filter(|level| *level > 0.0 && *level < 1.0);
    level.ok_or_else(|| "write a number between 0 and 1, such as 0.95 or 0.05".into())
}

/// `5` or `2..60`, both ends included.
pub(super) fn flows(text: &str) -> Result<(u32, u32), String> {
    let most = benchmaster_stats::hash_cast::MAX_FLOWS;
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| (1..=most).contains(n));
    let range = match text.split_once("..") {
        Some((from, to)) => {
            number(from).zip(number(to.trim_start_matches('='))).filter(|(from, to)| from <= to)
        }
        None => number(text).map(|n| (n, n)),
    };
    range.ok_or_else(|| format!("write a number from 1 to {most}, or a range such as 2..60"))
}

pub(super) fn listen_address(text: &str) -> Result<SocketAddr, String> {
    socket_address(text, 2049)
}

pub(super) fn portmap_address(text: &str) -> Result<SocketAddr, String> {
    socket_address(text, 111)
}

pub(super) fn relay_address(text: &str) -> Result<SocketAddr, String> {
    socket_address(text, 0)
}

/// The first address of HOST:PORT.
pub(super) fn far_end_address(text: &str) -> Result<SocketAddr, String> {
    if !text.contains(':') {
        return Err("write HOST:PORT; the far end prints its port when it starts".into());
    }
    first(text.to_socket_addrs())
}

/// A version of NFS that scenarios can be explored with.
pub(super) fn version(text: &str) -> Result<NfsVersion, String> {
    let version = NfsVersion::from_name(text).filter(|version| *version != NfsVersion::V2);
    version.ok_or_else(|| "write 3, 4.0, 4.1 or 4.2".into())
}

/// From 100 ms to an hour.
pub(super) fn watch_interval(text: &str) -> Result<TimeSpan, String> {
    let span: TimeSpan = text.parse().map_err(|error: UnitError| error.to_string())?;
    let right = (Duration::from_millis(100)..=Duration::from_secs(3600)).contains(&span.0);
    right.then_some(span).ok_or_else(|| "write 100ms to 1h".into())
}

/// Where counters go that Prometheus reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prometheus {
    Printed,
    Served(SocketAddr),
}

pub(super) fn prometheus(text: &str) -> Result<Prometheus, String> {
    if text == "-" { Ok(Prometheus::Printed) } else { socket_address(text, 12049).map(Prometheus::Served) }
}

/// The first address of HOST or HOST:PORT.
pub(super) fn target_address(text: &str) -> Result<SocketAddr, String> {
    const PORT: u16 = 2049;
    match text.parse::<IpAddr>() {
        Ok(ip) => Ok(SocketAddr::new(ip, PORT)),
        Err(_) if text.contains(':') => first(text.to_socket_addrs()),
        Err(_) => first((text, PORT).to_socket_addrs()),
    }
}

fn first(found: io::Result<impl Iterator<Item = SocketAddr>>) -> Result<SocketAddr, String> {
    let mut found = found.map_err(|error| error.to_string())?;
    found.next().ok_or_else(|| "the host has no address".into())
}

/// ADDRESS, PORT or ADDRESS:PORT.
pub(super) fn socket_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let address = text.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, port));
    let only_port = || text.parse::<u16>().map(|port| SocketAddr::new(loopback, port));
    text.parse()
        .or(address)
        .or_else(|_| only_port())
        .map_err(|_| format!("write an address such as 127.0.0.1, [::1]:{port}, or a port"))
}

pub(super) fn max_io(text: &str) -> Result<ByteSize, String> {
    let size = text.parse::<ByteSize>().map_err(|error| error.to_string())?;
    let right = (4096..=16 << 20).contains(&size.bytes()) && size.bytes() % 4096 == 0;
    right.then_some(size).ok_or_else(|| "write a multiple of 4KiB from 4KiB to 16MiB".into())
}

/// What to log.
pub(super) fn log_level(text: &str) -> Result<log::LevelFilter, &'static str> {
    text.parse().map_err(|_| "expected off, error, warn, info, debug, or trace")
}
