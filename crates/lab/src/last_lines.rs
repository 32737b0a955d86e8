//! The ends of logs and consoles.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// The last lines of a file, at most `most`.
pub(crate) fn last_lines(file: &Path, most: usize) -> Vec<String> {
    const LOOKED_AT: u64 = 64 << 10;
    let read = || {
        let mut file = File::open(file)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOOKED_AT)))?;
        let mut bytes = Vec::new();
        file.take(LOOKED_AT).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(most)..].iter().map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_those_with_text() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(last_lines(file.path(), 3).is_empty());
        std::fs::write(file.path(), "one\r\ntwo\n\nthree\nfour\n\n").unwrap();
        assert_eq!(last_lines(file.path(), 3), ["two", "three", "four"]);
        assert!(last_lines(Path::new("/no/such/file"), 3).is_empty());
    }
}
