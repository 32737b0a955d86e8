//! The root file system of guests: an initramfs of programs from Debian's packages and the kernel's modules.
//!
//! This very program is not in it, for its size: guests mount the directory that [`program`] makes, where `/benchmaster` is found.

mod content;
mod cpio;
mod elf;
mod linker;
mod modules;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ring::digest::{Context, SHA256};

use self::content::{FILES, Needed};
use self::cpio::Archive;
use crate::cache::{self, hex};
use crate::file_error::{FileError, at};
use crate::kernel::Kernel;
pub use crate::packages::Consent;
use crate::packages::{self, PackageError, Trees};

/// How long unused images are kept.
const KEPT: Duration = Duration::from_hours(7 * 24);
/// Files of this program, of different builds, that are kept: a lab is of use to the build alone that brought it up.
const KEPT_PROGRAMS: usize = 6;
/// Where programs find their libraries without looking for them.
const LINKER_CACHE: &str = "etc/ld.so.cache";

/// A program to put into the root, with the libraries that it needs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// The file on this host.
    pub file: PathBuf,
    /// Where guests have it, such as `/usr/bin/fio`.
    pub path: String,
}

/// Why there is no root.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Packages could not be had.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// Programs are not where their packages should have them.
    #[error("guests need {}, which {} not in the packages {}", programs.join(", "), if programs.len() == 1 { "is" } else { "are" }, packages.join(", "))]
    Missing {
        programs: Vec<String>,
        /// Where they should be.
        packages: Vec<String>,
    },
    /// A program cannot be put into the root.
    #[error("cannot add {} to the guests' root file system: {reason}", file.display())]
    Program { file: PathBuf, reason: String },
    /// The kernel's modules cannot be prepared.
    #[error("cannot prepare the modules of the kernel {kernel} for guests: {reason}")]
    Modules { kernel: String, reason: String },
    #[error(transparent)]
    File(#[from] FileError),
}

/// What an image is made of: where guests have it, and the files of this host.
type Manifest = BTreeMap<String, PathBuf>;

/// The image for a kernel, made if its inputs have changed: the programs of Debian's packages, the kernel's modules, and
/// `programs`. Packages that are missing are downloaded into the cache, after `consent`.
///
/// # Errors
/// [`RootError`]
pub fn image(
    kernel: &Kernel,
    programs: &[Program],
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<PathBuf, RootError> {
    let trees = needed(consent, tell)?;
    let mut manifest = manifest(&trees)?;
    let mut add = |path: &str, file: &Path| {
        manifest.insert(path.to_owned(), file.to_owned());
        elf::libraries(file, &trees, &mut manifest)
    };
    for program in programs {
        add(&program.path, &program.file)?;
    }
    // Only the libraries of this program: see `program`.
    let own = own_file()?;
    elf::libraries(&own, &trees, &mut manifest)?;
    let modules = kernel.modules.as_deref().map(|place| modules::list(place, &kernel.release)).transpose()?;
    let modules = modules.unwrap_or_default();
    let directory = cache::directory().join("images");
    let key = key(&manifest, &modules, kernel)?;
    let image = directory.join(format!("{}-{key}.cpio", kernel.release));
    if !image.exists() {
        tell(&format!("making the root of guests with the kernel {}: {}", kernel.release, image.display()));
        fs::create_dir_all(&directory).map_err(at(&directory))?;
        write(&image, &manifest, &modules, kernel, &trees)?;
    }
    // Marks it as used.
    let used =
        File::options().append(true).open(&image).and_then(|file| file.set_modified(SystemTime::now()));
    used.map_err(at(&image))?;
    remove_old(&directory).map_err(at(&directory))?;
    Ok(image)
}

/// SHA-256 of an image, in hexadecimal digits.
///
/// # Errors
/// [`RootError::File`]
pub fn hash(image: &Path) -> Result<String, RootError> {
    let place = image.with_extension("sha256");
    Ok(fs::read_to_string(&place).map(|text| text.trim().to_owned()).map_err(at(&place))?)
}

/// A directory with this program as `benchmaster`, the very file: a link to it, or a copy where there can be none. It is
/// kept as long as the program's file is not replaced, so that machines can start after that.
///
/// # Errors
/// [`RootError::File`]
pub fn program() -> Result<PathBuf, RootError> {
    let all = cache::directory().join("programs");
    let place = kept(&own_file()?, &all)?;
    remove_but(&all, KEPT_PROGRAMS).map_err(at(&all))?;
    Ok(place)
}

/// The directory among `all` with this file as `benchmaster`, made where there is none.
fn kept(own: &Path, all: &Path) -> Result<PathBuf, RootError> {
    let stat = fs::metadata(own).map_err(at(own))?;
    let name = format!("{:x}-{:x}-{:x}-{:x}", stat.dev(), stat.ino(), stat.len(), stat.mtime_nsec());
    let place = all.join(name);
    let file = place.join("benchmaster");
    if !file.exists() {
        fs::create_dir_all(&place).map_err(at(&place))?;
        // Under a name of its own first, as other processes and threads may do the same.
        let ours = tempfile::TempDir::new_in(&place).map_err(at(&place))?;
        let temporary = ours.path().join("benchmaster");
        if fs::hard_link(own, &temporary).is_err() {
            fs::copy(own, &temporary).map_err(at(&temporary))?;
        }
        fs::rename(&temporary, &file).map_err(at(&file))?;
    }
    let marked = File::open(&place).and_then(|place| place.set_modified(SystemTime::now()));
    marked.map_err(at(&place))?;
    Ok(place)
}

/// The file of this program. Its path may be that of another file by now, so it is taken by the process.
fn own_file() -> Result<PathBuf, RootError> {
    let link = Path::new("/proc/self/exe");
    let path = fs::read_link(link).map_err(at(link))?;
    Ok(if path.exists() { path } else { link.into() })
}

/// What guests need besides their kernel, downloaded if it is not here.
fn needed(consent: Consent<'_>, tell: &mut dyn FnMut(&str)) -> Result<Trees, RootError> {
    let trees = Trees::now()?;
    let missing = |trees: &Trees| -> Vec<Needed> {
        content::needed().filter(|needed| trees.program(needed.program).is_none()).collect()
    };
    let before = missing(&trees);
    if before.is_empty() {
        return Ok(trees);
    }
    let mut packages: Vec<&str> = before.iter().map(|needed| needed.package).collect();
    packages.dedup();
    let trees =
        packages::fetch(&packages, "guests need programs that are not installed here", consent, tell)?;
    let after = missing(&trees);
    if after.is_empty() {
        return Ok(trees);
    }
    let [programs, packages] = [
        after.iter().map(|needed| needed.program.to_owned()).collect(),
        after.iter().map(|needed| needed.package.to_owned()).collect(),
    ];
    Err(RootError::Missing { programs, packages })
}

/// What guests need besides their kernel, as files.
fn manifest(trees: &Trees) -> Result<Manifest, RootError> {
    let mut manifest = Manifest::new();
    for needed in content::needed() {
        let Some(file) = trees.program(needed.program) else { continue };
        manifest.insert(needed.path(), file.clone());
        elf::libraries(&file, trees, &mut manifest)?;
    }
    Ok(manifest)
}

/// A name for what goes into an image: it differs when a file does.
fn key(manifest: &Manifest, modules: &[String], kernel: &Kernel) -> Result<String, RootError> {
    let mut hash = Context::new(&SHA256);
    let mut add = |text: &str| hash.update(format!("{}:{text}", text.len()).as_bytes());
    for (path, file) in manifest {
        let stat = fs::metadata(file).map_err(at(file))?;
        add(path);
        add(&format!("{} {} {} {}", file.display(), stat.len(), stat.mtime(), stat.mtime_nsec()));
    }
    for (path, text) in FILES {
        add(path);
        add(text);
    }
    let links = content::links().flat_map(|(from, to)| [from, to]);
    links.chain(content::directories()).chain(content::modules()).for_each(&mut add);
    for module in modules {
        add(module);
    }
    add(&kernel.hash);
    add(LINKER_CACHE);
    Ok(hex(hash.finish().as_ref())[..16].to_owned())
}

fn write(
    image: &Path,
    manifest: &Manifest,
    modules: &[String],
    kernel: &Kernel,
    trees: &Trees,
) -> Result<(), RootError> {
    let directory = image.parent().unwrap_or(Path::new("/"));
    let failed = at(image);
    let temporary = tempfile::Builder::new().prefix(".image-").tempfile_in(directory).map_err(&failed)?;
    let mut archive =
        Archive::new(Hashing { to: BufWriter::new(temporary.as_file()), hash: Context::new(&SHA256) });
    for path in content::directories() {
        let permissions = if path == "tmp" { 0o1777 } else { 0o755 };
        archive.directory(path, permissions).map_err(&failed)?;
    }
    let mut made: Vec<String> = content::directories().map(str::to_owned).collect();
    let mut above = |path: &str, archive: &mut Archive<_>| -> io::Result<()> {
        for (at, _) in path.match_indices('/') {
            if !made.iter().any(|made| *made == path[..at]) {
                archive.directory(&path[..at], 0o755)?;
                made.push(path[..at].to_owned());
            }
        }
        Ok(())
    };
    archive.character_device("dev/console", 0o600, (5, 1)).map_err(&failed)?;
    archive.character_device("dev/null", 0o666, (1, 3)).map_err(&failed)?;
    for (path, text) in FILES {
        let permissions = if text.starts_with("#!") { 0o755 } else { 0o644 };
        archive.file(path, permissions, text.as_bytes()).map_err(&failed)?;
    }
    if cfg!(target_arch = "x86_64") {
        let libraries = manifest.keys().map(String::as_str).filter(|path| path.contains(".so"));
        archive.file(LINKER_CACHE, 0o644, &linker::cache(libraries)).map_err(&failed)?;
    }
    for (path, target) in content::links() {
        archive.link(path, target).map_err(&failed)?;
    }
    for applet in content::applets(trees, manifest)? {
        archive.link(&format!("bin/{applet}"), "/bin/busybox").map_err(&failed)?;
    }
    for (path, file) in manifest {
        let path = path.trim_start_matches('/');
        above(path, &mut archive).map_err(&failed)?;
        let content = fs::read(file).map_err(at(file))?;
        let permissions = fs::metadata(file).map_err(at(file))?.permissions().mode() & 0o755;
        archive.file(path, permissions, &content).map_err(&failed)?;
    }
    if let Some(place) = &kernel.modules {
        for (path, content) in modules::files(place, &kernel.release, modules, trees)? {
            above(&path, &mut archive).map_err(&failed)?;
            archive.file(&path, 0o644, &content).map_err(&failed)?;
        }
    }
    let hash = archive.finish().map_err(&failed)?.hash;
    let sum = image.with_extension("sha256");
    fs::write(&sum, format!("{}\n", hex(hash.finish().as_ref()))).map_err(at(&sum))?;
    temporary.persist(image).map_err(|error| failed(error.error))?;
    Ok(())
}

/// Hashes what passes through.
struct Hashing<W> {
    to: W,
    hash: Context,
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.to.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Removes all but the directories that were used last.
fn remove_but(all: &Path, kept: usize) -> io::Result<()> {
    let mut found = Vec::new();
    for entry in fs::read_dir(all)? {
        let path = entry?.path();
        // Another process may remove the same.
        if let Ok(stat) = fs::metadata(&path) {
            found.push((stat.modified()?, path));
        }
    }
    found.sort();
    for (_, path) in found.iter().rev().skip(kept) {
        let _ = fs::remove_dir_all(path);
    }
    Ok(())
}

/// Removes what was not used for long.
fn remove_old(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // Another process may remove the same.
        let Ok(stat) = fs::metadata(&path) else { continue };
        let age = stat.modified()?.elapsed().unwrap_or_default();
        let sum_of_image = path.extension().is_some_and(|extension| extension == "sha256");
        if age < KEPT || sum_of_image && path.with_extension("cpio").exists() {
            continue;
        }
        let _ = if stat.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_kept_once_whoever_asks_at_the_same_time() {
        let place = tempfile::tempdir().unwrap();
        let (own, all) = (place.path().join("own"), place.path().join("programs"));
        fs::write(&own, "a program").unwrap();
        let barrier = std::sync::Barrier::new(16);
        let found: Vec<_> = std::thread::scope(|scope| {
            let ask = || {
                barrier.wait();
                kept(&own, &all).unwrap()
            };
            let threads: Vec<_> = (0..16).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|directory| *directory == found[0]));
        // It is the very file, and nothing else is there.
        let (own, kept) = (fs::metadata(&own).unwrap(), fs::metadata(found[0].join("benchmaster")).unwrap());
        assert_eq!((kept.ino(), kept.len()), (own.ino(), 9));
        assert_eq!(fs::read_dir(&found[0]).unwrap().count(), 1);
    }

    #[test]
    fn programs_that_others_have_replaced_are_removed() {
        let place = tempfile::tempdir().unwrap();
        for age in 0..5 {
            let directory = place.path().join(age.to_string());
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("benchmaster"), "").unwrap();
            let used = SystemTime::now() - Duration::from_secs(60 * age);
            File::open(&directory).unwrap().set_modified(used).unwrap();
        }
        remove_but(place.path(), 2).unwrap();
        let left = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut left: Vec<_> = left.collect();
        left.sort();
        assert_eq!(left, ["0", "1"]);
    }

    #[test]
    fn what_was_not_used_for_long_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, days: u64| {
            let path = place.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_hours(24 * days)).unwrap();
            path
        };
        let [new, new_sum] = [file("a.cpio", 1), file("a.sha256", 20)];
        let [old, old_sum] = [file("b.cpio", 20), file("b.sha256", 20)];
        remove_old(place.path()).unwrap();
        remove_old(place.path()).unwrap();
        assert!(new.exists() && new_sum.exists());
        assert!(!old.exists() && !old_sum.exists());
    }
}
