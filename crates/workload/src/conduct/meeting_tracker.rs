//! Which processes are at which meeting of a workload's workers.

use std::collections::BTreeMap;

use super::Attendance;

/// The attendance at all meetings of a workload, as the one that all processes of a run tell keeps it.
#[derive(Debug, Clone, Default)]
pub struct MeetingTracker {
    /// Whether each process has workers at all.
    processes: Vec<bool>,
    meetings: BTreeMap<u16, Meeting>,
}

#[derive(Debug, Clone, Default)]
struct Meeting {
    held: u64,
    /// By process: for how many times it has come; `None`: it left.
    come: Vec<Option<u64>>,
}

/// A meeting that was held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    pub meeting: u16,
    /// For which time, counted from 1.
    pub time: u64,
    /// The processes whose workers wait for that.
    pub processes: Vec<usize>,
}

impl MeetingTracker {
    /// For processes that have workers or do not.
    pub fn new(has_workers: impl Iterator<Item = bool>) -> Self {
        Self { processes: has_workers.collect(), meetings: BTreeMap::new() }
    }

    /// Notes what a process says; tells when the meeting was held by that.
    pub fn note(&mut self, process: usize, meeting: u16, attendance: Attendance) -> Option<Assembled> {
        let Self { processes, meetings } = self;
        let state = meetings.entry(meeting).or_insert_with(|| Meeting {
            held: 0,
            come: processes.iter().map(|has_workers| has_workers.then_some(0)).collect(),
        });
        *state.come.get_mut(process)? = match attendance {
            Attendance::Arrived(time) => Some(time),
            Attendance::Left => None,
        };
        let time = state.held + 1;
        let mut present = state.come.iter().flatten().peekable();
        if present.peek().is_none() || present.any(|come| *come < time) {
            return None;
        }
        state.held = time;
        let processes = state.come.iter().enumerate().filter(|(_, come)| come.is_some());
        Some(Assembled { meeting, time, processes: processes.map(|(process, _)| process).collect() })
    }

    /// Whether no process takes part in a meeting any more.
    pub fn is_over(&self, meeting: u16) -> bool {
        self.meetings.get(&meeting).is_some_and(|meeting| meeting.come.iter().all(Option::is_none))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meeting_is_held_when_all_that_have_not_left_are_there() {
        let mut roll = MeetingTracker::new([true, false, true, true].into_iter());
        let held =
            |time, processes: &[usize]| Some(Assembled { meeting: 3, time, processes: processes.to_vec() });
        assert_eq!(roll.note(0, 3, Attendance::Arrived(1)), None);
        assert_eq!(roll.note(2, 3, Attendance::Arrived(1)), None);
        assert_eq!(roll.note(3, 3, Attendance::Arrived(1)), held(1, &[0, 2, 3]));
        assert_eq!(roll.note(2, 3, Attendance::Left), None, "nobody waits");
        assert_eq!(roll.note(0, 3, Attendance::Arrived(2)), None);
        assert_eq!(roll.note(3, 3, Attendance::Arrived(2)), held(2, &[0, 3]));
        assert_eq!(roll.note(3, 3, Attendance::Arrived(3)), None);
        assert_eq!(roll.note(0, 3, Attendance::Left), held(3, &[3]), "who is waited for leaves");
        assert!(!roll.is_over(3));
        assert_eq!(roll.note(3, 3, Attendance::Left), None);
        assert!(roll.is_over(3) && !roll.is_over(4));
        assert_eq!(roll.note(2, 4, Attendance::Left), None);
        assert_eq!(roll.note(9, 4, Attendance::Left), None, "no such process");
    }
}
