//! Who leads whom, and how many at once: pure.
//!
//! The controller leads agents itself while they are few. More are divided into groups, each behind an aggregator: a process
//! that is to the controller what one agent is, and to its agents what the controller is. There is one level of
//! aggregators: with 64 agents each, 10,000 agents are 157 connections of the controller.

use std::collections::VecDeque;
use std::ops::Range;

/// Most agents behind one process.
pub const FAN_OUT: u32 = 64;

/// The groups of agents behind aggregators, in the order of the agents, as even as possible; none while the controller can
/// lead all agents itself.
pub fn groups(agents: usize, fan_out: u32) -> Vec<Range<usize>> {
    let fan_out = (fan_out as usize).max(1);
    if agents <= fan_out {
        return Vec::new();
    }
    let count = agents.div_ceil(fan_out);
    let (each, more) = (agents / count, agents % count);
    let first = |group: usize| group * each + group.min(more);
    (0..count).map(|group| first(group)..first(group + 1)).collect()
}

/// What is to be done with each of many, some of them at once, in their order.
#[derive(Debug)]
pub(crate) struct Turns {
    waiting: VecDeque<usize>,
    free: usize,
}

impl Turns {
    /// With each of these, at most `at_once` at a time.
    pub(crate) fn new(of: impl Iterator<Item = usize>, at_once: usize) -> Self {
        Self { waiting: of.collect(), free: at_once.max(1) }
    }

    /// The next one to begin with; `None` while enough are under way, and when all were begun.
    pub(crate) fn next(&mut self) -> Option<usize> {
        let next = if self.free > 0 { self.waiting.pop_front() } else { None };
        self.free -= usize::from(next.is_some());
        next
    }

    /// One of them is done.
    pub(crate) fn done(&mut self) {
        self.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_even_and_cover_all_agents() {
        assert_eq!(groups(64, 64), []);
        assert_eq!(groups(65, 64), [0..33, 33..65]);
        assert_eq!(groups(5, 2), [0..2, 2..4, 4..5]);
        for agents in [1_000, 4_096, 10_000] {
            let groups = groups(agents, FAN_OUT);
            assert_eq!(groups.len(), agents.div_ceil(64));
            assert!(groups.iter().all(|group| (60..=64).contains(&group.len())), "{groups:?}");
            assert!(groups.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((groups[0].start, groups[groups.len() - 1].end), (0, agents));
        }
    }

    #[test]
    fn no_more_than_allowed_are_under_way() {
        let mut turns = Turns::new(3..8, 2);
        let mut begun: Vec<usize> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(begun, [3, 4]);
        for _ in 0..5 {
            turns.done();
            begun.extend(turns.next());
            assert_eq!(turns.next(), None);
        }
        assert_eq!(begun, [3, 4, 5, 6, 7]);
    }
}
