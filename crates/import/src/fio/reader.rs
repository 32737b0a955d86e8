//! The options of one job by name, and the account of what became of each.

use std::collections::{BTreeMap, BTreeSet};

use super::file::{Job, Setting};
use super::number;
use super::options;
use crate::{Mistake, Note, NoteKind};

/// The options that apply to a job: the last one of each name.
pub(super) struct Reader<'a> {
    job: &'a Job,
    given: BTreeMap<&'static str, &'a Setting>,
    /// Those about which something was said.
    told: BTreeSet<&'static str>,
    pub(super) notes: Vec<Note>,
    pub(super) mistakes: Vec<Mistake>,
    /// What `k` is: `kb_base`.
    base: u64,
    /// The size of files and devices of which the job does not say it.
    existing: Option<u64>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(job: &'a Job, existing: Option<u64>) -> Self {
        let mut reader = Self {
            job,
            given: BTreeMap::new(),
            told: BTreeSet::new(),
            notes: Vec::new(),
            mistakes: Vec::new(),
            base: 1024,
            existing,
        };
        for setting in &job.settings {
            match options::find(&setting.name) {
                Some((name, _)) => drop(reader.given.insert(name, setting)),
                None => {
                    let hint = options::similar(&setting.name);
                    let hint = hint.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
                    let message = format!("fio 3.33 has no option `{}`{hint}", setting.name);
                    reader.mistakes.push(mistake(setting, message));
                }
            }
        }
        let fates: Vec<_> = reader.given.keys().filter_map(|name| options::find(name)).collect();
        for (name, (kind, why)) in fates.into_iter().filter_map(|(name, fate)| Some((name, fate?))) {
            reader.tell(name, kind, why);
        }
        if let Some(base) = reader.parsed("kb_base", |text| match text {
            "1024" => Ok(1024),
            "1000" => Ok(1000),
            _ => Err("write `1000` or `1024`".into()),
        }) {
            reader.base = base;
            reader.translated("kb_base", format!("`k` means {base} in sizes of this job"));
        }
        reader
    }

    pub(super) fn name(&self) -> &'a str {
        &self.job.name
    }

    /// Whether the option is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// The text of an option.
    pub(super) fn text(&self, name: &str) -> Option<&'a str> {
        self.given.get(name).and_then(|setting| setting.value.as_deref())
    }

    /// The value of an option. One that is no value is a mistake, and then there is none.
    pub(super) fn parsed<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let setting = *self.given.get(name)?;
        let parsed = match setting.value.as_deref().filter(|value| !value.is_empty()) {
            Some(value) => parse(value),
            None => Err("the option needs a value".into()),
        };
        parsed.map_err(|message| self.mistakes.push(mistake(setting, message))).ok()
    }

    /// The size that files and devices are taken to have of which the job does not say it.
    pub(super) fn existing(&self) -> Option<u64> {
        self.existing
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    pub(super) fn size(&mut self, name: &str) -> Option<u64> {
        let base = self.base;
        self.parsed(name, |text| number::size(text, base))
    }

    /// A number from `least` to 2³².
    pub(super) fn count(&mut self, name: &str, least: u32) -> Option<u32> {
        let base = self.base;
        self.parsed(name, |text| {
            let number = number::size(text, base)?;
            let fits = u32::try_from(number).ok().filter(|number| *number >= least);
            fits.ok_or_else(|| format!("`{text}` is not from {least} to {}", u32::MAX))
        })
    }

    /// A time in nanoseconds; a bare number counts `unit_ns` each.
    pub(super) fn time(&mut self, name: &str, unit_ns: u64) -> Option<u64> {
        self.parsed(name, |text| number::time(text, unit_ns))
    }

    /// A switch: `0` or `1`, or nothing behind those that mean 1 alone.
    pub(super) fn flag(&mut self, name: &str, default: bool) -> bool {
        const ALONE: &[&str] = &[
            "time_based",
            "norandommap",
            "bs_unaligned",
            "verify_only",
            "stonewall",
            "zero_buffers",
            "exitall",
        ];
        let setting = self.given.get(name);
        if setting.is_some_and(|setting| setting.value.is_none()) && ALONE.contains(&name) {
            return true;
        }
        let parsed = self.parsed(name, |text| match text.parse::<u32>() {
            Ok(0) => Ok(false),
            Ok(1) => Ok(true),
            _ => Err(format!("`{text}` is neither `0` nor `1`")),
        });
        parsed.unwrap_or(default)
    }

    pub(super) fn translated(&mut self, name: &str, message: impl Into<String>) {
        self.tell(name, NoteKind::Translated, message);
    }

    pub(super) fn approximated(&mut self, name: &str, message: impl Into<String>) {
        self.tell(name, NoteKind::Approximated, message);
    }

    pub(super) fn unsupported(&mut self, name: &str, message: impl Into<String>) {
        self.tell(name, NoteKind::Unsupported, message);
    }

    pub(super) fn irrelevant(&mut self, name: &str, message: impl Into<String>) {
        self.tell(name, NoteKind::Irrelevant, message);
    }

    /// Says what became of an option, if it is given. The last word counts.
    fn tell(&mut self, name: &str, kind: NoteKind, message: impl Into<String>) {
        let Some((&name, setting)) = self.given.get_key_value(name) else { return };
        self.told.insert(name);
        self.notes.retain(|note| {
            (note.line, &note.file, &note.text) != (setting.line, &setting.file, &setting.text)
        });
        self.notes.push(Note {
            file: setting.file.clone(),
            line: setting.line,
            text: setting.text.clone(),
            kind,
            message: message.into(),
            workload: None,
        });
    }

    /// A mistake of the job as a whole, or in an option.
    pub(super) fn wrong(&mut self, name: Option<&str>, message: impl Into<String>) {
        let setting = name.and_then(|name| self.given.get(name));
        self.mistakes.push(match setting {
            Some(setting) => mistake(setting, message),
            None => Mistake {
                file: None,
                line: self.job.line,
                text: format!("[{}]", self.job.name),
                message: message.into(),
            },
        });
    }

    /// That the job is not imported at all.
    pub(super) fn left_out(&mut self, name: &str, why: &str) {
        self.notes.clear();
        self.given.retain(|given, _| *given == name);
        let message = format!("the job `{}` is not imported: {why}", self.job.name);
        if self.has(name) {
            self.unsupported(name, message)
        } else {
            self.notes.push(Note {
                file: None,
                line: self.job.line,
                text: format!("[{}]", self.job.name),
                kind: NoteKind::Unsupported,
                message,
                workload: None,
            })
        }
        self.told.extend(self.given.keys());
    }

    /// Notes about everything that nothing was said about: it is not in the workload.
    pub(super) fn finish(mut self) -> (Vec<Note>, Vec<Mistake>) {
        let left: Vec<&'static str> =
            self.given.keys().copied().filter(|name| !self.told.contains(name)).collect();
        for name in left {
            debug_assert_eq!(options::find(name), Some((name, None)));
            self.unsupported(name, "the workload omits it");
        }
        (self.notes, self.mistakes)
    }
}

fn mistake(setting: &Setting, message: impl Into<String>) -> Mistake {
    Mistake {
        file: setting.file.clone(),
        line: setting.line,
        text: setting.text.clone(),
        message: message.into(),
    }
}
