//! The verdict of a durability witness: everything acknowledged is looked for and compared.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use benchmaster_record::witness::{Broken, Promise, Witness};

use crate::area::WorkArea;
use crate::content::{self, BLOCK, Stamp};
use crate::engine::{Engine, Files};
use crate::files::{FileTable, NameState, PathBuffer, Picked, Promised};
use crate::nfs::SharedMount;
use crate::operation_error::OperationError;
use crate::program::flags::OpenFlags;
use crate::verify::{LookAt, ReadBackError, look_at_each, read_full};

/// What a disk writes as one, or not at all.
const SECTOR: usize = 512;
/// Generations after (and before) the promised one that a torn block is searched for.
const NEIGHBOURS: u32 = 16;

/// Looks at every file of `tables` in `area` and compares it with what was promised. `observe` is given the bytes read so
/// far.
///
/// # Errors
/// When the target cannot be reached, or the check is stopped. What cannot be read is lost.
pub(crate) fn judge(
    area: &WorkArea,
    shared: &SharedMount,
    tables: &[&FileTable],
    block: usize,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(u64),
) -> Result<Witness, ReadBackError> {
    let (read, witness) =
        (AtomicU64::new(0), Mutex::new(Witness { block: block as u32, ..Witness::default() }));
    for table in tables {
        let judge = Judge { table, block, stop, read: &read, witness: &witness };
        let mut tick = || observe(read.load(Ordering::Relaxed));
        look_at_each(area, shared, table.files(), &judge, stop, &mut tick)?;
    }
    Ok(witness.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What was found in place of a block, or of what it was promised to be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// What was promised.
    Kept,
    /// A later write, whole or in part: allowed.
    Newer,
    /// An earlier generation, whole.
    Old(u32),
    /// Parts that are older, or not ours.
    Torn(String),
    /// Nothing of it.
    Lost(&'static str),
}

/// What a block is, of which at least generation `promised` was promised.
fn found(data: &[u8], stamp: Stamp, scratch: &mut [u8; BLOCK]) -> Found {
    let promised = stamp.generation;
    let mut is = |generation, range: Range<usize>| {
        content::fill(&mut scratch[..data.len()], Stamp { generation, ..stamp });
        scratch[range.clone()] == data[range]
    };
    let whole = 0..data.len();
    if is(promised, whole.clone()) {
        return Found::Kept;
    }
    let header =
        content::read_stamp(data).filter(|head| (head.file, head.offset) == (stamp.file, stamp.offset));
    if let Some(head) = header
        && is(head.generation, whole)
    {
        return if head.generation > promised { Found::Newer } else { Found::Old(head.generation) };
    }
    if data.iter().all(|&byte| byte == 0) {
        return Found::Lost("zeros");
    }
    // Each sector is of some generation.
    let (first, last) = (promised.saturating_sub(NEIGHBOURS), promised.saturating_add(NEIGHBOURS));
    let further = header.map(|head| head.generation);
    let (mut ours, mut wrong) = (0, None);
    for at in (0..data.len()).step_by(SECTOR) {
        let sector = at..(at + SECTOR).min(data.len());
        let of = (first..=last).chain(further).find(|&generation| is(generation, sector.clone()));
        match of {
            Some(generation) if generation >= promised => ours += 1,
            Some(generation) => {
                ours += 1;
                wrong.get_or_insert_with(|| {
                    format!("generation {generation} in bytes {at} to {}", sector.end)
                });
            }
            None => _ = wrong.get_or_insert_with(|| format!("unknown bytes {at} to {}", sector.end)),
        }
    }
    match wrong {
        None => Found::Newer,
        Some(_) if ours == 0 => Found::Lost("other data"),
        Some(what) => Found::Torn(what),
    }
}

/// Judges the files of one table.
struct Judge<'j> {
    table: &'j FileTable,
    block: usize,
    stop: &'j AtomicBool,
    read: &'j AtomicU64,
    witness: &'j Mutex<Witness>,
}

/// A part of the verdict, of one file.
#[derive(Default)]
struct OfFile {
    witness: Witness,
    path: String,
}

impl OfFile {
    fn broken(&mut self, offset: Option<u64>, by: Promise, at_ms: u32, found: String) {
        *self.witness.by.entry(by).or_default() += 1;
        if self.witness.broken.len() < Witness::MOST_BROKEN {
            let (file, at_ns) = (self.path.clone(), i64::from(at_ms) * 1_000_000);
            self.witness.broken.push(Broken { file, offset, promise: by, at_ns, found });
        }
    }

    fn block(&mut self, offset: u64, promised: Promised<u32>, found: Found) {
        self.witness.blocks += 1;
        let text = match found {
            Found::Kept => return,
            Found::Newer => return self.witness.newer += 1,
            Found::Old(generation) => {
                self.witness.old += 1;
                format!("generation {generation}")
            }
            Found::Torn(what) => {
                self.witness.torn += 1;
                what
            }
            Found::Lost(what) => {
                self.witness.lost += 1;
                what.to_owned()
            }
        };
        let Promised { what, by, at_ms } = promised;
        self.broken(Some(offset), by, at_ms, format!("generation {what} was promised, there is {text}"));
    }
}

impl LookAt for Judge<'_> {
    /// Judges a file.
    async fn file<E: Engine>(
        &self,
        engine: &E,
        file: u64,
        mut path: PathBuffer,
        chunk: &mut [u8],
        opened: impl Fn(&E::Handle),
    ) -> Result<(), ReadBackError> {
        let Some(promises) = self.table.promises() else { return Ok(()) };
        if self.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (name, blocks) = promises.of(file);
        if name.is_none() && blocks.iter().all(Option::is_none) {
            return Ok(());
        }
        let mut part = OfFile::default();
        let mut handle = None;
        let mut here = None;
        let mut refused = None;
        for renamed in [false, true] {
            self.table.file_path(Picked { file, renamed }, &mut path);
            match engine.files().open(&path, OpenFlags::default(), false).await {
                Ok(opened) if handle.is_none() => (handle, here) = (Some(opened), Some(renamed)),
                Ok(opened) => _ = engine.files().close(opened).await,
                Err(OperationError::Os(libc::ENOENT)) => {}
                Err(error) => refused = Some(error),
            }
            let wanted = name.is_none_or(|name| (name.what == NameState::Renamed) == renamed);
            if wanted {
                part.path = path.text();
            }
            // The name that is promised counts; the other one may be there as well for a moment of a rename.
            if wanted && here == Some(renamed) && name.is_some_and(|name| name.what != NameState::Absent) {
                break;
            }
        }
        if let Some(Promised { what, by, at_ms }) = name {
            part.witness.names += 1;
            let wrong = match (what, here, refused) {
                (NameState::Absent, Some(_), _) => {
                    Some("the file was removed, and is there again".to_owned())
                }
                (NameState::Absent, None, _) => None,
                (_, None, Some(error)) => Some(format!("the file cannot be opened: {error}")),
                (_, None, None) => Some("the file is not there".into()),
                (NameState::Usual, Some(true), _) | (NameState::Renamed, Some(false), _) => {
                    Some("the file has the name that it had before".into())
                }
                (NameState::Usual | NameState::Renamed, Some(_), _) => None,
            };
            if let Some(wrong) = wrong {
                let again = here.is_some();
                *(if again { &mut part.witness.old } else { &mut part.witness.lost }) += 1;
                part.broken(None, by, at_ms, wrong);
            }
        }
        match &handle {
            Some(handle) => {
                opened(handle);
                self.blocks(engine, handle, file, &blocks, chunk, &mut part).await;
            }
            // Without a promise of its name the file may be gone, and its data with it.
            None if name.is_some_and(|name| name.what != NameState::Absent) => {
                for (number, promised) in self.promised(file, &blocks, 0..blocks.len()) {
                    part.block(self.offset(number), promised, Found::Lost("no file"));
                }
            }
            None => {}
        }
        if let Some(handle) = handle {
            // It was read: that closing it fails changes nothing.
            let _ = engine.files().close(handle).await;
        }
        let mut all = self.witness.lock().unwrap_or_else(PoisonError::into_inner);
        *all = std::mem::take(&mut *all).and(part.witness);
        Ok(())
    }
}

impl Judge<'_> {
    fn offset(&self, number: usize) -> u64 {
        number as u64 * self.block as u64
    }

    /// The blocks of a range of which something is promised.
    fn promised<'b>(
        &'b self,
        file: u64,
        blocks: &'b [Option<Promised<u32>>],
        range: Range<usize>,
    ) -> impl Iterator<Item = (usize, Promised<u32>)> + 'b {
        let known = range.filter_map(move |number| Some((number, (*blocks.get(number)?)?)));
        known.filter(move |(number, _)| !self.table.is_unknown(file, *number as u32))
    }

    async fn blocks<E: Engine>(
        &self,
        engine: &E,
        handle: &E::Handle,
        file: u64,
        blocks: &[Option<Promised<u32>>],
        chunk: &mut [u8],
        part: &mut OfFile,
    ) {
        let (per_chunk, mut scratch) = ((chunk.len() / self.block).max(1), [0; BLOCK]);
        let size = self.table.size(file);
        for first in (0..blocks.len()).step_by(per_chunk) {
            let range = first..(first + per_chunk).min(blocks.len());
            if self.promised(file, blocks, range.clone()).next().is_none()
                || self.stop.load(Ordering::Relaxed)
            {
                continue;
            }
            let wanted = (self.offset(range.end).min(size) - self.offset(first)) as usize;
            let read = read_full(engine, handle, &mut chunk[..wanted], self.offset(first)).await;
            self.read.fetch_add(*read.as_ref().unwrap_or(&0) as u64, Ordering::Relaxed);
            for (number, promised) in self.promised(file, blocks, range) {
                let offset = self.offset(number);
                let at = (offset - self.offset(first)) as usize;
                let end = (at + self.block).min(wanted);
                let found = match read {
                    Err(_) => Found::Lost("an error of reading"),
                    Ok(read) if read <= at => Found::Lost("the end of the file"),
                    Ok(read) if read < end => {
                        Found::Torn(format!("the end of the file at byte {}", read - at))
                    }
                    Ok(_) => {
                        let stamp =
                            Stamp { file: self.table.file_id(file), offset, generation: promised.what };
                        found(&chunk[at..end], stamp, &mut scratch)
                    }
                };
                part.block(offset, promised, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { file: 7, offset: 8192, generation: 5 };

    fn block(generation: u32) -> Vec<u8> {
        let mut data = vec![0; BLOCK];
        content::fill(&mut data, Stamp { generation, ..STAMP });
        data
    }

    fn of(data: &[u8]) -> Found {
        found(data, STAMP, &mut [0; BLOCK])
    }

    #[test]
    fn whole_blocks_are_kept_newer_old_or_lost() {
        assert_eq!(of(&block(5)), Found::Kept);
        assert_eq!(of(&block(6)), Found::Newer);
        assert_eq!(of(&block(900)), Found::Newer);
        assert_eq!(of(&block(4)), Found::Old(4));
        assert_eq!(of(&[0; BLOCK]), Found::Lost("zeros"));
        assert_eq!(of(&[1; BLOCK]), Found::Lost("other data"));
        let mut elsewhere = vec![0; BLOCK];
        content::fill(&mut elsewhere, Stamp { offset: 0, ..STAMP });
        assert_eq!(of(&elsewhere), Found::Lost("other data"));
    }

    #[test]
    fn a_block_torn_by_a_later_write_is_allowed_and_by_an_earlier_one_is_not() {
        let torn = |first: u32, last: u32| {
            let mut data = block(first);
            data[1024..].copy_from_slice(&block(last)[1024..]);
            data
        };
        assert_eq!(of(&torn(5, 6)), Found::Newer);
        assert_eq!(of(&torn(6, 5)), Found::Newer);
        assert_eq!(of(&torn(7, 6)), Found::Newer);
        assert_eq!(of(&torn(5, 4)), Found::Torn("generation 4 in bytes 1024 to 1536".into()));
        assert_eq!(of(&torn(4, 5)), Found::Torn("generation 4 in bytes 0 to 512".into()));
        let mut zeros = block(5);
        zeros[3584..].fill(0);
        assert_eq!(of(&zeros), Found::Torn("unknown bytes 3584 to 4096".into()));
        let short = &block(5)[..700];
        assert_ne!(of(short), Found::Newer);
    }
}
