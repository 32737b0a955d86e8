//! The disk itself: heads or channels, and its own write cache.

use std::collections::{BTreeSet, VecDeque};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::config::{DiskConfig, DiskOrder};

/// Nanoseconds since the server started.
pub(super) type Nanos = u64;

/// A request to the disk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) id: u64,
    pub(super) write: bool,
    /// Whether a write is answered when it is on the medium, past the cache.
    pub(super) through: bool,
    /// Where it begins, in bytes.
    pub(super) position: u64,
    pub(super) bytes: u64,
}

/// What a device did, as `/proc/diskstats` counts it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DeviceCounts {
    pub(super) reads: u64,
    pub(super) read_bytes: u64,
    pub(super) read_ns: u64,
    pub(super) writes: u64,
    pub(super) written_bytes: u64,
    pub(super) write_ns: u64,
    pub(super) flushes: u64,
    pub(super) flush_ns: u64,
    pub(super) busy_ns: u64,
    pub(super) queue_ns: u64,
    pub(super) in_flight: u64,
}

#[derive(Debug)]
pub(super) struct Device {
    config: DiskConfig,
    random: ChaCha8Rng,
    /// Requests for the medium, with the time since which they wait.
    waiting: VecDeque<(Nanos, Request)>,
    /// Requests under way, with the time of their end and that since which they waited.
    serving: Vec<(Nanos, Nanos, Request)>,
    /// Where the head is: behind the last request.
    head: u64,
    last_end: Nanos,
    /// Until when what is transferred already takes.
    busy_until: Nanos,
    /// Writes in the cache that are not on the medium, and their bytes.
    cached: BTreeSet<u64>,
    cached_bytes: u64,
    /// Writes that wait for room in the cache.
    blocked: VecDeque<(Nanos, Request)>,
    /// Flushes, with the time of their arrival, and the last write that they wait for.
    flushes: Vec<(u64, Nanos, u64)>,
    /// Completed, but not fetched.
    ready: VecDeque<(Nanos, u64)>,
    noted: Nanos,
    counts: DeviceCounts,
}

impl Device {
    pub(super) fn new(config: DiskConfig, seed: u64) -> Self {
        Self {
            config,
            random: ChaCha8Rng::seed_from_u64(seed),
            waiting: VecDeque::new(),
            serving: Vec::new(),
            head: u64::MAX,
            last_end: 0,
            busy_until: 0,
            cached: BTreeSet::new(),
            cached_bytes: 0,
            blocked: VecDeque::new(),
            flushes: Vec::new(),
            ready: VecDeque::new(),
            noted: 0,
            counts: DeviceCounts::default(),
        }
    }

    pub(super) fn submit(&mut self, now: Nanos, request: Request) {
        self.note(now);
        self.counts.in_flight += 1;
        if request.write && !request.through && self.config.cache > 0 {
            self.blocked.push_back((now, request));
            self.fill_cache(now);
        } else {
            self.waiting.push_back((now, request));
        }
        self.serve(now);
    }

    /// Asks for all that is in the cache to be written to the medium.
    pub(super) fn flush(&mut self, now: Nanos, id: u64) {
        self.note(now);
        self.counts.in_flight += 1;
        match self.cached.last() {
            Some(last) => self.flushes.push((id, now, *last)),
            None => self.complete_flush(now, id, now),
        }
    }

    /// When something completes next.
    pub(super) fn next(&self) -> Option<Nanos> {
        let serving = self.serving.iter().map(|(end, ..)| *end);
        serving.chain(self.ready.front().map(|(time, _)| *time)).min()
    }

    /// What has completed by `now`, which is not beyond [`Self::next`].
    pub(super) fn completed(&mut self, now: Nanos) -> Option<u64> {
        if self.ready.is_empty() {
            let at = self.serving.iter().position(|(end, ..)| *end <= now)?;
            let (end, since, request) = self.serving.swap_remove(at);
            self.note(end);
            if self.cached.remove(&request.id) {
                self.cached_bytes -= request.bytes;
                self.fill_cache(end);
                let oldest = self.cached.first().copied().unwrap_or(u64::MAX);
                let done = |(_, _, last): &mut (u64, Nanos, u64)| *last < oldest;
                for (id, since, _) in self.flushes.extract_if(.., done).collect::<Vec<_>>() {
                    self.complete_flush(end, id, since);
                }
            } else {
                self.complete(end, &request, since);
            }
            self.serve(end);
        }
        self.ready.pop_front_if(|(time, _)| *time <= now).map(|(_, id)| id)
    }

    /// Counts until `now`.
    pub(super) fn counts(&mut self, now: Nanos) -> DeviceCounts {
        self.note(now);
        self.counts
    }

    /// Takes writes into the cache as long as there is room; one that is larger than the cache alone.
    fn fill_cache(&mut self, now: Nanos) {
        let most = self.config.cache;
        let fits = |cached: u64, more: u64| cached == 0 || cached + more <= most;
        while let Some((since, request)) =
            self.blocked.pop_front_if(|(_, request)| fits(self.cached_bytes, request.bytes))
        {
            self.cached_bytes += request.bytes;
            self.cached.insert(request.id);
            self.complete(now, &request, since);
            self.waiting.push_back((now, request));
        }
    }

    fn complete(&mut self, now: Nanos, request: &Request, since: Nanos) {
        let counts = &mut self.counts;
        let (number, bytes, time) = if request.write {
            (&mut counts.writes, &mut counts.written_bytes, &mut counts.write_ns)
        } else {
            (&mut counts.reads, &mut counts.read_bytes, &mut counts.read_ns)
        };
        *number += 1;
        *bytes += request.bytes;
        *time += now - since;
        counts.in_flight -= 1;
        self.ready.push_back((now, request.id));
    }

    fn complete_flush(&mut self, now: Nanos, id: u64, since: Nanos) {
        // Linux completes flushes of disks without a cache before they reach the disk.
        if self.config.cache > 0 {
            self.counts.flushes += 1;
            self.counts.flush_ns += now - since;
        }
        self.counts.in_flight -= 1;
        self.ready.push_back((now, id));
    }

    /// Begins requests on the channels that are free.
    fn serve(&mut self, now: Nanos) {
        while self.serving.len() < self.config.channels as usize {
            let Some((since, request)) = self.take() else { return };
            let latency = self.latency(now, since, &request);
            let transfer = (request.bytes as f64 / self.config.rate * 1e9) as Nanos;
            let end = (now + latency).max(self.busy_until) + transfer;
            self.busy_until = end;
            self.head = request.position + request.bytes;
            self.last_end = end;
            self.serving.push((end, since, request));
        }
    }

    fn take(&mut self) -> Option<(Nanos, Request)> {
        if self.config.order == DiskOrder::Fifo {
            return self.waiting.pop_front();
        }
        let ahead = |(_, request): &(Nanos, Request)| (request.position < self.head, request.position);
        let (at, _) = self.waiting.iter().enumerate().min_by_key(|(_, waiting)| ahead(waiting))?;
        self.waiting.remove(at)
    }

    /// Time until a request's data begins to move.
    fn latency(&mut self, now: Nanos, since: Nanos, request: &Request) -> Nanos {
        let (seek, turn) = (self.config.seek.as_nanos() as Nanos, self.config.rotation.as_nanos() as Nanos);
        if turn == 0 {
            return seek;
        }
        if request.position != self.head {
            return seek + self.random.next_u64() % turn;
        }
        // The disk reads on by itself; a write that comes when the one before has ended comes too late.
        if request.write && since >= self.last_end { turn - (now - self.last_end) % turn } else { 0 }
    }

    fn note(&mut self, now: Nanos) {
        let passed = now.saturating_sub(self.noted);
        self.noted = self.noted.max(now);
        self.counts.queue_ns += passed * self.counts.in_flight;
        if self.counts.in_flight > 0 {
            self.counts.busy_ns += passed;
        }
    }
}
