//! The log of changes beside the state file (`--durability`): what is answered as stable is in it before the reply leaves.
//!
//! A change appends one record to a buffer while it has its files locked, so that records of a file are in the order of its
//! changes. Before a thread sends replies it has the buffer written, as one frame, and where the power may go synchronised:
//! whoever comes meanwhile waits, and finds its own records written with the next frame (group commit). Room in the file is
//! taken before anything changes: a disk that is full refuses changes, and none that was made goes unrecorded.
//!
//! The log `FILE.log.N` belongs to the state file with the number N. When it is longer than what it describes, the state file is
//! written again, with the next number and an empty log.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::error::ServerError;
use crate::fs::FsError;
use crate::shared::Shared;
use crate::snapshot::{self, Meta};
use crate::thread::PerThread;

pub(crate) mod frame;
#[cfg(test)]
mod tests;

pub use frame::LogError;
use frame::{FRAME, HEADER};

/// What survives when the server does not end as it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Nothing since the state file was written: it is at the end only.
    #[default]
    None,
    /// The end of the process: changes are handed to the kernel before they are answered.
    Process,
    /// The end of power: changes are on the disk (`fdatasync`) before they are answered.
    Power,
}

/// Space taken in the file in advance.
const STEP: u64 = 16 << 20;
/// Length of a log that is not worth writing the state file for.
const SHORT: u64 = 64 << 20;
/// Length of the buffer at which a long change has it written.
const BUFFER: usize = 8 << 20;
/// What a record takes beside its content, at most: its length, and a frame of its own.
const RECORD: u64 = 4 + FRAME as u64;

/// The log.
#[derive(Debug)]
pub(crate) struct Wal {
    state: PathBuf,
    durability: Durability,
    /// Held for reading by every change, for writing while the state file is written.
    changes: RwLock<()>,
    buffer: Mutex<Buffer>,
    current: Mutex<Current>,
    space: Mutex<Space>,
    /// All records that end here or before are safe. Places count bytes of records since the start.
    safe: AtomicU64,
    /// What the replies of each thread speak of, by its end.
    wanted: PerThread<AtomicU64>,
    /// The file cannot be written any more.
    broken: AtomicBool,
    /// Names of clients in the log and the state file.
    clients: Mutex<BTreeSet<Vec<u8>>>,
    /// After how many changes of those to be known they were these.
    clients_noted: AtomicU64,
}

/// Records that are not written yet, after room for the head of a frame.
#[derive(Debug)]
struct Buffer {
    bytes: Vec<u8>,
    /// Place after the last record.
    end: u64,
    /// Room that was taken for them.
    room: u64,
}

/// The file, as those who write it have it.
#[derive(Debug)]
struct Current {
    file: File,
    number: u64,
    salt: u64,
    at: u64,
    /// Bytes of the state file.
    image: u64,
}

/// The file's space on its disk.
#[derive(Debug)]
struct Space {
    file: File,
    /// Bytes that are written or promised.
    needed: u64,
    allocated: u64,
    /// It was said that there is none left.
    full: bool,
}

/// Room in the log for a change that is about to be made. While there is any, the state file is not written.
#[derive(Debug)]
pub(crate) struct Room<'w> {
    wal: &'w Wal,
    left: u64,
    _changes: RwLockReadGuard<'w, ()>,
}

/// Path of the log with a number.
pub(crate) fn path(state: &Path, number: u64) -> PathBuf {
    let mut path = state.as_os_str().to_owned();
    path.push(format!(".log.{number}"));
    PathBuf::from(path)
}

/// The logs beside a state file, with their numbers.
pub(crate) fn logs(state: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut logs = Vec::new();
    let Some(name) = state.file_name() else { return Ok(logs) };
    let directory = state.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = match std::fs::read_dir(directory) {
        // The state file cannot be written there, which is an error of its own.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(logs),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let found = entry.file_name();
        let rest = found.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        let digits = rest.and_then(|rest| rest.strip_prefix(b".log."));
        let log: Option<u64> = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        logs.extend(log.map(|log| (log, entry.path())));
    }
    Ok(logs)
}

/// Whether a log has more than its beginning.
pub(crate) fn has_changes(log: &Path) -> bool {
    std::fs::metadata(log).is_ok_and(|found| found.len() > HEADER)
}

/// Removes logs of other numbers than `number`: of a start or an end that was interrupted.
pub(crate) fn remove_others(state: &Path, number: Option<u64>) -> io::Result<()> {
    let others = logs(state)?.into_iter().filter(|(log, _)| Some(*log) != number);
    others.map(|(_, path)| path).try_for_each(std::fs::remove_file)
}

impl Current {
    /// A new log, on the disk. `image`: bytes of the state file that it will belong to.
    fn create(state: &Path, number: u64, salt: u64) -> io::Result<Self> {
        let file = File::create(path(state, number))?;
        file.write_all_at(&frame::header(number, salt), 0)?;
        file.sync_all()?;
        Ok(Self { file, number, salt, at: HEADER, image: 0 })
    }
}

impl Space {
    fn of(current: &Current) -> io::Result<Self> {
        Ok(Self { file: current.file.try_clone()?, needed: HEADER, allocated: HEADER, full: false })
    }

    fn take(&mut self, bytes: u64, state: &Path) -> Result<(), FsError> {
        let needed = self.needed.saturating_add(bytes);
        if needed > self.allocated {
            // Near the end of the disk, what is needed and no more.
            let extended = self.extend(needed.saturating_add(STEP)).or_else(|_| self.extend(needed));
            if let Err(error) = extended {
                if !std::mem::replace(&mut self.full, true) {
                    log::error!(
                        "no room for the log of {}: {error}; changes are refused until there is",
                        state.display()
                    );
                }
                return Err(FsError::NoSpace);
            }
            self.full = false;
        }
        self.needed = needed;
        Ok(())
    }

    fn extend(&mut self, to: u64) -> Result<(), Errno> {
        match fallocate(&self.file, FallocateFlags::empty(), 0, to) {
            Ok(()) => self.allocated = to,
            // This disk promises nothing: a write that fails is noticed then.
            Err(Errno::OPNOTSUPP) => self.allocated = u64::MAX,
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl Wal {
    /// Starts a log with `number`; `save` writes the state file of this number and returns its length. Before that, nothing is
    /// changed on the disk that a start after a failure would take for valid.
    pub(crate) fn start<E: From<io::Error>>(
        state: &Path,
        durability: Durability,
        (number, salt): (u64, u64),
        clients: &[Vec<u8>],
        save: impl FnOnce() -> Result<u64, E>,
    ) -> Result<Self, E> {
        let mut current = Current::create(state, number, salt)?;
        current.image = save()?;
        remove_others(state, Some(number))?;
        let space = Space::of(&current)?;
        Ok(Self {
            state: state.to_owned(),
            durability,
            changes: RwLock::new(()),
            buffer: Mutex::new(Buffer { bytes: vec![0; FRAME], end: 0, room: 0 }),
            current: Mutex::new(current),
            space: Mutex::new(space),
            safe: AtomicU64::new(0),
            wanted: PerThread::default(),
            broken: AtomicBool::new(false),
            clients: Mutex::new(clients.iter().cloned().collect()),
            clients_noted: AtomicU64::new(0),
        })
    }

    /// Takes room for a change of at most `bytes`.
    pub(crate) fn room(&self, bytes: u64) -> Result<Room<'_>, FsError> {
        let changes = self.changes.read();
        if self.broken.load(Ordering::Relaxed) {
            return Err(FsError::Io);
        }
        let left = bytes + RECORD;
        self.space.lock().take(left, &self.state)?;
        Ok(Room { wal: self, left, _changes: changes })
    }

    /// The replies of this thread speak of what others have changed: a repetition, or nothing was left to be made stable.
    pub(crate) fn require_all(&self) {
        let end = self.buffer.lock().end;
        self.wanted.mine().fetch_max(end, Ordering::Relaxed);
    }

    /// Makes safe what the replies of this thread speak of. `false`: it is not, and they must not be sent.
    #[inline]
    pub(crate) fn flush(&self) -> bool {
        let wanted = self.wanted.mine().load(Ordering::Relaxed);
        wanted <= self.safe.load(Ordering::Acquire) || self.flush_to(wanted)
    }

    #[inline(never)]
    fn flush_to(&self, wanted: u64) -> bool {
        let mut current = self.current.lock();
        if wanted <= self.safe.load(Ordering::Acquire) {
            return true;
        }
        let written = !self.broken.load(Ordering::Relaxed) && self.write(&mut current);
        if !written {
            // Their connection is closed; what comes next on this thread may be sent.
            self.wanted.mine().store(0, Ordering::Relaxed);
        }
        written
    }

    fn write(&self, current: &mut Current) -> bool {
        let (mut bytes, end, room) = {
            let mut buffer = self.buffer.lock();
            let bytes = std::mem::replace(&mut buffer.bytes, vec![0; FRAME]);
            (bytes, buffer.end, std::mem::take(&mut buffer.room))
        };
        frame::seal(&mut bytes, current.salt, current.at);
        let written = current.file.write_all_at(&bytes, current.at).and_then(|()| match self.durability {
            Durability::Power => current.file.sync_data(),
            Durability::Process | Durability::None => Ok(()),
        });
        if let Err(error) = written {
            self.broken.store(true, Ordering::Relaxed);
            log::error!(
                "cannot write {}: {error}; changes are refused from now on, restart the server",
                path(&self.state, current.number).display()
            );
            return false;
        }
        current.at += bytes.len() as u64;
        self.space.lock().needed -= room.saturating_sub(bytes.len() as u64);
        self.safe.store(end, Ordering::Release);
        true
    }

    /// Whether the log is so long that the state file should be written again.
    pub(crate) fn is_long(&self) -> bool {
        let current = self.current.lock();
        current.at > SHORT.max(2 * current.image) && !self.broken.load(Ordering::Relaxed)
    }

    /// Begins an empty log; `save` writes the state file of its number meanwhile and returns its length. Changes wait.
    pub(crate) fn renew<E: From<io::Error>>(
        &self,
        salt: u64,
        save: impl FnOnce(u64, Vec<Vec<u8>>) -> Result<u64, E>,
    ) -> Result<(), E> {
        let clients = self.clients.lock();
        let _changes = self.changes.write();
        let mut current = self.current.lock();
        let number = current.number + 1;
        let mut next = Current::create(&self.state, number, salt)?;
        let mut space = Space::of(&next)?;
        next.image = match save(number, clients.iter().cloned().collect()) {
            Ok(image) => image,
            Err(error) => {
                // A leftover: the next start removes it, too.
                let _ = std::fs::remove_file(path(&self.state, number));
                return Err(error);
            }
        };
        // What is in the buffer is in the state file.
        let mut buffer = self.buffer.lock();
        buffer.bytes.truncate(FRAME);
        buffer.room = 0;
        std::mem::swap(&mut *self.space.lock(), &mut space);
        self.safe.store(buffer.end, Ordering::Release);
        let old = std::mem::replace(&mut *current, next);
        if let Err(error) = std::fs::remove_file(path(&self.state, old.number)) {
            log::warn!("{}: {error}", path(&self.state, old.number).display());
        }
        Ok(())
    }

    /// Number of the state file that the log belongs to.
    pub(crate) fn number(&self) -> u64 {
        self.current.lock().number
    }

    /// Notes which clients may reclaim after a crash, when they are others than before `changes` changes.
    pub(crate) fn note_clients(&self, changes: u64, known: impl FnOnce() -> Vec<Vec<u8>>) {
        if self.clients_noted.load(Ordering::Acquire) == changes {
            return;
        }
        let mut noted = self.clients.lock();
        let known: BTreeSet<Vec<u8>> = known().into_iter().collect();
        let differ: Vec<&Vec<u8>> = known.symmetric_difference(&noted).collect();
        if !differ.is_empty() {
            let bytes = differ.iter().map(|name| name.len() as u64 + 16).sum::<u64>() + 16;
            // Without room: the next request tries again.
            let Ok(room) = self.room(bytes) else { return };
            room.append(|out| {
                frame::put_clients(out, differ.iter().map(|name| (known.contains(*name), &name[..])))
            });
        }
        *noted = known;
        self.clients_noted.store(changes, Ordering::Release);
    }
}

/// Writes the state file when that is due.
pub(crate) fn tend(shared: &Shared, salt: u64) {
    let (Some(wal), Some(path)) = (&shared.wal, &shared.config.state) else { return };
    shared.note_clients();
    if wal.is_long() {
        let renewed = wal.renew::<ServerError>(salt, |number, clients| {
            let meta = Meta { instance: shared.instance, number, clients };
            Ok(snapshot::save(path, &shared.exports, &meta)?)
        });
        if let Err(error) = renewed {
            log::error!("the log goes on: {error}");
        }
    }
}

impl Room<'_> {
    /// Appends a record. The change's files are locked.
    pub(crate) fn append(mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        self.add(encode);
    }

    /// Appends one record of several; a long buffer is written.
    pub(crate) fn add(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        let wal = self.wal;
        let mut buffer = wal.buffer.lock();
        let begin = buffer.bytes.len();
        buffer.bytes.extend_from_slice(&[0; 4]);
        encode(&mut buffer.bytes);
        let len = (buffer.bytes.len() - begin) as u64;
        if let Some(place) = buffer.bytes.get_mut(begin..begin + 4) {
            place.copy_from_slice(&(len as u32 - 4).to_le_bytes());
        }
        let used = len - 4 + RECORD;
        debug_assert!(used <= self.left, "{used} of {}", self.left);
        self.left = self.left.saturating_sub(used);
        buffer.room += used;
        buffer.end += len;
        let (end, long) = (buffer.end, buffer.bytes.len() > BUFFER);
        drop(buffer);
        wal.wanted.mine().fetch_max(end, Ordering::Relaxed);
        if long {
            // Whether it could be written is looked at before the reply.
            let _ = wal.flush_to(end);
        }
    }

    /// Whether there is room for this number of bytes.
    pub(crate) fn holds(&self, bytes: u64) -> bool {
        bytes + RECORD <= self.left
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.wal.space.lock().needed -= self.left;
    }
}
