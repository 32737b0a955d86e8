//! A job on an agent: what comes in and what goes out while it runs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use benchmaster_workload::conduct::Share;
use benchmaster_workload::execute::{ExecuteError, Progress};
use benchmaster_workload::recording::{TraceRecord, TraceSink};
use prost::bytes::Bytes;
use tokio::sync::mpsc::Sender;
use tonic::Streaming;

use super::conductor::{Meetings, Order, Remote};
use super::work::Areas;
use crate::job::{Job, Side};
use crate::perform::{Surroundings, look_on, perform};
use crate::protocol::wire::report::Kind;
use crate::protocol::wire::{self, instruction};
use crate::protocol::{self, PIECE, trace};

/// Time between two reports of progress.
const PROGRESS: Duration = Duration::from_millis(180);

/// What a job is, decoded.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) agent: String,
    place: String,
    job: Job,
    share: Option<Share>,
    neighbours: u32,
    looks: bool,
}

impl Part {
    pub(super) fn of(task: wire::Task, agent: String) -> Result<Self, protocol::Unreadable> {
        Ok(Self {
            agent,
            place: task.place,
            job: protocol::decode(&task.job)?,
            share: task.share.map(|share| protocol::decode(&share)).transpose()?,
            neighbours: task.neighbours,
            looks: task.looks,
        })
    }
}

/// Passes the controller's instructions on to the thread that works, until the controller has no more. Then, or when it says
/// so, the job is to stop; one that is done does not mind.
pub(super) async fn forward(
    mut instructions: Streaming<wire::Instruction>,
    orders: mpsc::Sender<Order>,
    meetings: Meetings,
    stop: Arc<AtomicBool>,
) {
    while let Ok(Some(instruction)) = instructions.message().await {
        let order = match instruction.kind {
            Some(instruction::Kind::Go(step)) => Order::Go(step.number),
            Some(instruction::Kind::StartAt(time)) => Order::StartAt(time),
            // Workers wait for it, not the thread that takes them through the phases.
            Some(instruction::Kind::Held(meeting)) => {
                meetings.held(&meeting);
                continue;
            }
            Some(instruction::Kind::Stop(_) | instruction::Kind::Task(_)) | None => break,
        };
        if orders.send(order).is_err() {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
}

/// Does the job and reports how it went.
pub(super) fn run(
    areas: &mut Areas,
    part: &Part,
    (orders, meetings): (mpsc::Receiver<Order>, Meetings),
    reports: &Sender<wire::Report>,
    stop: &AtomicBool,
) {
    let tell = |kind| reports.blocking_send(wire::Report { kind: Some(kind) });
    let result = match part.share {
        Some(share) => play(areas, part, share, (orders, meetings), reports, stop),
        None => look(part, (orders, meetings), reports, stop),
    };
    // Nobody listens any more when it cannot be told.
    let _ = match result {
        Err(failure) => tell(Kind::Failed(failure)),
        Ok(whole) => {
            let of = whole.len() as u64;
            let pieces = (0..whole.len()).step_by(PIECE);
            let mut pieces = pieces.map(|from| whole.slice(from..whole.len().min(from + PIECE)));
            pieces.try_for_each(|bytes| tell(Kind::Done(wire::Piece { bytes, of })))
        }
    };
}

fn play(
    areas: &mut Areas,
    part: &Part,
    share: Share,
    (orders, meetings): (mpsc::Receiver<Order>, Meetings),
    reports: &Sender<wire::Report>,
    stop: &AtomicBool,
) -> Result<Bytes, wire::Failure> {
    let Some(area) = areas.get_mut(&part.place) else {
        return Err(failure("job", format!("place `{}` was not opened", part.place)));
    };
    let mut conductor = Remote { reports: reports.clone(), orders, meetings };
    let mut sink = Sink { reports: reports.clone() };
    let sink: Option<&mut dyn TraceSink> = if part.job.trace { Some(&mut sink) } else { None };
    let mut next = Instant::now();
    let mut observe = |progress: Progress| {
        if Instant::now() >= next {
            next = Instant::now() + PROGRESS;
            // Left out when the controller is behind.
            let _ = reports.try_send(wire::Report { kind: Some(Kind::Progress(of(&progress))) });
        }
    };
    let surroundings = surroundings(part, Side::Clients, stop);
    perform(area, &part.job, share, surroundings, &mut conductor, sink, &mut observe)
        .map_err(|error| failure(kind(&error), error.to_string()))
        .and_then(|performed| encoded(&performed))
}

fn look(
    part: &Part,
    (orders, meetings): (mpsc::Receiver<Order>, Meetings),
    reports: &Sender<wire::Report>,
    stop: &AtomicBool,
) -> Result<Bytes, wire::Failure> {
    let mut conductor = Remote { reports: reports.clone(), orders, meetings };
    look_on(&part.job, surroundings(part, Side::Server, stop), &mut conductor)
        .map_err(|error| failure("stopped", error.to_string()))
        .and_then(|beside| encoded(&beside))
}

fn surroundings<'a>(part: &'a Part, side: Side, stop: &'a AtomicBool) -> Surroundings<'a> {
    Surroundings {
        agent: &part.agent,
        side,
        neighbours: part.neighbours,
        looks: part.looks,
        stop,
        samplers: Vec::new(),
    }
}

fn encoded(value: &impl serde::Serialize) -> Result<Bytes, wire::Failure> {
    protocol::encode(value).map_err(|error| failure("job", error.to_string()))
}

fn failure(kind: &str, text: String) -> wire::Failure {
    wire::Failure { kind: kind.into(), text }
}

fn kind(error: &ExecuteError) -> &'static str {
    match error {
        ExecuteError::Stopped => "stopped",
        _ => "job",
    }
}

fn of(progress: &Progress) -> wire::Progress {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    wire::Progress {
        phase: progress.phase.name().to_owned(),
        elapsed_ns: nanos(progress.elapsed),
        length_ns: progress.length.map_or(0, nanos),
        operations: progress.operations,
        bytes: progress.bytes,
    }
}

/// Sends recorded calls to the controller; waits when it cannot keep up, which the recorder notes.
struct Sink {
    reports: Sender<wire::Report>,
}

impl TraceSink for Sink {
    fn write(&mut self, records: &[TraceRecord]) -> io::Result<()> {
        records.chunks(trace::BATCH).try_for_each(|batch| {
            let kind = Some(Kind::Trace(trace::encode(batch).into()));
            let lost = |_| io::Error::new(io::ErrorKind::BrokenPipe, "the controller takes no more records");
            self.reports.blocking_send(wire::Report { kind }).map_err(lost)
        })
    }
}
