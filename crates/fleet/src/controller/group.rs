//! Agents behind one process, which is the controller or an aggregator: how they are greeted, asked and ended.

use std::ops::Range;
use std::time::Duration;

use parking_lot::Mutex as Lock;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::clocks::{self, Known};
use super::connection::{CallError, Connection};
use super::error::FleetError;
use super::member::{Greeted, Process, greet};
use crate::launch::{LaunchError, Leads, Post, Started};
use crate::protocol::{Answer, FailureKind, Listening, Request};
use crate::tree::Turns;

/// Agents that are greeted at once.
pub(crate) const GREETED: usize = 32;

/// The group of a process.
#[derive(Debug)]
pub(crate) struct Group {
    pub(super) children: Vec<Child>,
    /// Every agent, behind whatever child.
    pub(super) agents: Vec<Introduced>,
    /// See [`Terms`].
    pub(super) delivery: Duration,
}

/// An agent or an aggregator, and the connection to it.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) name: String,
    /// The agents that it speaks for: itself, or those behind it.
    pub(super) agents: Range<usize>,
    /// Whether it is an aggregator.
    pub(super) leads: bool,
    pub(super) connection: Connection,
    pub(super) clock: Lock<Known>,
    process: Mutex<Process>,
}

/// What holds for all agents of a fleet.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Terms {
    /// An agent that gives no sign of life for this long is lost, and so is a controller for its agents.
    pub(crate) patience: Duration,
    /// How long the start of all agents may take.
    pub(crate) timeout: Duration,
    /// See [`FleetConfig`](super::FleetConfig).
    pub(crate) delivery: Duration,
}

/// An agent that was greeted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Introduced {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// Its clock is known to within this beside that of the process that leads it.
    pub(crate) clock_bound: Duration,
}

/// The agents behind an aggregator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Led {
    pub(crate) agents: Vec<Introduced>,
    /// What users should know of their start.
    pub(crate) notes: Vec<String>,
}

/// What came of asking an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// Its answer as it was sent.
    Answer(#[serde(with = "crate::protocol::bytes")] Vec<u8>),
    /// It, or the aggregator before it, was lost.
    Lost { agent: String, reason: String },
}

impl Group {
    /// Greets all that were started, has aggregators start theirs, and relates the clocks.
    pub(crate) async fn open(
        started: Vec<Started>,
        terms: Terms,
        tell: &mut (impl FnMut(&str) + ?Sized),
    ) -> Result<Self, FleetError> {
        let greetings = started.into_iter().map(|mut started| async move {
            let leads = started.leads.take();
            Ok::<_, LaunchError>((greet(started, terms.patience, terms.timeout).await?, leads))
        });
        let greeted = in_turns(GREETED, greetings).await?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let musters = greeted.into_iter().map(|(greeted, leads)| muster(greeted, leads, terms));
        let greeted: Vec<Mustered> =
            in_turns(usize::MAX, musters).await?.into_iter().collect::<Result<_, _>>()?;
        let connections: Vec<&Connection> = greeted.iter().map(|(agent, _)| &agent.connection).collect();
        let measured = in_turns(clocks::AT_ONCE, rounds(connections.into_iter())).await?;
        let mut group = Self { children: Vec::new(), agents: Vec::new(), delivery: terms.delivery };
        for ((greeted, led), measured) in greeted.into_iter().zip(measured) {
            let Greeted { name, connection, process, host, pid, same_clock } = greeted;
            let measured = measured.map_err(|error| {
                LaunchError::new(name.as_str(), format!("its clock could not be read: {error}"))
            })?;
            let clock = Known::new(same_clock, measured);
            let first = group.agents.len();
            let leads = led.is_some();
            match led {
                None => group.agents.push(Introduced {
                    name: name.clone(),
                    host,
                    pid,
                    clock_bound: clock.bound(),
                }),
                Some(Led { agents, notes }) => {
                    notes.iter().for_each(|note| tell(note));
                    group.agents.extend(
                        agents.into_iter().map(|agent| Introduced {
                            clock_bound: agent.clock_bound + clock.bound(),
                            ..agent
                        }),
                    );
                }
            }
            let agents = first..group.agents.len();
            let name = match group.agents.get(agents.clone()) {
                Some([first, .., last]) if leads => format!("{name} ({} to {})", first.name, last.name),
                Some([only]) if leads => format!("{name} ({})", only.name),
                _ => name,
            };
            let (clock, process) = (Lock::new(clock), Mutex::new(process));
            group.children.push(Child { name, agents, leads, connection, clock, process });
        }
        Ok(group)
    }

    /// The agents with what is known of them.
    pub(crate) fn agents(&self) -> &[Introduced] {
        &self.agents
    }

    /// Asks agents, in ascending order of their numbers, and waits for all answers.
    pub(crate) async fn ask(
        &self,
        whom: &[usize],
        request: impl Fn() -> Request,
    ) -> Result<Vec<Reply>, FleetError> {
        let of = |child: &Child| -> Vec<u32> {
            let own = whom.iter().filter(|agent| child.agents.contains(agent));
            own.map(|agent| u32::try_from(agent - child.agents.start).unwrap_or(u32::MAX)).collect()
        };
        let asked = self.children.iter().map(|child| (child, of(child)));
        let asked: Vec<(&Child, Vec<u32>)> = asked.filter(|(_, whom)| !whom.is_empty()).collect();
        let calls = asked.iter().map(|(child, whom)| {
            let (connection, request) = (child.connection.clone(), request());
            let each = child.leads.then(|| whom.clone());
            async move {
                match each {
                    None => connection.call_raw(request).await.map(|answer| vec![Reply::Answer(answer)]),
                    Some(whom) => connection.call(Request::Each { whom, request: Box::new(request) }).await,
                }
            }
        });
        let answers = in_turns(usize::MAX, calls.collect::<Vec<_>>().into_iter()).await?;
        let mut replies = Vec::with_capacity(whom.len());
        for ((child, whom), answer) in asked.into_iter().zip(answers) {
            match answer {
                Ok(answers) if answers.len() == whom.len() => replies.extend(answers),
                Ok(_) => return Err(child.error(CallError::Refused("it did not ask all".into())).await),
                Err(CallError::Lost) => {
                    let (agent, reason) = (child.name.clone(), child.why_lost().await);
                    replies.extend(vec![Reply::Lost { agent, reason }; whom.len()]);
                }
                Err(error) => return Err(child.error(error).await),
            }
        }
        Ok(replies)
    }

    /// The same, with answers of a type, or the error of the first that failed.
    pub(crate) async fn each<T: serde::de::DeserializeOwned>(
        &self,
        whom: &[usize],
        request: impl Fn() -> Request,
    ) -> Result<Vec<T>, FleetError> {
        let replies = self.ask(whom, request).await?.into_iter().zip(whom);
        replies.map(|(reply, &agent)| self.value(agent, reply)).collect()
    }

    fn value<T: serde::de::DeserializeOwned>(&self, agent: usize, reply: Reply) -> Result<T, FleetError> {
        let bytes = match reply {
            Reply::Answer(bytes) => bytes,
            Reply::Lost { agent, reason } => return Err(FleetError::Lost { agent, reason }),
        };
        let answer = benchmaster_frames::decode::<Answer<T>>(&bytes);
        answer.map_err(|error| error.to_string()).and_then(|answer| answer).map_err(|text| {
            let agent = self.agents.get(agent).map(|agent| agent.name.clone()).unwrap_or_default();
            FleetError::Job { agent, text, kind: FailureKind::Job }
        })
    }

    /// Ends all agents; those that do not end until the deadline are killed.
    pub(crate) async fn end(&self, deadline: Instant) {
        let calls = self.children.iter().map(|child| {
            let connection = child.connection.clone();
            // It ends with its connection as well.
            async move {
                let _ = tokio::time::timeout_at(deadline, connection.call::<()>(Request::End)).await;
            }
        });
        // A call that panicked is over.
        let _ = in_turns(usize::MAX, calls.collect::<Vec<_>>().into_iter()).await;
        for child in &self.children {
            child.process.lock().await.end(deadline).await;
        }
    }
}

impl Child {
    /// The error of a call that failed.
    pub(super) async fn error(&self, error: CallError) -> FleetError {
        let agent = self.name.clone();
        match error {
            CallError::Lost => FleetError::Lost { agent, reason: self.why_lost().await },
            error => FleetError::Job { agent, text: error.to_string(), kind: FailureKind::Job },
        }
    }

    async fn why_lost(&self) -> String {
        let reason = self.connection.ended().await.unwrap_or_else(|| CallError::Lost.to_string());
        self.process.lock().await.explain(reason).await
    }
}

type Mustered = (Greeted, Option<Led>);

/// Has an aggregator start the agents that it is to lead.
async fn muster(mut greeted: Greeted, leads: Option<Leads>, terms: Terms) -> Result<Mustered, LaunchError> {
    let Some(leads) = leads else { return Ok((greeted, None)) };
    match lead(&greeted.connection, leads, terms).await {
        Ok(led) => Ok((greeted, Some(led?))),
        Err(error) => {
            let reason = match error {
                CallError::Lost => greeted.connection.ended().await.unwrap_or_else(|| error.to_string()),
                error => error.to_string(),
            };
            Err(LaunchError::new(greeted.name, greeted.process.explain(reason).await))
        }
    }
}

async fn lead(
    connection: &Connection,
    leads: Leads,
    terms: Terms,
) -> Result<Result<Led, LaunchError>, CallError> {
    let Leads { muster, post } = leads;
    if let Some(Post { aggregators, group, address }) = &post {
        let Listening { port, credentials } =
            connection.call(Request::Listen { version_6: address.is_ipv6() }).await?;
        aggregators.post(*group, (*address, port).into(), credentials);
    }
    connection.call(Request::Lead { muster: Box::new(muster), terms }).await
}

/// A round of exchanges with each.
pub(super) fn rounds<'a>(
    connections: impl Iterator<Item = &'a Connection>,
) -> impl Iterator<Item = impl Future<Output = Result<clocks::Measured, CallError>> + Send + 'static> {
    connections.cloned().map(|connection| async move { clocks::measure(&connection).await })
}

/// Does all of it, some at once, and gives what comes of it in the same order. Dropping it gives them up.
pub(super) async fn in_turns<T, R>(
    at_once: usize,
    futures: impl Iterator<Item = R>,
) -> Result<Vec<T>, FleetError>
where
    R: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut futures: Vec<Option<R>> = futures.map(Some).collect();
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    let mut turns = Turns::new(0..futures.len(), at_once);
    let mut tasks = JoinSet::new();
    loop {
        while let Some(index) = turns.next() {
            if let Some(future) = futures.get_mut(index).and_then(Option::take) {
                tasks.spawn(async move { (index, future.await) });
            }
        }
        match tasks.join_next().await {
            None => return Ok(done.into_iter().flatten().collect()),
            Some(Ok((index, value))) => done[index] = Some(value),
            Some(Err(error)) => return Err(FleetError::Controller(error.into())),
        }
        turns.done();
    }
}
