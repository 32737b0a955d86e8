//! The steps of a job's workers.

use benchmaster_record::model::{
    Choice, FilePick, Group, IoMethod, OffsetPick, OpenFlag, OperationKind, Repeat, RepeatFor, Size,
    SizeDistribution, Step, WeightedSize,
};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

use super::files::{Files, JobFiles};
use super::reader::Reader;
use super::spec::{Blocks, Distribution, Engine, Modifier, Service, Spec, Sync, Think};
use crate::steps::{self, step, times, to_end_of_file};

/// The most steps that stand for a mix which cannot be a choice.
const ROUND: u32 = 20;

/// A group, and what is needed to end it.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) group: Group,
    /// Bytes that each worker moves in all.
    pub(super) bytes: Option<u64>,
    /// Bytes that one repetition of the flow moves on average.
    pub(super) bytes_per_repetition: f64,
    /// Whether the flow may be put into a repeat: it has one operation outstanding, and no rate.
    pub(super) may_nest: bool,
    /// Whether it ends because no file is left.
    pub(super) ends_by_files: bool,
    /// Steps for the end of the flow, when the flow is done once.
    pub(super) at_end: Vec<Step>,
}

/// The group that a job is.
pub(super) fn group(reader: &mut Reader<'_>, spec: &Spec, files: &JobFiles, all: &Files, name: &str) -> Plan {
    let mut group = steps::group(name.to_owned(), spec.clones);
    match spec.engine {
        Engine::Create | Engine::Stat | Engine::Delete => by_name(reader, spec, files, group),
        Engine::Sync | Engine::Async => {
            let builder = Builder::new(reader, spec, files, all);
            group.queue_depth = builder.depth;
            group.io = if spec.engine == Engine::Async { IoMethod::IoUring } else { IoMethod::Sync };
            builder.data(group)
        }
    }
}

/// Operations on names instead of data.
fn by_name(reader: &mut Reader<'_>, spec: &Spec, files: &JobFiles, mut group: Group) -> Plan {
    let fileset = files.filesets.first().cloned();
    let on = |op, file| Step { fileset: fileset.clone(), file: Some(file), ..step(op) };
    group.flow = match spec.engine {
        Engine::Create => vec![on(OperationKind::Create, FilePick::New), step(OperationKind::Close)],
        Engine::Stat if spec.time_based => vec![on(OperationKind::Stat, FilePick::Next)],
        Engine::Stat => vec![on(OperationKind::Stat, FilePick::Once)],
        _ => vec![on(OperationKind::Unlink, FilePick::Once)],
    };
    for name in ["rw", "bs", "size", "io_size", "iodepth", "direct", "buffered"] {
        reader.irrelevant(name, "files are created, stat'ed or removed, and no data are moved");
    }
    reader.translated("iodepth", "one operation at a time, as in fio");
    if spec.rate.is_some() {
        reader.unsupported("rate", "files are handled as fast as possible");
        reader.unsupported("rate_iops", "files are handled as fast as possible");
    }
    Plan {
        group,
        bytes: None,
        bytes_per_repetition: 0.0,
        may_nest: false,
        ends_by_files: true,
        at_end: Vec::new(),
    }
}

struct Builder<'a, 'b> {
    reader: &'a mut Reader<'b>,
    spec: &'a Spec,
    files: &'a JobFiles,
    all: &'a Files,
    depth: u32,
    /// Whether one repetition of the flow takes a time instead of doing so many operations.
    endless: bool,
}

impl<'a, 'b> Builder<'a, 'b> {
    fn new(reader: &'a mut Reader<'b>, spec: &'a Spec, files: &'a JobFiles, all: &'a Files) -> Self {
        let mut builder = Self { reader, spec, files, all, depth: 1, endless: false };
        builder.depth = builder.outstanding();
        builder
    }

    /// How many operations are outstanding: with more than one the flow may hold nothing but reads and writes.
    fn outstanding(&mut self) -> u32 {
        let (spec, wanted) = (self.spec, self.spec.depth);
        if wanted == 1 || spec.engine == Engine::Sync {
            self.reader.translated("iodepth", "one operation at a time, as with this engine of fio");
            return 1;
        }
        let because = match () {
            () if spec.flush.is_some() => Some("of the flushes"),
            () if spec.think.is_some() => Some("of the pauses"),
            () if self.files.many.is_some() => Some("files are opened one after the other"),
            () if spec.service != Service::RoundRobin && self.files.filesets.len() > 1 => {
                Some("files are picked by chance or one after the other")
            }
            () => None,
        };
        match because {
            Some(why) => {
                let message = format!("each worker has one operation outstanding, because {why}");
                self.reader.approximated("iodepth", message);
                1
            }
            None => {
                self.reader.translated("iodepth", "`queue_depth`");
                wanted
            }
        }
    }

    fn data(mut self, mut group: Group) -> Plan {
        let spec = self.spec;
        let (flow, operations) = match self.files.many {
            Some(_) => self.one_after_the_other(),
            None => {
                group.setup = self.opens();
                self.handles()
            }
        };
        self.allocated(&mut group);
        let (flow, operations) = self.with_pauses_and_flushes(flow, operations);
        group.flow = flow;
        if let Some(rate) = spec.rate {
            let all = rate * f64::from(spec.clones) / operations;
            group.rate = Some(Rate((all * 1e6).round() / 1e6));
        }
        let mut at_end = Vec::new();
        if (spec.flush_at_end || spec.flush_on_close) && spec.writes() && self.files.many.is_none() {
            at_end = self
                .handle_names()
                .into_iter()
                .map(|handle| Step { handle, ..step(OperationKind::Fsync) })
                .collect();
        }
        Plan {
            bytes: self.bytes(),
            bytes_per_repetition: operations * spec.mean_block(),
            may_nest: self.depth == 1 && spec.rate.is_none() && !self.endless,
            ends_by_files: false,
            at_end,
            group,
        }
    }

    /// Reserves the space of new files before they are written, where the job says so.
    fn allocated(&mut self, group: &mut Group) {
        let spec = self.spec;
        if !spec.allocate {
            return;
        }
        let files = self.files.filesets.len() as u64;
        let (min, max) = spec.file_size.unwrap_or_else(|| {
            let one = spec.size.unwrap_or(0) / files.max(1);
            (one, one)
        });
        if min != max || self.files.many.is_some() {
            let why = "space is not reserved for files of several sizes, or for more than are kept open";
            self.reader.unsupported("fallocate", why);
            return;
        }
        self.reader.translated(
            "fallocate",
            "`allocate` in `setup`; a file system that has no such operation fails it",
        );
        let io_size = Some(ByteSize(max).into());
        let allocate = |handle| Step { handle, io_size: io_size.clone(), ..step(OperationKind::Allocate) };
        group.setup.extend(self.handle_names().into_iter().map(allocate));
    }

    /// Bytes that each worker moves in all.
    fn bytes(&mut self) -> Option<u64> {
        let spec = self.spec;
        if spec.time_based {
            for name in ["size", "io_size"] {
                if self.reader.has("size") || name == "io_size" {
                    self.reader.translated(
                        name,
                        if name == "size" { "size of the files" } else { "the time ends the workload" },
                    );
                }
            }
            return None;
        }
        let files = self.files.many.unwrap_or(self.files.filesets.len() as u64);
        let of_files = spec.file_size.map(|(min, max)| (min / 2 + max / 2).saturating_mul(files));
        let wanted = spec.io_size.or(spec.size).or(of_files)?;
        let block = spec.smallest_block().max(1);
        let wanted = (wanted - wanted % block).max(block).saturating_mul(u64::from(spec.loops));
        let by_count = spec.operations.map(|count| (count as f64 * spec.mean_block()).round() as u64);
        if by_count.is_some()
            && !matches!((&spec.blocks[0], &spec.blocks[1]), (Blocks::Fixed(a), Blocks::Fixed(b)) if a == b)
        {
            self.reader.approximated("number_ios", "the bytes that this many operations move on average");
        }
        Some(by_count.map_or(wanted, |bytes| bytes.min(wanted)))
    }

    /// The names of the handles: none is needed for a single one.
    fn handle_names(&self) -> Vec<Option<String>> {
        match self.files.filesets.as_slice() {
            [_] => vec![None],
            several => (0..several.len()).map(|number| Some(format!("f{number}"))).collect(),
        }
    }

    fn flags(&self) -> Vec<OpenFlag> {
        let spec = self.spec;
        let mut flags = Vec::new();
        if spec.writes() {
            flags.push(OpenFlag::Write);
        }
        match spec.sync {
            Sync::Full if spec.writes() => flags.push(OpenFlag::Sync),
            Sync::Data if spec.writes() => flags.push(OpenFlag::Dsync),
            _ => {}
        }
        if spec.direct {
            flags.push(OpenFlag::Direct);
        }
        if spec.append && spec.writes() {
            flags.push(OpenFlag::Append);
        }
        flags
    }

    /// Opens every file of the job.
    fn opens(&self) -> Vec<Step> {
        let files = self.files.filesets.iter().zip(self.handle_names());
        // Workers that share a file and begin at its start pick it as theirs in turn.
        let pick = if self.files.shared { FilePick::Next } else { FilePick::Own };
        files.map(|(fileset, handle)| self.open(fileset, handle, pick)).collect()
    }

    fn open(&self, fileset: &str, handle: Option<String>, file: FilePick) -> Step {
        let new = self.spec.only_writes() && !self.all.filled(fileset);
        let op = if new { OperationKind::Create } else { OperationKind::Open };
        Step { fileset: Some(fileset.to_owned()), file: Some(file), handle, flags: self.flags(), ..step(op) }
    }

    /// Opens, works on and closes a file after the other; the operations of one file.
    fn one_after_the_other(&mut self) -> (Vec<Step>, f64) {
        let spec = self.spec;
        let Some(fileset) = self.files.filesets.first() else { return (Vec::new(), 1.0) };
        let service = "files are opened, worked on from start to end, and closed, one after the other";
        if !matches!(spec.service, Service::Sequential | Service::Zipf(_)) {
            self.reader.approximated("file_service_type", service);
            self.reader.approximated("nrfiles", service);
        }
        let pick = match spec.service {
            Service::Random => FilePick::Random,
            Service::Zipf(exponent) => FilePick::Zipf { exponent },
            Service::RoundRobin | Service::Sequential => FilePick::Next,
        };
        let (min, max) = spec.file_size.unwrap_or_else(|| {
            let size = spec.size.unwrap_or(0) / self.files.many.unwrap_or(1).max(1);
            (size, size)
        });
        let operations = ((min as f64 + max as f64) / 2.0 / spec.mean_block()).max(1.0);
        let inner = self.operations(None);
        let whole = !spec.random && !spec.append && spec.distribution == Distribution::Even;
        let body = if whole { to_end_of_file(inner) } else { times(operations.round() as u64, inner) };
        let mut flow = vec![self.open(fileset, None, pick), body];
        if (spec.flush_at_end || spec.flush_on_close) && spec.writes() {
            flow.push(step(OperationKind::Fsync));
        }
        flow.push(step(OperationKind::Close));
        (flow, operations)
    }

    /// Works on files that are open; the operations of one repetition.
    fn handles(&mut self) -> (Vec<Step>, f64) {
        let spec = self.spec;
        let count = u64::from(spec.service_count);
        let handles = self.handle_names();
        let number = handles.len() as f64;
        let mut one = |handle: Option<String>| -> Vec<Step> {
            let steps = self.operations(handle);
            match (count, self.depth) {
                (1, _) => steps,
                (_, 1) => vec![times(count, steps)],
                (_, _) => (0..count.min(u64::from(ROUND))).flat_map(|_| steps.clone()).collect(),
            }
        };
        if handles.len() == 1 {
            let steps = one(None);
            // What must be flat stands as often as the mix has parts.
            let operations = if self.depth == 1 { 1.0 } else { steps.len() as f64 };
            return (steps, operations * if self.depth == 1 { count as f64 } else { 1.0 });
        }
        let of_each: Vec<Vec<Step>> = handles.into_iter().map(&mut one).collect();
        match spec.service {
            Service::RoundRobin => {
                let operations = if self.depth == 1 {
                    number * count as f64
                } else {
                    of_each.iter().map(Vec::len).sum::<usize>() as f64
                };
                (of_each.concat(), operations)
            }
            Service::Sequential => {
                let size = spec
                    .file_size
                    .map_or(spec.size.unwrap_or(0) / of_each.len() as u64, |(min, max)| min / 2 + max / 2);
                let operations = (size as f64 / spec.mean_block()).max(1.0).round();
                let steps = of_each.into_iter().map(|steps| times(operations as u64, steps)).collect();
                (steps, number * operations)
            }
            Service::Random | Service::Zipf(_) => {
                let weight = |rank: usize| match spec.service {
                    Service::Zipf(theta) => (rank as f64 + 1.0).powf(-theta),
                    _ => 1.0,
                };
                let choose = of_each.into_iter().enumerate();
                let choose = choose.map(|(rank, flow)| Choice { weight: weight(rank), flow }).collect();
                (vec![Step { choose, ..Step::default() }], count as f64)
            }
        }
    }

    /// One operation on a handle: a step, a choice of several, or, where there may be no choice, several in turn.
    fn operations(&mut self, handle: Option<String>) -> Vec<Step> {
        let spec = self.spec;
        let directions =
            [(OperationKind::Read, spec.reads, 0), (OperationKind::Write, 100.0 - spec.reads, 1)];
        let mut ways: Vec<(f64, Step)> = Vec::new();
        for (op, weight, blocks) in directions.into_iter().filter(|(_, weight, _)| *weight > 0.0) {
            let io_size = self.io_size(&spec.blocks[blocks]);
            let random = if spec.random { spec.percent_random } else { 0.0 };
            for (share, offset) in [(random, self.random()), (100.0 - random, self.sequential(op))] {
                if share > 0.0 {
                    let handle = handle.clone();
                    let way =
                        Step { io_size: Some(io_size.clone()), offset: Some(offset), handle, ..step(op) };
                    ways.push((weight * share / 100.0, way));
                }
            }
        }
        match ways.as_slice() {
            [(_, only)] => vec![only.clone()],
            _ if self.depth == 1 => {
                let choose =
                    ways.into_iter().map(|(weight, way)| Choice { weight, flow: vec![way] }).collect();
                vec![Step { choose, ..Step::default() }]
            }
            _ => self.in_turn(&ways),
        }
    }

    /// A mix as a round of steps, spread evenly.
    fn in_turn(&mut self, ways: &[(f64, Step)]) -> Vec<Step> {
        let length = (1..=ROUND).find(|length| {
            ways.iter().all(|(weight, _)| (weight * f64::from(*length) / 100.0).fract().abs() < 1e-9)
        });
        let how = "reads and writes come in a fixed turn, because several are outstanding";
        for name in ["rw", "rwmixread", "rwmixwrite", "percentage_random"] {
            self.reader.approximated(name, how);
        }
        let mut due: Vec<f64> = vec![0.0; ways.len()];
        let mut round = Vec::new();
        for _ in 0..length.unwrap_or(ROUND) {
            for (due, (weight, _)) in due.iter_mut().zip(ways) {
                *due += weight / 100.0;
            }
            let most = (0..ways.len()).max_by(|a, b| due[*a].total_cmp(&due[*b])).unwrap_or(0);
            due[most] -= 1.0;
            round.push(ways[most].1.clone());
        }
        round
    }

    fn io_size(&mut self, blocks: &Blocks) -> Size {
        /// The most multiples that are listed.
        const LISTED: u64 = 64;
        let weighted = |sizes: Vec<(u64, f64)>| {
            let sizes = sizes.into_iter().map(|(size, weight)| WeightedSize { size: ByteSize(size), weight });
            Size::Distributed(SizeDistribution::Weighted { sizes: sizes.collect() })
        };
        match blocks {
            Blocks::Fixed(size) => ByteSize(*size).into(),
            Blocks::Split(parts) => weighted(parts.clone()),
            Blocks::Range { min, max, unaligned: false } if max / min <= LISTED => {
                if max % min != 0 {
                    self.reader
                        .approximated("bsrange", "multiples of the smallest size, up to the largest of them");
                }
                weighted((1..=max / min).map(|number| (number * min, 1.0)).collect())
            }
            Blocks::Range { min, max, unaligned } => {
                if !unaligned {
                    self.reader.approximated("bsrange", "any size from the smallest to the largest");
                }
                Size::Distributed(SizeDistribution::Uniform { min: ByteSize(*min), max: ByteSize(*max) })
            }
        }
    }

    fn sequential(&mut self, op: OperationKind) -> OffsetPick {
        let spec = self.spec;
        if spec.append && op == OperationKind::Write {
            return OffsetPick::Append;
        }
        if spec.increment > 0 {
            // Parts of as many bytes as a clone works on, one behind the other.
            if Some(spec.increment) == spec.size && self.files.shared && self.files.filesets.len() == 1 {
                self.reader.translated("offset_increment", "a block of the file for each worker");
                return OffsetPick::Segments { block: ByteSize(spec.increment), shift: 0 };
            }
            self.whole_file_each();
        }
        let block = match spec.blocks[usize::from(op == OperationKind::Write)] {
            Blocks::Fixed(size) => Some(size),
            Blocks::Range { .. } | Blocks::Split(_) => None,
        };
        match (spec.modifier, block) {
            (Some(Modifier::Skip(skip)), Some(block)) if skip > 0 => {
                OffsetPick::Strided { stride: ByteSize(block.saturating_add(skip.unsigned_abs())) }
            }
            (Some(Modifier::Skip(skip)), Some(block)) if skip.unsigned_abs() == block.saturating_mul(2) => {
                OffsetPick::Reverse
            }
            (Some(Modifier::Skip(skip)), _) if skip < 0 => {
                self.reader.approximated("rw", "from the end of the file to its start, one after the other");
                OffsetPick::Reverse
            }
            (Some(Modifier::Skip(_)), _) => {
                self.reader.approximated("rw", "sequential, without the gaps");
                OffsetPick::Sequential
            }
            _ => OffsetPick::Sequential,
        }
    }

    fn random(&mut self) -> OffsetPick {
        let spec = self.spec;
        if !spec.random {
            return OffsetPick::Random;
        }
        if let Some(Modifier::Every(_)) = spec.modifier {
            self.reader.approximated("rw", "every position is random, not every n-th");
        }
        if spec.increment > 0 {
            self.whole_file_each();
        }
        match spec.distribution {
            Distribution::Even => OffsetPick::Random,
            Distribution::Zipf(exponent) => OffsetPick::Zipf { exponent },
            Distribution::Hotspot { share, accesses } => OffsetPick::Hotspot { share, accesses },
        }
    }

    fn whole_file_each(&mut self) {
        let how = "every worker works on the whole file, which is as large as all parts together";
        self.reader.approximated("offset_increment", how);
    }

    /// The flow with the pauses and flushes that come after some operations.
    fn with_pauses_and_flushes(&mut self, flow: Vec<Step>, operations: f64) -> (Vec<Step>, f64) {
        let spec = self.spec;
        let (mut flow, mut operations) = (flow, operations);
        if let Some(Think { every_ns: Some(_), .. }) = spec.think
            && spec.flush.is_some()
        {
            for name in ["fsync", "fdatasync"] {
                self.reader.unsupported(name, "a job that pauses after a time is not flushed");
            }
        }
        if let Some(think) = spec.think {
            let pause = Step {
                pause: Some(TimeSpan(std::time::Duration::from_nanos(think.nanos))),
                ..Step::default()
            };
            if let Some(nanos) = think.every_ns {
                if self.reader.has("thinktime_blocks") {
                    self.reader.unsupported(
                        "thinktime_blocks",
                        "the pause comes after the time of `thinktime_iotime`",
                    );
                }
                let duration = TimeSpan(std::time::Duration::from_nanos(nanos));
                let repeat = Some(Repeat::For(RepeatFor { duration }));
                self.endless = true;
                return (vec![Step { repeat, flow, ..Step::default() }, pause], operations);
            }
            let every = (f64::from(think.blocks) / operations).round().max(1.0);
            if (every * operations - f64::from(think.blocks)).abs() > 1e-6 {
                let so_many = format!("a pause after every {} operations", every * operations);
                self.reader.approximated(
                    if self.reader.has("thinktime_blocks") { "thinktime_blocks" } else { "thinktime" },
                    so_many,
                );
            }
            flow = if every > 1.0 { vec![times(every as u64, flow)] } else { flow };
            flow.push(pause);
            operations *= every;
        }
        if let Some((count, data)) = spec.flush.filter(|_| spec.writes()) {
            let name = if data { "fdatasync" } else { "fsync" };
            let writes = operations * (100.0 - spec.reads) / 100.0 / self.files.filesets.len().max(1) as f64;
            let every = (f64::from(count) / writes).round().max(1.0);
            if (every * writes - f64::from(count)).abs() > 1e-6
                || spec.reads > 0.0
                || self.files.many.is_some()
            {
                let so_many = format!("after every {:.3} writes of a file on average", every * writes);
                self.reader.approximated(name, so_many);
            }
            if self.files.many.is_some() {
                // The file is closed at the end of its steps.
                let op = if data { OperationKind::Fdatasync } else { OperationKind::Fsync };
                let at = flow.len().saturating_sub(1);
                flow.insert(at, step(op));
                return (flow, operations);
            }
            flow = if every > 1.0 { vec![times(every as u64, flow)] } else { flow };
            let op = if data { OperationKind::Fdatasync } else { OperationKind::Fsync };
            flow.extend(self.handle_names().into_iter().map(|handle| Step { handle, ..step(op) }));
            operations *= every;
        } else if spec.flush.is_some() {
            for name in ["fsync", "fdatasync"] {
                self.reader.irrelevant(name, "the job writes nothing");
            }
        }
        (flow, operations)
    }
}
