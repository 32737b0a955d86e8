//! The disk driver of user-mode Linux loses a wake-up now and then, as its network driver does: requests that are done are not
//! looked at until the next one is. When all that it takes at a time (64) wait like that, there is no next one, and the
//! machine's file system stands still forever. All disks share one channel, so that reading another disk wakes it up.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Once;
use std::thread;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

/// The size of the other disk, in bytes.
pub const WAKING_DISK: u64 = 1 << 20;

/// Where the machine has it. QEMU's machines have none.
const DEVICE: &str = "/dev/ubdb";

/// The longest that a request may wait for a wake-up. A hundred small reads a second cost next to nothing.
const EVERY: Duration = Duration::from_millis(10);

/// Begins to wake the driver up, once, where there is a disk for it.
pub(in crate::guest) fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Ok(disk) = File::open(DEVICE) {
            // Without a thread the machine works as it does without the cure.
            let _ = thread::Builder::new().name("wake-disk".into()).spawn(move || {
                // One page at a time.
                let _ = fadvise(&disk, 0, None, Advice::Random);
                loop {
                    wake(&disk);
                    thread::sleep(EVERY);
                }
            });
        }
    });
}

/// Reads from the disk itself, not from the page cache. Whether it worked does not matter.
fn wake(disk: &File) {
    let _ = fadvise(disk, 0, None, Advice::DontNeed);
    let _ = disk.read_at(&mut [0; 512], 0);
}
