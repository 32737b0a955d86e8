//! A file of the kernel that is read again and again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::SampleError;
use super::series::Reading;
use super::text::Malformed;

/// Texts longer than this are no counters; a reader that followed an endless file would never come to an end.
const LONGEST: usize = 64 << 20;
/// Most bytes of one system call. The kernel gives about a page at a time of long texts, but all that is wanted of short ones.
const PIECE: usize = 64 << 10;
/// Where nothing was read, it is tried again after so many nanoseconds: modules are loaded, and mounts are made, later.
const PAUSE_NS: i64 = 1_000_000_000;

/// A file that stays open and is read from its beginning into the same memory each time.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    /// What it means when it is not there; `None` where that is nothing to tell.
    missing: Option<&'static str>,
    file: Option<File>,
    /// It is opened for each reading and closed after it.
    reopened: bool,
    buffer: Vec<u8>,
    /// Not before this time.
    again_ns: i64,
}

impl Source {
    /// Nothing is opened yet. `missing` says what it means when the file is not there.
    pub fn new(path: impl Into<PathBuf>, missing: &'static str) -> Self {
        let missing = Some(missing);
        Self {
            path: path.into(),
            missing,
            file: None,
            reopened: false,
            buffer: Vec::new(),
            again_ns: i64::MIN,
        }
    }

    /// A file that not all systems have: nobody is told when it is not there.
    pub fn optional(path: impl Into<PathBuf>) -> Self {
        Self { missing: None, ..Self::new(path, "") }
    }

    /// It does not stay open between readings. Some files keep alive what they tell of: an NFS server whose `pool_stats` is open
    /// does not end, and its file system cannot be unmounted.
    pub fn reopened(self) -> Self {
        Self { reopened: true, ..self }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text now. `None` when it could not be read, which is reported; soon after a failure it is not even tried.
    pub fn text(&mut self, out: &mut Reading<'_>) -> Option<&str> {
        let length = self.load(out, |_| false)?;
        match std::str::from_utf8(self.buffer.get(..length)?) {
            Ok(text) => Some(text),
            Err(error) => {
                self.again_ns = out.time_ns().saturating_add(PAUSE_NS);
                let source = io::Error::new(io::ErrorKind::InvalidData, error);
                out.problem(&SampleError::Read { path: self.path.clone(), source });
                None
            }
        }
    }

    /// Its bytes now, as [`Source::text`], read piece by piece until there is `enough`: the kernel does not write what
    /// is not read.
    pub fn bytes_until(&mut self, out: &mut Reading<'_>, enough: impl FnMut(&[u8]) -> bool) -> Option<&[u8]> {
        let length = self.load(out, enough)?;
        self.buffer.get(..length)
    }

    /// An error for a text of this file.
    pub fn fault(&self, fault: Malformed) -> SampleError {
        SampleError::Format { path: self.path.clone(), fault }
    }

    fn load(&mut self, out: &mut Reading<'_>, enough: impl FnMut(&[u8]) -> bool) -> Option<usize> {
        if out.time_ns() < self.again_ns {
            return None;
        }
        match self.fill(enough) {
            Ok(length) => {
                if self.reopened {
                    self.file = None;
                }
                Some(length)
            }
            Err(error) => {
                self.file = None;
                self.again_ns = out.time_ns().saturating_add(PAUSE_NS);
                if let Some(problem) = unreadable(&self.path, self.missing, error) {
                    out.problem(&problem);
                }
                None
            }
        }
    }

    /// Reads all of it. The kernel makes the text anew when it is read from the beginning.
    fn fill(&mut self, mut enough: impl FnMut(&[u8]) -> bool) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::open(&self.path)?),
        };
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= LONGEST {
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is longer than 64 MiB"));
                }
                self.buffer.resize((length * 2).max(8 << 10), 0);
            }
            let end = self.buffer.len().min(length + PIECE);
            let Some(room) = self.buffer.get_mut(length..end) else { return Ok(length) };
            match file.read_at(room, length as u64) {
                Ok(0) => return Ok(length),
                Ok(read) => {
                    length += read;
                    if enough(self.buffer.get(..length).unwrap_or_default()) {
                        return Ok(length);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Why a file or folder cannot be read. `missing` says what it means when it is not there; `None`: that is nothing to tell.
pub(super) fn unreadable(
    path: &Path,
    missing: Option<&'static str>,
    source: io::Error,
) -> Option<SampleError> {
    let path = path.to_owned();
    // What was never there, or went away: a file of a process that ended, or of a device that was taken out.
    let is_missing = source.kind() == io::ErrorKind::NotFound
        || matches!(source.raw_os_error(), Some(libc::ESRCH | libc::ENODEV));
    match source.kind() {
        _ if is_missing => missing.map(|hint| SampleError::Missing { path, hint }),
        io::ErrorKind::PermissionDenied => Some(SampleError::Forbidden { path }),
        _ => Some(SampleError::Read { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Recorder;

    /// How many descriptors of this process are of that file.
    fn open(path: &Path) -> usize {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        descriptors.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|link| link == path)).count()
    }

    #[test]
    fn files_stay_open_but_for_those_that_must_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap().join("file");
        std::fs::write(&path, "1\n").unwrap();
        let mut recorder = Recorder::new("test");
        let mut kept = Source::new(&path, "");
        let mut reopened = Source::new(&path, "").reopened();
        assert_eq!(kept.text(&mut recorder.reading(0)), Some("1\n"));
        assert_eq!(open(&path), 1);
        assert_eq!(reopened.text(&mut recorder.reading(1)), Some("1\n"));
        assert_eq!(open(&path), 1);
        std::fs::write(&path, "a longer text\n").unwrap();
        assert_eq!(kept.text(&mut recorder.reading(2)), Some("a longer text\n"));
        assert_eq!(reopened.text(&mut recorder.reading(3)), Some("a longer text\n"));
    }

    #[test]
    fn reading_stops_when_there_is_enough() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, vec![b'x'; 3 * PIECE]).unwrap();
        let mut recorder = Recorder::new("test");
        let mut source = Source::new(&path, "");
        let read = source.bytes_until(&mut recorder.reading(0), |text| text.len() > PIECE / 2);
        assert!(read.is_some_and(|read| read.len() < 2 * PIECE));
        assert_eq!(source.bytes_until(&mut recorder.reading(1), |_| false).map(<[u8]>::len), Some(3 * PIECE));
    }

    #[test]
    fn after_a_failure_it_waits_for_a_second() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut recorder = Recorder::new("test");
        let mut source = Source::new(&path, "it comes later");
        assert_eq!(source.text(&mut recorder.reading(0)), None);
        std::fs::write(&path, "1").unwrap();
        assert_eq!(source.text(&mut recorder.reading(PAUSE_NS - 1)), None);
        assert_eq!(source.text(&mut recorder.reading(PAUSE_NS)), Some("1"));
        // What is no text is a problem of its own.
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(source.text(&mut recorder.reading(PAUSE_NS + 1)), None);
        let problems = recorder.finish().1;
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].problem.ends_with("is not there: it comes later"), "{problems:?}");
    }
}
