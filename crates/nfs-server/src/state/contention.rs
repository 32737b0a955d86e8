//! Files that are contended.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use hashbrown::HashMap;

use crate::handle::FileId;

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
    }

    pub(super) fn contains(&self, file: FileId, now: Instant, length: Duration) -> bool {
        self.last.get(&file).is_some_and(|since| now.saturating_duration_since(*since) < length)
    }

    pub(super) fn tick(&mut self, now: Instant, length: Duration) {
        while let Some((since, file)) = self.order.front().copied()
            && now.saturating_duration_since(since) >= length
        {
            self.order.pop_front();
            if self.last.get(&file) == Some(&since) {
                self.last.remove(&file);
            }
        }
    }
}
