//! Standard input and output as the stream to the controller: a socket for both, or two pipes, as they come from the
//! controller, ssh or a shell.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;

use rustix::fs::{FileType, fstat};
use rustix::io::fcntl_dupfd_cloexec;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::launch::ByteStream;

/// Lowest number of the descriptors that the stream gets.
const FIRST: i32 = 3;

/// Takes standard input and output away from this process, as a stream: what the process or its children print on
/// standard output afterwards goes to standard error, and they read nothing. To be called in a tokio runtime with I/O, once
/// in a process.
///
/// # Errors
/// When they are closed, or are files and not sockets or pipes.
pub fn take() -> io::Result<Box<dyn ByteStream>> {
    let input = fcntl_dupfd_cloexec(rustix::stdio::stdin(), FIRST)?;
    let output = fcntl_dupfd_cloexec(rustix::stdio::stdout(), FIRST)?;
    let nothing = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    join(input, output)
}

/// A stream of two descriptors.
fn join(input: OwnedFd, output: OwnedFd) -> io::Result<Box<dyn ByteStream>> {
    let (of_input, of_output) = (fstat(&input)?, fstat(&output)?);
    if (of_input.st_dev, of_input.st_ino) == (of_output.st_dev, of_output.st_ino)
        && FileType::from_raw_mode(of_input.st_mode) == FileType::Socket
    {
        return Ok(Box::new(socket(input)?));
    }
    let reader: Box<dyn AsyncRead + Send + Unpin> = match FileType::from_raw_mode(of_input.st_mode) {
        FileType::Socket => Box::new(socket(input)?),
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(input)?),
        _ => return Err(unfit("input")),
    };
    let writer: Box<dyn AsyncWrite + Send + Unpin> = match FileType::from_raw_mode(of_output.st_mode) {
        FileType::Socket => Box::new(socket(output)?),
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(output)?),
        _ => return Err(unfit("output")),
    };
    Ok(Box::new(tokio::io::join(reader, writer)))
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = Socket::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

fn unfit(which: &str) -> io::Error {
    let text = format!(
        "standard {which} is not the connection to a controller but a file or a terminal; agents are started by \
         `benchmaster run`, as the study's `[clients] launcher` says"
    );
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn both_ways(mut near: Box<dyn ByteStream>, mut far: Box<dyn ByteStream>) {
        let sent: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
        let expected = sent.clone();
        let sender = async move {
            near.write_all(&sent).await.unwrap();
            near.shutdown().await.unwrap();
            let mut answer = [0; 2];
            near.read_exact(&mut answer).await.unwrap();
            answer
        };
        let receiver = async move {
            let mut received = vec![0; expected.len()];
            far.read_exact(&mut received).await.unwrap();
            assert_eq!(received, expected);
            far.write_all(b"ok").await.unwrap();
            far
        };
        let (answer, _) = tokio::join!(sender, receiver);
        assert_eq!(&answer, b"ok");
    }

    #[tokio::test]
    async fn a_socket_and_pipes_carry_both_directions() {
        let (a, b) = Socket::pair().unwrap();
        let stream =
            |socket: &Socket| join(socket.try_clone().unwrap().into(), socket.try_clone().unwrap().into());
        both_ways(stream(&a).unwrap(), stream(&b).unwrap()).await;

        let (there, back) = (io::pipe().unwrap(), io::pipe().unwrap());
        let near = join(back.0.into(), there.1.into()).unwrap();
        let far = join(there.0.into(), back.1.into()).unwrap();
        both_ways(near, far).await;
    }

    #[tokio::test]
    async fn files_are_refused_with_a_reason() {
        let file = || tempfile::tempfile().unwrap().into();
        let error = join(file(), file()).err().unwrap();
        assert!(error.to_string().contains("standard input is not the connection"), "{error}");
    }
}
