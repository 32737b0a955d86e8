//! The controller above its own group: its clock is the common one, and its word ends every wait.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use benchmaster_clock::monotonic_ns;
use benchmaster_record::recording::TraceRecord;
use benchmaster_trace::TraceSink;
use benchmaster_workload::conduct::Attendance;
use benchmaster_workload::execute::{Edge, Progress};

use super::error::FleetError;
use super::run::{Above, MemberProgress, together};
use super::stage::Said;
use super::until_set;
use crate::protocol::{Instruction, PhaseProgress};

/// How far a run is.
#[derive(Debug, Clone, Copy)]
pub struct FleetProgress<'a> {
    /// All agents together: the sums of operations and bytes, and the phase of the one that is furthest behind.
    pub total: Progress,
    /// Each, in the order of [`Fleet::members`](super::Fleet::members).
    pub members: &'a [MemberProgress],
}

/// What follows from what all agents say together, at this time of the controller.
pub(super) fn answer(said: Said, now_ns: i64) -> Option<Instruction> {
    match said {
        Said::Reached(step) => Some(Instruction::Go(step)),
        Said::Ready { lead, .. } => {
            let wait = i64::try_from(lead.as_nanos()).unwrap_or(i64::MAX / 2);
            Some(Instruction::StartAt(now_ns.saturating_add(wait)))
        }
        Said::Attended { meeting, attendance: Attendance::Arrived(time) } => {
            Some(Instruction::Met { meeting, time })
        }
        Said::Attended { attendance: Attendance::Left, .. } => None,
    }
}

/// See the module.
pub(super) struct Top<'a, 's, 'o> {
    pub(super) stop: &'a AtomicBool,
    pub(super) sink: Option<&'s mut dyn TraceSink>,
    pub(super) observe: &'o mut dyn FnMut(FleetProgress<'_>),
}

impl Above for Top<'_, '_, '_> {
    const STOPPING: Duration = Duration::from_millis(900);

    async fn order(&mut self) -> Instruction {
        until_set(self.stop).await;
        Instruction::Stop
    }

    async fn say(&mut self, said: Said) -> Option<Instruction> {
        answer(said, monotonic_ns())
    }

    async fn record(&mut self, records: Vec<TraceRecord>) -> Result<(), FleetError> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        sink.write(&records).map_err(FleetError::Trace)
    }

    fn progress(&mut self, members: &[MemberProgress], edge: Option<Edge>) {
        let PhaseProgress { phase, elapsed, length, done } = together(members);
        let total = Progress { phase, elapsed, length, done, edge };
        (self.observe)(FleetProgress { total, members });
    }
}
