//! Where things that take long to make are kept.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ring::digest::{Context, SHA256, digest};

use crate::file_error::{FileError, at};

/// `$XDG_CACHE_HOME/benchmaster/lab`, or the same below `~/.cache`; without a home below /var/cache.
pub(crate) fn directory() -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let caches = caches.or_else(|| Some(set("HOME")?.join(".cache"))).unwrap_or_else(|| "/var/cache".into());
    caches.join("benchmaster/lab")
}

/// SHA-256 of a file, in hexadecimal digits; remembered as long as the file does not change.
pub(crate) fn hash_of(file: &Path) -> Result<String, FileError> {
    let stat = fs::metadata(file).map_err(at(file))?;
    let (size, seconds, nanos) = (stat.len(), stat.mtime(), stat.mtime_nsec());
    let identity = format!("{} {} {} {size} {seconds} {nanos}", file.display(), stat.dev(), stat.ino());
    let place = directory().join("hashes");
    let known = place.join(key(&identity));
    if let Ok(text) = fs::read_to_string(&known)
        && text.len() == 64
    {
        return Ok(text);
    }
    let mut hash = Context::new(&SHA256);
    let mut from = File::open(file).map_err(at(file))?;
    let mut part = vec![0; 1 << 20];
    loop {
        match from.read(&mut part).map_err(at(file))? {
            0 => break,
            length => hash.update(&part[..length]),
        }
    }
    let text = hex(hash.finish().as_ref());
    // Without a cache it is computed again each time.
    if fs::create_dir_all(&place).is_ok() {
        let _ = fs::write(&known, &text);
    }
    Ok(text)
}

/// A name for what has this identity: the beginning of its SHA-256.
pub(crate) fn key(identity: impl AsRef<[u8]>) -> String {
    hex(digest(&SHA256, identity.as_ref()).as_ref())[..16].to_owned()
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
