//! One scenario from beginning to end.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_client::reactor::Reactor;

use crate::actor::{self, Site};
pub use crate::history::{Line, Who};
use crate::oracle::Oracle;
use crate::scenario::{FaultKind, LEASE, Op, Scenario, Step};
use crate::simulation::Simulation;

/// How long after the last fault and the last pause everything must be over: leases that must run out, one after the other,
/// and pauses between attempts.
const PATIENCE: Duration = Duration::from_secs(150);

/// What became of a scenario.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Everything that happened, in order.
    pub history: Vec<Line>,
    /// What was wrong first; nothing, if all was right.
    pub violation: Option<Violation>,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What was seen and what would be right.
    pub what: String,
    /// Time since the beginning.
    pub at: Duration,
}

impl Outcome {
    /// A number of the whole history: the same seed gives the same.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.history.hash(&mut hasher);
        hasher.finish()
    }
}

/// Why a scenario could not be tried. It says nothing about client and server.
#[derive(Debug, thiserror::Error)]
#[error("the scenario cannot be tried: {0}")]
pub struct RunError(String);

/// Tries a scenario.
///
/// # Errors
/// When the system has no descriptors or memory for it.
pub fn run(scenario: &Scenario) -> Result<Outcome, RunError> {
    run_tampered(scenario, 0)
}

/// Tries a scenario with a server that lies: `permille` of a thousand of its messages to clients are changed at random, once
/// they have mounted. Promises are broken then; it shows what a client makes of such messages.
///
/// # Errors
/// When the system has no descriptors or memory for it.
pub fn run_tampered(scenario: &Scenario, permille: u64) -> Result<Outcome, RunError> {
    let failed = |error: &dyn std::fmt::Display| RunError(error.to_string());
    let oracle = Rc::new(RefCell::new(Oracle::new(scenario.clients.len())));
    let world = Rc::new(Simulation::new(scenario, Rc::clone(&oracle)).map_err(RunError)?);
    let reactor = Reactor::simulated(world.clone()).map_err(|error| failed(&error))?;
    let _ends = reactor.ends_background();
    let site = Site { world: world.clone(), reactor: reactor.clone() };

    let prepared = reactor.block_on(actor::prepare(&site, scenario)).map_err(|error| failed(&error))?;
    prepared.map_err(|error| RunError(format!("without any fault: {error}")))?;

    let busy = scenario.clients.iter().flatten().map(time_of).sum::<Duration>();
    let faults = scenario.faults.iter().map(|fault| fault.at + fault.kind.length()).max().unwrap_or_default();
    world.begin(scenario, busy + faults + PATIENCE);
    if permille > 0 {
        world.tamper(scenario.seed, permille);
    }
    let mut clients: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for (number, steps) in scenario.clients.iter().enumerate() {
        let death = scenario.faults.iter().find_map(|fault| match fault.kind {
            FaultKind::Death { client } if usize::from(client) == number => Some(fault.at),
            _ => None,
        });
        let (site, reactor, world) = (&site, &reactor, &world);
        clients.push(Box::pin(async move {
            let work = actor::client(site, scenario, number, steps);
            match death {
                None => work.await,
                Some(death) => {
                    let now = reactor.now();
                    if reactor.until(now + death, work).await.is_none() {
                        world.kill(number);
                    }
                }
            }
        }));
    }
    let ended = reactor.run_all(&mut clients);
    drop(clients);
    let mut violation = oracle.borrow().wrong.clone();
    if violation.is_none() {
        match ended {
            Err(_) => {
                let oracle = oracle.borrow();
                let waiting = oracle.clients.iter().enumerate().filter(|(_, client)| !client.dead);
                let waiting: Vec<String> = waiting
                    .filter_map(|(number, client)| {
                        let (since, op) = client.doing?;
                        Some(format!("client {number}: {op}, since {since:?}"))
                    })
                    .collect();
                let what =
                    if waiting.is_empty() { "a client does not unmount".into() } else { waiting.join("; ") };
                violation = Some(format!("it does not end: {what}"));
            }
            Ok(_) => {
                world.heal(LEASE * 6).map_err(RunError)?;
                match reactor.block_on(actor::audit(&site, scenario)) {
                    Ok(Ok(())) => violation = oracle.borrow().wrong.clone(),
                    Ok(Err(error)) => violation = Some(format!("in the end: {error}")),
                    Err(_) => violation = Some("in the end a new client cannot look at the files".into()),
                }
            }
        }
    }
    let at = world.elapsed();
    reactor.end_background();
    Ok(Outcome { history: world.history(), violation: violation.map(|what| Violation { what, at }) })
}

/// How long a client does nothing but wait.
fn time_of(step: &Step) -> Duration {
    match step.op {
        Op::Increment { hold } => step.pause + hold,
        _ => step.pause,
    }
}
