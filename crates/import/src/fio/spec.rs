//! What one job asks for, read from its options.

use super::number;
use super::reader::Reader;

pub(crate) mod access;
mod amounts;
pub(crate) mod manner;

use access::{direction, distribution, engine, increment};
use amounts::{blocks, direct, file_size, sizes};
use manner::{cached, delay, flushes, rate, rest, service, sync, think, trace, verification};

/// Sizes of reads or writes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Blocks {
    Fixed(u64),
    /// Every multiple of `min` (any size, when `unaligned`) is equally likely.
    Range {
        min: u64,
        max: u64,
        unaligned: bool,
    },
    Split(Vec<(u64, f64)>),
}

impl Blocks {
    /// Bytes of a read or write on average.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => *size as f64,
            Self::Range { min, max, .. } => (*min as f64 + *max as f64) / 2.0,
            Self::Split(parts) => {
                let all: f64 = parts.iter().map(|(_, percent)| percent).sum();
                parts.iter().map(|(size, percent)| *size as f64 * percent).sum::<f64>() / all
            }
        }
    }

    pub(super) fn smallest(&self) -> u64 {
        match self {
            Self::Fixed(size) => *size,
            Self::Range { min, .. } => *min,
            Self::Split(parts) => parts.iter().map(|(size, _)| *size).min().unwrap_or(1),
        }
    }
}

/// How the next position is chosen when it is by chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Distribution {
    Even,
    Zipf(f64),
    /// This share of the accesses goes to this share of the bytes.
    Hotspot {
        share: f64,
        accesses: f64,
    },
}

/// What a number behind `rw=` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modifier {
    /// A new random position after so many.
    Every(u64),
    /// Bytes added to each sequential position.
    Skip(i64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    /// Reads and writes, one at a time.
    Sync,
    /// Reads and writes, several outstanding.
    Async,
    Create,
    /// Files are looked at.
    Stat,
    Delete,
}

/// In which order files are worked on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Service {
    RoundRobin,
    Random,
    Sequential,
    Zipf(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sync {
    No,
    Data,
    Full,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spec {
    pub(super) name: String,
    pub(super) engine: Engine,
    pub(super) depth: u32,
    pub(super) clones: u32,
    /// Percent of the operations that are reads.
    pub(super) reads: f64,
    pub(super) random: bool,
    pub(super) modifier: Option<Modifier>,
    /// Percent of the positions that are random.
    pub(super) percent_random: f64,
    pub(super) distribution: Distribution,
    /// Sizes of reads and of writes.
    pub(super) blocks: [Blocks; 2],
    /// Smallest and largest size of each file; `None` when it follows from `size`.
    pub(super) file_size: Option<(u64, u64)>,
    pub(super) size: Option<u64>,
    /// Bytes moved by each clone; `size` if absent.
    pub(super) io_size: Option<u64>,
    pub(super) operations: Option<u64>,
    pub(super) loops: u32,
    pub(super) increment: u64,
    pub(super) runtime: Option<u64>,
    pub(super) time_based: bool,
    pub(super) ramp: u64,
    /// Time after the others at which it begins.
    pub(super) delay: u64,
    pub(super) append: bool,
    pub(super) direct: bool,
    pub(super) sync: Sync,
    pub(super) overwrite: bool,
    pub(super) allocate: bool,
    /// A flush after every N writes, and whether of data alone.
    pub(super) flush: Option<(u32, bool)>,
    pub(super) flush_at_end: bool,
    pub(super) flush_on_close: bool,
    /// A pause of so many nanoseconds after so many operations or so much time.
    pub(super) think: Option<Think>,
    /// Operations per second of each clone.
    pub(super) rate: Option<f64>,
    /// It was given in bytes per second.
    pub(super) rate_in_bytes: bool,
    pub(super) service: Service,
    /// Operations before the next file.
    pub(super) service_count: u32,
    pub(super) verify: bool,
    pub(super) read_back: bool,
    pub(super) stonewall: bool,
    pub(super) wait_for: Option<String>,
    pub(super) cached: bool,
    pub(super) trace: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Think {
    pub(super) nanos: u64,
    pub(super) blocks: u32,
    pub(super) every_ns: Option<u64>,
}

impl Spec {
    pub(super) fn writes(&self) -> bool {
        self.reads < 100.0
    }

    pub(super) fn only_writes(&self) -> bool {
        self.reads == 0.0
    }

    /// Bytes that a read or write has on average.
    pub(super) fn mean_block(&self) -> f64 {
        let part = self.reads / 100.0;
        self.blocks[0].mean() * part + self.blocks[1].mean() * (1.0 - part)
    }

    /// The smallest read or write.
    pub(super) fn smallest_block(&self) -> u64 {
        match (self.reads > 0.0, self.writes()) {
            (true, true) => self.blocks[0].smallest().min(self.blocks[1].smallest()),
            (true, false) => self.blocks[0].smallest(),
            (false, _) => self.blocks[1].smallest(),
        }
    }
}

/// Reads a job. `None` when it is not about files; the reader then says why.
pub(super) fn read(reader: &mut Reader<'_>) -> Option<Spec> {
    let engine = engine(reader)?;
    let (reads, random, modifier) = direction(reader)?;
    for (name, why) in [
        ("create_only", "it only makes files, and a study makes its files before each run anyway"),
        ("read_iolog", "its pattern comes from a file that is not imported"),
    ] {
        let given = reader.has(name) && (name == "read_iolog" || reader.flag(name, false));
        if given {
            reader.left_out(name, why);
            return None;
        }
        reader.translated(name, "");
    }
    let clones = reader.count("numjobs", 1).unwrap_or(1);
    let blocks = blocks(reader, random);
    let depth = reader.count("iodepth", 1).unwrap_or(1);
    let time_based = reader.flag("time_based", false);
    let runtime = reader.time("runtime", 1_000_000_000).filter(|nanos| *nanos > 0);
    if time_based && runtime.is_none() {
        reader.wrong(Some("time_based"), "a job that is `time_based` needs a `runtime`");
    }
    let ramp = reader.time("ramp_time", 1_000_000_000).unwrap_or(0);
    let direct = direct(reader);
    let (size, io_size) = sizes(reader)?;
    let file_size = file_size(reader);
    let (flush, flush_at_end, flush_on_close) = flushes(reader);
    let percents = reader.parsed("percentage_random", |text| {
        number::by_direction(text, &100.0, |part| {
            let percent = number::fraction(part)?;
            let is_one = (0.0..=100.0).contains(&percent);
            if is_one { Ok(percent) } else { Err(format!("`{percent}` is not a percentage")) }
        })
    });
    let percent_random = percents.map_or(100.0, |percents| percents[usize::from(reads == 0.0)]);
    let (service, service_count) = service(reader);
    let loops = reader.count("loops", 1).unwrap_or(1);
    let operations = reader.size("number_ios").filter(|count| *count > 0);
    let name = reader.text("name").unwrap_or(reader.name()).to_owned();
    let mut spec = Spec {
        name,
        engine,
        depth,
        clones,
        reads,
        random,
        modifier,
        percent_random,
        distribution: distribution(reader),
        blocks,
        file_size,
        size,
        io_size,
        operations,
        loops,
        increment: increment(reader),
        runtime,
        time_based,
        ramp,
        delay: delay(reader),
        append: reader.flag("file_append", false),
        direct,
        sync: sync(reader),
        overwrite: reader.flag("overwrite", false),
        allocate: false,
        flush,
        flush_at_end,
        flush_on_close,
        think: think(reader),
        rate: None,
        rate_in_bytes: false,
        service,
        service_count,
        verify: false,
        read_back: false,
        stonewall: reader.flag("stonewall", false),
        wait_for: reader.text("wait_for").map(ToOwned::to_owned),
        cached: cached(reader),
        trace: trace(reader),
    };
    reader.translated("overwrite", if spec.overwrite { "`prefill = 1.0`" } else { "as it is without" });
    verification(reader, &mut spec);
    rate(reader, &mut spec);
    rest(reader, &mut spec);
    Some(spec)
}
