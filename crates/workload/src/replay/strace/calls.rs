//! What each call does to files, descriptors and directories.

use super::line::{decorated, find, number, string};
use super::place::joined;
use super::process::{Descriptor, Target, shares};
use super::{Call, Done, Flags, OperationKind, Outcome, Tracer, Why, known};
use crate::program::flags::OpenFlags;

mod names;

/// What a descriptor of a call stands for.
enum Object {
    File { handle: u32, path: u32, descriptor: Descriptor },
    Directory { path: u32, listed: bool, descriptor: Descriptor },
    Elsewhere,
}

impl Tracer<'_> {
    /// A call has ended.
    pub(super) fn done(&mut self, d: &Done<'_>) {
        use OperationKind as Op;
        if d.result == Outcome::Unknown && !known::ends(d.name) && !known::is_no_file(d.name) {
            if let Some(taken) = d.taken {
                self.processes.put(d.pid, d.number(0).unwrap_or(-1), taken);
            }
            return self.left_out(Why::Incomplete, d.name);
        }
        match d.name {
            "open" => self.open(d, None, 0, self.flags(d, 1)),
            "creat" => {
                let flags =
                    OpenFlags { write_only: true, write: true, truncate: true, ..OpenFlags::default() };
                self.open(d, None, 0, (flags, true));
            }
            "openat" => self.open(d, Some(0), 1, self.flags(d, 2)),
            "openat2" => self.open(d, Some(0), 1, self.flags(d, 2)),
            "close" => self.close(d),
            "dup" => self.duplicate(d, 0, false),
            "dup2" => self.duplicate(d, 0, false),
            "dup3" => self.duplicate(d, 0, d.has(2, "O_CLOEXEC")),
            "fcntl" | "fcntl64" => self.fcntl(d),
            "read" | "readv" => self.data(d, Op::Read, None, false),
            "write" | "writev" => self.data(d, Op::Write, None, false),
            "pread64" | "pread" | "preadv" | "preadv2" => self.data(d, Op::Read, Some(3), false),
            "pwrite64" | "pwrite" | "pwritev" | "pwritev2" => {
                self.data(d, Op::Write, Some(3), d.has(4, "RWF_APPEND"))
            }
            "lseek" | "_llseek" => self.seek(d),
            "fsync" => self.handle_call(d, Op::Fsync),
            "fdatasync" => self.handle_call(d, Op::Fdatasync),
            "ftruncate" | "ftruncate64" => self.ftruncate(d),
            "truncate" | "truncate64" => {
                let size = d.number(1).map_or(u64::MAX, i64::cast_unsigned);
                self.named(d, Op::Truncate, None, 0, |call| call.offset = size);
            }
            "fallocate" => self.allocate(d),
            "stat" | "stat64" | "lstat" | "lstat64" => self.stat(d, None, 0, 1),
            "newfstatat" | "fstatat64" => self.stat(d, Some(0), 1, 2),
            "statx" => self.stat(d, Some(0), 1, 4),
            "fstat" | "fstat64" => self.fstat(d, 1),
            "access" => self.named(d, Op::Access, None, 0, |_| ()),
            "faccessat" | "faccessat2" => self.named(d, Op::Access, Some(0), 1, |_| ()),
            "chmod" => self.named(d, Op::Chmod, None, 0, |call| call.length = mode(d.argument(1))),
            "fchmodat" | "fchmodat2" => {
                self.named(d, Op::Chmod, Some(0), 1, |call| call.length = mode(d.argument(2)))
            }
            "fchmod" => self.by_descriptor(d, Op::Chmod),
            "utime" | "utimes" => self.named(d, Op::Utimes, None, 0, |_| ()),
            "futimesat" | "utimensat" if d.argument(1) == b"NULL" => self.by_descriptor(d, Op::Utimes),
            "futimesat" | "utimensat" => self.named(d, Op::Utimes, Some(0), 1, |_| ()),
            "mkdir" => self.named(d, Op::Mkdir, None, 0, |_| ()),
            "mkdirat" => self.named(d, Op::Mkdir, Some(0), 1, |_| ()),
            "rmdir" => self.named(d, Op::Rmdir, None, 0, |_| ()),
            "unlink" => self.named(d, Op::Unlink, None, 0, |_| ()),
            "unlinkat" => {
                let kind = if d.has(2, "AT_REMOVEDIR") { Op::Rmdir } else { Op::Unlink };
                self.named(d, kind, Some(0), 1, |_| ());
            }
            "rename" => self.two_names(d, Op::Rename, (None, 0), (None, 1)),
            "renameat2" if d.has(4, "RENAME_EXCHANGE") => {
                self.left_out(Why::Unsupported, "renameat2(RENAME_EXCHANGE)")
            }
            // Without the flag it would replace what is there.
            "renameat2" if d.has(4, "RENAME_NOREPLACE") && d.error() != 0 => {
                self.left_out(Why::Unsupported, "renameat2(RENAME_NOREPLACE) that failed");
            }
            "renameat" | "renameat2" => self.two_names(d, Op::Rename, (Some(0), 1), (Some(2), 3)),
            "link" => self.two_names(d, Op::Link, (None, 0), (None, 1)),
            "linkat" => self.two_names(d, Op::Link, (Some(0), 1), (Some(2), 3)),
            "symlink" => self.symlink(d, None, 1),
            "symlinkat" => self.symlink(d, Some(1), 2),
            "readlink" => self.named(d, Op::Readlink, None, 0, |_| ()),
            "readlinkat" => self.named(d, Op::Readlink, Some(0), 1, |_| ()),
            "getdents" | "getdents64" => self.list(d),
            "setxattr" | "lsetxattr" => {
                let length = d.number(3).and_then(|length| u32::try_from(length).ok()).unwrap_or(0);
                self.named(d, Op::Setxattr, None, 0, |call| call.length = length);
            }
            "getxattr" | "lgetxattr" => self.named(d, Op::Getxattr, None, 0, |_| ()),
            "listxattr" | "llistxattr" => self.named(d, Op::Listxattr, None, 0, |_| ()),
            "removexattr" | "lremovexattr" => self.named(d, Op::Removexattr, None, 0, |_| ()),
            "fsetxattr" => self.by_descriptor(d, Op::Setxattr),
            "fgetxattr" => self.by_descriptor(d, Op::Getxattr),
            "flistxattr" => self.by_descriptor(d, Op::Listxattr),
            "fremovexattr" => self.by_descriptor(d, Op::Removexattr),
            "chdir" => self.chdir(d),
            "fchdir" => {
                if let (Some(0), Object::Directory { descriptor, .. }) = (d.value(), self.found(d, 0)) {
                    let to = self.processes.description(descriptor).absolute.clone();
                    self.processes.change_directory(d.pid, to);
                }
            }
            "flock" => self.flock(d),
            "sendfile" | "sendfile64" | "copy_file_range" => self.copy(d),
            "mmap" | "mmap2" => match self.found(d, 4) {
                Object::File { .. } => self.left_out(Why::Unsupported, d.name),
                _ => self.left_out(Why::NoFile, d.name),
            },
            "ioctl" => match self.found(d, 0) {
                Object::Elsewhere => self.left_out(Why::Elsewhere, d.name),
                _ => self.left_out(Why::Unsupported, d.name),
            },
            "execve" | "execveat" => {
                for handle in if d.value() == Some(0) { self.processes.executes(d.pid) } else { Vec::new() } {
                    self.last_closed(d.thread, d.at_ns, handle);
                }
                self.left_out(Why::NoFile, d.name);
            }
            "wait4" | "waitpid" => {
                let ended = d.value().and_then(|pid| u32::try_from(pid).ok());
                if let Some(ended) = ended.and_then(|pid| self.processes.ended(pid)) {
                    self.world.follows(d.thread, ended);
                }
                self.left_out(Why::NoFile, d.name);
            }
            name if known::creates_thread(name) => self.creates(d),
            name if known::is_no_file(name) => self.left_out(Why::NoFile, name),
            name if known::is_unsupported(name) => self.unsupported(d),
            name => self.left_out(Why::Unknown, name),
        }
    }

    /// The path that arguments name: the directory's descriptor, if the call takes one, and the name.
    fn path(&mut self, d: &Done<'_>, directory: Option<usize>, name: usize) -> Option<(u32, Vec<u8>)> {
        let name = string(d.argument(name))?;
        if name.is_empty() {
            return None;
        }
        let base = match directory.map(|at| decorated(d.argument(at))) {
            _ if name.starts_with(b"/") => Vec::new(),
            Some((_, Some(path))) => path.to_vec(),
            None | Some((b"AT_FDCWD", None)) => self.processes.directory(d.pid).to_vec(),
            Some((fd, None)) => {
                let descriptor = self.processes.get(d.pid, number(fd)?)?;
                let description = self.processes.description(descriptor);
                Some(description.absolute.clone()).filter(|path| !path.is_empty())?
            }
        };
        let absolute = joined(&base, &name);
        let inside = self.place.inside(&absolute)?;
        Some((self.world.path(&inside), absolute))
    }

    /// What the descriptor in argument `at` stands for. One that was open before is opened before the replay, if `-y` shows
    /// its path.
    fn found(&mut self, d: &Done<'_>, at: usize) -> Object {
        let (fd, shown) = decorated(d.argument(at));
        let Some(fd) = number(fd) else { return Object::Elsewhere };
        if let Some(descriptor) = self.processes.get(d.pid, fd) {
            return match self.processes.description(descriptor).target {
                Target::File { handle, path } => Object::File { handle, path, descriptor },
                Target::Directory { path, listed } => Object::Directory { path, listed, descriptor },
                Target::Elsewhere => Object::Elsewhere,
            };
        }
        let inside = shown.and_then(|path| self.place.inside(path).map(|inside| (inside, path.to_vec())));
        let Some((inside, absolute)) = inside else { return Object::Elsewhere };
        let path = self.world.path(&inside);
        let lists = d.name.starts_with("getdents") || d.name == "fchdir";
        let target = if lists {
            Target::Directory { path, listed: false }
        } else {
            Target::File { handle: self.world.open_before(d.thread, path), path }
        };
        self.processes.open(d.pid, fd, (target, absolute), false, false);
        self.found(d, at)
    }

    fn flags(&self, d: &Done<'_>, at: usize) -> (OpenFlags, bool) {
        // The flags of openat2 are in a structure.
        let text = d.argument(at);
        let text = find(text, b"flags=").map_or(text, |from| &text[from + b"flags=".len()..]);
        let text = text.split(|byte| matches!(byte, b',' | b'}')).next().unwrap_or_default();
        let has = |flag: &[u8]| text.split(|&byte| byte == b'|').any(|word| word.trim_ascii() == flag);
        let flags = OpenFlags {
            write: has(b"O_RDWR") || has(b"O_WRONLY"),
            write_only: has(b"O_WRONLY"),
            sync: has(b"O_SYNC"),
            dsync: has(b"O_DSYNC"),
            direct: has(b"O_DIRECT"),
            append: has(b"O_APPEND"),
            truncate: has(b"O_TRUNC"),
            exclusive: has(b"O_EXCL"),
        };
        (flags, has(b"O_CREAT"))
    }

    fn open(
        &mut self,
        d: &Done<'_>,
        directory: Option<usize>,
        name: usize,
        (flags, creates): (OpenFlags, bool),
    ) {
        let text = d.arguments.get(name + 1).copied().unwrap_or_default();
        let has = |flag: &[u8]| find(text, flag).is_some();
        let close_on_exec = has(b"O_CLOEXEC");
        let found = self.path(d, directory, name);
        let Some((path, absolute)) = found.filter(|_| !has(b"O_TMPFILE")) else {
            self.left_out(if has(b"O_TMPFILE") { Why::Unsupported } else { Why::Elsewhere }, d.name);
            if let Some(fd) = d.value() {
                let name = string(d.argument(name)).unwrap_or_default();
                let absolute = joined(self.processes.directory(d.pid), &name);
                let gone =
                    self.processes.open(d.pid, fd, (Target::Elsewhere, absolute), false, close_on_exec);
                self.replaced(d, gone);
            }
            return;
        };
        let target = if has(b"O_DIRECTORY") || has(b"O_PATH") {
            // Opening is part of listing it.
            let mut call = d.call(OperationKind::Stat, path);
            if d.error() == 0 {
                self.world.call(d.thread, Call { kind: Some(OperationKind::Stat), ..call });
                if has(b"O_DIRECTORY") {
                    self.world.is_directory(path);
                }
            } else {
                // A directory that is a file is no error of looking at it.
                if i32::from(call.error) == libc::ENOTDIR {
                    call.error = 0;
                }
                self.world.call(d.thread, call);
            }
            Target::Directory { path, listed: false }
        } else {
            let kind = if creates { OperationKind::Create } else { OperationKind::Open };
            let call = Call { flags: Flags::of(flags), ..d.call(kind, path) };
            let handle = self.world.call(d.thread, call);
            Target::File { handle, path }
        };
        if let Some(fd) = d.value() {
            let gone = self.processes.open(d.pid, fd, (target, absolute), flags.append, close_on_exec);
            self.replaced(d, gone);
        }
    }

    /// A descriptor was taken over by another open file, and the old one's handle is gone.
    fn replaced(&mut self, d: &Done<'_>, gone: Option<u32>) {
        if let Some(handle) = gone {
            self.last_closed(d.thread, d.at_ns, handle);
        }
    }

    fn close(&mut self, d: &Done<'_>) {
        let fd = d.number(0).unwrap_or(-1);
        let Some(descriptor) = d.taken.or_else(|| self.processes.take(d.pid, fd)) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        if let Some(handle) = self.processes.release(descriptor) {
            self.world.call(d.thread, d.on_handle(OperationKind::Close, handle));
        }
    }

    fn duplicate(&mut self, d: &Done<'_>, at: usize, close_on_exec: bool) {
        let Some(new) = d.value() else { return self.left_out(Why::Elsewhere, d.name) };
        if Some(new) == d.number(at) {
            return;
        }
        // What is not known is something else afterwards too.
        self.found(d, at);
        let descriptor = d.number(at).and_then(|fd| self.processes.get(d.pid, fd));
        let gone = match descriptor {
            Some(descriptor) => self.processes.put(d.pid, new, Descriptor { close_on_exec, ..descriptor }),
            None => {
                let taken = self.processes.take(d.pid, new);
                taken.and_then(|taken| self.processes.release(taken))
            }
        };
        self.replaced(d, gone);
    }

    fn fcntl(&mut self, d: &Done<'_>) {
        match d.argument(1) {
            b"F_DUPFD" => self.duplicate(d, 0, false),
            b"F_DUPFD_CLOEXEC" => self.duplicate(d, 0, true),
            b"F_SETFD" => {
                let on = d.has(2, "FD_CLOEXEC");
                self.processes.set_close_on_exec(d.pid, d.number(0).unwrap_or(-1), on);
            }
            b"F_SETFL" => {
                if let Object::File { descriptor, .. } = self.found(d, 0) {
                    let append = d.has(2, "O_APPEND");
                    if self.processes.description(descriptor).append != append {
                        self.left_out(Why::Unsupported, "fcntl(F_SETFL, O_APPEND)");
                    }
                }
            }
            command @ (b"F_SETLK" | b"F_SETLKW" | b"F_OFD_SETLK" | b"F_OFD_SETLKW") => {
                let name = format!("fcntl({})", String::from_utf8_lossy(command));
                match self.found(d, 0) {
                    Object::File { handle, .. } => self.record_lock(d, handle, command, &name),
                    _ => self.left_out(Why::Elsewhere, &name),
                }
            }
            _ => self.left_out(Why::NoFile, "fcntl"),
        }
    }

    /// Locks of an open file description that begin at the start of the file can be replayed. Those that a process owns
    /// cannot: the replay is one process.
    fn record_lock(&mut self, d: &Done<'_>, handle: u32, command: &[u8], name: &str) {
        let lock = d.argument(2);
        let length = field(lock, b"l_len=").and_then(|length| u32::try_from(length).ok());
        let begins = field(lock, b"l_start=") == Some(0) && find(lock, b"SEEK_SET").is_some();
        let Some(length) = length.filter(|_| begins && command.starts_with(b"F_OFD") && d.error() == 0)
        else {
            return self.left_out(Why::Unsupported, name);
        };
        let kind = if find(lock, b"F_UNLCK").is_some() { OperationKind::Unlock } else { OperationKind::Lock };
        let mut call = Call { length, ..d.on_handle(kind, handle) };
        if find(lock, b"F_WRLCK").is_some() {
            call.flags.0 |= Flags::EXCLUSIVE;
        }
        self.world.call(d.thread, call);
    }

    fn flock(&mut self, d: &Done<'_>) {
        let Object::File { handle, .. } = self.found(d, 0) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        if d.error() != 0 {
            return self.left_out(Why::Unsupported, "flock that failed");
        }
        let kind = if d.has(1, "LOCK_UN") { OperationKind::Unlock } else { OperationKind::Lock };
        let mut call = d.on_handle(kind, handle);
        if d.has(1, "LOCK_EX") {
            call.flags.0 |= Flags::EXCLUSIVE;
        }
        self.world.call(d.thread, call);
    }

    /// A read or write; `offset` is the argument that says where, else it is where the last one ended.
    fn data(&mut self, d: &Done<'_>, kind: OperationKind, offset: Option<usize>, appends: bool) {
        let (handle, descriptor) = match self.found(d, 0) {
            Object::File { handle, descriptor, .. } => (handle, descriptor),
            Object::Directory { .. } | Object::Elsewhere => return self.left_out(Why::Elsewhere, d.name),
        };
        let moved = d.value().and_then(|value| u32::try_from(value).ok()).unwrap_or(0);
        let description = self.processes.description(descriptor);
        let explicit = offset.and_then(|at| d.number(at)).filter(|&at| at >= 0).map(i64::cast_unsigned);
        let appends = kind == OperationKind::Write && (description.append || appends);
        let at = explicit.unwrap_or(description.position);
        if explicit.is_none() {
            description.position += u64::from(moved);
        }
        let length = if d.name.contains('v') {
            // The sizes of the pieces.
            lengths(d.argument(1)).max(moved)
        } else {
            d.number(2).and_then(|length| u32::try_from(length).ok()).unwrap_or(moved)
        };
        let mut call = Call { offset: at, length, moved, ..d.on_handle(kind, handle) };
        if appends {
            call.offset = u64::MAX;
            call.flags.0 |= Flags::APPENDS;
        }
        if kind == OperationKind::Write {
            let flags = OpenFlags { write: true, append: appends, ..OpenFlags::default() };
            self.world.used_before(handle, Flags::of(flags));
        }
        self.world.call(d.thread, call);
    }

    fn seek(&mut self, d: &Done<'_>) {
        let Object::File { handle, descriptor, .. } = self.found(d, 0) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        // The old call of 32-bit systems returns its result through a pointer.
        let value = if d.name == "_llseek" {
            number(
                d.argument(2)
                    .trim_ascii_start()
                    .strip_prefix(b"[")
                    .unwrap_or_default()
                    .strip_suffix(b"]")
                    .unwrap_or_default(),
            )
        } else {
            d.value()
        };
        let Some(to) = value.and_then(|value| u64::try_from(value).ok()) else {
            return self.left_out(Why::Unsupported, "lseek that failed");
        };
        self.processes.description(descriptor).position = to;
        if d.has(2, "SEEK_DATA") || d.has(2, "SEEK_HOLE") {
            self.left_out(Why::Unsupported, "lseek(SEEK_DATA or SEEK_HOLE)");
        } else if d.has(2, "SEEK_END") && d.number(1) == Some(0) {
            self.world.size_of_handle(handle, to);
        }
    }

    fn handle_call(&mut self, d: &Done<'_>, kind: OperationKind) {
        match self.found(d, 0) {
            Object::File { handle, .. } => {
                self.world.call(d.thread, d.on_handle(kind, handle));
            }
            Object::Directory { .. } => {
                self.left_out(Why::Unsupported, &format!("{} of a directory", d.name))
            }
            Object::Elsewhere => self.left_out(Why::Elsewhere, d.name),
        }
    }

    fn ftruncate(&mut self, d: &Done<'_>) {
        let Object::File { handle, .. } = self.found(d, 0) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        let offset = d.number(1).map_or(u64::MAX, i64::cast_unsigned);
        self.world.used_before(handle, Flags::of(OpenFlags { write: true, ..OpenFlags::default() }));
        self.world.call(d.thread, Call { offset, ..d.on_handle(OperationKind::Truncate, handle) });
    }

    fn allocate(&mut self, d: &Done<'_>) {
        let Object::File { handle, .. } = self.found(d, 0) else {
            return self.left_out(Why::Elsewhere, d.name);
        };
        let (offset, length) = (d.number(2), d.number(3).and_then(|length| u32::try_from(length).ok()));
        let (Some(offset), Some(length), b"0") = (offset, length, d.argument(1)) else {
            return self.left_out(Why::Unsupported, "fallocate with a mode");
        };
        self.world.used_before(handle, Flags::of(OpenFlags { write: true, ..OpenFlags::default() }));
        let call =
            Call { offset: offset.cast_unsigned(), length, ..d.on_handle(OperationKind::Allocate, handle) };
        self.world.call(d.thread, call);
    }

    fn creates(&mut self, d: &Done<'_>) {
        let Some(child) = d.value().and_then(|pid| u32::try_from(pid).ok()) else { return };
        if !self.processes.knows(child) {
            let thread = self.world.thread(child.to_string());
            let arguments = d.arguments.join(&b", "[..]);
            self.child(d.pid, child, thread, shares(&arguments));
        }
    }

    /// A call that cannot be replayed, if it is one on what is replayed.
    fn unsupported(&mut self, d: &Done<'_>) {
        let text = string(d.argument(0));
        let why = match &text {
            Some(name) if self.place.inside(&joined(self.processes.directory(d.pid), name)).is_none() => {
                Why::Elsewhere
            }
            Some(_) => Why::Unsupported,
            None if d.number(0).is_some() && matches!(self.found(d, 0), Object::Elsewhere) => Why::Elsewhere,
            None => Why::Unsupported,
        };
        self.left_out(why, d.name);
    }
}

/// Permissions in octal form.
fn mode(text: &[u8]) -> u32 {
    let text = std::str::from_utf8(text).unwrap_or_default();
    u32::from_str_radix(text, 8).unwrap_or(0o644)
}

/// The number after `key` in a structure.
fn field(text: &[u8], key: &[u8]) -> Option<i64> {
    let text = &text[find(text, key)? + key.len()..];
    let end =
        text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-').unwrap_or(text.len());
    number(&text[..end])
}

/// The sum of the lengths of an array of pieces.
fn lengths(mut text: &[u8]) -> u32 {
    let mut sum = 0u32;
    while let Some(at) = find(text, b"iov_len=") {
        let length = field(text, b"iov_len=").and_then(|length| u32::try_from(length).ok());
        sum = sum.saturating_add(length.unwrap_or(0));
        text = &text[at + b"iov_len=".len()..];
    }
    sum
}
