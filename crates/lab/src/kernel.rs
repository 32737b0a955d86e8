//! Kernels to boot.

mod build;
mod packaged;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use memchr::memmem;
use serde::{Deserialize, Serialize};

pub use self::build::{Source, build, built};
use crate::cache;
use crate::file_error::{FileError, at};
use crate::packages::{Consent, PackageError};

/// What a kernel runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Architecture {
    /// User-mode Linux: a program of the host.
    UserMode,
    /// A PC, for QEMU.
    Pc,
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UserMode => "a user-mode kernel",
            Self::Pc => "a PC's kernel",
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kernel {
    pub file: PathBuf,
    /// Such as `6.1.176`, as `uname -r` says.
    pub release: String,
    pub origin: KernelOrigin,
    pub architecture: Architecture,
    /// The directory of its modules, `…/modules/RELEASE`; `None`: everything is built in.
    pub modules: Option<PathBuf>,
    /// SHA-256 of the file, in hexadecimal digits.
    pub hash: String,
    /// Whether it can run on virtual time.
    pub virtual_time: bool,
}

/// Where a kernel is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelOrigin {
    /// A package of the distribution.
    Packaged { package: String, version: String },
    /// Built by `benchmaster lab kernel build`.
    Built {
        /// The source: a package with its version, or a tree.
        source: String,
    },
    /// A file that was given.
    Given,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelChoice {
    /// The distribution's.
    Packaged,
    /// One built from this version's source, such as `6.12`.
    Built(String),
    File(PathBuf),
}

/// Why a text names no kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a kernel: give `packaged`, a version such as `6.12`, or a path with a `/`")]
pub struct NoKernelChoice(String);

impl FromStr for KernelChoice {
    type Err = NoKernelChoice;

    fn from_str(text: &str) -> Result<Self, NoKernelChoice> {
        let numbers =
            || text.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        match text {
            "packaged" => Ok(Self::Packaged),
            path if path.contains('/') => Ok(Self::File(path.into())),
            version if version.contains('.') && numbers() => Ok(Self::Built(version.into())),
            _ => Err(NoKernelChoice(text.into())),
        }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packaged => f.write_str("packaged"),
            Self::Built(version) => f.write_str(version),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl KernelChoice {
    /// What it runs on, if that is known: the packaged kernel exists for both.
    pub fn architecture(&self) -> Option<Architecture> {
        match self {
            Self::Packaged => None,
            Self::Built(_) => Some(Architecture::UserMode),
            Self::File(path) => recognise(path).ok(),
        }
    }
}

/// Why there is no such kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// None was built.
    #[error("no kernel {0} was built; run `benchmaster lab kernel build {0}`")]
    NotBuilt(String),
    /// Neither a user-mode kernel nor an image for PCs.
    #[error("{} is not a kernel: neither a program of user-mode Linux nor an image for PCs (bzImage)", .0.display())]
    NoKernel(PathBuf),
    /// Not for the back-end.
    #[error("the kernel {} is {is}, and {needed} is needed: choose another kernel or back-end", file.display())]
    OtherArchitecture {
        /// The kernel's file, or the version.
        file: PathBuf,
        is: Architecture,
        needed: Architecture,
    },
    /// A package does not have what it should.
    #[error("the package {package} has no {path}")]
    NotInPackage { path: String, package: String },
    /// Not a directory with the source of Linux.
    #[error("{} is not a source of Linux with user mode: it has no Makefile or no arch/um", .0.display())]
    NoSource(PathBuf),
    /// Building takes programs that are not here.
    #[error(
        "building a kernel needs programs that are not installed; run as root: apt-get install --no-install-recommends {0}"
    )]
    NoTools(String),
    /// A version cannot be what a lab needs.
    #[error("this version of Linux cannot be built for the lab: it has no option {0}")]
    Lacks(String),
    /// A package, or a step of the build.
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Kernel {
    fn of(
        file: PathBuf,
        architecture: Architecture,
        release: String,
        origin: KernelOrigin,
        modules: Option<PathBuf>,
    ) -> Result<Self, KernelError> {
        Ok(Self {
            hash: cache::hash_of(&file)?,
            virtual_time: architecture == Architecture::UserMode && has_virtual_time(&file)?,
            file,
            release,
            origin,
            architecture,
            modules,
        })
    }
}

/// Finds a kernel for machines of a kind. A packaged one that is not installed is downloaded into the cache, after `consent`.
///
/// # Errors
/// [`KernelError`]
pub fn find(
    choice: &KernelChoice,
    architecture: Architecture,
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Kernel, KernelError> {
    let kernel = match choice {
        KernelChoice::Packaged => packaged::find(architecture, consent, tell)?,
        KernelChoice::Built(version) => {
            let of_version = |kernel: &Kernel| is_version(&kernel.release, version);
            let found = built()?.into_iter().rev().find(of_version);
            found.ok_or_else(|| KernelError::NotBuilt(version.clone()))?
        }
        KernelChoice::File(path) => given(path)?,
    };
    if kernel.architecture != architecture {
        let (file, is) = (kernel.file, kernel.architecture);
        return Err(KernelError::OtherArchitecture { file, is, needed: architecture });
    }
    Ok(kernel)
}

/// Kernels that are here: installed, downloaded and built.
///
/// # Errors
/// [`KernelError`]
pub fn list() -> Result<Vec<Kernel>, KernelError> {
    let mut kernels = packaged::here()?;
    kernels.extend(built()?);
    Ok(kernels)
}

/// Whether a release such as `6.12.117` is of a version such as `6.12`.
fn is_version(release: &str, version: &str) -> bool {
    release.strip_prefix(version).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-']))
}

/// A kernel by its file.
fn given(path: &Path) -> Result<Kernel, KernelError> {
    let file = path.canonicalize().map_err(at(path))?;
    let architecture = recognise(&file)?;
    let (release, host) = match architecture {
        Architecture::UserMode => (user_mode_release(&file)?, "/usr/lib/uml/modules"),
        Architecture::Pc => (pc_release(&file)?, "/lib/modules"),
    };
    let beside = file.parent().unwrap_or(Path::new("/"));
    let places =
        [beside.join("modules"), beside.join("lib/modules"), beside.join("../lib/modules"), host.into()];
    let modules = places.into_iter().map(|place| place.join(&release)).find(|place| place.is_dir());
    Kernel::of(file, architecture, release, KernelOrigin::Given, modules)
}

/// What a file is: a program that has the options of user-mode Linux, or an image with the mark of the PC's boot protocol.
fn recognise(path: &Path) -> Result<Architecture, KernelError> {
    let bytes = fs::read(path).map_err(at(path))?;
    if bytes.starts_with(b"\x7fELF") && memmem::find(&bytes, b"uml_dir=").is_some() {
        Ok(Architecture::UserMode)
    } else if bytes.get(0x202..0x206) == Some(b"HdrS") {
        Ok(Architecture::Pc)
    } else {
        Err(KernelError::NoKernel(path.into()))
    }
}

/// What a user-mode kernel prints for an option.
fn ask(file: &Path, option: &str) -> Result<String, KernelError> {
    let output = Command::new(file).arg(option).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map_err(at(file))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn user_mode_release(file: &Path) -> Result<String, KernelError> {
    match ask(file, "--version")?.trim() {
        "" => Err(KernelError::NoKernel(file.into())),
        release => Ok(release.to_owned()),
    }
}

fn has_virtual_time(file: &Path) -> Result<bool, KernelError> {
    Ok(ask(file, "--showconfig")?.lines().any(|line| line == "CONFIG_UML_TIME_TRAVEL_SUPPORT=y"))
}

/// The release in an image for PCs: its header points to the text, as the kernel's Documentation/arch/x86/boot.rst says.
fn pc_release(file: &Path) -> Result<String, KernelError> {
    let bytes = fs::read(file).map_err(at(file))?;
    let release = || {
        let at = usize::from(u16::from_le_bytes(*bytes.get(0x20e..)?.first_chunk()?)) + 0x200;
        let text = bytes.get(at..)?.split(|byte| *byte == 0 || *byte == b' ').next()?;
        std::str::from_utf8(text).ok().filter(|text| !text.is_empty() && text.len() < 100)
    };
    release().map(str::to_owned).ok_or_else(|| KernelError::NoKernel(file.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_and_shown() {
        for (text, choice) in [
            ("packaged", KernelChoice::Packaged),
            ("6.12", KernelChoice::Built("6.12".into())),
            ("./linux", KernelChoice::File("./linux".into())),
        ] {
            assert_eq!(text.parse(), Ok(choice.clone()));
            assert_eq!(choice.to_string(), text);
        }
        for text in ["", "6", "newest", "6..1", "6.12-rc1"] {
            assert!(text.parse::<KernelChoice>().is_err(), "{text}");
        }
    }

    #[test]
    fn versions_are_those_of_releases() {
        assert!(
            is_version("6.12.117", "6.12") && is_version("6.12", "6.12") && is_version("6.12-rc1", "6.12")
        );
        assert!(!is_version("6.120", "6.12") && !is_version("6.1.2", "6.12"));
    }

    #[test]
    fn images_for_pcs_are_recognised_and_others_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("vmlinuz");
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        image[0x300..0x30c].copy_from_slice(b"6.1.0-1 (us)");
        fs::write(&file, &image).unwrap();
        let kernel = given(&file).unwrap();
        assert_eq!((kernel.release.as_str(), kernel.architecture), ("6.1.0-1", Architecture::Pc));
        for content in [b"#!/bin/sh\n" as &[u8], b"\x7fELF and nothing else", b""] {
            fs::write(&file, content).unwrap();
            assert!(matches!(given(&file), Err(KernelError::NoKernel(_))));
        }
    }
}
