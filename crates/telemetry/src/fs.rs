//! Space left in a file system.

use std::io;
use std::path::Path;

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeSpace {
    /// Size in bytes.
    pub total: u64,
    /// Bytes that this user may still write.
    pub free: u64,
    /// Files that this user may still make; `None` when the file system does not count them.
    pub free_files: Option<u64>,
}

/// The space of the file system on which `path` lies. An error names the path.
pub fn free_bytes(path: &Path) -> io::Result<FreeSpace> {
    let found = rustix::fs::statvfs(path).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("cannot read the free space of {}: {error}", path.display()))
    })?;
    Ok(FreeSpace {
        total: found.f_blocks.saturating_mul(found.f_frsize),
        free: found.f_bavail.saturating_mul(found.f_frsize),
        free_files: (found.f_files > 0).then_some(found.f_favail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_space() {
        let directory = tempfile::tempdir().unwrap();
        let found = free_bytes(directory.path()).unwrap();
        assert!(found.total > 0 && found.free <= found.total, "{found:?}");
    }

    #[test]
    fn pseudo_file_systems_have_none_and_count_no_files() {
        let found = free_bytes(Path::new("/proc")).unwrap();
        assert_eq!(found, FreeSpace { total: 0, free: 0, free_files: None });
    }

    #[test]
    fn an_error_names_the_path() {
        let error = free_bytes(Path::new("/no/such/place")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with("cannot read the free space of /no/such/place: "), "{error}");
    }
}
