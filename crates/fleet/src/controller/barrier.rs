//! Who waits where: the steps at which all agents of a run meet.

use std::time::Duration;

use benchmaster_workload::conduct::{Start, Step};

/// A point at which agents wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Point {
    Step(Step),
    /// The start of a phase.
    Start(Start),
}

impl Point {
    /// Whether agents without clients come here as well.
    fn is_for_all(self) -> bool {
        matches!(self, Self::Start(Start::Measure) | Self::Step(Step::Measured))
    }
}

/// The agents of a run and what each waits for.
#[derive(Debug)]
pub(super) struct Barrier {
    agents: Vec<Agent>,
    lead: Duration,
}

#[derive(Debug)]
struct Agent {
    has_clients: bool,
    at: Option<Point>,
}

/// Agents that wait for different things, and would never go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OutOfStep {
    pub(super) agent: usize,
    pub(super) text: String,
}

/// All came to a point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) point: Point,
    pub(super) agents: Vec<usize>,
    /// Longest time that one of them needs to wake its workers.
    pub(super) lead: Duration,
}

impl Barrier {
    /// For agents that have clients or do not.
    pub(super) fn new(has_clients: impl Iterator<Item = bool>) -> Self {
        let agents = has_clients.map(|has_clients| Agent { has_clients, at: None }).collect();
        Self { agents, lead: Duration::ZERO }
    }

    /// An agent waits; says when it was the last one.
    pub(super) fn wait(
        &mut self,
        agent: usize,
        point: Point,
        lead: Duration,
    ) -> Result<Option<Reached>, OutOfStep> {
        if let Some(agent) = self.agents.get_mut(agent) {
            agent.at = Some(point);
        }
        self.lead = self.lead.max(lead);
        let clients = || self.agents.iter().enumerate().filter(|(_, agent)| agent.has_clients);
        let Some(common) = clients().next().and_then(|(_, agent)| agent.at) else { return Ok(None) };
        if clients().any(|(_, agent)| agent.at.is_none()) {
            return Ok(None);
        }
        let awaited = |agent: &Agent| agent.has_clients || common.is_for_all();
        let mut others = self.agents.iter().enumerate().filter(|(_, agent)| awaited(agent));
        match others.find(|(_, agent)| agent.at != Some(common)) {
            Some((_, Agent { at: None, .. })) => return Ok(None),
            Some((agent, Agent { at: Some(at), .. })) => {
                let text =
                    format!("waits at {at:?} while others wait at {common:?}; internal error, please report");
                return Err(OutOfStep { agent, text });
            }
            None => {}
        }
        let agents = self.agents.iter_mut().enumerate();
        let there = agents.filter(|(_, agent)| agent.at == Some(common)).map(|(index, agent)| {
            agent.at = None;
            index
        });
        let agents = there.collect();
        Ok(Some(Reached { point: common, agents, lead: std::mem::take(&mut self.lead) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAD: Duration = Duration::from_millis(3);

    #[test]
    fn the_last_one_lets_all_go_and_observers_join_for_the_measured_phase_alone() {
        let measure = Point::Start(Start::Measure);
        let mut barrier = Barrier::new([true, false, true].into_iter());
        assert_eq!(barrier.wait(1, measure, Duration::ZERO), Ok(None));
        assert_eq!(barrier.wait(2, Point::Step(Step::Prepared), Duration::ZERO), Ok(None));
        let reached = barrier.wait(0, Point::Step(Step::Prepared), Duration::ZERO).unwrap().unwrap();
        assert_eq!((reached.point, reached.agents), (Point::Step(Step::Prepared), vec![0, 2]));
        assert_eq!(barrier.wait(0, measure, LEAD), Ok(None));
        let reached = barrier.wait(2, measure, LEAD / 2).unwrap().unwrap();
        assert_eq!(reached, Reached { point: measure, agents: vec![0, 1, 2], lead: LEAD });
        let measured = Point::Step(Step::Measured);
        assert_eq!(barrier.wait(0, measured, Duration::ZERO), Ok(None));
        assert_eq!(barrier.wait(2, measured, Duration::ZERO), Ok(None));
        let reached = barrier.wait(1, measured, Duration::ZERO).unwrap().unwrap();
        assert_eq!((reached.agents, reached.lead), (vec![0, 1, 2], Duration::ZERO));
    }

    #[test]
    fn agents_that_would_never_go_on_are_found() {
        let mut barrier = Barrier::new([true, true].into_iter());
        assert_eq!(barrier.wait(0, Point::Step(Step::Prepared), Duration::ZERO), Ok(None));
        let error = barrier.wait(1, Point::Step(Step::Released), Duration::ZERO).unwrap_err();
        assert_eq!(error.agent, 1);
        assert!(error.text.contains("Step(Released)") && error.text.contains("Step(Prepared)"), "{error:?}");
    }
}
