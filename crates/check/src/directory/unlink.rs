//! `unlink`: a name goes at once, a file when its last descriptor is closed.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Directory;
use super::here::{changed, holds, later, modified, read_to_end, same, status, tick, write_all};
use crate::{Check, Group};

const GROUP: Group = Group::Names;

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!("unlink-file", "unlink()", "The name is gone.", |here| {
        here.file("a", b"")?;
        here.unlink("a").ok()?;
        here.stat("a").fails(&[Errno::NOENT])?;
        same("names that are left", here.names(".")?.len(), 0)
    }),
    must!("unlink-one-link", "unlink()", "The other link stays, and the count of links goes down.", |here| {
        here.file("a", b"data")?;
        here.link("a", "b").ok()?;
        here.unlink("a").ok()?;
        same("links", here.stat("b").ok()?.st_nlink, 1)?;
        same("content", here.content("b")?, b"data".to_vec())
    }),
    must!("unlink-missing", "unlink()", "A name that does not exist: ENOENT.", |here| {
        here.unlink("a").fails(&[Errno::NOENT])?;
        here.unlink("none/a").fails(&[Errno::NOENT])?;
        here.unlink("").fails(&[Errno::NOENT])
    }),
    must!("unlink-below-a-file", "unlink()", "A part of the path is a file: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.unlink("a/b").fails(&[Errno::NOTDIR])
    }),
    must!("unlink-directory", "unlink()", "A directory: EPERM, or EISDIR as on Linux.", |here| {
        here.mkdir("d").ok()?;
        here.unlink("d").fails(&[Errno::PERM, Errno::ISDIR])?;
        here.stat("d").ok().map(drop)
    }),
    must!("unlink-with-slash", "unlink()", "A file's name that ends in a slash: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.unlink("a/").fails(&[Errno::NOTDIR])
    }),
    must!("unlink-symlink", "unlink()", "The symbolic link goes, not what it stands for.", |here| {
        here.file("target", b"")?;
        here.symlink("target", "a").ok()?;
        here.unlink("a").ok()?;
        here.lstat("a").fails(&[Errno::NOENT])?;
        here.stat("target").ok().map(drop)
    }),
    must!("unlink-long-name", "unlink()", "A name of 256 bytes: ENAMETOOLONG.", |here| {
        here.unlink([b'n'; 256]).fails(&[Errno::NAMETOOLONG])
    }),
    must!(
        "unlink-open-file",
        "unlink()",
        "An open file can be read and written until it is closed.",
        |here| {
            let open = here.create("a")?;
            write_all(&open, b"before", 0)?;
            here.unlink("a").ok()?;
            here.stat("a").fails(&[Errno::NOENT])?;
            write_all(&open, b"behind", 6)?;
            same("content through the descriptor", read_to_end(&open)?, b"beforebehind".to_vec())
        }
    ),
    must!("unlink-and-create-again", "unlink()", "A new file of the same name is another file.", |here| {
        let open = here.create("a")?;
        write_all(&open, b"old", 0)?;
        here.unlink("a").ok()?;
        here.file("a", b"new")?;
        same("content of the old file", read_to_end(&open)?, b"old".to_vec())?;
        same("content of the new file", here.content("a")?, b"new".to_vec())?;
        holds(status(&open)?.st_ino != here.stat("a").ok()?.st_ino, "inodes of both", || "the same".into())
    }),
    should!(
        "unlink-open-file-links",
        "unlink()",
        "An open file without names has no links (an NFS client renames it instead, and shows one).",
        |here| {
            let open = here.create("a")?;
            here.unlink("a").ok()?;
            same("links of the open file", status(&open)?.st_nlink, 0)
        },
    ),
    should!(
        "unlink-open-file-is-not-listed",
        "unlink()",
        "No name of it is left in the directory (an NFS client leaves .nfs…).",
        |here| {
            let _open = here.create("a")?;
            here.unlink("a").ok()?;
            let names = here.names(".")?;
            holds(names.is_empty(), "names after unlink", || String::from_utf8_lossy(&names[0]).into_owned())
        },
    ),
    should!(
        "unlink-open-file-then-rmdir",
        "rmdir()",
        "Its directory can be removed while it is open (not with a .nfs… file in it).",
        |here| {
            here.mkdir("d").ok()?;
            let _open = here.create("d/a")?;
            here.unlink("d/a").ok()?;
            here.rmdir("d").ok()
        },
    ),
    must!(
        "unlink-times",
        "unlink()",
        "The directory's times, and the change time of a file that stays, are marked.",
        |here| {
            here.file("a", b"")?;
            here.link("a", "b").ok()?;
            let (directory, file) = (here.stat(".").ok()?, here.stat("b").ok()?);
            tick();
            here.unlink("a").ok()?;
            let after = here.stat(".").ok()?;
            later("st_mtime of the directory", modified(&directory), modified(&after))?;
            later("st_ctime of the directory", changed(&directory), changed(&after))?;
            later("st_ctime of the other link", changed(&file), changed(&here.stat("b").ok()?))
        }
    ),
    must!("unlink-many", "unlink()", "A thousand files are removed, each once.", |here| {
        for number in 0..1000 {
            drop(here.open(format!("f{number}"), OFlags::CREATE | OFlags::WRONLY, 0o644).ok()?);
        }
        for number in 0..1000 {
            here.unlink(format!("f{number}")).ok()?;
        }
        same("names that are left", here.names(".")?.len(), 0)
    }),
];
