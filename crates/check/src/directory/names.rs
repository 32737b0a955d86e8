//! Names: their length, their bytes, and which are the same.

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Directory;
use super::here::{Here, Tried, holds, same};
use crate::{Check, Group};

const GROUP: Group = Group::Names;

pub(super) const CHECKS: &[Check<Directory>] = &[
    must!("name-of-255-bytes", "open()", "A name of 255 bytes works, one of 256: ENAMETOOLONG.", |here| {
        let longest = [b'n'; 255];
        here.file(longest, b"long")?;
        same("content", here.content(longest)?, b"long".to_vec())?;
        same("names", here.names(".")?, vec![longest.to_vec()])?;
        here.open([b'n'; 256], OFlags::CREATE | OFlags::WRONLY, 0o644).fails(&[Errno::NAMETOOLONG])
    }),
    must!(
        "name-of-every-printable-byte",
        "open()",
        "All printable bytes but the slash are part of names.",
        |here| {
            (b' '..=b'~').filter(|byte| *byte != b'/').try_for_each(|byte| kept(here, &[b'x', byte, b'y']))
        }
    ),
    must!("name-case", "open()", "Upper and lower case are different names.", |here| {
        here.file("name", b"lower")?;
        here.file("NAME", b"upper")?;
        same("content of the first", here.content("name")?, b"lower".to_vec())?;
        same("names", here.names(".")?.len(), 2)
    }),
    must!("name-with-dots", "open()", "Names of dots other than dot and dot-dot are usual names.", |here| {
        [&b"..."[..], b".x", b"..x", b"x.", b"x..", b". ", b" "]
            .into_iter()
            .try_for_each(|name| kept(here, name))
    }),
    should!(
        "name-utf-8",
        "open()",
        "Names in UTF-8 of one to four bytes a letter are kept byte by byte.",
        |here| {
            ["é", "ß", "日本", "🦀", "\u{202e}x"].into_iter().try_for_each(|name| kept(here, name.as_bytes()))
        }
    ),
    should!("name-normalisation", "open()", "Composed and decomposed letters are different names.", |here| {
        here.file("\u{e9}", b"composed")?;
        here.file("e\u{301}", b"decomposed")?;
        same("names", here.names(".")?.len(), 2)?;
        same("content of the composed name", here.content("\u{e9}")?, b"composed".to_vec())
    }),
    should!(
        "name-of-any-byte",
        "open()",
        "Control characters and bytes that are no UTF-8 are part of names.",
        |here| {
            (1u8..=255).filter(|byte| *byte != b'/').try_for_each(|byte| kept(here, &[b'x', byte, b'y']))
        }
    ),
    must!("name-with-many-slashes", "open()", "Several slashes are one.", |here| {
        here.mkdir("d").ok()?;
        here.file("d//a", b"x")?;
        same("content", here.content("d///a")?, b"x".to_vec())?;
        same("content through dots", here.content("./d/.././d/./a")?, b"x".to_vec())
    }),
    must!("path-too-long", "open()", "A path of more than PATH_MAX bytes: ENAMETOOLONG.", |here| {
        let path = "./".repeat(2100) + "a";
        here.open(&path, OFlags::RDONLY, 0).fails(&[Errno::NAMETOOLONG])
    }),
];

/// A file of this name can be made, listed and removed, and the name stays as it is.
fn kept(here: &Here, name: &[u8]) -> Tried {
    here.file(name, b"")?;
    let names = here.names(".")?;
    holds(names == [name.to_vec()], "the name that is listed", || {
        names.first().map_or_else(|| "none".to_owned(), |name| name.escape_ascii().to_string())
    })?;
    here.unlink(name).ok()
}
