//! An agent as the controller has it: its process, its connection, and how to say why it was lost.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use benchmaster_telemetry::environment::Environment;
use benchmaster_workload::conduct::Share;
use tokio::process::Child;
use tonic::Status;

use super::channel::Connection;
use super::clocks::{self, Known};
use super::error::{FailureKind, FleetError};
use crate::agent::{clock_identity, versions_differ};
use crate::launch::{LastLines, LaunchError, Started};
use crate::protocol::wire::HelloRequest;
use crate::protocol::{PROTOCOL, VERSION};

/// How long a process may take to end after its connection did, before it is said that it still runs.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// An agent of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name in the study.
    pub name: String,
    /// Host name.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// Its clients; `None` for the one that looks on at the server.
    pub share: Option<Share>,
    /// The environment of its host.
    pub environment: Environment,
    /// Its clock is known to within this.
    pub clock_bound: Duration,
}

/// The process and the connection behind a member.
#[derive(Debug)]
pub(super) struct Behind {
    pub(super) name: String,
    pub(super) connection: Connection,
    pub(super) clock: Known,
    pub(super) process: Process,
}

/// What was started for an agent.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) child: Option<Child>,
    errors: LastLines,
    _keep: Option<Keep>,
}

/// What must live as long as an agent.
struct Keep(#[allow(dead_code, reason = "kept, not used")] std::sync::Arc<dyn std::any::Any + Send + Sync>);

impl std::fmt::Debug for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keep")
    }
}

/// What an agent says of itself.
#[derive(Debug, Clone)]
pub(super) struct Introduction {
    pub(super) host: String,
    pub(super) pid: u32,
    pub(super) same_clock: bool,
}

/// Connects to an agent that was started, and sees that it is one of ours.
pub(super) async fn greet(
    started: Started,
    patience: Duration,
    timeout: Duration,
) -> Result<(String, Connection, Process, Introduction), LaunchError> {
    let Started { name, stream, process, errors, keep } = started;
    let mut process = Process { child: process, errors, _keep: keep.map(Keep) };
    let hello = async {
        let connection = Connection::new(stream, patience).await.map_err(|error| error.to_string())?;
        let request = HelloRequest {
            version: VERSION.to_owned(),
            protocol: PROTOCOL,
            name: name.clone(),
            patience_ns: u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX),
        };
        match connection.client.clone().hello(request).await {
            Ok(reply) => Ok((connection, reply.into_inner())),
            Err(status) if is_of_connection(&status) => {
                Err(connection.ended().await.unwrap_or_else(|| status.message().to_owned()))
            }
            Err(status) => Err(status.message().to_owned()),
        }
    };
    let greeted = tokio::time::timeout(timeout, hello).await;
    let reason = match greeted {
        Ok(Ok((connection, reply))) => {
            match versions_differ((&reply.version, reply.protocol), (VERSION, PROTOCOL)) {
                None => {
                    let same_clock = !reply.clock.is_empty() && reply.clock == clock_identity();
                    let introduction = Introduction { host: reply.host, pid: reply.pid, same_clock };
                    return Ok((name, connection, process, introduction));
                }
                Some(text) => text,
            }
        }
        Ok(Err(reason)) => process.explain(reason).await,
        Err(_) => process.explain(format!("it did not answer within {} s", timeout.as_secs_f64())).await,
    };
    Err(LaunchError::new(name, reason))
}

/// Whether a call failed because of the connection: then the error has a cause; what the agent itself says has none. The
/// generated client drops the cause where the connection was gone before the call.
pub(super) fn is_of_connection(status: &Status) -> bool {
    std::error::Error::source(status).is_some() || status.message().starts_with("Service was not ready")
}

impl Process {
    /// How the process ended, if it did, and its last words, after a reason.
    async fn explain(&mut self, reason: String) -> String {
        let ended = match &mut self.child {
            Some(child) => tokio::time::timeout(LAST_WORDS, child.wait()).await.ok().and_then(Result::ok),
            None => None,
        };
        if ended.is_some() {
            let _ = tokio::time::timeout(LAST_WORDS, self.errors.read_to_end()).await;
        }
        let reason = ended.map_or(reason, told);
        match self.errors.text() {
            words if words.is_empty() => reason,
            words => format!("{reason}; it said: {words}"),
        }
    }

    /// Waits for the end of the process until the deadline, and kills it then.
    pub(super) async fn end(&mut self, deadline: tokio::time::Instant) {
        let Some(child) = &mut self.child else { return };
        if tokio::time::timeout_at(deadline, child.wait()).await.is_err() {
            // It may have ended just now; one that hangs in the kernel ends when the kernel lets it.
            let _ = child.start_kill();
            let _ = tokio::time::timeout(LAST_WORDS, child.wait()).await;
        }
    }
}

fn told(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (_, Some(9)) => "it was killed (signal 9, SIGKILL)".into(),
        (_, Some(signal)) => format!("it ended by signal {signal}"),
        (Some(code), None) => format!("it ended with exit status {code}"),
        (None, None) => "it ended".into(),
    }
}

impl Behind {
    /// The error of a call that failed.
    pub(super) async fn error(&mut self, status: Status) -> FleetError {
        let agent = self.name.clone();
        let ended = if is_of_connection(&status) { self.connection.ended().await } else { None };
        match ended {
            Some(reason) => FleetError::Lost { agent, reason: self.process.explain(reason).await },
            None => FleetError::Job { agent, text: status.message().to_owned(), kind: FailureKind::Job },
        }
    }

    /// The error of an agent that is gone, if it is.
    pub(super) async fn lost(&mut self, otherwise: &str) -> FleetError {
        let reason = self.connection.ended().await.unwrap_or_else(|| otherwise.to_owned());
        FleetError::Lost { agent: self.name.clone(), reason: self.process.explain(reason).await }
    }

    /// Another round of exchanges, before a start.
    pub(super) async fn renew_clock(&mut self) -> Result<(), Status> {
        let measured = clocks::measure(&self.connection).await?;
        self.clock.renew(Some(measured));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread::JoinHandle;

    use tokio::net::UnixStream;

    use super::*;
    use crate::agent::{AgentError, Ended, serve};
    use crate::launch::ByteStream;
    use crate::protocol::wire::ExchangeRequest;

    const LONG: Duration = Duration::from_secs(60);

    /// An agent in a thread, and a connection to it that shows as many signs of life as a patience of a minute asks for.
    async fn agent() -> (JoinHandle<Result<Ended, AgentError>>, Connection) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let stream = |socket: std::os::unix::net::UnixStream| -> std::io::Result<Box<dyn ByteStream>> {
            socket.set_nonblocking(true)?;
            Ok(Box::new(UnixStream::from_std(socket)?))
        };
        let agent = std::thread::spawn(move || serve(async || stream(theirs)));
        (agent, Connection::new(stream(ours).unwrap(), LONG).await.unwrap())
    }

    fn hello(version: &str, patience_ns: u64) -> HelloRequest {
        HelloRequest { version: version.into(), protocol: PROTOCOL, name: "a".into(), patience_ns }
    }

    #[test]
    fn a_controller_of_another_version_is_refused_with_both_versions() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let agent = runtime.block_on(async {
            let (agent, mut connection) = agent().await;
            let refused = connection.client.exchange(ExchangeRequest {}).await.unwrap_err();
            assert!(refused.message().contains("must be Hello"), "{refused}");
            let refused = connection.client.hello(hello("0.0.1", 1)).await.unwrap_err();
            assert!(!is_of_connection(&refused));
            let text = refused.message();
            assert!(text.contains("controller is benchmaster 0.0.1") && text.contains(VERSION), "{text}");
            connection.client.exchange(ExchangeRequest {}).await.unwrap_err();
            agent
        });
        drop(runtime);
        assert!(matches!(agent.join().unwrap(), Ok(Ended::Closed)));
    }

    #[test]
    fn an_agent_ends_when_its_controller_is_silent_though_connected() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (agent, connection) = runtime.block_on(agent());
        let greeted = runtime.block_on(connection.client.clone().hello(hello(VERSION, 50_000_000)));
        greeted.unwrap();
        // Nobody drives the connection any more, which stays open.
        let ended = agent.join().unwrap();
        assert!(matches!(ended, Err(AgentError::Silent(_))), "{ended:?}");
    }
}
