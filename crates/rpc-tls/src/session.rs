//! Records between a socket and its user.

use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{AlertDescription, ContentType, HandshakeType, SupportedCipherSuite};

use crate::error::TlsError;
use crate::record::{Cipher, HEADER, OVERHEAD, alert, whole};
use crate::spare::{FRAGMENT, LARGEST_RECORD, RECORDS, Spare};

/// Longest message after the handshake: a ticket with the client's certificates in it.
const LONGEST_MESSAGE: usize = 64 << 10;

/// What a session is: the proof that TLS was in effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Cipher suite, as IANA calls it: `TLS13_AES_256_GCM_SHA384`. The version is always 1.3.
    pub suite: &'static str,
    /// Whether it goes on from an earlier one, without certificates.
    pub resumed: bool,
    /// Whether the peer has shown a certificate, in this session or the one before.
    pub peer_certified: bool,
    /// Time that this side spent computing in the handshake.
    pub busy: Duration,
}

/// What went through a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Records sealed.
    pub records_sent: u64,
    /// Records opened.
    pub records_received: u64,
    /// Bytes given to the socket.
    pub bytes_sent: u64,
    /// Bytes taken from the socket.
    pub bytes_received: u64,
    /// Tickets received, with which later sessions can be resumed.
    pub tickets: u64,
    /// Changes of keys, in both directions.
    pub key_updates: u64,
    /// Time in which records were sealed, copying included, and opened, in nanoseconds.
    pub cipher_ns: u64,
}

/// What rustls still does after the handshake: tickets and new keys.
pub(crate) enum Kernel {
    Client(KernelConnection<ClientConnectionData>),
    Server(KernelConnection<ServerConnectionData>),
}

impl Kernel {
    pub(crate) fn suite(&self) -> SupportedCipherSuite {
        match self {
            Self::Client(kernel) => kernel.negotiated_cipher_suite(),
            Self::Server(kernel) => kernel.negotiated_cipher_suite(),
        }
    }

    fn next_to_send(&mut self) -> Result<Cipher, TlsError> {
        Cipher::new(match self {
            Self::Client(kernel) => kernel.update_tx_secret(),
            Self::Server(kernel) => kernel.update_tx_secret(),
        }?)
    }

    fn next_to_receive(&mut self) -> Result<Cipher, TlsError> {
        Cipher::new(match self {
            Self::Client(kernel) => kernel.update_rx_secret(),
            Self::Server(kernel) => kernel.update_rx_secret(),
        }?)
    }
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Client(_) => "Client",
            Self::Server(_) => "Server",
        })
    }
}

/// A TLS session on a socket that does not block: bytes in, bytes out, as if there were no TLS.
#[derive(Debug)]
pub struct Session {
    sealing: Cipher,
    opening: Cipher,
    kernel: Kernel,
    facts: Facts,
    traffic: Traffic,
    /// Records after which the sending key is changed (RFC 8446 §5.5).
    rekey_after: u64,
    /// The peer wants us to change it.
    rekey_asked: bool,
    /// Received, from `start` to `end`; of it, `plain` is decrypted and not taken yet.
    input: Spare,
    start: usize,
    end: usize,
    plain: Range<usize>,
    /// Records to be sent, from `sent` to `ready`.
    output: Spare,
    sent: usize,
    ready: usize,
    /// The beginning of a message that spans records.
    message: Vec<u8>,
    /// The peer has closed.
    ended: bool,
}

impl Session {
    pub(crate) fn new(
        (sealing, opening): (Cipher, Cipher),
        kernel: Kernel,
        facts: Facts,
        rekey_after: u64,
        received: &[u8],
    ) -> Result<Self, TlsError> {
        let mut input = Spare::default();
        if !received.is_empty() {
            let place = input.take().get_mut(..received.len());
            let long = || TlsError::Protocol("too much behind the handshake".into());
            place.ok_or_else(long)?.copy_from_slice(received);
        }
        Ok(Self {
            sealing,
            opening,
            kernel,
            facts,
            traffic: Traffic { bytes_received: received.len() as u64, ..Traffic::default() },
            rekey_after,
            rekey_asked: false,
            input,
            start: 0,
            end: received.len(),
            plain: 0..0,
            output: Spare::default(),
            sent: 0,
            ready: 0,
            message: Vec::new(),
            ended: false,
        })
    }

    /// What was agreed.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// What went through so far.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Whether sealed records wait for room in the socket.
    pub fn is_sending(&self) -> bool {
        self.sent < self.ready
    }

    /// Whether something can be received without the socket: an event of it may not come.
    pub fn is_readable(&self) -> bool {
        let record = || !self.ended && !matches!(whole(&self.input[self.start..self.end]), Ok(None));
        !self.plain.is_empty() || record()
    }

    /// Seals bytes of `parts` from the front on and sends them; returns how many were taken. `None`: earlier ones still
    /// wait for room in the socket. Those taken may wait, too ([`Self::is_sending`], [`Self::flush`]).
    ///
    /// # Errors
    /// Those of the socket.
    pub fn send(&mut self, socket: impl AsFd, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        if !self.flush(socket.as_fd())? {
            return Ok(None);
        }
        let began = Instant::now();
        let taken = self.seal(parts)?;
        self.traffic.cipher_ns += began.elapsed().as_nanos() as u64;
        self.flush(socket)?;
        Ok(Some(taken))
    }

    /// Sends records that wait; whether all of them left.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn flush(&mut self, socket: impl AsFd) -> io::Result<bool> {
        while self.is_sending() {
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            match send(&socket, &self.output[self.sent..self.ready], flags) {
                Ok(n) => {
                    self.sent += n;
                    self.traffic.bytes_sent += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        (self.sent, self.ready) = (0, 0);
        self.output.give_back();
        Ok(true)
    }

    fn seal(&mut self, parts: &[IoSlice<'_>]) -> Result<usize, TlsError> {
        let mut taken = 0;
        let mut parts = parts.iter().map(|part| &**part).filter(|part| !part.is_empty());
        let mut rest = parts.next();
        for _ in 0..RECORDS - 1 {
            if rest.is_none() {
                break;
            }
            if self.rekey_asked || self.sealing.sequence() >= self.rekey_after {
                self.change_key()?;
            }
            let place = &mut self.output.take()[self.ready..];
            let mut len = 0;
            while let Some(bytes) = rest
                && len < FRAGMENT
            {
                let (now, later) = bytes.split_at(bytes.len().min(FRAGMENT - len));
                place[HEADER + len..HEADER + len + now.len()].copy_from_slice(now);
                len += now.len();
                rest = if later.is_empty() { parts.next() } else { Some(later) };
            }
            self.ready += self.sealing.seal(place, len, ContentType::ApplicationData)?;
            self.traffic.records_sent += 1;
            taken += len;
        }
        Ok(taken)
    }

    /// A record that is not data; `false` when there is no room for it.
    fn control(&mut self, content: ContentType, bytes: &[u8]) -> Result<bool, TlsError> {
        let Some(place) = self.output.take().get_mut(self.ready..) else { return Ok(false) };
        if place.len() < bytes.len() + OVERHEAD {
            return Ok(false);
        }
        place[HEADER..HEADER + bytes.len()].copy_from_slice(bytes);
        self.ready += self.sealing.seal(place, bytes.len(), content)?;
        self.traffic.records_sent += 1;
        Ok(true)
    }

    /// Changes the sending key (RFC 8446 §4.6.3); the room of the record is one of those that [`Self::seal`] leaves.
    fn change_key(&mut self) -> Result<(), TlsError> {
        const NOT_REQUESTED: u8 = 0;
        let message = [u8::from(HandshakeType::KeyUpdate), 0, 0, 1, NOT_REQUESTED];
        if self.control(ContentType::Handshake, &message)? {
            self.sealing = self.kernel.next_to_send()?;
            self.traffic.key_updates += 1;
            self.rekey_asked = false;
        }
        Ok(())
    }

    /// Receives into `parts`, from the front on. `None`: nothing is there now; 0: the peer has closed. More may be there
    /// afterwards without the socket telling ([`Self::is_readable`]).
    ///
    /// # Errors
    /// Those of the socket, and a [`TlsError`] for a record that is wrong, or an alert: the session is at its end.
    pub fn receive(&mut self, socket: impl AsFd, parts: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let received = self.try_receive(socket.as_fd(), parts);
        if let Err(error) = &received
            && let Some(error) = TlsError::of(error)
        {
            let reason = match error {
                TlsError::Record => Some(AlertDescription::BadRecordMac),
                TlsError::Protocol(_) => Some(AlertDescription::UnexpectedMessage),
                _ => None,
            };
            if let Some(reason) = reason {
                self.tell(socket, reason);
            }
        }
        received
    }

    fn try_receive(
        &mut self,
        socket: BorrowedFd<'_>,
        parts: &mut [IoSliceMut<'_>],
    ) -> io::Result<Option<usize>> {
        let mut got = 0;
        for part in parts {
            let mut filled = 0;
            while filled < part.len() {
                if self.plain.is_empty() && !self.next(socket, got == 0)? {
                    return Ok(self.outcome(got));
                }
                let len = self.plain.len().min(part.len() - filled);
                let from = self.plain.start;
                part[filled..filled + len].copy_from_slice(&self.input[from..from + len]);
                self.plain.start += len;
                filled += len;
                got += len;
            }
        }
        self.release();
        Ok(Some(got))
    }

    /// What a receive brought that could not go on.
    fn outcome(&mut self, got: usize) -> Option<usize> {
        self.release();
        (got > 0 || self.ended).then_some(got)
    }

    fn release(&mut self) {
        if self.plain.is_empty() && self.start == self.end {
            (self.start, self.end) = (0, 0);
            self.input.give_back();
        }
    }

    /// Opens records until one has data; `false` when there is none. Only with `more` is the socket asked.
    fn next(&mut self, socket: BorrowedFd<'_>, more: bool) -> io::Result<bool> {
        while !self.ended {
            if let Some(len) = whole(&self.input[self.start..self.end])? {
                let from = self.start;
                self.start += len;
                let began = Instant::now();
                let (content, place) = self.opening.open(&mut self.input[from..from + len])?;
                self.traffic.cipher_ns += began.elapsed().as_nanos() as u64;
                self.traffic.records_received += 1;
                let place = from + place.start..from + place.end;
                match content {
                    ContentType::ApplicationData if place.is_empty() => {}
                    ContentType::ApplicationData => {
                        self.plain = place;
                        return Ok(true);
                    }
                    ContentType::Handshake => self.messages(place)?,
                    ContentType::Alert => match alert(&self.input[place]) {
                        None => self.ended = true,
                        Some(error) => return Err(error.into()),
                    },
                    _ => return Err(TlsError::Protocol("an unknown kind of record".into()).into()),
                }
            } else if !more || !self.fill(socket)? {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Receives from the socket; `false` when nothing is there, or the peer is gone.
    fn fill(&mut self, socket: BorrowedFd<'_>) -> io::Result<bool> {
        let input = self.input.take();
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if input.len() - self.end < LARGEST_RECORD {
            input.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match recv(socket, &mut input[self.end..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.ended = true;
                Ok(false)
            }
            Ok((n, _)) => {
                self.end += n;
                self.traffic.bytes_received += n as u64;
                Ok(true)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Messages of the handshake after its end: tickets, and new keys (RFC 8446 §4.6).
    fn messages(&mut self, place: Range<usize>) -> Result<(), TlsError> {
        let wrong = |what: &str| Err(TlsError::Protocol(what.into()));
        let mut message = std::mem::take(&mut self.message);
        message.extend_from_slice(&self.input[place]);
        while let Some([kind, a, b, c]) = message.first_chunk::<4>() {
            let (kind, len) = (HandshakeType::from(*kind), u32::from_be_bytes([0, *a, *b, *c]) as usize);
            if len > LONGEST_MESSAGE {
                return wrong("a message that is too long");
            }
            let Some(body) = message.get(4..4 + len) else { break };
            let last = message.len() == 4 + len;
            match (kind, &mut self.kernel, body) {
                (HandshakeType::NewSessionTicket, Kernel::Client(kernel), ticket) => {
                    kernel.handle_new_session_ticket(ticket)?;
                    self.traffic.tickets += 1;
                }
                // What follows has the new key: the message must end its record (RFC 8446 §5.1).
                (HandshakeType::KeyUpdate, kernel, [asked @ (0 | 1)]) if last => {
                    self.opening = kernel.next_to_receive()?;
                    self.traffic.key_updates += 1;
                    self.rekey_asked |= *asked == 1;
                }
                _ => return wrong("a message that does not belong here"),
            }
            message.drain(..4 + len);
        }
        self.message = message;
        Ok(())
    }

    /// Tells the peer that nothing more will be sent, as far as the socket has room.
    pub fn close(&mut self, socket: impl AsFd) {
        self.tell(socket, AlertDescription::CloseNotify);
    }

    fn tell(&mut self, socket: impl AsFd, reason: AlertDescription) {
        let level = if reason == AlertDescription::CloseNotify { 1 } else { 2 };
        // The connection ends whether or not the peer learns why.
        if matches!(self.control(ContentType::Alert, &[level, reason.into()]), Ok(true)) {
            let _ = self.flush(socket);
        }
    }

    /// Changes the sending key after this number of records.
    #[cfg(test)]
    pub(crate) fn rekey_after(&mut self, records: u64) {
        self.rekey_after = records;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.input.give_back();
        self.output.give_back();
    }
}
