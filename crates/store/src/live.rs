//! The state of a running study: `live.json` in its results directory.
//!
//! The runner replaces the file about twice a second with [`write()`], atomically, so that a reader sees a whole state or the
//! one before. It is for watching only, and no part of the results: nothing is analysed from it, and it may disappear at
//! any time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use benchmaster_record::live::{FORMAT, Live};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde::Deserialize;

/// Name of the file in the results directory.
pub const FILE: &str = "live.json";

/// No state of 10,000 clients is longer.
const LONGEST: u64 = 16 << 20;

/// Why a state could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// There is none: no session of a study writes into this directory, or none that can be watched.
    #[error("`{}` has no {FILE}: no study runs there", directory.display())]
    Absent {
        /// The results directory.
        directory: PathBuf,
    },
    /// The file cannot be written or read.
    #[error("cannot {verb} `{}`", path.display())]
    Io {
        /// `write` or `read`.
        verb: &'static str,
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It is no state of a study, or one that another program is writing in place.
    #[error("`{}` is not the state of a study: {problem}", path.display())]
    Content {
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// It was written by another version of this program.
    #[error("`{}` has format {found}, this program reads {FORMAT}: watch with the program that runs the study", path.display())]
    Format {
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

/// The state of a session of a study that begins now, in this process.
pub fn begin(study: impl Into<String>, host: impl Into<String>) -> Live {
    Live {
        study: study.into(),
        host: host.into(),
        process: std::process::id(),
        session_started_ms: unix_ms(),
        ..Live::default()
    }
}

/// Replaces the state in a results directory by this one. Readers see either of them whole. Nothing is flushed to the
/// disk: a state is of no use after a crash of the host.
///
/// # Errors
/// When the directory cannot be written to. That is no reason to stop a measurement.
pub fn write(live: &mut Live, directory: &Path) -> Result<(), LiveError> {
    live.written_ms = unix_ms();
    let path = directory.join(FILE);
    // One session at a time writes into a results directory, so the name is free; what a killed one left is replaced.
    let new = directory.join(format!(".{FILE}.new"));
    let failed = |source| LiveError::Io { verb: "write", path: path.clone(), source };
    let text = serde_json::to_vec(live).map_err(|error| failed(error.into()))?;
    fs::write(&new, text).and_then(|()| replace(&new, &path)).map_err(failed)
}

/// Puts a file in the place of another one, at once. They change places where the file system can do that, and the other one is
/// removed: renaming over a file has some, such as ext4, write the new one to the disk, which takes as long as the disk does.
fn replace(new: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, new, CWD, path, RenameFlags::EXCHANGE) {
        Ok(()) => fs::remove_file(new),
        // There is no other one yet, or it cannot be done.
        Err(_) => fs::rename(new, path),
    }
}

/// Reads the state in a results directory.
///
/// # Errors
/// [`LiveError::Absent`] when there is none; see the others there.
pub fn read(directory: &Path) -> Result<Live, LiveError> {
    let path = directory.join(FILE);
    let failed = |source| LiveError::Io { verb: "read", path: path.clone(), source };
    let file = match File::open(&path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(LiveError::Absent { directory: directory.into() });
        }
        file => file.map_err(failed)?,
    };
    let mut text = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut text).map_err(failed)?;
    let wrong = |problem: String| LiveError::Content { path: path.clone(), problem };
    if text.len() as u64 > LONGEST {
        return Err(wrong(format!("it is longer than {} MiB", LONGEST >> 20)));
    }
    // Another format may have other types where this one has some.
    let format: Format = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    if format.format != FORMAT {
        return Err(LiveError::Format { path, found: format.format });
    }
    serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))
}

/// What every version of the format has.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Now, in milliseconds since 1970.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::live::{Client, ClientState, Rates, Run, Runs};
    use benchmaster_record::phase::Phase;
    use tempfile::TempDir;

    use super::*;

    fn state() -> Live {
        let mut live = begin("wan-nfs", "hpc1");
        live.runs =
            Runs { position: 7, total: 60, open: true, stored: 6, failed: 1, seconds_left: Some(612.5) };
        live.run = Some(Run {
            treatment: "version=v41 delay=6.87ms".into(),
            replicate: 2,
            workload: Some("write".into()),
            phase: Phase::Measure,
            phase_elapsed_s: 3.25,
            phase_length_s: Some(10.0),
            ..Run::default()
        });
        live.clients.push(Client {
            name: "c1".into(),
            host: "node1".into(),
            state: ClientState::Running,
            operations: 12,
            clock_offset_us: Some(-3.5),
            ..Client::default()
        });
        live.rates = Some(Rates { operations_per_s: 100.0, ..Rates::default() });
        live.message(1_772_442_000_000, "c1 began");
        live
    }

    #[test]
    fn what_is_written_is_read() {
        let directory = TempDir::new().unwrap();
        let (mut first, mut second) = (state(), Live::default());
        write(&mut first, directory.path()).unwrap();
        assert_eq!(read(directory.path()).unwrap(), first);
        write(&mut second, directory.path()).unwrap();
        assert_eq!(read(directory.path()).unwrap(), second);
        let names: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [FILE]);
    }

    #[test]
    fn a_reader_never_sees_half_a_state() {
        let directory = TempDir::new().unwrap();
        let mut live = state();
        live.clients = vec![live.clients[0].clone(); 500];
        write(&mut live, directory.path()).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for position in 0..200 {
                    live.runs.position = position;
                    live.clients.truncate(500 - position as usize);
                    write(&mut live, directory.path()).unwrap();
                }
            });
            while !writer.is_finished() {
                let seen = read(directory.path()).unwrap();
                assert!(seen.clients.len() == 500 || seen.clients.len() as u64 == 500 - seen.runs.position);
            }
        });
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let directory = TempDir::new().unwrap();
        let error = |text: &str| {
            fs::write(directory.path().join(FILE), text).unwrap();
            read(directory.path()).unwrap_err().to_string().replace(directory.path().to_str().unwrap(), "DIR")
        };
        assert!(error("{\"format\":").contains("`DIR/live.json` is not the state of a study: EOF"));
        assert!(error("{\"format\":1,\"clients\":3}").contains("invalid type"));
        assert!(error("[]").contains("is not the state of a study"));
        assert!(error("{\"format\":2,\"runs\":\"?\"}").contains("has format 2, this program reads 1"));
        assert!(error(&" ".repeat((16 << 20) + 1)).contains("longer than 16 MiB"));
        fs::remove_file(directory.path().join(FILE)).unwrap();
        assert!(matches!(read(directory.path()), Err(LiveError::Absent { .. })));
        assert!(matches!(write(&mut state(), &directory.path().join("nowhere")), Err(LiveError::Io { .. })));
    }

    #[test]
    fn fields_of_newer_writers_are_ignored_and_missing_ones_unknown() {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join(FILE), r#"{"format":1,"study":"s","weather":"fine","clients":[{}]}"#)
            .unwrap();
        let live = read(directory.path()).unwrap();
        assert_eq!((live.study.as_str(), live.clients), ("s", vec![Client::default()]));
    }
}
