//! The files of a fileset as workers see them: names, sizes, and which exist at this moment.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use crate::content::{self, BLOCK, Stamp};
use crate::model::Fileset;
use crate::random::{Random, mix};

mod generations;
mod layout;
mod path;
mod promises;
mod sizes;
#[cfg(test)]
mod tests;

use generations::Generations;
pub(crate) use generations::{Seen, WriteClaim};
use layout::Layout;
pub use path::PathBuffer;
use promises::Promises;
pub(crate) use promises::{NameState, Promised, Rules};
use sizes::Sizes;

/// The low bits of a file's word say whether it exists; the others count who uses it.
const STATE: u32 = 0b11;
const ABSENT: u32 = 0;
const PRESENT: u32 = 1;
/// Present under its other name.
const RENAMED: u32 = 2;
/// Claimed by a worker that is about to create, rename or remove it.
const BUSY: u32 = 3;
const USER: u32 = 4;

/// Draws after which [`FileTable::random`] looks for a file one by one.
const DRAWS: u32 = 1000;

/// The files of one fileset of one client (or of all clients, when shared). Workers of many threads use it at once.
///
/// Workers that pick files at random must not get into each other's way: what one worker has open or looks at is *used*,
/// and what it is about to create, rename or remove is *claimed*. A claimed file is picked by nobody else, and a used one
/// is not claimed while there are others.
#[derive(Debug)]
pub struct FileTable {
    prefix: String,
    id: u64,
    shared: bool,
    files: u64,
    layout: Layout,
    sizes: Sizes,
    states: Box<[AtomicU32]>,
    /// No file before this one is absent in the beginning of a workload.
    first_new: AtomicU64,
    /// Files before this one are made when the fileset is.
    prefilled: u64,
    generations: Option<Generations>,
    /// Of a workload with a durability witness: what was acknowledged as stable.
    promises: RwLock<Option<Arc<Promises>>>,
    /// Bytes that each file has at this moment, where the workload appends to files.
    lengths: OnceLock<Box<[AtomicU64]>>,
    /// Hash of the prefix: what names of files have in common, whatever the seed.
    names: u64,
    /// Whether random picks stay within a worker's part.
    apart: AtomicBool,
}

/// The files that are one worker's to pick, so that what it finds does not depend on what others do at the same time (of
/// whom, in other processes, it knows nothing anyway): every `of`-th from `index` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) index: u64,
    pub(crate) of: u64,
}

impl Part {
    pub(crate) const WHOLE: Self = Self { index: 0, of: 1 };

    /// Number of its files among so many.
    fn length(self, files: u64) -> u64 {
        files.saturating_sub(self.index).div_ceil(self.of)
    }

    fn file(self, number: u64) -> u64 {
        self.index + number * self.of
    }

    /// This part, or where there are fewer files than parts and it holds none, that of another worker.
    fn with_files(self, files: u64) -> Self {
        if self.index < files || files == 0 { self } else { Self { index: self.index % files, ..self } }
    }
}

/// How far a worker is with the files of its part.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    new: Cell<Option<u64>>,
    once: Cell<u64>,
}

/// A file picked for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picked {
    pub file: u64,
    /// Whether its name is the one it gets by a rename.
    pub renamed: bool,
}

/// What a pick is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To use the file: end it with [`FileTable::release`].
    Use,
    /// To rename or remove it: end it with [`FileTable::set_present`] or [`FileTable::set_absent`].
    Claim,
}

/// Result of a pick among the files that exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    File(Picked),
    /// All are claimed by others at this moment.
    Busy,
    Nothing,
}

impl FileTable {
    /// The table of `fileset`, named `name`, for `client` (`None`: shared). `block` turns on the tracking of
    /// generations for verification.
    pub fn new(name: &str, fileset: &Fileset, client: Option<u32>, seed: u64, block: Option<usize>) -> Self {
        let owner = client.map_or_else(|| "shared".to_owned(), |client| format!("c{client}"));
        let prefix = format!("{name}/{owner}");
        let id = prefix.bytes().fold(seed, |hash, byte| mix(hash, byte.into(), 1));
        let sizes = Sizes::draw(fileset, id);
        let mut table = Self::with_sizes(prefix, id, fileset, sizes);
        table.shared = client.is_none();
        table.generations = block.map(|block| {
            Generations::new(
                block as u64,
                (0..table.files).map(|file| (table.size(file), table.exists(file))),
            )
        });
        table
    }

    /// A table of the same files in the state in which `fileset`, which this table was made of, begins. Without
    /// verification.
    pub(crate) fn anew(&self, fileset: &Fileset) -> Self {
        let table = Self::with_sizes(self.prefix.clone(), self.id, fileset, self.sizes.clone());
        Self { shared: self.shared, ..table }
    }

    fn with_sizes(prefix: String, id: u64, fileset: &Fileset, sizes: Sizes) -> Self {
        let existing = (fileset.files as f64 * fileset.prefill).round() as u64;
        let names = prefix.bytes().fold(0, |hash, byte| mix(hash, byte.into(), 2));
        let state = |file| AtomicU32::new(if file < existing { PRESENT } else { ABSENT });
        Self {
            prefix,
            id,
            shared: false,
            files: fileset.files,
            layout: Layout::of(fileset),
            sizes,
            states: (0..fileset.files).map(state).collect(),
            first_new: AtomicU64::new(existing),
            prefilled: existing,
            generations: None,
            promises: RwLock::default(),
            lengths: OnceLock::new(),
            names,
            apart: AtomicBool::new(false),
        }
    }

    /// Whether random picks leave the files of other workers alone, because files come and go.
    pub(crate) fn keep_apart(&self, apart: bool) {
        self.apart.store(apart, Ordering::Relaxed);
    }

    /// Stands for a file's name in hashes of streams of operations, whatever the seed.
    #[inline]
    pub(crate) fn name_hash(&self, picked: Picked) -> u64 {
        mix(self.names, picked.file, picked.renamed.into())
    }

    /// Whether all clients use it.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared
    }

    /// Number of files, existing or not.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Size in bytes that file number `file` has when it is whole.
    #[inline]
    pub fn size(&self, file: u64) -> u64 {
        self.sizes.of(file)
    }

    /// Keeps account of how long each file is from now on: the workload appends to files, so that their sizes are not
    /// those of the fileset.
    pub(crate) fn keep_lengths(&self) {
        let length = |file| AtomicU64::new(if self.exists(file) { self.size(file) } else { 0 });
        self.lengths.get_or_init(|| (0..self.files).map(length).collect());
    }

    /// Whether [lengths are kept](Self::keep_lengths).
    pub(crate) fn keeps_lengths(&self) -> bool {
        self.lengths.get().is_some()
    }

    /// Bytes that file number `file` has at this moment, as far as writes to it have ended.
    pub(crate) fn length(&self, file: u64) -> u64 {
        self.lengths.get().map_or_else(|| self.size(file), |all| all[file as usize].load(Ordering::Acquire))
    }

    /// The file is empty.
    pub(crate) fn set_empty(&self, file: u64) {
        self.set_length(file, 0);
    }

    /// The file has so many bytes.
    pub(crate) fn set_length(&self, file: u64, bytes: u64) {
        if let Some(all) = self.lengths.get() {
            all[file as usize].store(bytes, Ordering::Release);
        }
    }

    /// So many bytes were written at an offset; `None`: at the end of the file.
    pub(crate) fn wrote(&self, file: u64, offset: Option<u64>, bytes: u64) {
        let Some(all) = self.lengths.get() else { return };
        match offset {
            Some(offset) => all[file as usize].fetch_max(offset + bytes, Ordering::AcqRel),
            None => all[file as usize].fetch_add(bytes, Ordering::AcqRel),
        };
    }

    /// Bytes of all files, existing or not.
    pub fn total_bytes(&self) -> u64 {
        self.sizes.total(self.files)
    }

    /// Whether file number `file` exists.
    pub fn exists(&self, file: u64) -> bool {
        matches!(self.state(file), PRESENT | RENAMED)
    }

    /// Whether a file is made when the fileset is.
    fn is_prefilled(&self, file: u64) -> bool {
        file < self.prefilled
    }

    /// Number of files that exist, and the bytes they have when they are whole.
    pub fn existing(&self) -> (u64, u64) {
        let files = (0..self.files).filter(|&file| self.exists(file));
        files.fold((0, 0), |(files, bytes), file| (files + 1, self.size(file).saturating_add(bytes)))
    }

    /// Identifies a file in the stamps of its blocks.
    pub fn file_id(&self, file: u64) -> u64 {
        mix(self.id, file, 0)
    }

    pub fn directories(&self) -> u64 {
        self.layout.directories()
    }

    /// Writes the name of directory number `directory` into `path`. A directory has a higher number than the one it is in.
    #[inline]
    pub fn directory_path(&self, directory: u64, path: &mut PathBuffer) {
        path.clear();
        path.push(self.prefix.as_bytes());
        self.layout.push(directory, path);
    }

    /// Number of the directory that holds a file.
    pub fn directory_of(&self, file: u64) -> u64 {
        self.layout.directory_of(file)
    }

    /// Writes the name of a file into `path`.
    #[inline]
    pub fn file_path(&self, picked: Picked, path: &mut PathBuffer) {
        self.directory_path(self.directory_of(picked.file), path);
        path.push(b"/f");
        path.push_number(picked.file, 8);
        if picked.renamed {
            path.push(b".renamed");
        }
    }

    /// File number `file` under the name it has now.
    pub fn at(&self, file: u64) -> Picked {
        Picked { file, renamed: self.state(file) == RENAMED }
    }

    /// File number `file`, used whether it exists or not.
    pub(crate) fn hold(&self, file: u64) -> Picked {
        let before = self.word(file).fetch_add(USER, Ordering::AcqRel);
        Picked { file, renamed: before & STATE == RENAMED }
    }

    pub(crate) fn release(&self, file: u64) {
        self.word(file).fetch_sub(USER, Ordering::Release);
    }

    /// File number `file`, if it exists and is free for `purpose`.
    #[inline]
    pub(crate) fn take(&self, file: u64, purpose: Purpose) -> Option<Picked> {
        let change = |now: u32| match (now & STATE, purpose) {
            (PRESENT | RENAMED, Purpose::Use) => Some(now + USER),
            (PRESENT | RENAMED, Purpose::Claim) if now < USER => Some(BUSY),
            _ => None,
        };
        let before = self.word(file).fetch_update(Ordering::AcqRel, Ordering::Acquire, change).ok()?;
        Some(Picked { file, renamed: before & STATE == RENAMED })
    }

    /// Any existing file, each equally likely; of a worker's part, where files come and go.
    #[inline]
    pub(crate) fn random(&self, random: &mut Random, part: Part, purpose: Purpose) -> Choice {
        self.drawn(|length| random.below(length), part, purpose)
    }

    /// An existing file by its number, which `draw` draws below a bound; of a worker's part, where files come and go.
    #[inline]
    pub(crate) fn drawn(&self, mut draw: impl FnMut(u64) -> u64, part: Part, purpose: Purpose) -> Choice {
        let apart = self.apart.load(Ordering::Relaxed);
        let part = if apart { part.with_files(self.files) } else { Part::WHOLE };
        let length = part.length(self.files);
        if length == 0 {
            return Choice::Nothing;
        }
        for _ in 0..DRAWS {
            if let Some(picked) = self.take(part.file(draw(length)), purpose) {
                return Choice::File(picked);
            }
        }
        // Few files exist.
        let from = draw(length);
        self.first((from..length).chain(0..from).map(|number| part.file(number)), purpose)
    }

    /// The first of `files` that is free for `purpose`. Where all are in use, one of them is claimed nevertheless: to
    /// wait could be to wait for oneself.
    #[cold]
    pub(crate) fn first(&self, files: impl Iterator<Item = u64> + Clone, purpose: Purpose) -> Choice {
        if let Some(picked) = files.clone().find_map(|file| self.take(file, purpose)) {
            return Choice::File(picked);
        }
        let used = |file| match self.word(file).fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
            matches!(now & STATE, PRESENT | RENAMED).then_some(now | BUSY)
        }) {
            Ok(before) => Some(Picked { file, renamed: before & STATE == RENAMED }),
            Err(_) => None,
        };
        if purpose == Purpose::Claim
            && let Some(picked) = files.clone().find_map(used)
        {
            return Choice::File(picked);
        }
        if files.clone().any(|file| self.state(file) != ABSENT) { Choice::Busy } else { Choice::Nothing }
    }

    /// Claims a file of a worker's part that does not exist, to create it; `None` when all exist or are claimed.
    pub(crate) fn claim_new(&self, part: Part, cursor: &Cursor) -> Option<u64> {
        let length = part.length(self.files);
        let mut next = cursor.new.get().unwrap_or_else(|| {
            self.first_new.load(Ordering::Relaxed).saturating_sub(part.index).div_ceil(part.of)
        });
        let mut claimed = None;
        for _ in 0..length {
            let file = part.file(next % length);
            next += 1;
            let change = |now: u32| (now & STATE == ABSENT).then_some(now | BUSY);
            if self.word(file).fetch_update(Ordering::AcqRel, Ordering::Acquire, change).is_ok() {
                claimed = Some(file);
                break;
            }
        }
        cursor.new.set(Some(next));
        claimed
    }

    /// The next existing file of a worker's part that it has not had by this pick; `None` when it has had all.
    pub(crate) fn once(&self, part: Part, cursor: &Cursor, purpose: Purpose) -> Option<Picked> {
        loop {
            let picked = self.take(self.once_number(part, cursor)?, purpose);
            if picked.is_some() {
                return picked;
            }
        }
    }

    /// The next number of a worker's part that it has not had by this pick; `None` when it has had all.
    pub(crate) fn once_number(&self, part: Part, cursor: &Cursor) -> Option<u64> {
        let next = cursor.once.get();
        cursor.once.set(next + 1);
        (next < part.length(self.files)).then(|| part.file(next))
    }

    /// The file exists under this name; ends a claim.
    pub(crate) fn set_present(&self, picked: Picked) {
        self.set(picked, 0);
    }

    /// The file exists under this name and is used; ends a claim.
    pub(crate) fn set_used(&self, picked: Picked) {
        self.set(picked, USER);
    }

    fn set(&self, picked: Picked, users: u32) {
        let state = if picked.renamed { RENAMED } else { PRESENT };
        let change = |now: u32| Some(((now & !STATE) | state) + users);
        let _ = self.word(picked.file).fetch_update(Ordering::AcqRel, Ordering::Acquire, change);
    }

    /// The file does not exist; ends a claim.
    pub(crate) fn set_absent(&self, file: u64) {
        self.word(file).fetch_and(!STATE, Ordering::AcqRel);
    }

    /// Makes the table ready for another workload: nothing is used or claimed.
    pub(crate) fn rewind(&self) {
        for word in &self.states {
            let now = word.load(Ordering::Acquire) & STATE;
            // A claim that was never ended belongs to a worker that was stopped in between; whether its file is there
            // nobody knows, and the fileset is made anew because its names changed.
            word.store(if now == BUSY { ABSENT } else { now }, Ordering::Release);
        }
        self.first_new.store(0, Ordering::Relaxed);
    }

    /// Size of the blocks whose generations are tracked.
    pub fn tracked_block(&self) -> Option<usize> {
        self.generations.as_ref().map(|generations| generations.block() as usize)
    }

    /// Claims the blocks of a write for the calling stream and stamps `data` with their new generations. `None` when
    /// another stream is writing one of them: then nothing is claimed.
    pub(crate) fn begin_write(
        &self,
        file: u64,
        offset: u64,
        data: &mut [u8],
        block: usize,
    ) -> Option<WriteClaim<'_>> {
        let data_length = data.len() as u64;
        let claimed = |generations| WriteClaim { generations, file, offset, length: data_length };
        let Some(generations) = &self.generations else { return Some(claimed(None)) };
        for (number, (part, at)) in data.chunks_mut(block).zip((offset..).step_by(block)).enumerate() {
            let Some(generation) = generations.begin(file, at) else {
                (offset..).step_by(block).take(number).for_each(|at| generations.cancel(file, at));
                return None;
            };
            content::fill(part, Stamp { file: self.file_id(file), offset: at, generation });
        }
        Some(claimed(Some(generations)))
    }

    /// To be called before a file is emptied or removed: its content goes away.
    pub(crate) fn forget_content(&self, file: u64) {
        if let Some(generations) = &self.generations {
            generations.empty(file);
            self.promises_end(file);
        }
    }

    /// Notes the states of the blocks of a range before it is read, to be given to [`Self::prove`] after reading.
    pub(crate) fn see(&self, file: u64, offset: u64, length: usize, block: usize, seen: &mut Vec<Seen>) {
        seen.clear();
        if let Some(generations) = &self.generations {
            seen.extend((offset..offset + length as u64).step_by(block).map(|at| generations.see(file, at)));
        }
    }

    /// Checks data read from `offset`. `seen` is what [`Self::see`] noted before the read. Returns the bytes proved;
    /// blocks that were written meanwhile are left out.
    ///
    /// # Errors
    /// What was found instead, with the offset of the first wrong byte.
    pub(crate) fn prove(
        &self,
        file: u64,
        offset: u64,
        data: &[u8],
        block: usize,
        seen: &[Seen],
        scratch: &mut [u8; BLOCK],
    ) -> Result<u64, String> {
        let Some(generations) = &self.generations else { return Ok(0) };
        // What was appended is not stamped.
        let whole = usize::try_from(self.size(file).saturating_sub(offset)).unwrap_or(usize::MAX);
        let data = &data[..data.len().min(whole)];
        let mut proved = 0;
        for ((part, at), seen) in data.chunks(block).zip((offset..).step_by(block)).zip(seen) {
            if let Some(generation) = generations.proved(file, at, *seen) {
                content::check(part, Stamp { file: self.file_id(file), offset: at, generation }, scratch)?;
                proved += part.len() as u64;
            }
        }
        Ok(proved)
    }

    /// Offset of the first block of `seen` from byte `read` on whose content is known, and was not read because the file
    /// ended.
    pub(crate) fn missing(&self, offset: u64, read: usize, block: usize, seen: &[Seen]) -> Option<u64> {
        let known = |(_, seen): &(usize, &Seen)| generations::known(**seen).is_some();
        let (number, _) = seen.iter().enumerate().skip(read / block).find(known)?;
        Some(offset + (number * block).max(read) as u64)
    }

    fn word(&self, file: u64) -> &AtomicU32 {
        &self.states[file as usize]
    }

    fn state(&self, file: u64) -> u32 {
        self.word(file).load(Ordering::Acquire) & STATE
    }
}
