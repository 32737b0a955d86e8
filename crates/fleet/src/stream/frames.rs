//! Frames of calls on a byte stream, with the times at which they were read and written, as close to the wire as a program
//! can note them.

use std::io;
use std::time::Duration;

use benchmaster_clock::monotonic_ns;
use benchmaster_frames::{Decoder, FrameError};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::protocol::Header;

/// Bytes of one read.
const READ: usize = 64 << 10;

/// How often silence is looked for within the patience.
const LOOKS: u32 = 4;

/// Why no more frames can be exchanged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StreamError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it does not speak the agent protocol: {0}")]
    Frame(#[from] FrameError),
    #[error("it was closed within a message")]
    Truncated,
    #[error("no message for {} s", .0.as_secs_f64())]
    Silent(Duration),
}

/// A frame that was read.
#[derive(Debug)]
pub(crate) struct Incoming {
    /// The call that it belongs to.
    pub(crate) call: u32,
    /// When its last bytes were read, in nanoseconds of the monotonic clock.
    pub(crate) read_at: i64,
    payload: Vec<u8>,
}

impl Incoming {
    fn new(payload: Vec<u8>, read_at: i64) -> Result<Self, FrameError> {
        let Some(header) = payload.first_chunk::<{ size_of::<Header>() }>() else {
            return Err(FrameError::Decode("it has no number of a call".into()));
        };
        Ok(Self { call: u32::from_be_bytes(*header), read_at, payload })
    }

    pub(crate) fn value<T: DeserializeOwned>(&self) -> Result<T, FrameError> {
        benchmaster_frames::decode(self.body())
    }

    /// Its value as it was sent.
    pub(crate) fn body(&self) -> &[u8] {
        self.payload.get(size_of::<Header>()..).unwrap_or_default()
    }
}

#[derive(Debug)]
pub(crate) struct FrameReader<S> {
    stream: S,
    decoder: Decoder,
    buffer: Box<[u8]>,
    read_at: i64,
    /// The other side is lost when nothing is read for this long.
    pub(crate) patience: Duration,
}

impl<S: AsyncRead + Unpin> FrameReader<S> {
    pub(crate) fn new(stream: S, patience: Duration) -> Self {
        let buffer = vec![0; READ].into_boxed_slice();
        Self { stream, decoder: Decoder::default(), buffer, read_at: 0, patience }
    }

    /// The next frame, of a payload of at most `limit` bytes; `None` when the stream was closed.
    pub(crate) async fn next(&mut self, limit: usize) -> Result<Option<Incoming>, StreamError> {
        loop {
            if let Some(payload) = self.decoder.next(limit)? {
                return Ok(Some(Incoming::new(payload, self.read_at)?));
            }
            match self.read().await? {
                0 if self.decoder.is_within_frame() => return Err(StreamError::Truncated),
                0 => return Ok(None),
                length => self.decoder.push(&self.buffer[..length]),
            }
        }
    }

    /// Reads what there is. Intervals without anything are counted instead of time, so that a process that was stopped
    /// itself, or a machine that slept, first reads what has arrived meanwhile.
    async fn read(&mut self) -> Result<usize, StreamError> {
        for _ in 0..=LOOKS {
            let read = self.stream.read(&mut self.buffer);
            if let Ok(length) = tokio::time::timeout(self.patience / LOOKS, read).await {
                self.read_at = monotonic_ns();
                return Ok(length?);
            }
        }
        Err(StreamError::Silent(self.patience))
    }
}

/// A frame to be written.
pub(crate) enum Outgoing {
    Frame(Vec<u8>),
    /// Made when it is written, from the time of the monotonic clock in nanoseconds.
    Stamped(Box<dyn FnOnce(i64) -> Result<Vec<u8>, FrameError> + Send>),
    /// The last one of the stream.
    Last(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct FrameWriter<S>(S);

impl<S: AsyncWrite + Unpin> FrameWriter<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self(stream)
    }

    /// Writes a frame; `false` after the last one.
    pub(crate) async fn write(&mut self, outgoing: Outgoing) -> Result<bool, StreamError> {
        let (frame, goes_on) = match outgoing {
            Outgoing::Frame(frame) => (frame, true),
            Outgoing::Stamped(make) => (make(monotonic_ns())?, true),
            Outgoing::Last(frame) => (frame, false),
        };
        self.0.write_all(&frame).await?;
        self.0.flush().await?;
        Ok(goes_on)
    }

    /// Closes the stream in this direction.
    pub(crate) async fn close(mut self) -> Result<(), StreamError> {
        Ok(self.0.shutdown().await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn frame(call: u32, text: &str) -> Vec<u8> {
        benchmaster_frames::encode(&call.to_be_bytes(), &text, 1000).unwrap()
    }

    #[tokio::test]
    async fn frames_carry_calls_and_times() {
        let (near, far) = tokio::io::duplex(16);
        let (mut reader, mut writer) = (FrameReader::new(far, LONG), FrameWriter::new(near));
        let before = monotonic_ns();
        let (tell, written_at) = tokio::sync::oneshot::channel();
        let writing = async move {
            assert!(writer.write(Outgoing::Frame(frame(7, "one"))).await.unwrap());
            let stamped = Outgoing::Stamped(Box::new(|now| {
                tell.send(now).unwrap();
                Ok(frame(8, &"x".repeat(100)))
            }));
            assert!(writer.write(stamped).await.unwrap());
            assert!(!writer.write(Outgoing::Last(frame(9, "three"))).await.unwrap());
        };
        let reading = async {
            let mut seen = Vec::new();
            while let Some(incoming) = reader.next(1000).await.unwrap() {
                seen.push((incoming.call, incoming.value::<String>().unwrap(), incoming.read_at));
            }
            seen
        };
        let ((), seen) = tokio::join!(writing, reading);
        let texts: Vec<_> = seen.iter().map(|(call, text, _)| (*call, text.as_str())).collect();
        assert_eq!(texts, [(7, "one"), (8, "x".repeat(100).as_str()), (9, "three")]);
        let written_at = written_at.await.unwrap();
        assert!(before <= seen[0].2 && before <= written_at && written_at <= seen[1].2);
    }

    #[tokio::test]
    async fn what_is_not_the_protocol_ends_the_stream() {
        let read =
            async |bytes: &[u8]| FrameReader::new(bytes, LONG).next(4 << 20).await.unwrap_err().to_string();
        assert_eq!(
            read(b"Welcome to this host\n").await,
            "it does not speak the agent protocol: a message of 1466264675 bytes is larger than the limit of \
             4194304 bytes"
        );
        assert!(read(&[0, 0, 0, 2, 1, 1]).await.contains("no number of a call"));
        assert_eq!(read(&frame(1, "cut")[..6]).await, "it was closed within a message");
        assert!(FrameReader::new(&[][..], LONG).next(10).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn silence_has_an_end() {
        let (_near, far) = tokio::io::duplex(16);
        let error = FrameReader::new(far, Duration::from_millis(20)).next(10).await.unwrap_err();
        assert_eq!(error.to_string(), "no message for 0.02 s");
    }
}
