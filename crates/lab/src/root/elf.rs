//! Which shared libraries programs need.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::RootError;
use crate::file_error::at;
use crate::packages::Trees;

/// Most bytes before the end of the program headers.
const HEAD: u64 = 16 << 10;

/// What a program asks the dynamic linker for.
#[derive(Debug, Default, PartialEq)]
struct Needs {
    interpreter: Option<String>,
    libraries: Vec<String>,
    /// Directories to look in first.
    directories: Vec<String>,
}

/// Adds the shared libraries of a program, and those that they need, to `found`: where guests have them, and the host's
/// files. Scripts and static programs need none.
pub(crate) fn libraries(
    program: &Path,
    trees: &Trees,
    found: &mut BTreeMap<String, PathBuf>,
) -> Result<(), RootError> {
    let mut open = vec![program.to_owned()];
    while let Some(file) = open.pop() {
        let failed = |reason| RootError::Program { file: file.clone(), reason };
        let needs = needs(&file).map_err(at(&file))?.map_err(|error| failed(error.into()))?;
        let mut add = |path: String, source: PathBuf| {
            if let Entry::Vacant(new) = found.entry(path) {
                open.push(source.clone());
                new.insert(source);
            }
        };
        if let Some(interpreter) = needs.interpreter {
            add(interpreter.clone(), interpreter.into());
        }
        let origin = file.parent().unwrap_or(Path::new("/")).display().to_string();
        for name in &needs.libraries {
            let own =
                needs.directories.iter().map(|path| Path::new(&path.replace("$ORIGIN", &origin)).join(name));
            match own.into_iter().find(|path| path.is_file()) {
                // Where the program looks for it.
                Some(own) if !trees.unpacked(&own) => add(own.display().to_string(), own),
                own => {
                    let missing = || failed(format!("it needs the library {name}, which is not installed"));
                    let source = own.or_else(|| trees.library(name, &file)).ok_or_else(missing)?;
                    add(format!("/lib/{name}"), source);
                }
            }
        }
    }
    Ok(())
}

/// What a file needs; nothing if it is no program.
fn needs(file: &Path) -> io::Result<Result<Needs, &'static str>> {
    let mut file = File::open(file)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut bytes)?;
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(Ok(Needs::default()));
    }
    let Some(segments) = Image::of(&bytes).and_then(|image| image.segments()) else {
        return Ok(Err("its program headers are damaged"));
    };
    // What describes it to debuggers is behind what is loaded, and often much larger.
    let loaded = segments.iter().map(|it| it.offset.saturating_add(it.length)).max().unwrap_or(0);
    file.take(loaded.saturating_sub(HEAD)).read_to_end(&mut bytes)?;
    Ok(Image::of(&bytes).and_then(|image| image.needs(&segments)).ok_or("its dynamic section is damaged"))
}

/// An executable or library in the Executable and Linking Format (System V ABI, chapters 4 and 5).
struct Image<'a> {
    bytes: &'a [u8],
    is_64_bit: bool,
    is_big_endian: bool,
}

/// What is loaded, or describes that: a program header.
struct Segment {
    kind: u64,
    offset: u64,
    address: u64,
    length: u64,
}

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_INTERP: u64 = 3;

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

impl<'a> Image<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let is_64_bit = match bytes.get(4)? {
            1 => false,
            2 => true,
            _ => return None,
        };
        Some(Self { bytes, is_64_bit, is_big_endian: *bytes.get(5)? == 2 })
    }

    fn number(&self, at: u64, size: u64) -> Option<u64> {
        let bytes =
            self.bytes.get(usize::try_from(at).ok()?..usize::try_from(at.checked_add(size)?).ok()?)?;
        let add = |number, byte: &u8| number << 8 | u64::from(*byte);
        Some(if self.is_big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
    }

    /// Bytes of an address.
    fn word(&self) -> u64 {
        if self.is_64_bit { 8 } else { 4 }
    }

    fn address(&self, at: u64) -> Option<u64> {
        self.number(at, self.word())
    }

    fn segments(&self) -> Option<Vec<Segment>> {
        let [table, size, count] = if self.is_64_bit { [32, 54, 56] } else { [28, 42, 44] };
        let (table, size) = (self.address(table)?, self.number(size, 2)?);
        let [offset, address, length] = if self.is_64_bit { [8, 16, 32] } else { [4, 8, 16] };
        let segment = |index| {
            let at = table.checked_add(index * size).filter(|at| *at < HEAD)?;
            Some(Segment {
                kind: self.number(at, 4)?,
                offset: self.address(at + offset)?,
                address: self.address(at + address)?,
                length: self.address(at + length)?,
            })
        };
        (0..self.number(count, 2)?).map(segment).collect()
    }

    /// The text at a place, up to its zero.
    fn text(&self, at: u64) -> Option<String> {
        let text = self.bytes.get(usize::try_from(at).ok()?..)?.split(|byte| *byte == 0).next()?;
        std::str::from_utf8(text).ok().map(str::to_owned)
    }

    fn needs(&self, segments: &[Segment]) -> Option<Needs> {
        let of_kind = |kind| segments.iter().find(|segment| segment.kind == kind);
        let interpreter = match of_kind(PT_INTERP) {
            Some(segment) => Some(self.text(segment.offset)?),
            None => None,
        };
        let Some(dynamic) = of_kind(PT_DYNAMIC) else {
            return Some(Needs { interpreter, ..Needs::default() });
        };
        let mut entries = Vec::new();
        for index in 0..dynamic.length / (2 * self.word()) {
            let at = dynamic.offset.checked_add(index * 2 * self.word())?;
            match self.address(at)? {
                DT_NULL => break,
                tag => entries.push((tag, self.address(at + self.word())?)),
            }
        }
        let names = entries.iter().find(|(tag, _)| *tag == DT_STRTAB).map(|(_, address)| *address);
        let loaded = |address: u64| {
            let holds = |it: &&Segment| {
                it.kind == PT_LOAD && (it.address..).contains(&address) && address - it.address < it.length
            };
            segments.iter().find(holds).map(|it| it.offset.saturating_add(address - it.address))
        };
        let texts = |tags: &[u64]| {
            let entries = entries.iter().filter(|(tag, _)| tags.contains(tag));
            entries
                .map(|(_, name)| self.text(loaded(names?)?.checked_add(*name)?))
                .collect::<Option<Vec<_>>>()
        };
        let directories = texts(&[DT_RPATH, DT_RUNPATH])?;
        Some(Needs {
            interpreter,
            libraries: texts(&[DT_NEEDED])?,
            directories: directories.iter().flat_map(|paths| paths.split(':')).map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_libraries_of_a_program_are_found() {
        let trees = Trees::now().unwrap();
        let mut found = BTreeMap::new();
        libraries(Path::new("/proc/self/exe"), &trees, &mut found).unwrap();
        // The libraries that a program of Rust has, unless it is static.
        let own = needs(Path::new("/proc/self/exe")).unwrap().unwrap();
        for name in &own.libraries {
            assert!(found.contains_key(&format!("/lib/{name}")), "{name}: {found:?}");
        }
        assert_eq!(own.interpreter.is_some(), !own.libraries.is_empty());
    }

    /// A program of two segments: what is loaded (all of it) and the dynamic section, in any width and order of bytes.
    fn program(is_64_bit: bool, is_big_endian: bool) -> Vec<u8> {
        let mut bytes = vec![0; 0x300];
        let word = if is_64_bit { 8 } else { 4 };
        let mut put = |at: usize, size: usize, number: u64| {
            let (big, little) = (number.to_be_bytes(), number.to_le_bytes());
            let number = if is_big_endian { &big[8 - size..] } else { &little[..size] };
            bytes[at..at + size].copy_from_slice(number);
        };
        let (base, table, size) = (0x40_0000, 0x40, 0x38);
        let [offset, address, length] = if is_64_bit { [8, 16, 32] } else { [4, 8, 16] };
        put(if is_64_bit { 32 } else { 28 }, word, table as u64);
        put(if is_64_bit { 54 } else { 42 }, 2, size as u64);
        put(if is_64_bit { 56 } else { 44 }, 2, 3);
        for (index, (kind, at, len)) in
            [(1, 0, 0x300), (3, 0x280, 8), (2, 0x200, 0x80)].into_iter().enumerate()
        {
            let header = table + index * size;
            put(header, 4, kind);
            put(header + offset, word, at);
            put(header + address, word, base + at);
            put(header + length, word, len);
        }
        let entries = [(1, 9), (5, base + 0x280), (1, 17), (29, 25), (0, 0), (1, 9999)];
        for (index, (tag, value)) in entries.into_iter().enumerate() {
            put(0x200 + index * 2 * word, word, tag);
            put(0x200 + (index * 2 + 1) * word, word, value);
        }
        bytes[..6].copy_from_slice(&[
            0x7f,
            b'E',
            b'L',
            b'F',
            1 + u8::from(is_64_bit),
            1 + u8::from(is_big_endian),
        ]);
        let text = b"/ld.so\0\0\0liba.so\0libb.so\0/a:$ORIGIN/b\0";
        bytes[0x280..0x280 + text.len()].copy_from_slice(text);
        bytes
    }

    #[test]
    fn programs_of_every_width_and_order_of_bytes_are_read() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        let read = |bytes: &[u8]| {
            std::fs::write(&file, bytes).unwrap();
            needs(&file).unwrap()
        };
        for (is_64_bit, is_big_endian) in [(true, false), (true, true), (false, false), (false, true)] {
            let whole = program(is_64_bit, is_big_endian);
            let expected = Needs {
                interpreter: Some("/ld.so".into()),
                libraries: vec!["liba.so".into(), "libb.so".into()],
                directories: vec!["/a".into(), "$ORIGIN/b".into()],
            };
            assert_eq!(read(&whole).unwrap(), expected, "{is_64_bit} {is_big_endian}");
            // Cut or damaged anywhere, it is refused or read, never a panic.
            for at in 4..0x2c0 {
                assert!(at >= 0x280 || read(&whole[..at]).is_err(), "{at}");
                let mut damaged = whole.clone();
                damaged[at] = 0xff;
                let _ = read(&damaged);
            }
        }
    }

    #[test]
    fn scripts_need_nothing_and_broken_programs_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert_eq!(needs(&file).unwrap().unwrap(), Needs::default());
        std::fs::write(&file, b"\x7fELF\x02\x01").unwrap();
        assert!(needs(&file).unwrap().is_err());
    }
}
