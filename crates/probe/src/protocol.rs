//! Messages between the two ends of a probe, version 1. All numbers are big-endian.
//!
//! ```text
//! far end → client   greeting   "bm-probe", version u16, flags u16, nonce [32] client → far end   request    kind
//! u16, sample interval in ms u16, size u32, warm-up in ms u32, length in ms u32, proof [32] far end → client
//! response   status u16, zero u16, limit u32 client → far end   one byte   when all connections of the test are
//! ready
//! ```
//! What follows depends on the kind: messages that are sent back; a stream in one direction, in frames (`stream`);
//! requests of eight bytes that are each answered by themselves and null data. The proof is HMAC-SHA256, with the
//! token as key, over greeting and request; without a token it is zero.

use ring::hmac;

use crate::Token;

pub(crate) const VERSION: u16 = 1;
pub(crate) const GREETING: usize = 44;
pub(crate) const REQUEST: usize = 48;
pub(crate) const RESPONSE: usize = 8;
/// What the client sends when a test begins.
pub(crate) const GO: u8 = b'G';
/// Longest message that is sent back.
pub(crate) const LONGEST_ECHO: u32 = 64 << 10;
/// Bytes of a request for null data, and of the head of its answer.
pub(crate) const NULL_HEAD: usize = 8;

const MAGIC: [u8; 8] = *b"bm-probe";
const PROOF: usize = 32;

/// What a far end says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) token_wanted: bool,
    /// It has as many connections as it may.
    pub(crate) busy: bool,
    pub(crate) nonce: [u8; 32],
}

/// Why the front of a connection is no greeting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoGreeting {
    Other,
    Version(u16),
}

impl Greeting {
    pub(crate) fn encode(&self) -> [u8; GREETING] {
        let flags = u16::from(self.token_wanted) | u16::from(self.busy) << 1;
        let mut bytes = [0; GREETING];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_be_bytes());
        bytes[10..12].copy_from_slice(&flags.to_be_bytes());
        bytes[12..].copy_from_slice(&self.nonce);
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; GREETING]) -> Result<Self, NoGreeting> {
        if bytes[..8] != MAGIC {
            return Err(NoGreeting::Other);
        }
        let version = u16::from_be_bytes([bytes[8], bytes[9]]);
        if version != VERSION {
            return Err(NoGreeting::Version(version));
        }
        let flags = u16::from_be_bytes([bytes[10], bytes[11]]);
        let mut nonce = [0; 32];
        nonce.copy_from_slice(&bytes[12..]);
        Ok(Self { token_wanted: flags & 1 != 0, busy: flags & 2 != 0, nonce })
    }
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Kind {
    /// Messages of `size` bytes are sent back.
    Echo = 1,
    /// The far end sends a stream for warm-up and length,
    Send,
    /// or receives and counts one.
    Receive,
    /// Requests are answered by null data of `size` bytes.
    Null,
}

/// What a client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) kind: Kind,
    pub(crate) sample_ms: u16,
    pub(crate) size: u32,
    pub(crate) warm_up_ms: u32,
    pub(crate) length_ms: u32,
}

impl Request {
    fn head(&self) -> [u8; REQUEST - PROOF] {
        let mut bytes = [0; REQUEST - PROOF];
        bytes[..2].copy_from_slice(&(self.kind as u16).to_be_bytes());
        bytes[2..4].copy_from_slice(&self.sample_ms.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.size.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.warm_up_ms.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.length_ms.to_be_bytes());
        bytes
    }

    pub(crate) fn encode(&self, greeting: &Greeting, token: Option<&Token>) -> [u8; REQUEST] {
        let head = self.head();
        let mut bytes = [0; REQUEST];
        bytes[..head.len()].copy_from_slice(&head);
        if let Some(token) = token {
            bytes[head.len()..].copy_from_slice(hmac::sign(&key(token), &signed(greeting, &head)).as_ref());
        }
        bytes
    }

    /// `None` for a kind that is not known.
    pub(crate) fn decode(bytes: &[u8; REQUEST]) -> Option<Self> {
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let number = u16::from_be_bytes([bytes[0], bytes[1]]);
        let kind =
            [Kind::Echo, Kind::Send, Kind::Receive, Kind::Null].into_iter().find(|k| *k as u16 == number)?;
        let sample_ms = u16::from_be_bytes([bytes[2], bytes[3]]);
        Some(Self { kind, sample_ms, size: word(4), warm_up_ms: word(8), length_ms: word(12) })
    }

    /// Whether the sender of a request knows the token. Takes the same time however much of the proof is right.
    pub(crate) fn is_proved(bytes: &[u8; REQUEST], greeting: &Greeting, token: &Token) -> bool {
        let (head, proof) = bytes.split_at(REQUEST - PROOF);
        hmac::verify(&key(token), &signed(greeting, head), proof).is_ok()
    }
}

fn key(token: &Token) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token.bytes())
}

/// What the proof of a request is over.
fn signed(greeting: &Greeting, head: &[u8]) -> Vec<u8> {
    [&greeting.encode()[..], head].concat()
}

/// What a far end says to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Response {
    Granted,
    /// The token is missing or wrong.
    Token,
    /// No test takes so long; the longest in milliseconds.
    Length(u32),
    /// No message is so large; the largest in bytes.
    Size(u32),
    /// Not a request of this version.
    Unknown,
}

impl Response {
    pub(crate) fn encode(self) -> [u8; RESPONSE] {
        let (status, limit): (u16, u32) = match self {
            Self::Granted => (0, 0),
            Self::Token => (1, 0),
            Self::Length(limit) => (2, limit),
            Self::Size(limit) => (3, limit),
            Self::Unknown => (4, 0),
        };
        let mut bytes = [0; RESPONSE];
        bytes[..2].copy_from_slice(&status.to_be_bytes());
        bytes[4..].copy_from_slice(&limit.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; RESPONSE]) -> Self {
        let limit = u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        match u16::from_be_bytes([bytes[0], bytes[1]]) {
            0 => Self::Granted,
            1 => Self::Token,
            2 => Self::Length(limit),
            3 => Self::Size(limit),
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(kind: Kind) -> Request {
        Request { kind, sample_ms: 100, size: 65_536, warm_up_ms: 250, length_ms: 1_000 }
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        for (token_wanted, busy) in [(false, false), (true, false), (false, true)] {
            let greeting = Greeting { token_wanted, busy, nonce: [7; 32] };
            assert_eq!(Greeting::decode(&greeting.encode()), Ok(greeting));
            for kind in [Kind::Echo, Kind::Send, Kind::Receive, Kind::Null] {
                let bytes = request(kind).encode(&greeting, None);
                assert_eq!(Request::decode(&bytes), Some(request(kind)));
            }
        }
        let answers = [
            Response::Granted,
            Response::Token,
            Response::Length(60_000),
            Response::Size(9),
            Response::Unknown,
        ];
        for answer in answers {
            assert_eq!(Response::decode(&answer.encode()), answer);
        }
    }

    #[test]
    fn a_proof_is_of_one_token_one_greeting_and_one_request() {
        let greeting = Greeting { token_wanted: true, busy: false, nonce: [1; 32] };
        let (right, wrong) = (Token::new(*b"0123456789abcdef"), Token::new(*b"0123456789abcdeF"));
        let (right, wrong) = (right.unwrap(), wrong.unwrap());
        let bytes = request(Kind::Send).encode(&greeting, Some(&right));
        assert!(Request::is_proved(&bytes, &greeting, &right));
        assert!(!Request::is_proved(&bytes, &greeting, &wrong));
        assert!(!Request::is_proved(&bytes, &Greeting { nonce: [2; 32], ..greeting }, &right));
        assert!(!Request::is_proved(&request(Kind::Send).encode(&greeting, None), &greeting, &right));
        for at in 0..REQUEST {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert!(!Request::is_proved(&changed, &greeting, &right), "byte {at}");
        }
    }

    #[test]
    fn other_greetings_are_told_apart() {
        let mut bytes = Greeting { token_wanted: false, busy: false, nonce: [0; 32] }.encode();
        bytes[9] = 2;
        assert_eq!(Greeting::decode(&bytes), Err(NoGreeting::Version(2)));
        bytes[0] = b'S';
        assert_eq!(Greeting::decode(&bytes), Err(NoGreeting::Other));
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::array::uniform32(any::<u8>())) {
            let mut request = [0; REQUEST];
            request[..32].copy_from_slice(&bytes);
            if let Some(decoded) = Request::decode(&request) {
                prop_assert_eq!(&decoded.head()[..], &request[..16]);
            }
            let mut greeting = [0; GREETING];
            greeting[..32].copy_from_slice(&bytes);
            prop_assert!(Greeting::decode(&greeting).is_err() || bytes[..8] == MAGIC);
        }
    }
}
