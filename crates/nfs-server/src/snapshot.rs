//! Keeping all files and client names over a restart (`--state FILE`).
//!
//! The file: magic, version, then what a check sum covers (instance, number, client names, exports), then the check sum. It is
//! replaced as a whole: written beside, synchronised, renamed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hashbrown::HashMap;

use crate::config::ServerConfig;
use crate::exports::{ExportError, Exports};
use crate::fs::{FileSystem, ImageError, Time, image};
use crate::wal::{self, LogError, frame};

const MAGIC: [u8; 8] = *b"bmnfsdat";
const VERSION: u32 = 5;
/// Magic and version.
const HEADER: u64 = 12;
/// CRC-32 of what comes between.
const TRAILER: u64 = 4;
const BUFFER: usize = 1 << 20;

/// Most bytes of a client name, and of an export's path.
const NAME_BYTES: usize = 64 * 1024;

/// What is kept beside the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// Number of the server in its handles.
    pub instance: u32,
    /// Number of the state file: the log of this number belongs to it.
    pub number: u64,
    /// Names of the clients and hosts that had state: they may reclaim it. Opaque; at most 64 KiB each.
    pub clients: Vec<Vec<u8>>,
}

/// Why state cannot be kept or found again.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Writing failed; the file that was there before still is.
    #[error("cannot write state to {}: {source}", path.display())]
    Write {
        /// Path of the state file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The state file could not be read.
    #[error("cannot read state from {}: {source}", path.display())]
    Read {
        /// Path of the state file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The file is not a state file.
    #[error("{} is not a state file", path.display())]
    Foreign {
        /// Path of the state file.
        path: PathBuf,
    },
    /// From another version of this program.
    #[error("{}: state of version {found}, this program reads version {VERSION}", path.display())]
    Version {
        /// Path of the state file.
        path: PathBuf,
        /// Version in the file.
        found: u32,
    },
    /// Not as it was written.
    #[error("{} is damaged: {what}", path.display())]
    Damaged {
        /// Path of the state file.
        path: PathBuf,
        /// Description of the damage.
        what: String,
    },
    /// It was written with other exports. They must be there again, in the same order; new ones come after them.
    #[error("{}: has '{export}' as export {number}, which is not so now", path.display())]
    Exports {
        /// Path of the state file.
        path: PathBuf,
        /// Path of the export in it.
        export: String,
        /// Index of the export in the file.
        number: usize,
    },
    /// The log beside the state file cannot be followed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The exports now make no name space.
    #[error(transparent)]
    Config(#[from] ExportError),
}

/// A state file, and the log beside it if there was one.
#[derive(Debug)]
pub struct Loaded {
    /// The files.
    pub exports: Exports,
    /// What is kept beside them.
    pub meta: Meta,
    /// The server did not end as it should and had a log: this many bytes at its end are no whole change.
    pub cut: Option<u64>,
}

/// Writes everything to `path`, atomically: afterwards the file is either the old or the new one. Nothing may change
/// meanwhile. Returns the file's length in bytes.
pub fn save(path: &Path, exports: &Exports, meta: &Meta) -> Result<u64, SnapshotError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    write_beside(&beside, exports, meta)
        .and_then(|len| std::fs::rename(&beside, path).map(|()| len))
        .and_then(|len| File::open(directory(path))?.sync_all().map(|()| len))
        .map_err(|source| {
            // The file is a leftover: failing to remove it as well adds nothing.
            let _ = std::fs::remove_file(&beside);
            SnapshotError::Write { path: path.to_owned(), source }
        })
}

/// Reads what [`save`] wrote, and follows the log beside it; `None` when there is no file. Exports that are new since are empty.
pub fn load(path: &Path, config: &ServerConfig, now: Time) -> Result<Option<Loaded>, SnapshotError> {
    let read = |source| SnapshotError::Read { path: path.to_owned(), source };
    let damaged = |what: &str| SnapshotError::Damaged { path: path.to_owned(), what: what.to_owned() };
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match wal::logs(path).map_err(read)?.into_iter().find(|(_, log)| wal::has_changes(log)) {
                Some((_, path)) => Err(LogError::Orphan { path }.into()),
                None => Ok(None),
            };
        }
        file => file.map_err(read)?,
    };
    let len = file.metadata().map_err(read)?.len();
    let mut header = [0; HEADER as usize];
    match file.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(SnapshotError::Foreign { path: path.to_owned() });
        }
        done => done.map_err(read)?,
    }
    let (magic, version) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(SnapshotError::Foreign { path: path.to_owned() });
    }
    let found = version.try_into().map_or(0, u32::from_le_bytes);
    if found != VERSION {
        return Err(SnapshotError::Version { path: path.to_owned(), found });
    }
    let body = len.checked_sub(HEADER + TRAILER).ok_or_else(|| damaged("it ends too early"))?;

    // First the sum: after that, anything impossible inside is a fault of whoever wrote it.
    let mut sum = crc32fast::Hasher::new();
    let mut buffer = vec![0; BUFFER];
    let mut left = body;
    while left > 0 {
        let most = usize::try_from(left).map_or(BUFFER, |left| left.min(BUFFER));
        let some = file.read(&mut buffer[..most]).map_err(read)?;
        if some == 0 {
            return Err(damaged("it ends too early"));
        }
        sum.update(&buffer[..some]);
        left -= some as u64;
    }
    let mut trailer = [0; TRAILER as usize];
    file.read_exact(&mut trailer).map_err(read)?;
    if u32::from_le_bytes(trailer) != sum.finalize() {
        return Err(damaged("its check sum is wrong"));
    }
    file.seek(SeekFrom::Start(HEADER)).map_err(read)?;

    let mut input = BufReader::with_capacity(BUFFER, file.take(body));
    let (mut meta, loaded) = read_content(path, config, &mut input)?;
    let cut = follow(path, &mut meta, &loaded)?;
    for (_, fs) in &loaded {
        fs.complete(cut.is_some()).map_err(|error| damaged(&error.to_string()))?;
    }
    let mut loaded: HashMap<String, FileSystem> = loaded.into_iter().collect();
    let exports = Exports::with(config, now, |path, _| loaded.remove(path))?;
    Ok(Some(Loaded { exports, meta, cut }))
}

/// Does what the log of a state file says, if there is one. Returns how many bytes at its end are no whole change.
fn follow(
    path: &Path,
    meta: &mut Meta,
    loaded: &[(String, FileSystem)],
) -> Result<Option<u64>, SnapshotError> {
    let mut clients: BTreeSet<Vec<u8>> = std::mem::take(&mut meta.clients).into_iter().collect();
    let cut = frame::read(&wal::path(path, meta.number), meta.number, &mut |record| {
        let mut record = record;
        let export = image::get_u32(&mut record).map_err(|_| "a record without its export")?;
        if export == frame::CLIENTS {
            frame::get_clients(&mut record, |known, name| {
                if known {
                    clients.insert(name)
                } else {
                    clients.remove(&name)
                };
            })?;
            return Ok(());
        }
        let (_, fs) = loaded.get(export as usize).ok_or("an export that is not there")?;
        fs.follow(&mut record).map_err(|error| error.to_string())
    })?;
    meta.clients = clients.into_iter().collect();
    Ok(cut)
}

fn read_content(
    path: &Path,
    config: &ServerConfig,
    input: &mut dyn Read,
) -> Result<(Meta, Vec<(String, FileSystem)>), SnapshotError> {
    let failed = |error: ImageError| match error {
        ImageError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            SnapshotError::Damaged { path: path.to_owned(), what: "it ends too early".into() }
        }
        ImageError::Io(source) => SnapshotError::Read { path: path.to_owned(), source },
        ImageError::Content(what) => SnapshotError::Damaged { path: path.to_owned(), what: what.into() },
    };
    let (instance, number) = (image::get_u32(input).map_err(failed)?, image::get_u64(input).map_err(failed)?);
    let mut meta = Meta { instance, number, clients: Vec::new() };
    for _ in 0..image::get_u32(input).map_err(failed)? {
        meta.clients.push(image::get_bytes(input, NAME_BYTES).map_err(failed)?);
    }
    let expected = Exports::numbered(config);
    let mut loaded = Vec::new();
    for number in 0..image::get_u32(input).map_err(failed)? as usize {
        let export = image::get_bytes(input, NAME_BYTES).map_err(failed)?;
        let export = String::from_utf8_lossy(&export).into_owned();
        let pseudo = image::get_u32(input).map_err(failed)? != 0;
        let Some(config) = expected
            .get(number)
            .filter(|(path, is_pseudo, _)| (*path == export) && *is_pseudo == pseudo)
            .map(|(.., config)| config.clone())
        else {
            return Err(SnapshotError::Exports { path: path.to_owned(), export, number });
        };
        loaded.push((export, FileSystem::load(config, input).map_err(failed)?));
    }
    Ok((meta, loaded))
}

fn write_beside(beside: &Path, exports: &Exports, meta: &Meta) -> io::Result<u64> {
    let mut file = File::create(beside)?;
    file.write_all(&MAGIC)?;
    file.write_all(&VERSION.to_le_bytes())?;
    let summed = Summed { out: file, sum: crc32fast::Hasher::new() };
    let mut out = BufWriter::with_capacity(BUFFER, summed);
    write_content(&mut out, exports, meta)?;
    let mut summed = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    summed.out.write_all(&summed.sum.finalize().to_le_bytes())?;
    summed.out.sync_all()?;
    Ok(summed.out.metadata()?.len())
}

fn write_content(out: &mut dyn Write, exports: &Exports, meta: &Meta) -> io::Result<()> {
    image::put_u32(out, meta.instance)?;
    image::put_u64(out, meta.number)?;
    image::put_u32(out, meta.clients.len() as u32)?;
    for client in &meta.clients {
        image::put_bytes(out, client)?;
    }
    image::put_u32(out, exports.list().len() as u32)?;
    for export in exports.list() {
        image::put_bytes(out, export.path.as_bytes())?;
        image::put_u32(out, u32::from(export.pseudo))?;
        export.fs.save(out)?;
    }
    Ok(())
}

/// Directory of a file, for synchronising the rename.
fn directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Sums up what is written.
struct Summed {
    out: File,
    sum: crc32fast::Hasher,
}

impl Write for Summed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = self.out.write(bytes)?;
        self.sum.update(&bytes[..some]);
        Ok(some)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
