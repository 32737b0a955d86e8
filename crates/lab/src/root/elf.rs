//! Which shared libraries programs need.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use goblin::container::{Container, Ctx};
use goblin::elf::Elf;
use goblin::elf::dynamic::{DT_RPATH, DT_RUNPATH, Dynamic};
use goblin::elf::program_header::{PT_INTERP, ProgramHeader};
use goblin::strtab::Strtab;

use super::RootError;
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
        let needs =
            needs(&file).map_err(RootError::file(&file))?.map_err(|error| failed(error.to_string()))?;
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
fn needs(file: &Path) -> io::Result<goblin::error::Result<Needs>> {
    let mut file = File::open(file)?;
    let mut bytes = Vec::new();
    file.by_ref().take(HEAD).read_to_end(&mut bytes)?;
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(Ok(Needs::default()));
    }
    let headers = match headers(&bytes) {
        Ok(headers) => headers,
        Err(error) => return Ok(Err(error)),
    };
    // What describes it to debuggers is behind what is loaded, and often much larger.
    let loaded =
        headers.iter().map(|header| header.p_offset.saturating_add(header.p_filesz)).max().unwrap_or(0);
    file.take(loaded.saturating_sub(HEAD)).read_to_end(&mut bytes)?;
    Ok(asked(&bytes, &headers))
}

fn headers(bytes: &[u8]) -> goblin::error::Result<Vec<ProgramHeader>> {
    let header = Elf::parse_header(bytes)?;
    let context = Ctx::new(header.container()?, header.endianness()?);
    ProgramHeader::parse(bytes, header.e_phoff as usize, header.e_phnum as usize, context)
}

fn asked(bytes: &[u8], headers: &[ProgramHeader]) -> goblin::error::Result<Needs> {
    let header = Elf::parse_header(bytes)?;
    let context = Ctx::new(header.container().unwrap_or(Container::Big), header.endianness()?);
    let text = |header: &ProgramHeader| {
        let range = header.p_offset as usize..header.p_offset.saturating_add(header.p_filesz) as usize;
        let text = bytes.get(range)?.strip_suffix(b"\0")?;
        std::str::from_utf8(text).ok().map(str::to_owned)
    };
    let interpreter = headers.iter().find(|header| header.p_type == PT_INTERP).and_then(text);
    let Some(dynamic) = Dynamic::parse(bytes, headers, context)? else {
        return Ok(Needs { interpreter, ..Needs::default() });
    };
    let names = Strtab::parse(bytes, dynamic.info.strtab, dynamic.info.strsz, 0)?;
    let paths = dynamic.dyns.iter().filter(|entry| [DT_RPATH, DT_RUNPATH].contains(&entry.d_tag));
    let directories =
        paths.filter_map(|entry| names.get_at(entry.d_val as usize)).flat_map(|paths| paths.split(':'));
    Ok(Needs {
        interpreter,
        libraries: dynamic.get_libraries(&names).into_iter().map(str::to_owned).collect(),
        directories: directories.map(str::to_owned).collect(),
    })
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
