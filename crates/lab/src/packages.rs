//! Debian's packages: files of those that are installed, and of others, which are downloaded and unpacked in the cache.
//!
//! Nothing is installed on the host, so that this takes no rights, and no service of the host starts.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache;
use crate::file_error::{FileError, at};

/// Asked before anything is downloaded, with a text that says what and why. Whether it may be.
pub type Consent<'a> = &'a mut dyn FnMut(&str) -> bool;

/// Where programs are.
const PROGRAMS: [&str; 4] = ["usr/sbin", "usr/bin", "sbin", "bin"];

/// Why packages could not be had.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// Not a system with Debian's packages.
    #[error(
        "{} are not installed, and `{program}` is not here to get them; install what provides them by the means of this system",
        wanted.join(", ")
    )]
    NotDebian { wanted: Vec<String>, program: String },
    /// The answer was no.
    #[error("these packages are needed and were not to be downloaded: {}; `benchmaster lab setup` does it", .0.join(", "))]
    Refused(Vec<String>),
    /// `apt-get` or `dpkg-deb` failed.
    #[error("`{command}` failed: {output}{}", hint(output))]
    Failed {
        command: String,
        /// What it printed as errors.
        output: String,
    },
    #[error(transparent)]
    File(#[from] FileError),
}

/// What helps most often.
fn hint(output: &str) -> &'static str {
    if ["Unable to locate", "no installation candidate", "404", "Can't find a source"]
        .iter()
        .any(|text| output.contains(text))
    {
        "; the lists of packages are missing or old: run `apt-get update` as root"
    } else {
        ""
    }
}

/// Where files of packages are: the host, and what was unpacked in the cache.
#[derive(Debug, Clone)]
pub struct Trees {
    /// Those in the cache, then the host.
    roots: Vec<PathBuf>,
}

impl Trees {
    /// As they are now.
    ///
    /// # Errors
    /// [`PackageError::File`]
    pub fn now() -> Result<Self, PackageError> {
        let directory = directory();
        let of = at(&directory);
        let mut roots = Vec::new();
        match fs::read_dir(&directory) {
            Ok(entries) => {
                for entry in entries {
                    let path = entry.map_err(&of)?.path();
                    // Those with a point are being unpacked.
                    if path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.')) {
                        roots.push(path);
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(of(error).into()),
        }
        roots.sort();
        roots.push("/".into());
        Ok(Self { roots })
    }

    /// A program by its name: the host's if it has it.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let places =
            self.roots.iter().rev().flat_map(|root| PROGRAMS.map(|place| root.join(place).join(name)));
        places.into_iter().find(|path| path.is_file())
    }

    /// Files of these paths, relative to the root, in all trees: the host's first.
    pub fn files(&self, path: &str) -> impl Iterator<Item = PathBuf> {
        let files = self.roots.iter().rev().map(move |root| root.join(path.trim_start_matches('/')));
        files.filter(|path| path.exists()).collect::<Vec<_>>().into_iter()
    }

    /// A shared library for a program: of the same origin if possible.
    pub fn library(&self, name: &str, program: &Path) -> Option<PathBuf> {
        let mut roots: Vec<&PathBuf> = self.roots.iter().collect();
        if !self.unpacked(program) {
            roots.reverse();
        }
        let places =
            roots.iter().flat_map(|root| library_directories().map(|place| root.join(place).join(name)));
        places.into_iter().find(|path| path.is_file())
    }

    /// Directories with libraries in the cache, for programs that are run from there.
    pub fn library_path(&self) -> Vec<PathBuf> {
        let unpacked = self.roots.iter().filter(|root| root.as_os_str() != "/");
        unpacked
            .flat_map(|root| library_directories().map(|place| root.join(place)))
            .filter(|path| path.is_dir())
            .collect()
    }

    /// Whether a file is in the cache.
    pub fn unpacked(&self, file: &Path) -> bool {
        self.roots.iter().any(|root| root.as_os_str() != "/" && file.starts_with(root))
    }

    /// The package that a file is of, with its version: the one whose unpacked tree it is in, else `package` as installed.
    pub fn origin(&self, file: &Path, package: &str) -> (String, String) {
        let unpacked = self.unpacked_package(file);
        unpacked.unwrap_or_else(|| (package.to_owned(), installed(package).unwrap_or_default()))
    }

    fn unpacked_package(&self, file: &Path) -> Option<(String, String)> {
        let root = self.roots.iter().find(|root| root.as_os_str() != "/" && file.starts_with(root))?;
        let name = root.file_name()?.to_string_lossy().replace("%3a", ":");
        let mut parts = name.split('_');
        Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
    }
}

fn library_directories() -> [String; 5] {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    [
        format!("usr/lib/{triplet}"),
        format!("lib/{triplet}"),
        "usr/lib64".into(),
        "lib64".into(),
        "usr/lib".into(),
    ]
}

fn directory() -> PathBuf {
    cache::directory().join("packages")
}

/// The version of a package that is installed.
fn installed(package: &str) -> Option<String> {
    let output = Command::new("dpkg-query")
        .args(["-W", "-f=${db:Status-Status} ${Version}", package])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.strip_prefix("installed ").map(str::to_owned)
}

/// Gets packages and those that they need and that are not installed, into the cache.
///
/// # Errors
/// [`PackageError`]
pub fn fetch(
    packages: &[&str],
    why: &str,
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Trees, PackageError> {
    let wanted: Vec<String> = packages.iter().map(|package| (*package).to_owned()).collect();
    let simulated = apt(&[&["-s", "--no-install-recommends", "install"], packages].concat(), &wanted)?;
    let mut all = inst_lines(&simulated);
    // What is installed and was asked for all the same: its files are not where they should be.
    all.extend(wanted.iter().filter(|name| !inst_lines(&simulated).contains(name)).cloned());
    download(&all, why, consent, tell)
}

/// Gets these packages alone, without what they need.
///
/// # Errors
/// [`PackageError`]
pub fn download(
    packages: &[String],
    why: &str,
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Trees, PackageError> {
    let place = directory();
    let text = format!(
        "{why}: these packages are downloaded by apt-get and unpacked in {} (nothing is installed):\n  {}",
        place.display(),
        packages.join(" ")
    );
    if !consent(&text) {
        return Err(PackageError::Refused(packages.to_vec()));
    }
    fs::create_dir_all(&place).map_err(at(&place))?;
    let temporary = tempfile::Builder::new().prefix(".new-").tempdir_in(&place).map_err(at(&place))?;
    tell(&format!("downloading {} packages", packages.len()));
    let names: Vec<&str> = packages.iter().map(String::as_str).collect();
    let arguments = [&["-q", "-o", "APT::Sandbox::User=root", "download"], names.as_slice()].concat();
    run(Command::new("apt-get").args(&arguments).current_dir(temporary.path()), packages)?;
    for entry in fs::read_dir(temporary.path()).map_err(at(temporary.path()))? {
        let file = entry.map_err(at(temporary.path()))?.path();
        let Some(name) = file.file_stem().map(|name| name.to_string_lossy().into_owned()) else { continue };
        if file.extension().is_none_or(|extension| extension != "deb") {
            continue;
        }
        let tree = temporary.path().join(&name);
        run(Command::new("dpkg-deb").arg("-x").arg(&file).arg(&tree), packages)?;
        links_inside(&tree, 0).map_err(at(&tree))?;
        let package = name.split('_').next().unwrap_or(&name);
        remove_versions(&place, package).map_err(at(&place))?;
        let end = place.join(&name);
        fs::rename(&tree, &end).map_err(at(&end))?;
    }
    tell("packages unpacked");
    Trees::now()
}

/// Makes the absolute links of an unpacked package relative: they mean files of the package, and would be followed on the
/// host. `depth` is how far a directory is below the package's root.
fn links_inside(directory: &Path, depth: usize) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            links_inside(&path, depth + 1)?;
        } else if kind.is_symlink()
            && let Ok(inside) = fs::read_link(&path)?.strip_prefix("/")
        {
            let to_root: PathBuf = std::iter::repeat_n("..", depth).collect();
            fs::remove_file(&path)?;
            std::os::unix::fs::symlink(to_root.join(inside), &path)?;
        }
    }
    Ok(())
}

/// Removes what was unpacked of a package.
fn remove_versions(place: &Path, package: &str) -> io::Result<()> {
    for entry in fs::read_dir(place)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.split('_').next() == Some(package) {
            fs::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

/// Packages that a simulated `apt-get install` would install.
fn inst_lines(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("Inst "));
    lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn apt(arguments: &[&str], wanted: &[String]) -> Result<String, PackageError> {
    run(Command::new("apt-get").args(arguments), wanted)
}

/// Runs it and gives what it printed.
pub(crate) fn run(command: &mut Command, wanted: &[String]) -> Result<String, PackageError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let output = command.env("LC_ALL", "C").stdin(Stdio::null()).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            PackageError::NotDebian { wanted: wanted.to_vec(), program: program.clone() }
        }
        _ => at(&program)(error).into(),
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(PackageError::Failed {
            command: format!("{program} {}", words.join(" ")),
            output: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_would_install_is_read() {
        let text = "Reading package lists...\nInst libfdt1 (1.6.1-4+b1 Debian:12.15/oldstable [amd64])\n\
                    Inst libc6 [2.36-9] (2.36-9+deb12u10 Debian:12.15 [amd64])\nConf libfdt1 (1.6.1-4+b1)\n";
        assert_eq!(inst_lines(text), ["libfdt1", "libc6"]);
    }

    #[test]
    fn files_of_the_host_are_found() {
        let trees = Trees::now().unwrap();
        let shell = trees.program("sh").unwrap();
        assert!(!trees.unpacked(&shell));
        assert!(trees.library("libc.so.6", &shell).is_some());
        assert!(trees.program("no-such-program-here").is_none());
    }

    /// Debian 12's kmod has `sbin/depmod -> /bin/kmod`, which a host without kmod does not have.
    #[test]
    fn links_of_a_package_stay_in_it() {
        let tree = tempfile::tempdir().unwrap();
        let path = |name: &str| tree.path().join(name);
        for directory in ["bin", "sbin", "usr/lib/deep"] {
            fs::create_dir_all(path(directory)).unwrap();
        }
        fs::write(path("bin/only-here"), "program").unwrap();
        let link = |to: &str, from: &str| std::os::unix::fs::symlink(to, path(from)).unwrap();
        link("/bin/only-here", "sbin/depmod");
        link("/bin/only-here", "usr/lib/deep/link");
        link("../bin/only-here", "sbin/relative");
        link("/nowhere", "dangling");
        links_inside(tree.path(), 0).unwrap();
        for name in ["sbin/depmod", "usr/lib/deep/link", "sbin/relative"] {
            assert_eq!(fs::read_to_string(path(name)).unwrap(), "program", "{name}");
        }
        assert_eq!(fs::read_link(path("sbin/relative")).unwrap(), Path::new("../bin/only-here"));
        assert_eq!(fs::read_link(path("dangling")).unwrap(), Path::new("nowhere"));
        let trees = Trees { roots: vec![tree.path().to_owned()] };
        assert_eq!(trees.program("depmod"), Some(path("sbin/depmod")));
    }

    #[test]
    fn a_missing_list_of_packages_is_explained() {
        let error = PackageError::Failed {
            command: "apt-get download x".into(),
            output: "E: Unable to locate package x".into(),
        };
        assert!(error.to_string().contains("run `apt-get update` as root"), "{error}");
    }
}
