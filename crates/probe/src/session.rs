//! What every test of a client needs: the configuration, and connections to the far end.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::protocol::{Kind, Request};
use crate::{ProbeConfig, ProbeError, handshake};

/// The client of a probe.
pub(crate) struct Client<'a> {
    pub(crate) config: &'a ProbeConfig,
    pub(crate) target: SocketAddr,
    pub(crate) warm_up: Duration,
}

impl Client<'_> {
    pub(crate) fn io(&self, doing: &'static str) -> impl Fn(io::Error) -> ProbeError + use<> {
        let target = self.target;
        move |source| ProbeError::Io { doing, target, source }
    }

    pub(crate) fn too_slow(&self, doing: &'static str) -> ProbeError {
        ProbeError::TooSlow { doing, target: self.target }
    }

    /// Opens a connection for a test.
    pub(crate) fn open(&self, kind: Kind, size: u32) -> Result<TcpStream, ProbeError> {
        let config = self.config;
        let milliseconds = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
        let request = Request {
            kind,
            sample_ms: u16::try_from(config.sample_interval.as_millis()).unwrap_or(u16::MAX),
            size,
            warm_up_ms: milliseconds(self.warm_up),
            length_ms: milliseconds(config.duration),
        };
        handshake::open(self.target, &request, config.token.as_ref(), config.patience)
    }
}
