//! The sequence numbers that a server has seen in a context (RFC 2203 §5.3.3.1).

/// How many sequence numbers may be outstanding.
pub const WINDOW: u32 = 1024;
const WORDS: usize = WINDOW as usize / 64;

/// What a number is to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It was not seen before, and is noted.
    New,
    /// It was seen.
    Replayed,
    /// It is too old to say.
    Old,
}

/// The highest number seen, and which of the [`WINDOW`] numbers up to it were.
#[derive(Debug, Clone)]
pub struct Window {
    highest: u32,
    /// Bit `n % WINDOW` is number `n`.
    bits: [u64; WORDS],
}

impl Default for Window {
    fn default() -> Self {
        Self { highest: 0, bits: [0; WORDS] }
    }
}

impl Window {
    /// Notes a number, whose call has been verified: an unverified one must not move the window.
    pub fn note(&mut self, number: u32) -> Seen {
        if number > self.highest {
            let passed = number - self.highest;
            if passed >= WINDOW {
                self.bits = [0; WORDS];
            } else {
                (self.highest + 1..=number).for_each(|passed| self.clear(passed));
            }
            self.highest = number;
        } else if self.highest - number >= WINDOW {
            return Seen::Old;
        }
        let (word, bit) = place(number);
        if self.bits[word] & bit != 0 {
            return Seen::Replayed;
        }
        self.bits[word] |= bit;
        Seen::New
    }

    fn clear(&mut self, number: u32) {
        let (word, bit) = place(number);
        self.bits[word] &= !bit;
    }
}

fn place(number: u32) -> (usize, u64) {
    let at = (number % WINDOW) as usize;
    (at / 64, 1 << (at % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_are_new_once_and_old_behind_the_window() {
        let mut window = Window::default();
        assert_eq!(window.note(5), Seen::New);
        assert_eq!(window.note(5), Seen::Replayed);
        assert_eq!(window.note(3), Seen::New);
        assert_eq!(window.note(5 + WINDOW), Seen::New);
        assert_eq!(window.note(5), Seen::Old);
        assert_eq!(window.note(6), Seen::New);
        assert_eq!(window.note(u32::MAX), Seen::New);
        assert_eq!(window.note(u32::MAX - WINDOW), Seen::Old);
        assert_eq!(window.note(u32::MAX - WINDOW + 1), Seen::New);
    }

    /// Against a set of all numbers, with steps of all sizes.
    #[test]
    fn the_window_says_what_a_set_says() {
        let (mut window, mut all, mut highest, mut state) = (Window::default(), BTreeSet::new(), 0u32, 7u64);
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u32
        };
        for _ in 0..20_000 {
            let step = random() % (WINDOW * 3 / 2);
            let number = match random() % 4 {
                0 => highest.saturating_add(random() % 40),
                1 => highest.saturating_add(step),
                _ => highest.saturating_sub(step),
            };
            let expected = match () {
                () if highest.saturating_sub(number) >= WINDOW => Seen::Old,
                () if all.contains(&number) => Seen::Replayed,
                () => Seen::New,
            };
            assert_eq!(window.note(number), expected, "{number} of {highest}");
            all.insert(number);
            highest = highest.max(number);
        }
    }
}
