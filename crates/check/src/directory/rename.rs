//! `rename`: one step that others see whole, and what it refuses.

use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;

use super::Directory;
use super::here::{changed, joined, later, modified, same, status, tick};
use crate::{Check, Group};

const GROUP: Group = Group::Names;

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!(
        "rename-file",
        "rename()",
        "The new name stands for the same file, the old name is gone.",
        |here| {
            here.file("a", b"data")?;
            let before = here.stat("a").ok()?;
            here.rename("a", "b").ok()?;
            here.stat("a").fails(&[Errno::NOENT])?;
            same("inode after rename", here.stat("b").ok()?.st_ino, before.st_ino)?;
            same("content after rename", here.content("b")?, b"data".to_vec())
        }
    ),
    must!(
        "rename-replaces-file",
        "rename()",
        "An existing file is replaced, and one link of it is gone.",
        |here| {
            here.file("a", b"new")?;
            here.file("b", b"old")?;
            here.link("b", "kept").ok()?;
            here.rename("a", "b").ok()?;
            same("content of the new name", here.content("b")?, b"new".to_vec())?;
            same("content of the other link", here.content("kept")?, b"old".to_vec())?;
            same("links of the replaced file", here.stat("kept").ok()?.st_nlink, 1)
        }
    ),
    must!(
        "rename-keeps-replaced-data",
        "rename()",
        "Who has the replaced file open still reads its data.",
        |here| {
            here.file("a", b"new")?;
            here.file("b", b"old")?;
            let open = here.open("b", OFlags::RDONLY, 0).ok()?;
            here.rename("a", "b").ok()?;
            same("content through the open descriptor", super::here::read_to_end(&open)?, b"old".to_vec())
        }
    ),
    must!("rename-open-file", "rename()", "A descriptor of the renamed file works on.", |here| {
        let open = here.create("a")?;
        here.rename("a", "b").ok()?;
        super::here::write_all(&open, b"later", 0)?;
        same("content by the new name", here.content("b")?, b"later".to_vec())
    }),
    must!(
        "rename-same-file",
        "rename()",
        "Two links of one file: nothing is done, both names stay.",
        |here| {
            here.file("a", b"")?;
            here.link("a", "b").ok()?;
            here.rename("a", "b").ok()?;
            same("links", here.stat("a").ok()?.st_nlink, 2)?;
            here.stat("b").ok().map(drop)
        }
    ),
    must!("rename-to-itself", "rename()", "A name renamed to itself stays.", |here| {
        here.file("a", b"x")?;
        here.rename("a", "a").ok()?;
        same("content", here.content("a")?, b"x".to_vec())
    }),
    must!("rename-missing", "rename()", "A name that does not exist: ENOENT.", |here| {
        here.rename("a", "b").fails(&[Errno::NOENT])
    }),
    must!("rename-into-missing-directory", "rename()", "A directory that does not exist: ENOENT.", |here| {
        here.file("a", b"")?;
        here.rename("a", "none/b").fails(&[Errno::NOENT])?;
        here.stat("a").ok().map(drop)
    }),
    must!("rename-below-a-file", "rename()", "A part of the path is a file: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.file("b", b"")?;
        here.rename("a", "b/c").fails(&[Errno::NOTDIR])?;
        here.rename("b/c", "d").fails(&[Errno::NOTDIR])
    }),
    must!("rename-file-over-directory", "rename()", "A file does not replace a directory: EISDIR.", |here| {
        here.file("a", b"")?;
        here.mkdir("d").ok()?;
        here.rename("a", "d").fails(&[Errno::ISDIR])
    }),
    must!(
        "rename-directory-over-file",
        "rename()",
        "A directory does not replace a file: ENOTDIR.",
        |here| {
            here.mkdir("d").ok()?;
            here.file("a", b"")?;
            here.rename("d", "a").fails(&[Errno::NOTDIR])
        }
    ),
    must!("rename-over-empty-directory", "rename()", "A directory replaces an empty one.", |here| {
        here.mkdir("from").ok()?;
        here.file("from/in", b"")?;
        here.mkdir("to").ok()?;
        here.rename("from", "to").ok()?;
        here.stat("to/in").ok()?;
        here.stat("from").fails(&[Errno::NOENT])
    }),
    must!(
        "rename-over-full-directory",
        "rename()",
        "A directory that is not empty is not replaced: EEXIST or ENOTEMPTY.",
        |here| {
            here.mkdir("from").ok()?;
            here.mkdir("to").ok()?;
            here.file("to/in", b"")?;
            here.rename("from", "to").fails(&[Errno::EXIST, Errno::NOTEMPTY])?;
            here.stat("to/in").ok().map(drop)
        },
    ),
    must!("rename-below-itself", "rename()", "A directory does not move below itself: EINVAL.", |here| {
        here.mkdir("a").ok()?;
        here.mkdir("a/b").ok()?;
        here.rename("a", "a/c").fails(&[Errno::INVAL])?;
        here.rename("a", "a/b/c").fails(&[Errno::INVAL])
    }),
    must!("rename-dot", "rename()", "Neither name may end in dot or dot-dot: EINVAL (or EBUSY).", |here| {
        here.mkdir("a").ok()?;
        here.rename("a/.", "b").fails(&[Errno::INVAL, Errno::BUSY])?;
        here.rename("a/..", "b").fails(&[Errno::INVAL, Errno::BUSY, Errno::NOTEMPTY])?;
        here.mkdir("c").ok()?;
        here.rename("c", "a/.").fails(&[Errno::INVAL, Errno::BUSY, Errno::EXIST, Errno::NOTEMPTY])
    }),
    must!("rename-file-with-slash", "rename()", "A file's name that ends in a slash: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.rename("a/", "b").fails(&[Errno::NOTDIR])?;
        here.rename("a", "b/").fails(&[Errno::NOTDIR, Errno::NOENT, Errno::ISDIR])
    }),
    must!("rename-directory-with-slash", "rename()", "A directory's name may end in a slash.", |here| {
        here.mkdir("a").ok()?;
        here.rename("a/", "b/").ok()?;
        here.stat("b").ok().map(drop)
    }),
    must!("rename-symlink", "rename()", "The symbolic link is renamed, not what it stands for.", |here| {
        here.file("target", b"")?;
        here.symlink("target", "a").ok()?;
        here.rename("a", "b").ok()?;
        here.lstat("a").fails(&[Errno::NOENT])?;
        here.stat("target").ok()?;
        here.readlink("b").ok().map(drop)
    }),
    must!(
        "rename-over-symlink",
        "rename()",
        "The symbolic link is replaced, not what it stands for.",
        |here| {
            here.file("target", b"old")?;
            here.symlink("target", "link").ok()?;
            here.file("a", b"new")?;
            here.rename("a", "link").ok()?;
            same("content of the link's target", here.content("target")?, b"old".to_vec())?;
            same("content of the new name", here.content("link")?, b"new".to_vec())?;
            here.readlink("link").fails(&[Errno::INVAL])
        }
    ),
    must!("rename-moves-dot-dot", "rename()", "Dot-dot of a moved directory is its new parent.", |here| {
        here.mkdir("a").ok()?;
        here.mkdir("a/moved").ok()?;
        here.mkdir("b").ok()?;
        here.rename("a/moved", "b/moved").ok()?;
        same("inode of b/moved/..", here.stat("b/moved/..").ok()?.st_ino, here.stat("b").ok()?.st_ino)
    }),
    must!("rename-long-name", "rename()", "A name of 256 bytes: ENAMETOOLONG.", |here| {
        here.file("a", b"")?;
        here.rename("a", [b'n'; 256]).fails(&[Errno::NAMETOOLONG])
    }),
    must!(
        "rename-times",
        "rename()",
        "Times of change and modification of both directories are marked.",
        |here| {
            here.mkdir("from").ok()?;
            here.mkdir("to").ok()?;
            here.file("from/a", b"")?;
            let before = [here.stat("from").ok()?, here.stat("to").ok()?];
            tick();
            here.rename("from/a", "to/a").ok()?;
            for (name, before) in ["from", "to"].iter().zip(&before) {
                let after = here.stat(name).ok()?;
                later("st_mtime of a directory after rename", modified(before), modified(&after))?;
                later("st_ctime of a directory after rename", changed(before), changed(&after))?;
            }
            Ok(())
        }
    ),
    must!(
        "rename-directory-keeps-content",
        "rename()",
        "What is below a renamed directory stays, also open.",
        |here| {
            here.mkdir("a").ok()?;
            here.file("a/f", b"in")?;
            let open = here.edit("a/f")?;
            here.rename("a", "b").ok()?;
            same("content", here.content("b/f")?, b"in".to_vec())?;
            here.stat("a/f").fails(&[Errno::NOENT])?;
            same("size through the open descriptor", status(&open)?.st_size, 2)
        }
    ),
    must!(
        "rename-is-never-absent",
        "rename()",
        "While files replace a name, the name always exists.",
        |here| {
            here.file("name", b"")?;
            std::thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    (0..200).try_for_each(|number| {
                        let next = format!("next-{number}");
                        here.file(&next, b"")?;
                        here.rename(&next, "name").ok()
                    })
                });
                let mut looks = Ok(());
                while looks.is_ok() && !writer.is_finished() {
                    looks = here.stat("name").ok().map(drop);
                }
                let written = joined(writer);
                written.and(looks)
            })
        }
    ),
    linux!("rename-noreplace", "renameat2(2)", "RENAME_NOREPLACE does not replace a name: EEXIST.", |here| {
        here.file("a", b"a")?;
        here.rename_with("a", "c", RenameFlags::NOREPLACE).offered()?;
        here.file("b", b"b")?;
        here.rename_with("c", "b", RenameFlags::NOREPLACE).fails(&[Errno::EXIST])?;
        same("content", here.content("b")?, b"b".to_vec())
    }),
    linux!("rename-exchange", "renameat2(2)", "RENAME_EXCHANGE exchanges two names.", |here| {
        here.file("a", b"a")?;
        here.mkdir("b").ok()?;
        here.rename_with("a", "b", RenameFlags::EXCHANGE).offered()?;
        same("content", here.content("b")?, b"a".to_vec())?;
        here.names("a").map(drop)
    }),
];
