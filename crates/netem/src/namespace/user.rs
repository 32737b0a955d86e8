//! A user namespace for those who are not root.

use std::fs;
use std::io::{self, ErrorKind};

use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

use super::{NamespaceError, leave};

/// Moves this process into a user namespace of its own, in which it may make network namespaces and TAP devices. User
/// and group keep their numbers; all others are unknown in it (files of theirs appear as of `nobody`), and groups
/// cannot be changed, so that programs that change users (`sudo`, `su`) do not work there. Processes started later
/// are in it too; they have its rights only as far as those are inherited: none after `exec`, unless as user 0.
///
/// # Errors
/// [`NamespaceError::User`] where the system forbids it, with what forbids it; also when the process has more than
/// one thread: call this first in `main`.
pub fn enter_user_namespace() -> Result<(), NamespaceError> {
    enter_as(geteuid().as_raw(), getegid().as_raw())
}

/// As [`enter_user_namespace`], but as user and group 0 of it, which are this user outside: programs that are started
/// have the rights of root in it.
///
/// # Errors
/// Those of [`enter_user_namespace`].
pub fn enter_user_namespace_as_root() -> Result<(), NamespaceError> {
    enter_as(0, 0)
}

/// Enters a user namespace in which this user and group have these numbers.
fn enter_as(uid_inside: u32, gid_inside: u32) -> Result<(), NamespaceError> {
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    leave(UnshareFlags::NEWUSER).map_err(refused)?;
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|source| NamespaceError::User {
            reason: format!("/proc/self/{file} cannot be written: {source}"),
            source,
        })
    };
    // Without this a group map is refused.
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{uid_inside} {uid} 1"))?;
    write("gid_map", format!("{gid_inside} {gid} 1"))
}

/// Says what forbids user namespaces.
pub(super) fn refused(source: io::Error) -> NamespaceError {
    let reason = reason(&source, |file| fs::read_to_string(file).ok());
    NamespaceError::User { reason, source }
}

fn reason(error: &io::Error, read: impl Fn(&str) -> Option<String>) -> String {
    let is = |file: &str, value: &str| read(file).is_some_and(|text| text.trim() == value);
    if error.raw_os_error() == Some(libc::EINVAL) {
        return "the process has more than one thread already".into();
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return "not allowed for unprivileged users; as root: sysctl kernel.unprivileged_userns_clone=1"
            .into();
    }
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return "the limit is 0; as root: sysctl user.max_user_namespaces=10000".into();
    }
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        return "AppArmor forbids it to users; as root: sysctl kernel.apparmor_restrict_unprivileged_userns=0, \
                or a profile with `userns` for this program"
            .into();
    }
    if error.raw_os_error() == Some(libc::ENOSPC) {
        return "the limit is reached; as root: raise sysctl user.max_user_namespaces".into();
    }
    if error.kind() == ErrorKind::PermissionDenied {
        return format!(
            "{error}; a container's seccomp profile or the security module forbids it, or this is a chroot"
        );
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_forbids_it_is_named() {
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        for (file, value, sysctl) in [
            ("/proc/sys/kernel/unprivileged_userns_clone", "0\n", "kernel.unprivileged_userns_clone=1"),
            ("/proc/sys/user/max_user_namespaces", "0\n", "user.max_user_namespaces="),
            (
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                "1\n",
                "kernel.apparmor_restrict_unprivileged_userns=0",
            ),
        ] {
            let text = reason(&denied, |asked| (asked == file).then(|| value.to_owned()));
            assert!(text.contains(sysctl), "{text}");
        }
        assert!(reason(&denied, |_| None).contains("seccomp"));
        assert!(reason(&io::Error::from_raw_os_error(libc::EINVAL), |_| None).contains("thread"));
        assert!(reason(&io::Error::from_raw_os_error(libc::ENOSPC), |_| None).contains("max_user"));
    }
}
