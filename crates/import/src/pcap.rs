//! Captures of a network (pcap, pcapng) as traces: the NFS calls in them, in the form of `strace -f -ttt -T`.
//!
//! Packets become streams, streams RPC records, a call and its reply an exchange, and exchanges calls on paths below
//! [`ROOT`]. NFS is recognised by what a stream contains, on any port. Names of the network are only ever text of the
//! trace: what would lead out of the tree is left out and counted.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::IpAddr;

use serde::Serialize;

mod exchange;
mod file;
mod operation;
mod stream;
mod trace;

use exchange::Exchanges;
use stream::{End, Streams};

/// The directory below which all paths of the trace are.
pub const ROOT: &str = "/nfs";

/// Why a capture could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not a capture.
    #[error("it is neither pcap nor pcapng; record with `tcpdump -s 0 -w FILE`")]
    NoCapture,
    /// There are no NFS calls with replies in it.
    #[error(
        "none of its {packets} packets belongs to an NFSv3 or NFSv4 call over TCP that was answered; capture whole packets \
         (`tcpdump -s 0`) of both directions, without encryption"
    )]
    NoNfs {
        /// How many there are.
        packets: u64,
    },
}

/// What was in a capture.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// Packets of the file.
    pub packets: u64,
    /// NFS calls that were answered.
    pub calls: u64,
    /// What could not be used: how many, by what it is.
    pub unusable: BTreeMap<&'static str, u64>,
    /// Calls that are no operation on a file, or cannot be replayed, by name.
    pub left_out: BTreeMap<String, u64>,
}

impl Captured {
    fn unusable(&mut self, what: &'static str, count: u64) {
        if count > 0 {
            *self.unusable.entry(what).or_default() += count;
        }
    }
}

/// An NFS call and its result, in the order of the calls.
#[derive(Debug)]
struct Exchange {
    client: IpAddr,
    server: IpAddr,
    at_ns: u64,
    took_ns: u64,
    operations: Vec<operation::Operation>,
}

/// Reads a capture and writes the trace of its NFS calls.
///
/// # Errors
/// See [`CaptureError`].
pub fn convert(capture: impl Read, trace: &mut impl Write) -> Result<Captured, CaptureError> {
    let mut captured = Captured::default();
    let mut streams = Streams::default();
    let mut exchanges = Exchanges::default();
    let mut reader = file::Reader::new(capture)?;
    let emit = &mut |(from, to): (End, End), at_ns: u64, record: &[u8], captured: &mut Captured| {
        exchanges.record(from, to, at_ns, record, captured);
    };
    while let Some(packet) = reader.next(&mut captured)? {
        captured.packets += 1;
        match stream::segment(packet.link, &packet.data) {
            Ok(segment) => streams.take(&segment, packet.at_ns, &mut captured, emit),
            Err(why) => captured.unusable(why, 1),
        }
    }
    streams.end(&mut captured, emit);
    let exchanges = exchanges.end(&mut captured);
    if exchanges.is_empty() {
        return Err(CaptureError::NoNfs { packets: captured.packets });
    }
    captured.calls = exchanges.len() as u64;
    trace::write(&exchanges, trace, &mut captured)?;
    Ok(captured)
}

#[cfg(test)]
mod tests;
