//! Hard and symbolic links.

use rustix::fs::{AtFlags, linkat};
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, changed, later, same, tick, write_all};
use crate::{Check, Group};

const GROUP: Group = Group::Names;

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!(
        "link-is-the-same-file",
        "link()",
        "Both names stand for one file, which counts two links.",
        |here| {
            here.file("a", b"data")?;
            here.link("a", "b").offered()?;
            let (a, b) = (here.stat("a").ok()?, here.stat("b").ok()?);
            same("inodes", a.st_ino, b.st_ino)?;
            same("links", (a.st_nlink, b.st_nlink), (2, 2))?;
            write_all(here.edit("a")?, b"DATA", 0)?;
            same("content by the other name", here.content("b")?, b"DATA".to_vec())
        }
    ),
    must!("link-shares-attributes", "link()", "Mode and size are the same by both names.", |here| {
        here.file("a", b"")?;
        here.link("a", "b").offered()?;
        here.chmod("b", 0o600).ok()?;
        here.truncate("b", 10)?;
        let status = here.stat("a").ok()?;
        same("mode and size", (status.st_mode & 0o777, status.st_size), (0o600, 10))
    }),
    must!("link-existing", "link()", "The new name exists: EEXIST.", |here| {
        here.file("a", b"")?;
        here.file("b", b"")?;
        here.link("a", "b").fails(&[Errno::EXIST])?;
        here.link("a", "a").fails(&[Errno::EXIST])?;
        here.mkdir("d").ok()?;
        here.link("a", "d").fails(&[Errno::EXIST])
    }),
    must!(
        "link-missing",
        "link()",
        "What is to be linked, or the new directory, does not exist: ENOENT.",
        |here| {
            here.link("a", "b").fails(&[Errno::NOENT])?;
            here.file("a", b"")?;
            here.link("a", "none/b").fails(&[Errno::NOENT])
        }
    ),
    must!("link-below-a-file", "link()", "A part of a path is a file: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.file("b", b"")?;
        here.link("a", "b/c").fails(&[Errno::NOTDIR])?;
        here.link("b/c", "d").fails(&[Errno::NOTDIR])
    }),
    must!("link-directory", "link()", "A directory is not linked: EPERM.", |here| {
        here.mkdir("d").ok()?;
        here.link("d", "e").fails(&[Errno::PERM])
    }),
    must!("link-change-time", "link()", "The change time of the file is marked.", |here| {
        here.file("a", b"")?;
        let before = here.stat("a").ok()?;
        tick();
        here.link("a", "b").offered()?;
        later("st_ctime", changed(&before), changed(&here.stat("a").ok()?))
    }),
    must!("link-many", "link()", "A hundred links of one file are counted.", |here| {
        here.file("a", b"")?;
        for number in 0..100 {
            here.link("a", format!("l{number}")).offered()?;
        }
        same("links", here.stat("a").ok()?.st_nlink, 101)
    }),
    linux!(
        "link-symlink",
        "linkat(2)",
        "Without AT_SYMLINK_FOLLOW the symbolic link itself is linked.",
        |here| {
            here.file("target", b"")?;
            here.symlink("target", "a").ok()?;
            here.link("a", "b").offered()?;
            same("inodes", here.lstat("a").ok()?.st_ino, here.lstat("b").ok()?.st_ino)?;
            here.readlink("b").ok().map(drop)
        }
    ),
    must!("link-follows", "linkat()", "With AT_SYMLINK_FOLLOW its target is linked.", |here| {
        here.file("target", b"")?;
        here.symlink("target", "a").ok()?;
        let answer = linkat(&here.dir, "a", &here.dir, "b", AtFlags::SYMLINK_FOLLOW);
        Asked::new("linkat(\"a\", \"b\", AT_SYMLINK_FOLLOW)".into(), answer).offered()?;
        same("inodes", here.lstat("b").ok()?.st_ino, here.lstat("target").ok()?.st_ino)
    }),
    must!(
        "symlink-keeps-its-text",
        "symlink()",
        "What is read is what was written, and its length is the size.",
        |here| {
            let long = "x/".repeat(500) + "end";
            for (name, text) in
                [("a", "target"), ("b", "/absolute//path/."), ("c", " \t\u{fc}"), ("d", &long)]
            {
                here.symlink(text, name).ok()?;
                same("text of the link", here.readlink(name).ok()?.into_bytes(), text.as_bytes().to_vec())?;
                same("st_size of the link", here.lstat(name).ok()?.st_size, text.len() as i64)?;
            }
            Ok(())
        }
    ),
    must!("symlink-type", "lstat()", "lstat shows the link, stat what it stands for.", |here| {
        here.mkdir("d").ok()?;
        here.symlink("d", "link").ok()?;
        same("type by lstat", here.lstat("link").ok()?.st_mode & 0o170_000, 0o120_000)?;
        same("type by stat", here.stat("link").ok()?.st_mode & 0o170_000, 0o040_000)
    }),
    must!("symlink-existing", "symlink()", "The name exists: EEXIST.", |here| {
        here.file("a", b"")?;
        here.mkdir("d").ok()?;
        here.symlink("x", "l").ok()?;
        for name in ["a", "d", "l"] {
            here.symlink("target", name).fails(&[Errno::EXIST])?;
        }
        Ok(())
    }),
    must!("symlink-empty", "symlink()", "An empty text is refused (ENOENT), or allowed and kept.", |here| {
        match here.symlink("", "a").answer() {
            Err(error) => same("error", error, Errno::NOENT),
            Ok(()) => same("text", here.readlink("a").ok()?.into_bytes(), Vec::new()),
        }
    }),
    must!(
        "symlink-dangling",
        "symlink()",
        "A link may stand for what does not exist: ENOENT when followed.",
        |here| {
            here.symlink("none", "a").ok()?;
            here.stat("a").fails(&[Errno::NOENT])?;
            here.lstat("a").ok().map(drop)
        }
    ),
    must!("symlink-below", "symlink()", "A link to a directory leads below it.", |here| {
        here.mkdir("d").ok()?;
        here.file("d/a", b"in")?;
        here.symlink("d", "link").ok()?;
        same("content", here.content("link/a")?, b"in".to_vec())?;
        here.mkdir("e").ok()?;
        here.symlink("../d/a", "e/up").ok()?;
        same("content by a relative link", here.content("e/up")?, b"in".to_vec())
    }),
    must!("readlink-file", "readlink()", "A file or a directory is no link: EINVAL.", |here| {
        here.file("a", b"")?;
        here.mkdir("d").ok()?;
        here.readlink("a").fails(&[Errno::INVAL])?;
        here.readlink("d").fails(&[Errno::INVAL])?;
        here.readlink("none").fails(&[Errno::NOENT])
    }),
    must!("chmod-through-symlink", "chmod()", "The mode of what a link stands for is changed.", |here| {
        here.file("a", b"")?;
        here.symlink("a", "link").ok()?;
        here.chmod("link", 0o600).ok()?;
        same("mode of the file", here.stat("a").ok()?.st_mode & 0o777, 0o600)
    }),
];
