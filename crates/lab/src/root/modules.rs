//! The kernel's modules that guests may need.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::RootError;
use super::content;
use crate::file_error::at;
use crate::packages::Trees;

/// Paths of the modules wanted and of those that they need, relative to the directory of modules.
pub(crate) fn list(place: &Path, release: &str) -> Result<Vec<String>, RootError> {
    let file = place.join("modules.dep");
    let made;
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        // Packages of kernels have none: it is made when they are installed.
        Err(_) => {
            made = index(place, release, &Trees::now()?)?;
            made.into_iter()
                .find(|(name, _)| name == "modules.dep")
                .map(|(_, text)| String::from_utf8_lossy(&text).into_owned())
                .unwrap_or_default()
        }
    };
    Ok(closure(&text))
}

/// The modules wanted in a text of modules.dep(5), and those that they need.
fn closure(text: &str) -> Vec<String> {
    let needs: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(':')).collect();
    let wanted = |path: &str| {
        let name =
            path.rsplit('/').next().unwrap_or(path).split('.').next().unwrap_or(path).replace('-', "_");
        content::modules().any(|module| module == name)
    };
    let mut all = BTreeSet::new();
    for (path, needed) in needs.iter().filter(|(path, _)| wanted(path)) {
        all.insert((*path).to_owned());
        all.extend(needed.split_ascii_whitespace().map(str::to_owned));
    }
    all.into_iter().collect()
}

/// Files of `/lib/modules/RELEASE` with these modules: where guests have them, and what is in them.
pub(crate) fn files(
    place: &Path,
    release: &str,
    modules: &[String],
    trees: &Trees,
) -> Result<Vec<(String, Vec<u8>)>, RootError> {
    let mut files = Vec::new();
    let temporary = tempfile::tempdir().map_err(at(&std::env::temp_dir()))?;
    let part = temporary.path().join(release);
    for module in modules.iter().map(String::as_str).chain([
        "modules.builtin",
        "modules.builtin.modinfo",
        "modules.order",
    ]) {
        let from = place.join(module);
        let content = match fs::read(&from) {
            Ok(content) => content,
            Err(_) if module.starts_with("modules.") => continue,
            Err(error) => return Err(at(from)(error).into()),
        };
        let to = part.join(module);
        let above = to.parent().unwrap_or(&part);
        fs::create_dir_all(above).and_then(|()| fs::write(&to, &content)).map_err(at(&to))?;
        files.push((format!("lib/modules/{release}/{module}"), content));
    }
    let indexes = index(&part, release, trees)?;
    files.extend(
        indexes.into_iter().map(|(name, content)| (format!("lib/modules/{release}/{name}"), content)),
    );
    Ok(files)
}

/// What depmod(8) makes for a directory of modules.
fn index(place: &Path, release: &str, trees: &Trees) -> Result<Vec<(String, Vec<u8>)>, RootError> {
    let failed = |reason: String| RootError::Modules { kernel: release.into(), reason };
    let Some(program) = trees.program("depmod") else {
        return Err(failed("the program `depmod` (package kmod) is not here".into()));
    };
    let temporary = tempfile::tempdir().map_err(at(&std::env::temp_dir()))?;
    // It takes the directory above `lib/modules`, and writes into that of the modules.
    let own = temporary.path().join("lib/modules").join(release);
    fs::create_dir_all(&own).map_err(at(&own))?;
    for entry in fs::read_dir(place).map_err(at(place))? {
        let path = entry.map_err(at(place))?.path();
        let name = path.file_name().unwrap_or_default();
        let given = ["modules.builtin", "modules.builtin.modinfo", "modules.order"];
        if path.is_dir() || given.iter().any(|given| name == *given) {
            let link = own.join(name);
            symlink(&path, &link).map_err(at(&link))?;
        }
    }
    let output = Command::new(&program).arg("-b").arg(temporary.path()).arg(release).output();
    let output = output.map_err(at(&program))?;
    if !output.status.success() {
        return Err(failed(format!("depmod: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(&own).map_err(at(&own))? {
        let path = entry.map_err(at(&own))?.path();
        if !path.is_symlink() && path.is_file() {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            files.push((name, fs::read(&path).map_err(at(&path))?));
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_with_those_that_they_need() {
        let text = "kernel/fs/nfs/nfsv3.ko: kernel/fs/nfs/nfs.ko kernel/net/sunrpc/sunrpc.ko\n\
                    kernel/drivers/net/dummy.ko:\n\
                    kernel/net/sched/sch-netem.ko.xz:\n";
        let expected = [
            "kernel/fs/nfs/nfs.ko",
            "kernel/fs/nfs/nfsv3.ko",
            "kernel/net/sched/sch-netem.ko.xz",
            "kernel/net/sunrpc/sunrpc.ko",
        ];
        assert_eq!(closure(text), expected);
    }
}
