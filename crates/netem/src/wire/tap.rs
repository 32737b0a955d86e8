//! TAP devices: what is sent through them is read as Ethernet frames, and what is written to them arrives.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open};

/// Where TAP devices are made.
pub(crate) const DEVICE: &str = "/dev/net/tun";

// From linux/if_tun.h.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const TUN_F_CSUM: libc::c_ulong = 1;
const TUN_F_TSO4: libc::c_ulong = 2;
const TUN_F_TSO6: libc::c_ulong = 4;
const TUN_F_TSO_ECN: libc::c_ulong = 8;
const TUN_F_USO4: libc::c_ulong = 32;
const TUN_F_USO6: libc::c_ulong = 64;

/// A TAP device; it is gone when this is dropped. Reading and writing never block.
#[derive(Debug)]
pub(super) struct Tap {
    file: OwnedFd,
}

impl Tap {
    /// Makes one in the namespace of the calling thread.
    pub(super) fn new(name: &str) -> io::Result<Self> {
        let file = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK, Mode::empty())?;
        attach(&file, name)?;
        Ok(Self { file })
    }

    /// Sets whether the kernel hands over segments of a flow as one large frame, and leaves checksums of what never
    /// saw a real wire undone.
    pub(super) fn set_large_frames(&self, large: bool) -> io::Result<()> {
        const TCP: libc::c_ulong = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
        let sets: &[libc::c_ulong] = if large {
            // Kernels before 6.2 do not know large frames of UDP.
            &[TCP | TUN_F_USO4 | TUN_F_USO6, TCP]
        } else {
            &[TUN_F_CSUM]
        };
        let mut result = Ok(());
        for set in sets {
            // SAFETY: TUNSETOFFLOAD takes a number.
            result = match unsafe { libc::ioctl(self.file.as_raw_fd(), TUNSETOFFLOAD as _, *set) } {
                -1 => Err(io::Error::last_os_error()),
                _ => return Ok(()),
            };
        }
        result
    }
}

/// Makes a TAP device in the namespace of the calling thread that stays as long as the namespace: for a machine that
/// opens it.
///
/// # Errors
/// When there is no device file for it, or the process may not.
pub fn make_lasting(name: &str) -> io::Result<()> {
    const TUNSETPERSIST: libc::c_ulong = 0x4004_54cb;
    let tap = Tap::new(name)?;
    // SAFETY: TUNSETPERSIST takes a number.
    match unsafe { libc::ioctl(tap.file.as_raw_fd(), TUNSETPERSIST as _, 1) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Makes a TAP device of this name in the namespace in which the file (of [`DEVICE`]) was opened. It is gone when the
/// file is closed. Allocates nothing.
pub(crate) fn attach(file: &impl AsFd, name: &str) -> io::Result<()> {
    // SAFETY: all zeros are a valid `ifreq`: an empty name and numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes a `struct ifreq`, which `request` is.
    match unsafe { libc::ioctl(file.as_fd().as_raw_fd(), TUNSETIFF as _, &raw mut request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
