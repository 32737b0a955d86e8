//! Lines of JSON over a stream: a request, and its answer `{"ok": …}` or `{"error": "…"}`.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Request;

/// Most bytes of a line: outputs of programs are in it.
const MOST: usize = 256 << 20;

/// What a request is answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer<T> {
    /// What was asked for.
    Ok(T),
    /// Why not.
    Error(String),
}

impl<T> From<Result<T, String>> for Answer<T> {
    fn from(result: Result<T, String>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(reason) => Self::Error(reason),
        }
    }
}

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The connection failed, or was closed without an answer.
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    /// Nothing came in time.
    #[error("no answer within {0:?}")]
    Silent(Duration),
    /// It was refused, with this reason.
    #[error("{0}")]
    Refused(String),
    /// The answer is not what was asked for: another version of the program.
    #[error("the answer is not understood: {0}")]
    Answer(#[from] serde_json::Error),
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
    write_line(&mut &*stream, request).map_err(silent)?;
    let deadline = Instant::now() + limit;
    let line = read_line(&mut Until { stream, deadline }).map_err(silent)?;
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    match serde_json::from_str(&line)? {
        Answer::Ok(value) => Ok(value),
        Answer::Error(reason) => Err(AskError::Refused(reason)),
    }
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
        // What is there is looked at first: reading stops at the end of the line.
        let there = stream.peek(buffer)?;
        let line = buffer[..there].iter().position(|byte| *byte == b'\n').map_or(there, |end| end + 1);
        stream.read(&mut buffer[..line])
    }
}

/// Writes a value as a line of JSON.
///
/// # Errors
/// Those of the stream.
pub(crate) fn write_line(stream: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads a line from what gives no more than one.
///
/// # Errors
/// Those of the stream; [`ErrorKind::UnexpectedEof`] when it ends before the line does.
pub(crate) fn read_line(stream: &mut impl Read) -> io::Result<String> {
    let mut line = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let length = match stream.read(&mut buffer) {
            Ok(0) => {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "it was closed before a whole line"));
            }
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        line.extend_from_slice(&buffer[..length]);
        if line.ends_with(b"\n") {
            return String::from_utf8(line).map_err(|error| io::Error::new(ErrorKind::InvalidData, error));
        }
        if line.len() > MOST {
            return Err(io::Error::new(ErrorKind::InvalidData, "the line has no end"));
        }
    }
}

/// Reads a line byte by byte: for requests, which are short and may be followed by what is not ours.
///
/// # Errors
/// As of [`read_line`].
pub(crate) fn read_request(stream: &TcpStream, limit: Duration) -> io::Result<String> {
    read_line(&mut Until { stream, deadline: Instant::now() + limit })
}

#[cfg(test)]
mod tests {
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
        theirs.write_all(b"{\"ok\":7}\nmore").unwrap();
        let seven: u32 = ask(&ours, &Request::Facts, Duration::from_secs(5)).unwrap();
        assert_eq!(seven, 7);
        let mut rest = [0; 4];
        (&ours).read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"more");
        assert_eq!(read_request(&theirs, Duration::from_secs(5)).unwrap(), "\"facts\"\n");
    }

    #[test]
    fn refusals_silence_and_ends_are_told_apart() {
        let asked = |answer: &'static [u8], close: bool| {
            let (ours, mut theirs) = pair();
            let other = thread::spawn(move || {
                theirs.write_all(answer).unwrap();
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
        assert!(matches!(asked(b"{\"error\":\"no\"}\n", false), AskError::Refused(why) if why == "no"));
        assert!(matches!(asked(b"{\"ok\":", false), AskError::Silent(_)));
        assert!(matches!(asked(b"{\"ok\":", true), AskError::Connection(_)));
        assert!(matches!(asked(b"{\"ok\":\"seven\"}\n", false), AskError::Answer(_)));
    }
}
