//! The files of a fileset as workers see them: names, sizes, and which exist at this moment.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use statrs::distribution::{ContinuousCDF, Gamma, LogNormal};

use crate::content::{self, BLOCK, Stamp};
use crate::model::{FileSize, Fileset, SizeDistribution};
use crate::random::{Random, mix};

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;
const RENAMED: u8 = 2;
const BUSY: u8 = 3;

/// The files of one fileset of one client (or of all clients, when shared). Workers of many threads use it at once.
#[derive(Debug)]
pub struct FileTable {
    prefix: String,
    id: u64,
    files: u64,
    width: u64,
    sizes: Sizes,
    states: Box<[AtomicU8]>,
    next_new: AtomicU64,
    next_once: AtomicU64,
    generations: Option<Generations>,
}

#[derive(Debug)]
enum Sizes {
    Fixed(u64),
    Each(Box<[u64]>),
}

/// How often each block has been written: the high half of a word counts writes begun, the low half writes finished.
/// The blocks of a file are consecutive.
#[derive(Debug)]
struct Generations {
    block: u64,
    first: Box<[u64]>,
    words: Box<[AtomicU64]>,
    prefilled: bool,
}

/// A file picked for a step. While a claim is held no other worker picks the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Picked {
    /// Its number.
    pub file: u64,
    /// Whether its name is the one it gets by a rename.
    pub renamed: bool,
}

impl FileTable {
    /// The table of `fileset`, named `name`, for `client` (`None`: shared). `block` turns on the tracking of
    /// generations for verification.
    pub fn new(name: &str, fileset: &Fileset, client: Option<u32>, seed: u64, block: Option<usize>) -> Self {
        let owner = client.map_or_else(|| "shared".to_owned(), |client| format!("c{client}"));
        let prefix = format!("{name}/{owner}");
        let id = prefix.bytes().fold(seed, |hash, byte| mix(hash, byte.into(), 1));
        let existing = (fileset.files as f64 * fileset.prefill).round() as u64;
        let states = (0..fileset.files)
            .map(|file| AtomicU8::new(if file < existing { PRESENT } else { ABSENT }))
            .collect();
        let sizes = draw_sizes(fileset, id);
        let mut table = Self {
            prefix,
            id,
            files: fileset.files,
            width: fileset.directory_width,
            sizes,
            states,
            next_new: AtomicU64::new(existing),
            next_once: AtomicU64::new(0),
            generations: None,
        };
        table.generations = block.map(|block| Generations::new(&table, block as u64, existing == fileset.files));
        table
    }

    /// Number of files, existing or not.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Size file number `file` has when it is whole.
    pub fn size(&self, file: u64) -> u64 {
        match &self.sizes {
            Sizes::Fixed(size) => *size,
            Sizes::Each(sizes) => sizes[file as usize],
        }
    }

    /// Bytes of all files, existing or not.
    pub fn total_bytes(&self) -> u64 {
        match &self.sizes {
            Sizes::Fixed(size) => size.saturating_mul(self.files),
            Sizes::Each(sizes) => sizes.iter().sum(),
        }
    }

    /// Whether file number `file` exists.
    pub fn exists(&self, file: u64) -> bool {
        matches!(self.state(file), PRESENT | RENAMED)
    }

    /// Identifies a file in the stamps of its blocks.
    pub fn file_id(&self, file: u64) -> u64 {
        mix(self.id, file, 0)
    }

    /// Number of directories.
    pub fn directories(&self) -> u64 {
        match self.width {
            0 => 1,
            width => self.files.div_ceil(width).max(1),
        }
    }

    /// The directory that holds all others (relative to the working directory).
    pub fn root(&self) -> &str {
        &self.prefix
    }

    /// Writes the name of directory number `directory` into `path`.
    pub fn directory_path(&self, directory: u64, path: &mut PathBuffer) {
        path.clear();
        path.push(self.prefix.as_bytes());
        if self.width > 0 {
            path.push(b"/d");
            path.push_number(directory, 6);
        }
    }

    /// Number of the directory that holds a file.
    pub fn directory_of(&self, file: u64) -> u64 {
        file.checked_div(self.width).unwrap_or(0)
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

    /// Any existing file; `None` when there is none.
    #[inline]
    pub fn random(&self, random: &mut Random) -> Option<Picked> {
        self.existing_from(random.below(self.files))
    }

    /// The first existing file at or after `from`, going round.
    #[inline]
    pub fn existing_from(&self, from: u64) -> Option<Picked> {
        (from..self.files).chain(0..from.min(self.files)).find(|&file| self.exists(file)).map(|file| self.at(file))
    }

    /// Claims a file that does not exist; `None` when all exist or are claimed.
    pub fn claim_new(&self) -> Option<u64> {
        for _ in 0..self.files {
            let file = self.next_new.fetch_add(1, Ordering::Relaxed) % self.files;
            if self.claim(file, ABSENT) {
                return Some(file);
            }
        }
        None
    }

    /// The next file nobody has had by this pick; `None` when all have been had.
    pub fn once(&self) -> Option<Picked> {
        loop {
            let file = self.next_once.fetch_add(1, Ordering::Relaxed);
            if file >= self.files {
                return None;
            }
            if self.exists(file) {
                return Some(self.at(file));
            }
        }
    }

    /// Claims file `file` if it does not exist.
    pub fn claim_absent(&self, file: u64) -> bool {
        self.claim(file, ABSENT)
    }

    /// Claims file `file` if it exists, to remove or rename it.
    pub fn claim_existing(&self, picked: Picked) -> bool {
        self.claim(picked.file, if picked.renamed { RENAMED } else { PRESENT })
    }

    /// Ends a claim: the file exists under this name.
    pub fn set_present(&self, picked: Picked) {
        self.set(picked.file, if picked.renamed { RENAMED } else { PRESENT });
    }

    /// Ends a claim: the file does not exist.
    pub fn set_absent(&self, file: u64) {
        self.set(file, ABSENT);
    }

    /// Starts the picks `new` and `once` over.
    pub fn rewind(&self) {
        self.next_new.store(0, Ordering::Relaxed);
        self.next_once.store(0, Ordering::Relaxed);
    }

    /// Size of the blocks whose generations are tracked.
    pub fn tracked_block(&self) -> Option<usize> {
        self.generations.as_ref().map(|g| g.block as usize)
    }

    /// Claims the blocks of a write for the calling worker and stamps `data` with their new generations. `false` when
    /// another worker is writing one of them: then nothing is claimed.
    pub(crate) fn begin_write(&self, file: u64, offset: u64, data: &mut [u8], block: usize) -> bool {
        let Some(generations) = &self.generations else { return true };
        let starts = (offset..).step_by(block);
        for (number, (part, at)) in data.chunks_mut(block).zip(starts).enumerate() {
            match generations.begin(file, at) {
                Some(generation) => {
                    content::fill(part, Stamp { file: self.file_id(file), offset: at, generation });
                }
                None => {
                    (offset..).step_by(block).take(number).for_each(|at| generations.cancel(file, at));
                    return false;
                }
            }
        }
        true
    }

    /// Ends the write begun by [`Self::begin_write`]; after a failed one nothing is known about the blocks.
    pub(crate) fn end_write(&self, file: u64, offset: u64, length: usize, block: usize, success: bool) {
        let Some(generations) = &self.generations else { return };
        (offset..offset + length as u64).step_by(block).for_each(|at| generations.end(file, at, success));
    }

    /// The generations of the blocks of a range that were finished last, to be given to [`Self::prove`] after reading.
    pub(crate) fn finished(&self, file: u64, offset: u64, length: usize, block: usize) -> Vec<Option<u32>> {
        let Some(generations) = &self.generations else { return Vec::new() };
        (offset..offset + length as u64).step_by(block).map(|at| generations.finished(file, at)).collect()
    }

    /// Checks data read from `offset`. `before` is what [`Self::finished`] said before the read. Returns the bytes proved.
    ///
    /// # Errors
    /// What was found instead, with the offset of the first wrong byte.
    pub(crate) fn prove(
        &self,
        file: u64,
        offset: u64,
        data: &[u8],
        block: usize,
        before: &[Option<u32>],
        scratch: &mut [u8; BLOCK],
    ) -> Result<u64, String> {
        let Some(generations) = &self.generations else { return Ok(0) };
        let mut proved = 0;
        for ((part, at), before) in data.chunks(block).zip((offset..).step_by(block)).zip(before) {
            if let (Some(before), Some(begun)) = (*before, generations.begun(file, at)) {
                content::check(part, self.file_id(file), at, before..=begun, scratch)?;
                proved += part.len() as u64;
            }
        }
        Ok(proved)
    }

    fn state(&self, file: u64) -> u8 {
        self.states[file as usize].load(Ordering::Acquire)
    }

    fn set(&self, file: u64, state: u8) {
        self.states[file as usize].store(state, Ordering::Release);
    }

    fn claim(&self, file: u64, from: u8) -> bool {
        self.states[file as usize].compare_exchange(from, BUSY, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Generations {
    fn new(table: &FileTable, block: u64, prefilled: bool) -> Self {
        let mut first = Vec::with_capacity(table.files as usize);
        let mut blocks = 0;
        for file in 0..table.files {
            first.push(blocks);
            blocks += table.size(file).div_ceil(block);
        }
        let words = (0..blocks.max(1)).map(|_| AtomicU64::new(0)).collect();
        Self { block, first: first.into(), words, prefilled }
    }

    fn word(&self, file: u64, offset: u64) -> &AtomicU64 {
        let index = self.first[file as usize] + offset / self.block;
        // An append may go past the planned size; such blocks share the last word and are never proved.
        &self.words[(index as usize).min(self.words.len() - 1)]
    }

    /// Begins a write; `None` while another is on.
    fn begin(&self, file: u64, offset: u64) -> Option<u32> {
        let word = self.word(file, offset);
        let now = word.load(Ordering::Acquire);
        if now == UNKNOWN {
            return Some(0);
        }
        let (begun, finished) = (now >> 32, now & 0xffff_ffff);
        let next = ((begun + 1) << 32) | finished;
        let claimed = begun == finished && word.compare_exchange(now, next, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        claimed.then_some(begun as u32 + 1)
    }

    fn cancel(&self, file: u64, offset: u64) {
        let word = self.word(file, offset);
        let now = word.load(Ordering::Acquire);
        if now != UNKNOWN {
            word.store(now - (1 << 32), Ordering::Release);
        }
    }

    fn end(&self, file: u64, offset: u64, success: bool) {
        let word = self.word(file, offset);
        let now = word.load(Ordering::Acquire);
        let begun = now >> 32;
        word.store(if success && now != UNKNOWN { (begun << 32) | begun } else { UNKNOWN }, Ordering::Release);
    }

    /// The generation finished last, if the block's content is known.
    fn finished(&self, file: u64, offset: u64) -> Option<u32> {
        let now = self.word(file, offset).load(Ordering::Acquire);
        (now != UNKNOWN && (self.prefilled || now > 0)).then_some(now as u32)
    }

    fn begun(&self, file: u64, offset: u64) -> Option<u32> {
        let now = self.word(file, offset).load(Ordering::Acquire);
        (now != UNKNOWN).then_some((now >> 32) as u32)
    }
}

/// A block whose last write failed.
const UNKNOWN: u64 = u64::MAX;

fn draw_sizes(fileset: &Fileset, seed: u64) -> Sizes {
    let mut random = Random::new(seed, 1);
    let mut each = |draw: &dyn Fn(f64) -> f64| {
        Sizes::Each((0..fileset.files).map(|_| draw(random.unit()).clamp(0.0, 1e18).round() as u64).collect())
    };
    match &fileset.size {
        FileSize::Fixed(size) => Sizes::Fixed(size.0),
        FileSize::Distributed(SizeDistribution::Uniform { min, max }) => {
            let (low, high) = (min.0 as f64, max.0 as f64);
            each(&|u| low + u * (high - low))
        }
        FileSize::Distributed(SizeDistribution::Gamma { mean, shape }) => match Gamma::new(*shape, *shape / mean.0 as f64) {
            Ok(gamma) => each(&|u| gamma.inverse_cdf(u)),
            Err(_) => Sizes::Fixed(mean.0),
        },
        FileSize::Distributed(SizeDistribution::LogNormal { median, sigma }) => {
            match LogNormal::new((median.0 as f64).ln(), *sigma) {
                Ok(distribution) => each(&|u| distribution.inverse_cdf(u)),
                Err(_) => Sizes::Fixed(median.0),
            }
        }
    }
}

/// A path built without allocating, ended by a NUL.
#[derive(Clone)]
pub struct PathBuffer {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl PathBuffer {
    const CAPACITY: usize = 256;

    /// An empty path.
    pub fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0 }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.length = 0;
        self.bytes[0] = 0;
    }

    /// Appends text. Fileset names are checked to be short, so that the capacity always suffices; what does not fit is
    /// cut off.
    #[inline]
    pub fn push(&mut self, text: &[u8]) {
        let end = (self.length + text.len()).min(Self::CAPACITY - 1);
        self.bytes[self.length..end].copy_from_slice(&text[..end - self.length]);
        self.bytes[end] = 0;
        self.length = end;
    }

    /// Appends a number with leading zeros up to `width` digits.
    #[inline]
    pub fn push_number(&mut self, mut number: u64, width: usize) {
        let mut digits = [b'0'; 20];
        let mut at = digits.len();
        while number > 0 || digits.len() - at < width {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.push(&digits[at..]);
    }

    /// The path for a system call.
    #[inline]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }

    /// The path as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.length]).into_owned()
    }
}

impl Default for PathBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for PathBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PathBuffer({:?})", self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Sharing;
    use crate::units::ByteSize;

    fn fileset(files: u64, prefill: f64, width: u64, size: FileSize) -> Fileset {
        Fileset { files, size, directory_width: width, sharing: Sharing::Private, prefill }
    }

    #[test]
    fn names_show_fileset_client_directory_and_number() {
        let table = FileTable::new("data", &fileset(25, 1.0, 10, FileSize::Fixed(ByteSize(1))), Some(3), 1, None);
        let mut path = PathBuffer::new();
        table.file_path(Picked { file: 21, renamed: false }, &mut path);
        assert_eq!(path.as_c_str().to_str(), Ok("data/c3/d000002/f00000021"));
        table.file_path(Picked { file: 0, renamed: true }, &mut path);
        assert_eq!(path.text(), "data/c3/d000000/f00000000.renamed");
        assert_eq!(table.directories(), 3);
    }

    #[test]
    fn new_files_are_claimed_once_by_any_number_of_threads() {
        let table = FileTable::new("n", &fileset(1000, 0.0, 0, FileSize::Fixed(ByteSize(0))), None, 1, None);
        let claimed: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| std::iter::from_fn(|| table.claim_new()).collect::<Vec<_>>()))
                .collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        let mut sorted = claimed.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!((claimed.len(), sorted.len()), (1000, 1000));
    }

    #[test]
    fn random_picks_only_existing_files() {
        let table = FileTable::new("n", &fileset(10, 0.3, 0, FileSize::Fixed(ByteSize(0))), None, 1, None);
        let mut random = Random::new(1, 0);
        assert!((0..100).all(|_| table.random(&mut random).unwrap().file < 3));
        (0..3).for_each(|file| table.set_absent(file));
        assert_eq!(table.random(&mut random), None);
    }

    #[test]
    fn drawn_sizes_have_the_mean_asked_for_and_depend_on_the_seed_alone() {
        let gamma = FileSize::Distributed(SizeDistribution::Gamma { mean: ByteSize::kib(128), shape: 1.5 });
        let table = |seed| FileTable::new("g", &fileset(4000, 1.0, 0, gamma.clone()), None, seed, None);
        let mean = table(5).total_bytes() as f64 / 4000.0 / 131_072.0;
        assert!((0.95..1.05).contains(&mean), "{mean}");
        assert_eq!(table(5).size(17), table(5).size(17));
        assert_ne!(table(5).size(17), table(6).size(17));
        let uniform = SizeDistribution::Uniform { min: ByteSize(10), max: ByteSize(20) };
        let table = FileTable::new("u", &fileset(100, 1.0, 0, FileSize::Distributed(uniform)), None, 1, None);
        assert!((0..100).all(|file| (10..=20).contains(&table.size(file))));
    }

    #[test]
    fn generations_tell_finished_from_begun_writes() {
        let size = FileSize::Fixed(ByteSize(10_000));
        let table = FileTable::new("v", &fileset(2, 1.0, 0, size), None, 1, Some(4096));
        let (mut data, mut scratch) = (vec![0; 8192], [0; BLOCK]);
        let before = table.finished(1, 0, 8192, 4096);
        assert_eq!(before, [Some(0), Some(0)]);
        assert!(table.begin_write(1, 0, &mut data, 4096));
        assert!(!table.begin_write(1, 4096, &mut [0; 4096], 4096), "another write of the block is on");
        assert_eq!(table.prove(1, 0, &data, 4096, &before, &mut scratch), Ok(8192), "new data may be seen already");
        table.end_write(1, 0, 8192, 4096, true);
        let before = table.finished(1, 0, 8192, 4096);
        assert_eq!(before, [Some(1), Some(1)]);
        content::fill(&mut data[..4096], Stamp { file: table.file_id(1), offset: 0, generation: 0 });
        let error = table.prove(1, 0, &data, 4096, &before, &mut scratch).unwrap_err();
        assert_eq!(error, "offset 0: the block holds generation 0 where 1 was written last");
        assert!(table.begin_write(1, 0, &mut data, 4096));
        table.end_write(1, 0, 8192, 4096, false);
        assert_eq!(table.finished(1, 0, 8192, 4096), [None, None], "nothing is known after a failed write");
    }
}
