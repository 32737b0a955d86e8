//! Directories: made, removed and listed.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, Here, changed, later, modified, same, status, tick};
use crate::{Check, Group, Stop};

const GROUP: Group = Group::Names;

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!("mkdir-makes", "mkdir()", "An empty directory, that has dot and dot-dot.", |here| {
        here.mkdir("d").ok()?;
        let status = here.stat("d").ok()?;
        same("directory", status.st_mode & 0o170_000, 0o040_000)?;
        same("names in it", here.names("d")?.len(), 0)?;
        same("inode of d/.", here.stat("d/.").ok()?.st_ino, status.st_ino)?;
        same("inode of d/..", here.stat("d/..").ok()?.st_ino, here.stat(".").ok()?.st_ino)
    }),
    must!(
        "mkdir-existing",
        "mkdir()",
        "A name that exists, also a dangling symbolic link: EEXIST.",
        |here| {
            here.mkdir("d").ok()?;
            here.file("a", b"")?;
            here.symlink("none", "link").ok()?;
            for name in ["d", "a", "link", "."] {
                here.mkdir(name).fails(&[Errno::EXIST])?;
            }
            here.stat("none").fails(&[Errno::NOENT])
        }
    ),
    must!(
        "mkdir-missing-parent",
        "mkdir()",
        "A parent that does not exist: ENOENT; that is a file: ENOTDIR.",
        |here| {
            here.file("a", b"")?;
            here.mkdir("none/d").fails(&[Errno::NOENT])?;
            here.mkdir("a/d").fails(&[Errno::NOTDIR])?;
            here.mkdir("").fails(&[Errno::NOENT])
        }
    ),
    must!("mkdir-with-slash", "mkdir()", "The name of a new directory may end in a slash.", |here| {
        here.mkdir("d/").ok()?;
        here.stat("d").ok().map(drop)
    }),
    must!("mkdir-long-name", "mkdir()", "A name of 256 bytes: ENAMETOOLONG.", |here| {
        here.mkdir([b'n'; 256]).fails(&[Errno::NAMETOOLONG])
    }),
    must!("mkdir-times", "mkdir()", "The times of the parent are marked.", |here| {
        let before = here.stat(".").ok()?;
        tick();
        here.mkdir("d").ok()?;
        let after = here.stat(".").ok()?;
        later("st_mtime of the parent", modified(&before), modified(&after))?;
        later("st_ctime of the parent", changed(&before), changed(&after))
    }),
    should!(
        "mkdir-counts-links",
        "mkdir()",
        "A directory has a link for itself, its name and each directory in it.",
        |here| {
            here.mkdir("d").ok()?;
            if here.stat("d").ok()?.st_nlink == 1 {
                return Err(Stop::not_applicable("this file system does not count links of directories"));
            }
            same("links of an empty directory", here.stat("d").ok()?.st_nlink, 2)?;
            here.mkdir("d/e").ok()?;
            same("links with one directory in it", here.stat("d").ok()?.st_nlink, 3)?;
            here.rmdir("d/e").ok()?;
            same("links after it is removed", here.stat("d").ok()?.st_nlink, 2)
        }
    ),
    must!("mkdir-deep", "mkdir()", "A hundred levels.", |here| {
        let path = (1..=100).try_fold(String::from("d"), |path, _| {
            here.mkdir(&path).ok()?;
            Ok(path + "/d")
        })?;
        let deepest = &path[..path.len() - 2];
        here.file(format!("{deepest}/a"), b"deep")?;
        same("content at the bottom", here.content(format!("{deepest}/a"))?, b"deep".to_vec())
    }),
    must!("rmdir-removes", "rmdir()", "The name is gone.", |here| {
        here.mkdir("d").ok()?;
        here.rmdir("d").ok()?;
        here.stat("d").fails(&[Errno::NOENT])
    }),
    must!("rmdir-full", "rmdir()", "A directory that is not empty: EEXIST or ENOTEMPTY.", |here| {
        here.mkdir("d").ok()?;
        here.file("d/a", b"")?;
        here.rmdir("d").fails(&[Errno::EXIST, Errno::NOTEMPTY])?;
        here.stat("d/a").ok().map(drop)
    }),
    must!("rmdir-file", "rmdir()", "A file or a symbolic link to a directory: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.mkdir("d").ok()?;
        here.symlink("d", "link").ok()?;
        here.rmdir("a").fails(&[Errno::NOTDIR])?;
        here.rmdir("link").fails(&[Errno::NOTDIR])
    }),
    must!("rmdir-missing", "rmdir()", "A name that does not exist: ENOENT.", |here| {
        here.rmdir("d").fails(&[Errno::NOENT])
    }),
    must!("rmdir-dot", "rmdir()", "Dot: EINVAL; dot-dot of a directory: EEXIST or ENOTEMPTY.", |here| {
        here.mkdir("d").ok()?;
        here.mkdir("d/e").ok()?;
        here.rmdir("d/.").fails(&[Errno::INVAL])?;
        here.rmdir("d/e/..").fails(&[Errno::EXIST, Errno::NOTEMPTY, Errno::INVAL])
    }),
    must!(
        "rmdir-open",
        "rmdir()",
        "In a removed directory that is open nothing is listed or made.",
        |here| {
            here.mkdir("d").ok()?;
            let open = here.open("d", OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
            here.rmdir("d").ok()?;
            let removed = Here { dir: open };
            removed.open("a", OFlags::CREATE | OFlags::WRONLY, 0o644).fails(&[Errno::NOENT, Errno::STALE])?;
            removed.mkdir("b").fails(&[Errno::NOENT, Errno::STALE])
        }
    ),
    must!("directory-fsync", "fsync()", "A directory can be synchronised.", |here| {
        here.file("a", b"")?;
        let open = here.open(".", OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
        Asked::new("fsync of the directory".into(), rustix::fs::fsync(&open)).ok()
    }),
    must!(
        "directory-descriptor",
        "openat()",
        "Names are found below the descriptor of a renamed directory.",
        |here| {
            here.mkdir("a").ok()?;
            let open = here.open("a", OFlags::RDONLY | OFlags::DIRECTORY, 0).ok()?;
            here.rename("a", "b").ok()?;
            let below = Here { dir: open };
            below.file("f", b"x")?;
            same("content by the new path", here.content("b/f")?, b"x".to_vec())?;
            same("inode", status(&below.dir)?.st_ino, here.stat("b").ok()?.st_ino)
        }
    ),
];
