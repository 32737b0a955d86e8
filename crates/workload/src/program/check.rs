//! What a workload must not say although it is well-formed.

use super::compile::{Compiler, Handle};
use super::limits::{MAX_XATTR, is_name};
use super::{Access, GroupProgram, Instruction, OpenFlags};
use crate::content;
use benchmaster_units::ByteSize;

use crate::model::{
    Beside, FilePick, Group, IoMethod, LockKind, OffsetPick, OperationKind, Size, Step, Until,
};

/// The most entries an io_uring has, and more than any server takes.
const MAX_DEPTH: u32 = 32_768;

impl Compiler<'_> {
    pub(super) fn check_filesets(&mut self) {
        if self.workload.filesets.is_empty() {
            self.error("filesets", "the workload has no fileset", "add `[workload.NAME.filesets.data]`");
        }
        for (name, fileset) in &self.workload.filesets {
            let at = |field: &str| format!("filesets.{name}.{field}");
            if !is_name(name) {
                let fix = "use up to 64 letters, digits, `-` and `_`";
                self.error(format!("filesets.{name}"), format!("`{name}` is not a name for a fileset"), fix);
            }
            if fileset.files == 0 {
                self.error(at("files"), "the fileset has no files", "`files` must be at least 1");
            }
            if !(0.0..=1.0).contains(&fileset.prefill) {
                let message = format!("`prefill` is a share of the files, and {} is not", fileset.prefill);
                self.error(at("prefill"), message, "write a number from 0 to 1");
            }
            if let Size::Distributed(distribution) = &fileset.size {
                self.check_size_distribution(&at("size"), distribution);
            }
            if let Some(tree) = &fileset.tree {
                self.check_tree(&at("tree"), fileset, tree);
            }
        }
    }

    pub(super) fn check_group(&mut self, path: &str, number: usize, group: &Group) {
        if self.workload.groups[..number].iter().any(|other| other.name == group.name) {
            self.error(
                format!("{path}.name"),
                format!("two groups are called `{}`", group.name),
                "rename one",
            );
        }
        if !is_name(&group.name) {
            let fix = "use up to 64 letters, digits, `-` and `_`";
            self.error(format!("{path}.name"), format!("`{}` is not a name for a group", group.name), fix);
        }
        for (field, value) in [("workers", group.workers), ("queue_depth", group.queue_depth)] {
            if value == 0 {
                self.error(format!("{path}.{field}"), format!("`{field}` is 0"), "it must be at least 1");
            }
        }
        if group.queue_depth > 1 && group.io == IoMethod::Sync && self.access == Access::System {
            let fix = "add `io = \"io_uring\"`, or use `workers` for synchronous concurrency";
            self.error(format!("{path}.queue_depth"), "a queue depth above 1 needs asynchronous I/O", fix);
        }
        if group.queue_depth > MAX_DEPTH {
            let message = format!("a worker keeps at most {MAX_DEPTH} operations outstanding");
            self.error(format!("{path}.queue_depth"), message, "use more `workers`");
        }
        let only_data = |step: &Step| step.op.is_some_and(OperationKind::moves_data);
        if group.queue_depth > 1 && !group.flow.iter().all(only_data) {
            let message = "with a queue depth above 1 the flow may only hold reads and writes";
            let fix = "open and close files in `setup` and `teardown`, or use `workers` instead";
            self.error(format!("{path}.flow"), message, fix);
        }
        if group.clients.is_some_and(|clients| clients.last.is_some_and(|last| last < clients.first)) {
            let fix = "clients are numbered from 0; write `{ first = 1 }` or `{ first = 1, last = 4 }`";
            self.error(format!("{path}.clients"), "the last client comes before the first", fix);
        }
        // A group without flow holds what its set-up opened while others work.
        let others = self.workload.groups.iter().any(|other| !other.flow.is_empty());
        if group.flow.is_empty() && (group.setup.is_empty() || !others) {
            self.error(format!("{path}.flow"), "the group has nothing to do", "add at least one step");
        }
        if !group.flow.is_empty() && !self.ends(&group.flow) {
            let message = format!("nothing ends the group `{}`", group.name);
            let fix =
                "add a `duration` or `iterations` to `until`, or `bytes` to a flow that reads or writes";
            self.error("until", message, fix);
        }
    }

    /// Whether a limit, or the lack of files, ends a flow that is repeated.
    fn ends(&self, flow: &[Step]) -> bool {
        fn any(steps: &[Step], found: &impl Fn(&Step) -> bool) -> bool {
            steps.iter().any(|step| {
                found(step)
                    || any(&step.flow, found)
                    || step.choose.iter().any(|choice| any(&choice.flow, found))
            })
        }
        let Until { duration, iterations, bytes } = self.workload.until;
        let moves = |step: &Step| step.op.is_some_and(OperationKind::moves_data);
        let consumes = |step: &Step| match step.op {
            Some(OperationKind::Create) => matches!(step.file, None | Some(FilePick::New)),
            Some(OperationKind::Unlink) => !matches!(step.file, Some(FilePick::Own | FilePick::Same)),
            Some(_) => step.file == Some(FilePick::Once),
            None => false,
        };
        duration.is_some()
            || iterations.is_some()
            || bytes.is_some() && any(flow, &moves)
            || any(flow, &consumes)
    }

    /// Fields that belong to operations, in a step that is none.
    pub(super) fn check_other_step(&mut self, path: &str, step: &Step) {
        let fields = [
            ("label", step.label.is_some()),
            ("fileset", step.fileset.is_some()),
            ("file", step.file.is_some()),
            ("handle", step.handle.is_some()),
            ("flags", !step.flags.is_empty()),
            ("io_size", step.io_size.is_some()),
            ("offset", step.offset.is_some()),
            ("of", step.of.is_some()),
            ("lock", step.lock.is_some()),
        ];
        for (field, _) in fields.into_iter().filter(|(_, given)| *given) {
            let message = format!("`{field}` belongs to an operation, and this step has no `op`");
            self.error(format!("{path}.{field}"), message, "move it to the operation");
        }
    }

    /// Fields that are missing, too large, or mean nothing for this kind of operation.
    pub(super) fn check_fields(&mut self, path: &str, kind: OperationKind, step: &Step) {
        let opens = kind.opens();
        let locks = kind == OperationKind::Lock;
        let sized = kind.moves_data()
            || locks
            || matches!(
                kind,
                OperationKind::Unlock
                    | OperationKind::Truncate
                    | OperationKind::Allocate
                    | OperationKind::Setxattr
            );
        let beside = matches!(
            kind,
            OperationKind::Open | OperationKind::Stat | OperationKind::Access | OperationKind::Unlink
        );
        let fields = [
            ("fileset", step.fileset.is_some() && kind.needs_handle()),
            ("file", step.file.is_some() && kind.needs_handle()),
            ("flags", !step.flags.is_empty() && !opens),
            ("io_size", step.io_size.is_some() && !sized),
            ("offset", step.offset.is_some() && !kind.moves_data()),
            ("of", step.of.is_some() && !beside),
            ("lock", step.lock.is_some() && !locks),
            ("handle", step.handle.is_some() && !opens && !kind.needs_handle()),
        ];
        for (field, _) in fields.into_iter().filter(|(_, wrong)| *wrong) {
            let message = format!("`{field}` means nothing for `{}`", kind.name());
            self.error(format!("{path}.{field}"), message, "remove it");
        }
        if kind.moves_data() {
            let given = step.io_size.as_ref().is_some_and(|size| size.fixed().is_none_or(|size| size.0 > 0));
            if !given {
                let message = format!("`{}` needs an `io_size`", kind.name());
                self.error(path, message, "for example `io_size = \"64KiB\"`");
            }
        } else if step.io_size.as_ref().is_some_and(|size| size.fixed().is_none()) {
            let message = format!("`{}` needs one size", kind.name());
            self.error(format!("{path}.io_size"), message, "for example `io_size = \"64KiB\"`");
        }
        let fixed = step.io_size.as_ref().and_then(Size::fixed).map_or(0, |size| size.0);
        if kind == OperationKind::Allocate && fixed == 0 {
            self.error(path, "`allocate` needs an `io_size`", "for example `io_size = \"1MiB\"`");
        }
        if kind == OperationKind::Setxattr && fixed > MAX_XATTR {
            let message = format!("an extended attribute has at most {MAX_XATTR} bytes");
            self.error(format!("{path}.io_size"), message, "use a smaller `io_size`");
        }
        self.check_beside(path, kind, step);
    }

    /// Uses of what lies beside a file that cannot be meant.
    fn check_beside(&mut self, path: &str, kind: OperationKind, step: &Step) {
        let Some(of) = step.of else { return };
        let path = format!("{path}.of");
        if of == Beside::Symlink && matches!(kind, OperationKind::Open | OperationKind::Access) {
            let message = format!("`{}` of a symbolic link is one of its file", kind.name());
            self.error(&path, message, "remove `of`, or use `stat`, `readlink` or `unlink`");
        }
        if of == Beside::Copy && kind == OperationKind::Open && self.workload.verify.is_on() {
            let message = "what a copy holds is not known when its file is written again";
            self.error(&path, message, "use `verify = false`");
        }
    }

    /// Flags that contradict each other or the operation.
    pub(super) fn check_flags(&mut self, path: &str, kind: OperationKind, flags: OpenFlags) {
        let path = format!("{path}.flags");
        if flags.exclusive && kind == OperationKind::Open {
            self.error(&path, "`exclusive` is about files that are created", "use `create`, or remove it");
        }
        for (flag, given) in [("truncate", flags.truncate), ("append", flags.append)] {
            if given && !flags.write {
                self.error(
                    &path,
                    format!("`{flag}` needs a file opened for writing"),
                    "add the flag `write`",
                );
            }
        }
    }

    /// An operation that its handle does not allow as it is opened.
    pub(super) fn check_use(
        &mut self,
        path: &str,
        kind: OperationKind,
        step: &Step,
        offset: OffsetPick,
        handle: &Handle<'_>,
    ) {
        let name = kind.name();
        if handle.opened.is_empty() {
            let message = format!("`{name}` comes before any `open` or `create` of its handle");
            self.error(path, message, "open a file in `setup` or earlier in the flow");
            return;
        }
        let any = |is: fn(&OpenFlags) -> bool| handle.opened.iter().any(|(_, flags)| is(flags));
        let writes = matches!(kind, OperationKind::Write | OperationKind::Truncate | OperationKind::Allocate)
            || kind == OperationKind::Lock && step.lock == Some(LockKind::Write);
        let reads = kind == OperationKind::Read
            || kind == OperationKind::Lock && step.lock.unwrap_or_default() == LockKind::Read;
        if writes && any(|flags| !flags.write) {
            let fix = "add `flags = [\"write\"]` to the step that opens it";
            self.error(path, format!("`{name}` needs a handle opened for writing"), fix);
        }
        if reads && any(|flags| flags.write_only) {
            self.error(
                path,
                format!("`{name}` needs a handle opened for reading"),
                "open it with `write` instead",
            );
        }
        if kind == OperationKind::Write && offset == OffsetPick::Append && any(|flags| !flags.append) {
            let fix = "add the flag `append` to the step that opens it";
            self.error(format!("{path}.offset"), "to append, the file must be opened to append", fix);
        }
        if kind == OperationKind::Write && offset != OffsetPick::Append && any(|flags| flags.append) {
            let message = "a file opened with `append` is written at its end; `offset` has no effect";
            self.error(format!("{path}.offset"), message, "write `offset = \"append\"`");
        }
        if kind == OperationKind::Read && offset == OffsetPick::Append {
            self.error(
                format!("{path}.offset"),
                "there is nothing to read at the end",
                "use another `offset`",
            );
        }
        if kind.moves_data() && offset != OffsetPick::Append {
            self.check_size(path, handle);
        }
    }

    /// Reads and writes stay within the size a file has in its fileset.
    fn check_size(&mut self, path: &str, handle: &Handle<'_>) {
        let empty = |at: u16| {
            let (name, fileset) = self.workload.filesets.iter().nth(usize::from(at))?;
            fileset.size.fixed().is_some_and(|size| size.0 == 0).then_some(name)
        };
        if let Some(name) = handle.opened.iter().find_map(|(fileset, _)| empty(*fileset)) {
            let message = format!("the files of `{name}` have no bytes to read or write");
            self.error(path, message, "give the fileset a `size`, or write with `offset = \"append\"`");
        }
    }

    /// The block that all reads and writes of a verified workload have in common.
    pub(super) fn verify_block(&mut self, groups: &[GroupProgram]) -> Option<usize> {
        if !self.workload.verify.is_on() {
            return None;
        }
        let mut block = content::BLOCK;
        for (number, group) in groups.iter().enumerate() {
            for instruction in group.setup.iter().chain(&group.flow).chain(&group.teardown) {
                let Instruction::Operation(op) = instruction else { continue };
                // What is appended is not stamped: its place is not known.
                let appends = op.kind == OperationKind::Write && op.offset == OffsetPick::Append;
                if !op.kind.moves_data() || op.length == 0 || appends {
                    continue;
                }
                let of_one = match &op.drawn {
                    Some(sampler) => sampler.block(),
                    None => content::block_size(op.length),
                };
                // Positions that are no multiples of the size are multiples of this.
                if let OffsetPick::Strided { stride: ByteSize(apart) } | OffsetPick::At(ByteSize(apart)) =
                    op.offset
                    && apart > 0
                {
                    match content::block_size(apart) {
                        Some(size) => block = block.min(size),
                        None => {
                            let message =
                                format!("data {apart} bytes apart, or from the start, cannot be verified");
                            let fix = format!(
                                "use a multiple of {} bytes, or `verify = false`",
                                content::MIN_BLOCK
                            );
                            self.error(format!("groups[{number}].flow"), message, fix);
                        }
                    }
                }
                match of_one {
                    Some(size) => block = block.min(size),
                    None => {
                        let message = match &op.drawn {
                            Some(_) => "data in I/Os of the sizes drawn cannot be verified".to_owned(),
                            None => format!("data in I/Os of {} bytes cannot be verified", op.length),
                        };
                        let fix =
                            format!("use a multiple of {} bytes, or `verify = false`", content::MIN_BLOCK);
                        self.error(format!("groups[{number}].flow"), message, fix);
                    }
                }
            }
        }
        Some(block)
    }
}
