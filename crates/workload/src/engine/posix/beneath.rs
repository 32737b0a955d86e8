//! Where a path leads, and nowhere outside of the directory that it begins at.
//!
//! A replay makes the symbolic links that were recorded, and renames directories with links in them: no look at a
//! link's text can say where it leads later. So the kernel resolves every path of such a replay with `RESOLVE_BENEATH`
//! (Linux 5.6): a path that leaves the directory fails with EXDEV.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{self, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::retry;
use crate::files::PathBuffer;

/// A directory, and a name or path to be taken from it.
#[derive(Debug)]
pub(super) struct Resolved<'p> {
    directory: Directory<'p>,
    name: Name<'p>,
}

#[derive(Debug)]
enum Directory<'p> {
    Root(BorrowedFd<'p>),
    Opened(OwnedFd),
}

#[derive(Debug)]
enum Name<'p> {
    Borrowed(&'p CStr),
    Built(Box<PathBuffer>),
}

impl AsFd for Resolved<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.directory {
            Directory::Root(root) => root.as_fd(),
            Directory::Opened(directory) => directory.as_fd(),
        }
    }
}

impl<'p> Resolved<'p> {
    /// A path that is taken as it is: its directory has no links.
    pub(super) fn plain(root: BorrowedFd<'p>, path: &'p PathBuffer) -> Self {
        Self { directory: Directory::Root(root), name: Name::Borrowed(path.as_c_str()) }
    }

    /// The directory of what `path` names, and its last component, which is for calls that do not follow a link there.
    pub(super) fn entry(root: BorrowedFd<'p>, path: &'p PathBuffer) -> Result<Self, Errno> {
        let bytes = path.bytes();
        let at = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (parent, name) = bytes.split_at(at);
        if matches!(name, b"" | b"." | b"..") {
            // No entry of a directory.
            return Err(if name == b".." { Errno::XDEV } else { Errno::INVAL });
        }
        let mut parents = PathBuffer::new();
        parents.push(if parent.is_empty() { b"." } else { parent });
        let directory = open(root, &parents, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
        let name = CStr::from_bytes_with_nul(&path.as_c_str().to_bytes_with_nul()[at..]);
        Ok(Self {
            directory: Directory::Opened(directory),
            name: Name::Borrowed(name.map_err(|_| Errno::INVAL)?),
        })
    }

    /// What `path` leads to, links followed: for calls that follow them.
    pub(super) fn object(root: BorrowedFd<'p>, path: &PathBuffer) -> Result<Self, Errno> {
        let object = open(root, path, OFlags::PATH, Mode::empty())?;
        let mut name = Box::new(PathBuffer::new());
        push_descriptor(&mut name, object.as_fd());
        Ok(Self { directory: Directory::Opened(object), name: Name::Built(name) })
    }

    pub(super) fn name(&self) -> &CStr {
        match &self.name {
            Name::Borrowed(name) => name,
            Name::Built(name) => name.as_c_str(),
        }
    }

    /// A path that needs no open directory to begin at: system calls for extended attributes take none.
    pub(super) fn absolute(&self) -> PathBuffer {
        let mut full = PathBuffer::new();
        push_descriptor(&mut full, self.as_fd());
        full.push(b"/");
        full.push(self.name().to_bytes());
        full
    }
}

/// Opens a path that stays beneath `root`.
pub(super) fn open(
    root: BorrowedFd<'_>,
    path: &PathBuffer,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // A mode for a file that is not made is EINVAL to this call.
    let mode = if flags.contains(OFlags::CREATE) { mode } else { Mode::empty() };
    loop {
        match retry(|| fs::openat2(root, path.as_c_str(), flags | OFlags::CLOEXEC, mode, resolve)) {
            // A directory on the way was moved meanwhile.
            Err(Errno::AGAIN) => {}
            opened => return opened,
        }
    }
}

fn push_descriptor(path: &mut PathBuffer, descriptor: BorrowedFd<'_>) {
    path.push(b"/proc/self/fd/");
    path.push_number(descriptor.as_raw_fd().unsigned_abs().into(), 1);
}
