//! The calls of the protocol on an agent.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use benchmaster_workload::area::WorkArea;
use benchmaster_workload::target::Target;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::io::AsyncRead;
use tokio::sync::mpsc::{Sender, UnboundedSender};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::reporter::Reporter;
use super::work::{Areas, Handle};
use super::{AgentError, Ended, LED_END, hook, lead, perform};
use crate::controller::group::Group;
use crate::protocol::{
    Answer, ClockReading, Hello, Instruction, Introduction, Message, PROTOCOL, REQUEST_LIMIT, Request,
    VERSION, answer,
};
use crate::secure::Listener;
use crate::stream::frames::{FrameReader, Incoming, Outgoing};

/// Calls that may be under way at once.
const CALLS: usize = 64;

/// The least patience of a controller that an agent believes.
const LEAST_PATIENCE: Duration = Duration::from_millis(1);

/// The agent's side of the protocol.
#[derive(Debug)]
pub(super) struct Service {
    work: Handle,
    answers: Sender<Outgoing>,
    reports: Sender<Outgoing>,
    /// This agent's name in the study, once the controller has said it.
    name: Option<String>,
    calls: HashMap<u32, Call>,
    group: Leading,
    /// Where agents dial that it is to lead.
    listener: Arc<Mutex<Option<Listener>>>,
}

/// A call that is under way, or over since a short while. Dropping it stops it.
#[derive(Debug)]
struct Call {
    task: AbortHandle,
    /// Of a task of a run.
    control: Option<Control>,
}

/// How the controller's instructions reach a task.
#[derive(Debug)]
enum Control {
    Own(perform::Control),
    /// Of the agents behind this one.
    Led(UnboundedSender<Instruction>),
}

/// The agents behind this one, once it leads some.
type Leading = Arc<OnceLock<Arc<Group>>>;

impl Drop for Call {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Service {
    pub(super) fn new(work: Handle, answers: Sender<Outgoing>, reports: Sender<Outgoing>) -> Self {
        Self {
            work,
            answers,
            reports,
            name: None,
            calls: HashMap::new(),
            group: Leading::default(),
            listener: Arc::default(),
        }
    }

    /// The agents behind this one, after it began to lead.
    pub(super) fn group(&self) -> Leading {
        Arc::clone(&self.group)
    }

    /// Serves until the stream ends or the controller says so.
    pub(super) async fn serve(
        mut self,
        mut reader: FrameReader<impl AsyncRead + Unpin>,
    ) -> Result<Ended, AgentError> {
        while let Some(incoming) = reader.next(REQUEST_LIMIT).await? {
            match incoming.value() {
                Ok(Message::Call(Request::Hello(hello))) => {
                    let patience = hello.patience.max(LEAST_PATIENCE);
                    let introduction = self.hello(hello);
                    if introduction.is_ok() {
                        reader.patience = patience;
                    }
                    self.answer(incoming.call, &introduction)?;
                }
                Ok(Message::Call(request)) => match self.name.clone() {
                    None => self.refuse(incoming.call, "the first call of a controller must be Hello")?,
                    Some(_) if matches!(request, Request::End) => {
                        if let Some(group) = self.group.get() {
                            group.end(Instant::now() + LED_END).await;
                        }
                        let frame = answer(incoming.call, &Answer::Ok(())).map_err(broken)?;
                        self.send(Outgoing::Last(frame))?;
                        return Ok(Ended::Requested);
                    }
                    Some(name) => self.call(&incoming, request, name)?,
                },
                Ok(Message::Instruct(instruction)) => {
                    let control = self.calls.get_mut(&incoming.call).and_then(|call| call.control.as_mut());
                    // An instruction can cross the end of its call.
                    match control {
                        Some(Control::Own(control)) => control.instruct(instruction),
                        // A task that is over takes no more.
                        Some(Control::Led(orders)) => drop(orders.send(instruction)),
                        None => {}
                    }
                }
                Ok(Message::Cancel) => drop(self.calls.remove(&incoming.call)),
                Err(error) => self.refuse(incoming.call, &error.to_string())?,
            }
        }
        Ok(Ended::Closed)
    }

    fn hello(&mut self, hello: Hello) -> Answer<Introduction> {
        if let Some(text) = versions_differ((VERSION, PROTOCOL), (&hello.version, hello.protocol)) {
            return Err(text);
        }
        if self.name.is_some() {
            return Err("Hello comes once".into());
        }
        self.name = Some(hello.name);
        Ok(Introduction {
            version: VERSION.to_owned(),
            protocol: PROTOCOL,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            clock: clock_identity(),
        })
    }

    fn call(&mut self, incoming: &Incoming, request: Request, name: String) -> Result<(), AgentError> {
        let call = incoming.call;
        if matches!(request, Request::Exchange) {
            let received = incoming.read_at;
            return self.send(Outgoing::Stamped(Box::new(move |replied| {
                answer(call, &Answer::Ok(ClockReading { received, replied }))
            })));
        }
        self.calls.retain(|_, call| !call.task.is_finished());
        if self.calls.len() >= CALLS || self.calls.contains_key(&call) {
            return self.refuse(call, "too many calls at once");
        }
        let work = self.work.clone();
        match request {
            Request::Open { place, target, id, join } => self.with_areas(call, move |areas| {
                let target = Target::try_from(target)?;
                let make = if join { WorkArea::join } else { WorkArea::create };
                areas.insert(place, make(&target, &id).map_err(text)?);
                Ok(())
            }),
            Request::BeginRun { place, fresh } => self.with_areas(call, move |areas| {
                let area = areas.get_mut(&place).ok_or_else(|| not_open(&place))?;
                area.begin_run(fresh).map_err(text)
            }),
            Request::ReachBy { place, target } => self.with_areas(call, move |areas| {
                let target = Target::try_from(target)?;
                let area = areas.get_mut(&place).ok_or_else(|| not_open(&place))?;
                if area.reach_by(&target) {
                    return Ok(());
                }
                Err(format!("place `{place}` is `{}`; `{target}` holds other files", area.target()))
            }),
            Request::Remove => self.with_areas(call, |areas| {
                // All are tried; the first that fails is reported.
                let removed: Vec<_> = std::mem::take(areas).into_values().map(WorkArea::remove).collect();
                removed.into_iter().collect::<Result<(), _>>().map_err(text)
            }),
            Request::RunHook(hook) => self.spawn(call, async move {
                let ran = work.run(move |_, stop| hook::run(&hook, stop)).await.map_err(text)?;
                ran.ok_or_else(|| "the command was stopped".into())
            }),
            Request::Environment { directory } => self.spawn(call, async move {
                let directory = directory.map(std::path::PathBuf::from);
                work.run(move |_, _| benchmaster_telemetry::environment::collect(directory.as_deref()))
                    .await
                    .map_err(text)
            }),
            Request::Perform(task) => {
                let reporter = Reporter::new(call, self.reports.clone());
                let (task, control) = match (self.group.get(), task.roles.as_slice()) {
                    (Some(group), _) => {
                        let (task, orders) = lead::start(Arc::clone(group), *task, reporter);
                        (task, Control::Led(orders))
                    }
                    (None, &[role]) => {
                        let (task, control) = perform::start(&work, *task, role, name, reporter);
                        (task, Control::Own(control))
                    }
                    (None, _) => return self.refuse(call, "this agent leads no others"),
                };
                self.calls.insert(call, Call { task, control: Some(control) });
            }
            Request::Listen { version_6 } => {
                let kept = Arc::clone(&self.listener);
                self.spawn(call, async move {
                    let (listener, listening) = lead::listen(version_6).await.map_err(text)?;
                    *kept.lock() = Some(listener);
                    Ok(listening)
                });
            }
            Request::Lead { muster, terms } => {
                let (leading, listener) = (Arc::clone(&self.group), self.listener.lock().take());
                self.spawn(call, async move {
                    if leading.get().is_some() {
                        return Err("it leads agents already".into());
                    }
                    Ok(lead::muster(*muster, listener, terms).await.map(|(group, led)| {
                        // It was empty, and calls of a controller come one after the other.
                        let _ = leading.set(Arc::new(group));
                        led
                    }))
                });
            }
            Request::Each { whom, request } => {
                let group = self.group.get().cloned();
                self.spawn(call, async move {
                    let group = group.ok_or("this agent leads no others")?;
                    let whom: Vec<usize> = whom.into_iter().map(|agent| agent as usize).collect();
                    group.ask(&whom, || Request::clone(&request)).await.map_err(text)
                });
            }
            Request::Hello(_) | Request::Exchange | Request::End => {
                return self.refuse(call, "this call is not allowed in this state");
            }
        }
        Ok(())
    }

    /// Does something with the working directories.
    fn with_areas(&mut self, call: u32, task: impl FnOnce(&mut Areas) -> Answer<()> + Send + 'static) {
        let work = self.work.clone();
        self.spawn(call, async move {
            let done = work.run(move |areas, _| task(areas)).await;
            done.unwrap_or_else(|defect| Err(defect.to_string()))
        });
    }

    /// Answers with what comes out, unless it is cancelled.
    fn spawn<T: Serialize + Send + 'static>(
        &mut self,
        call: u32,
        answering: impl Future<Output = Answer<T>> + Send + 'static,
    ) {
        let answers = self.answers.clone();
        let task = tokio::spawn(async move {
            let answered = answering.await;
            let frame = answer(call, &answered).or_else(|error| answer::<()>(call, &Err(error.to_string())));
            if let Ok(frame) = frame {
                // The stream may be gone.
                let _ = answers.send(Outgoing::Frame(frame)).await;
            }
        });
        self.calls.insert(call, Call { task: task.abort_handle(), control: None });
    }

    fn answer<T: Serialize>(&self, call: u32, answered: &Answer<T>) -> Result<(), AgentError> {
        self.send(Outgoing::Frame(answer(call, answered).map_err(broken)?))
    }

    fn refuse(&self, call: u32, reason: &str) -> Result<(), AgentError> {
        self.answer::<()>(call, &Err(reason.to_owned()))
    }

    fn send(&self, outgoing: Outgoing) -> Result<(), AgentError> {
        // Reading goes on, so waiting here would take the agent's silence for the controller's.
        let sent = self.answers.try_send(outgoing);
        sent.map_err(|_| AgentError::Broken("the controller does not read the answers to its calls".into()))
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

/// What monotonic clock this process has: the boot of its kernel and its time namespace.
pub(crate) fn clock_identity() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    // Kernels before 5.6 have no time namespaces, and one clock.
    let namespace = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

fn broken(error: impl std::error::Error) -> AgentError {
    AgentError::Broken(error.to_string())
}

fn not_open(place: &str) -> String {
    format!("place `{place}` was not opened")
}
