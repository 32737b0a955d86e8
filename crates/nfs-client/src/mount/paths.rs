//! Filehandles of directories, by path.

use std::cell::RefCell;

use std::collections::HashMap;

use crate::hash::Seeded;
use crate::types::Handle;

/// Longest path (Linux' PATH_MAX).
const MAX_PATH: usize = 4096;

/// Handles of directories that were looked up, by path relative to the export. All that lie on the way to one that is
/// known are known.
#[derive(Debug, Default)]
pub(super) struct Paths(RefCell<HashMap<Box<[u8]>, Handle, Seeded>>);

impl Paths {
    pub(super) fn get(&self, path: &[u8]) -> Option<Handle> {
        self.0.borrow().get(path).copied()
    }

    pub(super) fn keep(&self, path: &[u8], handle: Handle) {
        self.0.borrow_mut().insert(path.into(), handle);
    }

    /// Forgets a directory that was removed or renamed or is stale, and all below it.
    pub(super) fn forget(&self, path: &[u8]) {
        let mut known = self.0.borrow_mut();
        if known.remove(path).is_some() {
            known.retain(|other, _| !is_below(other, path));
        }
    }

    /// Forgets all on the way to a directory, and what lies below them.
    pub(super) fn forget_way(&self, path: &[u8]) {
        let first = path.iter().position(|byte| *byte == b'/').unwrap_or(path.len());
        self.forget(&path[..first]);
    }
}

fn is_below(path: &[u8], directory: &[u8]) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// The path without `/` at its ends; `None` if it is too long or has a component that is empty, `.` or `..`.
pub(super) fn clean(path: &[u8]) -> Option<&[u8]> {
    let mut path = path;
    while let [b'/', rest @ ..] | [rest @ .., b'/'] = path {
        path = rest;
    }
    let bad = |name: &[u8]| matches!(name, b"" | b"." | b"..") || name.contains(&0);
    let wrong = path.len() > MAX_PATH || (!path.is_empty() && path.split(|byte| *byte == b'/').any(bad));
    (!wrong).then_some(path)
}

/// Directory and last name of a clean path; `None` for the export itself.
pub(super) fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    if path.is_empty() {
        return None;
    }
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => Some((&path[..at], &path[at + 1..])),
        None => Some((b"", path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_paths_split_at_the_last_slash() {
        assert_eq!(clean(b"/a/b/"), Some(&b"a/b"[..]));
        assert_eq!(clean(b"//"), Some(&b""[..]));
        for bad in [&b"a//b"[..], b"a/./b", b"../a", b"a\0", &[b'x'; MAX_PATH + 1]] {
            assert_eq!(clean(bad), None);
        }
        assert_eq!(split(b"a/b/c"), Some((&b"a/b"[..], &b"c"[..])));
        assert_eq!(split(b"c"), Some((&b""[..], &b"c"[..])));
        assert_eq!(split(b""), None);
    }

    #[test]
    fn a_directory_is_forgotten_with_all_below() {
        let paths = Paths::default();
        let handle = Handle::new(b"h").unwrap();
        for path in ["a", "a/b", "a/b/c", "ab", "d"] {
            paths.keep(path.as_bytes(), handle);
        }
        paths.forget(b"a/b");
        assert_eq!((paths.get(b"a"), paths.get(b"a/b"), paths.get(b"a/b/c")), (Some(handle), None, None));
        paths.keep(b"a/b", handle);
        paths.forget_way(b"a/b/c");
        assert_eq!((paths.get(b"a"), paths.get(b"a/b")), (None, None));
        assert_eq!((paths.get(b"ab"), paths.get(b"d")), (Some(handle), Some(handle)));
    }
}
