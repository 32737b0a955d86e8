//! A workload compiled for execution: every name resolved to a number, every flow flattened to instructions with jumps.

use std::collections::BTreeMap;

use crate::content;
use crate::model::{
    FilePick, FileSize, Group, IoMethod, LockKind, OffsetPick, OpenFlag, OperationKind, ParameterError, Repeat, Step,
    SizeDistribution, Workload,
};
use crate::recording::SeriesKey;

/// The most handles a flow may hold open at once.
pub const MAX_HANDLES: usize = 8;
/// The deepest nesting of repeats.
pub const MAX_LOOPS: usize = 8;

/// A compiled workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// What is counted apart, in the order of the flow; then what only set-up and tear-down do.
    pub series: Vec<SeriesKey>,
    /// How many of `series` belong to a flow and are measured.
    pub measured: usize,
    /// Names of the filesets; instructions refer to them by position.
    pub filesets: Vec<String>,
    /// What the program does to each fileset.
    pub effects: Vec<Effect>,
    /// Compiled groups.
    pub groups: Vec<GroupProgram>,
    /// Block size of stamped data; `None` when the workload does not verify.
    pub verify_block: Option<usize>,
}

/// What a program does to a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Effect {
    /// It only reads.
    #[default]
    None,
    /// It overwrites data in place.
    Data,
    /// Files come, go or change their names.
    Names,
}

/// A compiled group.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupProgram {
    /// The group's name.
    pub name: String,
    /// Workers per client.
    pub workers: u32,
    /// Outstanding operations per worker.
    pub queue_depth: u32,
    /// How reads and writes are issued.
    pub io: IoMethod,
    /// Open-loop repetitions per second and client.
    pub rate: Option<f64>,
    /// Done once before.
    pub setup: Vec<Instruction>,
    /// Repeated.
    pub flow: Vec<Instruction>,
    /// Done once after.
    pub teardown: Vec<Instruction>,
    /// Largest read or write.
    pub max_io: usize,
}

/// One instruction. Targets of jumps are positions in the same list.
#[derive(Debug, Clone, PartialEq)]
pub enum Instruction {
    /// An operation.
    Operation(Operation),
    /// Start of a repeat.
    LoopBegin {
        /// Which counter.
        counter: u8,
        /// How often.
        times: u64,
        /// Behind the loop.
        exit: u32,
    },
    /// End of a repeat.
    LoopEnd {
        /// Which counter.
        counter: u8,
        /// First instruction of the body.
        body: u32,
    },
    /// Start of a repeat until the end of the file.
    FileBegin {
        /// Handle.
        slot: u8,
        /// Behind the loop.
        exit: u32,
    },
    /// End of it.
    FileEnd {
        /// Handle.
        slot: u8,
        /// First instruction of the body.
        body: u32,
    },
    /// Jump to one of the targets; `below` are cumulative shares up to 1.
    Choose {
        /// Cumulative share and target.
        targets: Vec<(f64, u32)>,
    },
    /// Jump.
    Jump(u32),
    /// Wait so many nanoseconds.
    Pause(u64),
}

/// An operation with everything resolved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operation {
    /// What.
    pub kind: OperationKind,
    /// Under which series it is counted.
    pub series: u16,
    /// Handle.
    pub slot: u8,
    /// Fileset.
    pub fileset: u16,
    /// File.
    pub pick: FilePick,
    /// Bytes.
    pub length: u64,
    /// Position.
    pub offset: OffsetPick,
    /// Kind of lock.
    pub lock: LockKind,
    /// How to open.
    pub flags: OpenFlags,
}

/// Open flags as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    /// Writing allowed.
    pub write: bool,
    /// Reading not allowed.
    pub write_only: bool,
    /// O_SYNC.
    pub sync: bool,
    /// O_DSYNC.
    pub dsync: bool,
    /// O_DIRECT.
    pub direct: bool,
    /// O_APPEND.
    pub append: bool,
    /// O_TRUNC.
    pub truncate: bool,
    /// O_EXCL.
    pub exclusive: bool,
}

impl Program {
    /// Compiles a workload.
    ///
    /// # Errors
    /// Everything in it that cannot be executed, each with its path.
    pub fn compile(workload: &Workload) -> Result<Self, Vec<ParameterError>> {
        let mut compiler = Compiler::new(workload);
        compiler.check_filesets();
        let mut groups: Vec<GroupProgram> =
            workload.groups.iter().enumerate().map(|(at, group)| compiler.group(at, group)).collect();
        if workload.groups.is_empty() {
            compiler.error("groups", "the workload has no group of workers", "add a `[[groups]]` with a `flow`");
        }
        let verify_block = compiler.verify_block(&groups);
        match compiler.errors.is_empty() {
            true => Ok(Self {
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

    /// Workers per client.
    pub fn workers(&self) -> u32 {
        self.groups.iter().map(|group| group.workers).sum()
    }
}

/// Shortest name that a user may give to a fileset, label or handle, and which characters it may have.
fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}

struct Compiler<'a> {
    workload: &'a Workload,
    filesets: BTreeMap<&'a str, u16>,
    series: Vec<SeriesKey>,
    effects: Vec<Effect>,
    errors: Vec<ParameterError>,
}

/// State while one group is compiled.
struct GroupState<'a> {
    name: &'a str,
    handles: Vec<&'a str>,
    open: u32,
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

    fn error(&mut self, path: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) {
        self.errors.push(ParameterError::new(path, message, fix));
    }

    fn check_filesets(&mut self) {
        if self.workload.filesets.is_empty() {
            self.error("filesets", "the workload has no fileset", "add `[workload.NAME.filesets.data]`");
        }
        for (name, fileset) in &self.workload.filesets {
            let at = |field: &str| format!("filesets.{name}.{field}");
            if !is_name(name) {
                let fix = "use up to 64 letters, digits, `-` and `_`";
                self.error(format!("filesets.{name}"), format!("`{name}` is no name for a fileset"), fix);
            }
            if fileset.files == 0 {
                self.error(at("files"), "the fileset has no files", "`files` must be at least 1");
            }
            if !(0.0..=1.0).contains(&fileset.prefill) {
                let message = format!("`prefill` is a share of the files, and {} is not", fileset.prefill);
                self.error(at("prefill"), message, "write a number from 0 to 1");
            }
            match &fileset.size {
                FileSize::Distributed(SizeDistribution::Uniform { min, max }) if min > max => {
                    self.error(at("size"), format!("`min` ({min}) is more than `max` ({max})"), "exchange them");
                }
                FileSize::Distributed(SizeDistribution::Gamma { mean, shape })
                    if *shape <= 0.0 || !shape.is_finite() || mean.0 == 0 =>
                {
                    self.error(at("size"), "a gamma distribution needs a mean and a shape above 0", "raise them");
                }
                FileSize::Distributed(SizeDistribution::LogNormal { median, sigma })
                    if *sigma <= 0.0 || !sigma.is_finite() || median.0 == 0 =>
                {
                    self.error(at("size"), "a log-normal distribution needs a median and sigma above 0", "raise them");
                }
                _ => {}
            }
        }
    }

    fn group(&mut self, number: usize, group: &'a Group) -> GroupProgram {
        let path = format!("groups[{number}]");
        if self.workload.groups[..number].iter().any(|other| other.name == group.name) {
            self.error(format!("{path}.name"), format!("two groups are called `{}`", group.name), "rename one");
        }
        if !is_name(&group.name) {
            let fix = "use up to 64 letters, digits, `-` and `_`";
            self.error(format!("{path}.name"), format!("`{}` is no name for a group", group.name), fix);
        }
        for (field, value) in [("workers", group.workers), ("queue_depth", group.queue_depth)] {
            if value == 0 {
                self.error(format!("{path}.{field}"), format!("`{field}` is 0"), "it must be at least 1");
            }
        }
        if group.queue_depth > 1 && group.io == IoMethod::Sync {
            let fix = "add `io = \"io_uring\"`, or use `workers` for synchronous concurrency";
            self.error(format!("{path}.queue_depth"), "a queue depth above 1 needs asynchronous I/O", fix);
        }
        let only_data = |step: &Step| step.op.is_some_and(OperationKind::moves_data);
        if group.queue_depth > 1 && !group.flow.iter().all(only_data) {
            let fix = "open and close files in `setup` and `teardown`, or use `workers` instead";
            self.error(
                format!("{path}.flow"),
                "with a queue depth above 1 the flow may only hold reads and writes",
                fix,
            );
        }
        if group.flow.is_empty() {
            self.error(format!("{path}.flow"), "the group has nothing to do", "add at least one step");
        }
        let mut state = GroupState {
            name: &group.name,
            handles: Vec::new(),
            open: 0,
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

    fn steps(&mut self, path: &str, steps: &'a [Step], state: &mut GroupState<'a>, code: &mut Vec<Instruction>) {
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
            self.error(format!("{path}.flow"), "`flow` belongs to `repeat`", "add `repeat`, or remove `flow`");
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
                    s.op.is_some_and(OperationKind::moves_data) && s.offset.unwrap_or(OffsetPick::Sequential) == OffsetPick::Sequential
                };
                let Some(advancing) = step.flow.iter().find(|s| advances(s)) else {
                    let message = "a repeat until the end of the file needs a sequential read or write in it";
                    self.error(path, message, "add one with `offset = \"sequential\"`");
                    return;
                };
                let slot = self.slot(path, advancing, state);
                code.push(Instruction::FileEnd { slot, body });
                code[begin] = Instruction::FileBegin { slot, exit: position(code) };
            }
        }
    }

    fn choose(&mut self, path: &str, step: &'a Step, state: &mut GroupState<'a>, code: &mut Vec<Instruction>) {
        let total: f64 = step.choose.iter().map(|choice| choice.weight).sum();
        if step.choose.iter().any(|choice| choice.weight <= 0.0 || !choice.weight.is_finite()) {
            self.error(format!("{path}.choose"), "a weight is not above 0", "give every choice a weight above 0");
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
        self.misplaced(path, kind, step, opens, by_name);
        let fileset = if by_name { self.fileset(path, step, state) } else { state.last_fileset };
        let pick = if by_name { self.pick(path, kind, step, state) } else { FilePick::Same };
        let slot = if opens || kind.needs_handle() { self.slot(path, step, state) } else { 0 };
        if opens {
            state.open |= 1 << slot;
        } else if kind.needs_handle() && state.open & (1 << slot) == 0 {
            let message = format!("`{}` comes before any `open` or `create` of its handle", kind.name());
            self.error(path, message, "open a file in `setup` or earlier in the flow");
        }
        let length = step.io_size.map_or(0, |size| size.0);
        if kind.moves_data() {
            if length == 0 {
                self.error(path, format!("`{}` needs an `io_size`", kind.name()), "for example `io_size = \"64KiB\"`");
            }
            if length > 1 << 30 {
                self.error(format!("{path}.io_size"), "an I/O of more than 1 GiB", "use a smaller `io_size`");
            }
            state.max_io = state.max_io.max(length.min(1 << 30));
        }
        let flags = open_flags(&step.flags);
        let effect = match kind {
            OperationKind::Create | OperationKind::Rename | OperationKind::Unlink => Effect::Names,
            OperationKind::Mkdir | OperationKind::Rmdir => Effect::Names,
            OperationKind::Write => Effect::Data,
            OperationKind::Open if flags.truncate => Effect::Names,
            _ => Effect::None,
        };
        if let Some(known) = self.effects.get_mut(usize::from(fileset)) {
            *known = effect.max(*known);
        }
        let series = self.series(path, kind, step, state);
        code.push(Instruction::Operation(Operation {
            kind,
            series,
            slot,
            fileset,
            pick,
            length,
            offset: step.offset.unwrap_or(OffsetPick::Sequential),
            lock: step.lock.unwrap_or_default(),
            flags,
        }));
    }

    /// Fields that mean nothing for this kind of operation.
    fn misplaced(&mut self, path: &str, kind: OperationKind, step: &Step, opens: bool, by_name: bool) {
        let locks = kind == OperationKind::Lock;
        let ranged = kind.moves_data() || locks || kind == OperationKind::Unlock;
        let fields = [
            ("fileset", step.fileset.is_some() && !by_name),
            ("file", step.file.is_some() && !by_name),
            ("flags", !step.flags.is_empty() && !opens),
            ("io_size", step.io_size.is_some() && !ranged),
            ("offset", step.offset.is_some() && !kind.moves_data()),
            ("lock", step.lock.is_some() && !locks),
            ("handle", step.handle.is_some() && !opens && !kind.needs_handle()),
        ];
        for (field, wrong) in fields {
            if wrong {
                let message = format!("`{field}` means nothing for `{}`", kind.name());
                self.error(format!("{path}.{field}"), message, "remove it");
            }
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
            self.error(format!("{path}.file"), "`same` needs an earlier step that picked a file", "use another pick");
        }
        if kind == OperationKind::Create && matches!(pick, FilePick::Random | FilePick::Once) {
            let fix = "use `new`, `own` or `next`";
            self.error(format!("{path}.file"), "this pick yields files that exist, and `create` makes new ones", fix);
        }
        if kind != OperationKind::Create && pick == FilePick::New {
            let fix = "use `create`, or another pick";
            self.error(format!("{path}.file"), format!("`new` yields a file that does not exist, and `{}` needs one", kind.name()), fix);
        }
        state.picked = true;
        pick
    }

    fn slot(&mut self, path: &str, step: &'a Step, state: &mut GroupState<'a>) -> u8 {
        let name = step.handle.as_deref().unwrap_or("main");
        if let Some(slot) = state.handles.iter().position(|known| *known == name) {
            return slot as u8;
        }
        if state.handles.len() == MAX_HANDLES {
            let message = format!("more than {MAX_HANDLES} handles in one group");
            self.error(format!("{path}.handle"), message, "close and reuse handles");
            return 0;
        }
        state.handles.push(name);
        (state.handles.len() - 1) as u8
    }

    fn series(&mut self, path: &str, kind: OperationKind, step: &Step, state: &GroupState<'a>) -> u16 {
        let label = step.label.clone().unwrap_or_else(|| kind.name().to_owned());
        if !is_name(&label) {
            let fix = "use up to 64 letters, digits, `-` and `_`";
            self.error(format!("{path}.label"), format!("`{label}` is no label"), fix);
        }
        let key = SeriesKey { group: state.name.to_owned(), label, operation: kind };
        if let Some(clash) = self.series.iter().find(|s| s.group == key.group && s.label == key.label && s.operation != kind) {
            let message = format!("the label `{}` is used for `{}` too", key.label, clash.operation.name());
            self.error(format!("{path}.label"), message, "give different operations different labels");
        }
        let at = self.series.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.series.push(key);
            self.series.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
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
        for group in groups {
            let code = group.setup.iter_mut().chain(&mut group.flow).chain(&mut group.teardown);
            for instruction in code {
                if let Instruction::Operation(op) = instruction {
                    let place = order.iter().position(|&at| at == usize::from(op.series));
                    op.series = place.map_or(op.series, |place| place as u16);
                }
            }
        }
        self.series = order.iter().map(|&at| self.series[at].clone()).collect();
        measured.into_iter().filter(|&measured| measured).count()
    }

    /// The block that all reads and writes of a verified workload have in common.
    fn verify_block(&mut self, groups: &[GroupProgram]) -> Option<usize> {
        if !self.workload.verify {
            return None;
        }
        let mut block = content::BLOCK;
        for (number, group) in groups.iter().enumerate() {
            for instruction in group.setup.iter().chain(&group.flow).chain(&group.teardown) {
                let Instruction::Operation(op) = instruction else { continue };
                if !op.kind.moves_data() || op.length == 0 {
                    continue;
                }
                match content::block_size(op.length) {
                    Some(size) => block = block.min(size),
                    None => {
                        let message = format!("data in I/Os of {} bytes cannot be verified", op.length);
                        let fix = format!("use a multiple of {} bytes, or `verify = false`", content::MIN_BLOCK);
                        self.error(format!("groups[{number}].flow"), message, fix);
                    }
                }
                if op.kind == OperationKind::Write && op.offset == OffsetPick::Append {
                    let message = "appended data cannot be verified, because its place is not known";
                    self.error(format!("groups[{number}].flow"), message, "use `verify = false`");
                }
            }
        }
        Some(block)
    }
}

fn position(code: &[Instruction]) -> u32 {
    u32::try_from(code.len()).unwrap_or(u32::MAX)
}

fn open_flags(flags: &[OpenFlag]) -> OpenFlags {
    let has = |flag| flags.contains(&flag);
    OpenFlags {
        write: has(OpenFlag::Write) || has(OpenFlag::WriteOnly),
        write_only: has(OpenFlag::WriteOnly),
        sync: has(OpenFlag::Sync),
        dsync: has(OpenFlag::Dsync),
        direct: has(OpenFlag::Direct),
        append: has(OpenFlag::Append),
        truncate: has(OpenFlag::Truncate),
        exclusive: has(OpenFlag::Exclusive),
    }
}
