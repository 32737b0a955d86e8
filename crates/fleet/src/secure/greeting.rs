//! What agent and controller say to each other inside TLS before the control protocol.
//!
//! The agent: 8 bytes [`MAGIC`], the token (32 bytes), its rank (4 bytes, big-endian), then its host's name and the
//! identity of its program, each with a byte for the length before it. The controller: one byte [`Verdict`], then its own
//! identity in the same form. After [`Verdict::Accepted`] the stream is the control protocol's. After [`Verdict::Elsewhere`]
//! follows [`Elsewhere`], whose texts have the same form, and the end.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use zeroize::Zeroizing;

use super::credentials::{KEY_BYTES, Token};

/// How agents begin. The last byte is the form's version.
const MAGIC: &[u8; 8] = b"bmagent\x01";

/// What an agent says.
pub(super) struct Greeting {
    pub(super) token: Zeroizing<[u8; KEY_BYTES]>,
    pub(super) rank: u32,
    pub(super) host: String,
    pub(super) identity: String,
}

/// What the controller says to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Verdict {
    Accepted = 0,
    /// The token is not that of this launch.
    Token = 1,
    Build = 2,
    /// An agent with this rank is there already.
    Taken = 3,
    /// There is no such rank in this launch.
    Rank = 4,
    /// Its aggregator is not there yet: it is to ask again.
    Later = 5,
    /// It is to join its aggregator.
    Elsewhere = 6,
}

/// Where an agent is to join, and as what.
pub(super) struct Elsewhere {
    /// `HOST:PORT` of the aggregator.
    pub(super) address: String,
    /// The agent's name among all agents.
    pub(super) name: String,
    /// The credentials of the aggregator's launch, as one line of JSON.
    pub(super) credentials: Zeroizing<String>,
}

impl Verdict {
    fn of(byte: u8) -> Option<Self> {
        use Verdict::{Accepted, Build, Elsewhere, Later, Rank, Taken, Token};
        let all = [Accepted, Token, Build, Taken, Rank, Later, Elsewhere];
        all.into_iter().find(|verdict| *verdict as u8 == byte)
    }
}

fn push_text(message: &mut Vec<u8>, text: &str) {
    let end = (0..=255.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    message.push(end as u8);
    message.extend_from_slice(text.get(..end).unwrap_or_default().as_bytes());
}

async fn read_text(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<String> {
    let length = stream.read_u8().await?;
    let mut bytes = vec![0; usize::from(length)];
    stream.read_exact(&mut bytes).await?;
    let text = String::from_utf8(bytes).map_err(|_| garbled())?;
    if text.chars().any(char::is_control) { Err(garbled()) } else { Ok(text) }
}

fn garbled() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not a Benchmaster agent")
}

/// Says who is there.
pub(super) async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    token: &Token,
    rank: u32,
    host: &str,
    identity: &str,
) -> io::Result<()> {
    let mut message = Zeroizing::new(Vec::with_capacity(MAGIC.len() + KEY_BYTES + 4 + 2 * 256));
    message.extend_from_slice(MAGIC);
    message.extend_from_slice(token.bytes());
    message.extend_from_slice(&rank.to_be_bytes());
    push_text(&mut message, host);
    push_text(&mut message, identity);
    stream.write_all(&message).await?;
    stream.flush().await
}

/// Reads who is there. Nothing is read beyond, and nothing behind a wrong beginning.
pub(super) async fn receive(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Greeting> {
    let mut magic = [0; MAGIC.len()];
    stream.read_exact(&mut magic).await?;
    if &magic != MAGIC {
        return Err(garbled());
    }
    let mut token = Zeroizing::new([0; KEY_BYTES]);
    stream.read_exact(token.as_mut_slice()).await?;
    let rank = stream.read_u32().await?;
    Ok(Greeting { token, rank, host: read_text(stream).await?, identity: read_text(stream).await? })
}

/// Says what was decided. `identity` is sent only to those who have the token.
pub(super) async fn answer(
    stream: &mut (impl AsyncWrite + Unpin),
    verdict: Verdict,
    identity: &str,
) -> io::Result<()> {
    let mut message = vec![verdict as u8];
    push_text(&mut message, identity);
    stream.write_all(&message).await?;
    stream.flush().await
}

/// Says where to join.
pub(super) async fn redirect(
    stream: &mut (impl AsyncWrite + Unpin),
    identity: &str,
    to: &Elsewhere,
) -> io::Result<()> {
    let mut message = Zeroizing::new(Vec::with_capacity(1024));
    message.push(Verdict::Elsewhere as u8);
    for text in [identity, &to.address, &to.name, to.credentials.trim_end()] {
        push_text(&mut message, text);
    }
    stream.write_all(&message).await?;
    stream.flush().await
}

/// Reads what follows [`Verdict::Elsewhere`].
pub(super) async fn elsewhere(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Elsewhere> {
    let (address, name) = (read_text(stream).await?, read_text(stream).await?);
    Ok(Elsewhere { address, name, credentials: Zeroizing::new(read_text(stream).await?) })
}

/// Reads what was decided, and the controller's identity.
pub(super) async fn decision(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(Verdict, String)> {
    let verdict = Verdict::of(stream.read_u8().await?).ok_or_else(garbled)?;
    Ok((verdict, read_text(stream).await?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wait<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn a_greeting_travels_and_leaves_what_follows() {
        let token = Token::random().unwrap();
        let mut sent = Vec::new();
        wait(send(&mut sent, &token, 7, "n3", "0.1.0 abc")).unwrap();
        sent.extend_from_slice(b"more");
        let mut stream = sent.as_slice();
        let got = wait(receive(&mut stream)).unwrap();
        assert!(token.is(got.token.as_slice()));
        assert_eq!((got.rank, got.host.as_str(), got.identity.as_str()), (7, "n3", "0.1.0 abc"));
        assert_eq!(stream, b"more");
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let mut sent = Vec::new();
        wait(send(&mut sent, &Token::random().unwrap(), 0, &"é".repeat(200), "")).unwrap();
        assert_eq!(wait(receive(&mut sent.as_slice())).unwrap().host, "é".repeat(127));
    }

    proptest! {
        #[test]
        fn noise_is_refused(noise in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(wait(receive(&mut noise.as_slice())).is_err());
            let mut begun = MAGIC.to_vec();
            begun.extend_from_slice(&noise);
            // Whatever it is, at most its own length is read, and it ends.
            let _ = wait(receive(&mut begun.as_slice()));
            let _ = wait(decision(&mut noise.as_slice()));
        }
    }
}
