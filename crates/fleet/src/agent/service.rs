//! The calls of the protocol on an agent.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::{OnceLock, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

use benchmaster_telemetry::clock::monotonic_ns;
use benchmaster_telemetry::environment;
use benchmaster_workload::area::{AreaError, WorkArea};
use tokio::sync::mpsc::{Receiver, channel};
use tonic::codegen::tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

use super::conductor::Meetings;
use super::work::{Areas, Handle, Wanted};
use super::{Life, hook, perform};
use crate::protocol::wire::{self, Nothing, instruction};
use crate::protocol::{self, PROTOCOL, VERSION};

/// Reports that wait to be sent; a workload that records every call waits beyond.
const REPORTS: usize = 8;

/// The agent's side of the protocol.
#[derive(Debug)]
pub(super) struct Service {
    work: Handle,
    life: Arc<Life>,
    /// This agent's name in the study, once the controller has said it.
    name: OnceLock<String>,
}

impl Service {
    pub(super) fn new(work: Handle, life: Arc<Life>) -> Self {
        Self { work, life, name: OnceLock::new() }
    }

    /// The agent's name; a controller that has not shown its version may do nothing.
    fn name(&self) -> Result<&str, Status> {
        let name = self.name.get().map(String::as_str);
        name.ok_or_else(|| Status::failed_precondition("the first call of a controller must be Hello"))
    }

    /// Does something with the working directories.
    async fn with_areas(
        &self,
        task: impl FnOnce(&mut Areas) -> Result<(), Status> + Send + 'static,
    ) -> Result<Response<Nothing>, Status> {
        self.name()?;
        let done = self.work.run(move |areas, _| task(areas)).await;
        done.unwrap_or_else(|defect| Err(internal(&defect)))?;
        Ok(Response::new(Nothing {}))
    }
}

/// What an agent says when its controller is of another version.
pub(crate) fn versions_differ(agent: (&str, u32), controller: (&str, u32)) -> Option<String> {
    (agent != controller).then(|| {
        format!(
            "the agent is benchmaster {} (protocol {}) and the controller is benchmaster {} (protocol {}); install the \
             controller's version on the agent's host",
            agent.0, agent.1, controller.0, controller.1
        )
    })
}

/// What monotonic clock this process has: the boot of its kernel and its time namespace. Empty when that cannot be told.
pub(crate) fn clock_identity() -> String {
    let Ok(boot) = std::fs::read_to_string("/proc/sys/kernel/random/boot_id") else { return String::new() };
    // Kernels before 5.6 have no time namespaces, and one clock.
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

fn internal(error: &dyn std::error::Error) -> Status {
    Status::internal(error.to_string())
}

fn unreadable(error: protocol::Unreadable) -> Status {
    Status::invalid_argument(error.to_string())
}

fn area_failed(error: AreaError) -> Status {
    match error {
        AreaError::Stopped => Status::cancelled(error.to_string()),
        error => Status::unknown(error.to_string()),
    }
}

fn not_open(place: &str) -> Status {
    Status::failed_precondition(format!("place `{place}` was not opened"))
}

#[tonic::async_trait]
impl wire::agent_server::Agent for Service {
    type PerformStream = Reports;

    async fn hello(
        &self,
        request: Request<wire::HelloRequest>,
    ) -> Result<Response<wire::HelloReply>, Status> {
        let hello = request.into_inner();
        if let Some(text) = versions_differ((VERSION, PROTOCOL), (&hello.version, hello.protocol)) {
            return Err(Status::failed_precondition(text));
        }
        if self.name.set(hello.name).is_err() {
            return Err(Status::failed_precondition("Hello comes once"));
        }
        self.life.patience_ns.store(hello.patience_ns.max(1_000_000), Ordering::Relaxed);
        Ok(Response::new(wire::HelloReply {
            version: VERSION.to_owned(),
            protocol: PROTOCOL,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            clock: clock_identity(),
        }))
    }

    async fn exchange(
        &self,
        _: Request<wire::ExchangeRequest>,
    ) -> Result<Response<wire::ExchangeReply>, Status> {
        self.name()?;
        // The request came in with the last read or an earlier one: the time is never too early, as the bound needs it.
        let received = self.life.stamps.last_read();
        Ok(Response::new(wire::ExchangeReply { received, replied: monotonic_ns() }))
    }

    async fn open(&self, request: Request<wire::OpenRequest>) -> Result<Response<Nothing>, Status> {
        let open = request.into_inner();
        self.with_areas(move |areas| {
            let target = protocol::target(open.target).map_err(unreadable)?;
            let make = if open.join { WorkArea::join } else { WorkArea::create };
            areas.insert(open.place, make(&target, &open.id).map_err(area_failed)?);
            Ok(())
        })
        .await
    }

    async fn begin_run(&self, request: Request<wire::BeginRunRequest>) -> Result<Response<Nothing>, Status> {
        let begin = request.into_inner();
        self.with_areas(move |areas| {
            let area = areas.get_mut(&begin.place).ok_or_else(|| not_open(&begin.place))?;
            area.begin_run(begin.fresh).map_err(area_failed)
        })
        .await
    }

    async fn reach_by(&self, request: Request<wire::ReachByRequest>) -> Result<Response<Nothing>, Status> {
        let reach = request.into_inner();
        self.with_areas(move |areas| {
            let target = protocol::target(reach.target).map_err(unreadable)?;
            let area = areas.get_mut(&reach.place).ok_or_else(|| not_open(&reach.place))?;
            if area.reach_by(&target) {
                return Ok(());
            }
            let (place, was) = (&reach.place, area.target());
            Err(Status::failed_precondition(format!(
                "place `{place}` is `{was}`; `{target}` holds other files"
            )))
        })
        .await
    }

    async fn perform(
        &self,
        request: Request<Streaming<wire::Instruction>>,
    ) -> Result<Response<Reports>, Status> {
        let agent = self.name()?.to_owned();
        let mut instructions = request.into_inner();
        let Some(instruction::Kind::Task(task)) = instructions.message().await?.and_then(|first| first.kind)
        else {
            return Err(Status::invalid_argument("the first instruction must be the task"));
        };
        let part = perform::Part::of(task, agent).map_err(unreadable)?;
        let (reports, outgoing) = channel(REPORTS);
        let (orders, incoming) = mpsc::channel();
        let meetings = Meetings::default();
        let incoming = (incoming, meetings.clone());
        let wanted = self.work.wanted();
        let stop = Arc::clone(&wanted.0);
        let defect = reports.clone();
        let done = self.work.submit(move |areas| perform::run(areas, &part, incoming, &reports, &stop));
        tokio::spawn(async move {
            if let Ok(Err(error)) = done.await {
                let failed = wire::Failure { kind: "job".into(), text: error.to_string() };
                // Nobody listens any more when it cannot be told.
                let kind = Some(wire::report::Kind::Failed(failed));
                let _ = defect.send(wire::Report { kind }).await;
            }
        });
        tokio::spawn(perform::forward(instructions, orders, meetings, Arc::clone(&wanted.0)));
        Ok(Response::new(Reports { outgoing, _wanted: wanted }))
    }

    async fn run_hook(
        &self,
        request: Request<wire::RunHookRequest>,
    ) -> Result<Response<wire::RunHookReply>, Status> {
        self.name()?;
        let hook = protocol::decode(&request.into_inner().hook).map_err(unreadable)?;
        let ran = self.work.run(move |_, stop| hook::run(&hook, stop)).await.map_err(|e| internal(&e))?;
        let ran = ran.ok_or_else(|| Status::cancelled("the command was stopped"))?;
        let (ended, fine, output) = (ran.ended, ran.fine, ran.output.into());
        Ok(Response::new(wire::RunHookReply { ended, fine, output }))
    }

    async fn environment(
        &self,
        request: Request<wire::EnvironmentRequest>,
    ) -> Result<Response<wire::EnvironmentReply>, Status> {
        self.name()?;
        let directory = request.into_inner().directory.map(PathBuf::from);
        let look = move |_: &mut Areas, _: &_| environment::collect(directory.as_deref());
        let environment = self.work.run(look).await.map_err(|error| internal(&error))?;
        let environment = protocol::encode(&environment).map_err(|error| internal(&error))?;
        Ok(Response::new(wire::EnvironmentReply { environment }))
    }

    async fn remove(&self, _: Request<wire::RemoveRequest>) -> Result<Response<Nothing>, Status> {
        self.with_areas(|areas| {
            // All are tried; the first that fails is told.
            let removed: Vec<_> = std::mem::take(areas).into_values().map(WorkArea::remove).collect();
            removed.into_iter().collect::<Result<(), _>>().map_err(area_failed)
        })
        .await
    }

    async fn end(&self, _: Request<wire::EndRequest>) -> Result<Response<Nothing>, Status> {
        let life = Arc::clone(&self.life);
        // After the reply has been given to the connection.
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            life.over.notify_one();
        });
        Ok(Response::new(Nothing {}))
    }
}

/// What a job reports. Dropped when the controller gives the call up, which stops the job.
#[derive(Debug)]
pub(crate) struct Reports {
    outgoing: Receiver<wire::Report>,
    _wanted: Wanted,
}

impl Stream for Reports {
    type Item = Result<wire::Report, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.outgoing.poll_recv(cx).map(|report| report.map(Ok))
    }
}
