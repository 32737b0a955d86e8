//! What guests have besides their kernel.

use std::process::Command;

use super::{Manifest, RootError};
use crate::file_error::at;
use crate::packages::Trees;

/// The lines of one of the lists beside this file.
fn lines(list: &'static str) -> impl Iterator<Item = &'static str> {
    list.lines().filter(|line| !line.starts_with('#'))
}

/// A program of a package.
pub(crate) struct Needed {
    pub(crate) package: &'static str,
    /// Where guests have it.
    directory: &'static str,
    pub(crate) program: &'static str,
}

impl Needed {
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.directory, self.program)
    }
}

/// In the order of their packages.
pub(crate) fn needed() -> impl Iterator<Item = Needed> {
    lines(include_str!("content/programs.txt")).filter_map(|line| {
        let mut words = line.split(' ');
        Some(Needed { package: words.next()?, directory: words.next()?, program: words.next()? })
    })
}

/// Those above come before those below.
pub(crate) fn directories() -> impl Iterator<Item = &'static str> {
    lines(include_str!("content/directories.txt"))
}

/// Where links are, and where they lead.
pub(crate) fn links() -> impl Iterator<Item = (&'static str, &'static str)> {
    lines(include_str!("content/links.txt")).filter_map(|line| line.split_once(' '))
}

/// Modules of the kernel that guests may need; those that they need come with them, those that are built in are not missed.
pub(crate) fn modules() -> impl Iterator<Item = &'static str> {
    lines(include_str!("content/modules.txt"))
}

/// Files and what is in them.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("init", include_str!("init")),
    ("etc/passwd", include_str!("content/etc/passwd")),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
    ("etc/nsswitch.conf", include_str!("content/etc/nsswitch.conf")),
    ("etc/protocols", include_str!("content/etc/protocols")),
    ("etc/services", include_str!("content/etc/services")),
    ("etc/rpc", include_str!("content/etc/rpc")),
    ("etc/netconfig", include_str!("content/etc/netconfig")),
    // What machines of QEMU find their disks and networks with; the kernel in user mode has it built in.
    ("etc/modules", "virtio_pci\nvirtio_blk\nvirtio_net\n"),
    ("etc/exports", ""),
    ("etc/nfs.conf", ""),
    ("var/lib/nfs/etab", ""),
    ("var/lib/nfs/rmtab", ""),
    ("var/lib/nfs/state", ""),
];

/// The programs of busybox, without those that are in the root already.
pub(crate) fn applets(trees: &Trees, manifest: &Manifest) -> Result<Vec<String>, RootError> {
    let Some(busybox) = trees.program("busybox") else {
        return Err(RootError::Missing {
            programs: vec!["busybox".into()],
            packages: vec!["busybox-static".into()],
        });
    };
    let output = Command::new(&busybox).arg("--list").output();
    let output = output.map_err(at(&busybox))?;
    let taken = |name: &str| {
        let ends = |path: &str| path.rsplit('/').next() == Some(name);
        manifest.keys().any(|path| ends(path)) || links().any(|(path, _)| ends(path))
    };
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|name| !name.is_empty() && !taken(name))
        .map(str::to_owned)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lists_are_read() {
        assert_eq!((needed().count(), links().count()), (22, 12));
        assert!(directories().all(|path| !path.contains(' ') && !path.starts_with('/')));
        assert!(directories().any(|path| path == "var/lib/nfs/sm"));
        assert!(modules().all(|module| !module.is_empty() && !module.contains(' ')));
        assert!(modules().any(|module| module == "nfsv4"));
    }
}
