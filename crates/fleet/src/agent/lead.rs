//! An agent that leads others: an aggregator. To the controller it is one agent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use benchmaster_record::recording::TraceRecord;
use benchmaster_workload::execute::Edge;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::AbortHandle;

use super::reporter::Reporter;
use crate::controller::FleetError;
use crate::controller::group::{Group, Led, Terms};
use crate::controller::run::{Above, FAILING, MemberProgress, together};
use crate::controller::stage::Said;
use crate::launch::{LaunchError, Muster};
use crate::protocol::{
    Failure, FailureKind, Instruction, Listening, MemberDone, RECORDS, Report, Task, TraceBatch,
};
use crate::secure::{ListenError, Listener};

/// Starts agents and greets them.
pub(super) async fn muster(
    muster: Muster,
    listener: Option<Listener>,
    terms: Terms,
) -> Result<(Group, Led), LaunchError> {
    let mut notes = Vec::new();
    let mut tell = |note: &str| notes.push(note.to_owned());
    let started = muster.launch(listener, &mut tell).await?;
    let group = Group::open(started, terms, &mut tell).await.map_err(|error| match error {
        FleetError::Launch(error) => error,
        error => LaunchError::new("aggregator", error.to_string()),
    })?;
    let agents = group.agents().to_vec();
    Ok((group, Led { agents, notes }))
}

/// Listens for the agents that are to dial this one.
pub(super) async fn listen(version_6: bool) -> Result<(Listener, Listening), ListenError> {
    let any = if version_6 { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::from(Ipv4Addr::UNSPECIFIED) };
    let (listener, credentials) = Listener::bind((any, 0).into()).await?;
    let listening = Listening { port: listener.address().port(), credentials: credentials.to_json() };
    Ok((listener, listening))
}

/// Begins a task of the agents: what ends with it, and how to instruct it.
pub(super) fn start(
    group: Arc<Group>,
    task: Task,
    reporter: Reporter,
) -> (AbortHandle, UnboundedSender<Instruction>) {
    let (instructor, orders) = unbounded_channel();
    let running = tokio::spawn(async move {
        let mut above = Middle { orders, reporter: reporter.clone() };
        let brought = group.perform(&task.place, &task.job, &task.roles, &mut above).await;
        let report = match brought {
            Ok(brought) => Report::Gathered(Box::new(brought.gathered)),
            Err(error) => failed(error),
        };
        if let Some(last) = reporter.last(report) {
            // The stream may be gone.
            let _ = reporter.frames.send(last).await;
        }
    });
    (running.abort_handle(), instructor)
}

fn failed(error: FleetError) -> Report {
    match error {
        FleetError::Lost { agent, reason } => {
            Report::MemberFailed { agent, lost: true, failure: Failure::of_job(reason) }
        }
        FleetError::Job { agent, text, kind } => {
            Report::MemberFailed { agent, lost: false, failure: Failure { kind, text } }
        }
        FleetError::Stopped => {
            Report::Failed(Failure { kind: FailureKind::Stopped, text: "the run was stopped".into() })
        }
        error => Report::Failed(Failure::of_job(error.to_string())),
    }
}

/// The controller above the group of this process.
struct Middle {
    /// Closed when the run is to stop.
    orders: UnboundedReceiver<Instruction>,
    reporter: Reporter,
}

impl Middle {
    async fn report(&self, report: Report) {
        // When the stream is gone, so is this process, soon.
        if let Ok(frame) = self.reporter.frame(report) {
            let _ = self.reporter.frames.send(frame).await;
        }
    }
}

impl Above for Middle {
    /// The controller gives the call up when it has waited enough.
    const STOPPING: Duration = FAILING;

    async fn order(&mut self) -> Instruction {
        self.orders.recv().await.unwrap_or(Instruction::Stop)
    }

    async fn say(&mut self, said: Said) -> Option<Instruction> {
        self.report(match said {
            Said::Reached(step) => Report::Reached(step),
            Said::Ready { phase, lead } => Report::Ready { phase, lead },
            Said::Attended { meeting, attendance } => Report::Attended { meeting, attendance },
        })
        .await;
        None
    }

    async fn record(&mut self, records: Vec<TraceRecord>) -> Result<(), FleetError> {
        for batch in records.chunks(RECORDS) {
            self.report(Report::Trace(TraceBatch(batch.to_vec()))).await;
        }
        Ok(())
    }

    fn progress(&mut self, members: &[MemberProgress], _: Option<Edge>) {
        let done = |member: &MemberProgress| {
            let done = member.done;
            MemberDone(member.state, [done.operations, done.bytes, done.errors, done.latency_ns])
        };
        let all = members.iter().map(done).collect();
        self.reporter.try_send(Report::Members { behind: together(members), members: all });
    }
}
