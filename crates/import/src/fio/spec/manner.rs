//! In which manner: durability, pauses, rates, verification, and options of which one value is as it is done anyway.

use super::{Engine, Service, Spec, Sync, Think};
use crate::fio::number;
use crate::fio::reader::Reader;

pub(super) fn sync(reader: &mut Reader<'_>) -> Sync {
    let sync = reader.parsed("sync", |text| match text {
        "0" | "none" => Ok(Sync::No),
        "1" | "sync" => Ok(Sync::Full),
        "dsync" => Ok(Sync::Data),
        _ => Err("write `none`, `sync` or `dsync`".into()),
    });
    sync.unwrap_or(Sync::No)
}

pub(super) fn flushes(reader: &mut Reader<'_>) -> (Option<(u32, bool)>, bool, bool) {
    let fsync = reader.count("fsync", 0).filter(|count| *count > 0);
    let fdatasync = reader.count("fdatasync", 0).filter(|count| *count > 0);
    if fsync.is_some() && fdatasync.is_some() {
        reader.unsupported("fdatasync", "the job already asks for `fsync`, which does more");
    }
    let flush = fsync.map(|count| (count, false)).or(fdatasync.map(|count| (count, true)));
    (flush, reader.flag("end_fsync", false), reader.flag("fsync_on_close", false))
}

pub(super) fn think(reader: &mut Reader<'_>) -> Option<Think> {
    let nanos = reader.time("thinktime", 1_000);
    let blocks = reader.count("thinktime_blocks", 1).unwrap_or(1);
    let every_ns = reader.time("thinktime_iotime", 1_000_000_000).filter(|nanos| *nanos > 0);
    let spin = reader.time("thinktime_spin", 1_000).is_some_and(|nanos| nanos > 0);
    if reader.text("thinktime_blocks_type") == Some("issue") {
        reader.approximated("thinktime_blocks_type", "operations are counted when they complete");
    }
    if spin {
        reader.approximated("thinktime_spin", "workers sleep during the whole pause");
    }
    nanos.filter(|nanos| *nanos > 0).map(|nanos| Think { nanos, blocks, every_ns })
}

pub(super) fn service(reader: &mut Reader<'_>) -> (Service, u32) {
    let parsed = reader.parsed("file_service_type", |text| {
        let (word, number) = text.split_once(':').map_or((text, None), |(word, number)| (word, Some(number)));
        let count = |number: Option<&str>| match number {
            Some(number) => {
                number.parse::<u32>().ok().filter(|count| *count > 0).ok_or(format!("`{text}`: not a count"))
            }
            None => Ok(1),
        };
        let theta = |number: Option<&str>| number.map_or(Ok(1.2), number::fraction);
        Ok(match word {
            "random" => (Service::Random, count(number)?, true),
            "roundrobin" => (Service::RoundRobin, count(number)?, true),
            "sequential" => (Service::Sequential, 1, true),
            "zipf" => (Service::Zipf(theta(number)?), 1, true),
            "pareto" | "normal" | "gauss" => (Service::Zipf(1.2), 1, false),
            _ => {
                return Err("write `random`, `roundrobin`, `sequential`, `zipf`, `pareto` or `normal`".into());
            }
        })
    });
    let Some((service, count, exact)) = parsed else { return (Service::RoundRobin, 1) };
    if exact {
        reader.translated("file_service_type", "which files are picked")
    } else {
        reader.approximated("file_service_type", "files are picked by a Zipf distribution")
    }
    (service, count)
}

/// Whether reads may come from this host's cache.
pub(super) fn cached(reader: &mut Reader<'_>) -> bool {
    let keep = !reader.flag("invalidate", true);
    reader.translated("invalidate", if keep { "`cache = \"keep\"`" } else { "`cache = \"fadvise\"`" });
    let before = reader.flag("pre_read", false);
    if before {
        let how = "files stay in the cache from when they were made: `cache = \"keep\"`";
        reader.approximated("pre_read", how);
    }
    keep || before
}

pub(super) fn trace(reader: &mut Reader<'_>) -> bool {
    reader.has("write_lat_log") || reader.has("write_iolog")
}

/// Whether data are verified, by the name of fio's method.
pub(crate) fn verifies(text: &str) -> Result<bool, String> {
    const METHODS: &str = "md5, crc64, crc32c, crc32c-intel, crc32, crc16, crc7, xxhash, sha512, sha256, sha1, sha3-224, \
                           sha3-256, sha3-384, sha3-512, meta, pattern";
    match text.split(':').next().unwrap_or(text) {
        "0" | "null" => Ok(false),
        method if METHODS.split(", ").any(|known| known == method) => Ok(true),
        method => Err(format!("`{method}` is not a method of verification; fio knows {METHODS}")),
    }
}

pub(super) fn verification(reader: &mut Reader<'_>, spec: &mut Spec) {
    let on = reader.parsed("verify", verifies);
    let only = reader.flag("verify_only", false);
    let after = reader.flag("do_verify", true);
    spec.verify = on == Some(true) || only;
    spec.read_back = spec.verify && after && spec.only_writes();
    match on {
        Some(true) => {
            let how = "`verify = true`: file, offset, generation and all bytes of every block, by this program's own stamps";
            reader.translated("verify", how);
        }
        _ => reader.irrelevant("verify", "nothing is verified"),
    }
    if only {
        reader.approximated("verify_only", "files are made with stamps and read back");
        (spec.reads, spec.random, spec.read_back) = (100.0, false, false);
    }
    reader.translated(
        "do_verify",
        if spec.read_back { "a separate workload reads everything back" } else { "nothing is read back" },
    );
}

/// Bytes or operations per second.
pub(super) fn rate(reader: &mut Reader<'_>, spec: &mut Spec) {
    let base = reader.base();
    let both = |reader: &mut Reader<'_>, name| {
        reader.parsed(name, |text| number::by_direction(text, &0, |part| number::size(part, base)))
    };
    let (bytes, operations) = (both(reader, "rate"), both(reader, "rate_iops"));
    let mixed = spec.reads > 0.0 && spec.writes();
    let capped = |reader: &mut Reader<'_>, name, values: Option<[u64; 3]>, unit: [f64; 2]| {
        let [read, write, _] = values?;
        let of = [read as f64 / unit[0], write as f64 / unit[1]];
        let sum = match (spec.reads > 0.0, spec.writes()) {
            (true, true) if of[0] == 0.0 || of[1] == 0.0 => {
                reader.unsupported(name, "the rate of reads or writes alone cannot be limited in a mix");
                return None;
            }
            (true, true) => of[0] + of[1],
            (true, false) => of[0],
            (false, _) => of[1],
        };
        if mixed {
            reader.approximated(name, "the rate of reads and writes together, by their weights")
        } else {
            reader.translated(name, "`rate` of the group")
        }
        Some(sum).filter(|rate| *rate > 0.0)
    };
    let by_bytes = capped(reader, "rate", bytes, [spec.blocks[0].mean(), spec.blocks[1].mean()]);
    let by_count = capped(reader, "rate_iops", operations, [1.0, 1.0]);
    spec.rate = by_count.or(by_bytes);
    spec.rate_in_bytes = by_count.is_none() && by_bytes.is_some();
    if reader.text("rate_process") == Some("poisson") {
        let why = "operations start at even intervals, not as a Poisson process";
        reader.unsupported("rate_process", why);
    }
    if spec.think.is_none() {
        reader.irrelevant("rate_ignore_thinktime", "there is no `thinktime`");
    }
}

/// Options of which one value is as this program does it anyway.
pub(super) fn rest(reader: &mut Reader<'_>, spec: &mut Spec) {
    match reader.text("fallocate") {
        Some("none" | "0" | "truncate") => reader.translated("fallocate", "space is not allocated before"),
        Some(_) if !spec.only_writes() || spec.overwrite => {
            reader.irrelevant("fallocate", "the files are full before the workload starts");
        }
        Some(_) => spec.allocate = true,
        None => {}
    }
    match reader.text("norandommap") {
        None if reader.has("norandommap") => reader.translated("norandommap", "`offset = \"random\"`"),
        Some("0") => {
            reader.approximated(
                "norandommap",
                "positions are drawn independently: some occur several times, some never",
            );
        }
        _ => reader.translated("norandommap", "`offset = \"random\"`"),
    }
    match reader.text("lockfile") {
        Some("none") => reader.irrelevant("lockfile", "no locks"),
        _ => reader
            .unsupported("lockfile", "a lock between fio's own jobs; write `lock` steps to measure locks"),
    }
    match reader.text("fadvise_hint") {
        Some("0") => reader.translated("fadvise_hint", "no advice is given"),
        _ => reader.unsupported("fadvise_hint", "the kernel is given no advice about positions"),
    }
    for (name, message) in [
        ("exitall", "groups end each with its own work or with the time of all"),
        ("zero_buffers", "written data are incompressible and differ in every block"),
    ] {
        if reader.flag(name, false) {
            reader.unsupported(name, message);
        }
    }
    for (name, message) in [
        ("write_barrier", "writes have no barriers"),
        ("sync_file_range", "no such operation exists; `fsync` and `fdatasync` flush"),
    ] {
        if reader.text(name) != Some("0") {
            reader.unsupported(name, message);
        }
    }
    match reader.text("zonemode") {
        Some("none") => reader.irrelevant("zonemode", "no zones"),
        Some("zbd") => {
            reader.unsupported("zonemode", "zones of zoned block devices; the whole of the file is used")
        }
        Some("strided") => {
            reader.unsupported("zonemode", "the whole of the file is used, without gaps between zones");
        }
        _ => {}
    }
    for name in ["zonesize", "zoneskip", "zonerange"] {
        if matches!(reader.text("zonemode"), None | Some("none")) {
            reader.irrelevant(name, "`zonemode` is `none`")
        } else {
            reader.unsupported(name, "the whole of the file is used")
        }
    }
    match reader.text("stat_type") {
        None | Some("stat" | "lstat") if spec.engine == Engine::Stat => {
            reader.translated("stat_type", "the operation `stat`");
        }
        _ => reader.approximated("stat_type", "the operation `stat`"),
    }
}

/// How long after the others the job begins, in nanoseconds.
pub(super) fn delay(reader: &mut Reader<'_>) -> u64 {
    let ranged = reader.text("startdelay").is_some_and(|text| text.contains('-'));
    let delay = reader.parsed("startdelay", |text| {
        text.split('-').next_back().map_or(Ok(0), |text| number::time(text, 1_000_000_000))
    });
    if ranged {
        reader.approximated("startdelay", "every worker begins after the longest of these times")
    } else {
        reader.translated("startdelay", "`pause` before the first operation")
    }
    delay.unwrap_or(0)
}
