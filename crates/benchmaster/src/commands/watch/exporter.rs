//! The counters of mounts for Prometheus: printed once, or served by as much of HTTP as a scraper needs.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use benchmaster_watch::mounts::prometheus::exposition;

use super::source::Source;
use crate::cli::Prometheus;
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Connections that are served at the same time; further ones are turned away.
const MOST_CONNECTIONS: usize = 8;
/// Bytes of a request with its headers.
const LONGEST_REQUEST: usize = 8192;
/// Within which a request must be there in full, and then its answer be taken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints them, or serves them until the process is ended.
pub(super) fn export(source: &Source, how: Prometheus) -> Result<Status> {
    match how {
        Prometheus::Printed => {
            output::print(&exposition(&source.read()?))?;
            Ok(Status::Fine)
        }
        Prometheus::Served(address) => serve(source, address),
    }
}

fn serve(source: &Source, address: SocketAddr) -> Result<Status> {
    let cannot = |error: io::Error| {
        Failure::wrong(format!(
            "cannot listen on {address}: {error}; choose another with `--prometheus=ADDRESS`"
        ))
    };
    let listener = TcpListener::bind(address).map_err(cannot)?;
    let address = listener.local_addr()?;
    if !address.ip().is_loopback() {
        output::note(&format!(
            "warning: every host that reaches {address} can read the names of servers, exports and mount points"
        ));
    }
    output::note(&format!("serving http://{address}/metrics"));
    let served = AtomicUsize::new(0);
    thread::scope(|scope| {
        loop {
            // Out of descriptors, for example: they become free.
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            if served.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                let _ = send(&stream, &Response::error("503 Service Unavailable", "too many connections"));
                served.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let served = &served;
            let thread = thread::Builder::new().spawn_scoped(scope, move || {
                // A client that has gone needs no answer.
                let _ = answer(&stream, source);
                served.fetch_sub(1, Ordering::Relaxed);
                // Closed last: its next connection finds the place free.
                drop(stream);
            });
            if thread.is_err() {
                served.fetch_sub(1, Ordering::Relaxed);
            }
        }
    })
}

/// What is sent back.
#[derive(Debug, PartialEq, Eq)]
struct Response {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Response {
    fn error(status: &'static str, why: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: why.into() + "\n" }
    }
}

fn answer(stream: &TcpStream, source: &Source) -> io::Result<()> {
    let response = match request(stream, Instant::now() + PATIENCE)? {
        Some(head) => respond(&head, || source.read().map(|stats| exposition(&stats))),
        None => Response::error("431 Request Header Fields Too Large", "the request is too long"),
    };
    send(stream, &response)
}

/// The request with its headers; `None` if it is too long.
fn request(mut stream: &TcpStream, deadline: Instant) -> io::Result<Option<Vec<u8>>> {
    let (mut head, mut part) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() >= LONGEST_REQUEST {
            return Ok(None);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        // A limit of zero would be none.
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut part)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => head.extend_from_slice(&part[..n]),
        }
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(Some(head))
}

fn respond(head: &[u8], metrics: impl FnOnce() -> Result<String>) -> Response {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else {
        return Response::error("400 Bad Request", "this is not HTTP");
    };
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (version.starts_with(b"HTTP/1."), method, path) {
        (false, ..) => Response::error("400 Bad Request", "this is not HTTP/1.1"),
        (true, b"GET", b"/metrics") => match metrics() {
            Ok(body) => Response { status: "200 OK", kind: "text/plain; version=0.0.4; charset=utf-8", body },
            Err(failure) => Response::error("500 Internal Server Error", format!("{:#}", failure.error)),
        },
        (true, b"GET", _) => Response::error("404 Not Found", "the counters are at /metrics"),
        (true, ..) => Response::error("405 Method Not Allowed", "GET is what this understands"),
    }
}

fn send(mut stream: &TcpStream, response: &Response) -> io::Result<()> {
    let Response { status, kind, body } = response;
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_get_of_the_metrics_is_answered_with_them() {
        let status = |head: &str| respond(head.as_bytes(), || Ok("x 1\n".into())).status;
        assert_eq!(status("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), "200 OK");
        assert_eq!(status("GET /metrics?x=y HTTP/1.0\r\n\r\n"), "200 OK");
        assert_eq!(status("GET / HTTP/1.1\r\n\r\n"), "404 Not Found");
        assert_eq!(status("POST /metrics HTTP/1.1\r\n\r\n"), "405 Method Not Allowed");
        for wrong in [
            "",
            "\r\n\r\n",
            "GET /metrics\r\n\r\n",
            "GET /metrics HTTP/2\r\n\r\n",
            "GET  /metrics HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(status(wrong), "400 Bad Request", "{wrong:?}");
        }
        let failed = respond(b"GET /metrics HTTP/1.1\r\n\r\n", || Err(Failure::fault("cannot read it")));
        assert_eq!(failed, Response::error("500 Internal Server Error", "cannot read it"));
    }

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_request_has_limits() {
        let later = || Instant::now() + Duration::from_secs(600);
        let (mut client, served) = pair();
        for part in ["GET /metrics HT", "TP/1.1\r\n\r", "\n"] {
            client.write_all(part.as_bytes()).unwrap();
        }
        assert_eq!(request(&served, later()).unwrap().unwrap(), b"GET /metrics HTTP/1.1\r\n\r\n");
        client.write_all(&[b'x'; LONGEST_REQUEST + 1]).unwrap();
        assert_eq!(request(&served, later()).unwrap(), None);
        let (client, served) = pair();
        let late = request(&served, Instant::now()).unwrap_err();
        assert!(matches!(late.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{late}");
        drop(client);
        assert_eq!(request(&served, later()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
