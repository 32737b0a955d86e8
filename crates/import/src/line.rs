//! A study in one line: the flags that fio's users type, with fio's words and units, as the text of a study file.
//!
//! Several values of a flag, separated by commas, make a factor of its name.

use std::time::Duration;

use benchmaster_units::{Bandwidth, ByteSize, TimeSpan};
use benchmaster_workload::content::MIN_BLOCK;
use toml::{Table, Value};

use crate::fio::number;
use crate::fio::spec::access::{TRIMS, pattern, percent};
use crate::fio::spec::manner::verifies;
use crate::name_of;
use crate::study::{key, section};

/// What a line asks for.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The flags that are given, by name (`bs`), with their values as written.
    pub flags: &'a [(&'static str, &'a str)],
    /// The key of `[target]`, and its value.
    pub target: (&'a str, &'a Value),
    /// Runs of each treatment.
    pub runs: u32,
}

/// Why a line makes no study; the message says what to type instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Neither `--rw` nor `--create`, or both.
    #[error("{0}")]
    Work(&'static str),
    /// A value is none of this flag.
    #[error("`--{flag} {text}`: {message}")]
    Value {
        /// The name of the flag.
        flag: &'static str,
        /// All of its values.
        text: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// Two flags, or a flag and the target, do not go together.
    #[error("`--{flag}` {message}")]
    Together {
        /// The name of the flag.
        flag: &'static str,
        /// With what it does not, and what to type.
        message: String,
    },
}

type Parse = fn(&str) -> Result<Value, String>;

/// Flags of reads and writes, the parameters they set, and the values of those that are not given.
const TRANSFERS: [(&str, &str, Parse, &str); 9] = [
    ("bs", "io_size", bytes, "4k"),
    ("size", "file_size", bytes, "256m"),
    ("iodepth", "queue_depth", count, ""),
    ("numjobs", "workers", count, "1"),
    ("time", "duration", time, "3"),
    ("direct", "direct", switch, ""),
    ("fsync", "fsync", natural, ""),
    ("rate", "bandwidth", bandwidth, ""),
    ("verify", "verify", verify, ""),
];

/// The same of new files.
const CREATION: [(&str, &str, Parse, &str); 6] = [
    ("create", "files", count, ""),
    ("size", "file_size", size, "0"),
    ("bs", "io_size", bytes, ""),
    ("numjobs", "workers", count, "1"),
    ("fsync", "fsync", switch, ""),
    ("verify", "verify", verify, ""),
];

/// The text of the study that a line stands for.
///
/// # Errors
/// The first value or combination that is none.
pub fn to_study(line: &Line<'_>) -> Result<String, LineError> {
    let mut draft = Draft { line, factors: Vec::new(), keys: vec![] };
    let (name, workload, used) = match (draft.given("rw"), draft.given("create")) {
        (Some(words), None) => {
            draft.directions(words)?;
            (name_of(words, "io"), "io", "mixed")
        }
        (None, Some(_)) => ("create".to_owned(), "create", "file-creation"),
        (Some(_), Some(_)) => {
            let message = "`--create` and `--rw` are two studies: run one of them, then the other";
            return Err(LineError::Work(message));
        }
        (None, None) => {
            let message = "a line needs `--rw read`, `write`, `randread`, `randwrite`, `rw` or `randrw`, or `--create N`";
            return Err(LineError::Work(message));
        }
    };
    let known: &[_] = if workload == "io" { &TRANSFERS } else { &CREATION };
    for (flag, ..) in line.flags {
        let general =
            ["rw", "rwmixread", "clients"].contains(flag) && (workload == "io" || *flag == "clients");
        if !general && known.iter().all(|(known, ..)| known != flag) {
            let message =
                "has no meaning with `--create`, which ends when all files are created: leave it out";
            return Err(LineError::Together { flag, message: message.into() });
        }
    }
    for (flag, parameter, parse, default) in known {
        draft.parameter(flag, &format!("workload.{workload}.{parameter}"), *parse, default)?;
    }
    draft.parameter("clients", "clients.count", count, "")?;
    if workload == "io" {
        draft.check()?;
    }
    Ok(draft.write(&name, workload, used))
}

/// A study that is being made.
struct Draft<'a> {
    line: &'a Line<'a>,
    /// Each with the key beside its levels, if any, and these.
    factors: Vec<(&'static str, Option<String>, Value)>,
    /// Parameters of one value.
    keys: Vec<(String, Value)>,
}

impl<'a> Draft<'a> {
    fn given(&self, flag: &str) -> Option<&'a str> {
        self.line.flags.iter().find(|(name, _)| *name == flag).map(|(_, text)| *text)
    }

    /// The values of a flag, none of them twice.
    fn values<T: PartialEq>(
        &self,
        flag: &'static str,
        text: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, LineError> {
        let wrong = |message| LineError::Value { flag, text: text.to_owned(), message };
        let mut values = Vec::new();
        for part in text.split(',').map(str::trim) {
            let value = parse(part).map_err(wrong)?;
            if values.contains(&value) {
                return Err(wrong(format!("`{part}` is there twice: remove one (`--runs` repeats)")));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// Sets a parameter to the value of a flag, or makes a factor of its values.
    fn parameter(
        &mut self,
        flag: &'static str,
        path: &str,
        parse: Parse,
        default: &str,
    ) -> Result<(), LineError> {
        let text = self.given(flag).unwrap_or(default);
        if text.is_empty() && self.given(flag).is_none() {
            return Ok(());
        }
        let mut values = self.values(flag, text, parse)?;
        match values.len() {
            1 => self.keys.extend(values.pop().map(|value| (path.to_owned(), value))),
            _ => self.factors.push((flag, Some(path.to_owned()), Value::Array(values))),
        }
        Ok(())
    }

    /// What `rw` and `rwmixread` say: a share of reads, and where they and the writes go.
    fn directions(&mut self, words: &str) -> Result<(), LineError> {
        let percents = match self.given("rwmixread") {
            Some(text) => self.values("rwmixread", text, percent)?,
            None => vec![50.0],
        };
        let mix = percents[0];
        let of_word = |word: &str| {
            let word = word.to_ascii_lowercase();
            let (reads, random) =
                pattern(&word, mix)?.ok_or_else(|| format!("{TRIMS}: write `write` or `randwrite`"))?;
            Ok((word, reads, random))
        };
        let directions = self.values("rw", words, of_word)?;
        let is_mix = |(word, ..): &(String, f64, bool)| word.ends_with("rw") || word == "readwrite";
        let wrong =
            |message: &str| Err(LineError::Together { flag: "rwmixread", message: message.to_owned() });
        if self.given("rwmixread").is_some() && !directions.iter().any(is_mix) {
            return wrong("is about mixes: add `--rw rw` or `--rw randrw`, or leave it out");
        }
        if percents.len() > 1 && directions.len() > 1 {
            return wrong("has several values, and so has `--rw`: give one of them one value");
        }
        let reads = |percent: f64| Value::Float(percent / 100.0);
        let offset = |random: bool| Value::from(if random { "random" } else { "sequential" });
        let [reads_path, offset_path] = ["workload.io.reads", "workload.io.offset"].map(str::to_owned);
        if directions.len() > 1 {
            let level = |(word, percent, random): (String, f64, bool)| {
                let set = [(reads_path.clone(), reads(percent)), (offset_path.clone(), offset(random))];
                (word, Value::Table(Table::from_iter(set)))
            };
            let levels = Table::from_iter(directions.into_iter().map(level));
            self.factors.push(("rw", None, Value::Table(levels)));
            return Ok(());
        }
        for (_, percent, random) in directions {
            if percents.len() > 1 {
                let levels = percents.iter().map(|percent| reads(*percent)).collect();
                self.factors.push(("rwmixread", Some(reads_path.clone()), Value::Array(levels)));
            } else {
                self.keys.push((reads_path.clone(), reads(percent)));
            }
            self.keys.push((offset_path.clone(), offset(random)));
        }
        Ok(())
    }

    /// What the study's own checks would say of parameters that the line does not name.
    fn check(&mut self) -> Result<(), LineError> {
        let value = |flag, parse: fn(&str) -> Result<u64, String>, default: &'static str| {
            self.values(flag, self.given(flag).unwrap_or(default), parse)
        };
        let blocks = value("bs", |text| number::size(text, 1024), "4k")?;
        let sizes = value("size", |text| number::size(text, 1024), "256m")?;
        let depths = value("iodepth", |text| number::size(text, 1024), "1")?;
        let flushes = value("fsync", |text| number::size(text, 1024), "0")?;
        let together = |flag, message| Err(LineError::Together { flag, message });
        let (block, size) = (blocks.iter().max(), sizes.iter().min());
        if let (Some(block), Some(size)) = (block, size)
            && block > size
        {
            let (unit, letter) = if block.is_multiple_of(1024) { (1024, "k") } else { (1, "") };
            let message = format!(
                "of {} does not fit into a file of {}: write `--size {}{letter}` or more",
                ByteSize(*block),
                ByteSize(*size),
                block / unit
            );
            return together("bs", message);
        }
        let direct = self.given("direct").is_some_and(|text| text != "0");
        let deep = depths.iter().any(|depth| *depth > 1);
        let over_wire = self.line.target.0 == "url";
        if direct && over_wire {
            let message = "is a flag of system calls, and a URL is measured without any, past every cache: leave it out";
            return together("direct", message.into());
        }
        if let Some(odd) = blocks.iter().find(|block| direct && !block.is_multiple_of(512)) {
            let next = odd.next_multiple_of(512);
            return together("direct", format!("needs multiples of 512 bytes: write `--bs {next}`"));
        }
        if let Some(odd) = blocks.iter().find(|block| !block.is_multiple_of(MIN_BLOCK as u64))
            && self.given("verify").is_some_and(|method| verifies(method) == Ok(true))
        {
            let next = odd.next_multiple_of(MIN_BLOCK as u64);
            return together("verify", format!("needs multiples of {MIN_BLOCK} bytes: write `--bs {next}`"));
        }
        if deep && flushes.iter().any(|every| *every > 0) {
            let message = "waits for all writes, so none are outstanding beside it: leave out `--iodepth`, and use `--numjobs`";
            return together("fsync", message.into());
        }
        if deep && !over_wire {
            self.keys.push(("workload.io.io".into(), "io_uring".into()));
        }
        Ok(())
    }

    fn write(&self, name: &str, workload: &str, used: &str) -> String {
        let mut text = String::new();
        section(&mut text, "study");
        key(&mut text, "name", &name.into());
        let (target, place) = self.line.target;
        section(&mut text, "target");
        key(&mut text, target, place);
        if target != "url" {
            section(&mut text, "run");
            key(&mut text, "cache", &"fadvise".into());
        }
        for (path, value) in &self.keys {
            if let Some(name) = path.strip_prefix("clients.") {
                section(&mut text, "clients");
                key(&mut text, name, value);
            }
        }
        for (name, parameter, levels) in &self.factors {
            match (parameter, levels.as_table()) {
                (_, Some(levels)) => {
                    section(&mut text, &format!("factors.{name}.levels"));
                    levels.iter().for_each(|(level, set)| key(&mut text, level, set));
                }
                (parameter, None) => {
                    section(&mut text, &format!("factors.{name}"));
                    parameter.iter().for_each(|path| key(&mut text, "parameter", &path.as_str().into()));
                    key(&mut text, "levels", levels);
                }
            }
        }
        section(&mut text, "design");
        key(&mut text, "replicates", &i64::from(self.line.runs).into());
        let own = format!("workload.{workload}");
        section(&mut text, &own);
        key(&mut text, "use", &used.into());
        for (path, value) in &self.keys {
            if let Some(name) = path.strip_prefix(&format!("{own}.")) {
                key(&mut text, name, value);
            }
        }
        text
    }
}

fn size(text: &str) -> Result<Value, String> {
    Ok(ByteSize(number::size(text, 1024)?).to_string().into())
}

fn bytes(text: &str) -> Result<Value, String> {
    at_least(1, text)?;
    size(text)
}

fn bandwidth(text: &str) -> Result<Value, String> {
    Ok(Bandwidth(at_least(1, text)? as f64).to_string().into())
}

fn at_least(least: u64, text: &str) -> Result<u64, String> {
    let number = number::size(text, 1024)?;
    if number >= least { Ok(number) } else { Err(format!("`{text}` is less than {least}")) }
}

fn count(text: &str) -> Result<Value, String> {
    at_least(1, text)?;
    natural(text)
}

fn natural(text: &str) -> Result<Value, String> {
    let number =
        u32::try_from(at_least(0, text)?).map_err(|_| format!("`{text}` is more than {}", u32::MAX))?;
    Ok(Value::Integer(number.into()))
}

fn time(text: &str) -> Result<Value, String> {
    let nanos = number::time(text, 1_000_000_000)?;
    if nanos == 0 {
        return Err("no time at all is measured: write `30s`".into());
    }
    Ok(TimeSpan(Duration::from_nanos(nanos)).to_string().into())
}

fn switch(text: &str) -> Result<Value, String> {
    match text {
        "0" => Ok(false.into()),
        "1" => Ok(true.into()),
        _ => Err(format!("`{text}` is neither `0` nor `1`")),
    }
}

fn verify(text: &str) -> Result<Value, String> {
    verifies(text).map(Value::Boolean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_keys_and_lists_become_factors() {
        let place = Value::from("/mnt/x");
        for (flags, expected) in [
            (
                &[("rw", "randread")][..],
                "reads = 1.0|offset = \"random\"|io_size = \"4KiB\"|duration = \"3s\"|workers = 1",
            ),
            (
                &[("rw", "write"), ("time", "30"), ("rate", "20m")],
                "reads = 0.0|duration = \"30s\"|bandwidth = \"20MiB/s\"",
            ),
            (
                &[("rw", "rw"), ("rwmixread", "70%"), ("fsync", "32")],
                "reads = 0.7|offset = \"sequential\"|fsync = 32",
            ),
            (
                &[("rw", "READ"), ("bs", "4k,1m")],
                "[factors.bs]|parameter = \"workload.io.io_size\"|levels = [\"4KiB\", \"1MiB\"]",
            ),
            (
                &[("rw", "read,randwrite")],
                "name = \"read-randwrite\"|[factors.rw.levels]|\
                 read = { \"workload.io.reads\" = 1.0, \"workload.io.offset\" = \"sequential\" }|\
                 randwrite = { \"workload.io.reads\" = 0.0, \"workload.io.offset\" = \"random\" }",
            ),
            (&[("rw", "randrw"), ("rwmixread", "50,90")], "[factors.rwmixread]|levels = [0.5, 0.9]"),
            (
                &[("rw", "read"), ("iodepth", "1,32"), ("direct", "1")],
                "io = \"io_uring\"|direct = true|levels = [1, 32]",
            ),
            (&[("rw", "read"), ("verify", "crc32c"), ("clients", "4")], "[clients]|count = 4|verify = true"),
            (
                &[("create", "1k"), ("fsync", "1")],
                "name = \"create\"|use = \"file-creation\"|files = 1024|file_size = \"0B\"|fsync = true",
            ),
        ] {
            let line = Line { flags, target: ("path", &place), runs: 5 };
            let text = to_study(&line).unwrap();
            for part in
                expected.split('|').chain(["path = \"/mnt/x\"", "cache = \"fadvise\"", "replicates = 5"])
            {
                assert!(text.lines().any(|line| line == part), "{part} in\n{text}");
            }
        }
    }
}
