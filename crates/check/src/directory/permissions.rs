//! Who may do what: tried by other users, so that these checks need root, and a server that lets root be root.

use rustix::fs::{Access, AtFlags, OFlags, Timespec, UTIME_NOW, accessat};
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, Here, OTHER_GROUP, STRANGER, Tried, holds, same, sync, write_all};
use crate::{Check, Group, Stop};

const GROUP: Group = Group::Security;

const OWNER: u32 = STRANGER - 1;
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };

/// What a user who is neither owner nor member may do.
fn as_stranger<T: Send>(here: &Here, work: impl FnOnce() -> Tried<T> + Send) -> Tried<T> {
    here.as_user(STRANGER, &[STRANGER], work)
}

fn as_owner<T: Send>(here: &Here, work: impl FnOnce() -> Tried<T> + Send) -> Tried<T> {
    here.as_user(OWNER, &[OWNER], work)
}

/// A file of another user in a directory where all may do all.
fn owned(here: &Here, mode: u32) -> Tried {
    root(here)?;
    here.chmod(".", 0o777).ok()?;
    here.file("a", b"data")?;
    here.chown("a", Some(OWNER), Some(OWNER)).offered()?;
    here.chmod("a", mode).ok()
}

/// These checks are for root, and for servers that do not make root a stranger.
fn root(here: &Here) -> Tried {
    if !rustix::process::geteuid().is_root() {
        return Err(Stop::not_applicable("only root can act for other users"));
    }
    here.file("of-root", b"")?;
    if here.stat("of-root").ok()?.st_uid != 0 {
        return Err(Stop::not_applicable("root is another user here (root_squash)"));
    }
    here.unlink("of-root").ok()
}

/// Opens for reading, writing and both succeed as the permission's bits say.
fn opens(here: &Here, bits: u32) -> Tried {
    for (flags, needed) in [(OFlags::RDONLY, 4), (OFlags::WRONLY, 2), (OFlags::RDWR, 6)] {
        let asked = here.open("a", flags, 0);
        if bits & needed == needed {
            asked.ok()?;
        } else {
            asked.fails(&[Errno::ACCESS])?;
        }
    }
    Ok(())
}

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!(
        "permission-of-owner",
        "open()",
        "The owner has the owner's permissions, also where others have more.",
        |here| {
            (0..8).try_for_each(|bits| {
                owned(here, bits << 6 | 0o077)?;
                as_owner(here, || opens(here, bits))?;
                here.unlink("a").ok()
            })
        }
    ),
    must!(
        "permission-of-group",
        "open()",
        "A member of the group has the group's permissions, also by a further group.",
        |here| {
            (0..8).try_for_each(|bits| {
                owned(here, 0o707 | bits << 3)?;
                here.as_user(STRANGER, &[OWNER], || opens(here, bits))?;
                here.as_user(STRANGER, &[STRANGER, OTHER_GROUP, OWNER], || opens(here, bits))?;
                here.unlink("a").ok()
            })
        }
    ),
    must!("permission-of-others", "open()", "All others have the others' permissions.", |here| {
        (0..8).try_for_each(|bits| {
            owned(here, 0o770 | bits)?;
            as_stranger(here, || opens(here, bits))?;
            here.unlink("a").ok()
        })
    }),
    must!(
        "permission-search",
        "open()",
        "What is below a directory without permission to search is not reached: EACCES.",
        |here| {
            root(here)?;
            here.mkdir("d").ok()?;
            here.file("d/a", b"")?;
            here.chmod("d/a", 0o666).ok()?;
            here.chmod("d", 0o666).ok()?;
            as_stranger(here, || {
                here.stat("d/a").fails(&[Errno::ACCESS])?;
                here.open("d/a", OFlags::RDONLY, 0).fails(&[Errno::ACCESS])
            })?;
            here.chmod("d", 0o711).ok()?;
            as_stranger(here, || {
                here.stat("d/a").ok()?;
                here.open("d", OFlags::RDONLY | OFlags::DIRECTORY, 0).fails(&[Errno::ACCESS])
            })
        }
    ),
    must!(
        "permission-to-change-directory",
        "open()",
        "Names are made, removed and renamed only in directories that may be written.",
        |here| {
            root(here)?;
            here.mkdir("d").ok()?;
            here.chmod("d", 0o755).ok()?;
            here.file("d/a", b"")?;
            as_stranger(here, || {
                here.open("d/b", OFlags::CREATE | OFlags::WRONLY, 0o644).fails(&[Errno::ACCESS])?;
                here.mkdir("d/e").fails(&[Errno::ACCESS])?;
                here.symlink("x", "d/l").fails(&[Errno::ACCESS])?;
                here.unlink("d/a").fails(&[Errno::ACCESS])?;
                here.rename("d/a", "d/b").fails(&[Errno::ACCESS])
            })?;
            here.chmod("d", 0o777).ok()?;
            as_stranger(here, || {
                here.file("d/b", b"")?;
                here.unlink("d/b").ok()?;
                here.unlink("d/a").ok()
            })
        }
    ),
    must!(
        "permission-sticky",
        "unlink()",
        "In a sticky directory only owners remove or rename: EPERM or EACCES.",
        |here| {
            owned(here, 0o666)?;
            here.chmod(".", 0o1777).ok()?;
            as_stranger(here, || {
                here.unlink("a").fails(&[Errno::PERM, Errno::ACCESS])?;
                here.rename("a", "b").fails(&[Errno::PERM, Errno::ACCESS])?;
                here.file("mine", b"")?;
                here.rename("mine", "a").fails(&[Errno::PERM, Errno::ACCESS])
            })?;
            as_owner(here, || here.unlink("a").ok())
        }
    ),
    must!("permission-to-chmod", "chmod()", "Only the owner changes the mode: EPERM.", |here| {
        owned(here, 0o666)?;
        as_stranger(here, || here.chmod("a", 0o777).fails(&[Errno::PERM]))?;
        as_owner(here, || here.chmod("a", 0o600).ok())?;
        same("mode", here.stat("a").ok()?.st_mode & 0o777, 0o600)
    }),
    must!("permission-to-chown", "chown()", "A user gives no file away and takes none: EPERM.", |here| {
        owned(here, 0o666)?;
        as_owner(here, || {
            here.chown("a", Some(STRANGER), None).fails(&[Errno::PERM])?;
            here.chown("a", None, Some(OTHER_GROUP)).fails(&[Errno::PERM])
        })?;
        as_stranger(here, || here.chown("a", Some(STRANGER), None).fails(&[Errno::PERM]))
    }),
    must!(
        "permission-to-chgrp",
        "chown()",
        "The owner gives a file to a group that he is a member of.",
        |here| {
            owned(here, 0o666)?;
            here.as_user(OWNER, &[OWNER, OTHER_GROUP], || here.chown("a", None, Some(OTHER_GROUP)).ok())?;
            same("group", here.stat("a").ok()?.st_gid, OTHER_GROUP)
        }
    ),
    must!(
        "permission-to-set-times",
        "utimensat()",
        "Who may write sets the current time; other times only the owner.",
        |here| {
            owned(here, 0o666)?;
            let then = Timespec { tv_sec: 1000, tv_nsec: 0 };
            as_stranger(here, || {
                here.set_times("a", then, then).fails(&[Errno::PERM])?;
                here.set_times("a", NOW, NOW).ok()
            })?;
            here.chmod("a", 0o644).ok()?;
            as_stranger(here, || here.set_times("a", NOW, NOW).fails(&[Errno::ACCESS]))?;
            as_owner(here, || here.set_times("a", then, then).ok())
        }
    ),
    must!("permission-new-file", "open()", "A new file belongs to who makes it.", |here| {
        root(here)?;
        here.chmod(".", 0o777).ok()?;
        as_stranger(here, || {
            here.file("a", b"")?;
            here.mkdir("d").ok()
        })?;
        for name in ["a", "d"] {
            let status = here.stat(name).ok()?;
            same("owner and group", (status.st_uid, status.st_gid), (STRANGER, STRANGER))?;
        }
        Ok(())
    }),
    must!(
        "permission-set-group-id-directory",
        "open()",
        "In a directory with set-group-ID new files get its group.",
        |here| {
            root(here)?;
            here.mkdir("d").ok()?;
            here.chown("d", None, Some(OTHER_GROUP)).offered()?;
            here.chmod("d", 0o2777).ok()?;
            as_stranger(here, || {
                here.file("d/a", b"")?;
                here.mkdir("d/e").ok()
            })?;
            same("group of a file", here.stat("d/a").ok()?.st_gid, OTHER_GROUP)?;
            same("group of a directory", here.stat("d/e").ok()?.st_gid, OTHER_GROUP)?;
            same("set-group-ID of the directory", here.stat("d/e").ok()?.st_mode & 0o2000, 0o2000)
        }
    ),
    must!(
        "write-clears-set-user-id",
        "write()",
        "Who is not root and writes clears set-user-ID and set-group-ID.",
        |here| {
            owned(here, 0o6777)?;
            as_stranger(here, || write_all(here.open("a", OFlags::WRONLY, 0).ok()?, b"x", 0))?;
            same("special bits", here.stat("a").ok()?.st_mode & 0o6000, 0)
        }
    ),
    must!(
        "chown-clears-set-user-id",
        "chown()",
        "A user's change of group clears set-user-ID and set-group-ID.",
        |here| {
            owned(here, 0o6755)?;
            here.as_user(OWNER, &[OWNER, OTHER_GROUP], || here.chown("a", None, Some(OTHER_GROUP)).ok())?;
            same("special bits", here.stat("a").ok()?.st_mode & 0o6000, 0)
        }
    ),
    must!("permission-access", "access()", "access tells what open would.", |here| {
        owned(here, 0o640)?;
        let ask = |access| {
            Asked::new(format!("access({access:?})"), accessat(&here.dir, "a", access, AtFlags::empty()))
        };
        as_owner(here, || {
            ask(Access::READ_OK | Access::WRITE_OK).ok()?;
            ask(Access::EXEC_OK).fails(&[Errno::ACCESS])
        })?;
        as_stranger(here, || ask(Access::READ_OK).fails(&[Errno::ACCESS]))
    }),
    should!(
        "permission-of-open-descriptor",
        "open()",
        "A descriptor keeps what it was opened for when the mode changes (NFS servers ask again at each write).",
        |here| {
            owned(here, 0o666)?;
            let file = as_stranger(here, || here.edit("a"))?;
            as_owner(here, || here.chmod("a", 0).ok())?;
            as_stranger(here, || {
                write_all(&file, b"DATA", 0)?;
                sync(&file)?;
                same("content", super::here::read(&file, 0, 10)?, b"DATA".to_vec())
            })
        }
    ),
    should!("permission-of-root", "open()", "Root may read and write every file.", |here| {
        owned(here, 0)?;
        drop(here.edit("a")?);
        let mode = here.stat("a").ok()?.st_mode & 0o777;
        holds(mode == 0, "mode", || format!("{mode:o}"))
    }),
];
