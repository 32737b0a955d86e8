//! What a run needs around it: machines, servers, networks, processes of clients, steps, mounts; and how it is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use benchmaster_fleet::job::{HookSpec, Side};
use benchmaster_netem::namespace::Namespace;
use benchmaster_record::results::{HookRecord, RunKey};
use benchmaster_workload::target::Target;
use jiff::Timestamp;

use super::super::crew::{Crew, CrewError};
use super::super::lab::SERVER_MACHINE;
use super::super::network::nanos;
use super::super::services::Reached;
use super::super::setup::{self, Mount, SetUp};
use super::super::targets::{export, is_known, place_of};
use super::super::{RunError, RunEvent};
use super::{Party, Runner};
use benchmaster_study::plan::PlannedTreatment;
use benchmaster_study::settings::{FilesetReuse, ReadyStep, Settings};

impl Runner<'_> {
    /// Sets up what a run needs: server, network, processes of clients, steps, mounts, the working directory.
    pub(super) fn prepare(&mut self, key: RunKey, planned: &PlannedTreatment) -> Result<Reached, CrewError> {
        let settings = &planned.settings;
        self.prepare_lab(settings)?;
        let reached = self.targets.reach(settings)?;
        let mount = Mount::of(settings, &self.targets.id);
        let due = self.set_up.due(planned);
        let namespaces = self.targets.services.namespaces(reached.network);
        let others = self.crew.as_ref().is_some_and(|crew| !crew.serves(settings, &namespaces));
        if others || !due.is_empty() || self.set_up.mounted != mount {
            self.let_go()?;
        }
        if others && let Some(crew) = self.crew.take() {
            crew.end()?;
        }
        self.crew(settings, &namespaces)?;
        if !due.is_empty() || mount.is_some() {
            self.after_a_kill(planned)?;
        }
        self.set_up.begin(planned);
        for step in &due {
            self.step(step, Some((planned, key)), self.request.stop)?;
        }
        if let Some(mount) = mount.filter(|_| self.set_up.mounted.is_none()) {
            self.hook(
                "clients.mount-point",
                Side::Clients,
                &mount.make_room(),
                Some(key),
                self.request.stop,
            )?;
            // It may be mounted on some hosts when it fails on others.
            self.set_up.mounted = Some(mount.clone());
            self.hook("clients.mount", Side::Clients, &mount.mount(), Some(key), self.request.stop)?;
        }
        self.set_up.done(planned);
        self.open(settings, &reached)?;
        self.look_at(settings, &reached)?;
        // From this process the machines' network cannot be measured.
        if settings.run.baseline && settings.lab.is_none() {
            self.baseline(settings, &reached)?;
        }
        let fresh = settings.run.filesets == FilesetReuse::Fresh;
        self.crew(settings, &namespaces)?.begin_run(&reached.place, fresh)?;
        Ok(reached)
    }

    /// The processes of clients, launched if there are none.
    fn crew(&mut self, settings: &Settings, namespaces: &[Arc<Namespace>]) -> Result<&mut Crew, CrewError> {
        let crew = match self.crew.take() {
            Some(crew) => crew,
            None => {
                let observe = &mut *self.observe;
                Crew::launch(settings, namespaces, self.labs.lab(), self.request.stop, &mut |text| {
                    observe(RunEvent::Note(text))
                })?
            }
        };
        Ok(self.crew.insert(crew))
    }

    pub(super) fn open(&mut self, settings: &Settings, reached: &Reached) -> Result<(), CrewError> {
        let namespaces = self.targets.services.namespaces(reached.network);
        let id = self.targets.id.clone();
        self.crew(settings, &namespaces)?.open(&reached.place, &reached.target, &id, &namespaces)
    }

    /// Removes working directories and mounts, so that what they lie on can be taken away.
    pub(super) fn let_go(&mut self) -> Result<(), CrewError> {
        if let Some(crew) = &mut self.crew {
            crew.remove()?;
        }
        self.unmount(self.request.stop)
    }

    pub(super) fn unmount(&mut self, stop: &AtomicBool) -> Result<(), CrewError> {
        if let Some(mount) = self.set_up.mounted.take() {
            self.hook("clients.unmount", Side::Clients, &mount.unmount(), None, stop)?;
        }
        Ok(())
    }

    /// Undoes what a session that was killed left behind, once.
    fn after_a_kill(&mut self, planned: &PlannedTreatment) -> Result<(), CrewError> {
        let Some(killed) = self.earlier.sessions.last().filter(|session| session.ended.is_none()) else {
            return Ok(());
        };
        if std::mem::replace(&mut self.set_up.cleaned, true) {
            return Ok(());
        }
        // What others have mounted stays as it is.
        let mounting = |hook: &HookRecord| hook.session == killed.id && hook.step == "clients.mount";
        let mounted = self.earlier.hooks.iter().any(mounting);
        let mut mounts: Vec<Mount> = Vec::new();
        for planned in self.request.plan.all_treatments() {
            let mount = Mount::of(&planned.settings, &self.targets.id);
            mounts.extend(mount.filter(|mount| mounts.iter().all(|known| known.path != mount.path)));
        }
        for mount in mounts.into_iter().filter(|_| mounted) {
            self.hook("clients.unmount", Side::Clients, &mount.unmount(), None, self.request.stop)?;
        }
        for step in setup::teardown(&planned.settings) {
            // What was not done before the kill cannot be undone; it is recorded.
            let _ = self.step(&step, None, self.request.stop);
        }
        Ok(())
    }

    fn step(
        &mut self,
        step: &ReadyStep,
        of: Option<(&PlannedTreatment, RunKey)>,
        stop: &AtomicBool,
    ) -> Result<(), CrewError> {
        let name = format!("{}.{}", step.on.name(), step.name);
        let spec = setup::spec(step, &self.study.name, of);
        (self.observe)(RunEvent::Note(&format!("{name}: {}", step.command)));
        self.hook(&name, setup::side(step.on), &spec, of.map(|(_, key)| key), stop)
    }

    /// Runs a command on each host of a side, and stores how that went.
    fn hook(
        &mut self,
        step: &str,
        on: Side,
        spec: &HookSpec,
        run: Option<RunKey>,
        stop: &AtomicBool,
    ) -> Result<(), CrewError> {
        let Some(crew) = &mut self.crew else { return Ok(()) };
        let (started, began) = (Timestamp::now(), Instant::now());
        let done = crew.run_hook(on, spec, stop)?;
        let record = HookRecord {
            session: self.session,
            run,
            step: step.to_owned(),
            agent: String::new(),
            command: spec.command.clone(),
            started,
            elapsed_ns: nanos(began.elapsed()),
            ended: String::new(),
            succeeded: false,
            output: String::new(),
        };
        let records: Vec<_> = done.iter().map(|done| done.record(&record)).collect();
        for record in &records {
            self.store.add_hook(record).map_err(RunError::from)?;
        }
        match records.into_iter().find(|record| !record.succeeded) {
            None => Ok(()),
            Some(_) if stop.load(Ordering::Relaxed) => Err(CrewError::Stopped),
            Some(HookRecord { step, agent, command, ended, output, .. }) => {
                self.set_up.forget();
                Err(RunError::Step { step, agent, command, ended, output }.into())
            }
        }
    }

    /// Takes the environment of a target that could not be looked at before.
    fn look_at(&mut self, settings: &Settings, reached: &Reached) -> Result<(), CrewError> {
        let place = match (&settings.lab, self.labs.number()) {
            // Machines of another lab may have another kernel.
            (Some(_), number @ 2..) => format!("{}, lab {number}", place_of(settings, reached)),
            _ => place_of(settings, reached),
        };
        if is_known(settings) || !self.set_up.looked.insert(place.clone()) {
            return Ok(());
        }
        let directory = match &reached.target {
            Target::Directory(path) => Some(path.as_path()),
            Target::Nfs(_) => None,
        };
        let Some(crew) = &mut self.crew else { return Ok(()) };
        let found = crew.environment(directory)?;
        for (index, (host, mut environment)) in found.into_iter().enumerate() {
            environment.target = if settings.has_server_machine() && host == SERVER_MACHINE {
                // It mounts nothing.
                None
            } else {
                environment.target.or_else(|| export(settings, reached))
            };
            // The first stands for the clients where one is looked at, and takes the place of this process's.
            if index == 0 && self.environments.values().all(|known| known.target.is_none()) {
                self.environments.clear();
            }
            let name = if self.environments.contains_key(&host) { format!("{host} ({place})") } else { host };
            self.environments.insert(name, environment);
        }
        self.store.set_environment(self.session, &self.environments).map_err(RunError::from)?;
        Ok(())
    }

    /// Measures the network before the first run over it. That it cannot be measured is told, and no reason to stop.
    fn baseline(&mut self, settings: &Settings, reached: &Reached) -> Result<(), CrewError> {
        match self.baselines.take(settings, reached, &mut self.targets.services, self.session) {
            Ok(None) => {}
            Ok(Some(record)) => self.store.add_baseline(&record).map_err(RunError::from)?,
            Err(error) => {
                let text = format!("no baseline of the network to {}: {error}", settings.target.place());
                (self.observe)(RunEvent::Note(&text));
            }
        }
        Ok(())
    }

    /// Gives up on processes of clients of which one is lost.
    pub(super) fn disband(&mut self) {
        if let Some(crew) = self.crew.take() {
            // Whoever is lost cannot do its part.
            let _ = crew.end();
        }
    }

    /// Leaves nothing behind: files, mounts, what steps set up, processes, servers and networks.
    pub(crate) fn clean_up(&mut self) -> Result<(), RunError> {
        // What was stopped is cleaned up nevertheless.
        let stop = AtomicBool::new(false);
        let mut result = Ok(());
        if self.crew.is_none() && (self.set_up.mounted.is_some() || !self.set_up.teardown.is_empty()) {
            result = result.and(self.relaunch(&stop));
        }
        if let Some(crew) = &mut self.crew {
            result = result.and(crew.remove().map_err(fatal));
        }
        result = result.and(self.unmount(&stop).map_err(fatal));
        for step in std::mem::take(&mut self.set_up.teardown) {
            result = result.and(self.step(&step, None, &stop).map_err(fatal));
        }
        if let Some(crew) = self.crew.take() {
            result = result.and(crew.end().map_err(fatal));
        }
        let removed = self.targets.remove().map_err(RunError::from);
        let observe = &mut *self.observe;
        let ended = self.labs.down(&mut |text| observe(RunEvent::Note(text)));
        result.and(removed).and(ended)
    }

    /// Processes that clean up after those that were lost.
    fn relaunch(&mut self, stop: &AtomicBool) -> Result<(), RunError> {
        let Some(planned) = self.set_up.last(self.request.plan) else { return Ok(()) };
        if planned.settings.lab.is_some() && self.labs.lab().is_none() {
            // With the machines everything has gone.
            self.set_up = SetUp::default();
            return Ok(());
        }
        let crew = Crew::launch(&planned.settings, &[], self.labs.lab(), stop, &mut |_| {}).map_err(fatal)?;
        self.crew = Some(crew);
        Ok(())
    }
}

/// CrewError outside of a run ends the session.
pub(super) fn fatal(trouble: CrewError) -> RunError {
    let (agent, reason) = match trouble {
        CrewError::Fatal(error) => return *error,
        CrewError::Lost { agent, reason } => (Party::Agent(agent).to_string(), reason),
        CrewError::Failed(reason) => ("this process".into(), reason),
        CrewError::Execute(error) => ("this process".into(), error.to_string()),
        CrewError::Stopped => ("this process".into(), "it was stopped".into()),
    };
    RunError::Lost { agent, reason }
}
