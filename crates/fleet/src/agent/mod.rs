//! An agent: serves one controller on one stream, does what it is told, and ends with the stream.
//!
//! The main thread serves the protocol and sleeps while a workload is measured, except for a sign of life a few times in
//! the patience time. Workloads and commands run on a thread of their own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use tokio::sync::Notify;

use crate::launch::ByteStream;
use crate::protocol::{MESSAGE, wire};
use crate::stream::stamped::{Stamped, Stamps};

mod conductor;
mod hook;
mod perform;
mod service;
mod work;

use self::service::Service;
use self::work::Work;

pub(crate) use self::service::{clock_identity, versions_differ};

/// The controller's patience until it says another one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Looks at the stream in the patience time.
const LOOKS: u32 = 4;

/// How long work that was stopped may take to end before the process does; it may hang in the kernel.
const GRACE: Duration = Duration::from_millis(1500);

/// How the service of an agent ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The controller said so.
    Told,
    /// The controller closed the stream without a word, or was killed.
    Closed,
}

/// Why an agent could not serve.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The runtime, a thread or the stream could not be had.
    #[error("the agent cannot run: {0}")]
    Start(#[source] io::Error),
    /// The stream broke.
    #[error("the connection to the controller broke: {0}")]
    Broken(String),
    /// Nothing was heard of the controller.
    #[error("nothing was heard of the controller for {} s; the agent ends", .0.as_secs_f64())]
    Silent(Duration),
}

/// Serves a controller on the stream that `connect` gives, until the controller says that it is over, the stream ends or
/// nothing was heard for the controller's patience. What still runs is stopped then.
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
    let (stream, stamps) = Stamped::new(stream);
    let life = Arc::new(Life {
        stamps,
        patience_ns: AtomicU64::new(u64::try_from(PATIENCE.as_nanos()).unwrap_or(u64::MAX)),
        over: Notify::new(),
    });
    let service = wire::agent_server::AgentServer::new(Service::new(work, Arc::clone(&life)))
        .max_decoding_message_size(MESSAGE)
        .max_encoding_message_size(MESSAGE);
    let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    // Small: an agent holds little for the controller, which reads what it gets.
    builder.initial_stream_window_size(128 << 10).initial_connection_window_size(256 << 10);
    builder.max_send_buf_size(128 << 10).auto_date_header(false);
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        result = &mut connection => match result {
            Ok(()) => Ok(Ended::Closed),
            Err(error) => Err(AgentError::Broken(told(&error))),
        },
        () = life.over.notified() => {
            // The reply is still to be sent.
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(GRACE, connection).await;
            Ok(Ended::Told)
        }
        silence = life.watch() => Err(AgentError::Silent(silence)),
    }
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Whether the controller lives.
#[derive(Debug)]
struct Life {
    stamps: Arc<Stamps>,
    patience_ns: AtomicU64,
    over: Notify,
}

impl Life {
    /// Returns when nothing was read for the patience time. Looks are counted instead of time, so that an agent that was
    /// stopped itself, or a machine that slept, first reads what is there.
    async fn watch(&self) -> Duration {
        let (mut last, mut silent) = (self.stamps.last_read(), 0);
        loop {
            let patience = Duration::from_nanos(self.patience_ns.load(Ordering::Relaxed));
            tokio::time::sleep(patience / LOOKS).await;
            let now = self.stamps.last_read();
            silent = if now == last { silent + 1 } else { 0 };
            last = now;
            if silent > LOOKS {
                return patience;
            }
        }
    }
}
