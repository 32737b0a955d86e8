//! Calls on the stream to an agent, and how it ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use benchmaster_frames::FrameError;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior};

use crate::clock::Exchange;
use crate::launch::ByteStream;
use crate::protocol::{
    ANSWER_LIMIT, Answer, ClockReading, Instruction, Message, REQUEST_LIMIT, Request, Task, message,
};
use crate::stream::frames::{FrameReader, FrameWriter, Incoming, Outgoing, StreamError};

/// Signs of life in the patience time.
const SIGNS: u32 = 5;

/// The number of calls whose answers are ignored.
const NO_CALL: u32 = 0;

/// Answers to a call that wait to be looked at; reading waits beyond, and so does the agent in the end.
const ANSWERS: usize = 8;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    /// In the agent's words.
    #[error("{0}")]
    Refused(String),
    /// [`Connection::ended`] says why.
    #[error("the connection ended")]
    Lost,
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// A connection to an agent. It is closed with the last clone and the last call.
#[derive(Debug, Clone)]
pub(super) struct Connection {
    calls: Arc<Calls>,
    /// Why it ended, once it has.
    over: watch::Receiver<Option<String>>,
}

#[derive(Debug)]
struct Calls {
    outgoing: UnboundedSender<Outgoing>,
    next: AtomicU32,
    waiting: Arc<Waiting>,
}

/// Those who wait for answers, by the number of the call; `None` once the connection is over.
type Waiting = Mutex<Option<HashMap<u32, mpsc::Sender<Incoming>>>>;

impl Connection {
    /// Serves calls on a stream from now on, in a task of the runtime.
    pub(super) fn new(stream: Box<dyn ByteStream>, patience: Duration) -> Self {
        let (reader, writer) = tokio::io::split(stream);
        let (outgoing, queue) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::new(Some(HashMap::new())));
        let (over, ended) = watch::channel(None);
        let answered = Arc::clone(&waiting);
        tokio::spawn(async move {
            let result = tokio::select! {
                result = read(FrameReader::new(reader, patience), &answered) => result,
                result = write(FrameWriter::new(writer), queue, patience / SIGNS) => result,
            };
            over.send_replace(Some(match result {
                Ok(()) => "it closed the connection".into(),
                Err(StreamError::Silent(_)) => {
                    let seconds = patience.as_secs_f64();
                    format!("no sign of life for {seconds} s: it hangs, or the network to it is down")
                }
                Err(StreamError::Io(error)) => format!("the connection broke: {error}"),
                Err(error) => error.to_string(),
            }));
            *answered.lock() = None;
        });
        Self { calls: Arc::new(Calls { outgoing, next: AtomicU32::new(NO_CALL + 1), waiting }), over: ended }
    }

    /// Asks for something and waits for the answer. The agent stops what it does when the future is dropped.
    pub(super) async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, CallError> {
        self.request(request)?.answer().await.map(|(value, _)| value)
    }

    /// The same, with the answer as it was sent.
    pub(super) async fn call_raw(&self, request: Request) -> Result<Vec<u8>, CallError> {
        let mut call = self.request(request)?;
        let incoming = call.next().await.ok_or(CallError::Lost)?;
        call.answered = true;
        Ok(incoming.body().to_vec())
    }

    /// One exchange of time stamps.
    pub(super) async fn exchange(&self) -> Result<Exchange, CallError> {
        let (written, sent) = oneshot::channel();
        let mut call = self.begin(|number| {
            let frame = message(number, &Message::Call(Request::Exchange))?;
            Ok(Outgoing::Stamped(Box::new(move |now| {
                // The call may have been dropped.
                let _ = written.send(now);
                Ok(frame)
            })))
        })?;
        let (ClockReading { received, replied }, returned) = call.answer().await?;
        let sent = sent.await.map_err(|_| CallError::Lost)?;
        Ok(Exchange { sent, received, replied, returned })
    }

    /// Begins a task of a run.
    pub(super) fn perform(&self, task: Task) -> Result<Call, CallError> {
        self.request(Request::Perform(Box::new(task)))
    }

    fn request(&self, request: Request) -> Result<Call, CallError> {
        self.begin(|number| Ok(Outgoing::Frame(message(number, &Message::Call(request))?)))
    }

    fn begin(&self, first: impl FnOnce(u32) -> Result<Outgoing, FrameError>) -> Result<Call, CallError> {
        let mut number = NO_CALL;
        while number == NO_CALL {
            number = self.calls.next.fetch_add(1, Ordering::Relaxed);
        }
        let first = first(number)?;
        let (sender, answers) = mpsc::channel(ANSWERS);
        self.calls.waiting.lock().as_mut().ok_or(CallError::Lost)?.insert(number, sender);
        let call = Call { number, calls: Arc::clone(&self.calls), answers, answered: false };
        call.calls.outgoing.send(first).map_err(|_| CallError::Lost)?;
        Ok(call)
    }

    /// Why it ended, if it has or does so at once.
    pub(super) async fn ended(&self) -> Option<String> {
        let mut over = self.over.clone();
        let ended = tokio::time::timeout(Duration::from_millis(200), over.wait_for(Option::is_some)).await;
        match ended {
            Ok(Ok(reason)) => reason.clone(),
            // The task is gone without a reason: the runtime ends.
            Ok(Err(_)) => Some("the controller ends".into()),
            Err(_) => None,
        }
    }
}

/// A call that is under way. It is cancelled when this is dropped before it was answered.
#[derive(Debug)]
pub(super) struct Call {
    number: u32,
    calls: Arc<Calls>,
    answers: mpsc::Receiver<Incoming>,
    answered: bool,
}

impl Call {
    /// The next answer; `None` when the connection is over.
    pub(super) async fn next(&mut self) -> Option<Incoming> {
        self.answers.recv().await
    }

    /// The only answer, and when it was read.
    async fn answer<T: DeserializeOwned>(&mut self) -> Result<(T, i64), CallError> {
        let incoming = self.next().await.ok_or(CallError::Lost)?;
        self.answered = true;
        let answer: Answer<T> = incoming.value()?;
        Ok((answer.map_err(CallError::Refused)?, incoming.read_at))
    }

    /// The way of instructions to the call.
    pub(super) fn instructor(&self) -> Instructor {
        Instructor { number: self.number, outgoing: self.calls.outgoing.clone() }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(waiting) = &mut *self.calls.waiting.lock() {
            waiting.remove(&self.number);
        }
        if !self.answered
            && let Ok(frame) = message(self.number, &Message::Cancel)
        {
            // The connection may be over, and everything on it.
            let _ = self.calls.outgoing.send(Outgoing::Frame(frame));
        }
    }
}

/// Sends instructions to a call.
#[derive(Debug)]
pub(super) struct Instructor {
    number: u32,
    outgoing: UnboundedSender<Outgoing>,
}

impl Instructor {
    pub(super) fn send(&self, instruction: Instruction) {
        if let Ok(frame) = message(self.number, &Message::Instruct(instruction)) {
            // The end of a connection is seen where answers are awaited.
            let _ = self.outgoing.send(Outgoing::Frame(frame));
        }
    }
}

/// Hands answers to those who wait for them.
async fn read(mut reader: FrameReader<impl AsyncRead + Unpin>, waiting: &Waiting) -> Result<(), StreamError> {
    // What is not an agent is recognised by its first bytes, which are no small length.
    let mut limit = REQUEST_LIMIT;
    while let Some(incoming) = reader.next(limit).await? {
        limit = ANSWER_LIMIT;
        let receiver = waiting.lock().as_ref().and_then(|waiting| waiting.get(&incoming.call).cloned());
        if let Some(receiver) = receiver {
            // A call that is given up meanwhile needs no answer.
            let _ = receiver.send(incoming).await;
        }
    }
    Ok(())
}

/// Sends what there is, and a sign of life in every interval, which the agent answers. Ends when there are no more senders.
async fn write(
    mut writer: FrameWriter<impl AsyncWrite + Unpin>,
    mut queue: UnboundedReceiver<Outgoing>,
    interval: Duration,
) -> Result<(), StreamError> {
    let sign = message(NO_CALL, &Message::Call(Request::Exchange))?;
    let mut due = tokio::time::interval_at(Instant::now() + interval, interval);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let outgoing = tokio::select! {
            outgoing = queue.recv() => outgoing,
            _ = due.tick() => Some(Outgoing::Frame(sign.clone())),
        };
        match outgoing {
            Some(outgoing) => writer.write(outgoing).await?,
            None => return writer.close().await,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{VERSION, answer};
    use tokio::io::DuplexStream;

    const LONG: Duration = Duration::from_secs(60);

    /// A connection, and the agent's end of it.
    fn connection() -> (Connection, FrameReader<impl AsyncRead + Unpin>, FrameWriter<impl AsyncWrite + Unpin>)
    {
        let (ours, theirs): (DuplexStream, _) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        (Connection::new(Box::new(ours), LONG), FrameReader::new(reader, LONG), FrameWriter::new(writer))
    }

    async fn next(reader: &mut FrameReader<impl AsyncRead + Unpin>) -> (u32, Message) {
        let incoming = reader.next(1000).await.unwrap().unwrap();
        (incoming.call, incoming.value().unwrap())
    }

    #[tokio::test]
    async fn calls_overlap_and_are_answered_in_any_order() {
        let (connection, mut reader, mut writer) = connection();
        let ask = |directory: &str| {
            let (connection, directory) = (connection.clone(), Some(directory.to_owned()));
            async move { connection.call::<String>(Request::Environment { directory }).await.unwrap() }
        };
        let agent = async {
            let mut asked = Vec::new();
            for _ in 0..2 {
                let incoming = reader.next(1000).await.unwrap().unwrap();
                let Message::Call(Request::Environment { directory }) = incoming.value().unwrap() else {
                    panic!("{incoming:?}");
                };
                asked.push((incoming.call, directory.unwrap()));
            }
            // An answer to no call is dropped.
            asked.push((77, "?".into()));
            for (call, directory) in asked.into_iter().rev() {
                writer.write(Outgoing::Frame(answer(call, &Ok(directory)).unwrap())).await.unwrap();
            }
        };
        let (one, two, ()) = tokio::join!(ask("one"), ask("two"), agent);
        assert_eq!((one.as_str(), two.as_str()), ("one", "two"));
    }

    #[tokio::test]
    async fn a_dropped_call_is_cancelled_and_a_lost_connection_fails_all() {
        let (connection, mut reader, writer) = connection();
        let given_up =
            tokio::time::timeout(Duration::from_millis(20), connection.call::<()>(Request::Remove));
        assert!(given_up.await.is_err());
        let (first, message) = next(&mut reader).await;
        assert!(matches!(message, Message::Call(Request::Remove)));
        let (second, message) = next(&mut reader).await;
        assert!(matches!(message, Message::Cancel) && first == second, "{message:?}");
        assert!(connection.ended().await.is_none());
        let (waiting, ()) = tokio::join!(connection.call::<()>(Request::Remove), async {
            next(&mut reader).await;
            drop((reader, writer));
        });
        assert!(matches!(waiting, Err(CallError::Lost)), "{waiting:?}");
        assert_eq!(connection.ended().await.as_deref(), Some("it closed the connection"));
        assert!(matches!(connection.exchange().await, Err(CallError::Lost)));
    }

    #[tokio::test]
    async fn answers_that_nobody_reads_hold_the_agent_up_until_the_call_is_dropped() {
        let (connection, mut reader, mut writer) = connection();
        let call = connection
            .begin(|number| Ok(Outgoing::Frame(message(number, &Message::Call(Request::Remove))?)))
            .unwrap();
        let number = reader.next(1000).await.unwrap().unwrap().call;
        let flood = async {
            let text = VERSION.repeat(1000);
            for _ in 0..1000 {
                writer.write(Outgoing::Frame(answer(number, &Ok(&text)).unwrap())).await.unwrap();
            }
        };
        let mut flood = std::pin::pin!(flood);
        let held_up = tokio::time::timeout(Duration::from_millis(100), &mut flood).await;
        assert!(held_up.is_err(), "5 MB are more than what may wait");
        drop(call);
        tokio::time::timeout(LONG, flood).await.unwrap();
    }
}
