//! An agent: serves one controller on one stream, does what it is asked to, and ends with the stream.
//!
//! The main thread serves the protocol and sleeps while a workload is measured, except for a sign of life a few times in
//! the patience time. Workloads and commands run on a thread of their own.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, channel};

use crate::launch::ByteStream;
use crate::stream::frames::{FrameReader, FrameWriter, Outgoing, StreamError};

mod conductor;
mod hook;
mod lead;
mod perform;
mod reporter;
mod service;
mod work;

use self::service::Service;
use self::work::Work;

pub(crate) use self::service::{clock_identity, versions_differ};

/// The controller's patience until it says another one.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long work that was stopped may take to end before the process does; it may hang in the kernel.
const GRACE: Duration = Duration::from_millis(1500);

/// How long agents behind this one may take to end: less than the controller waits for this one.
const LED_END: Duration = Duration::from_millis(2500);

/// Answers that wait to be sent. A controller that asks for more without reading them is lost.
const ANSWERS: usize = 256;

/// Reports that wait to be sent; a workload that records every call waits beyond.
const REPORTS: usize = 8;

/// How the service of an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The controller asked for it.
    Requested,
    /// The controller closed the stream, or was killed.
    Closed,
}

/// Why an agent could not serve.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The runtime, a thread or the stream failed.
    #[error("the agent cannot run: {0}")]
    Start(#[source] io::Error),
    #[error("the connection to the controller broke: {0}")]
    Broken(String),
    #[error("no message from the controller for {} s; the agent ends", .0.as_secs_f64())]
    Silent(Duration),
}

impl From<StreamError> for AgentError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Silent(patience) => Self::Silent(patience),
            error => Self::Broken(error.to_string()),
        }
    }
}

/// Serves a controller on the stream that `connect` gives, until the controller says that it is over, the stream ends or
/// no message for the controller's patience. What still runs is stopped then.
///
/// The caller ends the process after that: threads of a workload may hang in the kernel, and are left behind.
///
/// # Errors
/// See [`AgentError`].
pub fn serve<F>(connect: F) -> Result<Ended, AgentError>
where
    F: AsyncFnOnce() -> io::Result<Box<dyn ByteStream>>,
{
    let work = Work::start().map_err(AgentError::Start)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let ended = runtime.map_err(AgentError::Start)?.block_on(async {
        let stream = connect().await.map_err(AgentError::Start)?;
        serve_on(stream, work.handle()).await
    });
    work.end(GRACE);
    ended
}

async fn serve_on(stream: Box<dyn ByteStream>, work: work::Handle) -> Result<Ended, AgentError> {
    let (reader, writer) = tokio::io::split(stream);
    let (answers, answered) = channel(ANSWERS);
    let (reports, reported) = channel(REPORTS);
    let service = Service::new(work, answers, reports);
    let group = service.group();
    let mut writing = std::pin::pin!(write(FrameWriter::new(writer), answered, reported));
    let ended = tokio::select! {
        ended = service.serve(FrameReader::new(reader, PATIENCE)) => ended,
        broken = &mut writing => {
            broken.map_err(AgentError::from).and(Err(AgentError::Broken("the connection is closed".into())))
        }
    };
    if let Some(group) = group.get() {
        // They end what they do, and are killed only then.
        group.end(tokio::time::Instant::now() + LED_END).await;
    }
    let ended = ended?;
    if ended == Ended::Requested {
        // The answer is still to be sent.
        let _ = tokio::time::timeout(GRACE, writing).await;
    }
    Ok(ended)
}

/// Sends what there is until the last frame, answers before reports.
async fn write(
    mut writer: FrameWriter<impl tokio::io::AsyncWrite + Unpin>,
    mut answers: Receiver<Outgoing>,
    mut reports: Receiver<Outgoing>,
) -> Result<(), StreamError> {
    loop {
        let outgoing = tokio::select! {
            biased;
            Some(answer) = answers.recv() => answer,
            Some(report) = reports.recv() => report,
            else => break,
        };
        if !writer.write(outgoing).await? {
            break;
        }
    }
    writer.close().await
}
