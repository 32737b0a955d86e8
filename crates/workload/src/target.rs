//! The file system under test.

use std::fmt;
use std::path::{Path, PathBuf};

use benchmaster_nfs_client::options::MountOptions;

/// The file system under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A directory: system calls.
    Directory(PathBuf),
    /// An export of an NFS server: the user-space client.
    Nfs(NfsTarget),
}

/// An export of an NFS server, reached over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfsTarget {
    /// Where it is and how it is used. Two targets that differ only in how (version, connections, sizes, …) hold the same
    /// files.
    pub options: Box<MountOptions>,
    /// Most reactor threads; else one per processor. There are never more than clients, each of which lives on one.
    pub threads: Option<u32>,
}

impl NfsTarget {
    /// An export with as many threads as processors.
    pub fn new(options: MountOptions) -> Self {
        Self { options: Box::new(options), threads: None }
    }

    /// Server and export without options: `nfs://server/export`.
    pub fn place(&self) -> String {
        let mut url = self.options.to_string();
        // A `?` of the path is written %3F.
        if let Some(end) = url.find('?') {
            url.truncate(end);
        }
        url
    }

    /// Number of reactor threads for so many clients.
    pub(crate) fn threads_for(&self, clients: u32) -> u32 {
        let processors =
            std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(1));
        self.threads.unwrap_or(processors).min(clients).max(1)
    }
}

impl Target {
    /// What it is called where files are named: the directory, or `nfs://server/export`.
    pub fn place(&self) -> PathBuf {
        match self {
            Self::Directory(path) => path.clone(),
            Self::Nfs(target) => target.place().into(),
        }
    }

    /// Whether the files of `other` are those of this target, however they are reached.
    pub fn same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory(a), Self::Directory(b)) => a == b,
            (Self::Nfs(a), Self::Nfs(b)) => a.place() == b.place(),
            (Self::Directory(_), Self::Nfs(_)) | (Self::Nfs(_), Self::Directory(_)) => false,
        }
    }
}

impl From<&Path> for Target {
    fn from(path: &Path) -> Self {
        Self::Directory(path.into())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Nfs(target) => target.options.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_the_same_whatever_the_options() {
        let target = |url: &str| Target::Nfs(NfsTarget::new(url.parse().unwrap()));
        let (a, b) = (target("nfs://s:20049/a%3Fb?version=3&nconnect=2"), target("nfs://s:20049/a%3Fb"));
        assert_eq!(a.place(), Path::new("nfs://s:20049/a%3Fb"));
        assert!(a != b && a.same_place(&b));
        assert!(!a.same_place(&target("nfs://s/a%3Fb")), "another port is another server");
        assert!(!a.same_place(&Target::from(Path::new("/a"))));
        assert_eq!(a.to_string(), "nfs://s:20049/a%3Fb?version=3&nconnect=2");
    }

    #[test]
    fn a_client_has_at_most_one_thread() {
        let target = |threads| NfsTarget { threads, ..NfsTarget::new("nfs://s/a".parse().unwrap()) };
        assert_eq!(target(Some(4)).threads_for(2), 2);
        assert_eq!(target(Some(4)).threads_for(9), 4);
        assert_eq!(target(None).threads_for(1), 1);
        assert_eq!(target(Some(0)).threads_for(3), 1);
    }
}
