//! Messages on byte streams: length-prefixed frames of CBOR (RFC 8949).
//!
//! A frame is the length of its payload (four bytes, big-endian) and the payload: an optional header of a fixed size,
//! then one value in CBOR. The controller, its agents and the machines of a lab all use it.
//!
//! * [`encode`] makes a frame, [`decode`] reads the value of a payload.
//! * [`Decoder`] finds frames in bytes as they arrive, without doing I/O itself.
//! * [`read()`] and [`write()`] are for blocking streams. `read` takes exactly one frame: what follows stays on the stream.
//!
//! The length is checked against a limit before anything is allocated, and buffers grow only with bytes that arrived.

use std::io::{self, ErrorKind, Read, Write};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of the length.
const LENGTH: usize = 4;

/// Why a message cannot be sent or received.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("a message of {length} bytes is larger than the limit of {limit} bytes")]
    TooLarge { length: usize, limit: usize },
    #[error("a message cannot be encoded: {0}")]
    Encode(String),
    #[error("a message of the other side cannot be decoded: {0}")]
    Decode(String),
}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        Self::new(ErrorKind::InvalidData, error)
    }
}

/// Encodes a frame whose payload is `header` and `value`.
///
/// # Errors
/// [`FrameError::TooLarge`] if the payload exceeds `limit` bytes, [`FrameError::Encode`] if the value has no CBOR.
pub fn encode(header: &[u8], value: &impl Serialize, limit: usize) -> Result<Vec<u8>, FrameError> {
    let mut frame = vec![0; LENGTH];
    frame.extend_from_slice(header);
    ciborium::into_writer(value, &mut frame).map_err(|error| FrameError::Encode(error.to_string()))?;
    let length = frame.len() - LENGTH;
    match u32::try_from(length) {
        Ok(prefix) if length <= limit => {
            frame[..LENGTH].copy_from_slice(&prefix.to_be_bytes());
            Ok(frame)
        }
        _ => Err(FrameError::TooLarge { length, limit }),
    }
}

/// Decodes a value that fills `bytes` to their end.
///
/// # Errors
/// [`FrameError::Decode`]
pub fn decode<T: DeserializeOwned>(mut bytes: &[u8]) -> Result<T, FrameError> {
    let value = ciborium::from_reader(&mut bytes).map_err(|error| FrameError::Decode(reason(&error)))?;
    if !bytes.is_empty() {
        return Err(FrameError::Decode(format!("{} bytes follow the value", bytes.len())));
    }
    Ok(value)
}

fn reason(error: &ciborium::de::Error<io::Error>) -> String {
    match error {
        ciborium::de::Error::Io(_) => "it ends within a value".into(),
        ciborium::de::Error::Syntax(offset) => format!("no CBOR at byte {offset}"),
        ciborium::de::Error::Semantic(_, text) => text.clone(),
        ciborium::de::Error::RecursionLimitExceeded => "its values are nested too deeply".into(),
    }
}

/// The payload's length, if it is within the limit.
fn length(prefix: [u8; LENGTH], limit: usize) -> Result<usize, FrameError> {
    let length = usize::try_from(u32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
    if length <= limit { Ok(length) } else { Err(FrameError::TooLarge { length, limit }) }
}

/// Finds frames in bytes as they arrive.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Bytes of the buffer that belong to frames already returned.
    taken: usize,
}

impl Decoder {
    /// Adds bytes that arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The payload of the next frame; `None` until all of it has arrived.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`] if the payload exceeds `limit` bytes. The stream is useless after that.
    pub fn next(&mut self, limit: usize) -> Result<Option<Vec<u8>>, FrameError> {
        let Some((prefix, rest)) = self.buffer[self.taken..].split_first_chunk() else { return Ok(None) };
        let length = length(*prefix, limit)?;
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let payload = payload.to_vec();
        self.taken += LENGTH + length;
        Ok(Some(payload))
    }

    /// Whether part of a frame has arrived.
    pub fn is_within_frame(&self) -> bool {
        self.taken < self.buffer.len()
    }
}

/// Reads the payload of one frame from a blocking stream, and nothing beyond it.
///
/// # Errors
/// Those of the stream; [`ErrorKind::UnexpectedEof`] if it ends before the frame does; [`ErrorKind::InvalidData`] for a
/// payload of more than `limit` bytes.
pub fn read(stream: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut prefix = [0; LENGTH];
    stream.read_exact(&mut prefix).map_err(ended)?;
    read_rest(&prefix, stream, limit)
}

/// Continues [`read`] after the first bytes of the frame arrived by other means. The bytes must not go beyond the frame.
///
/// # Errors
/// As of [`read`].
pub fn read_rest(first: &[u8], stream: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut stream = first.chain(stream);
    let mut prefix = [0; LENGTH];
    stream.read_exact(&mut prefix).map_err(ended)?;
    let length = length(prefix, limit)?;
    let mut payload = Vec::new();
    // The buffer grows with what arrives, not with what the length promises.
    stream.take(length as u64).read_to_end(&mut payload)?;
    if payload.len() < length {
        return Err(ended(ErrorKind::UnexpectedEof.into()));
    }
    Ok(payload)
}

fn ended(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "it was closed before a whole message"),
        _ => error,
    }
}

/// Writes a value as one frame to a blocking stream.
///
/// # Errors
/// Those of the stream; [`ErrorKind::InvalidData`] for a value that [`encode`] refuses.
pub fn write(stream: &mut impl Write, value: &impl Serialize, limit: usize) -> io::Result<()> {
    stream.write_all(&encode(&[], value, limit)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    const LIMIT: usize = 1 << 16;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Message {
        Empty,
        Text(String),
        Fields { numbers: Vec<u64>, inner: Option<Box<Message>> },
    }

    fn message() -> impl Strategy<Value = Message> {
        let leaf = prop_oneof![Just(Message::Empty), ".{0,40}".prop_map(Message::Text)];
        leaf.prop_recursive(4, 16, 1, |inner| {
            (prop::collection::vec(any::<u64>(), 0..20), prop::option::of(inner))
                .prop_map(|(numbers, inner)| Message::Fields { numbers, inner: inner.map(Box::new) })
        })
    }

    /// A reader that gives bytes in the given portions.
    struct Portions<'a>(&'a [u8], usize);

    impl Read for Portions<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let portion = buffer.len().min(self.1);
            self.0.read(&mut buffer[..portion])
        }
    }

    proptest! {
        #[test]
        fn messages_survive_any_division_of_the_stream(
            messages in prop::collection::vec(message(), 0..8),
            portion in 1usize..50,
        ) {
            let frames: Vec<u8> =
                messages.iter().flat_map(|message| encode(b"ab", message, LIMIT).unwrap()).collect();
            let (mut decoder, mut received) = (Decoder::default(), Vec::new());
            for bytes in frames.chunks(portion) {
                decoder.push(bytes);
                while let Some(payload) = decoder.next(LIMIT).unwrap() {
                    prop_assert_eq!(&payload[..2], b"ab");
                    received.push(decode::<Message>(&payload[2..]).unwrap());
                }
            }
            prop_assert_eq!(&received, &messages);
            prop_assert!(!decoder.is_within_frame());
            let mut stream = Portions(&frames, portion);
            for message in &messages {
                let payload = read(&mut stream, LIMIT).unwrap();
                prop_assert_eq!(&decode::<Message>(&payload[2..]).unwrap(), message);
            }
            prop_assert_eq!(read(&mut stream, LIMIT).unwrap_err().kind(), ErrorKind::UnexpectedEof);
        }

        #[test]
        fn hostile_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300), portion in 1usize..50) {
            let _ = decode::<Message>(&bytes);
            let mut decoder = Decoder::default();
            'stream: for part in bytes.chunks(portion) {
                decoder.push(part);
                loop {
                    match decoder.next(64) {
                        Ok(Some(payload)) => prop_assert!(payload.len() <= 64),
                        Ok(None) => break,
                        Err(error) => {
                            let too_large = matches!(error, FrameError::TooLarge { limit: 64, .. });
                            prop_assert!(too_large);
                            break 'stream;
                        }
                    }
                }
            }
            if let Ok(payload) = read(&mut Portions(&bytes, portion), 64) {
                prop_assert!(payload.len() <= 64);
            }
        }

        #[test]
        fn truncated_and_altered_messages_are_no_panic(message in message(), at in any::<prop::sample::Index>(), with: u8) {
            let mut frame = encode(&[], &message, LIMIT).unwrap();
            let payload = frame.split_off(LENGTH);
            let cut = at.index(payload.len());
            prop_assert!(decode::<Message>(&payload[..cut]).is_err());
            let mut altered = payload.clone();
            altered[cut] = with;
            let _ = decode::<Message>(&altered);
            let longer = [&payload[..], &[0]].concat();
            prop_assert!(decode::<Message>(&longer).unwrap_err().to_string().contains("1 bytes follow"));
        }
    }

    #[test]
    fn lengths_allocate_nothing() {
        // An array, a text and bytes of 2^62 elements.
        for kind in [0x9b, 0x7b, 0x5b] {
            let bytes = [&[kind, 0x40][..], &[0; 7]].concat();
            assert!(decode::<Vec<u64>>(&bytes).is_err());
            assert!(decode::<String>(&bytes).is_err());
        }
        let mut decoder = Decoder::default();
        decoder.push(&[0, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next(usize::MAX), Ok(None));
        assert!(decoder.is_within_frame());
        let mut stream = &[0, 0xff, 0xff, 0xff, 1][..];
        assert_eq!(read(&mut stream, usize::MAX).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn messages_beyond_the_limit_are_named() {
        let error = encode(&[], &"x".repeat(100), 99).unwrap_err();
        assert_eq!(error, FrameError::TooLarge { length: 102, limit: 99 });
        let frame = encode(&[], &"x".repeat(100), 102).unwrap();
        let error = read(&mut &frame[..], 99).unwrap_err();
        assert_eq!(error.to_string(), "a message of 102 bytes is larger than the limit of 99 bytes");
    }

    #[test]
    fn what_follows_a_frame_stays_on_the_stream() {
        let mut bytes = Vec::new();
        write(&mut bytes, &7, LIMIT).unwrap();
        bytes.extend(b"more");
        let mut stream = &bytes[..];
        assert_eq!(decode::<u8>(&read(&mut stream, LIMIT).unwrap()), Ok(7));
        assert_eq!(stream, b"more");
        let payload = read_rest(&bytes[..3], &mut &bytes[3..], LIMIT).unwrap();
        assert_eq!(decode::<u8>(&payload), Ok(7));
    }
}
