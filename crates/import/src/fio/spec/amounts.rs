//! How much: sizes of operations and of files.

use super::Blocks;
use crate::fio::number;
use crate::fio::reader::Reader;

/// Sizes of reads and writes.
pub(super) fn blocks(reader: &mut Reader<'_>, random: bool) -> [Blocks; 2] {
    let base = reader.base();
    let above_zero = |size: u64| if size > 0 { Ok(size) } else { Err("a size of 0".to_owned()) };
    let mut blocks = [Blocks::Fixed(4096), Blocks::Fixed(4096)];
    if let Some([read, write, _]) = reader.parsed("bs", |text| {
        number::by_direction(text, &4096, |part| number::size(part, base).and_then(above_zero))
    }) {
        blocks = [Blocks::Fixed(read), Blocks::Fixed(write)];
    }
    let unaligned = reader.flag("bs_unaligned", false);
    if let Some([read, write, _]) = reader.parsed("bsrange", |text| {
        number::by_direction(text, &(4096, 4096), |part| {
            number::range(part, base).and_then(|(min, max)| above_zero(min).map(|_| (min, max)))
        })
    }) {
        let of =
            |(min, max)| if min == max { Blocks::Fixed(min) } else { Blocks::Range { min, max, unaligned } };
        blocks = [of(read), of(write)];
    }
    if let Some([read, write, _]) =
        reader.parsed("bssplit", |text| number::by_direction(text, &Vec::new(), |part| split(part, base)))
    {
        let of = |parts: Vec<(u64, f64)>, before: &Blocks| match parts.as_slice() {
            [] => before.clone(),
            [(size, _)] => Blocks::Fixed(*size),
            _ => Blocks::Split(parts),
        };
        blocks = [of(read, &blocks[0]), of(write, &blocks[1])];
    }
    if reader.flag("bs_is_seq_rand", false) {
        let one = blocks[usize::from(random)].clone();
        blocks = [one.clone(), one];
        reader.translated("bs_is_seq_rand", "`io_size` of the sequential or the random operations");
    }
    if let Some([read, ..]) =
        reader.parsed("ba", |text| number::by_direction(text, &0, |part| number::size(part, base)))
    {
        if blocks.iter().all(|blocks| *blocks == Blocks::Fixed(read)) {
            reader.translated("ba", "positions are multiples of `io_size`")
        } else {
            reader.approximated("ba", "positions are multiples of `io_size`, not of this")
        }
    }
    blocks
}

/// `4k/10:64k/50:32k/`: sizes with percentages; those without share what is left.
fn split(text: &str, base: u64) -> Result<Vec<(u64, f64)>, String> {
    let mut parts = Vec::new();
    for part in text.split(':').map(str::trim).filter(|part| !part.is_empty()) {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let size = number::size(size, base)?;
        if size == 0 {
            return Err("a size of 0".into());
        }
        let percent = match percent.trim().trim_end_matches('%') {
            "" => None,
            percent => Some(number::fraction(percent)?),
        };
        parts.push((size, percent));
    }
    let given: f64 = parts.iter().filter_map(|(_, percent)| *percent).sum();
    let open = parts.iter().filter(|(_, percent)| percent.is_none()).count();
    if parts.iter().any(|(_, percent)| percent.is_some_and(|percent| percent < 0.0)) || given > 100.0 {
        return Err(format!("the percentages of `{text}` add up to more than 100 or are negative"));
    }
    let share = if open > 0 { (100.0 - given) / open as f64 } else { 0.0 };
    let parts: Vec<(u64, f64)> =
        parts.into_iter().map(|(size, percent)| (size, percent.unwrap_or(share))).collect();
    Ok(parts.into_iter().filter(|(_, percent)| *percent > 0.0).collect())
}

pub(super) fn direct(reader: &mut Reader<'_>) -> bool {
    let mut direct = reader.flag("direct", false);
    if reader.has("buffered") {
        direct = !reader.flag("buffered", true);
    }
    for name in ["direct", "buffered"] {
        reader.translated(name, if direct { "the flag `direct`" } else { "no flag `direct`" });
    }
    if reader.flag("atomic", false) {
        reader.approximated("atomic", "O_DIRECT; writes are not marked as atomic");
        direct = true;
    }
    direct
}

/// `size` and `io_size`. `None` when the job has no size.
pub(super) fn sizes(reader: &mut Reader<'_>) -> Option<(Option<u64>, Option<u64>)> {
    let base = reader.base();
    let existing = reader.existing();
    let by_file = reader.has("filesize");
    let part = reader.text("size").and_then(number::percent);
    let size = match (part.clone(), existing) {
        (Some(_), _) if by_file => {
            reader.approximated("size", "the whole of each file");
            None
        }
        (Some(Ok(percent)), Some(existing)) => {
            reader.translated("size", "this part of the size that was given for what exists");
            Some(part_of(existing, percent))
        }
        (Some(Err(message)), _) => {
            reader.wrong(Some("size"), message);
            None
        }
        (Some(_), None) => None,
        (None, _) => {
            let size = reader.size("size").filter(|size| *size > 0);
            reader.translated("size", "size of the files, and bytes in `until`");
            size
        }
    };
    let size = size.or(existing.filter(|_| !by_file));
    if size.is_none() && !by_file {
        let existing = "a study makes its files, so give them a size, with `--size` where the job has none";
        let (name, why) = match (part.is_some(), reader.has("fill_device")) {
            (true, _) => ("size", "it uses a part of files or devices that exist"),
            (_, true) => ("fill_device", "it writes until the file system is full"),
            _ => ("filename", "it has no `size` and takes that of files or devices that exist"),
        };
        reader.left_out(name, &format!("{why}; {existing}"));
        return None;
    }
    let io_size = reader.parsed("io_size", |text| match (number::percent(text), size) {
        (Some(percent), Some(size)) => percent.map(|percent| part_of(size, percent)),
        (Some(_), None) => Err("a percentage needs a `size`".into()),
        (None, _) => number::size(text, base),
    });
    if reader.flag("fill_device", false) {
        let why = "the workload ends with its bytes, not when the file system is full";
        reader.unsupported("fill_device", why);
    }
    Some((size, io_size.filter(|size| *size > 0)))
}

fn part_of(size: u64, percent: u64) -> u64 {
    size / 100 * percent + size % 100 * percent / 100
}

/// Smallest and largest size of a file.
pub(super) fn file_size(reader: &mut Reader<'_>) -> Option<(u64, u64)> {
    let base = reader.base();
    reader.parsed("filesize", |text| number::range(text, base))
}
