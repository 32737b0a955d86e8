//! The controller as the conductor of this process's part of a run.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use benchmaster_workload::conduct::{Assembly, Attendance, Conductor, Held, Start, Step, Stopped};
use parking_lot::Mutex;
use tokio::sync::mpsc::Sender;

use crate::protocol::wire::report::Kind;
use crate::protocol::{phase_number, step_number, wire};

/// What the controller tells a process in a run. The channel is closed when it shall stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// All have come to this step, by number.
    Go(u32),
    /// A phase begins at this time of the monotonic clock.
    StartAt(i64),
}

/// Where those who wait at meetings are to be told that these were held. Set for as long as a workload runs that has any.
#[derive(Clone, Default)]
pub(super) struct Meetings(Arc<Mutex<Option<Held>>>);

impl std::fmt::Debug for Meetings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meetings")
    }
}

impl Meetings {
    /// A meeting was held by all processes.
    pub(super) fn held(&self, meeting: &wire::Meeting) {
        let held = self.0.lock().clone();
        if let (Some(held), Ok(number)) = (held, u16::try_from(meeting.number)) {
            held(number, meeting.time);
        }
    }
}

/// Keeps in step with the controller.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) reports: Sender<wire::Report>,
    pub(super) orders: Receiver<Order>,
    pub(super) meetings: Meetings,
}

/// Tells the controller of meetings.
#[derive(Debug)]
struct Telling(Sender<wire::Report>);

impl Assembly for Telling {
    fn tell(&self, meeting: u16, attendance: Attendance) {
        let time = match attendance {
            Attendance::Here(time) => time,
            Attendance::Left => 0,
        };
        let kind = Some(Kind::Came(wire::Meeting { number: meeting.into(), time }));
        // When the controller is gone the run is stopped.
        let _ = self.0.blocking_send(wire::Report { kind });
    }
}

impl Remote {
    fn tell(&self, kind: Kind) -> Result<(), Stopped> {
        self.reports.blocking_send(wire::Report { kind: Some(kind) }).map_err(|_| Stopped)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Who is told there holds the way to the controller open.
        *self.meetings.0.lock() = None;
    }
}

impl Conductor for Remote {
    fn meet(&mut self, step: Step) -> Result<(), Stopped> {
        let number = step_number(step);
        self.tell(Kind::Met(wire::Step { number }))?;
        // Orders for anything else would be of a step that was left already.
        while self.orders.recv().map_err(|_| Stopped)? != Order::Go(number) {}
        Ok(())
    }

    fn start(&mut self, phase: Start, lead: Duration) -> Result<i64, Stopped> {
        let lead_ns = u64::try_from(lead.as_nanos()).unwrap_or(u64::MAX);
        self.tell(Kind::Ready(wire::ReadyToStart { phase: phase_number(phase), lead_ns }))?;
        loop {
            if let Order::StartAt(time) = self.orders.recv().map_err(|_| Stopped)? {
                return Ok(time);
            }
        }
    }

    fn assembly(&mut self, held: Held) -> Option<Arc<dyn Assembly>> {
        *self.meetings.0.lock() = Some(held);
        Some(Arc::new(Telling(self.reports.clone())))
    }
}
