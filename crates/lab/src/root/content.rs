//! What guests have besides their kernel.

use std::process::Command;

use super::{Manifest, RootError};
use crate::packages::Trees;

/// A program of a package.
pub(crate) struct Needed {
    pub(crate) program: &'static str,
    pub(crate) package: &'static str,
    /// Where guests have it.
    directory: &'static str,
}

impl Needed {
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.directory, self.program)
    }
}

const fn needed(package: &'static str, directory: &'static str, program: &'static str) -> Needed {
    Needed { program, package, directory }
}

/// In the order of their packages.
pub(crate) const NEEDED: &[Needed] = &[
    needed("busybox-static", "/bin", "busybox"),
    needed("iproute2", "/sbin", "ip"),
    needed("iproute2", "/sbin", "tc"),
    needed("kmod", "/bin", "kmod"),
    needed("mount", "/bin", "mount"),
    needed("mount", "/bin", "umount"),
    needed("nfs-common", "/sbin", "mount.nfs"),
    needed("nfs-common", "/sbin", "rpc.statd"),
    needed("nfs-common", "/sbin", "sm-notify"),
    needed("nfs-common", "/sbin", "nfsstat"),
    needed("nfs-kernel-server", "/sbin", "exportfs"),
    needed("nfs-kernel-server", "/sbin", "rpc.mountd"),
    needed("nfs-kernel-server", "/sbin", "rpc.nfsd"),
    needed("nfs-kernel-server", "/sbin", "nfsdcld"),
    needed("rpcbind", "/sbin", "rpcbind"),
    needed("rpcbind", "/sbin", "rpcinfo"),
    needed("e2fsprogs", "/sbin", "mkfs.ext4"),
    needed("e2fsprogs", "/sbin", "tune2fs"),
    needed("xfsprogs", "/sbin", "mkfs.xfs"),
    // Studies look by it whether their directory is free.
    needed("util-linux", "/bin", "mountpoint"),
];

/// Those above come before those below.
pub(crate) const DIRECTORIES: &[&str] = &[
    "bin",
    "dev",
    "etc",
    "export",
    "host",
    "lab",
    "lib",
    "lib/modules",
    "mnt",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "tmp",
    "usr",
    "usr/bin",
    "usr/sbin",
    "usr/lib",
    "var",
    "var/lib",
    "var/lib/nfs",
    "var/lib/nfs/nfsdcld",
    "var/lib/nfs/rpc_pipefs",
    "var/lib/nfs/sm",
    "var/lib/nfs/sm.bak",
    "var/lib/nfs/v4recovery",
    "var/log",
];

/// Where links are, and where they lead.
pub(crate) const LINKS: &[(&str, &str)] = &[
    ("benchmaster", "/lab/benchmaster"),
    ("etc/mtab", "/proc/mounts"),
    ("var/run", "/run"),
    ("sbin/depmod", "/bin/kmod"),
    ("sbin/insmod", "/bin/kmod"),
    ("sbin/lsmod", "/bin/kmod"),
    ("sbin/modinfo", "/bin/kmod"),
    ("sbin/modprobe", "/bin/kmod"),
    ("sbin/rmmod", "/bin/kmod"),
    ("sbin/mount.nfs4", "mount.nfs"),
    ("sbin/umount.nfs", "mount.nfs"),
    ("sbin/umount.nfs4", "mount.nfs"),
];

/// Files and what is in them.
pub(crate) const FILES: &[(&str, &str)] = &[
    ("init", include_str!("init")),
    (
        "etc/passwd",
        "root:x:0:0:root:/root:/bin/sh\n\
         _rpc:x:101:65534::/run/rpcbind:/bin/false\n\
         statd:x:102:65534::/var/lib/nfs:/bin/false\n\
         nobody:x:65534:65534:nobody:/:/bin/false\n",
    ),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/hosts", "127.0.0.1 localhost\n"),
    (
        "etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\nrpc: files\n",
    ),
    ("etc/protocols", "icmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\n"),
    ("etc/services", "sunrpc 111/tcp portmapper\nsunrpc 111/udp portmapper\nnfs 2049/tcp\nnfs 2049/udp\n"),
    (
        "etc/rpc",
        "portmapper 100000 rpcbind\nnfs 100003 nfsprog\nmountd 100005 mount\nnlockmgr 100021\nstatus 100024\nnfs_acl 100227\n",
    ),
    (
        "etc/netconfig",
        "udp tpi_clts v inet udp - -\ntcp tpi_cots_ord v inet tcp - -\n\
         udp6 tpi_clts v inet6 udp - -\ntcp6 tpi_cots_ord v inet6 tcp - -\n\
         rawip tpi_raw - inet - - -\nlocal tpi_cots_ord - loopback - - -\n",
    ),
    // What machines of QEMU find their disks and networks with; the kernel in user mode has it built in.
    ("etc/modules", "virtio_pci\nvirtio_blk\nvirtio_net\n"),
    ("etc/exports", ""),
    ("etc/nfs.conf", ""),
    ("var/lib/nfs/etab", ""),
    ("var/lib/nfs/rmtab", ""),
    ("var/lib/nfs/state", ""),
];

/// Modules of the kernel that guests may need; those that they need come with them, those that are built in are not missed.
pub(crate) const MODULES: &[&str] = &[
    // Client and server.
    "nfs",
    "nfsv3",
    "nfsv4",
    "nfsd",
    "lockd",
    "sunrpc",
    "rpcsec_gss_krb5",
    "nfs_layout_nfsv41_files",
    "nfs_layout_flexfiles",
    // Networks in guests.
    "sch_netem",
    "sch_tbf",
    "sch_htb",
    "sch_fq",
    "sch_fq_codel",
    "sch_ingress",
    "cls_u32",
    "cls_matchall",
    "act_mirred",
    "ifb",
    "veth",
    "bridge",
    "tun",
    "tcp_bbr",
    // File systems and disks.
    "loop",
    "ext4",
    "xfs",
    "crc32c_generic",
    "libcrc32c",
    // Machines of QEMU.
    "virtio_pci",
    "virtio_net",
    "virtio_blk",
    "button",
];

/// The programs of busybox, without those that are in the root already.
pub(crate) fn applets(trees: &Trees, manifest: &Manifest) -> Result<Vec<String>, RootError> {
    let Some(busybox) = trees.program("busybox") else {
        return Err(RootError::Missing {
            programs: vec!["busybox".into()],
            packages: vec!["busybox-static".into()],
        });
    };
    let output = Command::new(&busybox).arg("--list").output();
    let output = output.map_err(RootError::file(&busybox))?;
    let taken = |name: &str| {
        let ends = |path: &str| path.rsplit('/').next() == Some(name);
        manifest.keys().any(|path| ends(path)) || LINKS.iter().any(|(path, _)| ends(path))
    };
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|name| !name.is_empty() && !taken(name))
        .map(str::to_owned)
        .collect())
}
