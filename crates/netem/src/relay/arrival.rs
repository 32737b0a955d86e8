//! Receiving with the time at which the kernel got the data: the delay then counts from there, and not from when this
//! thread was woken and came to it.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Times further back are not believed: somebody set the clock.
const OLDEST: Duration = Duration::from_secs(1);

/// Asks the kernel to note when data arrive on the socket.
///
/// # Errors
/// When it knows no such thing; [`receive`] then says when it was called.
pub(super) fn note_arrivals(socket: &impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the pointer is to an integer that lives during the call, and its size is given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives into `buffer`; says how much, and when the last of it arrived: not earlier than it did, and not before
/// `earliest`.
///
/// # Errors
/// Those of `recvmsg`.
pub(super) fn receive(
    socket: &impl AsFd,
    buffer: &mut [u8],
    earliest: Instant,
) -> io::Result<(usize, Instant)> {
    // Room for more than the one message expected, aligned as its header.
    let mut control = [0u64; 16];
    let mut slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeros are a valid `msghdr`: null pointers with no lengths.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut slice;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `message` points to one slice and to control memory, both writable for the lengths given with them, and
    // both outlive the call; any bytes are valid there.
    let len = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, 0) };
    // The negative value is the only one that does not fit.
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    // The wall clock first: should the thread be interrupted between the two, the arrival is late and not early.
    let wall = SystemTime::now();
    let now = Instant::now();
    #[allow(clippy::unnecessary_cast, reason = "the C library musl has it in 32 bits")]
    let filled = message.msg_controllen as usize / size_of::<u64>();
    let arrived = time_of(&control[..filled.min(control.len())])
        .and_then(|arrived| wall.duration_since(arrived).ok())
        .filter(|age| *age <= OLDEST)
        .and_then(|age| now.checked_sub(age))
        .unwrap_or(now);
    Ok((len, arrived.max(earliest).min(now)))
}

/// The time in a control message of the kernel.
fn time_of(control: &[u64]) -> Option<SystemTime> {
    // Length, level and type, seconds, nanoseconds (`struct cmsghdr`, `struct timespec`).
    let [_, kind, seconds, nanoseconds, ..] = *control else { return None };
    let [a, b, c, d, e, f, g, h] = kind.to_ne_bytes();
    let (level, kind) = (i32::from_ne_bytes([a, b, c, d]), i32::from_ne_bytes([e, f, g, h]));
    if level != libc::SOL_SOCKET || kind != libc::SCM_TIMESTAMPNS {
        return None;
    }
    UNIX_EPOCH.checked_add(Duration::new(seconds, u32::try_from(nanoseconds).ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};
    use std::thread::sleep;

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (sender, listener.accept().unwrap().0)
    }

    #[test]
    fn data_that_wait_arrived_before() {
        let (mut sender, receiver) = pair();
        note_arrivals(&receiver).unwrap();
        let mut buffer = [0; 10];
        // The kernel may begin to note times a moment after it was asked.
        for round in 0..50 {
            let before = Instant::now();
            sender.write_all(b"abc").unwrap();
            let sent = Instant::now();
            sleep(Duration::from_millis(20));
            let (len, arrived) = receive(&receiver, &mut buffer, before - OLDEST).unwrap();
            assert_eq!(&buffer[..len], b"abc");
            assert!(arrived >= before, "{:?} before it was sent", before - arrived);
            if arrived < sent + Duration::from_millis(20) {
                return;
            }
            assert!(round < 49, "the time of arrival is that of receiving");
        }
    }

    #[test]
    fn without_notes_it_is_the_time_of_receiving() {
        let (mut sender, receiver) = pair();
        sender.write_all(b"abc").unwrap();
        let before = Instant::now();
        let (len, arrived) = receive(&receiver, &mut [0; 10], before - OLDEST).unwrap();
        assert_eq!(len, 3);
        assert!(arrived >= before && arrived <= Instant::now());
    }

    #[test]
    fn the_earliest_time_bounds_it() {
        let (mut sender, receiver) = pair();
        note_arrivals(&receiver).unwrap();
        sender.write_all(b"abc").unwrap();
        sleep(Duration::from_millis(1));
        let earliest = Instant::now();
        assert!(receive(&receiver, &mut [0; 10], earliest).unwrap().1 >= earliest);
    }

    #[test]
    fn errors_and_ends_are_told() {
        let (sender, receiver) = pair();
        receiver.set_nonblocking(true).unwrap();
        let now = Instant::now();
        let error = receive(&receiver, &mut [0; 10], now).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(sender);
        receiver.set_nonblocking(false).unwrap();
        assert_eq!(receive(&receiver, &mut [0; 10], now).unwrap().0, 0);
    }

    #[test]
    fn other_control_messages_are_no_times() {
        let header = |level: i32, kind: i32| {
            let ([a, b, c, d], [e, f, g, h]) = (level.to_ne_bytes(), kind.to_ne_bytes());
            u64::from_ne_bytes([a, b, c, d, e, f, g, h])
        };
        let time = header(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        assert_eq!(time_of(&[32, time, 7, 8]), Some(UNIX_EPOCH + Duration::new(7, 8)));
        assert_eq!(time_of(&[32, header(libc::SOL_SOCKET, libc::SCM_RIGHTS), 7, 8]), None);
        assert_eq!(time_of(&[32, time, 7, u64::MAX]), None);
        assert_eq!(time_of(&[32, time, u64::MAX, 8]), None);
        assert_eq!(time_of(&[32, time, 7]), None);
        assert_eq!(time_of(&[]), None);
    }
}
