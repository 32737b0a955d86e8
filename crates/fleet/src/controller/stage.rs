//! What a process that leads others knows of a run: who waits where, and what is to be said to the process above. Pure: the
//! controller, aggregators and the simulation of a fleet use it. The controller is the process above itself.

use std::collections::BTreeMap;
use std::time::Duration;

use benchmaster_workload::conduct::{Attendance, MeetingTracker, Start, Step};

use super::barrier::{Barrier, OutOfStep, Point, Reached};

/// What the group as a whole says to the process above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// All wait at this step.
    Reached(Step),
    /// All wait for a phase; they need `lead` to wake their workers.
    Ready { phase: Start, lead: Duration },
    /// The workers of all are at a meeting, or none takes part any more.
    Attended { meeting: u16, attendance: Attendance },
}

/// The group of a process in a run.
#[derive(Debug)]
pub(crate) struct Stage {
    barrier: Barrier,
    roll: MeetingTracker,
    /// Where all wait, and who that is.
    reached: Option<(Point, Vec<usize>)>,
    /// Who waits at meetings.
    assembled: BTreeMap<u16, Vec<usize>>,
}

impl Stage {
    /// For members of the group that have clients or do not.
    pub(crate) fn new(has_clients: impl Iterator<Item = bool> + Clone) -> Self {
        Self {
            barrier: Barrier::new(has_clients.clone()),
            roll: MeetingTracker::new(has_clients),
            reached: None,
            assembled: BTreeMap::new(),
        }
    }

    /// A member waits at a point.
    pub(crate) fn waits(
        &mut self,
        member: usize,
        point: Point,
        lead: Duration,
    ) -> Result<Option<Said>, OutOfStep> {
        let Some(Reached { point, agents, lead }) = self.barrier.wait(member, point, lead)? else {
            return Ok(None);
        };
        self.reached = Some((point, agents));
        Ok(Some(match point {
            Point::Step(step) => Said::Reached(step),
            Point::Start(phase) => Said::Ready { phase, lead },
        }))
    }

    /// The workers of a member came to a meeting, or take part no more.
    pub(crate) fn attends(&mut self, member: usize, meeting: u16, attendance: Attendance) -> Option<Said> {
        let attendance = match self.roll.note(member, meeting, attendance) {
            Some(assembled) => {
                self.assembled.insert(meeting, assembled.processes);
                Attendance::Arrived(assembled.time)
            }
            None if attendance == Attendance::Left && self.roll.is_over(meeting) => Attendance::Left,
            None => return None,
        };
        Some(Said::Attended { meeting, attendance })
    }

    /// All groups have come to where this one waits: who goes on from there.
    pub(crate) fn go(&mut self, point: Point) -> Vec<usize> {
        match self.reached.take_if(|(reached, _)| *reached == point) {
            Some((_, members)) => members,
            None => Vec::new(),
        }
    }

    /// A meeting was held by all groups: who goes on from there.
    pub(crate) fn met(&mut self, meeting: u16) -> Vec<usize> {
        self.assembled.remove(&meeting).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_speaks_as_one_and_goes_on_when_all_groups_do() {
        let (prepared, measure) = (Point::Step(Step::Prepared), Point::Start(Start::Measure));
        let mut stage = Stage::new([true, true].into_iter());
        assert_eq!(stage.waits(1, prepared, Duration::ZERO), Ok(None));
        assert_eq!(stage.waits(0, prepared, Duration::ZERO), Ok(Some(Said::Reached(Step::Prepared))));
        assert_eq!(stage.go(measure), [0; 0], "an instruction of another step");
        assert_eq!(stage.go(prepared), [0, 1]);
        assert_eq!(stage.go(prepared), [0; 0]);
        assert_eq!(stage.waits(0, measure, Duration::from_millis(2)), Ok(None));
        let lead = Duration::from_millis(2);
        let ready = Said::Ready { phase: Start::Measure, lead };
        assert_eq!(stage.waits(1, measure, Duration::ZERO), Ok(Some(ready)));
    }

    #[test]
    fn a_group_meets_and_leaves_as_one() {
        let said = |attendance| Some(Said::Attended { meeting: 3, attendance });
        let mut stage = Stage::new([true, true].into_iter());
        assert_eq!(stage.attends(0, 3, Attendance::Arrived(1)), None);
        assert_eq!(stage.attends(1, 3, Attendance::Arrived(1)), said(Attendance::Arrived(1)));
        assert_eq!(stage.met(3), [0, 1]);
        assert_eq!(stage.attends(0, 3, Attendance::Left), None);
        assert_eq!(stage.attends(1, 3, Attendance::Arrived(2)), said(Attendance::Arrived(2)));
        assert_eq!(stage.met(3), [1]);
        assert_eq!(stage.attends(1, 3, Attendance::Left), said(Attendance::Left));
    }
}
