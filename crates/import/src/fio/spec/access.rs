//! What is done and where: engine, direction and positions.

use super::{Distribution, Engine, Modifier};
use crate::fio::number;
use crate::fio::reader::Reader;

/// What the engine does to files. `None` when it does nothing to files.
pub(super) fn engine(reader: &mut Reader<'_>) -> Option<Engine> {
    let text = reader.text("ioengine").unwrap_or("psync");
    let name = text.split([':', ',']).next().unwrap_or(text);
    let (engine, exact) = match name {
        "psync" => (Engine::Sync, true),
        "sync" | "vsync" | "pvsync" | "pvsync2" => {
            reader.translated("ioengine", "`pread` and `pwrite`, which a file system sees as the same");
            return Some(Engine::Sync);
        }
        "io_uring" => (Engine::Async, true),
        "libaio" | "posixaio" | "solarisaio" | "windowsaio" => (Engine::Async, false),
        "nfs" => {
            if let Some(url) = reader.text("nfs_url") {
                let url = url.to_owned();
                reader.translated("nfs_url", format!("`url` of the target: {url}"));
            }
            reader.translated("ioengine", "a target with a `url` is measured over the wire");
            return Some(Engine::Async);
        }
        "mmap" => {
            reader.approximated(
                "ioengine",
                "`pread` and `pwrite` instead of memory that is mapped to the file",
            );
            return Some(Engine::Sync);
        }
        "splice" => {
            reader.approximated("ioengine", "`pread` and `pwrite` instead of `splice` and `vmsplice`");
            return Some(Engine::Sync);
        }
        "filecreate" => (Engine::Create, true),
        "filestat" => (Engine::Stat, true),
        "filedelete" => (Engine::Delete, true),
        "null" | "cpuio" | "exec" => return left_out(reader, "its engine does nothing to files"),
        "net"
        | "netsplice"
        | "rdma"
        | "librpma_apm_client"
        | "librpma_apm_server"
        | "librpma_gpspm_client"
        | "librpma_gpspm_server" => return left_out(reader, "its engine measures networks"),
        "sg" | "libzbc" | "mtd" | "io_uring_cmd" | "xnvme" | "libblkio" | "nbd" | "libiscsi" | "rbd"
        | "dev-dax" | "pmemblk" | "libpmem" => {
            return left_out(reader, "its engine accesses devices or memory, not files");
        }
        "rados" | "http" | "gfapi" | "gfapi_async" | "libhdfs" | "ime_psync" | "ime_psyncv" | "ime_aio"
        | "dfs" | "libcufile" => {
            return left_out(reader, "its engine uses a library of another kind of storage");
        }
        "falloc" | "e4defrag" | "ftruncate" => {
            return left_out(reader, "its engine changes the space of files and reads and writes nothing");
        }
        "external" => return left_out(reader, "its engine is an external program"),
        other => {
            let message = format!("fio 3.33 has no engine `{other}`");
            reader.wrong(Some("ioengine"), message);
            return None;
        }
    };
    let straight = reader.text("direct") == Some("1") || reader.text("buffered") == Some("0");
    match (engine, exact) {
        (Engine::Async, true) => reader.translated("ioengine", "`io = \"io_uring\"`"),
        (Engine::Async, false) if name == "libaio" && straight => {
            reader.translated(
                "ioengine",
                "`io = \"io_uring\"`, which queues as Linux's aio does with O_DIRECT",
            );
        }
        (Engine::Async, false) => {
            let message = "`io = \"io_uring\"`; without O_DIRECT Linux's aio keeps one outstanding whatever the `iodepth`; here all are outstanding";
            reader.approximated("ioengine", message);
        }
        _ => reader.translated("ioengine", "the operations of the flow"),
    }
    Some(engine)
}

fn left_out<T>(reader: &mut Reader<'_>, why: &str) -> Option<T> {
    reader.left_out("ioengine", why);
    None
}

/// Percent of reads, whether positions are random, and the number behind the word.
pub(super) fn direction(reader: &mut Reader<'_>) -> Option<(f64, bool, Option<Modifier>)> {
    let base = reader.base();
    let parsed = if reader.has("rw") {
        reader.parsed("rw", |text| {
            let (word, rest) = match text.split_once([':', ',']) {
                Some((word, rest)) => (word, Some(rest.trim())),
                None => (text, None),
            };
            let number = rest.filter(|rest| !rest.is_empty()).map(|rest| number::signed_size(rest, base));
            Ok((word.to_ascii_lowercase(), number.transpose()?))
        })?
    } else {
        ("read".to_owned(), None)
    };
    let (word, number) = parsed;
    let mix = mix(reader);
    let (reads, random) = match pattern(&word, mix) {
        Ok(Some(pattern)) => pattern,
        Ok(None) => {
            reader.left_out("rw", TRIMS);
            return None;
        }
        Err(message) => {
            reader.wrong(Some("rw"), message);
            return None;
        }
    };
    if !(1.0..=99.0).contains(&reads) || !word.contains("rw") && word != "readwrite" {
        for name in ["rwmixread", "rwmixwrite"] {
            reader.irrelevant(name, "the job does not mix reads and writes");
        }
    }
    let modifier = match number {
        None | Some(0) => None,
        Some(count) if random => {
            let count = u64::try_from(count).ok().filter(|count| *count > 1);
            count.map(Modifier::Every)
        }
        Some(bytes) => Some(Modifier::Skip(bytes)),
    };
    if reader.has("rw_sequencer") {
        match reader.text("rw_sequencer") {
            Some("sequential") => reader.translated("rw_sequencer", "sequential positions"),
            _ if modifier.is_none() => reader.irrelevant("rw_sequencer", "`rw` has no number behind it"),
            _ => reader.unsupported("rw_sequencer", "a position is not used several times in a row"),
        }
    }
    Some((reads, random, modifier))
}

/// Why trims are left out.
pub(crate) const TRIMS: &str = "trims are about block devices";

/// Percent of reads and whether positions are random, by the word of `rw`, of whose mixes `mix` percent are reads; none for
/// trims.
pub(crate) fn pattern(word: &str, mix: f64) -> Result<Option<(f64, bool)>, String> {
    Ok(Some(match word {
        "read" => (100.0, false),
        "write" => (0.0, false),
        "randread" => (100.0, true),
        "randwrite" => (0.0, true),
        "rw" | "readwrite" => (mix, false),
        "randrw" => (mix, true),
        "trim" | "randtrim" | "trimwrite" | "randtrimwrite" => return Ok(None),
        other => {
            return Err(format!(
                "`{other}` is none of `read`, `write`, `randread`, `randwrite`, `rw`, `readwrite`, `randrw`, `trim`, \
                 `randtrim`, `trimwrite`, `randtrimwrite`"
            ));
        }
    }))
}

/// A percentage of a mix.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse::<u32>().ok().filter(|percent| *percent <= 100);
    percent.map(f64::from).ok_or_else(|| format!("`{text}` is not a percentage from 0 to 100"))
}

/// Percent of reads in a mix.
fn mix(reader: &mut Reader<'_>) -> f64 {
    let reads = reader.parsed("rwmixread", percent);
    let writes = reader.parsed("rwmixwrite", percent);
    reads.or(writes.map(|writes| 100.0 - writes)).unwrap_or(50.0)
}

/// How random positions are distributed.
pub(super) fn distribution(reader: &mut Reader<'_>) -> Distribution {
    let parsed = reader.parsed("random_distribution", |text| {
        let text = text.split(',').next().unwrap_or(text);
        let (word, rest) = text.split_once([':', '=']).unwrap_or((text, ""));
        let first = rest.split(':').next().unwrap_or("").trim();
        let number = |default: f64| if first.is_empty() { Ok(default) } else { number::fraction(first) };
        Ok(match word.trim() {
            "random" => (Distribution::Even, None),
            "zipf" => {
                let note = "rank 1 is a position drawn by the seed, as in fio; the sampling is this program's";
                (Distribution::Zipf(number(1.1)?), Some(note).filter(|_| rest.contains(':')))
            }
            "pareto" => {
                let share = number(0.2)?;
                if !(share > 0.0 && share < 1.0) {
                    return Err("the Pareto power is a number between 0 and 1".into());
                }
                let hot = Distribution::Hotspot { share, accesses: 1.0 - share };
                (hot, Some("two levels instead of a curve: as large a share of the accesses goes to as large a share of the bytes"))
            }
            "normal" | "gauss" => {
                let percent = number(20.0)?;
                if !(percent > 0.0 && percent < 50.0) {
                    return Err("the deviation is a percentage between 0 and 50".into());
                }
                let hot = Distribution::Hotspot { share: percent / 50.0, accesses: 0.6827 };
                (hot, Some("two levels instead of a curve: 68.27 % of the accesses go to two deviations of the bytes"))
            }
            "zoned" | "zoned_abs" => zones(word, rest)?,
            _ => return Err("write `random`, `zipf`, `pareto`, `normal`, `zoned` or `zoned_abs`".into()),
        })
    });
    match parsed {
        None => Distribution::Even,
        Some((distribution, None)) => {
            reader.translated("random_distribution", "`offset`");
            distribution
        }
        Some((distribution, Some(how))) => {
            reader.approximated("random_distribution", how);
            distribution
        }
    }
}

/// `60/10:30/20:8/30:2/40`: the densest zone becomes the hotspot.
fn zones(word: &str, rest: &str) -> Result<(Distribution, Option<&'static str>), String> {
    if word == "zoned_abs" {
        let how = "positions are random over the whole file: zones of absolute sizes are not supported";
        return Ok((Distribution::Even, Some(how)));
    }
    let mut zones = Vec::new();
    for part in rest.split(':').filter(|part| !part.trim().is_empty()) {
        let Some((accesses, bytes)) = part.split_once('/') else {
            return Err(format!("`{part}` is not a zone; write percent of accesses/percent of the file"));
        };
        let left = 100.0 - zones.iter().map(|(_, bytes)| bytes).sum::<f64>();
        let bytes = if bytes.trim().is_empty() { left } else { number::fraction(bytes)? };
        let accesses = number::fraction(accesses)?;
        if !(accesses > 0.0 && bytes > 0.0 && accesses <= 100.0 && bytes <= left + 1e-9) {
            return Err(format!("`{part}` is not a zone: the percentages of a file add up to 100"));
        }
        zones.push((accesses, bytes));
    }
    let densest = zones.iter().copied().max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let Some((accesses, bytes)) = densest else { return Err("zones are missing".into()) };
    if zones.len() == 1 || bytes >= 100.0 || accesses >= 100.0 {
        return Ok((Distribution::Even, Some("positions are random over the whole file")));
    }
    let hot = Distribution::Hotspot { share: bytes / 100.0, accesses: accesses / 100.0 };
    let how = "two zones: the densest one, and all the rest";
    Ok((hot, Some(how).filter(|_| zones.len() > 2 || zones.first() != Some(&(accesses, bytes)))))
}

/// `offset` and its relatives: bytes from the region of one clone to that of the next.
pub(super) fn increment(reader: &mut Reader<'_>) -> u64 {
    let zero =
        |text: Option<&str>| text.is_none_or(|text| text.trim_end_matches(['%', 'k', 'm', 'g', 'b']) == "0");
    for name in ["offset", "offset_align"] {
        if zero(reader.text(name)) {
            reader.irrelevant(name, "it is 0")
        } else {
            let how = "the file consists of the part from there on, so that positions begin at 0";
            reader.approximated(name, how);
        }
    }
    if zero(reader.text("offset_increment")) {
        reader.irrelevant("offset_increment", "it is 0");
        return 0;
    }
    if reader.text("offset_increment").is_some_and(|text| text.trim_end().ends_with('%')) {
        reader.unsupported("offset_increment", "every worker works on the whole file");
        return 0;
    }
    reader.size("offset_increment").unwrap_or(0)
}
