//! Requests of other processes to the holder of a lab: a message each way over its Unix socket, and a descriptor with the
//! answer to some.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use benchmaster_netem::link::Link;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Failure;
use crate::config::KnfsdConfig;
use crate::cut::PowerCut;
use crate::guest::protocol::{encode, read_rest, write};

/// What a holder is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// [`LabFacts`](crate::LabFacts).
    Facts,
    /// The server's network namespace, as a descriptor.
    Namespace,
    /// A connection to the control server of this machine, as a descriptor.
    Connect(String),
    /// Changes the links of all clients.
    SetLink(Link),
    /// [`Report`](benchmaster_netem::wire::Report).
    NetworkReport,
    /// Resets the counts of the wire.
    ClearNetworkReport,
    /// Sets the server machine up in another way.
    RestartServer(KnfsdConfig),
    /// Cuts the power of the server machine: [`CutFacts`](crate::CutFacts).
    CutServer(PowerCut),
    Down,
}

/// The value asked for, or why there is none.
pub(crate) type Answer<T> = Result<T, Failure>;

/// Sends a request and reads its answer, and the descriptor that came with it.
pub(crate) fn ask<T: DeserializeOwned>(
    socket: &UnixStream,
    ask: &Ask,
    limit: Duration,
) -> io::Result<(Answer<T>, Option<OwnedFd>)> {
    socket.set_write_timeout(Some(limit))?;
    socket.set_read_timeout(Some(limit))?;
    write(&mut &*socket, ask)?;
    let (answer, descriptor) = receive(socket)?;
    Ok((benchmaster_frames::decode(&answer)?, descriptor))
}

/// Answers, with a descriptor if there is one.
pub(crate) fn answer<T: Serialize>(
    mut socket: &UnixStream,
    answer: &Answer<T>,
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let Some(descriptor) = descriptor else { return write(&mut socket, answer) };
    let message = encode(answer)?;
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let sent = sendmsg(socket, &[IoSlice::new(&message)], &mut ancillary, SendFlags::NOSIGNAL)?;
    io::Write::write_all(&mut socket, &message[sent..])
}

/// Reads a message, and the descriptor that came with its beginning.
fn receive(mut socket: &UnixStream) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut buffer = vec![0; 64 << 10];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(
        socket.as_fd(),
        &mut [IoSliceMut::new(&mut buffer)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut descriptor = None;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            descriptor = descriptors.last();
        }
    }
    if received.bytes == 0 {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "it ended without an answer"));
    }
    Ok((read_rest(&buffer[..received.bytes], &mut socket)?, descriptor))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::guest::protocol::read;

    #[test]
    fn descriptors_travel_with_answers() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (mut one, other) = UnixStream::pair().unwrap();
        let text = "x".repeat(100_000);
        let long = text.clone();
        let holder = std::thread::spawn(move || {
            let asked = || benchmaster_frames::decode::<Ask>(&read(&mut &theirs).unwrap()).unwrap();
            assert_eq!(asked(), Ask::Connect("c1".into()));
            answer(&theirs, &Answer::Ok(long), Some(other.as_fd())).unwrap();
            assert_eq!(asked(), Ask::Facts);
            answer(&theirs, &Answer::<()>::Err(Failure::NotEmulated), None).unwrap();
        });
        let limit = Duration::from_secs(10);
        let (result, descriptor) = ask::<String>(&ours, &Ask::Connect("c1".into()), limit).unwrap();
        assert_eq!(result.unwrap(), text);
        let mut got = UnixStream::from(descriptor.unwrap());
        one.write_all(b"through").unwrap();
        let mut read = [0; 7];
        got.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"through");
        let (result, descriptor) = ask::<String>(&ours, &Ask::Facts, limit).unwrap();
        assert_eq!(result.unwrap_err(), Failure::NotEmulated);
        assert!(descriptor.is_none());
        holder.join().unwrap();
        let ended = ask::<String>(&ours, &Ask::Facts, limit).unwrap_err().kind();
        assert!(matches!(ended, ErrorKind::BrokenPipe | ErrorKind::ConnectionReset), "{ended:?}");
    }
}
