//! Agents that dial the controller with a rank: all of them are the controller's, or the first of each group, which leads the
//! others.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::muster::Muster;
use super::{LaunchError, Leads, Post};
use crate::secure::{Admitted, Aggregators, Handshakes, Listener, Missing};
use crate::tree;

/// Most ranks and refusals that are named in a message.
const MOST_NAMED: usize = 5;

/// How long redirection may go on: it ends with the launch.
const LONG: Duration = Duration::from_hours(1_000);

/// The agents that are there, and what each of them is to lead.
pub(super) struct Ranked {
    pub(super) admitted: Admitted,
    leads: Vec<Leads>,
}

impl Ranked {
    /// What the next agent, in the order of the ranks, is to lead.
    pub(super) fn leads(&mut self) -> impl FnMut() -> Option<Leads> + use<> {
        let mut leads = std::mem::take(&mut self.leads).into_iter();
        move || leads.next()
    }
}

/// Admits the agents of the ranks from 0, or the first of each group while there are more than `fan_out`. `arguments`: of an
/// aggregator's own program, for the agent beside it.
pub(super) async fn admit(
    listener: Listener,
    agents: u32,
    fan_out: u32,
    arguments: &[String],
    deadline: Instant,
) -> Result<Ranked, Missing> {
    let ranks = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let groups: Vec<_> = tree::groups(agents as usize, fan_out)
        .into_iter()
        .map(|group| ranks(group.start)..ranks(group.end))
        .collect();
    if groups.is_empty() {
        let admitted = listener.accept_ranked(agents, deadline).await?;
        return Ok(Ranked { admitted, leads: Vec::new() });
    }
    let (listener, mut aggregators) = listener.with_groups(groups.clone());
    let first = groups.iter().map(|group| group.start);
    let mut handshakes = Handshakes::new();
    let admitted = listener.accept(first, agents, deadline, &mut handshakes).await?;
    // It waits for a rank that does not exist, and sends the others on meanwhile.
    let others = async move {
        let none = std::iter::once(u32::MAX);
        listener.accept(none, agents, Instant::now() + LONG, &mut handshakes).await
    };
    aggregators.served_by(tokio::spawn(others).abort_handle());
    let aggregators: Arc<Aggregators> = Arc::new(aggregators);
    let leads = groups.into_iter().zip(&admitted.joined).enumerate().map(|(group, (ranks, agent))| Leads {
        muster: Muster::Ranked {
            ranks,
            name: agent.host.clone(),
            arguments: arguments.to_vec(),
            deadline: deadline.saturating_duration_since(Instant::now()),
        },
        post: Some(Post { aggregators: Arc::clone(&aggregators), group, address: agent.peer.ip() }),
    });
    let leads = leads.collect();
    Ok(Ranked { admitted, leads })
}

/// Why agents are not there in time.
pub(super) fn late(missing: &Missing, agents: u32, deadline: Duration) -> LaunchError {
    let ranks: Vec<String> = missing.missing.iter().take(MOST_NAMED).map(u32::to_string).collect();
    let more = missing.missing.len() - ranks.len();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let mut reason = format!(
        "{} of {agents} agents were connected after {deadline:?}; missing: ranks {}{more}",
        missing.joined.len(),
        ranks.join(", ")
    );
    for refusal in missing.refused.iter().take(MOST_NAMED) {
        reason += &format!(" ({refusal})");
    }
    let first = missing.missing.first().copied().unwrap_or(0);
    LaunchError::new(format!("rank {first}"), reason)
}
