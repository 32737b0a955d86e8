//! What a workload does until its work is done: calls, bytes and pauses.

use std::collections::BTreeMap;

use benchmaster_record::model::{
    FilePick, Fileset, Group, OpenFlag, OperationKind, Repeat, Sharing, Step, Workload, leaves,
};
use benchmaster_units::TimeSpan;

use super::pace::Pace;
use super::seconds::Seconds;

/// What one repetition of a flow does.
#[derive(Debug, Clone, Default, PartialEq)]
struct Work<'w> {
    calls: f64,
    /// Calls that wait for stable storage.
    stable: f64,
    bytes: f64,
    /// Pauses, and steps that are repeated for a time.
    seconds: f64,
    /// Files of each fileset that are used up.
    used: BTreeMap<&'w str, f64>,
}

impl<'w> Work<'w> {
    fn add(&mut self, other: &Self, times: f64) {
        self.calls += other.calls * times;
        self.stable += other.stable * times;
        self.bytes += other.bytes * times;
        self.seconds += other.seconds * times;
        for (fileset, files) in &other.used {
            *self.used.entry(fileset).or_default() += files * times;
        }
    }
}

/// Walks through a flow, with the fileset of the last file picked.
struct Walk<'w> {
    workload: &'w Workload,
    /// Whether files are opened so that writes wait for stable storage.
    stable: bool,
    fileset: Option<(&'w str, &'w Fileset)>,
}

impl<'w> Walk<'w> {
    fn flow(&mut self, flow: &'w [Step]) -> Work<'w> {
        let mut all = Work::default();
        for step in flow {
            self.step(step, &mut all);
        }
        all
    }

    fn step(&mut self, step: &'w Step, all: &mut Work<'w>) {
        let named = step.fileset.as_ref().and_then(|name| self.workload.filesets.get_key_value(name));
        if let Some((name, fileset)) = named {
            self.fileset = Some((name, fileset));
        }
        if let (Some(FilePick::New | FilePick::Once), Some((name, _))) = (step.file, self.fileset) {
            *all.used.entry(name).or_default() += 1.0;
        }
        if let Some(operation) = step.op {
            self.operation(step, operation, all);
        }
        all.seconds += step.pause.map_or(0.0, seconds);
        let weights: f64 = step.choose.iter().map(|choice| choice.weight).sum();
        for choice in &step.choose {
            let chosen = self.flow(&choice.flow);
            all.add(&chosen, choice.weight / weights);
        }
        let repeated = self.flow(&step.flow);
        match step.repeat {
            None => {}
            Some(Repeat::Times(times)) => all.add(&repeated, times as f64),
            // A file of any size is tried once.
            Some(Repeat::Until(_)) => {
                all.add(&repeated, (self.file_size() / repeated.bytes.max(1.0)).ceil().max(1.0));
            }
            Some(Repeat::For(time)) => all.seconds += seconds(time.duration),
        }
    }

    fn operation(&self, step: &Step, operation: OperationKind, all: &mut Work<'w>) {
        let in_directory = self.fileset.map_or(0.0, |(_, fileset)| match fileset.directory_width {
            0 => fileset.files as f64,
            width => width.min(fileset.files) as f64,
        });
        let io = step.io_size.as_ref().map_or(0.0, |size| size.mean());
        all.calls += match operation {
            OperationKind::Readdir => 1.0 + in_directory / ENTRIES,
            OperationKind::ReaddirStat => 1.0 + in_directory,
            _ => 1.0,
        };
        all.bytes += match operation {
            OperationKind::Read | OperationKind::Write => io,
            OperationKind::Copy => self.file_size(),
            _ => 0.0,
        };
        let waits = match operation {
            OperationKind::Fsync | OperationKind::Fdatasync => true,
            OperationKind::Write => self.stable,
            _ => false,
        };
        all.stable += f64::from(u8::from(waits));
    }

    fn file_size(&self) -> f64 {
        self.fileset.map_or(0.0, |(_, fileset)| fileset.size.mean())
    }
}

/// Entries of a directory that one call reads.
const ENTRIES: f64 = 256.0;

/// Whether a workload ends when its work is done, before its time is over or without any.
pub(super) fn ends_with_its_work(workload: &Workload) -> bool {
    let until = &workload.until;
    until.duration.is_none() || until.iterations.is_some() || until.bytes.is_some()
}

/// Warm-up and measured phase of a workload; `None` when nothing in the study says how much work it has.
pub(super) fn measured(workload: &Workload, clients: f64, pace: &Pace) -> Option<Seconds> {
    let limit = workload.until.duration.map(seconds);
    let main = if ends_with_its_work(workload) {
        let done = workload
            .groups
            .iter()
            .filter_map(|group| of_group(workload, group, clients, pace))
            .reduce(Seconds::beside);
        match (done, limit) {
            (Some(done), Some(limit)) => done.at_most(limit),
            // It may end at once.
            (None, Some(limit)) => Seconds::new(0.0, limit),
            (done, None) => done?,
        }
    } else {
        Seconds::exactly(limit.unwrap_or_default())
    };
    Some(Seconds::exactly(seconds(workload.warm_up)) + main)
}

fn of_group(workload: &Workload, group: &Group, clients: f64, pace: &Pace) -> Option<Seconds> {
    let waits = |step: &Step| step.flags.iter().any(|flag| matches!(flag, OpenFlag::Sync | OpenFlag::Dsync));
    let mut walk = Walk {
        workload,
        stable: leaves(&group.setup).chain(leaves(&group.flow)).any(waits),
        fileset: workload.filesets.first_key_value().map(|(name, fileset)| (name.as_str(), fileset)),
    };
    walk.flow(&group.setup);
    let once = walk.flow(&group.flow);
    let passes = passes(workload, group, clients, &once)?;
    let lanes = f64::from(group.workers.max(1)) * f64::from(group.queue_depth.max(1));
    let waiting = Seconds::exactly(passes * once.seconds / f64::from(group.workers.max(1)));
    let calls = pace.calls(passes * (once.calls - once.stable), lanes, clients);
    let stable = pace.stable * (passes * once.stable / lanes);
    let paced = group.rate.map_or(0.0, |rate| passes / rate.0);
    let work = calls + stable + pace.byte * (passes * once.bytes * clients) + waiting;
    Some(work.beside(Seconds::exactly(paced)))
}

/// How often the workers of one client repeat the flow of a group, as far as limits other than time say.
fn passes(workload: &Workload, group: &Group, clients: f64, once: &Work<'_>) -> Option<f64> {
    let workers = f64::from(group.workers);
    let until = &workload.until;
    let iterations = until.iterations.map(|iterations| iterations as f64 * workers);
    let bytes = until.bytes.filter(|_| once.bytes > 0.0).map(|bytes| bytes.0 as f64 * workers / once.bytes);
    let files = once.used.iter().filter_map(|(name, each)| {
        let fileset = workload.filesets.get(*name)?;
        let clients = if fileset.sharing == Sharing::Shared { clients } else { 1.0 };
        Some(fileset.files as f64 / clients / each)
    });
    files.chain(iterations).chain(bytes).reduce(f64::min)
}

pub(super) fn seconds(span: TimeSpan) -> f64 {
    span.0.as_secs_f64()
}
