//! `open`: creation, its flags and what they refuse.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, changed, holds, later, modified, read, same, status, tick, write, write_all};
use crate::{Check, Group, Stop};

const GROUP: Group = Group::Open;

const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::RDWR);

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!(
        "open-creates",
        "open()",
        "A new file is empty, regular, has one link and belongs to the caller.",
        |here| {
            let status = status(here.create("a")?)?;
            same("size", status.st_size, 0)?;
            same("links", status.st_nlink, 1)?;
            same("regular file", status.st_mode & 0o170_000, 0o100_000)?;
            let stranger = rustix::process::geteuid().as_raw() != status.st_uid;
            // Root may be squashed.
            let root = rustix::process::geteuid().is_root();
            holds(root || !stranger, "owner", || status.st_uid.to_string())
        }
    ),
    must!("open-missing", "open()", "A name that does not exist, without O_CREAT: ENOENT.", |here| {
        here.open("a", OFlags::RDONLY, 0).fails(&[Errno::NOENT])?;
        here.open("", OFlags::RDONLY, 0).fails(&[Errno::NOENT])?;
        here.open("none/a", OFlags::CREATE | OFlags::WRONLY, 0o644).fails(&[Errno::NOENT])
    }),
    must!("open-below-a-file", "open()", "A part of the path is a file: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.open("a/b", OFlags::RDONLY, 0).fails(&[Errno::NOTDIR])?;
        here.open("a/b", OFlags::CREATE | OFlags::WRONLY, 0o644).fails(&[Errno::NOTDIR])
    }),
    must!("open-exclusive", "open()", "O_CREAT|O_EXCL of a name that exists: EEXIST.", |here| {
        here.file("a", b"kept")?;
        here.open("a", NEW, 0o644).fails(&[Errno::EXIST])?;
        here.mkdir("d").ok()?;
        here.open("d", NEW, 0o644).fails(&[Errno::EXIST])?;
        same("content", here.content("a")?, b"kept".to_vec())
    }),
    must!(
        "open-exclusive-symlink",
        "open()",
        "O_CREAT|O_EXCL of a symbolic link, also a dangling one: EEXIST.",
        |here| {
            here.symlink("none", "link").ok()?;
            here.open("link", NEW, 0o644).fails(&[Errno::EXIST])?;
            here.stat("none").fails(&[Errno::NOENT])
        }
    ),
    must!(
        "open-exclusive-race",
        "open()",
        "Of eight threads that create one name with O_EXCL one succeeds.",
        |here| {
            for round in 0..20 {
                let name = format!("race-{round}");
                let winners = std::thread::scope(|scope| {
                    let open = || here.open(&name, NEW, 0o644).answer();
                    let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                    threads
                        .into_iter()
                        .filter_map(|thread| thread.join().ok())
                        .map(|answer| answer.map(drop))
                        .collect::<Vec<_>>()
                });
                same("winners", winners.iter().filter(|answer| answer.is_ok()).count(), 1)?;
                for loser in winners.into_iter().filter(Result::is_err) {
                    Asked::new(format!("open({name}, O_CREAT|O_EXCL)"), loser).fails(&[Errno::EXIST])?;
                }
            }
            Ok(())
        }
    ),
    must!(
        "open-creates-through-symlink",
        "open()",
        "O_CREAT of a dangling symbolic link creates its target.",
        |here| {
            here.symlink("target", "link").ok()?;
            drop(here.open("link", OFlags::CREATE | OFlags::RDWR, 0o644).ok()?);
            here.lstat("target").ok().map(drop)
        }
    ),
    must!("open-directory-for-writing", "open()", "A directory is not opened for writing: EISDIR.", |here| {
        here.mkdir("d").ok()?;
        here.open("d", OFlags::WRONLY, 0).fails(&[Errno::ISDIR])?;
        here.open("d", OFlags::RDWR, 0).fails(&[Errno::ISDIR])?;
        here.open("d", OFlags::WRONLY | OFlags::TRUNC, 0).fails(&[Errno::ISDIR])
    }),
    must!("open-directory-only", "open()", "O_DIRECTORY of a file: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.open("a", OFlags::RDONLY | OFlags::DIRECTORY, 0).fails(&[Errno::NOTDIR])
    }),
    must!("open-nofollow", "open()", "O_NOFOLLOW of a symbolic link: ELOOP.", |here| {
        here.file("a", b"")?;
        here.symlink("a", "link").ok()?;
        here.open("link", OFlags::RDONLY | OFlags::NOFOLLOW, 0).fails(&[Errno::LOOP])
    }),
    must!("open-loop", "open()", "Symbolic links that stand for each other: ELOOP.", |here| {
        here.symlink("b", "a").ok()?;
        here.symlink("a", "b").ok()?;
        here.open("a", OFlags::RDONLY, 0).fails(&[Errno::LOOP])?;
        here.stat("a/c").fails(&[Errno::LOOP])
    }),
    must!("open-with-slash", "open()", "A file's name that ends in a slash: ENOTDIR.", |here| {
        here.file("a", b"")?;
        here.open("a/", OFlags::RDONLY, 0).fails(&[Errno::NOTDIR])?;
        here.open("new/", OFlags::CREATE | OFlags::WRONLY, 0o644).fails(&[
            Errno::ISDIR,
            Errno::NOTDIR,
            Errno::NOENT,
        ])
    }),
    must!("open-truncates", "open()", "O_TRUNC empties the file and marks its times.", |here| {
        here.file("a", b"data")?;
        let before = here.stat("a").ok()?;
        tick();
        drop(here.open("a", OFlags::WRONLY | OFlags::TRUNC, 0).ok()?);
        let after = here.stat("a").ok()?;
        same("size", after.st_size, 0)?;
        same("inode", after.st_ino, before.st_ino)?;
        later("st_mtime", modified(&before), modified(&after))?;
        later("st_ctime", changed(&before), changed(&after))
    }),
    must!(
        "open-existing-changes-nothing",
        "open()",
        "O_CREAT of a file that exists keeps data, mode and times.",
        |here| {
            here.file("a", b"data")?;
            here.chmod("a", 0o640).ok()?;
            let before = here.stat("a").ok()?;
            tick();
            drop(here.open("a", OFlags::CREATE | OFlags::RDWR, 0o777).ok()?);
            let after = here.stat("a").ok()?;
            same("mode", after.st_mode, before.st_mode)?;
            same("size", after.st_size, 4)?;
            same("st_mtime", modified(&after), modified(&before))
        }
    ),
    must!("open-marks-directory", "open()", "A new file marks the times of its directory.", |here| {
        let before = here.stat(".").ok()?;
        tick();
        here.file("a", b"")?;
        let after = here.stat(".").ok()?;
        later("st_mtime of the directory", modified(&before), modified(&after))?;
        later("st_ctime of the directory", changed(&before), changed(&after))
    }),
    must!(
        "open-read-only-mode",
        "open()",
        "Who creates a file of mode 0444 (or 0) for writing may write.",
        |here| {
            for (name, mode) in [("a", 0o444), ("b", 0)] {
                let file = here.open(name, NEW, mode).ok()?;
                write_all(&file, b"data", 0)?;
                same("content", read(&file, 0, 10)?, b"data".to_vec())?;
                same("mode", status(&file)?.st_mode & 0o777 & !mode, 0)?;
            }
            Ok(())
        }
    ),
    must!(
        "open-append",
        "write()",
        "With O_APPEND every write goes to the end, also of two descriptors in turn.",
        |here| {
            let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::APPEND;
            let files = [here.open("a", flags, 0o644).ok()?, here.open("a", flags, 0o644).ok()?];
            for turn in 0..10 {
                let data = [b'0' + turn];
                let answer = rustix::io::write(&files[usize::from(turn % 2)], &data);
                same("bytes written", Asked::new("write of 1 byte".into(), answer).ok()?, 1)?;
            }
            same("content", here.content("a")?, b"0123456789".to_vec())
        }
    ),
    must!(
        "open-descriptor-access",
        "read()",
        "A descriptor serves only what it was opened for: EBADF.",
        |here| {
            here.file("a", b"data")?;
            let reads = here.open("a", OFlags::RDONLY, 0).ok()?;
            write(&reads, b"x", 0).fails(&[Errno::BADF])?;
            let writes = here.open("a", OFlags::WRONLY, 0).ok()?;
            Asked::new(
                "pread of a write-only descriptor".into(),
                rustix::io::pread(&writes, &mut [0u8; 4][..], 0),
            )
            .fails(&[Errno::BADF])
        }
    ),
    must!("open-read-directory", "read()", "A directory is not read as a file: EISDIR.", |here| {
        let directory = here.open(".", OFlags::RDONLY, 0).ok()?;
        Asked::new("pread of a directory".into(), rustix::io::pread(&directory, &mut [0u8; 4][..], 0))
            .fails(&[Errno::ISDIR])
    }),
    must!(
        "open-fifo-without-reader",
        "open()",
        "A FIFO for writing, O_NONBLOCK, without a reader: ENXIO.",
        |here| {
            super::special::fifo(here, "fifo")?;
            here.open("fifo", OFlags::WRONLY | OFlags::NONBLOCK, 0).fails(&[Errno::NXIO])
        }
    ),
    must!("open-positions-are-apart", "open()", "Each open has its own position.", |here| {
        here.file("a", b"0123456789")?;
        let files = [here.edit("a")?, here.edit("a")?];
        let mut first = [0u8; 4];
        let read = |file, buffer: &mut [u8]| {
            Asked::new("read of 4 bytes".into(), rustix::io::read(file, buffer)).ok()
        };
        read(&files[0], &mut first)?;
        read(&files[1], &mut first)?;
        same("bytes that the second descriptor reads", &first, b"0123")
    }),
    linux!(
        "open-trunc-read-only-file",
        "open(2)",
        "A file without permission to write is not truncated.",
        |here| {
            if rustix::process::geteuid().is_root() {
                return Err(Stop::not_applicable("root may write"));
            }
            here.file("a", b"data")?;
            here.chmod("a", 0o444).ok()?;
            here.open("a", OFlags::WRONLY | OFlags::TRUNC, 0).fails(&[Errno::ACCESS])?;
            same("content", here.content("a")?, b"data".to_vec())
        }
    ),
];
