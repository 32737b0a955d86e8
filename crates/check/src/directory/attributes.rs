//! Modes, owners, sizes and times.

use rustix::fs::{Timespec, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, changed, holds, later, modified, resize, same, status, sync, tick, write_all};
use crate::{Check, Group, Stop};

const GROUP: Group = Group::Attributes;

const fn at(seconds: i64, nanoseconds: i64) -> Timespec {
    Timespec { tv_sec: seconds, tv_nsec: nanoseconds }
}

const OMIT: Timespec = at(0, UTIME_OMIT);
const NOW: Timespec = at(0, UTIME_NOW);

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!("chmod-each-bit", "chmod()", "Every permission is set and read back.", |here| {
        here.file("a", b"")?;
        here.mkdir("d").ok()?;
        for name in ["a", "d"] {
            for mode in (0..9).map(|bit| 1 << bit).chain([0, 0o777, 0o640, 0o755]) {
                here.chmod(name, mode).ok()?;
                same("mode", here.lstat(name).ok()?.st_mode & 0o7777, mode)?;
            }
            here.chmod(name, 0o755).ok()?;
        }
        Ok(())
    }),
    should!(
        "chmod-special-bits",
        "chmod()",
        "Set-user-ID, set-group-ID and the sticky bit are kept for the owner.",
        |here| {
            here.file("a", b"")?;
            here.mkdir("d").ok()?;
            for (name, mode) in [("a", 0o4755), ("a", 0o2755), ("d", 0o1777), ("d", 0o2755)] {
                here.chmod(name, mode).ok()?;
                same("mode", here.stat(name).ok()?.st_mode & 0o7777, mode)?;
            }
            Ok(())
        }
    ),
    must!("chmod-times", "chmod()", "The change time is marked, the time of modification is not.", |here| {
        here.file("a", b"")?;
        let before = here.stat("a").ok()?;
        tick();
        here.chmod("a", 0o600).ok()?;
        let after = here.stat("a").ok()?;
        later("st_ctime", changed(&before), changed(&after))?;
        same("st_mtime", modified(&after), modified(&before))
    }),
    must!("chmod-missing", "chmod()", "A name that does not exist: ENOENT; below a file: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.chmod("none", 0o644).fails(&[Errno::NOENT])?;
        here.chmod("a/b", 0o644).fails(&[Errno::NOTDIR])
    }),
    must!("chown-to-itself", "chown()", "Ids of -1 change nothing.", |here| {
        here.file("a", b"")?;
        let before = here.stat("a").ok()?;
        here.chown("a", None, None).ok()?;
        let after = here.stat("a").ok()?;
        same("owner and group", (after.st_uid, after.st_gid), (before.st_uid, before.st_gid))
    }),
    must!("utimensat-sets", "utimensat()", "Both times are set to the second.", |here| {
        here.file("a", b"")?;
        for (access, modification) in [(1_000_000_000, 1_111_111_111), (0, 1), (2_000_000_000, 86_400)] {
            here.set_times("a", at(access, 0), at(modification, 0)).ok()?;
            let status = here.stat("a").ok()?;
            same("st_atime and st_mtime", (status.st_atime, status.st_mtime), (access, modification))?;
        }
        Ok(())
    }),
    should!("utimensat-nanoseconds", "utimensat()", "Times are kept to the nanosecond.", |here| {
        here.file("a", b"")?;
        here.set_times("a", at(1_000_000_000, 123_456_789), at(1_000_000_000, 987_654_321)).ok()?;
        let status = here.stat("a").ok()?;
        same("nanoseconds", (status.st_atime_nsec, status.st_mtime_nsec), (123_456_789, 987_654_321))
    }),
    should!("utimensat-far-times", "utimensat()", "Times beyond 2038 and before 1970 are kept.", |here| {
        here.file("a", b"")?;
        for seconds in [2_147_483_648, 4_000_000_000, -1_000_000] {
            here.set_times("a", at(seconds, 0), at(seconds, 0)).ok()?;
            same("st_mtime", here.stat("a").ok()?.st_mtime, seconds)?;
        }
        Ok(())
    }),
    must!("utimensat-omit", "utimensat()", "UTIME_OMIT keeps a time.", |here| {
        here.file("a", b"")?;
        here.set_times("a", at(1000, 0), at(2000, 0)).ok()?;
        here.set_times("a", OMIT, at(3000, 0)).ok()?;
        let status = here.stat("a").ok()?;
        same("st_atime and st_mtime", (status.st_atime, status.st_mtime), (1000, 3000))?;
        here.set_times("a", at(4000, 0), OMIT).ok()?;
        let status = here.stat("a").ok()?;
        same("st_atime and st_mtime", (status.st_atime, status.st_mtime), (4000, 3000))
    }),
    must!("utimensat-now", "utimensat()", "UTIME_NOW sets the current time of the file system.", |here| {
        here.file("a", b"")?;
        here.set_times("a", at(1000, 0), at(1000, 0)).ok()?;
        here.file("earlier", b"")?;
        tick();
        here.set_times("a", NOW, NOW).ok()?;
        tick();
        here.file("later", b"")?;
        let [earlier, now, later] = ["earlier", "a", "later"].map(|name| here.stat(name).ok());
        let (earlier, now, later) = (modified(&earlier?), modified(&now?), modified(&later?));
        holds(earlier <= now && now <= later, "st_mtime", || {
            format!("{now}, not between {earlier} and {later}")
        })
    }),
    must!("utimensat-change-time", "utimensat()", "The change time is marked.", |here| {
        here.file("a", b"")?;
        let before = here.stat("a").ok()?;
        tick();
        here.set_times("a", at(1, 0), at(1, 0)).ok()?;
        later("st_ctime", changed(&before), changed(&here.stat("a").ok()?))
    }),
    must!("truncate-grows", "ftruncate()", "What is added reads as zeros.", |here| {
        here.file("a", b"data")?;
        here.truncate("a", 10_000)?;
        let content = here.content("a")?;
        same("size", content.len(), 10_000)?;
        holds(content[..4] == *b"data" && content[4..].iter().all(|byte| *byte == 0), "content", || {
            "not zeros".into()
        })
    }),
    must!("truncate-shrinks", "ftruncate()", "What was cut off does not come back.", |here| {
        here.file("a", &[b'x'; 10_000])?;
        here.truncate("a", 4097)?;
        here.truncate("a", 10_000)?;
        let content = here.content("a")?;
        same("size", content.len(), 10_000)?;
        holds(content[..4097].iter().all(|byte| *byte == b'x'), "content that stays", || "changed".into())?;
        holds(content[4097..].iter().all(|byte| *byte == 0), "content that was cut off", || {
            "not zeros".into()
        })
    }),
    must!("truncate-times", "ftruncate()", "Times of change and modification are marked.", |here| {
        here.file("a", b"data")?;
        let before = here.stat("a").ok()?;
        tick();
        here.truncate("a", 2)?;
        let after = here.stat("a").ok()?;
        later("st_ctime", changed(&before), changed(&after))?;
        later("st_mtime", modified(&before), modified(&after))
    }),
    must!("truncate-refuses", "ftruncate()", "A descriptor for reading: EINVAL or EBADF.", |here| {
        here.file("a", b"data")?;
        let file = here.open("a", rustix::fs::OFlags::RDONLY, 0).ok()?;
        resize(&file, 0).fails(&[Errno::INVAL, Errno::BADF])?;
        same("content", here.content("a")?, b"data".to_vec())
    }),
    must!("write-times", "write()", "Times of change and modification are marked.", |here| {
        here.file("a", b"")?;
        let before = here.stat("a").ok()?;
        tick();
        let file = here.edit("a")?;
        write_all(&file, b"x", 0)?;
        sync(&file)?;
        let after = here.stat("a").ok()?;
        later("st_ctime", changed(&before), changed(&after))?;
        later("st_mtime", modified(&before), modified(&after))
    }),
    must!("read-keeps-times", "read()", "Reading marks neither change nor modification.", |here| {
        here.file("a", b"data")?;
        let before = here.stat("a").ok()?;
        tick();
        here.content("a")?;
        let after = here.stat("a").ok()?;
        same("st_mtime", modified(&after), modified(&before))?;
        same("st_ctime", changed(&after), changed(&before))
    }),
    must!("size-after-write", "fstat()", "The size is seen at once, by name and by descriptor.", |here| {
        let file = here.create("a")?;
        for size in [1u64, 4096, 100_000] {
            write_all(&file, b"x", size - 1)?;
            same("size by descriptor", status(&file)?.st_size, size as i64)?;
            same("size by name", here.stat("a").ok()?.st_size, size as i64)?;
        }
        Ok(())
    }),
    should!("blocks-after-sync", "fstat()", "Stored data use blocks.", |here| {
        let file = here.create("a")?;
        write_all(&file, &[1; 1 << 17], 0)?;
        sync(&file)?;
        let blocks = status(&file)?.st_blocks;
        holds(blocks * 512 >= 1 << 16, "st_blocks after 128 KiB were stored", || blocks.to_string())
    }),
    must!("inode-stays", "stat()", "The inode of a file stays while it exists, also by new opens.", |here| {
        here.file("a", b"")?;
        let inode = here.stat("a").ok()?.st_ino;
        for _ in 0..5 {
            same("inode", status(here.edit("a")?)?.st_ino, inode)?;
        }
        here.chmod("a", 0o600).ok()?;
        here.truncate("a", 100)?;
        same("inode", here.stat("a").ok()?.st_ino, inode)
    }),
    must!("inodes-differ", "stat()", "Different files have different inodes on one device.", |here| {
        let mut inodes = std::collections::HashSet::new();
        for number in 0..200 {
            here.file(format!("f{number}"), b"")?;
            let status = here.stat(format!("f{number}")).ok()?;
            holds(inodes.insert((status.st_dev, status.st_ino)), "inode", || {
                format!("{} twice", status.st_ino)
            })?;
        }
        Ok(())
    }),
    must!("statvfs-adds-up", "fstatvfs()", "Free space is at most the whole, names have a limit.", |here| {
        let space = Asked::new("fstatvfs".into(), rustix::fs::fstatvfs(&here.dir)).ok()?;
        holds(space.f_bfree <= space.f_blocks, "f_bfree", || {
            format!("{} of {}", space.f_bfree, space.f_blocks)
        })?;
        holds(space.f_bavail <= space.f_bfree, "f_bavail", || {
            format!("{} of {}", space.f_bavail, space.f_bfree)
        })?;
        holds(space.f_namemax >= 14, "f_namemax", || space.f_namemax.to_string())
    }),
    must!(
        "umask-applies",
        "open()",
        "Bits of the umask are not set in a new file, all others are.",
        |here| {
            let mask = umask()?;
            drop(here.open("a", rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY, 0o777).ok()?);
            same("mode of a new file", here.stat("a").ok()?.st_mode & 0o777, 0o777 & !mask)?;
            here.mkdir_with("d", 0o777).ok()?;
            same("mode of a new directory", here.stat("d").ok()?.st_mode & 0o777, 0o777 & !mask)
        }
    ),
];

/// The umask, read without changing it, since threads share it.
fn umask() -> super::here::Tried<u32> {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| u32::from_str_radix(line.strip_prefix("Umask:")?.trim(), 8).ok())
        .ok_or_else(|| Stop::not_applicable("/proc/thread-self/status tells no umask"))
}
