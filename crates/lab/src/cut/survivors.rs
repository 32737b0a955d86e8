//! What a disk has after a power cut: its file, with the writes taken back that did not survive.

use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::log::{Entry, LogError, Write};
use super::{CutDisk, Recent, SECTOR};

/// What came of the writes to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Survivors {
    /// Writes that the disk could lose. None of a disk without volatile cache, whose writes are not counted.
    pub at_risk: u64,
    pub dropped: u64,
    /// Of which some sectors were kept.
    pub torn: u64,
    /// Flushes that had been reported to the machine and did not count.
    pub ignored_flushes: u64,
    /// What was taken back, in bytes, of all that was written to a place.
    pub bytes: u64,
}

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Dropped,
    /// The bits of this stream of random numbers say which sectors are kept.
    Torn(u64),
}

impl Fate {
    /// Whether the next sector of the write is kept.
    fn sectors(self) -> impl FnMut() -> bool {
        let mut random = Random(match self {
            Self::Torn(seed) => seed,
            Self::Kept | Self::Dropped => 0,
        });
        move || match self {
            Self::Kept => true,
            Self::Dropped => false,
            Self::Torn(_) => random.next() & 1 == 0,
        }
    }
}

impl Survivors {
    /// Counts a write of which sectors were kept, or lost.
    fn count(&mut self, kept: bool, lost: bool) {
        self.dropped += u64::from(lost && !kept);
        self.torn += u64::from(lost && kept);
    }
}

/// The entries whose writes are at risk. `now`: the time of the cut, on the clock of the log.
pub(crate) fn at_risk(entries: &[Entry], disk: CutDisk, now: u64) -> Range<usize> {
    let end = entries.len();
    let unflushed = entries.iter().rposition(|entry| entry.write.is_none()).map_or(0, |flush| flush + 1);
    let begin = match disk {
        CutDisk::Durable => end,
        CutDisk::Cached => unflushed,
        CutDisk::Lying(Recent::Writes(count)) => {
            let writes = entries.iter().enumerate().rev().filter(|(_, entry)| entry.write.is_some());
            let last = writes.map(|(at, _)| at).take(usize::try_from(count).unwrap_or(usize::MAX)).last();
            last.map_or(unflushed, |at| at.min(unflushed))
        }
        CutDisk::Lying(Recent::Time(time)) => {
            let from = now.saturating_sub(nanos(time));
            entries.partition_point(|entry| entry.time < from).min(unflushed)
        }
    };
    begin..end
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What becomes of these writes, each of which is at risk.
pub(crate) fn fates(writes: usize, seed: u64) -> Vec<Fate> {
    let mut random = Random(seed);
    // A cut may find nearly all in the cache, or nearly nothing; no chance of a single write gives both.
    let (lost, torn) = (random.next(), random.next() / 2);
    let mut fate = || {
        let (of_all, of_kept, sectors) = (random.next(), random.next(), random.next());
        match (of_all < lost, of_kept < torn) {
            (true, _) => Fate::Dropped,
            (false, true) => Fate::Torn(sectors),
            (false, false) => Fate::Kept,
        }
    };
    (0..writes).map(|_| fate()).collect()
}

/// Takes back on a disk what did not survive. `entries` are those at risk; `logs` are the files of the log.
///
/// From the last write to the first, each is either what a sector has from now on, or is taken back, which leaves there what
/// the write before it wrote.
///
/// # Errors
/// Those of the files.
pub(crate) fn take_back(
    disk: &File,
    logs: &[File; 2],
    entries: &[Entry],
    seed: u64,
) -> Result<Survivors, LogError> {
    let writes: Vec<Write> = entries.iter().filter_map(|entry| entry.write).collect();
    let fates = fates(writes.len(), seed);
    let mut result = Survivors {
        at_risk: writes.len() as u64,
        ignored_flushes: (entries.len() - writes.len()) as u64,
        ..Survivors::default()
    };
    let mut settled = HashSet::new();
    for (write, fate) in writes.iter().zip(fates).rev() {
        let mut replaced = vec![0; write.length as usize];
        logs[write.file % 2].read_exact_at(&mut replaced, write.at)?;
        let mut keeps = fate.sectors();
        let (mut kept, mut lost) = (false, false);
        for (number, sector) in replaced.chunks(SECTOR as usize).enumerate() {
            let keep = keeps();
            (kept, lost) = (kept | keep, lost | !keep);
            let offset = write.offset + number as u64 * SECTOR;
            if keep {
                settled.insert(offset);
            } else if !settled.contains(&offset) {
                disk.write_all_at(sector, offset)?;
                result.bytes += SECTOR;
            }
        }
        result.count(kept, lost);
    }
    Ok(result)
}

/// What a block of a disk with a volatile cache is after a power cut: `cached` is what was written to it, `stable` what it was at
/// the last flush. Both are of one length, in whole sectors.
pub(crate) fn survivor(cached: &[u8], stable: &[u8], fate: Fate, result: &mut Survivors) -> Vec<u8> {
    let mut keeps = fate.sectors();
    let (mut kept, mut lost) = (false, false);
    let mut left = Vec::with_capacity(cached.len());
    for (new, old) in cached.chunks(SECTOR as usize).zip(stable.chunks(SECTOR as usize)) {
        let keep = keeps();
        if new != old {
            (kept, lost) = (kept | keep, lost | !keep);
            result.bytes += if keep { 0 } else { SECTOR };
        }
        left.extend_from_slice(if keep { new } else { old });
    }
    result.at_risk += 1;
    result.count(kept, lost);
    left
}

/// SplitMix64 (Steele, Lea and Flood, 2014): the same disks with every version of this program.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write as _;

    use super::super::log::{made, read};
    use super::*;

    const SECTORS: usize = 16;

    /// A disk whose sectors hold the number of the write that wrote them, and its log.
    struct Made {
        disk: Vec<u8>,
        log: Vec<u8>,
        time: u64,
    }

    impl Made {
        fn new() -> Self {
            Self { disk: vec![0; SECTORS * 512], log: made::head(1), time: 0 }
        }

        /// The write with this number, at a time that is its number in ms.
        fn write(&mut self, number: u8, sectors: Range<usize>) {
            self.time = u64::from(number) * 1_000_000;
            let bytes = sectors.start * 512..sectors.end * 512;
            made::write(&mut self.log, bytes.start as u64, &self.disk[bytes.clone()], self.time);
            self.disk[bytes].fill(number);
        }

        fn flush(&mut self) {
            made::flush(&mut self.log, self.time);
        }

        /// What the sectors hold after a cut.
        fn cut(&self, disk: CutDisk, seed: u64) -> (Vec<u8>, Survivors) {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(&self.disk).unwrap();
            let logs = [tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap()];
            (&logs[0]).write_all(&self.log).unwrap();
            let entries = read([&logs[0], &logs[1]], self.disk.len() as u64).unwrap();
            let risk = at_risk(&entries, disk, self.time + 1_000_000);
            let survivors = take_back(&file, &logs, &entries[risk], seed).unwrap();
            let mut now = vec![0; self.disk.len()];
            file.read_exact_at(&mut now, 0).unwrap();
            // No sector is torn itself.
            assert!(now.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
            (now.chunks(512).map(|sector| sector[0]).collect(), survivors)
        }
    }

    #[test]
    fn what_was_flushed_stays_and_the_rest_is_drawn() {
        let mut made = Made::new();
        made.write(1, 0..8);
        made.write(2, 4..12);
        // So does the kernel with a write that is to be durable by itself (FUA): the driver has no other way.
        made.flush();
        made.write(3, 2..6);
        made.write(4, 5..6);
        let mut seen = vec![BTreeSet::new(); SECTORS];
        for seed in 0..500 {
            let (sectors, survivors) = made.cut(CutDisk::Cached, seed);
            assert_eq!((survivors.at_risk, survivors.ignored_flushes), (2, 0));
            assert_eq!(made.cut(CutDisk::Cached, seed), (sectors.clone(), survivors), "seed {seed}");
            for (seen, sector) in seen.iter_mut().zip(sectors) {
                seen.insert(sector);
            }
        }
        let expected: [&[u8]; SECTORS] = [
            &[1],
            &[1],
            &[1, 3],
            &[1, 3],
            &[2, 3],
            &[2, 3, 4],
            &[2],
            &[2], //
            &[2],
            &[2],
            &[2],
            &[2],
            &[0],
            &[0],
            &[0],
            &[0],
        ];
        for (sector, (seen, expected)) in seen.iter().zip(expected).enumerate() {
            assert!(seen.iter().eq(expected), "sector {sector}: {seen:?}");
        }
    }

    #[test]
    fn blocks_of_a_cache_are_kept_dropped_and_torn() {
        let (cached, stable) = ([1; 4096], [0; 4096]);
        let mut result = Survivors::default();
        assert_eq!(survivor(&cached, &stable, Fate::Kept, &mut result), cached);
        assert_eq!(survivor(&cached, &stable, Fate::Dropped, &mut result), stable);
        let torn = survivor(&cached, &stable, Fate::Torn(7), &mut result);
        let lost = torn.chunks(512).filter(|sector| sector[0] == 0).count() as u64;
        assert!(
            (1..8).contains(&lost) && torn.chunks(512).all(|sector| sector.iter().all(|b| *b == sector[0]))
        );
        let expected =
            Survivors { at_risk: 3, dropped: 1, torn: 1, bytes: 4096 + lost * 512, ..Survivors::default() };
        assert_eq!(result, expected);
    }

    #[test]
    fn writes_are_kept_dropped_and_torn() {
        let mut made = Made::new();
        made.write(1, 0..8);
        let mut kinds = [0; 3];
        for seed in 0..300 {
            let (sectors, survivors) = made.cut(CutDisk::Cached, seed);
            let kept = sectors.iter().filter(|sector| **sector == 1).count() as u64;
            let expected = match kept {
                0 => (1, 0),
                8 => (0, 0),
                _ => (0, 1),
            };
            assert_eq!((survivors.dropped, survivors.torn), expected, "seed {seed}");
            assert_eq!(survivors.bytes, (8 - kept) * 512);
            kinds[if kept == 0 {
                0
            } else if kept == 8 {
                1
            } else {
                2
            }] += 1;
        }
        assert!(kinds.iter().all(|count| *count > 30), "{kinds:?}");
    }

    #[test]
    fn later_writes_do_not_depend_on_earlier_ones() {
        let mut made = Made::new();
        (1..=4).for_each(|number| made.write(number, usize::from(number) - 1..usize::from(number)));
        let all: BTreeSet<Vec<u8>> =
            (0..2000).map(|seed| made.cut(CutDisk::Cached, seed).0[..4].to_vec()).collect();
        assert_eq!(all.len(), 16, "each of the four writes may be there without the others");
    }

    #[test]
    fn a_disk_without_volatile_cache_keeps_everything() {
        let mut made = Made::new();
        made.write(1, 0..8);
        for seed in 0..50 {
            let (sectors, survivors) = made.cut(CutDisk::Durable, seed);
            assert_eq!(sectors[..8], [1; 8]);
            assert_eq!(survivors, Survivors::default());
        }
    }

    #[test]
    fn a_disk_that_lies_loses_what_was_flushed() {
        let mut made = Made::new();
        for number in 1..=10u8 {
            made.write(number, usize::from(number)..usize::from(number) + 1);
            made.flush();
        }
        for (recent, first, flushes) in [
            (Recent::Writes(3), 8, 3),
            (Recent::Writes(u64::MAX), 1, 10),
            (Recent::Writes(0), 11, 0),
            // The cut comes 1 ms after the last write.
            (Recent::Time(Duration::from_millis(3)), 8, 3),
            (Recent::Time(Duration::MAX), 1, 10),
            (Recent::Time(Duration::ZERO), 11, 0),
        ] {
            let mut lost = BTreeSet::new();
            for seed in 0..300 {
                let (sectors, survivors) = made.cut(CutDisk::Lying(recent), seed);
                assert_eq!(survivors.ignored_flushes, flushes, "{recent:?}");
                lost.extend((1..=10u8).filter(|number| sectors[usize::from(*number)] == 0));
            }
            assert!(lost.iter().copied().eq(first..=10), "{recent:?}: {lost:?}");
        }
        // What was written since the last flush is at risk whatever was asked for.
        made.write(11, 11..12);
        made.write(12, 12..13);
        assert_eq!(made.cut(CutDisk::Lying(Recent::Writes(1)), 0).1.at_risk, 2);
        assert_eq!(made.cut(CutDisk::Lying(Recent::Time(Duration::ZERO)), 0).1.at_risk, 2);
    }
}
