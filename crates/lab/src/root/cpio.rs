//! Archives that the kernel unpacks as its first root file system: cpio in its "newc" form, as the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst has it.

use std::io::{self, Write};

/// Types of files, the high bits of their modes.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;

/// Writes an archive. The same entries give the same bytes: owners are root, and times 0.
pub(crate) struct Archive<W> {
    to: W,
    entries: u32,
    written: u64,
}

/// What is in one entry, besides its content.
struct Header {
    mode: u32,
    links: u32,
    device: (u32, u32),
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(to: W) -> Self {
        Self { to, entries: 0, written: 0 }
    }

    /// Its path has no `/` in front; the directories above were entered before.
    pub(crate) fn directory(&mut self, path: &str, permissions: u32) -> io::Result<()> {
        self.entry(path, &Header { mode: DIRECTORY | permissions, links: 2, device: (0, 0) }, &[])
    }

    pub(crate) fn file(&mut self, path: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        self.entry(path, &Header { mode: REGULAR | permissions, links: 1, device: (0, 0) }, content)
    }

    pub(crate) fn link(&mut self, path: &str, target: &str) -> io::Result<()> {
        self.entry(path, &Header { mode: LINK | 0o777, links: 1, device: (0, 0) }, target.as_bytes())
    }

    pub(crate) fn character_device(
        &mut self,
        path: &str,
        permissions: u32,
        device: (u32, u32),
    ) -> io::Result<()> {
        self.entry(path, &Header { mode: CHARACTER | permissions, links: 1, device }, &[])
    }

    /// Writes the end, and gives back what it wrote to.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry("TRAILER!!!", &Header { mode: 0, links: 1, device: (0, 0) }, &[])?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn entry(&mut self, path: &str, header: &Header, content: &[u8]) -> io::Result<()> {
        self.entries += 1;
        let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, format!("{path} is larger than 4 GiB"));
        let size = u32::try_from(content.len()).map_err(|_| too_long())?;
        let name = u32::try_from(path.len() + 1).map_err(|_| too_long())?;
        let (major, minor) = header.device;
        let fields = [self.entries, header.mode, 0, 0, header.links, 0, size, 0, 0, major, minor, name, 0];
        let mut text = String::from("070701");
        for field in fields {
            text += &format!("{field:08x}");
        }
        text += path;
        text.push('\0');
        self.write(text.as_bytes())?;
        self.write(content)
    }

    /// Everything begins at a multiple of four bytes.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)?;
        self.written += bytes.len() as u64;
        let padding = (self.written.next_multiple_of(4) - self.written) as usize;
        self.to.write_all(&[0; 4][..padding])?;
        self.written += padding as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_the_form_that_the_kernel_reads() {
        let mut archive = Archive::new(Vec::new());
        archive.file("ab", 0o644, b"xyz").unwrap();
        let bytes = archive.finish().unwrap();
        let head = "07070100000001000081a40000000000000000000000010000000000000003000000000000000000000000000000000000000300000000";
        assert_eq!(&bytes[..110], head.as_bytes());
        // 110 and 3 bytes of the name, padded to 116; 3 bytes of content, padded to 4.
        assert_eq!(&bytes[110..120], b"ab\0\0\0\0xyz\0");
        assert_eq!(&bytes[120..126], b"070701");
        assert!(bytes.ends_with(b"TRAILER!!!\0\0\0\0"), "{:?}", &bytes[bytes.len() - 20..]);
        assert_eq!(bytes.len() % 4, 0);
    }
}
