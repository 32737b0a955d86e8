//! FIFOs and sockets in a directory.

use rustix::fs::{FileType, Mode, OFlags, mkfifoat};
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, Here, Tried, same};
use crate::{Check, Group};

const GROUP: Group = Group::Names;

/// A new FIFO.
pub(super) fn fifo(here: &Here, name: &str) -> Tried {
    let answer = mkfifoat(&here.dir, name, Mode::from_raw_mode(0o644));
    Asked::new(format!("mkfifo(\"{name}\")"), answer).offered()
}

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!(
        "fifo-carries-bytes",
        "mkfifo()",
        "What is written to a FIFO is read from it on this host.",
        |here| {
            fifo(here, "fifo")?;
            let kind = FileType::from_raw_mode(here.stat("fifo").ok()?.st_mode);
            same("type", kind, FileType::Fifo)?;
            // Without waiting for the other end, the reader first.
            let reader = here.open("fifo", OFlags::RDONLY | OFlags::NONBLOCK, 0).ok()?;
            let writer = here.open("fifo", OFlags::WRONLY | OFlags::NONBLOCK, 0).ok()?;
            let written =
                Asked::new("write to the FIFO".into(), rustix::io::write(&writer, b"through")).ok()?;
            let mut buffer = [0; 16];
            let count =
                Asked::new("read from the FIFO".into(), rustix::io::read(&reader, &mut buffer)).ok()?;
            same("bytes written and read", (written, &buffer[..count]), (7, &b"through"[..]))
        }
    ),
    must!("fifo-existing", "mkfifo()", "A name that exists: EEXIST.", |here| {
        here.file("a", b"")?;
        fifo(here, "b")?;
        let again = mkfifoat(&here.dir, "a", Mode::from_raw_mode(0o644));
        Asked::new("mkfifo(\"a\")".into(), again).fails(&[Errno::EXIST])
    }),
];
