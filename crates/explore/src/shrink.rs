//! The smallest scenario that still fails (delta debugging, after Zeller and Hildebrandt 2002).

use std::time::Duration;

use crate::run::{Violation, run};
use crate::scenario::{Fault, Scenario};
use crate::study::{Trial, least};

/// What is left of what fails: a [`Scenario`] or a [`Trial`].
#[derive(Debug, Clone)]
pub struct Shrunk<S> {
    /// The smaller scenario.
    pub scenario: S,
    /// How it fails.
    pub violation: Violation,
    /// Scenarios that were tried.
    pub tried: u32,
}

/// Removes clients' operations, faults, and lengths of faults, as long as something is still wrong; tries at most `most`
/// scenarios.
pub fn shrink(scenario: &Scenario, violation: &Violation, most: u32) -> Shrunk<Scenario> {
    // Between faults of a simulation any pause will do.
    let shortest = |_: &Fault| Duration::from_millis(10);
    let mut fails = |smaller: &Scenario| run(smaller).ok()?.violation;
    let mut shrinking = Shrinking::new(scenario, violation, most, &mut fails);
    loop {
        let before = shrinking.shrunk.scenario.clone();
        for client in 0..before.clients.len() {
            shrinking.part(|scenario| &mut scenario.clients[client]);
        }
        shrinking.part(|scenario| &mut scenario.faults);
        shrinking.lengths(|scenario| &mut scenario.faults, shortest);
        if shrinking.is_done(&before) {
            return shrinking.shrunk;
        }
    }
}

/// Removes faults and lengths of faults from a trial, as long as `fails` finds something wrong; tries at most `most`.
pub fn shrink_trial(
    trial: &Trial,
    violation: &Violation,
    most: u32,
    fails: &mut dyn FnMut(&Trial) -> Option<Violation>,
) -> Shrunk<Trial> {
    let mut shrinking = Shrinking::new(trial, violation, most, fails);
    if trial.hasty && most > 0 {
        shrinking.take(Trial { hasty: false, ..trial.clone() });
    }
    loop {
        let before = shrinking.shrunk.scenario.clone();
        shrinking.part(|trial| &mut trial.faults);
        shrinking.lengths(|trial| &mut trial.faults, |fault| least(&fault.kind));
        if shrinking.is_done(&before) {
            return shrinking.shrunk;
        }
    }
}

struct Shrinking<'a, S> {
    shrunk: Shrunk<S>,
    most: u32,
    /// What is wrong with a smaller one, if anything is.
    fails: &'a mut dyn FnMut(&S) -> Option<Violation>,
}

impl<'a, S: Clone + PartialEq> Shrinking<'a, S> {
    fn new(
        scenario: &S,
        violation: &Violation,
        most: u32,
        fails: &'a mut dyn FnMut(&S) -> Option<Violation>,
    ) -> Self {
        let shrunk = Shrunk { scenario: scenario.clone(), violation: violation.clone(), tried: 0 };
        Self { shrunk, most, fails }
    }

    fn is_done(&self, before: &S) -> bool {
        self.shrunk.scenario == *before || self.shrunk.tried >= self.most
    }

    /// Takes a smaller scenario if it fails.
    fn take(&mut self, smaller: S) -> bool {
        self.shrunk.tried += 1;
        let Some(violation) = (self.fails)(&smaller) else { return false };
        (self.shrunk.scenario, self.shrunk.violation) = (smaller, violation);
        true
    }

    /// Removes pieces of a list, large ones first.
    fn part<T: Clone>(&mut self, list: impl Fn(&mut S) -> &mut Vec<T>) {
        let mut size = list(&mut self.shrunk.scenario).len();
        while size > 0 {
            let mut at = 0;
            while at < list(&mut self.shrunk.scenario).len() && self.shrunk.tried < self.most {
                let mut smaller = self.shrunk.scenario.clone();
                let items = list(&mut smaller);
                let end = (at + size).min(items.len());
                items.drain(at..end);
                if !self.take(smaller) {
                    at += size;
                }
            }
            size /= 2;
        }
    }

    /// Makes faults shorter, each no shorter than `least` says.
    fn lengths(&mut self, faults: impl Fn(&mut S) -> &mut Vec<Fault>, least: impl Fn(&Fault) -> Duration) {
        for number in 0..faults(&mut self.shrunk.scenario).len() {
            while self.shrunk.tried < self.most {
                let mut smaller = self.shrunk.scenario.clone();
                let fault = &mut faults(&mut smaller)[number];
                let least = least(fault);
                let Some(length) = fault.kind.length_mut() else { break };
                *length /= 2;
                if *length < least || !self.take(smaller) {
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::FaultKind;

    #[test]
    fn the_fault_that_matters_is_left_and_short() {
        const SECOND: Duration = Duration::from_secs(1);
        let restart = FaultKind::Restart { down: 9 * SECOND, power: true };
        let kinds = [FaultKind::Cut { client: 0 }, restart, FaultKind::Pause { length: SECOND }];
        let faults = kinds.into_iter().map(|kind| Fault { at: SECOND, kind }).collect();
        let trial = Trial { study: "text".into(), seed: 3, hasty: true, faults };
        let violation = || Violation { what: "lost".into(), at: SECOND };
        let mut fails = |trial: &Trial| {
            let power = |fault: &Fault| matches!(fault.kind, FaultKind::Restart { power: true, .. });
            trial.faults.iter().any(power).then(violation)
        };
        let shrunk = shrink_trial(&trial, &violation(), 100, &mut fails);
        let kind = FaultKind::Restart { down: 9 * SECOND / 4, power: true };
        let expected = Trial { hasty: false, faults: vec![Fault { at: SECOND, kind }], ..trial.clone() };
        assert_eq!(shrunk.scenario, expected);
        assert!(shrunk.tried < 20, "{}", shrunk.tried);
        assert_eq!(shrink_trial(&trial, &violation(), 0, &mut fails).scenario.faults.len(), 3);
    }
}
