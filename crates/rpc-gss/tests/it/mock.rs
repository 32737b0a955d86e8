//! A mechanism without Kerberos, for tests alone: checksums of 64 bits and a stream of pseudo-random bytes, made from a key
//! that the first token carries in the clear.
#![allow(dead_code, unreachable_pub, reason = "tests of several crates include this file")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use benchmaster_rpc_gss::{Context, Established, GssError, Mechanism, Negotiation, Step};

/// The client's half.
#[derive(Debug, Clone)]
pub struct MockInitiator {
    /// Who it is; one that begins with `!` is refused by the server.
    pub principal: &'static str,
    /// Tokens that the client sends until there is a context.
    pub legs: u8,
    /// Lifetime of contexts in milliseconds; 0: without end.
    pub lifetime: u32,
}

/// The server's half.
#[derive(Debug, Clone, Copy)]
pub struct MockAcceptor;

impl Mechanism for MockInitiator {
    fn begin(&self) -> Box<dyn Negotiation> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let key = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Box::new(Initiating { of: self.clone(), key, sent: 0 })
    }
}

impl Mechanism for MockAcceptor {
    fn begin(&self) -> Box<dyn Negotiation> {
        Box::new(Accepting { state: None })
    }
}

#[derive(Debug)]
struct Initiating {
    of: MockInitiator,
    key: u64,
    sent: u8,
}

impl Negotiation for Initiating {
    fn step(&mut self, token: &[u8]) -> Result<Step, GssError> {
        let MockInitiator { principal, legs, lifetime } = self.of;
        if self.sent > 0 && token != [self.sent] {
            return Err(GssError::Unprotected("mock: an answer to another token"));
        }
        if self.sent == legs {
            return Ok(Step {
                token: Vec::new(),
                established: Some(established(self.key, "server", lifetime)),
            });
        }
        self.sent += 1;
        let mut token = vec![legs];
        token.extend(lifetime.to_be_bytes());
        token.extend(self.key.to_be_bytes());
        token.extend(principal.bytes());
        Ok(Step { token, established: None })
    }
}

#[derive(Debug)]
struct Accepting {
    /// Tokens so far.
    state: Option<u8>,
}

impl Negotiation for Accepting {
    fn step(&mut self, token: &[u8]) -> Result<Step, GssError> {
        const BAD: GssError = GssError::Unprotected("mock: no token");
        let (legs, rest) = token.split_first().ok_or(BAD)?;
        let (lifetime, rest) = rest.split_first_chunk::<4>().ok_or(BAD)?;
        let (key, principal) = rest.split_first_chunk::<8>().ok_or(BAD)?;
        let principal = std::str::from_utf8(principal).map_err(|_| BAD)?;
        if principal.starts_with('!') {
            return Err(GssError::Unprotected("mock: refused"));
        }
        let seen = self.state.map_or(1, |seen| seen + 1);
        self.state = Some(seen);
        let done = seen >= *legs;
        let (key, lifetime) = (u64::from_be_bytes(*key), u32::from_be_bytes(*lifetime));
        Ok(Step { token: vec![seen], established: done.then(|| established(key, principal, lifetime)) })
    }
}

fn established(key: u64, peer: &str, lifetime: u32) -> Established {
    let lifetime = (lifetime > 0).then(|| Duration::from_millis(lifetime.into()));
    Established { context: Box::new(MockContext { key }), peer: peer.to_owned(), lifetime }
}

/// Both sides' context.
#[derive(Debug)]
pub struct MockContext {
    /// The secret.
    pub key: u64,
}

impl MockContext {
    fn sum(&self, message: &[u8]) -> [u8; 8] {
        let mix =
            |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        message.iter().fold(self.key ^ message.len() as u64, mix).to_be_bytes()
    }

    fn stream(&self, bytes: &mut [u8]) {
        let mut state = self.key;
        for byte in bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            *byte ^= (state >> 56) as u8;
        }
    }
}

impl Context for MockContext {
    fn mic(&self, message: &[u8]) -> Result<Vec<u8>, GssError> {
        Ok(self.sum(message).to_vec())
    }

    fn verify(&self, message: &[u8], mic: &[u8]) -> Result<(), GssError> {
        let right = self.sum(message) == mic;
        right.then_some(()).ok_or(GssError::Unprotected("mock: a wrong checksum"))
    }

    fn wrap(&self, message: &[u8]) -> Result<Vec<u8>, GssError> {
        let mut sealed = [&self.sum(message)[..], message].concat();
        self.stream(&mut sealed[8..]);
        Ok(sealed)
    }

    fn unwrap(&self, sealed: &[u8]) -> Result<Vec<u8>, GssError> {
        const BAD: GssError = GssError::Unprotected("mock: too short");
        let (sum, body) = sealed.split_first_chunk::<8>().ok_or(BAD)?;
        let mut message = body.to_vec();
        self.stream(&mut message);
        self.verify(&message, sum)?;
        Ok(message)
    }
}
