//! What goes wrong.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use benchmaster_nfs_server::fs::Trouble;

use super::callbacks::Callback;
use super::{Event, Inner};
use crate::history::Who;
use crate::scenario::{Dice, FaultKind, LEASE};

impl Inner {
    pub(super) fn strike(&mut self, fault: FaultKind) {
        self.line(Who::Fault, fault.to_string());
        let now = self.now;
        let (whom, until) = disturbs(&fault, now);
        self.oracle.borrow_mut().disturbed(whom, now, until);
        match fault {
            FaultKind::Disk { what, length } => {
                if let Some(shared) = &self.server.shared {
                    shared.fail(what, length.is_zero());
                }
                if !length.is_zero() {
                    self.put(now + length, Event::Mended(what));
                }
            }
            FaultKind::Cut { client } => {
                for number in 0..self.connections.len() {
                    if self.connections[number].client == usize::from(client) {
                        self.close_stream(number);
                    }
                }
            }
            FaultKind::LostReply { client } => self.loses[usize::from(client)] = true,
            FaultKind::LostCallback { client, executed } => {
                let lost = if executed { Callback::Reply } else { Callback::Call };
                self.loses_callback[usize::from(client)] = Some(lost);
            }
            FaultKind::Partition { client, length } => {
                let client = usize::from(client);
                self.cut_off[client] = self.cut_off[client].max(now + length);
            }
            FaultKind::Pause { length } => self.server.paused = self.server.paused.max(now + length),
            FaultKind::Restart { down, power } => {
                let Some(shared) = self.server.shared.take() else { return };
                self.server.callbacks = None;
                // What is on its way was sent to a machine that is off. A datagram that outlived the restart would be executed
                // again, for which version 3 has no cure.
                self.queue
                    .retain(|Reverse(due)| !matches!(due.event, Event::ToServer(..) | Event::Again(..)));
                (0..self.connections.len()).for_each(|number| self.close_stream(number));
                if power {
                    let mut dice = Dice::new(self.dice.any(), 2);
                    let lost = shared.lose_power(self.moment().wall, &mut || dice.any());
                    self.line(Who::Server, format!("{lost} blocks that were not stable are gone"));
                }
                self.server.kept = Arc::into_inner(shared);
                self.oracle.borrow_mut().restarted(now + down + LEASE);
                self.put(now + down, Event::Up);
            }
            // Its task ends by itself.
            FaultKind::Death { .. } => {}
            FaultKind::Clock { seconds } => self.server.clock += i64::from(seconds),
            FaultKind::Loss { permille, length } => {
                self.network.permille = permille.into();
                self.put(now + length, Event::Calm);
            }
        }
    }

    /// The disk does this right again, also while the server is away.
    pub(super) fn mend(&mut self, what: Trouble) {
        let servers = self.server.shared.as_deref().into_iter().chain(&self.server.kept);
        servers.for_each(|server| server.mend(what));
    }
}

/// Whether data that are not stable can be lost.
pub(super) fn loses(fault: &FaultKind) -> bool {
    matches!(fault, FaultKind::Restart { power: true, .. } | FaultKind::Disk { what: Trouble::Commit, .. })
}

/// Whose messages a fault may keep from the server (`None`: all), and until when.
fn disturbs(fault: &FaultKind, now: Duration) -> (Option<u8>, Duration) {
    match *fault {
        FaultKind::Cut { client }
        | FaultKind::LostReply { client }
        | FaultKind::LostCallback { client, .. } => (Some(client), now),
        FaultKind::Partition { client, length } => (Some(client), now + length),
        FaultKind::Pause { length } => (None, now + length),
        FaultKind::Restart { down, .. } => (None, now + down),
        FaultKind::Loss { length, .. } => (None, now + length),
        FaultKind::Death { .. } | FaultKind::Clock { .. } | FaultKind::Disk { .. } => (None, Duration::ZERO),
    }
}
