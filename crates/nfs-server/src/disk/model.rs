//! Disk, page cache and journal together, on a clock of their own: times of requests in, times of completions out.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use hashbrown::HashMap;

use super::config::{DiskConfig, ExportMode};
use super::device::{Device, Nanos, Request};
use super::journal::Journal;
use super::pages::{PAGE, Page, Pages, pages_of};
use super::report::DiskReport;
use crate::handle::FileId;

/// Time between periodic commits, and looks for old dirty pages: `commit=5` of ext4, `dirty_writeback_centisecs`.
const PERIOD: Nanos = 5_000_000_000;
/// Age at which a dirty page is written (`dirty_expire_centisecs`).
const OLD: Nanos = 30_000_000_000;
/// Inodes in a block of the file system.
const INODES: u64 = 16;
/// Files whose readers are remembered.
const STREAMS: usize = 4096;

/// How stable a change must be before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stability {
    /// In memory.
    Memory,
    /// The data on the disk, and what is needed to find it.
    Data,
    /// Data and all attributes on the disk.
    File,
}

/// What a request wants of files.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access {
    /// Data of a file of this size.
    Read { file: FileId, offset: u64, len: u64, size: u64 },
    /// New data, which made the file longer or not.
    Write { file: FileId, offset: u64, len: u64, stability: Stability, grew: bool },
    /// Data written before, and its attributes, made stable.
    Commit { file: FileId },
    /// Attributes of a file.
    Attributes { file: FileId },
    /// Names in a directory.
    Names { directory: FileId },
}

/// A request of a client on its way through the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Job(u64);

/// What a task does when its requests to the disk are done.
#[derive(Debug, Clone, Copy)]
enum After {
    Nothing,
    /// The disk's cache is flushed.
    Flush,
    /// A change joins the journal, and its commit is waited for.
    Join(FileId, [u64; 2]),
    /// The commit of the file's last change is waited for, if there is one.
    Settle(FileId),
}

#[derive(Debug)]
struct Task {
    job: Job,
    left: usize,
    after: After,
}

/// What a request to the disk is for.
#[derive(Debug)]
enum Purpose {
    Read(FileId, Range<u64>),
    /// With whether it is background writing.
    Write(FileId, Range<u64>, bool),
    Flush,
    /// The journal's: descriptors and blocks, the flush after them, the commit block.
    Log,
    LogFlush,
    CommitBlock,
}

#[derive(Debug)]
struct Io {
    purpose: Purpose,
    tasks: Vec<u64>,
}

#[derive(Debug)]
struct JobState {
    /// Tasks that are not done.
    left: usize,
    owner: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Model {
    config: DiskConfig,
    export: ExportMode,
    now: Nanos,
    device: Device,
    pages: Pages,
    journal: Journal,
    io: HashMap<u64, Io>,
    /// Pages on their way from the disk.
    reading: HashMap<Page, u64>,
    /// Bytes on their way to the disk, and requests of background writing among them.
    writing: u64,
    background: usize,
    /// Where background writing goes on.
    cursor: Page,
    /// Whether it goes on until little is dirty.
    draining: bool,
    tasks: HashMap<u64, Task>,
    jobs: HashMap<Job, JobState>,
    /// Writers that wait for dirty data to become less.
    throttled: VecDeque<u64>,
    /// Jobs that are done, by their owners.
    done: Vec<Vec<Job>>,
    /// Where the reader of a file will go on if it reads in sequence.
    streams: HashMap<FileId, u64>,
    next_id: u64,
    next_period: Nanos,
    report: DiskReport,
}

impl Model {
    pub(super) fn new(config: DiskConfig, export: ExportMode, owners: usize, seed: u64) -> Self {
        Self {
            config,
            export,
            now: 0,
            device: Device::new(config, seed),
            pages: Pages::new(config.memory),
            journal: Journal::default(),
            io: HashMap::new(),
            reading: HashMap::new(),
            writing: 0,
            background: 0,
            cursor: (FileId { export: 0, ino: 0, generation: 0 }, 0),
            draining: false,
            tasks: HashMap::new(),
            jobs: HashMap::new(),
            throttled: VecDeque::new(),
            done: vec![Vec::new(); owners],
            streams: HashMap::new(),
            next_id: 0,
            next_period: PERIOD,
            report: DiskReport::default(),
        }
    }

    /// Lets time pass: all that completes until `now` does so at its own time.
    pub(super) fn advance(&mut self, now: Nanos) {
        loop {
            let event = self.next();
            if event > now {
                break;
            }
            self.now = event.max(self.now);
            if event == self.next_period {
                self.next_period += PERIOD;
                self.draining |= self.pages.is_old(event.saturating_sub(OLD));
                self.commit(true);
                self.write_back();
            } else if let Some(id) = self.device.completed(event) {
                self.completed(id);
            }
        }
        self.now = now.max(self.now);
    }

    /// When something happens next.
    pub(super) fn next(&self) -> Nanos {
        self.device.next().map_or(self.next_period, |device| device.min(self.next_period))
    }

    /// Begins an access, as one of the request that `job` stands for. `None`: nothing is waited for.
    pub(super) fn access(&mut self, now: Nanos, job: Option<Job>, access: Access) -> Option<Job> {
        self.advance(now);
        let job = job.unwrap_or_else(|| Job(self.id()));
        self.jobs.entry(job).or_insert(JobState { left: 0, owner: None }).left += 1;
        let task = self.id();
        // Held until all that it waits for is known.
        self.tasks.insert(task, Task { job, left: 1, after: After::Nothing });
        match access {
            Access::Read { file, offset, len, size } => {
                self.read(task, file, pages_of(offset, len), size.div_ceil(PAGE))
            }
            Access::Write { file, offset, len, stability, grew } => {
                self.report.asked_bytes += len;
                let blocks = [block_of(file), if grew { u64::MAX } else { block_of(file) }];
                self.write(task, file, pages_of(offset, len), stability, blocks, grew);
            }
            Access::Commit { file } if self.export == ExportMode::Sync => {
                let unfinished = self
                    .io
                    .iter_mut()
                    .filter(|(_, io)| matches!(io.purpose, Purpose::Write(of, ..) if of == file));
                let mut left = 0;
                for (_, io) in unfinished {
                    io.tasks.push(task);
                    left += 1;
                }
                self.add(task, left, After::Settle(file));
                self.write_file(task, file, 0..u64::MAX);
            }
            Access::Commit { .. } => {}
            Access::Attributes { file } => self.change(task, Some(file), &[block_of(file)]),
            Access::Names { directory } => {
                // Inode and entries of the directory, the inode made or removed, and the map of inodes.
                let own = block_of(directory);
                self.change(task, Some(directory), &[own, own ^ (1 << 62), own ^ (1 << 61), u64::MAX - 1]);
            }
        }
        self.done(task);
        self.write_back();
        // What the disk's cache took has completed.
        self.advance(now);
        self.jobs.contains_key(&job).then_some(job)
    }

    /// Lets `owner` fetch the job when it is done. `false`: it is.
    pub(super) fn hold(&mut self, job: Job, owner: usize) -> bool {
        self.jobs.get_mut(&job).is_some_and(|state| {
            state.owner = Some(owner);
            true
        })
    }

    /// The jobs of an owner that are done.
    pub(super) fn take_done(&mut self, owner: usize) -> Vec<Job> {
        self.done.get_mut(owner).map(std::mem::take).unwrap_or_default()
    }

    /// Counts a reply that was held back.
    pub(super) fn held(&mut self, time: Nanos) {
        self.report.held_ns += time;
    }

    pub(super) fn report(&mut self) -> DiskReport {
        let dirty = self.pages.dirty_bytes() + self.writing;
        DiskReport { dirty_bytes: dirty, ..self.report }
            .with(self.device.counts(self.now), self.journal.counts)
    }

    fn read(&mut self, task: u64, file: FileId, pages: Range<u64>, file_end: u64) {
        for page in pages.clone() {
            match self.reading.get(&(file, page)) {
                Some(id) => {
                    let io = self.io.get_mut(id).filter(|io| !io.tasks.contains(&task));
                    if let Some(io) = io {
                        io.tasks.push(task);
                        self.add(task, 1, After::Nothing);
                    }
                }
                None if self.pages.has((file, page)) => {
                    self.pages.touch((file, page));
                    self.report.cache_hits += 1;
                    continue;
                }
                None => {}
            }
            self.report.cache_misses += 1;
        }
        self.fetch(Some(task), file, pages.clone());
        let in_sequence = pages.start == 0 || self.streams.get(&file) == Some(&pages.start);
        if self.streams.len() >= STREAMS {
            self.streams.clear();
        }
        self.streams.insert(file, pages.end);
        if in_sequence {
            let end = pages.end.saturating_add(self.config.readahead / PAGE).min(file_end);
            self.fetch(None, file, pages.end..end.max(pages.end));
        }
    }

    /// Reads the pages of a range that are neither in memory nor on their way, a request for each run of them.
    fn fetch(&mut self, task: Option<u64>, file: FileId, pages: Range<u64>) {
        let mut page = pages.start;
        while page < pages.end {
            let missing =
                |page: &u64| !self.pages.has((file, *page)) && !self.reading.contains_key(&(file, *page));
            let count = (page..pages.end).take_while(missing).count() as u64;
            if count > 0 {
                let run = page..page + count;
                let id = self.request(
                    false,
                    place(file, run.start),
                    count * PAGE,
                    Purpose::Read(file, run.clone()),
                    task,
                );
                self.reading.extend(run.map(|page| ((file, page), id)));
            }
            page += count.max(1);
        }
    }

    fn write(
        &mut self,
        task: u64,
        file: FileId,
        pages: Range<u64>,
        stability: Stability,
        blocks: [u64; 2],
        grew: bool,
    ) {
        pages.clone().for_each(|page| self.pages.soil((file, page), self.now));
        if self.export == ExportMode::Async || stability == Stability::Memory {
            self.journal.join(self.now, Some(file), &blocks);
            if self.dirty() > self.config.memory / 5 {
                self.add(task, 1, After::Nothing);
                self.throttled.push_back(task);
            }
            return;
        }
        let metadata = grew || stability == Stability::File;
        let after = if metadata { After::Join(file, blocks) } else { After::Flush };
        self.add(task, 0, after);
        self.write_file(task, file, pages);
    }

    /// Changes blocks of the file system; with `sync` the commit is waited for.
    fn change(&mut self, task: u64, file: Option<FileId>, blocks: &[u64]) {
        let transaction = self.journal.join(self.now, file, blocks);
        if self.export == ExportMode::Sync {
            self.add(task, 1, After::Nothing);
            self.journal.wait(transaction, task);
            self.commit(false);
        }
    }

    /// Writes the dirty pages of a range of a file, for a task that waits for it.
    fn write_file(&mut self, task: u64, file: FileId, pages: Range<u64>) {
        for (file, run) in self.pages.clean(file, pages) {
            self.write_run(file, run, Some(task));
        }
    }

    fn write_run(&mut self, file: FileId, run: Range<u64>, task: Option<u64>) {
        let bytes = (run.end - run.start) * PAGE;
        self.writing += bytes;
        self.request(true, place(file, run.start), bytes, Purpose::Write(file, run, task.is_none()), task);
    }

    /// Data that the disk does not have.
    fn dirty(&self) -> u64 {
        self.pages.dirty_bytes() + self.writing
    }

    /// Background writing: a request on each channel while much is dirty, so that others do not wait long.
    fn write_back(&mut self) {
        let background = self.config.memory / 10;
        self.draining &= self.pages.dirty_bytes() > 0;
        let full = self.config.channels as usize;
        while self.background < full && (self.draining || self.pages.dirty_bytes() > background) {
            let Some((file, run)) = self.pages.clean_from(self.cursor) else { return };
            self.cursor = (file, run.end);
            self.background += 1;
            self.write_run(file, run, None);
        }
    }

    /// Commits the running transaction if it is time.
    fn commit(&mut self, idle: bool) {
        if self.journal.can_commit(idle) {
            let (position, bytes) = self.journal.begin(self.now);
            self.request(true, position, bytes, Purpose::Log, None);
        }
    }

    fn request(
        &mut self,
        write: bool,
        position: u64,
        bytes: u64,
        purpose: Purpose,
        task: Option<u64>,
    ) -> u64 {
        let id = self.id();
        if let Some(task) = task {
            self.add(task, 1, After::Nothing);
        }
        let through = matches!(purpose, Purpose::CommitBlock);
        self.io.insert(id, Io { purpose, tasks: task.into_iter().collect() });
        self.device.submit(self.now, Request { id, write, through, position, bytes });
        id
    }

    fn flush(&mut self, purpose: Purpose, task: Option<u64>) {
        let id = self.id();
        if let Some(task) = task {
            self.add(task, 1, After::Nothing);
        }
        self.io.insert(id, Io { purpose, tasks: task.into_iter().collect() });
        self.device.flush(self.now, id);
    }

    /// A request to the disk is done.
    fn completed(&mut self, id: u64) {
        let Some(Io { purpose, tasks }) = self.io.remove(&id) else { return };
        match purpose {
            Purpose::Read(file, pages) => {
                for page in pages {
                    self.reading.remove(&(file, page));
                    self.pages.touch((file, page));
                }
            }
            Purpose::Write(_, pages, background) => {
                let bytes = (pages.end - pages.start) * PAGE;
                self.writing -= bytes;
                self.report.data_blocks += pages.end - pages.start;
                self.background -= usize::from(background);
                self.write_back();
                while self.dirty() <= self.config.memory / 5 {
                    let Some(task) = self.throttled.pop_front() else { break };
                    self.done(task);
                }
            }
            Purpose::Flush => {}
            Purpose::Log => self.flush(Purpose::LogFlush, None),
            Purpose::LogFlush => {
                let (position, bytes) = self.journal.commit_block();
                self.request(true, position, bytes, Purpose::CommitBlock, None);
            }
            Purpose::CommitBlock => {
                let waiters = self.journal.end(self.now);
                waiters.into_iter().for_each(|task| self.done(task));
                self.commit(false);
            }
        }
        tasks.into_iter().for_each(|task| self.done(task));
    }

    /// Lets a task wait for more, and do something afterwards.
    fn add(&mut self, task: u64, left: usize, then: After) {
        if let Some(task) = self.tasks.get_mut(&task) {
            task.left += left;
            if !matches!(then, After::Nothing) {
                task.after = then;
            }
        }
    }

    /// One thing that a task waits for is done.
    fn done(&mut self, task: u64) {
        let Some(state) = self.tasks.get_mut(&task) else { return };
        state.left -= 1;
        if state.left > 0 {
            return;
        }
        state.left = 1;
        match std::mem::replace(&mut state.after, After::Nothing) {
            After::Nothing => self.finish(task),
            After::Flush => self.flush_then_finish(task),
            After::Join(file, blocks) => {
                let transaction = self.journal.join(self.now, Some(file), &blocks);
                self.journal.wait(transaction, task);
                self.commit(false);
            }
            After::Settle(file) => match self.journal.of(file) {
                Some(transaction) => {
                    self.journal.wait(transaction, task);
                    self.commit(false);
                }
                None => self.flush_then_finish(task),
            },
        }
    }

    fn flush_then_finish(&mut self, task: u64) {
        if self.config.cache > 0 {
            self.flush(Purpose::Flush, Some(task));
        }
        self.done(task);
    }

    fn finish(&mut self, task: u64) {
        let Some(Task { job, .. }) = self.tasks.remove(&task) else { return };
        let Some(state) = self.jobs.get_mut(&job) else { return };
        state.left -= 1;
        if state.left == 0 {
            let owner = state.owner;
            self.jobs.remove(&job);
            if let Some(done) = owner.and_then(|owner| self.done.get_mut(owner)) {
                done.push(job);
            }
        }
    }

    fn id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

/// The block that has a file's inode.
fn block_of(file: FileId) -> u64 {
    (u64::from(file.export) << 48) | (file.ino / INODES)
}

/// Where a page of a file lies: a file is in one piece, and files are far from each other.
fn place(file: FileId, page: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    file.hash(&mut hasher);
    ((hasher.finish() >> 2) & !((1 << 42) - 1)) + page * PAGE
}
