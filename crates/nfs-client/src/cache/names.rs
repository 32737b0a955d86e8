//! Names in a directory.

use std::collections::HashMap;

use crate::types::Handle;

/// Most names kept of one directory.
const MOST: usize = 1 << 17;

/// What a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    /// This file.
    File(Handle),
    /// Nothing.
    Absent,
}

/// Names of a directory, each with the directory's change attribute under which it was seen: they are believed while
/// the directory does not change.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<Box<[u8]>, (Name, u64)>);

impl Names {
    /// What a name is, however long ago that was.
    pub(crate) fn last(&self, name: &[u8]) -> Option<Name> {
        self.0.get(name).map(|(found, _)| *found)
    }

    /// What a name is, if the directory has not changed since.
    pub(crate) fn valid(&self, name: &[u8], change: u64) -> Option<Name> {
        self.0.get(name).filter(|(_, seen)| *seen == change).map(|(found, _)| *found)
    }

    /// A name was seen while the directory was at this change.
    pub(crate) fn keep(&mut self, name: &[u8], found: Name, change: u64) {
        match self.0.get_mut(name) {
            Some(known) => *known = (found, change),
            None => {
                if self.0.len() >= MOST {
                    self.0.clear();
                }
                self.0.insert(name.into(), (found, change));
            }
        }
    }

    pub(crate) fn forget(&mut self, name: &[u8]) {
        self.0.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_believed_while_the_directory_does_not_change() {
        let file = Name::File(Handle::new(b"h").unwrap());
        let mut names = Names::default();
        names.keep(b"a", file, 1);
        names.keep(b"b", Name::Absent, 1);
        assert_eq!((names.valid(b"a", 1), names.valid(b"b", 1)), (Some(file), Some(Name::Absent)));
        assert_eq!((names.valid(b"a", 2), names.last(b"a")), (None, Some(file)));
        names.keep(b"a", file, 2);
        assert_eq!(names.valid(b"a", 2), Some(file));
        names.forget(b"a");
        assert_eq!(names.last(b"a"), None);
        for n in 0..=MOST as u32 {
            names.keep(&n.to_be_bytes(), Name::Absent, 3);
        }
        assert!(names.0.len() <= MOST);
    }
}
