//! The socket to the kernel, and what it is asked.

use std::io;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Asks about one socket.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// Asks about sockets of both families: the kernel walks through all its sockets, used or not, only once.
const TCPDIAG_GETSOCK: u16 = 18;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const INET_DIAG_REQ_BYTECODE: u16 = 1;
const INET_DIAG_INFO: u8 = 2;
/// All states but listening, closed, and waiting to be forgotten: their `tcp_info` says nothing.
const STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11;
/// Length of the header of a netlink message.
const HEADER: usize = 16;
/// What tells a socket apart, in questions and answers: ports, addresses, interface, cookie.
const IDENTITY: usize = 48;
/// So many sockets are asked about at once: the answers must have room in the receive buffer.
const BATCH: usize = 32;

/// A socket to the kernel's diagnostics.
#[derive(Debug)]
pub(super) struct Socket {
    socket: OwnedFd,
    all: Vec<u8>,
    question: Vec<u8>,
    buffer: Vec<u8>,
}

/// What is asked to have a socket's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    family: u8,
    identity: [u8; IDENTITY],
}

impl Identity {
    /// That of a message, which is of the kernel's length at least.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        Some(Self { family: *message.first()?, identity: message.get(4..4 + IDENTITY)?.try_into().ok()? })
    }
}

impl Socket {
    /// For TCP connections with one of these ports at either end.
    pub(super) fn open(ports: &[u16]) -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        // The kernel answers while it is asked: nothing is waited for, but a lost answer must not stop the sampling.
        set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(1)))?;
        Ok(Self { socket, all: all(ports), question: Vec::new(), buffer: vec![0; 64 << 10] })
    }

    /// Gives the messages of all connections, without their headers. This takes the kernel half a millisecond and more.
    pub(super) fn dump(&mut self, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        send(&self.socket, &self.all, SendFlags::empty())?;
        loop {
            let packet = receive(&self.socket, &mut self.buffer)?;
            if packet.is_empty() || messages(packet, &mut |message| message.map(&mut each))? {
                return Ok(());
            }
        }
    }

    /// Gives the messages of these connections, without their headers; returns whether all are still there.
    pub(super) fn ask(&mut self, about: &[Identity], mut each: impl FnMut(&[u8])) -> io::Result<bool> {
        let mut complete = true;
        for batch in about.chunks(BATCH) {
            self.question.clear();
            for identity in batch {
                one(identity, &mut self.question);
            }
            send(&self.socket, &self.question, SendFlags::empty())?;
            let mut answered = 0;
            while answered < batch.len() {
                let packet = receive(&self.socket, &mut self.buffer)?;
                messages(packet, &mut |message| {
                    answered += 1;
                    match message {
                        Ok(message) => each(message),
                        // It was closed, or is another one with the same addresses.
                        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESTALE)) => {
                            complete = false;
                        }
                        Err(error) => return Err(error),
                    }
                    Ok(())
                })?;
            }
        }
        Ok(complete)
    }
}

fn receive<'a>(socket: &OwnedFd, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    loop {
        match recv(socket, &mut *buffer, RecvFlags::empty()) {
            Ok((received, _)) => return Ok(buffer.get(..received).unwrap_or_default()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Takes the messages of one packet apart, those that say what went wrong too; true after the last one of an answer of many.
fn messages(
    mut packet: &[u8],
    each: &mut impl FnMut(io::Result<&[u8]>) -> io::Result<()>,
) -> io::Result<bool> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "a netlink message is not as long as it says");
    while packet.len() >= HEADER {
        let field = |at: usize| packet.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        let length = u32::from_ne_bytes(field(0).ok_or_else(broken)?) as usize;
        let kind = field(4).map(u32::from_ne_bytes).ok_or_else(broken)? as u16;
        let content = packet.get(HEADER..length).ok_or_else(broken)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let code =
                    content.get(..4).and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_ne_bytes);
                each(Err(io::Error::from_raw_os_error(code.saturating_neg())))?;
            }
            _ => each(Ok(content))?,
        }
        packet = packet.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// Appends a message.
fn message(kind: u16, flags: u16, parts: &[&[u8]], out: &mut Vec<u8>) {
    let length = HEADER + parts.iter().map(|part| part.len()).sum::<usize>();
    out.extend((length as u32).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend((NLM_F_REQUEST | flags).to_ne_bytes());
    // Number of the question, and the socket's own address, which the kernel gives.
    out.extend([0; 8]);
    parts.iter().for_each(|part| out.extend(*part));
}

/// Asks for all connections; the kernel leaves out those without these ports.
fn all(ports: &[u16]) -> Vec<u8> {
    // inet_diag_req: family, two lengths, extensions, an identity that is not looked at, states, and a number of no use.
    let mut request = vec![0, 0, 0, 1 << (INET_DIAG_INFO - 1)];
    request.extend([0; IDENTITY]);
    request.extend(STATES.to_ne_bytes());
    request.extend([0; 4]);
    if let Some(filter) = filter(ports) {
        request.extend((4 + filter.len() as u16).to_ne_bytes());
        request.extend(INET_DIAG_REQ_BYTECODE.to_ne_bytes());
        request.extend(filter);
    }
    let mut question = Vec::new();
    message(TCPDIAG_GETSOCK, NLM_F_DUMP, &[&request], &mut question);
    question
}

/// Asks for one connection.
fn one(identity: &Identity, out: &mut Vec<u8>) {
    // inet_diag_req_v2: family, protocol, extensions, padding, states, identity.
    let head = [identity.family, libc::IPPROTO_TCP as u8, 1 << (INET_DIAG_INFO - 1), 0];
    message(SOCK_DIAG_BY_FAMILY, 0, &[&head, &STATES.to_ne_bytes(), &identity.identity], out);
}

/// A program for the kernel: does the port at this end, or that at the other, equal one of these? `None` for so many that its
/// jumps would not fit.
fn filter(ports: &[u16]) -> Option<Vec<u8>> {
    const JUMP: u8 = 1;
    /// At this end: not less than, not more than.
    const LOCAL: [u8; 2] = [2, 3];
    /// At the other end.
    const REMOTE: [u8; 2] = [4, 5];
    /// Two comparisons of two words each, and a jump.
    const STEP: usize = 8 + 8 + 4;
    let steps: Vec<_> = ports.iter().flat_map(|port| [(LOCAL, *port), (REMOTE, *port)]).collect();
    let length = steps.len() * STEP;
    u16::try_from(length + 4).ok()?;
    let mut program = Vec::with_capacity(length);
    for (at, ([least, most], port)) in steps.iter().enumerate() {
        // Where it does not fit: to the next step, or beyond the end, which means no.
        let is_last = at + 1 == steps.len();
        let no = |from: usize| (STEP - from + if is_last { 4 } else { 0 }) as u16;
        for (code, from) in [(*least, 0), (*most, 8)] {
            program.extend([code, 8]);
            program.extend(no(from).to_ne_bytes());
            program.extend([0, 0]);
            program.extend(port.to_ne_bytes());
        }
        // To the end, which means yes.
        let end = length - (at * STEP + 16);
        program.extend([JUMP, 4]);
        program.extend((end as u16).to_ne_bytes());
    }
    Some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_taken_apart() {
        let made = |kind: u16, content: &[u8]| {
            let mut bytes = Vec::new();
            message(kind, 0, &[content], &mut bytes);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let mut seen = Vec::new();
        let packet = [made(20, b"abcde"), made(20, b"f")].concat();
        let mut keep = |message: io::Result<&[u8]>| message.map(|message| seen.push(message.to_vec()));
        assert!(!messages(&packet, &mut keep).unwrap());
        assert_eq!(seen, [b"abcde".to_vec(), b"f".to_vec()]);
        let mut pass = |message: io::Result<&[u8]>| message.map(drop);
        assert!(messages(&made(NLMSG_DONE, &[0; 4]), &mut pass).unwrap());
        let refused = messages(&made(NLMSG_ERROR, &(-libc::EPERM).to_ne_bytes()), &mut pass).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::EPERM));
        for length in 0..packet.len() {
            let _ = messages(&packet[..length], &mut pass);
        }
        // A length of nothing must not be read again for ever.
        assert!(messages(&[0; 64], &mut pass).is_err());
    }

    #[test]
    fn questions_with_too_many_ports_are_asked_without_a_filter() {
        let many: Vec<u16> = (0..4000).collect();
        assert_eq!(filter(&many), None);
        assert_eq!(all(&many).len(), HEADER + 60);
    }
}
