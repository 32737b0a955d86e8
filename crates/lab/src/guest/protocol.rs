//! One request over a stream, and its answer: [frames](benchmaster_frames) of a [`Request`] and of an [`Answer`].

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use benchmaster_frames::FrameError;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Request;

/// Limit of a message, in bytes: outputs of programs are in it.
const LIMIT: usize = 256 << 20;

/// The value asked for, or why there is none.
pub type Answer<T> = Result<T, String>;

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection failed, or was closed without an answer.
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    #[error("no answer within {0:?}")]
    Silent(Duration),
    /// In the guest's words.
    #[error("{0}")]
    Refused(String),
    /// The guest is of another version of the program.
    #[error("the answer is not understood: {0}")]
    Answer(#[from] FrameError),
}

/// Sends a request and reads its answer; what follows the answer on the stream is not touched.
///
/// # Errors
/// [`AskError`]
pub fn ask<T: DeserializeOwned>(
    stream: &TcpStream,
    request: &Request,
    limit: Duration,
) -> Result<T, AskError> {
    let silent = |error: io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => AskError::Silent(limit),
        _ => AskError::Connection(error),
    };
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(limit))?;
    write(&mut &*stream, request).map_err(silent)?;
    let answer = read(&mut Until { stream, deadline: Instant::now() + limit }).map_err(silent)?;
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    benchmaster_frames::decode::<Answer<T>>(&answer)?.map_err(AskError::Refused)
}

/// Reads from a stream until a time.
struct Until<'a> {
    stream: &'a TcpStream,
    deadline: Instant,
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}

/// Answers; a connection that is gone needs no answer.
pub(super) fn answer<T: Serialize>(stream: &TcpStream, result: Answer<T>) {
    let _ = write(&mut &*stream, &result);
}

/// Writes a message.
///
/// # Errors
/// Those of the stream.
pub(crate) fn write(stream: &mut impl io::Write, value: &impl Serialize) -> io::Result<()> {
    benchmaster_frames::write(stream, value, LIMIT)
}

/// A message as bytes to be written.
///
/// # Errors
/// When it is too large.
pub(crate) fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(benchmaster_frames::encode(&[], value, LIMIT)?)
}

/// Reads a message that is yet to be decoded.
///
/// # Errors
/// Those of the stream; [`ErrorKind::UnexpectedEof`] when it ends before the message does.
pub(crate) fn read(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    benchmaster_frames::read(stream, LIMIT)
}

/// Reads a message whose first bytes have arrived by other means.
///
/// # Errors
/// As of [`read`].
pub(crate) fn read_rest(first: &[u8], stream: &mut impl Read) -> io::Result<Vec<u8>> {
    benchmaster_frames::read_rest(first, stream, LIMIT)
}

/// Reads a request, and nothing of what may follow it.
///
/// # Errors
/// As of [`read`].
pub(crate) fn read_request(stream: &TcpStream, limit: Duration) -> io::Result<Vec<u8>> {
    read(&mut Until { stream, deadline: Instant::now() + limit })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (ours, listener.accept().unwrap().0)
    }

    #[test]
    fn what_follows_an_answer_stays_on_the_stream() {
        let (ours, mut theirs) = pair();
        let mut answer = encode(&Answer::Ok(7)).unwrap();
        answer.extend(b"more");
        theirs.write_all(&answer).unwrap();
        let seven: u32 = ask(&ours, &Request::Facts, Duration::from_secs(5)).unwrap();
        assert_eq!(seven, 7);
        let mut rest = [0; 4];
        (&ours).read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"more");
        let request = read_request(&theirs, Duration::from_secs(5)).unwrap();
        assert_eq!(benchmaster_frames::decode(&request), Ok(Request::Facts));
    }

    #[test]
    fn refusals_silence_and_ends_are_distinguished() {
        let asked = |answer: Vec<u8>, close: bool| {
            let (ours, mut theirs) = pair();
            let other = thread::spawn(move || {
                theirs.write_all(&answer).unwrap();
                if close {
                    read_request(&theirs, Duration::from_secs(5)).unwrap();
                    return None;
                }
                Some(theirs)
            });
            let result = ask::<u32>(&ours, &Request::Facts, Duration::from_millis(300));
            drop(other.join().unwrap());
            result.unwrap_err()
        };
        let refusal = encode(&Answer::<u32>::Err("no".into())).unwrap();
        let part = refusal[..refusal.len() - 1].to_vec();
        assert!(matches!(asked(refusal, false), AskError::Refused(why) if why == "no"));
        assert!(matches!(asked(part.clone(), false), AskError::Silent(_)));
        assert!(matches!(asked(part, true), AskError::Connection(_)));
        let other = encode(&Answer::Ok("seven")).unwrap();
        assert!(matches!(asked(other, false), AskError::Answer(_)));
    }
}
