//! The calls of a check, each kept in words, so that a failure says what was asked and what came.

use std::ffi::CString;
use std::fmt::Debug;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::thread::ScopedJoinHandle;

use rustix::fs::{self, AtFlags, Gid, Mode, OFlags, RawDir, RenameFlags, Stat, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use crate::Stop;

/// What came of a part of a check.
pub(super) type Tried<T = ()> = Result<T, Stop>;

/// A call that was made, and its answer.
#[must_use]
pub(super) struct Asked<T> {
    what: String,
    answer: Result<T, Errno>,
}

impl<T> Asked<T> {
    pub(super) fn new(what: String, answer: Result<T, Errno>) -> Self {
        Self { what, answer }
    }

    /// The call must succeed.
    pub(super) fn ok(self) -> Tried<T> {
        self.answer.map_err(|error| Stop::failed(self.what, name(error)))
    }

    /// The call must fail with one of these errors.
    pub(super) fn fails(self, expected: &[Errno]) -> Tried {
        let came = match self.answer {
            Ok(_) => "success".to_owned(),
            Err(error) if expected.contains(&error) => return Ok(()),
            Err(error) => name(error),
        };
        let expected: Vec<String> = expected.iter().map(|error| name(*error)).collect();
        Err(Stop::failed(self.what, format!("{came}, not {}", expected.join(" or "))))
    }

    /// The call must succeed, unless the file system does not offer what it asks for.
    pub(super) fn offered(self) -> Tried<T> {
        match self.answer {
            Err(error @ (Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::NOTTY)) => {
                Err(Stop::not_applicable(format!("{}: {}", self.what, name(error))))
            }
            answer => Asked { what: self.what, answer }.ok(),
        }
    }

    /// Whether the call succeeded.
    pub(super) fn answer(self) -> Result<T, Errno> {
        self.answer
    }
}

/// `what` must be `expected`.
pub(super) fn same<T: PartialEq + Debug>(what: &str, came: T, expected: T) -> Tried {
    holds(came == expected, what, || format!("{came:?}, not {expected:?}"))
}

/// `condition` must hold of `what`.
pub(super) fn holds(condition: bool, what: &str, came: impl FnOnce() -> String) -> Tried {
    if condition { Ok(()) } else { Err(Stop::failed(what, came())) }
}

/// The time of `what` must have been marked: be later than before.
pub(super) fn later(what: &str, before: i128, after: i128) -> Tried {
    holds(after > before, what, || "not later".to_owned())
}

/// The name of an error as manuals have it.
pub(super) fn name(error: Errno) -> String {
    let names = [
        (Errno::ACCESS, "EACCES"),
        (Errno::AGAIN, "EAGAIN"),
        (Errno::BADF, "EBADF"),
        (Errno::BUSY, "EBUSY"),
        (Errno::DEADLK, "EDEADLK"),
        (Errno::DQUOT, "EDQUOT"),
        (Errno::EXIST, "EEXIST"),
        (Errno::FBIG, "EFBIG"),
        (Errno::INVAL, "EINVAL"),
        (Errno::IO, "EIO"),
        (Errno::ISDIR, "EISDIR"),
        (Errno::LOOP, "ELOOP"),
        (Errno::MLINK, "EMLINK"),
        (Errno::NAMETOOLONG, "ENAMETOOLONG"),
        (Errno::NODATA, "ENODATA"),
        (Errno::NOENT, "ENOENT"),
        (Errno::NOLCK, "ENOLCK"),
        (Errno::NOSPC, "ENOSPC"),
        (Errno::NOSYS, "ENOSYS"),
        (Errno::NOTDIR, "ENOTDIR"),
        (Errno::NOTEMPTY, "ENOTEMPTY"),
        (Errno::NXIO, "ENXIO"),
        (Errno::OPNOTSUPP, "EOPNOTSUPP"),
        (Errno::OVERFLOW, "EOVERFLOW"),
        (Errno::PERM, "EPERM"),
        (Errno::ROFS, "EROFS"),
        (Errno::SPIPE, "ESPIPE"),
        (Errno::STALE, "ESTALE"),
        (Errno::TIMEDOUT, "ETIMEDOUT"),
        (Errno::TXTBSY, "ETXTBSY"),
        (Errno::XDEV, "EXDEV"),
    ];
    names
        .iter()
        .find(|(known, _)| *known == error)
        .map_or_else(|| error.to_string(), |(_, name)| (*name).to_owned())
}

/// A second user and group, who own nothing: the ids of no account on common systems.
pub(super) const STRANGER: u32 = 65_531;
/// A group that a user may be added to.
pub(super) const OTHER_GROUP: u32 = 65_532;

/// Read and write for the owner, read for all others.
pub(super) const USUAL: u32 = 0o644;

/// A directory that names are below.
#[derive(Debug)]
pub struct Here {
    pub(super) dir: OwnedFd,
}

fn shown(name: &[u8]) -> String {
    let text: String = name.escape_ascii().take(60).map(char::from).collect();
    if name.len() > 60 { format!("\"{text}…\" ({} bytes)", name.len()) } else { format!("\"{text}\"") }
}

impl Here {
    pub(super) fn open(&self, name: impl AsRef<[u8]>, flags: OFlags, mode: u32) -> Asked<OwnedFd> {
        let name = name.as_ref();
        let what = format!("open({}, {})", shown(name), flags_in_words(flags));
        Asked::new(what, fs::openat(&self.dir, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(mode)))
    }

    /// Opens an existing file for reading and writing.
    pub(super) fn edit(&self, name: impl AsRef<[u8]>) -> Tried<OwnedFd> {
        self.open(name, OFlags::RDWR, 0).ok()
    }

    /// A new file that is open for reading and writing.
    pub(super) fn create(&self, name: impl AsRef<[u8]>) -> Tried<OwnedFd> {
        self.open(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, USUAL).ok()
    }

    /// A new file with data.
    pub(super) fn file(&self, name: impl AsRef<[u8]>, data: &[u8]) -> Tried {
        let file = self.create(name)?;
        write_all(&file, data, 0)
    }

    /// What is in a file.
    pub(super) fn content(&self, name: impl AsRef<[u8]>) -> Tried<Vec<u8>> {
        let file = self.open(name, OFlags::RDONLY, 0).ok()?;
        read_to_end(&file)
    }

    pub(super) fn mkdir(&self, name: impl AsRef<[u8]>) -> Asked<()> {
        self.mkdir_with(name, 0o755)
    }

    pub(super) fn mkdir_with(&self, name: impl AsRef<[u8]>, mode: u32) -> Asked<()> {
        let name = name.as_ref();
        Asked::new(format!("mkdir({})", shown(name)), fs::mkdirat(&self.dir, name, Mode::from_raw_mode(mode)))
    }

    pub(super) fn rmdir(&self, name: impl AsRef<[u8]>) -> Asked<()> {
        let name = name.as_ref();
        Asked::new(format!("rmdir({})", shown(name)), fs::unlinkat(&self.dir, name, AtFlags::REMOVEDIR))
    }

    pub(super) fn unlink(&self, name: impl AsRef<[u8]>) -> Asked<()> {
        let name = name.as_ref();
        Asked::new(format!("unlink({})", shown(name)), fs::unlinkat(&self.dir, name, AtFlags::empty()))
    }

    pub(super) fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Asked<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let what = format!("rename({}, {})", shown(from), shown(to));
        Asked::new(what, fs::renameat(&self.dir, from, &self.dir, to))
    }

    pub(super) fn rename_with(&self, from: &str, to: &str, flags: RenameFlags) -> Asked<()> {
        let what = format!("renameat2(\"{from}\", \"{to}\", {flags:?})");
        Asked::new(what, fs::renameat_with(&self.dir, from, &self.dir, to, flags))
    }

    pub(super) fn link(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Asked<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        let what = format!("link({}, {})", shown(from), shown(to));
        Asked::new(what, fs::linkat(&self.dir, from, &self.dir, to, AtFlags::empty()))
    }

    pub(super) fn symlink(&self, target: impl AsRef<[u8]>, name: impl AsRef<[u8]>) -> Asked<()> {
        let (target, name) = (target.as_ref(), name.as_ref());
        let what = format!("symlink({}, {})", shown(target), shown(name));
        Asked::new(what, fs::symlinkat(target, &self.dir, name))
    }

    pub(super) fn readlink(&self, name: &str) -> Asked<CString> {
        Asked::new(format!("readlink(\"{name}\")"), fs::readlinkat(&self.dir, name, Vec::new()))
    }

    /// Attributes of what a name stands for, through symbolic links.
    pub(super) fn stat(&self, name: impl AsRef<[u8]>) -> Asked<Stat> {
        let name = name.as_ref();
        Asked::new(format!("stat({})", shown(name)), fs::statat(&self.dir, name, AtFlags::empty()))
    }

    pub(super) fn lstat(&self, name: impl AsRef<[u8]>) -> Asked<Stat> {
        let name = name.as_ref();
        Asked::new(format!("lstat({})", shown(name)), fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    pub(super) fn chmod(&self, name: &str, mode: u32) -> Asked<()> {
        let what = format!("chmod(\"{name}\", {mode:04o})");
        Asked::new(what, fs::chmodat(&self.dir, name, Mode::from_raw_mode(mode), AtFlags::empty()))
    }

    pub(super) fn chown(&self, name: &str, owner: Option<u32>, group: Option<u32>) -> Asked<()> {
        let ids = [owner, group].map(|id| id.map_or_else(|| "-1".to_owned(), |id| id.to_string()));
        let what = format!("chown(\"{name}\", {}, {})", ids[0], ids[1]);
        let (owner, group) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
        Asked::new(what, fs::chownat(&self.dir, name, owner, group, AtFlags::empty()))
    }

    /// Sets the times of access and of modification.
    pub(super) fn set_times(&self, name: &str, access: Timespec, modification: Timespec) -> Asked<()> {
        let what = format!("utimensat(\"{name}\", {}, {})", time(&access), time(&modification));
        let times = Timestamps { last_access: access, last_modification: modification };
        Asked::new(what, fs::utimensat(&self.dir, name, &times, AtFlags::empty()))
    }

    pub(super) fn truncate(&self, name: &str, size: u64) -> Tried {
        let file = self.open(name, OFlags::WRONLY, 0).ok()?;
        resize(&file, size).ok()
    }

    /// The names in a directory, as they are listed, without `.` and `..`.
    pub(super) fn names(&self, directory: &str) -> Tried<Vec<Vec<u8>>> {
        let opened = self.open(directory, OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
        let entries = listed(&opened)?;
        Ok(entries.into_iter().map(|entry| entry.name).filter(|name| name != b"." && name != b"..").collect())
    }

    /// Does something as another user, in a thread of its own, since a thread may change its ids alone.
    pub(super) fn as_user<T: Send>(
        &self,
        user: u32,
        groups: &[u32],
        work: impl FnOnce() -> Tried<T> + Send,
    ) -> Tried<T> {
        let Some((group, _)) = groups.split_first() else {
            return Err(Stop::not_applicable("a user has a group"));
        };
        let become_user = || {
            let all: Vec<Gid> = groups.iter().map(|group| Gid::from_raw(*group)).collect();
            rustix::thread::set_thread_groups(&all)?;
            let group = Gid::from_raw(*group);
            rustix::thread::set_thread_res_gid(group, group, group)?;
            let user = Uid::from_raw(user);
            rustix::thread::set_thread_res_uid(user, user, user)
        };
        let asked = format!("become user {user}");
        std::thread::scope(|scope| {
            joined(scope.spawn(|| {
                Asked::new(asked, become_user()).offered()?;
                work()
            }))
        })
    }
}

/// What a thread of a check found.
pub(super) fn joined<T>(thread: ScopedJoinHandle<'_, Tried<T>>) -> Tried<T> {
    thread.join().unwrap_or_else(|_| Err(Stop::failed("a thread of the check", "it died")))
}

/// An entry of a directory.
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) inode: u64,
    pub(super) kind: fs::FileType,
    /// The position after it, for `lseek`.
    pub(super) next: u64,
}

/// All entries from the descriptor's position on.
pub(super) fn listed(directory: &OwnedFd) -> Tried<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut listing = RawDir::new(directory, &mut buffer);
    while let Some(entry) = listing.next() {
        let entry = Asked::new("getdents".to_owned(), entry).ok()?;
        entries.push(Entry {
            name: entry.file_name().to_bytes().to_vec(),
            inode: entry.ino(),
            kind: entry.file_type(),
            next: entry.next_entry_cookie(),
        });
    }
    Ok(entries)
}

pub(super) fn write(file: impl AsFd, data: &[u8], offset: u64) -> Asked<usize> {
    let answer = rustix::io::pwrite(file, data, offset);
    Asked::new(format!("pwrite of {} bytes at {offset}", data.len()), answer)
}

/// Writes all data; a short write is continued.
pub(super) fn write_all(file: impl AsFd, mut data: &[u8], mut offset: u64) -> Tried {
    while !data.is_empty() {
        let written = write(&file, data, offset).ok()?;
        holds(written > 0, "pwrite", || format!("0 of {} bytes, without an error", data.len()))?;
        data = &data[written.min(data.len())..];
        offset += written as u64;
    }
    Ok(())
}

/// Reads `length` bytes, fewer only at the end of the file.
pub(super) fn read(file: impl AsFd, offset: u64, length: usize) -> Tried<Vec<u8>> {
    let mut data = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let answer = rustix::io::pread(&file, &mut data[filled..], offset + filled as u64);
        let count = Asked::new(format!("pread of {length} bytes at {offset}"), answer).ok()?;
        if count == 0 {
            break;
        }
        filled += count;
    }
    data.truncate(filled);
    Ok(data)
}

pub(super) fn read_to_end(file: impl AsFd) -> Tried<Vec<u8>> {
    let size = status(&file)?.st_size;
    // One byte more than the size shows whether the end is where the size says.
    read(file, 0, usize::try_from(size).unwrap_or(0) + 1)
}

pub(super) fn resize(file: impl AsFd, size: u64) -> Asked<()> {
    Asked::new(format!("ftruncate({size})"), fs::ftruncate(file, size))
}

pub(super) fn status(file: impl AsFd) -> Tried<Stat> {
    Asked::new("fstat".to_owned(), fs::fstat(file)).ok()
}

pub(super) fn sync(file: impl AsFd) -> Tried {
    Asked::new("fsync".to_owned(), fs::fsync(file)).ok()
}

/// Time in words.
fn time(time: &Timespec) -> String {
    match time.tv_nsec {
        fs::UTIME_NOW => "UTIME_NOW".to_owned(),
        fs::UTIME_OMIT => "UTIME_OMIT".to_owned(),
        nanoseconds => format!("{}.{nanoseconds:09}", time.tv_sec),
    }
}

fn flags_in_words(flags: OFlags) -> String {
    let access = match flags & OFlags::ACCMODE {
        OFlags::WRONLY => "O_WRONLY",
        OFlags::RDWR => "O_RDWR",
        _ => "O_RDONLY",
    };
    let named = [
        (OFlags::CREATE, "O_CREAT"),
        (OFlags::EXCL, "O_EXCL"),
        (OFlags::TRUNC, "O_TRUNC"),
        (OFlags::APPEND, "O_APPEND"),
        (OFlags::DIRECTORY, "O_DIRECTORY"),
        (OFlags::NOFOLLOW, "O_NOFOLLOW"),
        (OFlags::NONBLOCK, "O_NONBLOCK"),
        (OFlags::DIRECT, "O_DIRECT"),
        (OFlags::SYNC, "O_SYNC"),
    ];
    let others = named.iter().filter(|(flag, _)| flags.contains(*flag)).map(|(_, name)| *name);
    std::iter::once(access).chain(others).collect::<Vec<_>>().join("|")
}

/// When a file's data or attributes changed, in nanoseconds since 1970.
pub(super) fn modified(status: &Stat) -> i128 {
    nanoseconds(status.st_mtime, status.st_mtime_nsec)
}

/// When a file's attributes changed, in nanoseconds since 1970.
pub(super) fn changed(status: &Stat) -> i128 {
    nanoseconds(status.st_ctime, status.st_ctime_nsec)
}

fn nanoseconds(seconds: i64, part: u64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(part)
}

/// Waits until a change now and one before have different times, on file systems that count in ticks.
pub(super) fn tick() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}
