//! Random mutations of a corpus, the same for the same seed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Most bytes of a mutated input.
const MAX_LEN: usize = 1 << 16;

/// Words that decoders stumble over: counts, booleans, discriminants and signs at their borders.
const WORDS: [u32; 14] = [
    0,
    1,
    2,
    3,
    4,
    5,
    0xff,
    0x100,
    0x1_0000,
    0x7fff_fff8,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffc,
    0xffff_ffff,
];

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    /// Mutated inputs that were tried.
    pub tried: u64,
    /// The longest processor time that one took.
    pub slowest: Duration,
    /// The first input that made the target panic, and what it said.
    pub crash: Option<(Vec<u8>, String)>,
}

/// Feeds `count` random mutations of `corpus` to `target`; stops at the first panic.
///
/// The target may be anything that takes bytes: a decoder, a stream of records, a server's dispatcher.
pub fn run(corpus: &[Vec<u8>], count: u64, seed: u64, mut target: impl FnMut(&[u8])) -> Outcome {
    let mut random = Random(seed);
    let mut outcome = Outcome { tried: 0, slowest: Duration::ZERO, crash: None };
    let mut input = Vec::new();
    // The samples themselves first: a corpus that fails unchanged should say so.
    for number in 0..corpus.len() as u64 + count {
        if let Some(sample) = corpus.get(number as usize) {
            input.clone_from(sample);
        } else {
            let Some(sample) = corpus.get(random.below(corpus.len())) else { break };
            input.clone_from(sample);
            for _ in 0..=random.below(5) {
                mutate(&mut input, corpus, &mut random);
            }
            input.truncate(MAX_LEN);
            outcome.tried += 1;
        }
        let start = clock_gettime(ClockId::ThreadCPUTime);
        let result = catch_unwind(AssertUnwindSafe(|| target(&input)));
        let took = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime) - start).unwrap_or_default();
        outcome.slowest = outcome.slowest.max(took);
        if let Err(panic) = result {
            let message = panic.downcast_ref::<String>().cloned();
            let message = message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            outcome.crash = Some((input, message.unwrap_or_default()));
            break;
        }
    }
    outcome
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let word = at & !3;
    match random.below(9) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.number() as u8;
            }
        }
        2 | 3 => {
            if let Some(place) = input.get_mut(word..word + 4) {
                place.copy_from_slice(&WORDS[random.below(WORDS.len())].to_be_bytes());
            }
        }
        // A word close to what was there: counts off by one.
        4 => {
            if let Some(place) = input.get_mut(word..word + 4) {
                let old = u32::from_be_bytes([place[0], place[1], place[2], place[3]]);
                let new = old.wrapping_add(random.below(9) as u32).wrapping_sub(4);
                place.copy_from_slice(&new.to_be_bytes());
            }
        }
        5 => {
            let value = WORDS[random.below(WORDS.len())].to_be_bytes();
            let word = word.min(input.len());
            input.splice(word..word, value);
        }
        6 => {
            let end = (word + 4 * (1 + random.below(4))).min(input.len());
            input.drain(word.min(end)..end);
        }
        7 => input.truncate(at),
        // The rest of another sample, or a piece of the same again.
        _ => {
            if let Some(other) = corpus.get(random.below(corpus.len().max(1))) {
                let from = random.below(other.len() + 1) & !3;
                let len = random.below(other.len() - from + 1);
                input.splice(at.., other[from..from + len].iter().copied());
            }
        }
    }
}

/// SplitMix64.
#[derive(Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.number() % n.max(1) as u64) as usize
    }
}
