//! The distribution's kernels.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Architecture, Kernel, KernelError, KernelOrigin, pc_release, user_mode_release};
use crate::packages::{self, Consent, Trees};

/// The package of the kernel in user mode.
const USER_MODE: &str = "user-mode-linux";

/// The packaged kernel of a kind, downloaded if it is not here.
pub(super) fn find(
    architecture: Architecture,
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Kernel, KernelError> {
    if let Some(kernel) = in_trees(architecture, &Trees::now()?)? {
        return Ok(kernel);
    }
    let trees = match architecture {
        Architecture::UserMode => packages::fetch(&[USER_MODE], "the kernel in user mode", consent, tell)?,
        Architecture::Pc => {
            let package = cloud_image()?;
            packages::download(&[package], "the kernel for QEMU", consent, tell)?
        }
    };
    let (path, package) = match architecture {
        Architecture::UserMode => ("linux.uml", USER_MODE.to_owned()),
        Architecture::Pc => ("boot/vmlinuz", cloud_image()?),
    };
    in_trees(architecture, &trees)?.ok_or(KernelError::NotInPackage { path: path.into(), package })
}

/// Those that are here.
pub(super) fn here() -> Result<Vec<Kernel>, KernelError> {
    let trees = Trees::now()?;
    let mut found = Vec::new();
    for architecture in [Architecture::UserMode, Architecture::Pc] {
        found.extend(in_trees(architecture, &trees)?);
    }
    Ok(found)
}

fn in_trees(architecture: Architecture, trees: &Trees) -> Result<Option<Kernel>, KernelError> {
    match architecture {
        Architecture::UserMode => user_mode(trees),
        Architecture::Pc => pc(trees),
    }
}

fn user_mode(trees: &Trees) -> Result<Option<Kernel>, KernelError> {
    let Some(file) = trees.program("linux.uml") else { return Ok(None) };
    let release = user_mode_release(&file)?;
    let modules = trees.files(&format!("usr/lib/uml/modules/{release}")).next();
    let (package, version) = trees.origin(&file, USER_MODE);
    let origin = KernelOrigin::Packaged { package, version };
    Kernel::of(file, Architecture::UserMode, release, origin, modules).map(Some)
}

/// The newest kernel for virtual machines, with modules: the package's before those of the host's own system.
fn pc(trees: &Trees) -> Result<Option<Kernel>, KernelError> {
    let mut found: Vec<(bool, PathBuf)> = Vec::new();
    for boot in trees.files("boot") {
        // Some hosts keep it from users.
        let Ok(entries) = fs::read_dir(&boot) else { continue };
        let files = entries.flatten().map(|entry| entry.path());
        let is_kernel = |path: &Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-"))
                && fs::File::open(path).is_ok()
        };
        found.extend(
            files
                .filter(|path| is_kernel(path))
                .map(|path| (path.display().to_string().contains("cloud"), path)),
        );
    }
    found.sort();
    while let Some((_, file)) = found.pop() {
        let release = pc_release(&file)?;
        let root = file.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let places = ["lib/modules", "usr/lib/modules"].map(|place| root.join(place).join(&release));
        let Some(modules) = places.into_iter().find(|place| place.is_dir()) else { continue };
        let (package, version) = trees.origin(&file, &format!("linux-image-{release}"));
        let origin = KernelOrigin::Packaged { package, version };
        return Kernel::of(file, Architecture::Pc, release, origin, Some(modules)).map(Some);
    }
    Ok(None)
}

/// The package that the distribution's newest kernel for virtual machines is in.
fn cloud_image() -> Result<String, KernelError> {
    let architecture = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        _ => "amd64",
    };
    let all = format!("linux-image-cloud-{architecture}");
    let mut command = std::process::Command::new("apt-cache");
    let text = packages::run(command.args(["depends", &all]), std::slice::from_ref(&all))?;
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let image = names.map(str::to_owned).find(|name| name.starts_with("linux-image-"));
    image.ok_or_else(|| KernelError::NotInPackage { path: "boot/vmlinuz".into(), package: all })
}
