//! HTTP/2 on the stream to an agent, and how it ended.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::codegen::Service;

use crate::launch::ByteStream;
use crate::protocol::MESSAGE;
use crate::protocol::wire::ExchangeRequest;
use crate::protocol::wire::agent_client::AgentClient;
use crate::stream::stamped::{Stamped, Stamps};

/// Signs of life asked for in the patience time.
const SIGNS: u32 = 5;

/// What an agent may send ahead: small, as a controller has hundreds.
const STREAM_WINDOW: u32 = 128 << 10;

/// Client of an agent.
pub(super) type Client = AgentClient<Channel>;

/// The way of requests to an agent.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    requests: SendRequest<Body>,
}

impl Service<http::Request<Body>> for Channel {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = hyper::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.requests.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.requests.send_request(request))
    }
}

/// A connection to an agent.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    pub(super) client: Client,
    pub(super) stamps: Arc<Stamps>,
    /// Why it ended, once it has.
    pub(super) over: watch::Receiver<Option<String>>,
    /// Dropped with the last clone, which ends the signs of life: they would keep the connection open.
    _wanted: Arc<watch::Sender<()>>,
}

impl Connection {
    /// Speaks HTTP/2 on a stream from now on, in a task of the runtime.
    pub(super) async fn new(stream: Box<dyn ByteStream>, patience: Duration) -> hyper::Result<Self> {
        let (stream, stamps) = Stamped::new(stream);
        let mut builder = Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new());
        builder.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(2 * STREAM_WINDOW);
        builder.max_send_buf_size(STREAM_WINDOW as usize);
        let interval = patience / SIGNS;
        builder.keep_alive_interval(interval).keep_alive_timeout(patience - interval);
        builder.keep_alive_while_idle(true);
        let (requests, connection) = builder.handshake(TokioIo::new(stream)).await?;
        let (tell, over) = watch::channel(None);
        tokio::spawn(async move {
            let reason = match connection.await {
                Ok(()) => "it closed the connection".to_owned(),
                Err(error) => why(&error, patience),
            };
            tell.send_replace(Some(reason));
        });
        let origin = http::Uri::from_static("http://agent");
        let client = AgentClient::with_origin(Channel { requests }, origin)
            .max_decoding_message_size(MESSAGE)
            .max_encoding_message_size(MESSAGE);
        let (wanted, gone) = watch::channel(());
        tokio::spawn(show_life(client.clone(), interval, over.clone(), gone));
        Ok(Self { client, stamps, over, _wanted: Arc::new(wanted) })
    }

    /// Why it ended, if it has or does so at once.
    pub(super) async fn ended(&self) -> Option<String> {
        let mut over = self.over.clone();
        let ended = tokio::time::timeout(Duration::from_millis(200), over.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(reason)) => reason.clone(),
            // The task is gone without a word: the runtime ends.
            Ok(Err(_)) => Some("the controller ends".into()),
            Err(_) => None,
        }
    }
}

/// Lets the agent hear of the controller so often. HTTP/2's own pings do not: none is sent to an agent that is heard of, and one
/// at work reports all the time.
async fn show_life(
    mut client: Client,
    interval: Duration,
    mut over: watch::Receiver<Option<String>>,
    mut gone: watch::Receiver<()>,
) {
    let signs = async {
        loop {
            tokio::time::sleep(interval).await;
            // What is answered does not matter, nor that an agent refuses it before it was greeted.
            let _ = client.exchange(ExchangeRequest {}).await;
        }
    };
    tokio::select! {
        () = signs => {}
        _ = over.wait_for(Option::is_some) => {}
        // Nothing is sent there: it is closed.
        _ = gone.changed() => {}
    }
}

/// A broken connection in words.
fn why(error: &hyper::Error, patience: Duration) -> String {
    if error.is_timeout() {
        let seconds = patience.as_secs_f64();
        return format!("no sign of life for {seconds} s: it hangs, or the network to it is down");
    }
    let error: &dyn std::error::Error = error;
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(format!("the connection broke: {error}"), |text, cause| format!("{text}: {cause}"))
}
