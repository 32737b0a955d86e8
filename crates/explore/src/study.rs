//! What goes wrong in a study of the lab on virtual time, drawn from a seed. Clients and server are Linux' own, what they do is the
//! study's, and whoever runs it brings the faults about.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use benchmaster_nfs_server::fs::Trouble;

use crate::scenario::{Dice, Fault, FaultKind};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A server that starts again within the second in which it last started takes old client ids for its own (the kernel's has the
/// second of its start in them). Hosts take longer.
const LEAST_DOWN: Duration = Duration::from_secs(2);

/// After what part of a lease without a word a server may have given a client up, or the client believe that.
const SILENCE: f64 = 0.8;

/// One history of a study to be tried: a file of these repeats it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// The study file's text.
    pub study: String,
    /// Where everything is from that is random in the guest, and what the disk keeps of what was not flushed.
    pub seed: u64,
    /// Whether the server ends each grace period at once: clients cannot reclaim what they held.
    pub hasty: bool,
    /// What goes wrong; times are since the measured phase began.
    pub faults: Vec<Fault>,
}

/// Longest time in a trial, and most faults of one.
const LONGEST: Duration = Duration::from_hours(1);
const MOST: usize = 1000;

/// Why a trial that was written cannot be tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TrialError {
    /// It strikes a client that the study has not.
    #[error("fault {fault} strikes client {client}, and the study has {clients}, counted from 0")]
    Client {
        /// Which fault, counted from 0.
        fault: usize,
        /// Which client.
        client: u8,
        /// Clients of the study.
        clients: u8,
    },
    /// Only the embedded client and server know it.
    #[error("fault {fault} cannot be brought about in the lab: {kind}; remove it")]
    Kind {
        /// Which fault, counted from 0.
        fault: usize,
        /// What it is, in words.
        kind: String,
    },
    /// It is too late or too long.
    #[error("fault {0} begins more than an hour after the study or takes longer than that")]
    Time(usize),
    /// There are too many.
    #[error("a trial has up to {MOST} faults, and this one has {0}")]
    Faults(usize),
}

/// What faults can be drawn for a study.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ground {
    /// Clients of the study.
    pub clients: u8,
    /// How long its workload works.
    pub busy: Duration,
    /// The server's lease.
    pub lease: Duration,
    /// Whether the server has a disk that can lose power and be full.
    pub disk: bool,
    /// Most faults.
    pub faults: u8,
}

/// Whether something begins or is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    /// It is over. What ends at an instant ends before what begins.
    End,
    /// It begins.
    Begin,
}

/// When a fault begins or is over. What happens at once is never over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// Time since the measured phase began.
    pub at: Duration,
    /// Which of the two.
    pub edge: Edge,
    /// Which fault, counted from 0.
    pub fault: usize,
}

impl Trial {
    /// The trial of a seed.
    pub fn draw(seed: u64, study: &str, ground: &Ground) -> Self {
        let mut dice = Dice::new(seed, 1);
        let hasty = dice.one_in(8);
        let count = 1 + dice.below(u64::from(ground.faults.max(1)));
        let faults = (0..count).map(|_| fault(&mut dice, ground)).collect();
        let mut trial = Self { study: study.to_owned(), seed, hasty, faults };
        trial.order();
        trial
    }

    /// Whether it can be tried with a study of this number of clients.
    ///
    /// # Errors
    /// [`TrialError`]
    pub fn check(&self, clients: u8) -> Result<(), TrialError> {
        if self.faults.len() > MOST {
            return Err(TrialError::Faults(self.faults.len()));
        }
        for (number, fault) in self.faults.iter().enumerate() {
            if fault.at > LONGEST || fault.kind.length() > LONGEST {
                return Err(TrialError::Time(number));
            }
            match fault.kind {
                FaultKind::Cut { client } | FaultKind::Partition { client, .. } if client >= clients => {
                    return Err(TrialError::Client { fault: number, client, clients });
                }
                FaultKind::Cut { .. }
                | FaultKind::Partition { .. }
                | FaultKind::Pause { .. }
                | FaultKind::Restart { .. }
                | FaultKind::Loss { .. }
                | FaultKind::Disk { what: Trouble::Full, .. } => {}
                FaultKind::LostReply { .. }
                | FaultKind::LostCallback { .. }
                | FaultKind::Death { .. }
                | FaultKind::Clock { .. }
                | FaultKind::Disk { .. } => {
                    return Err(TrialError::Kind { fault: number, kind: fault.kind.to_string() });
                }
            }
        }
        Ok(())
    }

    /// Puts faults into the order of time, and those of the server, which is one, behind each other.
    pub fn order(&mut self) {
        self.faults.sort_by_key(|fault| fault.at);
        let mut free = Duration::ZERO;
        for fault in self.faults.iter_mut().filter(|fault| is_of_server(&fault.kind)) {
            fault.at = fault.at.max(free);
            // What it takes to stop and to start is not in the length.
            free = fault.at + fault.kind.length() + SECOND;
        }
        self.faults.sort_by_key(|fault| fault.at);
    }

    /// When what begins and ends, in order.
    pub fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for (number, fault) in self.faults.iter().enumerate() {
            let length = fault.kind.length();
            events.push(Event { at: fault.at, edge: Edge::Begin, fault: number });
            if !length.is_zero() {
                events.push(Event { at: fault.at + length, edge: Edge::End, fault: number });
            }
        }
        events.sort_unstable();
        events
    }

    /// Why operations of clients may fail; `None`: none may.
    pub fn excuse(&self, lease: Duration) -> Option<&'static str> {
        self.faults.iter().find_map(|fault| match fault.kind {
            FaultKind::Disk { .. } => Some("the disk was full"),
            FaultKind::Partition { length, .. } if length >= lease.mul_f64(SILENCE) => {
                Some("a client could not be reached for about a lease, and may have lost what it held")
            }
            FaultKind::Restart { .. } if self.hasty => Some("the server ended its grace period at once"),
            // Who cannot be reached while the others reclaim comes too late.
            FaultKind::Restart { .. } if self.faults.iter().any(|fault| silences(&fault.kind)) => {
                Some("a client may have missed the grace period")
            }
            _ => None,
        })
    }
}

fn silences(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::Partition { .. } | FaultKind::Loss { .. } | FaultKind::Pause { .. })
}

fn is_of_server(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::Pause { .. } | FaultKind::Restart { .. } | FaultKind::Disk { .. })
}

fn fault(dice: &mut Dice, ground: &Ground) -> Fault {
    let at = Duration::from_nanos(dice.below(u64::try_from(ground.busy.as_nanos()).unwrap_or(u64::MAX)));
    let client = dice.below(u64::from(ground.clients)) as u8;
    let short = ground.lease / 2;
    let kind = match dice.below(16) {
        0..=2 => FaultKind::Cut { client },
        3 | 4 => FaultKind::Partition { client, length: dice.span(100 * MS, short) },
        5 => FaultKind::Partition { client, length: dice.span(ground.lease, 3 * ground.lease) },
        6 | 7 => FaultKind::Loss { permille: 1 + dice.below(200) as u16, length: dice.span(SECOND, short) },
        8 => FaultKind::Pause { length: dice.span(100 * MS, short) },
        9 if ground.disk => FaultKind::Disk { what: Trouble::Full, length: dice.span(100 * MS, short) },
        10..=13 if ground.disk => {
            FaultKind::Restart { down: dice.span(LEAST_DOWN, ground.lease), power: true }
        }
        _ => FaultKind::Restart { down: dice.span(LEAST_DOWN, ground.lease), power: false },
    };
    Fault { at, kind }
}

/// Shortens faults no further than a server takes to start again.
pub(crate) fn least(kind: &FaultKind) -> Duration {
    match kind {
        FaultKind::Restart { .. } => LEAST_DOWN,
        _ => 10 * MS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ground() -> Ground {
        Ground { clients: 2, busy: 20 * SECOND, lease: 10 * SECOND, disk: true, faults: 4 }
    }

    #[test]
    fn a_seed_is_a_trial() {
        let draw = |seed| Trial::draw(seed, "[study]", &ground());
        assert_eq!(draw(7), draw(7));
        assert!((0..50).map(draw).any(|trial| trial.faults != draw(7).faults));
        let without = Ground { disk: false, ..ground() };
        for seed in 0..500 {
            let trial = draw(seed);
            assert!((1..=4).contains(&trial.faults.len()));
            let needs_disk = |fault: &Fault| {
                matches!(fault.kind, FaultKind::Disk { .. } | FaultKind::Restart { power: true, .. })
            };
            assert!(!Trial::draw(seed, "", &without).faults.iter().any(needs_disk), "seed {seed}");
        }
    }

    #[test]
    fn trials_that_were_written_are_checked() {
        for seed in 0..300 {
            assert_eq!(Trial::draw(seed, "", &ground()).check(2), Ok(()), "seed {seed}");
        }
        let at = |at, kind| Trial {
            study: String::new(),
            seed: 0,
            hasty: false,
            faults: vec![Fault { at, kind }],
        };
        let cut = FaultKind::Cut { client: 2 };
        assert_eq!(at(SECOND, cut).check(2), Err(TrialError::Client { fault: 0, client: 2, clients: 2 }));
        assert_eq!(at(2 * LONGEST, cut).check(3), Err(TrialError::Time(0)));
        let pause = FaultKind::Pause { length: Duration::MAX };
        assert_eq!(at(SECOND, pause).check(1), Err(TrialError::Time(0)));
        let death = at(SECOND, FaultKind::Death { client: 0 }).check(1).unwrap_err().to_string();
        assert!(death.contains("client 0 dies"), "{death}");
        let many = Trial { faults: vec![Fault { at: SECOND, kind: cut }; 1001], ..at(SECOND, cut) };
        assert_eq!(many.check(3), Err(TrialError::Faults(1001)));
    }

    #[test]
    fn each_kind_of_fault_is_drawn() {
        let faults = || (0..300).flat_map(|seed| Trial::draw(seed, "", &ground()).faults);
        let has = |kind: fn(&FaultKind) -> bool| faults().any(|fault| kind(&fault.kind));
        assert!(has(|kind| matches!(kind, FaultKind::Cut { client: 1 })));
        assert!(has(|kind| matches!(kind, FaultKind::Partition { length, .. } if *length > 10 * SECOND)));
        assert!(has(|kind| matches!(kind, FaultKind::Partition { length, .. } if *length < 5 * SECOND)));
        assert!(has(|kind| matches!(kind, FaultKind::Loss { .. })));
        assert!(has(|kind| matches!(kind, FaultKind::Pause { .. })));
        assert!(has(|kind| matches!(kind, FaultKind::Disk { .. })));
        assert!(has(|kind| matches!(kind, FaultKind::Restart { power: true, .. })));
        assert!(has(|kind| matches!(kind, FaultKind::Restart { power: false, .. })));
        assert!((0..300).any(|seed| Trial::draw(seed, "", &ground()).hasty));
    }

    #[test]
    fn the_server_has_one_fault_at_a_time() {
        for seed in 0..500 {
            let trial = Trial::draw(seed, "", &Ground { faults: 8, ..ground() });
            let mut at_work = None;
            let mut begun = vec![false; trial.faults.len()];
            for event in trial.events() {
                let of_server = is_of_server(&trial.faults[event.fault].kind);
                match event.edge {
                    Edge::Begin => {
                        assert!(!begun[event.fault]);
                        begun[event.fault] = true;
                        if of_server {
                            assert_eq!(at_work.replace(event.fault), None, "seed {seed}");
                        }
                    }
                    Edge::End => {
                        assert!(begun[event.fault], "seed {seed}: {:?}", trial.events());
                        if of_server {
                            assert_eq!(at_work.take(), Some(event.fault), "seed {seed}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn errors_need_an_excuse() {
        let trial = |hasty, kinds: &[FaultKind]| Trial {
            study: String::new(),
            seed: 0,
            hasty,
            faults: kinds.iter().map(|kind| Fault { at: SECOND, kind: *kind }).collect(),
        };
        let excuse = |hasty, kinds: &[FaultKind]| trial(hasty, kinds).excuse(10 * SECOND).is_some();
        let restart = FaultKind::Restart { down: 2 * SECOND, power: true };
        let away = |length| FaultKind::Partition { client: 0, length };
        assert!(!excuse(false, &[]) && !excuse(true, &[]));
        assert!(!excuse(false, &[restart, FaultKind::Cut { client: 0 }]) && excuse(true, &[restart]));
        assert!(!excuse(false, &[away(7 * SECOND)]) && excuse(false, &[away(8 * SECOND)]));
        assert!(excuse(false, &[away(SECOND), restart]));
    }
}
