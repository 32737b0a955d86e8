//! What a server has to remember of its clients over a power cut: /var/lib/nfs, on a disk of its own.
//!
//! That disk is an honest one without volatile cache: what is tested is the disk that is exported.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use super::client;
use super::knfsd::waking;
use super::tools::{self, SHORT, ToolError};

/// The size of the disk, in bytes.
pub const STATE_DISK: u64 = 16 << 20;

/// Where machines of user-mode Linux have it: behind the exported one and the one that wakes the driver up.
pub const STATE_DEVICE: &str = "/dev/ubdc";

const AT: &str = "/var/lib/nfs";

/// Mounts it, at the first boot with what the root has there.
///
/// # Errors
/// [`ToolError`]
pub(super) fn mount(device: &str) -> Result<(), ToolError> {
    // Nothing else reads from a disk yet.
    waking::start();
    // The log of the exported disk cannot tell whose a flush is. This one needs none.
    let name = device.trim_start_matches("/dev/");
    tools::write(format!("/sys/block/{name}/queue/write_cache"), "write through")?;
    client::modules(&["ext4"])?;
    let mount = |at| tools::run("mount", &["-t", "ext4", device, at], SHORT).map(drop);
    if is_new(device) {
        const NEW: &str = "/run/state";
        tools::run("mkfs.ext4", &["-q", "-F", "-E", "nodiscard", device], SHORT)?;
        tools::directory(NEW)?;
        mount(NEW)?;
        tools::run("cp", &["-a", &format!("{AT}/."), NEW], SHORT)?;
        tools::run("umount", &[NEW], SHORT)?;
        // It is empty.
        let _ = fs::remove_dir(NEW);
    }
    mount(AT)
}

/// Whether no file system was made on a disk.
fn is_new(device: &str) -> bool {
    let mut magic = [0; 2];
    let read = File::open(device).and_then(|disk| disk.read_exact_at(&mut magic, 1024 + 56));
    read.is_ok() && magic != [0x53, 0xef]
}
