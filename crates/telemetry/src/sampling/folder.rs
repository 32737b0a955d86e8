//! Folders in which the kernel keeps a file, or a folder with one, for each of many things.

use std::io;
use std::path::PathBuf;

use super::source::unreadable;
use super::{Reading, Source};

/// Things come and go less often than they count.
const LOOK_AGAIN_NS: i64 = 1_000_000_000;

/// A folder with a folder for each thing, in each of which a file of the same name is read.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    file: &'static str,
    missing: Option<&'static str>,
    again_ns: i64,
    found: bool,
    /// In the order of their names.
    entries: Vec<(String, Source)>,
    /// How often other things were found than before.
    changes: u32,
}

impl Folder {
    /// Nothing is looked at yet. `missing` says what it means when the folder is not there; `None`: that is nothing to tell.
    pub(crate) fn new(path: PathBuf, file: &'static str, missing: Option<&'static str>) -> Self {
        Self { path, file, missing, again_ns: i64::MIN, found: false, entries: Vec::new(), changes: 0 }
    }

    /// The things, by name, and their files; looked for again after a second. `None` when the folder cannot be read, which
    /// is reported.
    pub(crate) fn entries(&mut self, out: &mut Reading<'_>) -> Option<&mut [(String, Source)]> {
        if out.time_ns() >= self.again_ns {
            self.again_ns = out.time_ns().saturating_add(LOOK_AGAIN_NS);
            self.found = false;
            match self.names() {
                Ok(names) => {
                    self.found = true;
                    if !self.entries.iter().map(|(name, _)| name).eq(&names) {
                        self.changes = self.changes.wrapping_add(1);
                        self.replace(names);
                    }
                }
                Err(source) => {
                    self.entries.clear();
                    if let Some(problem) = unreadable(&self.path, self.missing, source) {
                        out.problem(&problem);
                    }
                }
            }
        }
        self.found.then_some(&mut self.entries[..])
    }

    /// A number that is another one when there are other things than before.
    pub(crate) fn changes(&self) -> u32 {
        self.changes
    }

    /// What is there now, by sorted names; files of what was there before stay as they are.
    fn replace(&mut self, names: Vec<String>) {
        let mut before = std::mem::take(&mut self.entries).into_iter().peekable();
        for name in names {
            while before.next_if(|(known, _)| *known < name).is_some() {}
            let known = before.next_if(|(known, _)| *known == name);
            self.entries.push(known.unwrap_or_else(|| {
                // It may go away between two looks.
                let file = Source::optional(self.path.join(&name).join(self.file)).reopened();
                (name, file)
            }));
        }
    }

    /// Names of the folders in it.
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }
}
