//! The mounts of this process: `/proc/self/mountinfo`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One line of `mountinfo`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Number of the mount.
    pub id: u64,
    /// Number of the mount it is mounted on.
    pub parent: u64,
    /// Device as `major:minor`.
    pub device: String,
    /// The directory of the file system that is mounted; not `/` for bind mounts and subvolumes.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Options of the mount.
    pub options: String,
    /// Type of the file system.
    pub file_system: String,
    /// What is mounted: a device, `server:/export`, or a name of no meaning.
    pub source: String,
    /// Options of the file system (for NFS: version, sizes, timeouts, …).
    pub super_options: String,
    /// The line as the kernel wrote it.
    pub line: String,
}

impl Mount {
    /// Parses one line. `None` if it is not in the kernel's format.
    pub fn parse(line: &str) -> Option<Self> {
        // Optional fields of any number end with a lone dash. An empty source leaves two spaces.
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ');
        let mut next = || fields.next();
        let (id, parent, device, root, mount_point, options) =
            (next()?, next()?, next()?, next()?, next()?, next()?);
        let mut fields = file_system.splitn(3, ' ');
        let (file_system, source, super_options) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self {
            id: id.parse().ok()?,
            parent: parent.parse().ok()?,
            device: device.to_owned(),
            root: unescaped(root).into(),
            mount_point: unescaped(mount_point).into(),
            options: options.to_owned(),
            file_system: unescaped(file_system).to_string_lossy().into_owned(),
            source: unescaped(source).to_string_lossy().into_owned(),
            super_options: super_options.to_owned(),
            line: line.to_owned(),
        })
    }

    /// Options of the mount, then those of the file system that are not among them.
    pub fn all_options(&self) -> String {
        let own: Vec<_> = self.options.split(',').collect();
        let further =
            self.super_options.split(',').filter(|option| !option.is_empty() && !own.contains(option));
        own.iter().copied().chain(further).collect::<Vec<_>>().join(",")
    }
}

/// Parses the text of `mountinfo`; lines that are not in the kernel's format are left out.
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(Mount::parse).collect()
}

/// The mount on which an absolute path without symbolic links lies.
///
/// Follows the path as the kernel does, from mount to mount: the longest mount point alone would be wrong when
/// something was mounted later above it, which hides it. Of several mounts on the same point the last one counts.
pub fn mount_of<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let on_the_way: Vec<_> = mounts.iter().filter(|mount| path.starts_with(&mount.mount_point)).collect();
    let depth = |mount: &&&Mount| mount.mount_point.components().count();
    let has_parent =
        |mount: &Mount| mounts.iter().any(|other| other.id == mount.parent && other.id != mount.id);
    // In a chroot the topmost mount need not be listed.
    let mut current = *on_the_way.iter().filter(|mount| !has_parent(mount)).min_by_key(depth)?;
    // Every step goes to another mount; the bound guards against a text with circles.
    for _ in 0..mounts.len() {
        let above = on_the_way.iter().filter(|mount| mount.parent == current.id && mount.id != current.id);
        match above.rev().min_by_key(depth) {
            Some(next) => current = *next,
            None => break,
        }
    }
    Some(current)
}

/// Undoes the kernel's octal escapes (`\040` for a space).
pub(crate) fn unescaped(field: &str) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let [first, tail @ ..] = rest {
        match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines of several hosts: ext4 root, tmpfs, NFS v3 and v4, bind mount, btrfs subvolume, autofs, overlay, stacked
    /// mounts.
    const RECORDED: &str = r"22 27 0:21 / /proc rw,relatime - proc proc rw
24 27 0:6 / /dev rw,relatime shared:2 - devtmpfs devtmpfs rw,size=12334524k,nr_inodes=3083631,mode=755
26 24 0:24 / /dev/pts rw,relatime - devpts devpts rw,mode=600,ptmxmode=000
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,resv_strict
29 26 0:26 / /dev/pts rw,relatime - devpts other rw,mode=620
40 27 0:52 / /mnt/nfs4 rw,nosuid,relatime shared:220 - nfs4 10.0.0.1:/export rw,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.2,local_lock=none,addr=10.0.0.1
41 27 0:53 / /mnt/nfs3 rw,relatime shared:221 master:3 - nfs [fd00::1]:/a\040b rw,vers=3,rsize=65536,wsize=65536,hard,nolock,proto=tcp6,mountproto=tcp6,local_lock=all
42 27 254:0 /srv/data /mnt/with\040space\011tab\134slash rw,relatime - ext4 /dev/vda rw,discard
43 27 0:33 /@home /home rw,noatime shared:31 - btrfs /dev/nvme0n1p2 rw,ssd,space_cache=v2,subvolid=257,subvol=/@home
44 27 0:60 / /auto rw,relatime shared:40 - autofs /etc/auto.master rw,fd=7,pgrp=612,timeout=300
45 27 0:61 / /merged rw,relatime - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/u,workdir=/w
46 27 0:62 / /empty rw - tmpfs  rw,size=1k
50 27 0:70 / /a/b rw,relatime - tmpfs hidden rw
51 27 0:71 / /a rw,relatime - tmpfs above rw
";

    fn source_at(path: &str) -> String {
        mount_of(&parse(RECORDED), Path::new(path)).unwrap().source.clone()
    }

    #[test]
    fn all_recorded_lines_are_understood() {
        let mounts = parse(RECORDED);
        assert_eq!(mounts.len(), RECORDED.lines().count());
        let nfs4 = mounts.iter().find(|m| m.id == 40).unwrap();
        assert_eq!((nfs4.file_system.as_str(), nfs4.source.as_str()), ("nfs4", "10.0.0.1:/export"));
        assert_eq!((nfs4.device.as_str(), nfs4.parent), ("0:52", 27));
        assert!(
            nfs4.all_options().starts_with("rw,nosuid,relatime,vers=4.2,rsize=1048576,"),
            "{}",
            nfs4.all_options()
        );
        assert_eq!(nfs4.line, RECORDED.lines().nth(5).unwrap());
        let nfs3 = mounts.iter().find(|m| m.id == 41).unwrap();
        assert_eq!(nfs3.source, "[fd00::1]:/a b");
        let empty = mounts.iter().find(|m| m.id == 46).unwrap();
        assert_eq!((empty.source.as_str(), empty.super_options.as_str()), ("", "rw,size=1k"));
    }

    #[test]
    fn paths_are_found_on_their_mounts() {
        assert_eq!(source_at("/"), "/dev/vda");
        assert_eq!(source_at("/mnt/nfs4/dir/file"), "10.0.0.1:/export");
        assert_eq!(source_at("/mnt/nfs40"), "/dev/vda");
        assert_eq!(source_at("/dev/null"), "devtmpfs");
        assert_eq!(source_at("/dev/pts/0"), "other", "the last of stacked mounts");
        assert_eq!(source_at("/a/b/c"), "above", "a mount is hidden by a later one above it");
        let mounts = parse(RECORDED);
        let bind = mount_of(&mounts, Path::new("/mnt/with space\ttab\\slash/x")).unwrap();
        assert_eq!((bind.id, bind.root.as_path()), (42, Path::new("/srv/data")));
    }

    #[test]
    fn a_chroot_may_not_list_its_root() {
        let mounts = parse("60 59 0:21 / /proc rw - proc proc rw\n");
        assert_eq!(mount_of(&mounts, Path::new("/proc/self")).map(|m| m.id), Some(60));
        assert_eq!(mount_of(&mounts, Path::new("/data")), None);
    }

    #[test]
    fn broken_lines_and_circles_do_no_harm() {
        for broken in ["", "27 1 254:0 / /", "x 1 0:1 / / rw - ext4 a rw", "27 1 0:1 / / rw - ext4"] {
            assert_eq!(Mount::parse(broken), None, "{broken:?}");
        }
        let circle = "1 9 0:1 / / rw - a a rw\n2 1 0:1 / /x rw - b b rw\n3 2 0:1 / /x rw - c c rw\n2 3 0:1 / /x rw - d d rw\n";
        assert!(mount_of(&parse(circle), Path::new("/x")).is_some());
    }

    #[test]
    fn the_mounts_of_this_process_are_understood() {
        let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mounts = parse(&text);
        assert_eq!(mounts.len(), text.lines().count());
        assert_eq!(mount_of(&mounts, Path::new("/proc/self")).unwrap().file_system, "proc");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "([0-9:/ \\\\a-c-]|\n){0,80}") {
            let mounts = parse(&text);
            let _ = mount_of(&mounts, Path::new("/a/b"));
        }

        #[test]
        fn escapes_are_undone(name in "[ -~\t\n]{0,20}") {
            let escape = |c: char| match c {
                ' ' | '\t' | '\n' | '\\' => format!("\\{:03o}", c as u32),
                c => c.to_string(),
            };
            let escaped: String = name.chars().map(escape).collect();
            prop_assert_eq!(unescaped(&escaped), OsString::from(name));
        }
    }
}
