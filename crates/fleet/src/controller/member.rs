//! An agent as the controller has it: its process, its connection, and how to say why it was lost.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use benchmaster_telemetry::environment::Environment;
use benchmaster_workload::conduct::Share;
use tokio::process::Child;

use super::connection::{CallError, Connection};
use crate::agent::{clock_identity, versions_differ};
use crate::launch::{LastLines, LaunchError, Started};
use crate::protocol::{Hello, Introduction, PROTOCOL, Request, VERSION};

/// How long a process may take to end after its connection did, before it is said that it still runs.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// An agent of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name in the study.
    pub name: String,
    pub host: String,
    pub pid: u32,
    /// Its clients; `None` for the one that looks on at the server.
    pub share: Option<Share>,
    /// The environment of its host.
    pub environment: Environment,
    /// Its clock is known to within this.
    pub clock_bound: Duration,
}

impl Member {
    /// Its host, and whether it has clients there.
    pub(super) fn on(&self) -> (&str, bool) {
        (&self.host, self.share.is_some())
    }
}

/// What was started for an agent.
#[derive(Debug)]
pub(super) struct Process {
    child: Option<Child>,
    errors: LastLines,
    /// What must live as long as an agent.
    _keep: Option<std::sync::Arc<dyn std::any::Any + Send + Sync>>,
}

/// An agent of this version that answers.
#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) name: String,
    pub(super) connection: Connection,
    pub(super) process: Process,
    pub(super) host: String,
    pub(super) pid: u32,
    /// Whether it says that it reads the controller's clock.
    pub(super) same_clock: bool,
}

/// Connects to an agent that was started, and checks that it is of this version.
pub(super) async fn greet(
    started: Started,
    patience: Duration,
    timeout: Duration,
) -> Result<Greeted, LaunchError> {
    let Started { name, stream, process, errors, keep, leads: _ } = started;
    let mut process = Process { child: process, errors, _keep: keep };
    let connection = Connection::new(stream, patience);
    let hello = Hello { version: VERSION.to_owned(), protocol: PROTOCOL, name: name.clone(), patience };
    let greeting = connection.call::<Introduction>(Request::Hello(hello));
    let reason = match tokio::time::timeout(timeout, greeting).await {
        Ok(Ok(reply)) => {
            let Introduction { version, protocol, host, pid, clock } = reply;
            match versions_differ((&version, protocol), (VERSION, PROTOCOL)) {
                None => {
                    let same_clock = clock.is_some() && clock == clock_identity();
                    return Ok(Greeted { name, connection, process, host, pid, same_clock });
                }
                Some(text) => text,
            }
        }
        Ok(Err(CallError::Lost)) => {
            let reason = connection.ended().await.unwrap_or_else(|| CallError::Lost.to_string());
            process.explain(reason).await
        }
        Ok(Err(error)) => process.explain(error.to_string()).await,
        Err(_) => process.explain(format!("it did not answer within {} s", timeout.as_secs_f64())).await,
    };
    Err(LaunchError::new(name, reason))
}

impl Process {
    /// How the process ended, if it did, and its last words, after a reason.
    pub(super) async fn explain(&mut self, reason: String) -> String {
        let ended = match &mut self.child {
            Some(child) => tokio::time::timeout(LAST_WORDS, child.wait()).await.ok().and_then(Result::ok),
            None => None,
        };
        if ended.is_some() {
            let _ = tokio::time::timeout(LAST_WORDS, self.errors.read_to_end()).await;
        }
        let reason = ended.map_or(reason, how_ended);
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

fn how_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (_, Some(9)) => "it was killed (signal 9, SIGKILL)".into(),
        (_, Some(signal)) => format!("it ended by signal {signal}"),
        (Some(code), None) => format!("it ended with exit status {code}"),
        (None, None) => "it ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use std::thread::JoinHandle;

    use tokio::net::UnixStream;

    use super::*;
    use crate::agent::{AgentError, Ended, serve};
    use crate::launch::ByteStream;

    const LONG: Duration = Duration::from_secs(60);

    /// An agent in a thread, and a connection to it that shows as many signs of life as a patience of a minute asks for.
    async fn agent() -> (JoinHandle<Result<Ended, AgentError>>, Connection) {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        let stream = |socket: std::os::unix::net::UnixStream| -> std::io::Result<Box<dyn ByteStream>> {
            socket.set_nonblocking(true)?;
            Ok(Box::new(UnixStream::from_std(socket)?))
        };
        let agent = std::thread::spawn(move || serve(async || stream(theirs)));
        (agent, Connection::new(stream(ours).unwrap(), LONG))
    }

    async fn hello(
        connection: &Connection,
        version: &str,
        patience: Duration,
    ) -> Result<Introduction, CallError> {
        let hello = Hello { version: version.into(), protocol: PROTOCOL, name: "a".into(), patience };
        connection.call(Request::Hello(hello)).await
    }

    #[test]
    fn a_controller_of_another_version_is_refused_with_both_versions() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let agent = runtime.block_on(async {
            let (agent, connection) = agent().await;
            let refused = connection.exchange().await.unwrap_err();
            assert!(refused.to_string().contains("must be Hello"), "{refused}");
            let refused = hello(&connection, "0.0.1", LONG).await.unwrap_err();
            assert!(matches!(refused, CallError::Refused(_)), "{refused:?}");
            let text = refused.to_string();
            assert!(text.contains("controller is benchmaster 0.0.1") && text.contains(VERSION), "{text}");
            connection.exchange().await.unwrap_err();
            hello(&connection, VERSION, LONG).await.unwrap();
            connection.exchange().await.unwrap();
            let refused = hello(&connection, VERSION, LONG).await.unwrap_err();
            assert_eq!(refused.to_string(), "Hello comes once");
            agent
        });
        drop(runtime);
        assert!(matches!(agent.join().unwrap(), Ok(Ended::Closed)));
    }

    #[test]
    fn an_agent_ends_when_its_controller_is_silent_though_connected() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (agent, connection) = runtime.block_on(agent());
        runtime.block_on(hello(&connection, VERSION, Duration::from_millis(50))).unwrap();
        // Nothing drives the connection any more, which stays open.
        let ended = agent.join().unwrap();
        assert!(matches!(ended, Err(AgentError::Silent(_))), "{ended:?}");
    }
}
