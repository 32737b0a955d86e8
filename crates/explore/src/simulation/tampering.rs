//! A server that lies: what it says to clients is changed at random, as by a hostile or broken one.

use std::time::Duration;

use benchmaster_nfs_proto::record::framed;

use super::Inner;
use super::network::TO_CLIENT;
use crate::history::Who;
use crate::scenario::Dice;

/// Numbers that decoders stumble over: counts, discriminants and signs at their borders.
const WORDS: [u32; 12] =
    [0, 1, 2, 3, 0xff, 0x1_0000, 0x7fff_fff8, 0x7fff_ffff, 0x8000_0000, 0xffff_fff0, 0xffff_fffc, u32::MAX];

/// Which messages are changed, and how.
#[derive(Debug)]
pub(super) struct Tampering {
    dice: Dice,
    /// Messages changed of a thousand.
    permille: u64,
}

impl Tampering {
    pub(super) fn new(seed: u64, permille: u64) -> Self {
        Self { dice: Dice::new(seed, 2), permille }
    }

    /// Changes the message, perhaps. Most keep their number (xid), so that the client takes them for the reply it waits for.
    fn change(&mut self, message: &mut Vec<u8>) -> bool {
        if self.dice.below(1000) >= self.permille {
            return false;
        }
        for _ in 0..=self.dice.below(3) {
            self.mutate(message);
        }
        true
    }

    fn mutate(&mut self, message: &mut Vec<u8>) {
        let dice = &mut self.dice;
        let first = if dice.one_in(20) { 0 } else { 4 };
        let words = (message.len() as u64 / 4).saturating_sub(first / 4).max(1);
        let at = (first + 4 * dice.below(words)) as usize;
        let kind = dice.below(6);
        let word = WORDS[dice.below(WORDS.len() as u64) as usize];
        let near = dice.below(9) as u32;
        let Some(place) = message.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<4>()) else { return };
        match kind {
            0 => *place = word.to_be_bytes(),
            // Counts that are wrong by little.
            1 => *place = u32::from_be_bytes(*place).wrapping_add(near).wrapping_sub(4).to_be_bytes(),
            2 => place[dice.below(4) as usize] ^= 1 << dice.below(8),
            3 => message.truncate(at),
            4 => drop(message.drain(at..at + 4)),
            _ => drop(message.splice(at..at, word.to_be_bytes())),
        }
    }
}

impl Inner {
    /// Sends a message of the server to a client, as it is or changed.
    pub(super) fn say(&mut self, number: usize, mut message: Vec<u8>, wait: Duration) {
        let changed = self.tampering.as_mut().is_some_and(|tampering| tampering.change(&mut message));
        let connection = &self.connections[number];
        let (client, stream) = (connection.client, connection.is_stream());
        if changed {
            self.line(Who::ToClient(client as u8), "changed on its way".into());
        }
        let bytes = if stream { framed(&message) } else { message };
        self.transmit(number, TO_CLIENT, bytes, wait);
    }
}
