//! The one processor of the host that a guest on virtual time runs on.
//!
//! The guest's kernel and its programs are processes that wait for each other: only one of them runs at a time. On one processor a
//! change from one to the next is a switch; on two, each has to wake the other processor, which takes up to three times as long.

use std::fs::{self, File};
use std::path::Path;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::cache;

/// A processor that no other guest of this user is on, as long as this lives; where there is none, one that others share.
#[derive(Debug)]
pub(super) struct Processor {
    number: usize,
    /// Locked.
    _claim: Option<File>,
}

impl Processor {
    /// One of those that this process may run on; `None` if that is not known.
    pub(super) fn claim() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let numbers: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|number| allowed.is_set(*number)).collect();
        // Without a place for locks guests do not know of each other.
        let place = cache::directory().join("processors");
        let claimed = fs::create_dir_all(&place).ok().and_then(|()| first_free(&numbers, &place));
        let shared = || numbers.get(std::process::id() as usize % numbers.len().max(1)).copied();
        claimed.or_else(|| Some(Self { number: shared()?, _claim: None }))
    }

    /// Has a process, and all that it starts from now on, run there and nowhere else.
    pub(super) fn keep(&self, process: Pid) {
        let mut only = CpuSet::new();
        only.set(self.number);
        // Where that is refused, it takes longer.
        let _ = sched_setaffinity(Some(process), &only);
    }
}

/// The first processor whose lock is free.
fn first_free(numbers: &[usize], place: &Path) -> Option<Processor> {
    numbers.iter().find_map(|&number| {
        let claim = File::options().append(true).create(true).open(place.join(number.to_string())).ok()?;
        claim.try_lock().ok()?;
        Some(Processor { number, _claim: Some(claim) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_claimed_once() {
        let place = tempfile::tempdir().unwrap();
        let claim = || first_free(&[3, 5], place.path());
        let (first, second) = (claim().unwrap(), claim().unwrap());
        assert_eq!((first.number, second.number), (3, 5));
        assert!(claim().is_none());
        drop(first);
        assert_eq!(claim().unwrap().number, 3);
    }
}
