use std::time::{Duration, Instant};

use super::*;
use crate::cred::Credentials;
use crate::state::{Callback, ConnectionId, Effect};

mod v40;
mod v41;

pub(super) const LEASE: Duration = Duration::from_secs(90);
pub(super) const ONE: ConnectionId = ConnectionId(1);

/// Clients with a clock that the test moves.
pub(super) struct World {
    pub(super) clients: Clients,
    pub(super) files: AllFiles<'static>,
    pub(super) effects: Effects,
    pub(super) now: Instant,
    /// Where requests come from.
    pub(super) host: IpAddr,
}

impl World {
    pub(super) fn new() -> Self {
        Self::restarted(&[])
    }

    /// After a restart that these clients are known from.
    pub(super) fn restarted(known: &[&[u8]]) -> Self {
        let config = ServerConfig { lease: LEASE, slots: 8, ..ServerConfig::default() };
        let now = Instant::now();
        let boot = 0x1111_2222_3333_4444;
        let known = known.iter().map(|name| name.to_vec()).collect();
        let clients = Clients::new(&config, boot, Arc::new(Sessions::new(boot, None)), now, known);
        let unused = Clients::new(&config, boot, Arc::new(Sessions::new(boot, None)), now, Vec::new());
        let files = AllFiles::alone(&config, boot, unused);
        Self { clients, files, effects: Effects::new(), now, host: [192, 0, 2, 1].into() }
    }

    /// Moves the clock, in steps as a server would.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + Duration::from_secs(30));
            self.clients.tick(&mut self.files, self.now, &mut self.effects);
        }
    }

    pub(super) fn probes(&mut self) -> usize {
        let probes =
            self.effects.iter().filter(|effect| matches!(effect, Effect::Call(_, Callback::Probe))).count();
        self.effects.clear();
        probes
    }
}

pub(super) fn user(uid: u32) -> Principal {
    Principal::from(&Credentials { uid, ..Credentials::root() })
}
