//! A job on an agent: what comes in and what goes out while it runs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use benchmaster_record::recording::TraceRecord;
use benchmaster_trace::TraceSink;
use benchmaster_workload::conduct::Share;
use benchmaster_workload::execute::{ExecuteError, Progress};
use tokio::task::AbortHandle;

use super::conductor::{Meetings, Remote};
use super::reporter::Reporter;
use super::work::{Areas, Handle, Wanted};
use crate::job::Side;
use crate::perform::{Surroundings, observe, perform};
use crate::protocol::{
    Failure, FailureKind, Instruction, PhaseProgress, RECORDS, Report, Role, Task, TraceBatch,
};

/// Time between two reports of progress.
const PROGRESS: Duration = Duration::from_millis(180);

/// How the controller's instructions reach a job. Dropping it stops the job.
#[derive(Debug)]
pub(super) struct Control {
    /// To the thread that takes the workers through the phases; closed when the job is to stop.
    orders: Option<mpsc::Sender<Instruction>>,
    meetings: Meetings,
    wanted: Wanted,
}

impl Control {
    pub(super) fn instruct(&mut self, instruction: Instruction) {
        match instruction {
            Instruction::Go(_) | Instruction::StartAt(_) => {
                // A job that is done takes no more.
                let _ = self.orders.as_ref().map(|orders| orders.send(instruction));
            }
            // Workers wait for it, not the thread that takes them through the phases.
            Instruction::Met { meeting, time } => self.meetings.met(meeting, time),
            Instruction::Stop => {
                self.wanted.0.store(true, Ordering::Relaxed);
                self.orders = None;
            }
        }
    }
}

/// Begins a job: what ends with it, and how to control it.
pub(super) fn start(
    work: &Handle,
    task: Task,
    role: Role,
    agent: String,
    reporter: Reporter,
) -> (AbortHandle, Control) {
    let (orders, incoming) = mpsc::channel();
    let meetings = Meetings::default();
    let wanted = work.wanted();
    let stop = Arc::clone(&wanted.0);
    let (to_work, own_meetings) = (reporter.clone(), meetings.clone());
    let done = work.submit(move |areas| {
        let conductor = Remote { reporter: to_work.clone(), orders: incoming, meetings: own_meetings };
        let part = Part { agent: &agent, task: &task, role, reporter: &to_work, stop: &stop };
        let result = match role.share {
            Some(share) => part.play(areas, share, conductor),
            None => part.look(conductor),
        };
        if let Some(last) = to_work.last(result.unwrap_or_else(Report::Failed)) {
            // The stream may be gone.
            let _ = to_work.frames.blocking_send(last);
        }
    });
    let watched = tokio::spawn(async move {
        if let Ok(Err(defect)) = done.await
            && let Some(last) = reporter.last(Report::Failed(Failure::of_job(defect.to_string())))
        {
            let _ = reporter.frames.send(last).await;
        }
    });
    (watched.abort_handle(), Control { orders: Some(orders), meetings, wanted })
}

/// A job on the thread that does it.
struct Part<'a> {
    agent: &'a str,
    task: &'a Task,
    role: Role,
    reporter: &'a Reporter,
    stop: &'a AtomicBool,
}

impl Part<'_> {
    fn play(&self, areas: &mut Areas, share: Share, mut conductor: Remote) -> Result<Report, Failure> {
        let Task { place, job, .. } = self.task;
        let Some(area) = areas.get_mut(place) else {
            return Err(Failure::of_job(format!("place `{place}` was not opened")));
        };
        let mut sink = Sink { reporter: self.reporter };
        let sink: Option<&mut dyn TraceSink> = if job.trace { Some(&mut sink) } else { None };
        let mut next = Instant::now();
        let mut observe = |progress: Progress| {
            if Instant::now() >= next {
                next = Instant::now() + PROGRESS;
                self.reporter.try_send(Report::Progress(phase_progress(&progress)));
            }
        };
        let surroundings = self.surroundings(Side::Clients);
        let performed = perform(area, job, share, surroundings, &mut conductor, sink, &mut observe);
        performed.map(|performed| Report::Performed(Box::new(performed))).map_err(|error| Failure {
            kind: match error {
                ExecuteError::Stopped => FailureKind::Stopped,
                _ => FailureKind::Job,
            },
            text: error.to_string(),
        })
    }

    fn look(&self, mut conductor: Remote) -> Result<Report, Failure> {
        let observed = observe(&self.task.job, self.surroundings(Side::Server), &mut conductor);
        observed
            .map(|observed| Report::Observed(Box::new(observed)))
            .map_err(|stopped| Failure { kind: FailureKind::Stopped, text: stopped.to_string() })
    }

    fn surroundings(&self, side: Side) -> Surroundings<'_> {
        Surroundings {
            agent: self.agent,
            side,
            neighbours: self.role.neighbours,
            looks: self.role.looks,
            stop: self.stop,
            samplers: Vec::new(),
        }
    }
}

fn phase_progress(progress: &Progress) -> PhaseProgress {
    PhaseProgress {
        phase: progress.phase,
        elapsed: progress.elapsed,
        length: progress.length,
        done: progress.done,
    }
}

/// Sends recorded calls to the controller; waits when it cannot keep up, which the recorder notes.
struct Sink<'a> {
    reporter: &'a Reporter,
}

impl TraceSink for Sink<'_> {
    fn write(&mut self, records: &[TraceRecord]) -> io::Result<()> {
        records.chunks(RECORDS).try_for_each(|batch| {
            let lost = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the controller takes no more records");
            self.reporter.send(Report::Trace(TraceBatch(batch.to_vec()))).map_err(lost)
        })
    }
}
