//! What lies in a results directory, without reading its measurements; its tag, and its removal.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use benchmaster_record::results::SessionEnd;
use jiff::Timestamp;
use serde::Serialize;

use crate::directory::{DATABASE, LOCK, STUDY, TRACES};
use crate::error::LoadError;
use crate::live;
use crate::store::{Reader, Store};

/// The file with the tag.
const TAG: &str = "tag.txt";
/// What commands write into a results directory. Whatever else is there is somebody's own.
const FILES: [&str; 4] = [STUDY, "report.html", live::FILE, TAG];
/// Removed last: until the database is gone it is a results directory, which can be removed again.
const LAST: [&str; 4] = [DATABASE, "results.db-wal", "results.db-shm", LOCK];
const DIRECTORIES: [&str; 2] = [TRACES, "export"];

/// A results directory in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outline {
    /// Name of the study.
    pub study: String,
    /// Runs that are stored, and how many of them failed.
    pub runs: u32,
    pub failed: u32,
    /// When the first session began.
    pub began: Option<Timestamp>,
    /// How the last session ended; `None` while it goes on, or when it was killed.
    pub end: Option<SessionEnd>,
    /// What the user called it.
    pub tag: Option<String>,
    /// Bytes of all files in the directory.
    pub bytes: u64,
}

impl Outline {
    /// Reads a results directory, also while a study is being carried out in it.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn of(directory: &Path) -> Result<Self, LoadError> {
        let read = |connection: &rusqlite::Connection| {
            let one = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, Option<String>>(0));
            let runs = "SELECT count(*), count(failure) FROM runs";
            let (runs, failed) = connection.query_row(runs, [], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let began = one("SELECT min(started) FROM sessions")?;
            let end =
                one("SELECT max(outcome) FROM sessions WHERE session = (SELECT max(session) FROM sessions)")?;
            Ok(Self {
                study: one("SELECT max(name) FROM studies")?.unwrap_or_default(),
                runs,
                failed,
                began: began.and_then(|time| time.parse().ok()),
                end: end.and_then(|name| serde_json::from_value(name.into()).ok()),
                tag: None,
                bytes: 0,
            })
        };
        let found = Reader::open(directory)?.read(read)?;
        let tag = fs::read_to_string(directory.join(TAG)).ok();
        let tag = tag.map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty());
        Ok(Self { tag, bytes: bytes(directory), ..found })
    }

    /// Whether all runs were done.
    pub fn is_complete(&self) -> bool {
        self.end == Some(SessionEnd::Complete)
    }
}

/// Bytes of the files below a directory; what cannot be read, as what was removed meanwhile, counts nothing.
fn bytes(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else { return 0 };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

/// Sets the tag of a results directory; an empty one removes it.
///
/// # Errors
/// When the directory cannot be written.
pub fn tag(directory: &Path, tag: &str) -> io::Result<()> {
    let path = directory.join(TAG);
    match tag.trim() {
        "" => match fs::remove_file(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        },
        tag => fs::write(path, format!("{tag}\n")),
    }
}

/// Removes a results directory that no process is at work in: the files that Benchmaster writes, and the directory if it is
/// empty then. Returns what stays because something else is in it.
///
/// # Errors
/// When a file cannot be removed.
pub fn remove(store: Store) -> io::Result<Option<PathBuf>> {
    let directory = store.directory().to_owned();
    let gone = |result: io::Result<()>| match result {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    DIRECTORIES.iter().try_for_each(|name| gone(fs::remove_dir_all(directory.join(name))))?;
    FILES.iter().try_for_each(|name| gone(fs::remove_file(directory.join(name))))?;
    let lock = store.close();
    LAST.iter().try_for_each(|name| gone(fs::remove_file(directory.join(name))))?;
    drop(lock);
    match fs::remove_dir(&directory) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(Some(directory)),
        Err(error) => Err(error),
        Ok(()) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::StudyResults;
    use tempfile::TempDir;

    use super::*;

    fn made(directory: &Path) -> StudyResults {
        let results = benchmaster_testkit::study_results(1, 2, 2);
        benchmaster_testkit::write(directory, &results).unwrap();
        results
    }

    #[test]
    fn a_list_says_what_is_there() {
        let place = TempDir::new().unwrap();
        let directory = place.path().join("a");
        let results = made(&directory);
        let found = Outline::of(&directory).unwrap();
        assert_eq!((found.study.as_str(), found.runs), (results.study.name.as_str(), 4));
        let failed = results.runs.iter().filter(|run| run.failure.is_some()).count();
        assert_eq!(found.failed as usize, failed);
        assert!(found.bytes > 1000 && found.tag.is_none() && found.began.is_some(), "{found:?}");
        tag(&directory, " before the upgrade\n").unwrap();
        assert_eq!(Outline::of(&directory).unwrap().tag.as_deref(), Some("before the upgrade"));
        tag(&directory, "").unwrap();
        tag(&directory, "").unwrap();
        assert_eq!(Outline::of(&directory).unwrap().tag, None);
        assert!(matches!(Outline::of(place.path()), Err(LoadError::Missing(_))));
    }

    #[test]
    fn only_what_is_ours_is_removed() {
        let place = TempDir::new().unwrap();
        let [a, b, kept] = ["a", "b", "kept"].map(|name| place.path().join(name));
        made(&a);
        made(&b);
        fs::create_dir(&kept).unwrap();
        fs::write(kept.join("file"), "mine").unwrap();
        fs::create_dir(a.join("export")).unwrap();
        fs::write(a.join("export/runs.csv"), "").unwrap();
        // A link is removed, and not what it leads to.
        std::os::unix::fs::symlink(&kept, b.join("traces")).unwrap();
        fs::write(b.join("notes.txt"), "mine").unwrap();
        assert_eq!(remove(Store::open(&a).unwrap()).unwrap(), None);
        assert!(!a.exists());
        assert_eq!(remove(Store::open(&b).unwrap()).unwrap(), Some(b.clone()));
        let left: Vec<_> = fs::read_dir(&b).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["notes.txt"]);
        assert_eq!(fs::read_to_string(kept.join("file")).unwrap(), "mine");
    }
}
