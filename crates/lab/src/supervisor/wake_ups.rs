//! Traffic against lost wake-ups: the network driver of user-mode Linux misses about one of a thousand, and what it
//! was to be woken for then waits for the next packet, which may be a retransmission 200 ms later.
//!
//! A small frame goes to each interface of each machine every few milliseconds, straight into its TAP device: it
//! passes neither a bridge nor the wire, and its protocol is one that the guest's kernel drops at once.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Weak;
use std::thread;
use std::time::{Duration, Instant};

use benchmaster_netem::namespace::{MacAddress, Namespace};

/// Time between two frames to an interface.
pub(super) const INTERVAL: Duration = Duration::from_millis(5);

/// The first of the protocol numbers that IEEE 802 leaves to local experiments.
const PROTOCOL: u16 = 0x88b5;
/// Who sends them.
const SENDER: MacAddress = MacAddress([0x02, 0x62, 0x6d, 2, 0, 0]);

/// A machine's interface.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    pub(super) tap: String,
    pub(super) mac: MacAddress,
}

/// Sends frames to interfaces until the namespace is dropped.
pub(super) fn start(namespace: &std::sync::Arc<Namespace>, interfaces: &[Interface]) -> io::Result<()> {
    let found = namespace.interfaces().map_err(io::Error::other)?;
    let mut frames = Vec::new();
    for Interface { tap, mac } in interfaces {
        let index = found.index(tap).map_err(io::Error::other)?;
        frames.push((address(index, *mac), frame(*mac)));
    }
    let socket = namespace.run(packet_socket).map_err(io::Error::other)??;
    let alive: Weak<Namespace> = std::sync::Arc::downgrade(namespace);
    thread::Builder::new().name("wake-ups".into()).spawn(move || {
        let mut next = Instant::now();
        while alive.strong_count() > 0 {
            for (address, frame) in &frames {
                send(&socket, address, frame);
            }
            next += INTERVAL;
            let now = Instant::now();
            // After a standstill they are not made up for.
            next = next.max(now);
            thread::sleep(next - now);
        }
    })?;
    Ok(())
}

fn frame(to: MacAddress) -> [u8; 60] {
    let mut frame = [0; 60];
    frame[..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&SENDER.0);
    frame[12..14].copy_from_slice(&PROTOCOL.to_be_bytes());
    frame
}

/// A socket that sends whole frames and receives none.
fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: it takes three numbers.
    match unsafe {
        libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, 0)
    } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the kernel has just given the descriptor, and nothing else has it.
        number => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
    }
}

fn address(index: i32, to: MacAddress) -> libc::sockaddr_ll {
    let mut hardware = [0; 8];
    hardware[..6].copy_from_slice(&to.0);
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: PROTOCOL.to_be(),
        sll_ifindex: index,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 6,
        sll_addr: hardware,
    }
}

/// Sends a frame. What cannot be sent is not: the machine may have ended, or not begun, or not keep up.
fn send(socket: &OwnedFd, address: &libc::sockaddr_ll, frame: &[u8]) {
    // SAFETY: frame and address live during the call, with the lengths given.
    unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
            (&raw const *address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        );
    }
}
