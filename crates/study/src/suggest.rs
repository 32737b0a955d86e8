//! Words that users may write instead of the right one, and how the right one is found.

/// Words of other tools, and of older habits, by what is meant.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("io_size", &["bs", "block_size", "blocksize", "transfer_size", "iosize"]),
    ("file_size", &["size", "filesize"]),
    ("files", &["nrfiles"]),
    ("workers", &["numjobs", "jobs", "threads", "nthreads"]),
    ("queue_depth", &["iodepth", "depth"]),
    ("io", &["ioengine", "engine"]),
    ("duration", &["runtime", "time", "length"]),
    ("warm_up", &["ramp_time", "warmup"]),
    ("direct", &["o_direct"]),
    ("rate", &["rate_iops"]),
    ("sync", &["fsync"]),
    ("levels", &["values"]),
    ("parameter", &["param", "path"]),
    ("replicates", &["repetitions", "repeats", "reps", "runs"]),
    ("path", &["directory", "dir"]),
    ("version", &["vers", "nfsvers", "minorversion"]),
    ("delay", &["latency"]),
    ("response", &["metric"]),
    ("use", &["type"]),
    ("workload", &["workloads"]),
    ("factors", &["factor"]),
    ("run", &["settings"]),
    ("study", &["experiment"]),
    ("sequential-read", &["read"]),
    ("sequential-write", &["write"]),
    ("random-read", &["randread"]),
    ("random-write", &["randwrite"]),
    ("metadata", &["mdtest"]),
    ("one-at-a-time", &["ofat"]),
    ("full", &["factorial"]),
    ("random", &["randomized", "randomised"]),
    ("listed", &["sequential"]),
];

/// The candidate that was probably meant by `written`.
pub(crate) fn nearest<'c>(written: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let candidates: Vec<_> = candidates.into_iter().collect();
    let plain = |text: &str| text.to_lowercase().replace(['-', '_', ' '], "");
    let is_written = |words: &[&str]| words.iter().any(|word| plain(word) == plain(written));
    let mut meant = SYNONYMS.iter().filter(|(_, words)| is_written(words)).map(|(meant, _)| meant);
    if let Some(found) = meant.find_map(|meant| candidates.iter().find(|candidate| candidate == &meant)) {
        return Some(found);
    }
    if let Some(whole) = candidates.iter().find(|candidate| abbreviates(&plain(written), candidate)) {
        return Some(whole);
    }
    let distance = |candidate: &&str| strsim::damerau_levenshtein(&plain(written), &plain(candidate));
    candidates
        .iter()
        .map(|candidate| (distance(candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(written.len()).max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether a word consists of beginnings of all words of a name, in order: `seqwrite` of `sequential-write`.
fn abbreviates(written: &str, name: &str) -> bool {
    let Some((first, rest)) = name.split_once(['-', '_']) else {
        return written.len() > 1 && name.starts_with(written);
    };
    // Every beginning of the first word that `written` has; the others must be in what is left.
    let shared = written.bytes().zip(first.bytes()).take_while(|(a, b)| a == b).count();
    (2..=shared).any(|at| written.get(at..).is_some_and(|left| abbreviates(left, rest)))
}

/// Whether `written` is `key` or likely a misspelling of it.
pub(crate) fn is_like(written: &str, key: &str) -> bool {
    written == key || nearest(written, [key]).is_some()
}

/// ``did you mean `x`?`` or the list of what is known.
pub(crate) fn suggest<'c>(
    written: &str,
    what: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> String {
    let candidates: Vec<_> = candidates.into_iter().collect();
    match nearest(written, candidates.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if candidates.is_empty() => format!("there are no {what}"),
        None => format!("{what}: {}", quoted(&candidates)),
    }
}

/// `` `a`, `b`, `c` ``
pub(crate) fn quoted<S: AsRef<str>>(words: &[S]) -> String {
    words.iter().map(|word| format!("`{}`", word.as_ref())).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_that_was_meant() {
        let keys = ["io_size", "file_size", "files", "workers", "queue_depth", "duration", "warm_up"];
        let meant = |written| nearest(written, keys);
        assert_eq!(meant("io_sze"), Some("io_size"));
        assert_eq!(meant("io-size"), Some("io_size"));
        assert_eq!(meant("bs"), Some("io_size"));
        assert_eq!(meant("runtime"), Some("duration"));
        assert_eq!(meant("file"), Some("files"));
        assert_eq!(meant("colour"), None);
        let workloads =
            ["sequential-read", "sequential-write", "random-read", "small-file-read", "mail-server"];
        let meant = |written| nearest(written, workloads);
        assert_eq!(meant("seqwrite"), Some("sequential-write"));
        assert_eq!(meant("seq_rd"), None);
        assert_eq!(meant("rand-read"), Some("random-read"));
        assert_eq!(meant("smfiread"), Some("small-file-read"));
        assert_eq!(meant("server"), None);
        assert_eq!(suggest("colour", "keys", ["a", "b"]), "keys: `a`, `b`");
    }
}
