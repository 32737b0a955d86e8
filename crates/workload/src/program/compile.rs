//! The compiler.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::limits::{MAX_IO, MAX_XATTR, XATTR, is_name};
use super::{
    Access, Effect, GroupProgram, Instruction, MAX_HANDLES, MAX_LOOPS, Meeting, OpenFlags, Operation, Program,
};
use crate::content::BLOCK;
use crate::model::{
    FilePick, Group, OffsetPick, OperationKind, ParameterError, Repeat, RepeatFor, Size, Step, Verify,
    Workload,
};
use crate::recording::SeriesKey;
use crate::sizes::SizeSampler;

/// Compiles a workload.
///
/// # Errors
/// Everything in it that cannot be executed, each with its path.
pub(super) fn compile(workload: &Workload, access: Access) -> Result<Program, Vec<ParameterError>> {
    let mut compiler = Compiler::new(workload, access);
    compiler.check_filesets();
    let mut groups: Vec<GroupProgram> =
        workload.groups.iter().enumerate().map(|(at, group)| compiler.group(at, group)).collect();
    if workload.groups.is_empty() {
        compiler.error("groups", "the workload has no group of workers", "add a `[[groups]]` with a `flow`");
    }
    compiler.check_counters(&groups);
    let verify_block = compiler.verify_block(&groups);
    groups.iter_mut().for_each(|group| finish(group, verify_block));
    if compiler.errors.is_empty() {
        Ok(Program {
            measured: compiler.measured_first(&mut groups),
            series: compiler.series,
            filesets: workload.filesets.keys().cloned().collect(),
            effects: compiler.effects,
            meetings: compiler.meetings,
            counters: compiler.counters,
            replay: None,
            grows: compiler.grows,
            groups,
            verify_block,
            witnessed: workload.verify == Verify::Durability,
        })
    } else {
        Err(compiler.errors)
    }
}

pub(super) struct Compiler<'a> {
    pub(super) workload: &'a Workload,
    pub(super) access: Access,
    filesets: BTreeMap<&'a str, u16>,
    series: Vec<SeriesKey>,
    effects: Vec<Effect>,
    pub(super) meetings: Vec<Meeting>,
    pub(super) counters: Vec<String>,
    grows: Vec<bool>,
    errors: Vec<ParameterError>,
}

/// Which part of a group's code is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    SetUp,
    Flow,
    TearDown,
}

/// A handle as far as a flow has been read.
pub(super) struct Handle<'a> {
    pub(super) name: &'a str,
    /// Filesets whose files are opened into it, and how.
    pub(super) opened: Vec<(u16, OpenFlags)>,
}

/// State while one group is compiled.
struct GroupState<'a> {
    name: &'a str,
    handles: Vec<Handle<'a>>,
    /// Whether a step before picked a file, and may be referred to by `same`.
    picked: bool,
    last_fileset: u16,
    loops: usize,
    max_io: u64,
    section: Section,
    /// Of each handle, how one operation on it comes after the other.
    ways: [Option<OffsetPick>; MAX_HANDLES],
}

impl<'a> Compiler<'a> {
    fn new(workload: &'a Workload, access: Access) -> Self {
        let filesets = workload.filesets.keys().zip(0..).map(|(name, at)| (name.as_str(), at)).collect();
        Self {
            workload,
            access,
            filesets,
            series: Vec::new(),
            effects: vec![Effect::None; workload.filesets.len()],
            meetings: Vec::new(),
            counters: Vec::new(),
            grows: vec![false; workload.filesets.len()],
            errors: Vec::new(),
        }
    }

    pub(super) fn error(
        &mut self,
        path: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.errors.push(ParameterError::new(path, message, fix));
    }

    fn group(&mut self, number: usize, group: &'a Group) -> GroupProgram {
        let path = format!("groups[{number}]");
        self.check_group(&path, number, group);
        let mut state = GroupState {
            name: &group.name,
            handles: Vec::new(),
            picked: false,
            last_fileset: 0,
            loops: 0,
            max_io: 0,
            section: Section::SetUp,
            ways: [None; MAX_HANDLES],
        };
        let mut part = |compiler: &mut Self, name: &str, section, steps: &'a [Step]| {
            let mut code = Vec::new();
            state.section = section;
            compiler.steps(&format!("{path}.{name}"), steps, &mut state, &mut code);
            code
        };
        let mut setup = part(self, "setup", Section::SetUp, &group.setup);
        let mut flow = part(self, "flow", Section::Flow, &group.flow);
        let mut teardown = part(self, "teardown", Section::TearDown, &group.teardown);
        for operation in operations(&mut setup).chain(operations(&mut flow)).chain(operations(&mut teardown))
        {
            if operation.kind.opens()
                && let Some(way) = state.ways[usize::from(operation.slot)]
                && way.is_segments()
            {
                operation.offset = way;
            }
        }
        GroupProgram {
            name: group.name.clone(),
            clients: group.clients,
            workers: group.workers,
            queue_depth: group.queue_depth,
            io: group.io,
            rate: group.rate.map(|rate| rate.0),
            setup,
            flow,
            teardown,
            max_io: usize::try_from(state.max_io).unwrap_or(usize::MAX),
        }
    }

    fn steps(
        &mut self,
        path: &str,
        steps: &'a [Step],
        state: &mut GroupState<'a>,
        code: &mut Vec<Instruction>,
    ) {
        for (number, step) in steps.iter().enumerate() {
            self.step(&format!("{path}[{number}]"), step, state, code);
        }
    }

    fn step(&mut self, path: &str, step: &'a Step, state: &mut GroupState<'a>, code: &mut Vec<Instruction>) {
        if step.replay.is_some() {
            let message = "a replay is the only step of the only group's `flow`";
            self.error(path, message, "make it a separate workload");
            return;
        }
        let forms = [
            step.op.is_some(),
            step.repeat.is_some(),
            !step.choose.is_empty(),
            step.pause.is_some(),
            step.meet.is_some(),
            step.post.is_some(),
            step.take.is_some(),
        ];
        if forms.iter().filter(|&&given| given).count() != 1 {
            let message =
                "a step needs exactly one of `op`, `repeat`, `choose`, `pause`, `meet`, `post` and `take`";
            self.error(path, message, "for example `{ op = \"read\", io_size = \"64KiB\" }`");
            return;
        }
        if step.repeat.is_none() && !step.flow.is_empty() {
            self.error(
                format!("{path}.flow"),
                "`flow` belongs to `repeat`",
                "add `repeat`, or remove `flow`",
            );
        }
        if step.op.is_none() {
            self.check_other_step(path, step);
        }
        self.check_counts(path, step);
        if let Some(kind) = step.op {
            self.operation(path, kind, step, state, code);
        } else if let Some(repeat) = step.repeat {
            self.repeat(path, repeat, step, state, code);
        } else if let Some(pause) = step.pause {
            code.push(Instruction::Pause(pause.nanos()));
        } else if let Some(name) = step.meet.as_deref().or(step.post.as_deref()).or(step.take.as_deref()) {
            self.synchronize(path, name, step, state.section, code);
        } else {
            self.choose(path, step, state, code);
        }
    }

    fn repeat(
        &mut self,
        path: &str,
        repeat: Repeat,
        step: &'a Step,
        state: &mut GroupState<'a>,
        code: &mut Vec<Instruction>,
    ) {
        if step.flow.is_empty() {
            self.error(path, "there is nothing to repeat", "add `flow = [ … ]` to the step");
        }
        if state.loops == MAX_LOOPS {
            self.error(path, format!("repeats are nested deeper than {MAX_LOOPS}"), "flatten them");
            return;
        }
        let begin = code.len();
        code.push(Instruction::Jump(0));
        let body = position(code);
        let counter = state.loops as u8;
        state.loops += 1;
        self.steps(&format!("{path}.flow"), &step.flow, state, code);
        state.loops -= 1;
        match repeat {
            Repeat::Times(times) => {
                code.push(Instruction::LoopEnd { counter, body });
                code[begin] = Instruction::LoopBegin { counter, times, exit: position(code) };
            }
            Repeat::For(RepeatFor { duration }) => {
                if duration.nanos() == 0 {
                    let fix = "give it a length, for example `{ duration = \"30s\" }`";
                    self.error(format!("{path}.repeat"), "the time to repeat for is 0", fix);
                }
                code.push(Instruction::TimeEnd { counter, body });
                code[begin] = Instruction::TimeBegin { counter, nanos: duration.nanos() };
            }
            Repeat::Until(_) => {
                let advances = |s: &Step| {
                    s.op.is_some_and(OperationKind::moves_data) && s.offset.is_none_or(OffsetPick::advances)
                };
                let Some(advancing) = step.flow.iter().find(|s| advances(s)) else {
                    let message = "a repeat until the end of the file needs a sequential read or write in it";
                    self.error(path, message, "add one with `offset = \"sequential\"`");
                    return;
                };
                let slot = self.slot(path, advancing, state);
                let handle = &state.handles[usize::from(slot)];
                if advancing.op == Some(OperationKind::Write)
                    && handle.opened.iter().any(|(_, flags)| flags.append)
                {
                    let message = "a file that grows by appending has no end to reach";
                    self.error(path, message, "repeat a number of times, or open without `append`");
                }
                code.push(Instruction::FileEnd { slot, body });
                code[begin] = Instruction::FileBegin { slot, exit: position(code) };
            }
        }
    }

    fn choose(
        &mut self,
        path: &str,
        step: &'a Step,
        state: &mut GroupState<'a>,
        code: &mut Vec<Instruction>,
    ) {
        let total: f64 = step.choose.iter().map(|choice| choice.weight).sum();
        if step.choose.iter().any(|choice| choice.weight <= 0.0 || !choice.weight.is_finite()) {
            self.error(
                format!("{path}.choose"),
                "a weight is not above 0",
                "give every choice a weight above 0",
            );
            return;
        }
        let begin = code.len();
        code.push(Instruction::Jump(0));
        let (mut targets, mut jumps, mut share) = (Vec::new(), Vec::new(), 0.0);
        for (number, choice) in step.choose.iter().enumerate() {
            share += choice.weight / total;
            targets.push((share, position(code)));
            self.steps(&format!("{path}.choose[{number}].flow"), &choice.flow, state, code);
            jumps.push(code.len());
            code.push(Instruction::Jump(0));
        }
        if let Some(last) = targets.last_mut() {
            last.0 = 1.0;
        }
        let end = position(code);
        for jump in jumps {
            code[jump] = Instruction::Jump(end);
        }
        code[begin] = Instruction::Choose { targets };
    }

    fn operation(
        &mut self,
        path: &str,
        kind: OperationKind,
        step: &'a Step,
        state: &mut GroupState<'a>,
        code: &mut Vec<Instruction>,
    ) {
        let opens = kind.opens();
        let by_name = !kind.needs_handle();
        self.check_fields(path, kind, step);
        let flags = OpenFlags::of(&step.flags);
        let fixed = step.io_size.as_ref().and_then(Size::fixed);
        let mut length = fixed.map_or(0, |size| size.0);
        let mut offset = step.offset.unwrap_or(OffsetPick::Sequential);
        let slot = if opens || !by_name { self.slot(path, step, state) } else { 0 };
        let (fileset, pick) = if by_name {
            let fileset = self.fileset(path, step, state);
            (fileset, self.pick(path, kind, step, state))
        } else {
            (state.last_fileset, FilePick::Same)
        };
        if opens {
            self.check_flags(path, kind, flags);
            state.handles[usize::from(slot)].opened.push((fileset, flags));
        }
        if by_name {
            let names = matches!(
                kind,
                OperationKind::Create
                    | OperationKind::Rename
                    | OperationKind::Unlink
                    | OperationKind::Mkdir
                    | OperationKind::Rmdir
                    | OperationKind::Symlink
                    | OperationKind::Link
                    | OperationKind::Copy
                    | OperationKind::Setxattr
                    | OperationKind::Removexattr
            );
            self.affects(fileset, if names || flags.truncate { Effect::Names } else { Effect::None });
        } else {
            let handle = &state.handles[usize::from(slot)];
            let appends = handle.opened.iter().all(|(_, flags)| flags.append) && !handle.opened.is_empty();
            if kind == OperationKind::Write && step.offset.is_none() && appends {
                offset = OffsetPick::Append;
            }
            self.check_use(path, kind, step, offset, handle);
            self.check_positions(path, step, offset, handle);
            for (fileset, _) in &handle.opened {
                match (kind, offset) {
                    // The file is no longer as its fileset says.
                    (OperationKind::Truncate | OperationKind::Allocate, _)
                    | (OperationKind::Write, OffsetPick::Append) => {
                        self.affects(*fileset, Effect::Names);
                        if let Some(grows) = self.grows.get_mut(usize::from(*fileset)) {
                            *grows = true;
                        }
                    }
                    (OperationKind::Write, _) => self.affects(*fileset, Effect::Data),
                    _ => {}
                }
            }
            if kind == OperationKind::Close
                && let Some((fileset, _)) = handle.opened.last()
            {
                state.last_fileset = *fileset;
                state.picked = true;
            }
        }
        let drawn = match &step.io_size {
            Some(Size::Distributed(distribution)) if kind.moves_data() => {
                self.check_size_distribution(&format!("{path}.io_size"), distribution).then(|| {
                    let direct =
                        state.handles[usize::from(slot)].opened.iter().any(|(_, flags)| flags.direct);
                    Arc::new(SizeSampler::new(distribution, if direct { BLOCK as u64 } else { 1 }))
                })
            }
            _ => None,
        };
        if let Some(sampler) = &drawn {
            length = sampler.largest();
        }
        if kind == OperationKind::Setxattr {
            length = if length == 0 { XATTR } else { length };
            state.max_io = state.max_io.max(length.min(MAX_XATTR));
        }
        if kind.moves_data() {
            if length > MAX_IO {
                let message = "an I/O of more than 1 GiB";
                self.error(format!("{path}.io_size"), message, "use a smaller `io_size`");
            }
            state.max_io = state.max_io.max(length.min(MAX_IO));
            if offset.advances() {
                let way = *state.ways[usize::from(slot)].get_or_insert(offset);
                if way != offset && (way.is_segments() || offset.is_segments()) {
                    let message = "all steps of a handle must use the same segments";
                    self.error(
                        format!("{path}.offset"),
                        message,
                        "open the file into another handle as well",
                    );
                }
            }
        }
        let series = self.series(path, kind, step, state);
        let lock = step.lock.unwrap_or_default();
        code.push(Instruction::Operation(Operation {
            kind,
            series,
            slot,
            fileset,
            pick,
            length,
            unit: drawn.as_ref().map_or(length, |sampler| sampler.alignment()).max(1),
            drawn,
            offset,
            of: step.of,
            lock,
            flags,
        }));
    }

    fn affects(&mut self, fileset: u16, effect: Effect) {
        if let Some(known) = self.effects.get_mut(usize::from(fileset)) {
            *known = effect.max(*known);
        }
    }

    fn fileset(&mut self, path: &str, step: &Step, state: &mut GroupState<'a>) -> u16 {
        let found = match (&step.fileset, self.filesets.len()) {
            (Some(name), _) => match self.filesets.get(name.as_str()) {
                Some(&at) => at,
                None => {
                    let known: Vec<&str> = self.filesets.keys().copied().collect();
                    let fix = format!("the workload has: {}", known.join(", "));
                    self.error(format!("{path}.fileset"), format!("unknown fileset `{name}`"), fix);
                    0
                }
            },
            (None, 1) => 0,
            (None, _) if step.file == Some(FilePick::Same) => state.last_fileset,
            (None, _) => {
                let fix = "add `fileset = \"NAME\"` to the step";
                self.error(path, "the workload has several filesets, and the step names none", fix);
                0
            }
        };
        state.last_fileset = found;
        found
    }

    fn pick(&mut self, path: &str, kind: OperationKind, step: &Step, state: &mut GroupState<'a>) -> FilePick {
        let default = if kind == OperationKind::Create { FilePick::New } else { FilePick::Random };
        let pick = step.file.unwrap_or(default);
        if pick == FilePick::Same && !state.picked {
            self.error(
                format!("{path}.file"),
                "`same` needs an earlier step that picked a file",
                "use another pick",
            );
        }
        if kind == OperationKind::Create
            && matches!(pick, FilePick::Random | FilePick::Once | FilePick::Zipf { .. })
        {
            let fix = "use `new`, `own` or `next`";
            self.error(
                format!("{path}.file"),
                "this pick yields files that exist, and `create` makes new ones",
                fix,
            );
        }
        if kind != OperationKind::Create && pick == FilePick::New {
            let fix = "use `create`, or another pick";
            self.error(
                format!("{path}.file"),
                format!("`new` yields a file that does not exist, and `{}` needs one", kind.name()),
                fix,
            );
        }
        self.check_pick(path, pick, state.last_fileset);
        state.picked = true;
        pick
    }

    fn slot(&mut self, path: &str, step: &'a Step, state: &mut GroupState<'a>) -> u8 {
        let name = step.handle.as_deref().unwrap_or("main");
        if let Some(slot) = state.handles.iter().position(|known| known.name == name) {
            return slot as u8;
        }
        if state.handles.len() == MAX_HANDLES {
            let message = format!("more than {MAX_HANDLES} handles in one group");
            self.error(format!("{path}.handle"), message, "close and reuse handles");
            return 0;
        }
        state.handles.push(Handle { name, opened: Vec::new() });
        (state.handles.len() - 1) as u8
    }

    fn series(&mut self, path: &str, kind: OperationKind, step: &Step, state: &GroupState<'a>) -> u16 {
        let label = step.label.clone().unwrap_or_else(|| kind.name().to_owned());
        if !is_name(&label) {
            let fix = "use up to 64 letters, digits, `-` and `_`";
            self.error(format!("{path}.label"), format!("`{label}` is not a label"), fix);
        }
        let key = SeriesKey { group: state.name.to_owned(), label, operation: kind };
        if let Some(clash) =
            self.series.iter().find(|s| s.group == key.group && s.label == key.label && s.operation != kind)
        {
            let message = format!("the label `{}` is used for `{}` too", key.label, clash.operation.name());
            self.error(format!("{path}.label"), message, "give different operations different labels");
        }
        if let Some(at) = self.series.iter().position(|known| *known == key) {
            return at as u16;
        }
        if self.series.len() == usize::from(u16::MAX) {
            self.error(
                format!("{path}.label"),
                "the workload has too many labels",
                "use the same one for more steps",
            );
            return 0;
        }
        self.series.push(key);
        (self.series.len() - 1) as u16
    }

    /// Sorts the series so that those of flows come first; returns their number.
    fn measured_first(&mut self, groups: &mut [GroupProgram]) -> usize {
        let mut measured = vec![false; self.series.len()];
        for instruction in groups.iter().flat_map(|group| &group.flow) {
            if let Instruction::Operation(op) = instruction {
                measured[usize::from(op.series)] = true;
            }
        }
        let mut order: Vec<usize> = (0..self.series.len()).collect();
        order.sort_by_key(|&at| !measured[at]);
        let mut place = vec![0; order.len()];
        order.iter().zip(0..).for_each(|(&at, now)| place[at] = now);
        for group in groups {
            for instruction in group.setup.iter_mut().chain(&mut group.flow).chain(&mut group.teardown) {
                if let Instruction::Operation(op) = instruction {
                    op.series = place[usize::from(op.series)];
                }
            }
        }
        self.series = order.iter().map(|&at| self.series[at].clone()).collect();
        measured.into_iter().filter(|&measured| measured).count()
    }
}

/// The place of `new` in `known`, where it is put if it is not there.
pub(super) fn place_of<T: PartialEq>(known: &mut Vec<T>, new: T) -> u16 {
    let at = known.iter().position(|old| *old == new).unwrap_or_else(|| {
        known.push(new);
        known.len() - 1
    });
    u16::try_from(at).unwrap_or(u16::MAX)
}

fn operations(code: &mut [Instruction]) -> impl Iterator<Item = &mut Operation> {
    code.iter_mut().filter_map(|instruction| match instruction {
        Instruction::Operation(operation) => Some(operation),
        _ => None,
    })
}

/// Rounds drawn sizes to blocks that can be proved, now that these are known.
fn finish(group: &mut GroupProgram, block: Option<usize>) {
    let Some(block) = block else { return };
    let mut largest = 0;
    let GroupProgram { setup, flow, teardown, .. } = group;
    for operation in operations(setup).chain(operations(flow)).chain(operations(teardown)) {
        if let Some(sampler) = &mut operation.drawn {
            *sampler = Arc::new(sampler.with_grain(sampler.grain().max(block as u64)));
            operation.length = sampler.largest();
            operation.unit = sampler.alignment();
            largest = largest.max(operation.length);
        }
    }
    group.max_io = group.max_io.max(usize::try_from(largest).unwrap_or(usize::MAX));
}

fn position(code: &[Instruction]) -> u32 {
    u32::try_from(code.len()).unwrap_or(u32::MAX)
}
