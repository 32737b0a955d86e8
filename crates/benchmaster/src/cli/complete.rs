//! Names for completion in shells: of results, study files and workloads, where they stand as arguments.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use benchmaster_builtin::BUILT_IN;
use benchmaster_store::Store;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter};

/// The variable by which a shell's script asks for completions.
pub(crate) const COMPLETE: &str = "BENCHMASTER_COMPLETE";

/// Where study files are looked for: those of the user, of a copy of the sources, and of the packages.
const STUDIES: [&str; 3] = ["", "studies", "/usr/share/doc/benchmaster/studies"];

/// Results below `results`, by their name or path; other paths where none fits.
pub(crate) fn results() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let named = below(Path::new("results")).into_iter().filter(|path| Store::exists(path));
        fitting(named, typed, PathCompleter::dir())
    })
}

/// Study files, by their name or path; other paths where none fits.
pub(crate) fn studies() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let named = STUDIES.iter().flat_map(|directory| below(Path::new(directory)));
        let named = named.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
        fitting(named, typed, PathCompleter::any())
    })
}

/// The built-in workloads.
pub(crate) fn workloads() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let named = BUILT_IN.iter().filter(|info| info.name != "custom");
        named.map(|info| CompletionCandidate::new(info.name).help(Some(info.summary.into()))).collect()
    })
}

/// What a directory holds, by name; nothing where it cannot be read, as there is nothing to complete then.
fn below(directory: &Path) -> Vec<PathBuf> {
    let read = if directory == Path::new("") { Path::new(".") } else { directory };
    let entries = std::fs::read_dir(read).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| directory.join(entry.file_name())).collect();
    paths.sort();
    paths
}

fn fitting(
    paths: impl Iterator<Item = PathBuf>,
    typed: &OsStr,
    others: PathCompleter,
) -> Vec<CompletionCandidate> {
    let begins = |text: &OsStr| text.as_encoded_bytes().starts_with(typed.as_encoded_bytes());
    let fits = |path: &PathBuf| begins(path.as_os_str()) || path.file_name().is_some_and(begins);
    let named: Vec<_> = paths.filter(fits).map(CompletionCandidate::new).collect();
    if named.is_empty() { ArgValueCompleter::new(others).complete(typed) } else { named }
}
