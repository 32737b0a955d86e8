//! Making a connection safe before anything is said on it: the probe, the handshake, and the server's consent (RFC 9289
//! §4.1, §5).

use std::future::poll_fn;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::task::Poll;

use benchmaster_nfs_proto::record::{HEADER, Scan, next_record};
use benchmaster_rpc_tls::{Handshake, Session, Step, TlsError, answer, null, probe};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::dial::first_xid;
use super::{Connection, Link};
use crate::counters::Event;
use crate::reactor::EventFlags;
use crate::rpc::{LEAST_TO_CONNECT, RpcTls};

/// Longest answer to a NULL call.
const ANSWER: usize = 4 << 10;

impl Connection {
    /// Asks the server for TLS and starts it. Nothing but the probe is sent in the clear.
    pub(super) async fn secure(&self, fd: &OwnedFd, tls: &RpcTls) -> io::Result<Session> {
        self.registration.change(fd.as_fd(), EventFlags::IN)?;
        let began = self.reactor.now();
        let deadline = began + self.timeout.max(LEAST_TO_CONNECT);
        let done = self.reactor.until(deadline, self.shake_hands(fd, tls)).await;
        let session = done.unwrap_or_else(|| Err(io::ErrorKind::TimedOut.into()));
        match &session {
            Ok(session) => {
                let facts = session.facts();
                self.counters.event(Event::TlsHandshake);
                self.counters.add(Event::TlsResumed, facts.resumed.into());
                self.counters.add(Event::TlsComputing, facts.busy.as_micros() as u64);
                let took = self.reactor.now().saturating_duration_since(began);
                self.counters.add(Event::TlsConnecting, took.as_micros() as u64);
                self.counters.secured(*facts);
            }
            Err(error) if TlsError::of(error).is_some() => self.counters.event(Event::TlsRefused),
            Err(_) => {}
        }
        session
    }

    async fn shake_hands(&self, fd: &OwnedFd, tls: &RpcTls) -> io::Result<Session> {
        let xid = first_xid(&self.reactor);
        self.send_early(fd, &probe(xid, tls.program, tls.version)).await?;
        let mut reply = Vec::new();
        let payload = loop {
            match next_record(&reply, ANSWER) {
                Ok(Scan::Record { payload, consumed }) if consumed == reply.len() => break payload,
                Ok(Scan::Need(_)) => {}
                _ => return Err(TlsError::NotOffered { answer: "it sends no reply of RPC" }.into()),
            }
            match self.receive_early(fd, &mut reply).await {
                Err(error) if TlsError::of(&error).is_some() => {
                    return Err(TlsError::NotOffered { answer: "it closes the connection" }.into());
                }
                other => other?,
            }
        };
        answer(&reply[payload], xid)?;
        let mut handshake = Handshake::client(&tls.tls)?;
        let mut received = Vec::new();
        loop {
            let step = handshake.advance(&received);
            received.clear();
            let output = std::mem::take(handshake.output());
            self.send_early(fd, &output).await?;
            match step? {
                Step::Done => break,
                Step::More => self.receive_early(fd, &mut received).await?,
            }
        }
        let mut session = handshake.finish()?;
        if !session.facts().resumed {
            self.consent(fd, &mut session, null(xid.wrapping_add(1), tls.program, tls.version)).await?;
        }
        Ok(session)
    }

    /// A client's handshake ends before the server has looked at its certificate: only an answer shows that it was accepted.
    async fn consent(&self, fd: &OwnedFd, session: &mut Session, call: Vec<u8>) -> io::Result<()> {
        if session.send(fd, &[IoSlice::new(&call)])? != Some(call.len()) || session.is_sending() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let (mut reply, mut place) = (Vec::new(), [0; ANSWER]);
        let dropped = || io::Error::from(TlsError::Dropped);
        loop {
            let received = poll_fn(|context| match session.receive(fd, &mut [IoSliceMut::new(&mut place)]) {
                Ok(None) if self.link.get() != Link::Closed => {
                    self.changed.add(context);
                    Poll::Pending
                }
                Ok(n) => Poll::Ready(Ok(n.unwrap_or(0))),
                Err(error) => Poll::Ready(Err(error)),
            });
            match received.await {
                Ok(0) => return Err(dropped()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(dropped()),
                Ok(n) => reply.extend_from_slice(&place[..n]),
                Err(error) => return Err(error),
            }
            match next_record(&reply, ANSWER) {
                // Whatever it says: the program's own calls will tell.
                Ok(Scan::Record { payload, consumed })
                    if consumed == reply.len()
                        && reply.get(payload.start..payload.start + 4) == call.get(HEADER..HEADER + 4) =>
                {
                    return Ok(());
                }
                Ok(Scan::Need(_)) => {}
                _ => return Err(TlsError::Protocol("no answer to the first call".into()).into()),
            }
        }
    }

    async fn send_early(&self, fd: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match send(fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(n) => bytes = &bytes[n..],
                Err(Errno::INTR) => {}
                // The socket is new, and the server has not answered yet.
                Err(Errno::AGAIN) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn receive_early(&self, fd: &OwnedFd, into: &mut Vec<u8>) -> io::Result<()> {
        let mut place = [0; ANSWER];
        let received = poll_fn(|context| match recv(fd, &mut place, RecvFlags::DONTWAIT) {
            Ok((0, _)) | Err(Errno::CONNRESET) => Poll::Ready(Err(io::Error::from(TlsError::Ended))),
            Ok((n, _)) => Poll::Ready(Ok(n)),
            Err(Errno::AGAIN | Errno::INTR) if self.link.get() != Link::Closed => {
                self.changed.add(context);
                Poll::Pending
            }
            Err(Errno::AGAIN | Errno::INTR) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Err(error) => Poll::Ready(Err(error.into())),
        });
        let n = received.await?;
        into.extend_from_slice(&place[..n]);
        Ok(())
    }
}
