//! Which program this is.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ring::digest::{Context, SHA256};

use crate::protocol::VERSION;

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A file cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the program {}: {source}", path.display())]
pub struct Unreadable {
    pub path: PathBuf,
    pub source: io::Error,
}

/// SHA-256 of a file in hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn hash_of(path: &Path) -> Result<String, Unreadable> {
    let failed = |source| Unreadable { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(failed)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 1 << 18];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hex(context.finish().as_ref())),
            Ok(n) => context.update(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
}

/// The version and the hash of the running program's file: two processes with the same text are of the same build.
///
/// # Errors
/// When the program's own file cannot be read.
pub fn identity() -> Result<&'static str, Unreadable> {
    static IDENTITY: OnceLock<String> = OnceLock::new();
    if let Some(identity) = IDENTITY.get() {
        return Ok(identity);
    }
    // The link leads to the file that runs, even when another has been put in its place.
    let hash = hash_of(Path::new("/proc/self/exe"))?;
    Ok(IDENTITY.get_or_init(|| format!("{VERSION} {hash}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_sha256() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hash_of(file.path()).unwrap(), empty);
        std::fs::write(file.path(), "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hash_of(file.path()).unwrap(), abc);
        let error = hash_of(Path::new("/nonexistent/x")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the program /nonexistent/x: No such file"), "{error}");
    }

    #[test]
    fn the_identity_is_version_and_hash_of_this_program() {
        let hash = hash_of(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(identity().unwrap(), format!("{VERSION} {hash}"));
    }
}
