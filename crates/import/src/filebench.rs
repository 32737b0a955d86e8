//! Filebench's workload files (its workload model language, WML), of Filebench 1.5 and as far as possible 1.4.
//!
//! A file becomes one workload: each fileset a fileset, each thread of a process a group of as many workers as there are
//! instances, each flowop one step or a few. What Filebench would do is followed, not what its manual says, where
//! the two are known to differ.

mod draw;
mod flow;
mod parse;
mod randvar;
mod script;
mod set;
mod steps;
mod token;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_record::model::{Claim, Group, Until, Verify, Workload};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

use self::flow::{Builder, Flow, Op, count, leaves};
use self::parse::{Attribute, Command, Thread};
use self::script::{Mode, Script};
use self::set::Set;
use self::steps::{Surroundings, Waiting};
use self::value::{Amount, Attributes};
use crate::{ImportError, Imported, Mistake, Note, NoteKind, name_of};

/// Length of a `run` that says none.
const RUN_SECONDS: u64 = 60;
/// Imports the workload file called `name` (a path or a file name, for the study's name) with this `text`.
///
/// # Errors
/// Everything in the file that Filebench would not accept either, and a file without processes.
pub fn import(name: &str, text: &str) -> Result<Imported, ImportError> {
    let one = |mistake| ImportError { mistakes: vec![mistake] };
    let commands = parse::parse(text).map_err(one)?;
    let base = name.rsplit('/').next().unwrap_or(name);
    let name = name_of(base.strip_suffix(".f").unwrap_or(base), "filebench");
    let mut notes = Notes { list: Vec::new(), workload: name.clone(), once: BTreeSet::new() };
    let script = script::read(&commands, &mut notes).map_err(|mistakes| ImportError { mistakes })?;
    let (workload, directory) = translate(&script, &mut notes).map_err(one)?;
    let mut notes = notes.list;
    notes.sort_by_key(|note| note.line);
    Ok(Imported {
        name: name.clone(),
        description: None,
        seed: None,
        directory,
        run: toml::Table::new(),
        response: None,
        workloads: vec![(name, workload)],
        notes,
    })
}

/// What became of attributes and commands.
struct Notes {
    list: Vec<Note>,
    workload: String,
    /// Said already: a composite flowop is taken apart wherever it is used.
    once: BTreeSet<(usize, String)>,
}

impl Notes {
    /// A note about an attribute, if it is given.
    fn add(&mut self, attribute: Option<&Attribute>, kind: NoteKind, message: &str) {
        if let Some(attribute) = attribute {
            self.line(attribute.line, &attribute.text, kind, message);
        }
    }

    fn line(&mut self, line: usize, text: &str, kind: NoteKind, message: &str) {
        if self.once.insert((line, format!("{text} {message}"))) {
            self.list.push(Note {
                file: None,
                line,
                text: text.to_owned(),
                kind,
                message: message.to_owned(),
                workload: Some(self.workload.clone()),
            });
        }
    }
}

/// The threads of one `thread` definition.
struct Member<'a> {
    name: String,
    place: (usize, &'a str),
    workers: u64,
    flow: Flow<'a>,
}

fn translate<'a>(script: &'a Script<'a>, notes: &mut Notes) -> Result<(Workload, Option<String>), Mistake> {
    let sets = filesets(script, notes)?;
    let mut members = Vec::new();
    for (command, attributes, threads) in &script.processes {
        process(script, &sets, (command, attributes, threads), &mut members, notes)?;
    }
    if members.is_empty() {
        let message = "the file defines no process: `define process name=… { thread name=… { flowop … } }`";
        return Err(Mistake { file: None, line: 1, text: String::new(), message: message.into() });
    }
    let waiting = waiting(&members)?;
    let until = until(script, &sets, &members, notes)?;
    let rates = rates(script, &sets, &members, notes)?;
    let around = Surroundings { sets: &sets, waiting: &waiting };
    let mut groups = Vec::new();
    for (mut member, rate) in members.into_iter().zip(rates) {
        let steps = steps::steps(&mut member.flow, member.workers, &around, notes)?;
        if steps.flow.is_empty() {
            let why = "none of its flowops can be imported, so it is left out";
            notes.line(member.place.0, member.place.1, NoteKind::Unsupported, why);
            continue;
        }
        let workers = u32::try_from(member.workers).unwrap_or(u32::MAX);
        groups.push(Group {
            rate: rate.map(Rate),
            setup: steps.setup,
            flow: steps.flow,
            ..crate::steps::group(member.name, workers)
        });
    }
    let directory = sets.values().next().map(|set| set.path.clone());
    let used = |set: &Set| {
        let name = Some(&set.name);
        fn any(steps: &[benchmaster_record::model::Step], name: Option<&String>) -> bool {
            steps.iter().any(|step| step.fileset.as_ref() == name || any(&step.flow, name))
        }
        groups.iter().any(|group| any(&group.setup, name) || any(&group.flow, name))
    };
    let workload = Workload {
        filesets: sets
            .values()
            .filter(|set| used(set))
            .map(|set| (set.name.clone(), set.fileset.clone()))
            .collect(),
        groups,
        until,
        warm_up: TimeSpan::default(),
        verify: Verify::Off,
        trace: false,
        // Filebench does not ask whether data come from a cache.
        claims: Claim::Cache,
    };
    Ok((workload, directory))
}

/// The filesets by their names in the file.
fn filesets(script: &Script<'_>, notes: &mut Notes) -> Result<BTreeMap<String, Set>, Mistake> {
    let mut sets: BTreeMap<String, Set> = BTreeMap::new();
    for (line, text, single, attributes) in &script.filesets {
        let (own, mut set) = set::set(*single, attributes, &script.scope, (*line, text), notes)?;
        let taken = |name: &String| sets.values().any(|other| other.name == *name);
        if taken(&set.name) {
            let free = (2..).map(|number| format!("{}-{number}", set.name)).find(|name| !taken(name));
            set.name = free.unwrap_or_default();
        }
        if sets.values().any(|other| other.path != set.path) {
            let why = "all filesets lie in the target, whatever their paths";
            notes.line(*line, text, NoteKind::Approximated, why);
        }
        if set.cached {
            let why = "files are in the cache after they have been made, unless `[run] cache` says otherwise";
            notes.line(*line, text, NoteKind::Translated, why);
        }
        sets.insert(own, set);
    }
    Ok(sets)
}

fn process<'a>(
    script: &'a Script<'a>,
    sets: &BTreeMap<String, Set>,
    (command, attributes, threads): (&'a Command, &'a [Attribute], &'a [Thread]),
    members: &mut Vec<Member<'a>>,
    notes: &mut Notes,
) -> Result<(), Mistake> {
    let process = Attributes::new(attributes, &script.scope, "define process", "name instances nice")?;
    let own = process.text("name")?.unwrap_or_else(|| "process".into());
    let instances = process.number("instances")?.unwrap_or(1);
    notes.add(process.find("nice"), NoteKind::Unsupported, "workers run with the priority of this program");
    let known = "name instances memsize useism ioprio process procname";
    for thread in threads {
        let attributes = Attributes::new(&thread.attributes, &script.scope, "thread", known)?;
        let name = attributes.text("name")?.unwrap_or_else(|| own.clone());
        let workers = attributes.number("instances")?.unwrap_or(1) * instances;
        let place =
            thread.attributes.first().map_or((command.line, command.text.as_str()), |a| (a.line, &a.text));
        for name in ["memsize", "useism"] {
            notes.add(
                attributes.find(name),
                NoteKind::Irrelevant,
                "each worker has a buffer as large as it needs",
            );
        }
        notes.add(
            attributes.find("ioprio"),
            NoteKind::Unsupported,
            "workers have the I/O priority of this program",
        );
        if workers == 0 {
            notes.line(place.0, place.1, NoteKind::Irrelevant, "it has no instances");
            continue;
        }
        let taken = |name: &String| members.iter().any(|member| member.name == *name);
        let plain = name_of(&name, "thread");
        let name = if taken(&plain) {
            let long = name_of(&format!("{own}-{name}"), "thread");
            let numbered = (2..).map(|number| format!("{plain}-{number}"));
            std::iter::once(long).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
        } else {
            plain
        };
        let flow = Builder::new(&script.composites, sets, notes).build(&thread.flow, &script.scope)?;
        members.push(Member { name, place, workers, flow });
    }
    Ok(())
}

/// All that wait, by name.
fn waiting(members: &[Member<'_>]) -> Result<BTreeMap<String, Waiting>, Mistake> {
    let mut all: BTreeMap<String, Waiting> = BTreeMap::new();
    for member in members {
        for op in leaves(&member.flow.nodes).filter(|op| matches!(op.kind(), "semblock" | "block")) {
            let attributes = op.attributes()?;
            let value =
                attributes.amount("value")?.map_or(1, |(_, amount)| amount.mean().round() as u64).max(1);
            let known = all.entry(op.name.clone()).or_default();
            known.workers += member.workers;
            known.value = known.value.max(if op.kind() == "block" { 1 } else { value });
            known.highwater = known.highwater.max(attributes.number("highwater")?.unwrap_or(1));
        }
    }
    Ok(all)
}

/// When the workload ends.
fn until(
    script: &Script<'_>,
    sets: &BTreeMap<String, Set>,
    members: &[Member<'_>],
    notes: &mut Notes,
) -> Result<Until, Mistake> {
    let mut until = Until { duration: script.seconds.map(TimeSpan::seconds), ..Until::default() };
    let consumes = |op: &Op<'_>| op.is(|kind| kind.consumes);
    let consumed = members.iter().any(|member| leaves(&member.flow.nodes).any(consumes));
    let mut ends = script.mode == Mode::Done && consumed;
    for member in members {
        for op in leaves(&member.flow.nodes) {
            match op.kind() {
                "finishoncount" | "finishonbytes" => {
                    ends = true;
                    finish(op, member, members, &mut until, notes)?;
                }
                "removedir" => {
                    let set = op.set.as_ref().and_then(|set| sets.get(set));
                    let each = set.map_or(0, |set| set.directories(member.workers));
                    ends |= each > 0;
                    until.iterations = until.iterations.max(Some(each).filter(|each| *each > 0));
                }
                _ => {}
            }
        }
    }
    if !ends && until.duration.is_none() {
        until.duration = Some(TimeSpan::seconds(RUN_SECONDS));
        let last = script.processes.last();
        if let Some((command, ..)) = last.filter(|_| !script.runs) {
            let why = "the file has no `run`, and is done for 60 s";
            notes.line(command.line, &command.text, NoteKind::Translated, why);
        }
    }
    Ok(until)
}

/// A flowop that ends the run after so many operations or bytes.
fn finish(
    op: &Op<'_>,
    member: &Member<'_>,
    members: &[Member<'_>],
    until: &mut Until,
    notes: &mut Notes,
) -> Result<(), Mistake> {
    let attributes = op.attributes()?;
    let value = attributes.number("value")?.unwrap_or(0).max(1);
    let target = attributes.text("target")?;
    let mut note = |why: &str| notes.line(op.flowop.line, &op.flowop.text, NoteKind::Approximated, why);
    if members.len() > 1 {
        note("each worker of every thread stops by itself instead of all when the first has done enough");
    }
    if op.kind() == "finishonbytes" {
        let workers =
            if target.is_some() { 1 } else { members.iter().map(|member| member.workers).sum::<u64>() };
        let bytes = value.div_ceil(workers.max(1));
        until.bytes = Some(ByteSize(bytes).max(until.bytes.unwrap_or_default()));
        return Ok(());
    }
    let counts = |other: &Op<'_>| match &target {
        Some(target) => f64::from(u8::from(other.name == *target)),
        None => f64::from(u8::from(other.is(|kind| kind.counted))),
    };
    // A target's operations are counted in each thread, all operations over all of them.
    let workers = if target.is_some() { 1 } else { member.workers };
    let each = count(&member.flow.nodes, &counts) * workers as f64;
    if each == 0.0 {
        return Err(op.flowop.mistake("nothing that it counts is done: the run would not end"));
    }
    let iterations = (value as f64 / each).ceil().max(1.0) as u64;
    until.iterations = until.iterations.max(Some(iterations));
    Ok(())
}

/// The rate of each group: repetitions of its flow per second, where it waits for the event generator.
fn rates(
    script: &Script<'_>,
    sets: &BTreeMap<String, Set>,
    members: &[Member<'_>],
    notes: &mut Notes,
) -> Result<Vec<Option<f64>>, Mistake> {
    let mut rates: Vec<Option<f64>> = vec![None; members.len()];
    let Some(place) = script.rate else { return Ok(rates) };
    let list = std::slice::from_ref(place);
    let attributes = Attributes::new(list, &script.scope, "eventgen", "rate")?;
    let rate = match attributes.amount("rate")? {
        Some((attribute, Amount::Drawn(draw))) => {
            notes.add(Some(attribute), NoteKind::Approximated, "always the mean");
            draw.mean()
        }
        Some((_, Amount::Fixed(rate))) => rate as f64,
        None => 0.0,
    };
    if rate == 0.0 {
        return Ok(rates);
    }
    let mut events = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let each = events_of(member, sets)?;
        if each > 0.0 {
            events.push((number, each));
        }
    }
    if events.is_empty() {
        notes.add(Some(place), NoteKind::Irrelevant, "no flowop waits for events");
    }
    if events.len() > 1 {
        let why = "each group that waits for events has an equal share of them";
        notes.add(Some(place), NoteKind::Approximated, why);
    }
    let share = events.len() as f64;
    for (number, each) in events {
        rates[number] = Some(rate / each / share);
    }
    Ok(rates)
}

/// Events that one repetition of a member's flow waits for.
fn events_of(member: &Member<'_>, sets: &BTreeMap<String, Set>) -> Result<f64, Mistake> {
    let nodes = &member.flow.nodes;
    let mut most: f64 = 0.0;
    for op in leaves(nodes) {
        let target = op.attributes()?.text("target")?;
        let wanted = |other: &Op<'_>| target.as_ref().is_none_or(|target| other.name == *target);
        let events = match op.kind() {
            "eventlimit" => count(nodes, &|other| f64::from(u8::from(other.kind() == "eventlimit"))),
            "iopslimit" => count(nodes, &|o| f64::from(u8::from(wanted(o) && o.is(|kind| kind.moves_data)))),
            "opslimit" => count(nodes, &|o| f64::from(u8::from(wanted(o) && o.is(|kind| kind.counted)))),
            // One event is a mebibyte.
            "bwlimit" => {
                count(nodes, &|o| if wanted(o) { bytes(o, &member.flow, sets) } else { 0.0 })
                    / f64::from(1 << 20)
            }
            _ => 0.0,
        };
        most = most.max(events);
    }
    Ok(most)
}

/// Mean of the bytes that a flowop moves.
fn bytes(op: &Op<'_>, flow: &Flow<'_>, sets: &BTreeMap<String, Set>) -> f64 {
    let io_size = || op.attributes().ok()?.amount("iosize").ok()?.map(|(_, amount)| amount.mean());
    let whole = || op.handle.and_then(|at| sets.get(&flow.handles[at].set)).map_or(0.0, |set| set.mean);
    match op.kind() {
        "readwholefile" | "writewholefile" => whole(),
        "appendfilerand" => io_size().unwrap_or(0.0) / 2.0,
        _ if op.is(|kind| kind.moves_data) => io_size().unwrap_or(0.0),
        _ => 0.0,
    }
}
