//! The beginning of a connection, from either end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::protocol::{GREETING, Greeting, Kind, NoGreeting, REQUEST, RESPONSE, Request, Response};
use crate::stream::is_timeout;
use crate::{LARGEST_REPLY, ProbeError, ServeConfig, Token, protocol};

/// The whole of it takes no longer.
const LONGEST: Duration = Duration::from_secs(5);

/// Connects; gives how long that took, too.
pub(crate) fn connect(target: SocketAddr, patience: Duration) -> Result<(TcpStream, Duration), ProbeError> {
    let began = Instant::now();
    let socket = TcpStream::connect_timeout(&target, patience)
        .map_err(|source| ProbeError::Connect { target, source })?;
    let took = began.elapsed();
    socket.set_nodelay(true).map_err(|source| ProbeError::Connect { target, source })?;
    Ok((socket, took))
}

/// Connects to a far end and asks for a test.
pub(crate) fn open(
    target: SocketAddr,
    request: &Request,
    token: Option<&Token>,
    patience: Duration,
) -> Result<TcpStream, ProbeError> {
    let (mut socket, _) = connect(target, patience)?;
    let deadline = Instant::now() + LONGEST.max(patience);
    let no_far_end = |problem: String| ProbeError::NotAFarEnd { target, problem };
    let failed = |source: io::Error| match source.kind() {
        ErrorKind::TimedOut => no_far_end("it sends nothing".into()),
        ErrorKind::UnexpectedEof => no_far_end("it closes the connection".into()),
        _ => ProbeError::Io { doing: "the handshake", target, source },
    };
    let mut bytes = [0; GREETING];
    read_by(&mut socket, &mut bytes, deadline).map_err(failed)?;
    let greeting = Greeting::decode(&bytes).map_err(|problem| match problem {
        NoGreeting::Other => no_far_end("it sends something else".into()),
        NoGreeting::Version(found) => ProbeError::Version { target, found },
    })?;
    let refused = |reason: String| ProbeError::Refused { target, reason };
    if greeting.busy {
        return Err(refused("its limit of connections is reached; wait, or use fewer flows".into()));
    }
    if greeting.token_wanted && token.is_none() {
        return Err(refused("it requires a token; give the file it was started with (--token-file)".into()));
    }
    write_by(&mut socket, &request.encode(&greeting, token), deadline).map_err(failed)?;
    let mut bytes = [0; RESPONSE];
    read_by(&mut socket, &mut bytes, deadline).map_err(failed)?;
    match Response::decode(&bytes) {
        Response::Granted => Ok(socket),
        Response::Token => Err(refused("the token differs from the one it was started with".into())),
        Response::Length(limit) => Err(refused(format!("its limit is {limit} ms per test"))),
        Response::Size(limit) => Err(refused(format!("its limit is {limit} bytes per message"))),
        Response::Unknown => Err(refused(
            "it does not know this test; use the same version of benchmaster on both hosts".into(),
        )),
    }
}

/// Greets a client; `None` when there is nothing to do for it.
pub(crate) fn accept(
    socket: &mut TcpStream,
    config: &ServeConfig,
    busy: bool,
) -> io::Result<Option<Request>> {
    let deadline = Instant::now() + LONGEST.min(config.patience);
    let mut nonce = [0; 32];
    rustix::rand::getrandom(&mut nonce, rustix::rand::GetRandomFlags::empty())?;
    let greeting = Greeting { token_wanted: config.token.is_some(), busy, nonce };
    write_by(socket, &greeting.encode(), deadline)?;
    if busy {
        return Ok(None);
    }
    let mut bytes = [0; REQUEST];
    read_by(socket, &mut bytes, deadline)?;
    let (response, request) = respond(&bytes, &greeting, config);
    write_by(socket, &response.encode(), deadline)?;
    Ok(request)
}

fn respond(bytes: &[u8; REQUEST], greeting: &Greeting, config: &ServeConfig) -> (Response, Option<Request>) {
    if config.token.as_ref().is_some_and(|token| !Request::is_proved(bytes, greeting, token)) {
        return (Response::Token, None);
    }
    let Some(request) = Request::decode(bytes) else { return (Response::Unknown, None) };
    let longest = u32::try_from(config.longest.as_millis()).unwrap_or(u32::MAX);
    if request.warm_up_ms.saturating_add(request.length_ms) > longest {
        return (Response::Length(longest), None);
    }
    let largest = match request.kind {
        Kind::Echo => protocol::LONGEST_ECHO,
        Kind::Null => LARGEST_REPLY,
        Kind::Send | Kind::Receive => return (Response::Granted, Some(request)),
    };
    if (1..=largest).contains(&request.size) {
        (Response::Granted, Some(request))
    } else {
        (Response::Size(largest), None)
    }
}

/// Fills a buffer before an instant; a sender of single bytes does not put it off.
pub(crate) fn read_by(socket: &mut TcpStream, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        socket.set_read_timeout(Some(left(deadline)?))?;
        match socket.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => bytes = bytes.get_mut(n..).unwrap_or_default(),
            Err(error) if is_timeout(&error) => return Err(ErrorKind::TimedOut.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn write_by(socket: &mut TcpStream, bytes: &[u8], deadline: Instant) -> io::Result<()> {
    socket.set_write_timeout(Some(left(deadline)?))?;
    socket
        .write_all(bytes)
        .map_err(|error| if is_timeout(&error) { ErrorKind::TimedOut.into() } else { error })
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}
