//! The way of trace records from workers to a sink: batches in recycled buffers over a bounded channel to one writing
//! thread. Nothing is ever dropped: when the writer falls behind, workers wait, and how long is reported.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::recording::{TraceRecord, TraceSink};

/// Batches that may wait for the writer.
const QUEUED: usize = 64;

/// Writes what workers send until all of them have finished.
#[derive(Debug)]
pub(crate) struct TraceWriter {
    batches: Receiver<Vec<TraceRecord>>,
    empty: Sender<Vec<TraceRecord>>,
    failed: Arc<AtomicBool>,
}

/// Makes senders, one per worker.
#[derive(Debug)]
pub(crate) struct TraceSource {
    full: SyncSender<Vec<TraceRecord>>,
    empty: Arc<Mutex<Receiver<Vec<TraceRecord>>>>,
    failed: Arc<AtomicBool>,
    batch: usize,
}

#[derive(Debug)]
pub(crate) struct TraceSender {
    buffer: Vec<TraceRecord>,
    full: SyncSender<Vec<TraceRecord>>,
    empty: Arc<Mutex<Receiver<Vec<TraceRecord>>>>,
    failed: Arc<AtomicBool>,
    batch: usize,
    stalled_ns: u64,
}

/// A source for `workers` workers, and the writer.
pub(crate) fn pipe(workers: usize) -> (TraceSource, TraceWriter) {
    let (full, batches) = sync_channel(QUEUED);
    let (empty, recycled) = channel();
    let failed = Arc::new(AtomicBool::new(false));
    let source = TraceSource {
        full,
        empty: Arc::new(Mutex::new(recycled)),
        failed: failed.clone(),
        batch: (65_536 / workers.max(1)).clamp(256, 8192),
    };
    (source, TraceWriter { batches, empty, failed })
}

impl TraceWriter {
    /// Writes everything that is sent; returns when all senders are gone.
    ///
    /// # Errors
    /// The first error of the sink. Later batches are then received and thrown away, so that workers do not hang.
    pub(crate) fn run(self, sink: &mut dyn TraceSink) -> io::Result<()> {
        let mut result = Ok(());
        for mut batch in &self.batches {
            if result.is_ok() {
                result = sink.write(&batch);
                self.failed.store(result.is_err(), Ordering::Relaxed);
            }
            batch.clear();
            let _ = self.empty.send(batch);
        }
        result
    }
}

impl TraceSource {
    /// Set when the sink has failed.
    pub(crate) fn failed(&self) -> Arc<AtomicBool> {
        self.failed.clone()
    }

    pub(crate) fn sender(&self) -> TraceSender {
        TraceSender {
            buffer: Vec::with_capacity(self.batch),
            full: self.full.clone(),
            empty: self.empty.clone(),
            failed: self.failed.clone(),
            batch: self.batch,
            stalled_ns: 0,
        }
    }
}

impl TraceSender {
    /// Takes a record; `false` when a batch was sent, which takes time.
    #[inline]
    pub(crate) fn push(&mut self, record: TraceRecord) -> bool {
        self.buffer.push(record);
        let full = self.buffer.len() == self.batch;
        if full {
            self.send();
        }
        !full
    }

    #[cold]
    fn send(&mut self) {
        let next = self.empty.lock().ok().and_then(|empty| empty.try_recv().ok());
        let next = next.unwrap_or_else(|| Vec::with_capacity(self.batch));
        let batch = std::mem::replace(&mut self.buffer, next);
        if self.failed.load(Ordering::Relaxed) {
            return;
        }
        if let Err(TrySendError::Full(batch)) = self.full.try_send(batch) {
            let before = Instant::now();
            // The writer only goes away when all senders have.
            let _ = self.full.send(batch);
            self.stalled_ns += u64::try_from(before.elapsed().as_nanos()).unwrap_or(u64::MAX);
        }
    }

    /// Sends the rest; returns the time spent waiting for the writer, in nanoseconds.
    pub(crate) fn finish(mut self) -> u64 {
        if !self.buffer.is_empty() {
            self.send();
        }
        self.stalled_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Counting(u64, Option<u64>);
    impl TraceSink for Counting {
        fn write(&mut self, records: &[TraceRecord]) -> io::Result<()> {
            self.0 += records.len() as u64;
            match self.1 {
                Some(limit) if self.0 > limit => Err(io::Error::from(io::ErrorKind::StorageFull)),
                _ => Ok(()),
            }
        }
    }

    fn send(sink: &mut Counting, each: u32) -> io::Result<()> {
        let (source, writer) = pipe(4);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let mut sender = source.sender();
                scope.spawn(move || {
                    (0..each).for_each(|_| {
                        sender.push(TraceRecord { worker, ..TraceRecord::default() });
                    });
                    sender.finish()
                });
            }
            drop(source);
            writer.run(sink)
        })
    }

    #[test]
    fn nothing_is_lost() {
        let mut sink = Counting(0, None);
        send(&mut sink, 100_003).unwrap();
        assert_eq!(sink.0, 400_012);
    }

    #[test]
    fn a_full_disk_is_reported_and_hangs_nobody() {
        let mut sink = Counting(0, Some(10_000));
        let error = send(&mut sink, 1_000_000).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
