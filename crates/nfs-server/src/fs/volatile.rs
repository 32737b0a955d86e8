//! What a loss of power takes: data that was written and never made stable. Kept only where it is asked for.

use std::collections::BTreeMap;
use std::ops::Range;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use parking_lot::Mutex;

use super::data::Data;
use super::{FileSystem, FsError, Node, Time, Trouble};

/// Data reach the disk in such pieces, in any order.
const SECTOR: u64 = 512;

/// Files with data that are not stable.
#[derive(Debug, Default)]
pub(super) struct Volatile(Mutex<BTreeMap<Node, Unstable>>);

/// What a file is on the disk, where that differs.
#[derive(Debug)]
struct Unstable {
    size: u64,
    /// Content of sectors that were written since, up to the end of the file.
    sectors: BTreeMap<u64, Vec<u8>>,
}

fn sectors(range: &Range<u64>) -> Range<u64> {
    range.start / SECTOR..range.end.div_ceil(SECTOR)
}

/// Bytes of a file, up to its end.
fn bytes(content: &Data, range: Range<u64>) -> Vec<u8> {
    let end = range.end.min(content.size);
    let mut slices = Vec::new();
    if range.start < end {
        content.read(range.start..end, &mut slices);
    }
    slices.iter().flat_map(|slice| slice.as_slice().iter().copied()).collect()
}

impl Volatile {
    /// `range` is about to be written.
    fn keep(&self, file: Node, content: &Data, range: &Range<u64>) {
        let mut files = self.0.lock();
        let unstable =
            files.entry(file).or_insert_with(|| Unstable { size: content.size, sectors: BTreeMap::new() });
        for sector in sectors(range) {
            let old = || bytes(content, sector * SECTOR..(sector + 1) * SECTOR);
            unstable.sectors.entry(sector).or_insert_with(old);
        }
    }

    /// `range`, as it is, is stable.
    fn settle(&self, file: Node, content: &Data, range: &Range<u64>) {
        let mut files = self.0.lock();
        let Some(unstable) = files.get_mut(&file) else { return };
        unstable.size = unstable.size.max(range.end);
        for sector in sectors(range) {
            let begin = sector * SECTOR;
            if range.start <= begin && range.end >= (begin + SECTOR).min(content.size) {
                unstable.sectors.remove(&sector);
                continue;
            }
            let Some(old) = unstable.sectors.get_mut(&sector) else { continue };
            let part = range.start.max(begin)..range.end.min(begin + SECTOR);
            let new = bytes(content, part.clone());
            let at = (part.start - begin) as usize;
            old.resize(old.len().max(at + new.len()), 0);
            old[at..at + new.len()].copy_from_slice(&new);
        }
        if unstable.sectors.is_empty() && unstable.size == content.size {
            files.remove(&file);
        }
    }

    /// The file has a new size, which is stable.
    fn resized(&self, file: Node, size: u64) {
        if let Some(unstable) = self.0.lock().get_mut(&file) {
            unstable.size = size;
            unstable.sectors.retain(|sector, old| {
                old.truncate(size.saturating_sub(sector * SECTOR).min(SECTOR) as usize);
                sector * SECTOR < size
            });
        }
    }
}

impl FileSystem {
    /// A file is about to be written: keeps what the disk has.
    pub(super) fn before_write(&self, file: Node, content: &Data, range: Range<u64>) {
        if let Some(volatile) = &self.volatile {
            volatile.keep(file, content, &range);
        }
    }

    /// A file has a new size.
    pub(super) fn after_resize(&self, file: Node, size: u64) {
        if let Some(volatile) = &self.volatile {
            volatile.resized(file, size);
        }
    }

    /// A file is gone: what was not stable of it does not matter any more.
    pub(super) fn forget_unstable(&self, file: Node) {
        if let Some(volatile) = &self.volatile {
            volatile.0.lock().remove(&file);
        }
        self.forget_dirty(file);
    }

    /// What was written to `range` of a file is stable: a WRITE with DATA_SYNC or FILE_SYNC. Fails when it cannot be kept.
    pub fn settle(&self, file: Node, range: Range<u64>) -> Result<(), FsError> {
        self.log_range(file, range.clone())?;
        if let Some(volatile) = &self.volatile
            && let Ok(inode) = self.table.read(file)
            && let Ok(content) = inode.regular()
        {
            volatile.settle(file, content, &range);
        }
        Ok(())
    }

    /// All that was written to a file is stable: COMMIT.
    ///
    /// # Errors
    /// [`FsError::Io`]: what was not stable is lost, if it can be, or it cannot be kept.
    pub fn commit(&self, file: Node, now: Time) -> Result<(), FsError> {
        self.log_dirty(file)?;
        let failed = self.fails(Trouble::Commit);
        if let Some(volatile) = self.volatile.as_ref().filter(|_| !is_broken(Mutant::CommitDoesNothing)) {
            let unstable = volatile.0.lock().remove(&file);
            if let Some(unstable) = unstable.filter(|_| failed) {
                self.lose(file, unstable, now, &mut || 1);
            }
        }
        if failed && !is_broken(Mutant::CommitErrorSwallowed) { Err(FsError::Io) } else { Ok(()) }
    }

    /// The power goes: of what is not stable each sector is lost or not, as `random` has it. Returns how many are. Does
    /// nothing unless [`FsConfig::volatile`](super::FsConfig::volatile).
    pub(crate) fn lose_power(&self, now: Time, random: &mut dyn FnMut() -> u64) -> u64 {
        let Some(volatile) = &self.volatile else { return 0 };
        let files = std::mem::take(&mut *volatile.0.lock());
        files.into_iter().map(|(file, unstable)| self.lose(file, unstable, now, random)).sum()
    }

    /// Of what is not stable of a file each sector for which `random` is odd is lost. Returns how many are.
    fn lose(&self, file: Node, unstable: Unstable, now: Time, random: &mut dyn FnMut() -> u64) -> u64 {
        let mut lost = 0;
        // Removed meanwhile.
        let Ok(mut inode) = self.table.write(file) else { return lost };
        let Ok(content) = inode.regular_mut() else { return lost };
        let mut size = unstable.size;
        // Nothing is taken that the file does not have already: there is room.
        let _ = self.resize(content, 0, |content| {
            for (sector, mut old) in unstable.sectors {
                let begin = sector * SECTOR;
                let end = (begin + SECTOR).min(content.size);
                if random().is_multiple_of(2) {
                    size = size.max(end);
                    continue;
                }
                old.resize(end.saturating_sub(begin) as usize, 0);
                lost += u64::from(bytes(content, begin..end) != old);
                content.overwrite(begin, &old);
            }
            content.resize(size);
        });
        inode.data_changed(self.clock, now);
        lost
    }
}
