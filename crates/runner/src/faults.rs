//! What goes wrong in a lab on virtual time while a workload is measured: brought about at its time, and undone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use benchmaster_explore::scenario::FaultKind;
use benchmaster_explore::study::Edge;
use benchmaster_lab::guest::knfsd::ServerFault;
use benchmaster_lab::virtual_time::{self, Inside};
use benchmaster_lab::{KnfsdConfig, PowerCut};
use benchmaster_netem::network::Trouble;
use benchmaster_study::settings::Settings;
use serde::{Deserialize, Serialize};

use super::Faulty;
use super::lab::{Labs, cut_disk};

/// How long after the last fault a workload and the look at what is left of it may take. Linux' clients repeat a call after a minute,
/// and TCP pauses for up to two minutes between attempts.
const PATIENCE: Duration = Duration::from_secs(400);

/// How long connections that are to break may be without a segment before they are left alone.
const QUIET: Duration = Duration::from_secs(5);

/// A line of the history of a study in which something goes wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultLine {
    /// The guest's time, nanoseconds since 1970.
    pub unix_ns: i64,
    /// What it tells.
    pub kind: FaultLineKind,
    /// In words.
    pub what: String,
}

/// What a line of the history tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultLineKind {
    /// Something goes wrong, or is over.
    Fault,
    /// What came of it on the server.
    Server,
    /// The workload has not ended in time after the last fault.
    Stuck,
    /// A fault could not be brought about: the history is of no use.
    Failed,
}

/// Faults at work beside one workload.
#[derive(Debug)]
pub(super) struct Faults<'a> {
    faulty: Faulty<'a>,
    labs: &'a Labs,
    server: KnfsdConfig,
    /// What the server's disk loses with its power.
    cut: PowerCut,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    begun: bool,
    /// Whether all faults are over.
    healed: bool,
    /// Whether the workload is over.
    ended: bool,
}

/// What is wrong with the network.
#[derive(Debug, Clone, PartialEq, Default)]
struct Network {
    /// By how many faults each client cannot be reached.
    parted: BTreeMap<u8, u8>,
    /// Whether none can be.
    down: bool,
    /// Of a thousand packets, by each fault.
    lost: Vec<u16>,
}

impl<'a> Faults<'a> {
    /// `None` where nothing goes wrong.
    pub(super) fn of(faulty: Option<Faulty<'a>>, labs: &'a Labs, settings: &Settings) -> Option<Self> {
        let (faulty, lab) = faulty.zip(settings.lab.as_ref())?;
        let cut = PowerCut { disk: cut_disk(lab.disk_cache), seed: faulty.trial.seed };
        let state = Mutex::new(State::default());
        Some(Self { faulty, labs, server: lab.knfsd(), cut, state, changed: Condvar::new() })
    }

    /// Lets them begin now.
    pub(super) fn begin(&self) {
        self.set(|state| state.begun = true);
    }

    /// Waits until all are over.
    pub(super) fn wait(&self) {
        let _healed = self.wait_until(self.lock(), None, |state| state.healed || !state.begun);
    }

    /// The workload is over, whatever came of it.
    pub(super) fn end(&self) {
        self.set(|state| state.ended = true);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, what: impl FnOnce(&mut State)) {
        what(&mut self.lock());
        self.changed.notify_all();
    }

    /// Whether it came true in time.
    fn wait_until(
        &self,
        mut state: MutexGuard<'_, State>,
        end: Option<Instant>,
        so: impl Fn(&State) -> bool,
    ) -> bool {
        while !so(&state) {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            state = match end {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(_) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
        }
        true
    }

    /// Brings them about and undoes them, on a thread of its own, until the workload has ended.
    pub(super) fn work(&self) {
        self.wait_until(self.lock(), None, |state| state.begun || state.ended);
        let Some(inside) = self.labs.lab().and_then(|lab| lab.on_virtual_time()) else {
            self.tell(FaultLineKind::Failed, "faults need a lab on virtual time");
            return self.set(|state| state.healed = true);
        };
        let clients = self.labs.lab().map_or(0, |lab| lab.config().clients);
        let begun = Instant::now();
        let mut network = Network::default();
        for event in self.faulty.trial.events() {
            self.wait_until(self.lock(), Some(begun + event.at), |state| state.ended);
            let fault = &self.faulty.trial.faults[event.fault];
            let before = network.clone();
            network.set(&fault.kind, event.edge);
            let put_on = || network.put_on(inside, &before, clients);
            let server = || self.server(inside, &fault.kind, event.edge);
            let done = match event.edge {
                // Of what a server does while it loses power nothing reaches clients.
                Edge::Begin => {
                    self.tell(FaultLineKind::Fault, &fault.kind.to_string());
                    put_on().and_then(|()| server())
                }
                // One that is down sends nothing until it has booted.
                Edge::End => {
                    self.tell(FaultLineKind::Fault, &format!("over: {}", fault.kind));
                    server().and_then(|said| put_on().map(|()| said))
                }
            };
            match done {
                Ok(said) if said.is_empty() => {}
                Ok(said) => self.tell(FaultLineKind::Server, &said),
                Err(error) => self.tell(FaultLineKind::Failed, &error),
            }
        }
        self.set(|state| state.healed = true);
        if !self.wait_until(self.lock(), Some(Instant::now() + PATIENCE), |state| state.ended) {
            let seconds = PATIENCE.as_secs();
            self.tell(
                FaultLineKind::Stuck,
                &format!("the workload has not ended {seconds} s after the last fault"),
            );
            virtual_time::end();
        }
    }

    /// Brings about what is no trouble of the network, or undoes it. What it did on the server, in words; may be empty.
    fn server(&self, inside: &Inside, kind: &FaultKind, edge: Edge) -> Result<String, String> {
        let server = |fault| inside.fault(&fault, &self.server).map_err(|error| error.to_string());
        match (*kind, edge) {
            (FaultKind::Cut { client }, Edge::Begin) => {
                inside.reset_connections(client.into(), QUIET).map_err(|error| error.to_string())?;
            }
            (FaultKind::Pause { .. }, Edge::Begin) => return server(ServerFault::Freeze),
            (FaultKind::Pause { .. }, Edge::End) => return server(ServerFault::Thaw),
            (FaultKind::Disk { .. }, Edge::Begin) => return server(ServerFault::Fill),
            (FaultKind::Disk { .. }, Edge::End) => return server(ServerFault::Empty),
            (FaultKind::Restart { power: true, .. }, Edge::Begin) => {
                return server(ServerFault::LosePower(self.cut));
            }
            (FaultKind::Restart { power: false, .. }, Edge::Begin) => return server(ServerFault::Stop),
            (FaultKind::Restart { power, .. }, Edge::End) => {
                let mut said = server(if power { ServerFault::Boot } else { ServerFault::Start })?;
                if self.faulty.trial.hasty {
                    server(ServerFault::EndGrace)?;
                    said += "; the grace period was ended at once";
                }
                return Ok(said);
            }
            (FaultKind::Partition { .. } | FaultKind::Loss { .. }, _)
            | (FaultKind::Cut { .. }, Edge::End) => {}
            (
                FaultKind::LostReply { .. }
                | FaultKind::LostCallback { .. }
                | FaultKind::Death { .. }
                | FaultKind::Clock { .. },
                _,
            ) => return Err(format!("in the lab nothing does this: {kind}")),
        }
        Ok(String::new())
    }

    fn tell(&self, kind: FaultLineKind, what: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ns = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
        let line = FaultLine { unix_ns, kind, what: what.to_owned() };
        if let Err(error) = append(self.faulty.history, &line) {
            log::warn!("the history cannot be written to {}: {error}", self.faulty.history.display());
        }
    }
}

fn append(path: &Path, line: &FaultLine) -> std::io::Result<()> {
    let text = serde_json::to_string(line)?;
    let mut file = File::options().append(true).create(true).open(path)?;
    writeln!(file, "{text}")
}

impl Network {
    fn of(&self, client: u32) -> Trouble {
        let parted = u8::try_from(client).ok().and_then(|client| self.parted.get(&client));
        if self.down || parted.is_some_and(|count| *count > 0) {
            return Trouble { lost: 1.0, ..Trouble::default() };
        }
        // As many are doubled, and overtake others.
        let part = f64::from(self.lost.iter().copied().max().unwrap_or_default().min(1000)) / 1000.0;
        Trouble { lost: part, doubled: part, early: part }
    }

    /// Notes what a fault does to it from now on, or does no more.
    fn set(&mut self, kind: &FaultKind, edge: Edge) {
        let begins = edge == Edge::Begin;
        match *kind {
            FaultKind::Partition { client, .. } => {
                let count = self.parted.entry(client).or_default();
                *count = if begins { *count + 1 } else { count.saturating_sub(1) };
            }
            FaultKind::Loss { permille, .. } if begins => self.lost.push(permille),
            FaultKind::Loss { permille, .. } => {
                let place = self.lost.iter().position(|lost| *lost == permille);
                place.map(|place| self.lost.remove(place));
            }
            FaultKind::Restart { power: true, .. } => self.down = begins,
            _ => {}
        }
    }

    /// Makes links what they are to be, where they are something else.
    fn put_on(&self, inside: &Inside, before: &Self, clients: u32) -> Result<(), String> {
        for client in (0..clients).filter(|client| self.of(*client) != before.of(*client)) {
            inside.disturb(client, self.of(client)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_is_away_loses_all_and_others_some() {
        let parted = BTreeMap::from([(1, 2)]);
        let network = Network { parted: parted.clone(), down: false, lost: vec![50, 20] };
        assert_eq!(network.of(1).lost.to_bits(), 1.0_f64.to_bits());
        assert_eq!(network.of(0), Trouble { lost: 0.05, doubled: 0.05, early: 0.05 });
        assert_eq!(Network { parted, ..Network::default() }.of(0), Trouble::default());
        let back = Network { parted: BTreeMap::from([(1, 0)]), ..Network::default() };
        assert_eq!(back.of(1), Trouble::default());
        assert_eq!(Network { down: true, ..Network::default() }.of(0).lost.to_bits(), 1.0_f64.to_bits());
    }

    #[test]
    fn what_is_over_leaves_the_network_as_it_was() {
        let length = Duration::from_secs(1);
        let kinds = [
            FaultKind::Partition { client: 1, length },
            FaultKind::Loss { permille: 20, length },
            FaultKind::Restart { down: length, power: true },
        ];
        let mut network = Network::default();
        kinds.iter().for_each(|kind| network.set(kind, Edge::Begin));
        assert!(network.down && network.lost == [20] && network.parted[&1] == 1);
        kinds.iter().rev().for_each(|kind| network.set(kind, Edge::End));
        assert_eq!((network.of(0), network.of(1)), (Trouble::default(), Trouble::default()));
    }

    #[test]
    fn lines_are_added_to_a_history() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history");
        let line = |what: &str| FaultLine { unix_ns: 5, kind: FaultLineKind::Server, what: what.into() };
        append(&path, &line("first")).unwrap();
        append(&path, &line("second")).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Vec<FaultLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, [line("first"), line("second")]);
    }
}
