//! Which directories a fileset has, and which of them holds a file.

use super::path::PathBuffer;
use crate::model::Fileset;

/// Deepest tree that is expected: paths end before.
const DEEPEST: usize = 64;

/// The directories of a fileset.
#[derive(Debug, Clone, Copy)]
pub(super) enum Layout {
    Flat,
    /// Beside each other, with so many files each.
    Wide {
        width: u64,
        directories: u64,
    },
    /// In each other. Directories are numbered level by level, from the root, 0.
    Tree {
        branch: u64,
        directories: u64,
        first: u64,
        files: u64,
        in_turn: bool,
    },
}

impl Layout {
    pub(super) fn of(fileset: &Fileset) -> Self {
        match (&fileset.tree, fileset.directory_width) {
            (Some(tree), _) => {
                let directories = tree.directories().unwrap_or(u64::MAX);
                let first = if tree.leaves_only { directories - tree.leaves() } else { 0 };
                Self::Tree {
                    branch: tree.branch.max(1).into(),
                    directories,
                    first,
                    files: fileset.files.max(1),
                    in_turn: tree.in_turn,
                }
            }
            (None, 0) => Self::Flat,
            (None, width) => Self::Wide { width, directories: fileset.files.div_ceil(width).max(1) },
        }
    }

    pub(super) fn directories(&self) -> u64 {
        match *self {
            Self::Flat => 1,
            Self::Wide { directories, .. } | Self::Tree { directories, .. } => directories,
        }
    }

    #[inline]
    pub(super) fn directory_of(&self, file: u64) -> u64 {
        match *self {
            Self::Flat => 0,
            Self::Wide { width, .. } => file / width,
            Self::Tree { directories, first, in_turn: true, .. } => first + file % (directories - first),
            Self::Tree { directories, first, files, .. } => {
                let holding = u128::from(directories - first);
                first + (u128::from(file) * holding / u128::from(files)) as u64
            }
        }
    }

    /// Appends the name of a directory below the fileset's own.
    #[inline]
    pub(super) fn push(&self, directory: u64, path: &mut PathBuffer) {
        match *self {
            Self::Flat => {}
            Self::Wide { .. } => {
                path.push(b"/d");
                path.push_number(directory, 6);
            }
            Self::Tree { branch, .. } => {
                let (mut way, mut length, mut at) = ([0; DEEPEST], 0, directory);
                while at > 0 && length < DEEPEST {
                    way[length] = (at - 1) % branch;
                    at = (at - 1) / branch;
                    length += 1;
                }
                for number in way[..length].iter().rev() {
                    path.push(b"/d");
                    path.push_number(*number, 1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tree;

    fn tree(files: u64, depth: u32, branch: u32, leaves_only: bool) -> Layout {
        Layout::of(&Fileset {
            files,
            tree: Some(Tree { depth, branch, leaves_only, in_turn: false }),
            ..Fileset::default()
        })
    }

    fn name(layout: Layout, directory: u64) -> String {
        let mut path = PathBuffer::new();
        layout.push(directory, &mut path);
        path.text()
    }

    #[test]
    fn a_tree_has_its_directories_level_by_level_and_files_in_all() {
        let layout = tree(26, 2, 3, false);
        assert_eq!(layout.directories(), 13);
        let names: Vec<String> = (0..13).map(|directory| name(layout, directory)).collect();
        assert_eq!(names[..6], ["", "/d0", "/d1", "/d2", "/d0/d0", "/d0/d1"]);
        assert_eq!(names[12], "/d2/d2");
        let of: Vec<u64> = (0..26).map(|file| layout.directory_of(file)).collect();
        assert_eq!(of, (0..26).map(|file| file / 2).collect::<Vec<_>>());
    }

    #[test]
    fn only_leaves_hold_files_if_asked() {
        let layout = tree(10, 3, 2, true);
        assert_eq!(layout.directories(), 15);
        let of: Vec<u64> = (0..10).map(|file| layout.directory_of(file)).collect();
        assert_eq!(of, [7, 7, 8, 9, 10, 11, 11, 12, 13, 14], "as even as it can be");
        assert_eq!(name(layout, 7), "/d0/d0/d0");
        assert_eq!(name(layout, 14), "/d1/d1/d1");
    }

    #[test]
    fn files_dealt_in_turn_go_to_one_directory_after_the_other() {
        let tree = Tree { depth: 1, branch: 3, leaves_only: true, in_turn: true };
        let layout = Layout::of(&Fileset { files: 7, tree: Some(tree), ..Fileset::default() });
        let of: Vec<u64> = (0..7).map(|file| layout.directory_of(file)).collect();
        assert_eq!(of, [1, 2, 3, 1, 2, 3, 1]);
    }

    #[test]
    fn a_chain_is_a_tree_with_one_branch() {
        let layout = tree(1, 4, 1, true);
        assert_eq!((layout.directories(), layout.directory_of(0)), (5, 4));
        assert_eq!(name(layout, 4), "/d0/d0/d0/d0");
        assert_eq!(Tree { depth: 64, branch: 10, leaves_only: false, in_turn: false }.directories(), None);
    }
}
