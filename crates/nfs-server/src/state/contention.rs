//! Files that are contended.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::handle::FileId;

/// Most files remembered.
const MOST: usize = 65_536;

/// Files whose delegations were recalled lately: to delegate them again at once would only cost more recalls.
#[derive(Debug, Default)]
pub(super) struct Contention {
    last: HashMap<FileId, Instant>,
    order: VecDeque<(Instant, FileId)>,
}

impl Contention {
    pub(super) fn note(&mut self, file: FileId, now: Instant) {
        if self.last.insert(file, now) != Some(now) {
            self.order.push_back((now, file));
        }
        if self.order.len() > MOST {
            self.forget_oldest();
        }
    }

    pub(super) fn contains(&self, file: FileId, now: Instant, length: Duration) -> bool {
        self.last.get(&file).is_some_and(|since| now.saturating_duration_since(*since) < length)
    }

    pub(super) fn tick(&mut self, now: Instant, length: Duration) {
        while self.order.front().is_some_and(|(since, _)| now.saturating_duration_since(*since) >= length) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((since, file)) = self.order.pop_front()
            && self.last.get(&file) == Some(&since)
        {
            self.last.remove(&file);
        }
    }
}
