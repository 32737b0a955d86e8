//! What the kernel says of a TCP connection: `getsockopt(TCP_INFO)`.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One reading of `struct tcp_info` (`linux/tcp.h`). Fields that this kernel does not have are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TcpSample {
    /// Microseconds since the flow began.
    pub at_us: u64,
    /// Congestion window, in segments.
    pub cwnd_segments: u64,
    /// Largest segment sent, in bytes.
    pub mss_bytes: u64,
    /// Smoothed round trip, in microseconds.
    pub rtt_us: u64,
    /// Its mean deviation, in microseconds.
    pub rttvar_us: u64,
    /// Segments sent again since the connection was opened.
    pub retransmits: u64,
    /// Shortest round trip of the last minutes, in microseconds (Linux 4.6).
    pub min_rtt_us: Option<u64>,
    /// Bytes per second that the receiver acknowledged lately (Linux 4.9).
    pub delivery_rate: Option<u64>,
    /// Bytes acknowledged since the connection was opened (Linux 4.1).
    pub bytes_acked: Option<u64>,
    /// Microseconds in which there was something to send (Linux 4.10);
    pub busy_us: Option<u64>,
    /// of these, when the receiver's window was what limited,
    pub receive_window_limited_us: Option<u64>,
    /// and when the send buffer was.
    pub send_buffer_limited_us: Option<u64>,
}

/// Bytes of the structure that are of interest; newer kernels have more.
const BYTES: usize = 256;

impl TcpSample {
    /// Reads the state of a connection that began `at` ago.
    pub(crate) fn read(socket: &TcpStream, at: Duration) -> io::Result<Self> {
        let mut bytes = [0; BYTES];
        let filled = read(socket, &mut bytes)?;
        Self::parse(bytes.get(..filled).unwrap_or(&bytes), at)
            .ok_or_else(|| io::Error::other("the kernel's TCP_INFO is shorter than that of Linux 2.6"))
    }

    /// Fields by their offsets in the structure, which never change: kernels append.
    fn parse(info: &[u8], at: Duration) -> Option<Self> {
        let word = |offset: usize| {
            info.get(offset..)?.first_chunk().map(|bytes| u64::from(u32::from_ne_bytes(*bytes)))
        };
        let double =
            |offset: usize| info.get(offset..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes));
        Some(Self {
            at_us: u64::try_from(at.as_micros()).unwrap_or(u64::MAX),
            mss_bytes: word(16)?,
            rtt_us: word(68)?,
            rttvar_us: word(72)?,
            cwnd_segments: word(80)?,
            retransmits: word(100)?,
            bytes_acked: double(120),
            // All ones before the first measurement.
            min_rtt_us: word(148).filter(|rtt| *rtt != u64::from(u32::MAX)),
            delivery_rate: double(160),
            busy_us: double(168),
            receive_window_limited_us: double(176),
            send_buffer_limited_us: double(184),
        })
    }
}

/// Fills the front of `bytes`; gives how much the kernel knows.
#[allow(unsafe_code, reason = "neither the standard library nor rustix reads TCP_INFO")]
fn read(socket: &TcpStream, bytes: &mut [u8; BYTES]) -> io::Result<usize> {
    let mut length = BYTES as libc::socklen_t;
    // SAFETY: the descriptor is open while `socket` is borrowed; the kernel writes at most `length` bytes, as many as
    // the buffer has, and puts into `length` how many it wrote. Any bytes are valid in an array of u8.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    match result {
        0 => Ok((length as usize).min(BYTES)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_connection_tells_what_was_acknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let before = TcpSample::read(&client, Duration::ZERO).unwrap();
        client.write_all(&[0; 10_000]).unwrap();
        server.read_exact(&mut [0; 10_000]).unwrap();
        server.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();
        let after = TcpSample::read(&client, Duration::from_millis(3)).unwrap();
        assert_eq!((before.at_us, after.at_us), (0, 3000));
        // Linux counts the SYN in the later reading as in the earlier.
        assert_eq!(after.bytes_acked.unwrap() - before.bytes_acked.unwrap(), 10_000);
        assert!(after.cwnd_segments >= 2 && after.mss_bytes >= 500, "{after:?}");
        assert!(after.rtt_us > 0 && after.min_rtt_us.unwrap() <= 1_000_000, "{after:?}");
        assert_eq!(after.retransmits, 0);
    }

    #[test]
    fn older_kernels_have_fewer_fields() {
        let mut info = [0u8; BYTES];
        info[68..72].copy_from_slice(&170u32.to_ne_bytes());
        info[80..84].copy_from_slice(&1900u32.to_ne_bytes());
        info[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        info[160..168].copy_from_slice(&117_000_000u64.to_ne_bytes());
        let old = TcpSample::parse(&info[..104], Duration::ZERO).unwrap();
        assert_eq!((old.rtt_us, old.cwnd_segments, old.delivery_rate), (170, 1900, None));
        let new = TcpSample::parse(&info, Duration::ZERO).unwrap();
        assert_eq!((new.min_rtt_us, new.delivery_rate), (None, Some(117_000_000)));
        assert_eq!(TcpSample::parse(&info[..103], Duration::ZERO), None);
    }
}
