//! What a session does about its lab: brings it up, leaves it, and looks after machines that were lost.

use std::fmt::Write as _;

use benchmaster_diagnosis::validity::kernel_warning;
use benchmaster_lab::MachineProblem;
use benchmaster_record::results::{Event, RunKey, RunRecord};
use jiff::Timestamp;

use super::{Attempt, CrewError, Party, RunError, RunEvent, Runner, SetUp, Settings, is_end, text};

impl Runner<'_> {
    /// Brings up the lab of a treatment, in place of another, with the server and the links that it asks for.
    pub(super) fn prepare_lab(&mut self, settings: &Settings) -> Result<(), CrewError> {
        if self.labs.is_other(settings)? {
            self.let_go()?;
            if let Some(crew) = self.crew.take() {
                crew.end()?;
            }
            self.targets.services.leave_lab();
            let observe = &mut *self.observe;
            self.labs.down(&mut |text| observe(RunEvent::Note(text)))?;
        }
        if settings.lab.is_none() {
            return Ok(());
        }
        let observe = &mut *self.observe;
        self.labs.bring_up(settings, &mut |text| observe(RunEvent::Note(text)))?;
        if self.labs.has_other_server(settings) || self.targets.services.has_other_in_lab(settings) {
            // What was mounted goes away with the server.
            self.let_go()?;
        }
        if self.labs.has_other_server(settings) {
            (self.observe)(RunEvent::Note("setting up the lab's server again"));
            self.labs.restart_server(settings)?;
        }
        if let Some(namespace) = self.labs.namespace() {
            self.targets.services.serve_lab(settings, &namespace)?;
        }
        Ok(self.labs.set_link(settings)?)
    }

    /// Takes what went wrong in machines into the run. A run during which one was lost is lost as well, whatever else is
    /// said of it; the consoles are kept.
    pub(super) fn look_after_machines(
        &mut self,
        attempt: Result<Attempt, RunError>,
        key: RunKey,
        attempts: usize,
    ) -> Result<Attempt, RunError> {
        if self.labs.lab().is_none() {
            return attempt;
        }
        let failed = match &attempt {
            Ok(Attempt::Stopped) => return attempt,
            Ok(Attempt::Done(run)) => run.failure.is_some(),
            Ok(Attempt::Lost(..)) | Err(_) => true,
        };
        let problems = self.labs.problems(failed && !matches!(attempt, Ok(Attempt::Done(_))));
        let lost = problems.iter().find(|problem| is_end(problem));
        self.lost_machine = lost.is_some();
        let mut attempt = match (attempt, lost) {
            (Ok(Attempt::Done(run) | Attempt::Lost(run, ..)), Some(lost)) => {
                Attempt::Lost(run, Party::Machine(lost.machine.clone()), text(lost))
            }
            (attempt, _) => attempt?,
        };
        if let Attempt::Lost(_, Party::Agent(agent), reason) = &mut attempt {
            // Why an agent is gone is often its kernel's to say: it was out of memory.
            for problem in problems.iter().filter(|problem| problem.machine == *agent) {
                let _ = write!(reason, "; {}", text(problem));
            }
        }
        let (Attempt::Done(run) | Attempt::Lost(run, ..)) = &mut attempt else { return Ok(attempt) };
        note(run, &problems);
        if failed || self.lost_machine {
            let below = format!("run-{}-{}-{attempts}", key.treatment, key.replicate);
            let kept = self.labs.keep_consoles(self.request.directory, &below).unwrap_or_else(|error| {
                let text = format!("the consoles of the lab's machines cannot be kept: {error}");
                (self.observe)(RunEvent::Note(&text));
                Vec::new()
            });
            for machine in run.lab.iter_mut().flat_map(|lab| &mut lab.machines) {
                let console = kept.iter().find(|(name, _)| *name == machine.name);
                machine.console = console.map(|(_, path)| path.clone());
            }
        }
        Ok(attempt)
    }

    /// Gives the lab up of which a machine was lost; the next run has another.
    pub(super) fn leave_lost_machines(&mut self) -> Result<(), RunError> {
        if !std::mem::take(&mut self.lost_machine) {
            return Ok(());
        }
        // With the machines everything in them has gone.
        self.set_up = SetUp::default();
        self.targets.services.leave_lab();
        let observe = &mut *self.observe;
        self.labs.give_up(&mut |text| observe(RunEvent::Note(text)))
    }
}

/// Problems as events of a run, and warnings of kernels as a check that did not pass.
fn note(run: &mut RunRecord, problems: &[MachineProblem]) {
    for problem in problems {
        run.events.push(Event { time: Timestamp::now(), kind: "machine".into(), text: text(problem) });
    }
    let warned = problems.iter().filter(|problem| !is_end(problem));
    run.checks.extend(warned.map(|problem| kernel_warning(text(problem), problem.lines.len())));
}
