//! The controller as the conductor of this process's part of a run.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use benchmaster_workload::conduct::{Assembly, Attendance, Conductor, Held, Start, Step, Stopped};
use parking_lot::Mutex;

use super::reporter::Reporter;
use crate::protocol::{Instruction, Report};

/// Wakes workers that wait at meetings. Set for as long as a workload runs that has any.
#[derive(Clone, Default)]
pub(super) struct Meetings(Arc<Mutex<Option<Held>>>);

impl std::fmt::Debug for Meetings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meetings")
    }
}

impl Meetings {
    /// Workers of all processes were at a meeting.
    pub(super) fn met(&self, meeting: u16, time: u64) {
        let wake = self.0.lock().clone();
        if let Some(wake) = wake {
            wake(meeting, time);
        }
    }
}

/// Keeps in step with the controller.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) reporter: Reporter,
    /// Closed when the run is to stop.
    pub(super) orders: Receiver<Instruction>,
    pub(super) meetings: Meetings,
}

/// Reports meetings to the controller.
#[derive(Debug)]
struct MeetingReports(Reporter);

impl Assembly for MeetingReports {
    fn tell(&self, meeting: u16, attendance: Attendance) {
        // When the controller is gone the run is stopped.
        let _ = self.0.send(Report::Attended { meeting, attendance });
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // It holds the way to the controller open.
        *self.meetings.0.lock() = None;
    }
}

impl Conductor for Remote {
    fn meet(&mut self, step: Step) -> Result<(), Stopped> {
        self.reporter.send(Report::Reached(step))?;
        // Orders for anything else would be of a step that was left already.
        while self.orders.recv().map_err(|_| Stopped)? != Instruction::Go(step) {}
        Ok(())
    }

    fn start(&mut self, phase: Start, lead: Duration) -> Result<i64, Stopped> {
        self.reporter.send(Report::Ready { phase, lead })?;
        loop {
            if let Instruction::StartAt(time) = self.orders.recv().map_err(|_| Stopped)? {
                return Ok(time);
            }
        }
    }

    fn assembly(&mut self, held: Held) -> Option<Arc<dyn Assembly>> {
        *self.meetings.0.lock() = Some(held);
        Some(Arc::new(MeetingReports(self.reporter.clone())))
    }
}
