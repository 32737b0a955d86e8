//! Building user-mode kernels from source.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::{Architecture, Kernel, KernelError, KernelOrigin};
use crate::cache::{self, hex};
use crate::file_error::at;
use crate::last_lines::last_lines;
use crate::packages::{self, Consent, PackageError, Trees};

/// How the names of directories begin in which kernels are built.
const WORK: &str = ".build-";

/// After this time no build uses such a directory any more.
const ABANDONED: Duration = Duration::from_hours(24);

const CONFIGURATION: &str = include_str!("user-mode.config");

/// Options without which there is no lab.
const NECESSARY: [&str; 7] =
    ["HOSTFS", "BLK_DEV_UBD", "BLK_DEV_INITRD", "UML_NET_VECTOR", "NFS_V4_1", "NFSD_V4", "EXT4_FS"];

/// What building takes, and the packages that it is in.
const TOOLS: [(&str, &str); 7] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("xz", "xz-utils"),
    ("strip", "binutils"),
];

/// Files that a build of this configuration compiles, about.
const FILES: usize = 1_500;

/// Where a source is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Debian's package of a version such as `6.12`: `linux-source-6.12`.
    Package(String),
    /// A directory with the source, which stays as it is.
    Tree(PathBuf),
}

/// What is beside a kernel that was built.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    source: String,
    release: String,
    /// Options of the configuration that this version does not know.
    without: Vec<String>,
}

/// Builds a user-mode kernel, or finds the one that was built of the same source and configuration.
///
/// # Errors
/// [`KernelError`]
pub fn build(
    source: &Source,
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Kernel, KernelError> {
    build_in(&directory(), source, consent, tell)
}

fn build_in(
    all: &Path,
    source: &Source,
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Kernel, KernelError> {
    fs::create_dir_all(all).map_err(at(all))?;
    remove_abandoned(all);
    let (description, archive) = match source {
        Source::Package(version) => {
            let (description, archive) = package(version, consent, tell)?;
            (description, Some(archive))
        }
        Source::Tree(tree) => (describe(tree)?, None),
    };
    let place = all.join(cache::key(format!("{description}\n{CONFIGURATION}")));
    if let Some(kernel) = read(&place)? {
        tell(&format!("built before: {}", kernel.file.display()));
        return Ok(kernel);
    }
    tools()?;
    let work = tempfile::Builder::new().prefix(WORK).tempdir_in(all).map_err(at(all))?;
    let tree = match (source, archive) {
        (Source::Tree(tree), _) => tree.canonicalize().map_err(at(tree))?,
        (_, Some(archive)) => {
            tell("unpacking the source");
            let into = work.path().join("source");
            fs::create_dir(&into).map_err(at(&into))?;
            let mut command = Command::new("tar");
            command.arg("-xf").arg(&archive).arg("--strip-components=1").arg("-C").arg(&into);
            run(&mut command, &mut |_| {})?;
            into
        }
        (Source::Package(version), None) => return Err(KernelError::NotBuilt(version.clone())),
    };
    let out = work.path().join("out");
    fs::create_dir(&out).map_err(at(&out))?;
    let without = configure(&tree, &out)?;
    compile(&tree, &out, tell)?;
    let made = work.path().join("made");
    fs::create_dir(&made).map_err(at(&made))?;
    let file = made.join("linux");
    run(Command::new("strip").arg("-o").arg(&file).arg(out.join("linux")), &mut |_| {})?;
    let configuration = made.join("config");
    fs::copy(out.join(".config"), &configuration).map_err(at(&configuration))?;
    let record = Record { source: description, release: super::user_mode_release(&file)?, without };
    let text = serde_json::to_string_pretty(&record).unwrap_or_default();
    let file = made.join("kernel.json");
    fs::write(&file, text).map_err(at(&file))?;
    fs::rename(&made, &place).map_err(at(&place))?;
    let kernel = read(&place)?.ok_or_else(|| KernelError::NoKernel(place.join("linux")))?;
    tell(&format!("built {}: {}", kernel.release, kernel.file.display()));
    if !record.without.is_empty() {
        tell(&format!("this version does not know {}", record.without.join(", ")));
    }
    Ok(kernel)
}

/// All kernels that were built, the newest build last.
///
/// # Errors
/// [`KernelError::File`]
pub fn built() -> Result<Vec<Kernel>, KernelError> {
    let all = directory();
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(&all) else { return Ok(Vec::new()) };
    for entry in entries {
        let place = entry.map_err(at(&all))?.path();
        if let Some(kernel) = read(&place)? {
            let time = fs::metadata(&place).and_then(|stat| stat.modified()).map_err(at(&place))?;
            found.push((time, kernel));
        }
    }
    found.sort_by_key(|(time, _)| *time);
    Ok(found.into_iter().map(|(_, kernel)| kernel).collect())
}

/// Removes what builds left that were killed.
fn remove_abandoned(all: &Path) {
    let entries = fs::read_dir(all).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let work = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(WORK));
        let age = fs::metadata(&path)
            .and_then(|stat| stat.modified())
            .map(|time| time.elapsed().unwrap_or_default());
        if work && age.is_ok_and(|age| age > ABANDONED) {
            // It takes room and nothing else, and another process may remove it as well.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn directory() -> PathBuf {
    cache::directory().join("kernels")
}

/// A kernel that was built; `None`: none is there.
fn read(place: &Path) -> Result<Option<Kernel>, KernelError> {
    let hidden = place.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let file = place.join("linux");
    let Some(record) = fs::read(place.join("kernel.json")).ok().filter(|_| !hidden) else { return Ok(None) };
    let Ok(record) = serde_json::from_slice::<Record>(&record) else { return Ok(None) };
    let origin = KernelOrigin::Built { source: record.source };
    Kernel::of(file, Architecture::UserMode, record.release, origin, None).map(Some)
}

/// The archive of a version's source, with what to call it.
fn package(
    version: &str,
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<(String, PathBuf), KernelError> {
    let name = format!("linux-source-{version}");
    let path = format!("usr/src/{name}.tar.xz");
    let mut trees = Trees::now()?;
    if trees.files(&path).next().is_none() {
        trees = packages::download(std::slice::from_ref(&name), "the source of the kernel", consent, tell)?;
    }
    let archive = trees.files(&path).next();
    let archive = archive.ok_or_else(|| KernelError::NotInPackage { path, package: name.clone() })?;
    let (package, number) = trees.origin(&archive, &name);
    Ok((format!("{package} {number}"), archive))
}

/// A text that differs when a file of a tree does.
fn describe(tree: &Path) -> Result<String, KernelError> {
    let makefile = tree.join("Makefile");
    if !tree.join("arch/um").is_dir() || !makefile.exists() {
        return Err(KernelError::NoSource(tree.into()));
    }
    let mut hash = Context::new(&SHA256);
    let mut open = vec![tree.canonicalize().map_err(at(tree))?];
    let description = open[0].display().to_string();
    while let Some(directory) = open.pop() {
        let entries = fs::read_dir(&directory).map_err(at(&directory))?;
        let entries: std::io::Result<BTreeSet<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        for path in entries.map_err(at(&directory))? {
            let stat = fs::symlink_metadata(&path).map_err(at(&path))?;
            if !stat.is_dir() {
                let text = format!("{} {} {}\n", path.display(), stat.len(), stat.mtime());
                hash.update(text.as_bytes());
            } else if path.file_name().is_none_or(|name| name != ".git") {
                open.push(path);
            }
        }
    }
    Ok(format!("{description} {}", &hex(hash.finish().as_ref())[..12]))
}

/// Whether everything is here that building takes.
fn tools() -> Result<(), KernelError> {
    let trees = Trees::now()?;
    let missing = |program: &str| trees.program(program).is_none_or(|file| trees.unpacked(&file));
    let mut packages: Vec<&str> =
        TOOLS.iter().filter(|(program, _)| missing(program)).map(|(_, package)| *package).collect();
    if !Path::new("/usr/include/stdlib.h").exists() {
        packages.push("libc6-dev");
    }
    if packages.is_empty() { Ok(()) } else { Err(KernelError::NoTools(packages.join(" "))) }
}

fn make(tree: &Path, out: &Path) -> Command {
    let mut command = Command::new("make");
    command.arg("-C").arg(tree).arg("ARCH=um").arg(format!("O={}", out.display()));
    command
}

/// Makes the configuration; gives the options that the version does not know.
fn configure(tree: &Path, out: &Path) -> Result<Vec<String>, KernelError> {
    let wanted = out.join("wanted");
    fs::write(&wanted, CONFIGURATION).map_err(at(&wanted))?;
    let mut command = make(tree, out);
    command.arg("allnoconfig").env("KCONFIG_ALLCONFIG", &wanted);
    run(&mut command, &mut |_| {})?;
    let file = out.join(".config");
    let text = fs::read_to_string(&file).map_err(at(&file))?;
    let without = unknown(CONFIGURATION, &text);
    match without.iter().find(|name| NECESSARY.contains(&name.as_str())) {
        Some(name) => Err(KernelError::Lacks(name.clone())),
        None => Ok(without),
    }
}

/// Options that are wanted and not set.
fn unknown(wanted: &str, made: &str) -> Vec<String> {
    let set: BTreeSet<&str> = made.lines().collect();
    let lines = wanted.lines().filter(|line| line.ends_with("=y") && !set.contains(line));
    lines.filter_map(|line| Some(line.strip_prefix("CONFIG_")?.strip_suffix("=y")?.to_owned())).collect()
}

fn compile(tree: &Path, out: &Path, tell: &mut dyn FnMut(&str)) -> Result<(), KernelError> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = make(tree, out);
    command.arg(format!("-j{processors}")).arg("linux");
    let mut compiled = 0;
    tell(&format!("compiling on {processors} processors: 15 minutes of one, or fewer"));
    run(&mut command, &mut |line| {
        if line.trim_start().starts_with("CC ") {
            compiled += 1;
            if compiled % 100 == 0 {
                tell(&format!("compiled {compiled} of about {FILES} files"));
            }
        }
    })
}

/// Runs a step of the build and gives each line that it prints.
fn run(command: &mut Command, line: &mut dyn FnMut(&str)) -> Result<(), KernelError> {
    let text = format!("{command:?}");
    let errors = tempfile::NamedTempFile::new().map_err(at(std::env::temp_dir()))?;
    let clone = errors.reopen().map_err(at(errors.path()))?;
    let failed =
        |output: String| KernelError::Package(PackageError::Failed { command: text.clone(), output });
    command.env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(clone);
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(output) = child.stdout.take() {
        for text in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            line(&String::from_utf8_lossy(&text));
        }
    }
    let status = child.wait().map_err(|error| failed(error.to_string()))?;
    if status.success() { Ok(()) } else { Err(failed(last_lines(errors.path(), 15).join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_a_version_does_not_know_are_found() {
        let made = "CONFIG_NFSD=y\n# CONFIG_PSI is not set\n";
        let wanted = "# Text\nCONFIG_NFSD=y\nCONFIG_PSI=y\nCONFIG_NEW=y\nCONFIG_IPV6=n\n";
        assert_eq!(unknown(wanted, made), ["PSI", "NEW"]);
    }

    #[test]
    fn necessary_options_are_configured() {
        for name in NECESSARY {
            assert!(CONFIGURATION.lines().any(|line| line == format!("CONFIG_{name}=y")), "{name}");
        }
    }

    #[test]
    fn what_is_no_source_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let error = describe(place.path()).unwrap_err().to_string();
        assert!(error.contains("not a source of Linux"), "{error}");
    }

    /// A source that is built as Linux is, of one program that answers as user-mode kernels do.
    const MAKEFILE: &str = r#"
allnoconfig:
	cp $(KCONFIG_ALLCONFIG) $(O)/.config
linux:
	@echo '  CC      main.o'
	gcc -DCONFIG='"CONFIG_UML_TIME_TRAVEL_SUPPORT=y"' -o $(O)/linux main.c
"#;
    const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    puts(argc > 1 && !strcmp(argv[1], "--version") ? "6.99.1" : CONFIG);
    return 0;
}
"#;

    #[test]
    #[ignore = "full tier: builds a kernel"]
    fn a_kernel_is_built_once_for_each_source() {
        if let Err(error) = tools() {
            assert_ne!(std::env::var("BENCHMASTER_REQUIRE_LAB").as_deref(), Ok("1"), "{error}");
            println!("skipped: {error}");
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let [all, tree] = ["kernels", "tree"].map(|name| place.path().join(name));
        fs::create_dir_all(tree.join("arch/um")).unwrap();
        fs::write(tree.join("Makefile"), MAKEFILE).unwrap();
        fs::write(tree.join("main.c"), PROGRAM).unwrap();
        let build = || {
            let mut messages = Vec::new();
            let source = Source::Tree(tree.clone());
            let kernel = build_in(&all, &source, &mut |_| false, &mut |text| messages.push(text.to_owned()));
            (kernel.unwrap(), messages.join("\n"))
        };
        let (first, messages) = build();
        assert_eq!((first.release.as_str(), first.virtual_time), ("6.99.1", true));
        assert!(messages.contains("compiling") && messages.contains("built 6.99.1"), "{messages}");
        let (second, messages) = build();
        assert_eq!(second, first);
        assert!(messages.starts_with("built before"), "{messages}");
        fs::write(tree.join("main.c"), format!("{PROGRAM}// changed\n")).unwrap();
        let (third, _) = build();
        assert_ne!(third.file, first.file);
        assert!(
            fs::read_dir(&all)
                .unwrap()
                .flatten()
                .all(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        );
        fs::write(tree.join("main.c"), "no program").unwrap();
        let source = Source::Tree(tree.clone());
        let error = build_in(&all, &source, &mut |_| false, &mut |_| {}).unwrap_err().to_string();
        assert!(error.contains("main.c"), "{error}");
    }

    #[test]
    fn a_step_that_fails_says_what_it_printed() {
        let error = run(Command::new("sh").args(["-c", "echo out; echo broken >&2; exit 3"]), &mut |_| {})
            .unwrap_err();
        assert!(error.to_string().contains("broken"), "{error}");
    }
}
