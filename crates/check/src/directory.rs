//! What a directory does: the semantics of POSIX that applications rely on.
//!
//! Each check works in an empty directory of its own, below one that is made for the whole and removed at its end.

/// A check of a directory: name, where the rule is written, the rule, and how it is tried. Its group is the module's.
macro_rules! check {
    ($force:ident, $text:ident, $name:literal, $section:literal, $says:literal, $run:expr $(,)?) => {
        Check {
            name: $name,
            group: GROUP,
            versions: &[],
            force: crate::Force::$force,
            rule: crate::Rule {
                places: &[(&[], crate::Place { text: crate::Text::$text, section: $section })],
                says: $says,
            },
            run: $run,
        }
    };
}

/// A rule of POSIX.
macro_rules! must {
    ($($rest:tt)*) => { check!(Must, Posix, $($rest)*) };
}

/// A rule that POSIX leaves open, or that network file systems are known not to keep.
macro_rules! should {
    ($($rest:tt)*) => { check!(Should, Posix, $($rest)*) };
}

/// A rule of Linux.
macro_rules! linux {
    ($($rest:tt)*) => { check!(Linux, Linux, $($rest)*) };
}

mod attributes;
mod data;
mod directories;
mod here;
mod links;
mod lock;
mod locks;
mod map;
mod names;
mod open;
mod permissions;
mod random;
mod readdir;
mod rename;
mod shared;
mod special;
mod unlink;
mod xattr;

use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use benchmaster_record::conformance::{Checked, Finding};
use benchmaster_record::nfs::NfsVersion;
use rustix::fs::{Mode, OFlags, openat};

use crate::{Check, Environment, Stop, Trouble};
use here::Here;

/// All checks of a directory, in the order in which they are made.
pub const CHECKS: &[&[Check<Directory>]] = &[
    open::CHECKS,
    unlink::CHECKS,
    rename::CHECKS,
    links::CHECKS,
    directories::CHECKS,
    names::CHECKS,
    special::CHECKS,
    readdir::CHECKS,
    attributes::CHECKS,
    data::CHECKS,
    random::CHECKS,
    map::CHECKS,
    locks::CHECKS,
    permissions::CHECKS,
    xattr::CHECKS,
    shared::CHECKS,
];

/// A directory under check, and the same directory by a second path where there is one.
#[derive(Debug)]
pub struct Directory {
    /// The directory that is made for all checks.
    whole: PathBuf,
    /// The check that is made now.
    own: Option<String>,
    second: Option<PathBuf>,
    here: Here,
    there: Option<Here>,
}

impl Deref for Directory {
    type Target = Here;

    fn deref(&self) -> &Here {
        &self.here
    }
}

fn directory(path: &Path) -> Result<OwnedFd, Trouble> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(rustix::fs::CWD, path, flags, Mode::empty())
        .map_err(|error| Trouble::System(format!("{}: {error}", path.display())))
}

impl Directory {
    fn new(path: &Path, second: Option<&Path>) -> Result<Self, Trouble> {
        let name = format!("benchmaster-check-{}", std::process::id());
        let whole = path.join(&name);
        std::fs::create_dir(&whole).map_err(|error| {
            Trouble::System(format!("a directory cannot be made in {}: {error}", path.display()))
        })?;
        let made =
            Self { here: Here { dir: directory(&whole)? }, whole, own: None, second: None, there: None };
        let Some(second) = second.map(|second| second.join(&name)) else { return Ok(made) };
        match directory(&second) {
            Ok(dir) => Ok(Self { there: Some(Here { dir }), second: Some(second), ..made }),
            Err(error) => {
                made.finish()?;
                Err(Trouble::System(format!(
                    "the second path does not show what is made in {}: {error}",
                    path.display()
                )))
            }
        }
    }

    /// The directory by the second path.
    fn there(&self) -> here::Tried<&Here> {
        self.there
            .as_ref()
            .ok_or_else(|| Stop::not_applicable("no second path to the directory (--second PATH)"))
    }

    fn finish(self) -> Result<(), Trouble> {
        remove(&self.whole)
    }
}

/// Makes the checks that `wanted` chooses in `path`, until `go_on` says no. `second` is another path to the same directory,
/// such as another mount.
///
/// # Errors
/// When nothing can be made in `path`, or `second` does not show it.
pub fn check(
    path: &Path,
    second: Option<&Path>,
    wanted: &dyn Fn(&Check<Directory>) -> bool,
    go_on: &dyn Fn() -> bool,
    seen: &mut dyn FnMut(&Finding),
) -> Result<Checked, Trouble> {
    let begun = Instant::now();
    let mut directory = Directory::new(path, second)?;
    let findings = crate::run(CHECKS, &mut directory, wanted, go_on, seen);
    let left_behind = directory.finish().err().map(|trouble| trouble.to_string());
    Ok(Checked {
        version: None,
        implementation: None,
        findings,
        elapsed_s: begun.elapsed().as_secs_f64(),
        left_behind,
    })
}

/// Removes a directory and all in it. NFS clients remove files that were open a moment after they are closed.
fn remove(path: &Path) -> Result<(), Trouble> {
    let mut tries = 0;
    loop {
        tries += 1;
        match std::fs::remove_dir_all(path) {
            Err(error) if tries == 10 => {
                return Err(Trouble::System(format!("{} cannot be removed: {error}", path.display())));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
            Ok(()) => return Ok(()),
        }
    }
}

fn left(name: &str, trouble: Trouble) -> Stop {
    Stop::Trouble { sent: format!("the directory of {name} is removed"), trouble }
}

impl Environment for Directory {
    fn version(&self) -> Option<NfsVersion> {
        None
    }

    fn begin(&mut self, name: &str) -> Result<(), Stop> {
        let trouble = |trouble| Stop::Trouble { sent: format!("a directory for {name}"), trouble };
        let own = self.whole.join(name);
        self.own = Some(name.to_owned());
        let made =
            std::fs::create_dir(&own).map_err(|error| Trouble::System(format!("{}: {error}", own.display())));
        made.map_err(trouble)?;
        self.here = Here { dir: directory(&own).map_err(trouble)? };
        if let Some(second) = &self.second {
            self.there = Some(Here { dir: directory(&second.join(name)).map_err(trouble)? });
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), Stop> {
        let Some(own) = self.own.take() else { return Ok(()) };
        // Descriptors of a removed directory would keep it.
        self.here = Here { dir: directory(&self.whole).map_err(|trouble| left(&own, trouble))? };
        remove(&self.whole.join(&own)).map_err(|trouble| left(&own, trouble))
    }
}
