//! What a job says to the controller while it runs.

use benchmaster_frames::FrameError;
use benchmaster_workload::conduct::Stopped;
use tokio::sync::mpsc::Sender;

use crate::protocol::{Answer, Failure, Report, answer};
use crate::stream::frames::Outgoing;

/// Sends the reports of a call.
#[derive(Debug, Clone)]
pub(super) struct Reporter {
    call: u32,
    pub(super) frames: Sender<Outgoing>,
}

impl Reporter {
    pub(super) fn new(call: u32, frames: Sender<Outgoing>) -> Self {
        Self { call, frames }
    }

    pub(super) fn frame(&self, report: Report) -> Result<Outgoing, FrameError> {
        answer(self.call, &Answer::Ok(report)).map(Outgoing::Frame)
    }

    /// Waits while the controller is behind. Fails when it takes no more.
    pub(super) fn send(&self, report: Report) -> Result<(), Stopped> {
        let frame = self.frame(report).map_err(|_| Stopped)?;
        self.frames.blocking_send(frame).map_err(|_| Stopped)
    }

    /// Leaves the report out when the controller is behind.
    pub(super) fn try_send(&self, report: Report) {
        if let Ok(frame) = self.frame(report) {
            let _ = self.frames.try_send(frame);
        }
    }

    /// The last report of a call.
    pub(super) fn last(&self, report: Report) -> Option<Outgoing> {
        let failed = |error| Failure::of_job(format!("its result cannot be sent: {error}"));
        self.frame(report).or_else(|error| self.frame(Report::Failed(failed(error)))).ok()
    }
}
