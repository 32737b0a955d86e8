//! Calls that name files: attributes, links, directories, copies.

use super::super::line::{find, number, string};
use super::super::place::joined;
use super::super::process::Target;
use super::super::{Call, Done, Flags, OperationKind, Tracer, Why};
use super::{Object, field, mode};
use crate::program::flags::OpenFlags;

impl Tracer<'_> {
    /// A call on one name.
    pub(super) fn named(
        &mut self,
        d: &Done<'_>,
        kind: OperationKind,
        directory: Option<usize>,
        name: usize,
        change: impl FnOnce(&mut Call),
    ) {
        let Some((path, _)) = self.path(d, directory, name) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        let mut call = d.call(kind, path);
        change(&mut call);
        self.world.call(d.thread, call);
    }

    pub(super) fn symlink(&mut self, d: &Done<'_>, directory: Option<usize>, name: usize) {
        let Some((path, absolute)) = self.path(d, directory, name) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        let target = string(d.argument(0)).and_then(|target| self.place.link_target(&absolute, &target));
        let Some(target) = target else {
            return self.left_out(Why::Unsupported, &format!("{} to elsewhere", d.name));
        };
        let other = self.world.path(&target);
        self.world.call(d.thread, Call { other, ..d.call(OperationKind::Symlink, path) });
    }

    pub(super) fn two_names(
        &mut self,
        d: &Done<'_>,
        kind: OperationKind,
        from: (Option<usize>, usize),
        to: (Option<usize>, usize),
    ) {
        match (self.path(d, from.0, from.1), self.path(d, to.0, to.1)) {
            (Some((from, _)), Some((to, _))) => {
                self.world.call(d.thread, Call { other: to, ..d.call(kind, from) });
            }
            (None, None) => self.left_out(Why::Elsewhere, d.name),
            (Some(_), None) | (None, Some(_)) => {
                self.left_out(Why::Unsupported, &format!("{} from or to elsewhere", d.name));
            }
        }
    }

    /// A call on what a descriptor stands for that engines do by name.
    pub(super) fn by_descriptor(&mut self, d: &Done<'_>, kind: OperationKind) {
        match self.found(d, 0) {
            Object::File { path, .. } | Object::Directory { path, .. } => {
                let length = if kind == OperationKind::Chmod { mode(d.argument(1)) } else { 0 };
                self.world.call(d.thread, Call { length, ..d.call(kind, path) });
            }
            Object::Elsewhere => self.left_out(Why::Elsewhere, d.name),
        }
    }

    pub(super) fn stat(&mut self, d: &Done<'_>, directory: Option<usize>, name: usize, result: usize) {
        if directory.is_some() && matches!(d.argument(name), b"\"\"" | b"NULL") {
            return self.fstat(d, result);
        }
        let Some((path, _)) = self.path(d, directory, name) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        self.world.call(d.thread, d.call(OperationKind::Stat, path));
        if d.error() == 0 {
            self.seen(path, d.argument(result));
        }
    }

    pub(super) fn fstat(&mut self, d: &Done<'_>, result: usize) {
        match self.found(d, 0) {
            Object::File { handle, .. } => {
                self.world.call(d.thread, d.on_handle(OperationKind::Fstat, handle));
                if let Some(size) =
                    field(d.argument(result), b"_size=").and_then(|size| u64::try_from(size).ok())
                {
                    self.world.size_of_handle(handle, size);
                }
            }
            Object::Directory { path, .. } => {
                self.world.call(d.thread, d.call(OperationKind::Stat, path));
                self.seen(path, d.argument(result));
            }
            Object::Elsewhere => self.left_out(Why::Elsewhere, d.name),
        }
    }

    /// What attributes tell about the file in the beginning.
    pub(super) fn seen(&mut self, path: u32, attributes: &[u8]) {
        if find(attributes, b"S_IFDIR").is_some() {
            self.world.is_directory(path);
        } else if let Some(size) = field(attributes, b"_size=").and_then(|size| u64::try_from(size).ok()) {
            self.world.size_of_path(path, size);
        }
    }

    /// The first call on a directory lists it; the others get the rest, which the replay has then.
    pub(super) fn list(&mut self, d: &Done<'_>) {
        let Object::Directory { path, listed, descriptor } = self.found(d, 0) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        if !listed {
            self.world.call(d.thread, d.call(OperationKind::Readdir, path));
        }
        // At its end it may be listed again from the start.
        let listed = d.value().is_some_and(|bytes| bytes > 0);
        self.processes.description(descriptor).target = Target::Directory { path, listed };
    }

    pub(super) fn chdir(&mut self, d: &Done<'_>) {
        if d.value() != Some(0) {
            return self.named(d, OperationKind::Stat, None, 0, |_| ());
        }
        let Some(name) = string(d.argument(0)) else { return self.left_out(Why::Incomplete, d.name) };
        let to = joined(self.processes.directory(d.pid), &name);
        if let Some(inside) = self.place.inside(&to) {
            let path = self.world.path(&inside);
            self.world.call(d.thread, d.call(OperationKind::Stat, path));
            self.world.is_directory(path);
        }
        self.processes.change_directory(d.pid, to);
    }

    /// Data that the kernel moves from one descriptor to another: a read and a write.
    pub(super) fn copy(&mut self, d: &Done<'_>) {
        let (from, to, offsets) = match d.name {
            "copy_file_range" => (0, 2, (1, 3)),
            _ => (1, 0, (2, usize::MAX)),
        };
        let moved = d.value().and_then(|value| u32::try_from(value).ok()).unwrap_or(0);
        let mut any = false;
        for (at, place, kind) in
            [(from, offsets.0, OperationKind::Read), (to, offsets.1, OperationKind::Write)]
        {
            let Object::File { handle, descriptor, .. } = self.found(d, at) else { continue };
            any = true;
            // `[4096] => [8192]`: the offset before and after.
            let text = d.arguments.get(place).copied().unwrap_or(b"NULL");
            let given = text.strip_prefix(b"[").and_then(|text| {
                let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
                number(&text[..end])
            });
            let description = self.processes.description(descriptor);
            let offset = match given {
                Some(offset) => offset.cast_unsigned(),
                None => {
                    let at = description.position;
                    description.position += u64::from(moved);
                    at
                }
            };
            if kind == OperationKind::Write {
                let flags = OpenFlags { write: true, ..OpenFlags::default() };
                self.world.used_before(handle, Flags::of(flags));
            }
            if d.error() == 0 && moved > 0 {
                self.world.call(d.thread, Call { offset, length: moved, moved, ..d.on_handle(kind, handle) });
            }
        }
        if !any {
            self.left_out(Why::Elsewhere, d.name);
        }
    }
}
