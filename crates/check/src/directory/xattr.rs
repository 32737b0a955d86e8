//! Extended attributes of users.

use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fremovexattr, fsetxattr};
use rustix::io::Errno;

use super::Directory;
use super::here::{Asked, Tried, same};
use crate::{Check, Group};
use std::os::fd::OwnedFd;

const GROUP: Group = Group::Xattr;

fn set(file: &OwnedFd, name: &str, value: &[u8], flags: XattrFlags) -> Asked<()> {
    Asked::new(
        format!("fsetxattr(\"{name}\", {} bytes, {flags:?})", value.len()),
        fsetxattr(file, name, value, flags),
    )
}

fn get(file: &OwnedFd, name: &str) -> Asked<Vec<u8>> {
    let mut value = vec![0; 65_536];
    let answer = fgetxattr(file, name, &mut value[..]);
    Asked::new(format!("fgetxattr(\"{name}\")"), answer.map(|count| value[..count].to_vec()))
}

/// The names of users' attributes, in order.
fn names(file: &OwnedFd) -> Tried<Vec<String>> {
    let mut list = vec![0u8; 65_536];
    let count = Asked::new("flistxattr".to_owned(), flistxattr(file, &mut list[..])).offered()?;
    let names = list[..count].split(|byte| *byte == 0).map(|name| String::from_utf8_lossy(name).into_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("user.")).collect();
    names.sort();
    Ok(names)
}

pub(super) const CHECKS: &[Check<Directory>] = &[
    linux!("xattr-keeps-values", "xattr(7)", "Values are kept byte by byte, listed and removed.", |here| {
        let file = here.create("a")?;
        let value: Vec<u8> = (0..=255).collect();
        set(&file, "user.one", &value, XattrFlags::empty()).offered()?;
        set(&file, "user.empty", b"", XattrFlags::empty()).ok()?;
        same("value", get(&file, "user.one").ok()?, value)?;
        same("value of no bytes", get(&file, "user.empty").ok()?, Vec::new())?;
        same("names", names(&file)?, vec!["user.empty".to_owned(), "user.one".to_owned()])?;
        Asked::new("fremovexattr".into(), fremovexattr(&file, "user.one")).ok()?;
        get(&file, "user.one").fails(&[Errno::NODATA])?;
        same("names", names(&file)?, vec!["user.empty".to_owned()])
    }),
    linux!(
        "xattr-create-and-replace",
        "setxattr(2)",
        "XATTR_CREATE of one that exists: EEXIST; XATTR_REPLACE of one that does not: ENODATA.",
        |here| {
            let file = here.create("a")?;
            set(&file, "user.one", b"1", XattrFlags::CREATE).offered()?;
            set(&file, "user.one", b"2", XattrFlags::CREATE).fails(&[Errno::EXIST])?;
            set(&file, "user.two", b"2", XattrFlags::REPLACE).fails(&[Errno::NODATA])?;
            set(&file, "user.one", b"3", XattrFlags::REPLACE).ok()?;
            same("value", get(&file, "user.one").ok()?, b"3".to_vec())
        }
    ),
    linux!("xattr-missing", "getxattr(2)", "One that does not exist: ENODATA.", |here| {
        let file = here.create("a")?;
        set(&file, "user.one", b"1", XattrFlags::empty()).offered()?;
        get(&file, "user.none").fails(&[Errno::NODATA])?;
        Asked::new("fremovexattr".into(), fremovexattr(&file, "user.none")).fails(&[Errno::NODATA])
    }),
    linux!(
        "xattr-belongs-to-the-file",
        "xattr(7)",
        "All names of a file have them; a new file has none.",
        |here| {
            let file = here.create("a")?;
            set(&file, "user.one", b"1", XattrFlags::empty()).offered()?;
            here.link("a", "b").offered()?;
            same("value by another name", get(&here.edit("b")?, "user.one").ok()?, b"1".to_vec())?;
            here.rename("a", "c").ok()?;
            same("value after rename", get(&here.edit("c")?, "user.one").ok()?, b"1".to_vec())?;
            same("names of a new file", names(&here.create("d")?)?, Vec::new())
        }
    ),
];
