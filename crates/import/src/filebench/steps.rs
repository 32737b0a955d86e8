//! A flow as steps of a group.

use std::collections::BTreeMap;
use std::time::Duration;

use benchmaster_record::model::{
    FilePick, OffsetPick, OpenFlag, OperationKind, Size, SizeDistribution, Step,
};
use benchmaster_units::{ByteSize, TimeSpan};

use super::Notes;
use super::flow::{Flow, Node, Op, leaves};
use super::set::Set;
use super::value::Amount;
use crate::steps::{self, step, to_end_of_file};
use crate::{Mistake, NoteKind, name_of};

/// The largest read or write.
const MAX_IO: u64 = 1 << 30;
/// What a whole file is read or written by when Filebench would do it with one call and sizes differ.
const PIECE: u64 = 1 << 20;
/// Share of the accesses that stay within a working set: a hot spot may not have all.
const WITHIN: f64 = 0.999_999;
/// Shorter pauses take longer to begin and end than they are long.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);

/// Who waits at a `semblock` or `block`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waiting {
    pub(super) workers: u64,
    /// What one takes at once, and Filebench's limit beyond that.
    pub(super) value: u64,
    pub(super) highwater: u64,
}

/// What the steps of all groups are made with.
pub(super) struct Surroundings<'s> {
    pub(super) sets: &'s BTreeMap<String, Set>,
    pub(super) waiting: &'s BTreeMap<String, Waiting>,
}

/// Set-up and flow of a group.
pub(super) struct Steps {
    pub(super) setup: Vec<Step>,
    pub(super) flow: Vec<Step>,
}

/// # Errors
/// A flowop without what it needs.
pub(super) fn steps(
    flow: &mut Flow<'_>,
    workers: u64,
    around: &Surroundings<'_>,
    notes: &mut Notes,
) -> Result<Steps, Mistake> {
    let mut names: Vec<(Vec<OpenFlag>, u64, String)> = Vec::new();
    let mut opens = Vec::new();
    for handle in &flow.handles {
        let flags = flags(handle, &around.sets[&handle.set]);
        let known = names.iter().find(|(other, fd, _)| *fd == handle.fd && *other == flags);
        let name = match known {
            Some((.., name)) => name.clone(),
            None => {
                let name = match names.iter().filter(|(_, fd, _)| *fd == handle.fd).count() {
                    0 => format!("fd{}", handle.fd),
                    others => format!("fd{}-{}", handle.fd, others + 1),
                };
                names.push((flags.clone(), handle.fd, name.clone()));
                name
            }
        };
        opens.push(Open { name, flags, emitted: handle.explicit });
    }
    let mut writer =
        Writer { around, notes, opens, labels: Vec::new(), last: None, workers, setup: Vec::new(), flow };
    let nodes = std::mem::take(&mut writer.flow.nodes);
    let mut steps = writer.nodes(&nodes)?;
    // What the flow opens and never closes is closed at its end, so that it can be repeated.
    for at in 0..writer.flow.handles.len() {
        let handle = &writer.flow.handles[at];
        if handle.explicit && !handle.closed {
            let op = leaves(&nodes).find(|op| op.handle == Some(at));
            if let Some(op) = op {
                let why = "never closed, so Filebench would fail at the second repetition: closed at the end";
                writer.notes.line(op.flowop.line, &op.flowop.text, NoteKind::Approximated, why);
            }
            steps.push(Step { handle: Some(writer.opens[at].name.clone()), ..step(OperationKind::Close) });
        }
    }
    let setup = writer.setup;
    flow.nodes = nodes;
    Ok(Steps { setup, flow: steps })
}

fn flags(handle: &super::flow::Handle, set: &Set) -> Vec<OpenFlag> {
    let mut flags = Vec::new();
    match (set.read_only, set.write_only) {
        (true, _) => {}
        (_, true) => flags.push(OpenFlag::WriteOnly),
        _ => flags.push(OpenFlag::Write),
    }
    if handle.appends && !handle.writes {
        flags.push(OpenFlag::Append);
    }
    if handle.sync {
        flags.push(OpenFlag::Sync);
    }
    if handle.direct {
        flags.push(OpenFlag::Direct);
    }
    flags
}

struct Open {
    name: String,
    flags: Vec<OpenFlag>,
    /// Whether the step that opens it is written.
    emitted: bool,
}

struct Writer<'w, 'a> {
    around: &'w Surroundings<'w>,
    notes: &'w mut Notes,
    flow: &'w mut Flow<'a>,
    opens: Vec<Open>,
    /// Labels with their operations: different operations need different ones.
    labels: Vec<(String, OperationKind)>,
    /// The handle of the last step, if its file is still there to be named.
    last: Option<usize>,
    workers: u64,
    setup: Vec<Step>,
}

impl Writer<'_, '_> {
    fn nodes(&mut self, nodes: &[Node<'_>]) -> Result<Vec<Step>, Mistake> {
        let mut steps = Vec::new();
        for node in nodes {
            match node {
                Node::One(op) => {
                    steps.extend(self.opening(op)?);
                    steps.extend(self.one(op)?);
                }
                Node::Repeat { times, flow } => {
                    // What the first repetition would open is open before it.
                    if let [Node::One(op)] = flow.as_slice() {
                        steps.extend(self.opening(op)?);
                    }
                    let flow = self.nodes(flow)?;
                    if !flow.is_empty() {
                        steps.push(steps::times(*times, flow));
                    }
                }
            }
        }
        Ok(steps)
    }

    fn note(&mut self, op: &Op<'_>, kind: NoteKind, why: &str) {
        self.notes.line(op.flowop.line, &op.flowop.text, kind, why);
    }

    /// An operation under the flowop's name.
    fn labelled(&mut self, op: &Op<'_>, kind: OperationKind) -> Step {
        let name = name_of(&op.name, kind.name());
        let clash = |label: &String| self.labels.iter().any(|(other, of)| other == label && *of != kind);
        let label = if clash(&name) {
            (2..).map(|n| format!("{}-{n}", &name[..name.len().min(58)])).find(|label| !clash(label))
        } else {
            Some(name)
        };
        let label = label.unwrap_or_default();
        self.labels.push((label.clone(), kind));
        Step { label: Some(label).filter(|label| label != kind.name()), ..step(kind) }
    }

    fn set<'s>(&self, op: &'s Op<'_>) -> Result<&'s str, Mistake> {
        op.set.as_deref().ok_or_else(|| op.flowop.mistake("it needs a fileset: `filesetname=files`"))
    }

    fn fileset(&self, set: &str) -> Option<String> {
        self.around.sets.get(set).map(|set| set.name.clone())
    }

    /// Which file: the next one, as Filebench goes through a fileset, unless an index is drawn.
    fn pick(&mut self, op: &Op<'_>) -> Result<FilePick, Mistake> {
        let attributes = op.attributes()?;
        let Some((attribute, amount)) = attributes.amount("indexed")? else { return Ok(FilePick::Next) };
        let (pick, why) = match amount {
            Amount::Drawn(_) => (
                FilePick::Zipf { exponent: 1.0 },
                "some files are picked more often than others by Zipf's law",
            ),
            Amount::Fixed(_) => {
                (FilePick::Own, "each worker has its own file instead of the file with this number")
            }
        };
        self.notes.add(Some(attribute), NoteKind::Approximated, why);
        Ok(pick)
    }

    /// Opens the file of an operation that finds it closed: in the set-up if it stays open, else right before.
    fn opening(&mut self, op: &Op<'_>) -> Result<Option<Step>, Mistake> {
        let Some(at) = op.handle.filter(|at| !self.opens[*at].emitted) else { return Ok(None) };
        self.opens[at].emitted = true;
        let (rotates, closed) = (self.flow.handles[at].rotates, self.flow.handles[at].closed);
        if rotates {
            let why = "each worker keeps to one file, and the workers are spread over all of them";
            self.note(op, NoteKind::Approximated, why);
        }
        let pick = if rotates { FilePick::Own } else { self.pick(op)? };
        let set = self.flow.handles[at].set.clone();
        let label = format!("{}-open", name_of(&op.name, "file"));
        let open = Step {
            label: Some(label.chars().take(64).collect()),
            fileset: self.fileset(&set),
            file: Some(pick),
            handle: Some(self.opens[at].name.clone()),
            flags: self.opens[at].flags.clone(),
            ..step(OperationKind::Open)
        };
        if closed {
            Ok(Some(open))
        } else {
            self.setup.push(open);
            Ok(None)
        }
    }

    fn one(&mut self, op: &Op<'_>) -> Result<Vec<Step>, Mistake> {
        let last = self.last.take();
        let handle = op.handle.map(|at| self.opens[at].name.clone());
        let on = |step: Step| vec![Step { handle: handle.clone(), ..step }];
        let attributes = op.attributes()?;
        match op.kind() {
            "openfile" => {
                let Some(at) = op.handle else { return Ok(Vec::new()) };
                let pick = self.pick(op)?;
                let open = Step {
                    fileset: self.fileset(self.set(op)?),
                    file: Some(pick),
                    flags: self.opens[at].flags.clone(),
                    ..self.labelled(op, OperationKind::Open)
                };
                self.last = Some(at);
                let mut steps = on(open);
                if attributes.truth("opennext")? {
                    self.note(op, NoteKind::Approximated, "each file is closed again at once");
                    steps.extend(on(step(OperationKind::Close)));
                }
                Ok(steps)
            }
            "createfile" => {
                let Some(at) = op.handle else { return Ok(Vec::new()) };
                let why = "the next file that does not exist yet, whatever its number";
                self.notes.add(attributes.find("indexed"), NoteKind::Approximated, why);
                let create = Step {
                    fileset: self.fileset(self.set(op)?),
                    file: Some(FilePick::New),
                    flags: self.opens[at].flags.clone(),
                    ..self.labelled(op, OperationKind::Create)
                };
                self.last = Some(at);
                Ok(on(create))
            }
            "closefile" => {
                self.last = op.handle;
                Ok(on(self.labelled(op, OperationKind::Close)))
            }
            "read" | "write" | "aiowrite" => self.data(op, on),
            "appendfile" | "appendfilerand" => self.append(op, on),
            "readwholefile" | "writewholefile" => self.whole(op, on),
            "fsync" => {
                self.last = op.handle;
                Ok(on(self.labelled(op, OperationKind::Fsync)))
            }
            "fsyncset" => {
                let set = self.set(op)?;
                let of_set = |at: &usize| self.flow.handles[*at].set == set && self.opens[*at].emitted;
                let mut names: Vec<String> =
                    (0..self.opens.len()).filter(of_set).map(|at| self.opens[at].name.clone()).collect();
                names.dedup();
                let fsync = self.labelled(op, OperationKind::Fsync);
                Ok(names.into_iter().map(|name| Step { handle: Some(name), ..fsync.clone() }).collect())
            }
            "deletefile" => {
                let unlink = self.labelled(op, OperationKind::Unlink);
                self.by_name(op, last, unlink)
            }
            "statfile" if op.handle.is_some() => {
                let fstat = self.labelled(op, OperationKind::Fstat);
                Ok(on(fstat))
            }
            "statfile" => {
                let stat = self.labelled(op, OperationKind::Stat);
                self.by_name(op, last, stat)
            }
            "listdir" => {
                let list = self.labelled(op, OperationKind::Readdir);
                self.by_name(op, None, list)
            }
            "makedir" => {
                let make = self.labelled(op, OperationKind::Mkdir);
                Ok(vec![Step { file: Some(FilePick::Once), fileset: self.fileset(self.set(op)?), ..make }])
            }
            "removedir" => self.remove_directory(op),
            other => self.without_file(op, other),
        }
    }

    fn by_name(&mut self, op: &Op<'_>, last: Option<usize>, one: Step) -> Result<Vec<Step>, Mistake> {
        let attributes = op.attributes()?;
        let fd = attributes.number("fd")?.unwrap_or(0);
        let same = last.filter(|at| fd > 0 && self.flow.handles[*at].fd == fd);
        if let Some(at) = same {
            let set = self.flow.handles[at].set.clone();
            return Ok(vec![Step { fileset: self.fileset(&set), file: Some(FilePick::Same), ..one }]);
        }
        let own = self.flow.handles.iter().rev().find(|handle| fd > 0 && handle.fd == fd);
        let set = match (op.set.as_deref(), own) {
            (Some(set), _) => set.to_owned(),
            (None, Some(handle)) => handle.set.clone(),
            (None, None) => self.set(op)?.to_owned(),
        };
        if fd > 0 && own.is_some() {
            let why = "the next file of the set instead of the one that this descriptor had";
            self.note(op, NoteKind::Approximated, why);
        }
        let file = Some(self.pick(op)?);
        Ok(vec![Step { fileset: self.fileset(&set), file, ..one }])
    }

    fn io_size(&mut self, op: &Op<'_>) -> Result<Option<Size>, Mistake> {
        let attributes = op.attributes()?;
        Ok(match attributes.amount("iosize")? {
            None | Some((_, Amount::Fixed(0))) => None,
            Some((attribute, Amount::Fixed(bytes))) => {
                if bytes > MAX_IO {
                    self.notes.add(Some(attribute), NoteKind::Approximated, "at most 1 GiB by one call");
                }
                Some(Size::Fixed(ByteSize(bytes.min(MAX_IO))))
            }
            Some((attribute, Amount::Drawn(draw))) => {
                let (size, different) = draw.size();
                if let Some(different) = different {
                    self.notes.add(Some(attribute), NoteKind::Approximated, &different);
                }
                Some(size)
            }
        })
    }

    fn needed_size(&mut self, op: &Op<'_>) -> Result<Size, Mistake> {
        self.io_size(op)?.ok_or_else(|| op.flowop.mistake("it needs an `iosize` above 0"))
    }

    fn data(&mut self, op: &Op<'_>, on: impl Fn(Step) -> Vec<Step>) -> Result<Vec<Step>, Mistake> {
        let attributes = op.attributes()?;
        let Some(at) = op.handle else { return Ok(Vec::new()) };
        let set = &self.around.sets[&self.flow.handles[at].set];
        let random = attributes.truth("random")?;
        let size = self.needed_size(op)?;
        let reads = op.kind() == "read";
        if set.mean == 0.0 && (reads || random) {
            let why = format!("the files of `{}` have no bytes to work on", self.flow.handles[at].set);
            self.note(op, NoteKind::Unsupported, &why);
            return Ok(Vec::new());
        }
        if op.kind() == "aiowrite" {
            self.note(
                op,
                NoteKind::Approximated,
                "each write is waited for: `workers` write at the same time",
            );
        }
        self.notes.add(
            attributes.find("possetname"),
            NoteKind::Unsupported,
            "positions are from the whole file",
        );
        let appends = !random && !reads && set.mean == 0.0 && !self.flow.handles[at].writes;
        let mut offset = match (random, appends) {
            (true, _) => OffsetPick::Random,
            (_, true) => OffsetPick::Append,
            _ => OffsetPick::Sequential,
        };
        if let Some((attribute, amount)) = attributes.amount("workingset")?.filter(|(_, a)| a.mean() > 0.0) {
            let share = amount.mean() / set.mean;
            if random && share < 1.0 {
                offset = OffsetPick::Hotspot { share, accesses: WITHIN };
                let why = "nearly all positions are within the first part of the file, of this share of its mean size";
                self.notes.add(Some(attribute), NoteKind::Approximated, why);
            } else {
                let why = "positions stay within the file, and cover all of it";
                self.notes.add(Some(attribute), NoteKind::Approximated, why);
            }
        }
        if !reads && !random && set.mean > 0.0 {
            let why = "from the end of the file it starts over instead of making the file longer";
            self.note(op, NoteKind::Approximated, why);
        }
        let kind = if reads { OperationKind::Read } else { OperationKind::Write };
        Ok(on(Step { io_size: Some(size), offset: Some(offset), ..self.labelled(op, kind) }))
    }

    fn append(&mut self, op: &Op<'_>, on: impl Fn(Step) -> Vec<Step>) -> Result<Vec<Step>, Mistake> {
        let Some(at) = op.handle else { return Ok(Vec::new()) };
        let size = self.needed_size(op)?;
        let size = match (op.kind(), size) {
            ("appendfilerand", Size::Fixed(most)) => {
                Size::Distributed(SizeDistribution::Uniform { min: ByteSize(1), max: most })
            }
            ("appendfilerand", drawn) => {
                let why = "exactly the size that is drawn, instead of a random part of it";
                self.note(op, NoteKind::Approximated, why);
                drawn
            }
            (_, size) => size,
        };
        let offset = if self.flow.handles[at].writes {
            let why =
                "the descriptor is also written elsewhere than at its end, so this goes after the last write";
            self.note(op, NoteKind::Approximated, why);
            OffsetPick::Sequential
        } else {
            OffsetPick::Append
        };
        Ok(on(Step { io_size: Some(size), offset: Some(offset), ..self.labelled(op, OperationKind::Write) }))
    }

    fn whole(&mut self, op: &Op<'_>, on: impl Fn(Step) -> Vec<Step>) -> Result<Vec<Step>, Mistake> {
        let attributes = op.attributes()?;
        let Some(at) = op.handle else { return Ok(Vec::new()) };
        let set = &self.around.sets[&self.flow.handles[at].set];
        if let Some(attribute) = attributes.find("srcfd") {
            let source = attributes.number("srcfd")?.unwrap_or(0);
            let other = self.flow.handles.iter().rev().find(|handle| handle.fd == source);
            if source > 0 && other.is_some_and(|other| other.fd != self.flow.handles[at].fd) {
                let why = "as many bytes as the file itself has in its fileset, instead of the source";
                self.notes.add(Some(attribute), NoteKind::Approximated, why);
            }
        }
        self.notes.add(
            attributes.find("workingset").filter(|_| op.kind() == "writewholefile"),
            NoteKind::Approximated,
            "as many bytes as the file has in its fileset",
        );
        if set.mean == 0.0 {
            self.note(
                op,
                NoteKind::Approximated,
                "nothing, because the files have no bytes in their fileset",
            );
            return Ok(Vec::new());
        }
        let size = match (self.io_size(op)?, set.fileset.size.fixed()) {
            (Some(size), _) => size,
            (None, Some(ByteSize(bytes))) => Size::Fixed(ByteSize(bytes.min(MAX_IO))),
            (None, None) => {
                self.note(op, NoteKind::Approximated, "in pieces of 1 MiB instead of by one call");
                Size::Fixed(ByteSize(PIECE))
            }
        };
        let kind = if op.kind() == "readwholefile" { OperationKind::Read } else { OperationKind::Write };
        let one =
            Step { io_size: Some(size), offset: Some(OffsetPick::Sequential), ..self.labelled(op, kind) };
        Ok(vec![to_end_of_file(on(one))])
    }

    /// Removes directories that the set-up has made.
    fn remove_directory(&mut self, op: &Op<'_>) -> Result<Vec<Step>, Mistake> {
        let set = self.set(op)?;
        let name = self.fileset(set);
        let one = self.labelled(op, OperationKind::Rmdir);
        let next = |one: Step| Step { file: Some(FilePick::Next), fileset: name.clone(), ..one };
        let each = self.around.sets[set].directories(self.workers);
        if each > 0 {
            let make = next(Step { label: Some("make".into()), ..step(OperationKind::Mkdir) });
            self.setup.push(steps::times(each, vec![make]));
        }
        Ok(vec![next(one)])
    }

    fn without_file(&mut self, op: &Op<'_>, kind: &str) -> Result<Vec<Step>, Mistake> {
        let attributes = op.attributes()?;
        let value = attributes.amount("value")?.map(|(_, amount)| amount);
        let amount = || value.as_ref().map_or(0.0, Amount::mean);
        let count = (amount().round() as u64).max(1);
        match kind {
            "semblock" | "block" => {
                let count = if kind == "block" { 1 } else { count };
                let take = Some(name_of(&op.name, "semaphore"));
                Ok(vec![Step { take, count: Some(count).filter(|count| *count > 1), ..Step::default() }])
            }
            "sempost" | "wakeup" => {
                let count = if kind == "wakeup" { 1 } else { count };
                let Some(target) = attributes.text("target")? else {
                    return Err(op.flowop.mistake("it needs the name of the flowop that waits: `target=…`"));
                };
                let Some(waiting) = self.around.waiting.get(&target) else {
                    let message = format!(
                        "no `{}` is called `{target}`",
                        if kind == "wakeup" { "block" } else { "semblock" }
                    );
                    return Err(op.flowop.mistake(message));
                };
                // Filebench posts to each of those that wait; here they share one counter.
                let count = count * waiting.workers;
                // One that waits has made room for what it will take.
                let limit = (waiting.highwater + waiting.value) * waiting.workers;
                Ok(vec![Step {
                    post: Some(name_of(&target, "semaphore")),
                    count: Some(count).filter(|count| *count > 1),
                    limit: attributes.truth("blocking")?.then_some(limit),
                    ..Step::default()
                }])
            }
            "delay" => {
                if matches!(value, Some(Amount::Drawn(_))) {
                    self.note(op, NoteKind::Approximated, "always the mean");
                }
                let pause = Duration::try_from_secs_f64(amount())
                    .map_err(|_| op.flowop.mistake("a number of seconds is wanted as `value`"))?;
                Ok(vec![Step { pause: Some(TimeSpan(pause)), ..Step::default() }])
            }
            "hog" => {
                let pause = Duration::from_nanos(amount() as u64);
                if pause < SHORTEST_PAUSE {
                    self.note(op, NoteKind::Unsupported, "the processor is not kept busy");
                    return Ok(Vec::new());
                }
                let why =
                    "a pause of one nanosecond for each turn of the loop, which leaves the processor alone";
                self.note(op, NoteKind::Approximated, why);
                Ok(vec![Step { pause: Some(TimeSpan(pause)), ..Step::default() }])
            }
            "aiowait" => {
                self.note(op, NoteKind::Irrelevant, "nothing is outstanding");
                Ok(Vec::new())
            }
            "print" | "testrandvar" => {
                self.note(op, NoteKind::Irrelevant, "it does nothing to files");
                Ok(Vec::new())
            }
            // Limits and ends belong to the group and the workload.
            _ => Ok(Vec::new()),
        }
    }
}
