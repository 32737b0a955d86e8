//! The smallest scenario that still fails (delta debugging, after Zeller and Hildebrandt 2002).

use std::time::Duration;

use crate::run::{Violation, run};
use crate::scenario::{FaultKind, Scenario};

/// What is left of a scenario that fails.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The smaller scenario.
    pub scenario: Scenario,
    /// How it fails.
    pub violation: Violation,
    /// Scenarios that were tried.
    pub tried: u32,
}

/// Removes clients' operations, faults, and lengths of faults, as long as something is still wrong; tries at most `most`
/// scenarios.
pub fn shrink(scenario: &Scenario, violation: &Violation, most: u32) -> Shrunk {
    let mut shrunk = Shrunk { scenario: scenario.clone(), violation: violation.clone(), tried: 0 };
    loop {
        let before = shrunk.scenario.clone();
        for client in 0..before.clients.len() {
            part(&mut shrunk, most, |scenario| &mut scenario.clients[client]);
        }
        part(&mut shrunk, most, |scenario| &mut scenario.faults);
        lengths(&mut shrunk, most);
        if shrunk.scenario == before || shrunk.tried >= most {
            return shrunk;
        }
    }
}

impl Shrunk {
    /// Takes a smaller scenario if it fails.
    fn take(&mut self, smaller: Scenario) -> bool {
        self.tried += 1;
        match run(&smaller) {
            Ok(outcome) => match outcome.violation {
                Some(violation) => {
                    (self.scenario, self.violation) = (smaller, violation);
                    true
                }
                None => false,
            },
            Err(_) => false,
        }
    }
}

/// Removes pieces of a list, large ones first.
fn part<T: Clone>(shrunk: &mut Shrunk, most: u32, list: impl Fn(&mut Scenario) -> &mut Vec<T>) {
    let mut size = list(&mut shrunk.scenario).len();
    while size > 0 {
        let mut at = 0;
        while at < list(&mut shrunk.scenario).len() && shrunk.tried < most {
            let mut smaller = shrunk.scenario.clone();
            let items = list(&mut smaller);
            let end = (at + size).min(items.len());
            items.drain(at..end);
            if !shrunk.take(smaller) {
                at += size;
            }
        }
        size /= 2;
    }
}

/// Makes faults shorter.
fn lengths(shrunk: &mut Shrunk, most: u32) {
    const LEAST: Duration = Duration::from_millis(10);
    for number in 0..shrunk.scenario.faults.len() {
        while shrunk.tried < most {
            let mut smaller = shrunk.scenario.clone();
            let (FaultKind::Partition { length, .. }
            | FaultKind::Pause { length }
            | FaultKind::Loss { length, .. }
            | FaultKind::Disk { length, .. }
            | FaultKind::Restart { down: length, .. }) = &mut smaller.faults[number].kind
            else {
                break;
            };
            *length /= 2;
            if *length < LEAST || !shrunk.take(smaller) {
                break;
            }
        }
    }
}
