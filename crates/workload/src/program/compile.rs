//! The compiler.

use std::collections::BTreeMap;

use super::check::{MAX_IO, is_name};
use super::{Effect, GroupProgram, Instruction, MAX_HANDLES, MAX_LOOPS, OpenFlags, Operation, Program};
use crate::model::{FilePick, Group, OffsetPick, OperationKind, ParameterError, Repeat, Step, Workload};
use crate::recording::SeriesKey;

/// Compiles a workload.
///
/// # Errors
/// Everything in it that cannot be executed, each with its path.
pub(super) fn compile(workload: &Workload) -> Result<Program, Vec<ParameterError>> {
    let mut compiler = Compiler::new(workload);
    compiler.check_filesets();
    let mut groups: Vec<GroupProgram> =
        workload.groups.iter().enumerate().map(|(at, group)| compiler.group(at, group)).collect();
    if workload.groups.is_empty() {
        compiler.error("groups", "the workload has no group of workers", "add a `[[groups]]` with a `flow`");
    }
    let verify_block = compiler.verify_block(&groups);
    match compiler.errors.is_empty() {
        true => Ok(Program {
            measured: compiler.measured_first(&mut groups),
            series: compiler.series,
            filesets: workload.filesets.keys().cloned().collect(),
            effects: compiler.effects,
            groups,
            verify_block,
        }),
        false => Err(compiler.errors),
    }
}

pub(super) struct Compiler<'a> {
    pub(super) workload: &'a Workload,
    filesets: BTreeMap<&'a str, u16>,
    series: Vec<SeriesKey>,
    effects: Vec<Effect>,
    errors: Vec<ParameterError>,
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
}

impl<'a> Compiler<'a> {
    fn new(workload: &'a Workload) -> Self {
        let filesets = workload.filesets.keys().zip(0..).map(|(name, at)| (name.as_str(), at)).collect();
        Self {
            workload,
            filesets,
            series: Vec::new(),
            effects: vec![Effect::None; workload.filesets.len()],
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
        };
        let mut part = |compiler: &mut Self, name: &str, steps: &'a [Step]| {
            let mut code = Vec::new();
            compiler.steps(&format!("{path}.{name}"), steps, &mut state, &mut code);
            code
        };
        let setup = part(self, "setup", &group.setup);
        let flow = part(self, "flow", &group.flow);
        let teardown = part(self, "teardown", &group.teardown);
        GroupProgram {
            name: group.name.clone(),
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
        let forms = [step.op.is_some(), step.repeat.is_some(), !step.choose.is_empty(), step.pause.is_some()];
        if forms.iter().filter(|&&given| given).count() != 1 {
            let message = "a step needs exactly one of `op`, `repeat`, `choose` and `pause`";
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
        if let Some(kind) = step.op {
            self.operation(path, kind, step, state, code);
        } else if let Some(repeat) = step.repeat {
            self.repeat(path, repeat, step, state, code);
        } else if let Some(pause) = step.pause {
            code.push(Instruction::Pause(pause.nanos()));
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
            Repeat::Until(_) => {
                let advances = |s: &Step| {
                    s.op.is_some_and(OperationKind::moves_data)
                        && matches!(s.offset, None | Some(OffsetPick::Sequential))
                };
                let Some(advancing) = step.flow.iter().find(|s| advances(s)) else {
                    let message = "a repeat until the end of the file needs a sequential read or write in it";
                    self.error(path, message, "add one with `offset = \"sequential\"`");
                    return;
                };
                let slot = self.slot(path, advancing, state);
                let handle = &state.handles[usize::from(slot)];
                if handle.opened.iter().any(|(_, flags)| flags.append) {
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
        let opens = matches!(kind, OperationKind::Open | OperationKind::Create);
        let by_name = !kind.needs_handle();
        self.check_fields(path, kind, step);
        let flags = OpenFlags::of(&step.flags);
        let length = step.io_size.map_or(0, |size| size.0);
        let mut offset = step.offset.unwrap_or(OffsetPick::Sequential);
        let slot = if opens || !by_name { self.slot(path, step, state) } else { 0 };
        let (fileset, pick) = match by_name {
            true => {
                let fileset = self.fileset(path, step, state);
                (fileset, self.pick(path, kind, step, state))
            }
            false => (state.last_fileset, FilePick::Same),
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
            );
            self.affects(fileset, if names || flags.truncate { Effect::Names } else { Effect::None });
        } else {
            let handle = &state.handles[usize::from(slot)];
            let appends = handle.opened.iter().all(|(_, flags)| flags.append) && !handle.opened.is_empty();
            if kind == OperationKind::Write && step.offset.is_none() && appends {
                offset = OffsetPick::Append;
            }
            self.check_use(path, kind, step, offset, handle);
            for (fileset, _) in &handle.opened {
                match (kind, offset) {
                    // The file is no longer as its fileset says.
                    (OperationKind::Write, OffsetPick::Append) => self.affects(*fileset, Effect::Names),
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
        if kind.moves_data() {
            state.max_io = state.max_io.max(length.min(MAX_IO));
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
            offset,
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
                    self.error(format!("{path}.fileset"), format!("there is no fileset `{name}`"), fix);
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
        if kind == OperationKind::Create && matches!(pick, FilePick::Random | FilePick::Once) {
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
            self.error(format!("{path}.label"), format!("`{label}` is no label"), fix);
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

fn position(code: &[Instruction]) -> u32 {
    u32::try_from(code.len()).unwrap_or(u32::MAX)
}
