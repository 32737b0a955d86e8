//! Ethernet frames as a TAP device gives them: how many there are in one, how long they take on a wire, and for whom.
//!
//! With offloads the kernel hands over segments of a flow as one large frame, which a network card would cut: the
//! header in front of it (`struct virtio_net_hdr`, in the byte order of the host) says how.

use super::flow::Flow;
use crate::namespace::MacAddress;

/// Bytes of the header before every frame.
pub(crate) const HEADER: usize = 10;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Bytes that a frame takes on the wire besides: preamble (8), checksum (4), gap (12).
const BESIDES: u64 = 24;
/// The shortest frame on a wire, without those.
const SHORTEST: u64 = 60;

/// What a frame read from a TAP device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) to: MacAddress,
    /// Frames on a wire.
    pub(crate) frames: u64,
    /// Bytes of them, with Ethernet headers and without what a wire adds.
    pub(crate) bytes: u64,
    /// Parsed where it is needed, see [`Flow::parse`].
    pub(crate) flow: Flow,
}

impl Frame {
    /// `None` when there is no whole Ethernet header.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let (header, frame) = data.split_at_checked(HEADER)?;
        let to = MacAddress(*frame.first_chunk()?);
        if frame.len() < ETHERNET {
            return None;
        }
        let number = |at: usize| u64::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        let (kind, headers, segment) = (header[1], number(2), number(4));
        let (length, flow) = (frame.len() as u64, Flow::default());
        let content = length.saturating_sub(headers);
        if kind == 0 || segment == 0 || content <= segment {
            return Some(Self { to, frames: 1, bytes: length, flow });
        }
        let frames = content.div_ceil(segment);
        Some(Self { to, frames, bytes: length + (frames - 1) * headers, flow })
    }

    /// Bytes for the time of which they occupy a wire.
    pub(crate) fn on_wire(&self) -> u64 {
        self.bytes.max(self.frames * SHORTEST) + self.frames * BESIDES
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, headers: u16, segment: u16, length: usize) -> Vec<u8> {
        let mut data = vec![0, kind];
        data.extend(headers.to_ne_bytes());
        data.extend(segment.to_ne_bytes());
        data.extend([0; 4]);
        data.extend((0..length).map(|i| i as u8));
        data
    }

    #[test]
    fn plain_frames_are_one() {
        let found = Frame::parse(&frame(0, 0, 0, 1514)).unwrap();
        let to = MacAddress([0, 1, 2, 3, 4, 5]);
        assert_eq!(found, Frame { to, frames: 1, bytes: 1514, flow: Flow::default() });
        assert_eq!(found.on_wire(), 1538);
        assert_eq!(Frame::parse(&frame(0, 0, 0, 42)).unwrap().on_wire(), 84);
    }

    #[test]
    fn large_frames_count_as_a_network_card_would_cut_them() {
        // Ethernet, IP and TCP with timestamps: 66 bytes; segments of 1448.
        let found = Frame::parse(&frame(1, 66, 1448, 66 + 3 * 1448)).unwrap();
        assert_eq!((found.frames, found.bytes, found.on_wire()), (3, 3 * 1514, 3 * 1538));
        let found = Frame::parse(&frame(1, 66, 1448, 66 + 3 * 1448 + 1)).unwrap();
        assert_eq!((found.frames, found.bytes), (4, 3 * 1514 + 67));
        // One segment marked as large is one.
        assert_eq!(Frame::parse(&frame(1, 66, 1448, 1000)).unwrap().frames, 1);
    }

    #[test]
    fn what_is_no_frame_is_none() {
        assert_eq!(Frame::parse(&[]), None);
        assert_eq!(Frame::parse(&frame(0, 0, 0, 13)), None);
        assert!(Frame::parse(&frame(0, 0, 0, 14)).is_some());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_frame_or_none(data in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(frame) = Frame::parse(&data) {
                prop_assert!(frame.frames >= 1 && frame.bytes >= data.len() as u64 - HEADER as u64);
                prop_assert!(frame.on_wire() >= 84);
            }
        }
    }
}
