//! Precedence of the wire's thread over those of clients and servers, as a real network takes no processor from them.

use std::io;

/// Gives the calling thread real-time scheduling, at the lowest priority of it: it runs whenever it has something to
/// do. What it starts does not inherit it.
///
/// # Errors
/// Without the right to (`CAP_SYS_NICE`, or the limit `RLIMIT_RTPRIO`).
pub(super) fn take() -> io::Result<()> {
    let (policy, priority): (libc::c_int, libc::c_int) = (libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1);
    // By the kernel's call: that of the C library musl does nothing, because it would have to speak of the whole
    // process. What the kernel calls `struct sched_param` is a priority alone. SAFETY: the pointer is to a priority
    // that lives during the call.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_taken_or_refused_and_only_for_this_thread() {
        let policy = || {
            // SAFETY: it only asks for the policy of the calling thread.
            let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
            policy & !i64::from(libc::SCHED_RESET_ON_FORK)
        };
        let before = policy();
        let (result, inside) = std::thread::spawn(move || (take(), policy())).join().unwrap();
        match result {
            Ok(()) => assert_eq!(inside, i64::from(libc::SCHED_RR)),
            Err(error) => assert_eq!((error.kind(), inside), (io::ErrorKind::PermissionDenied, before)),
        }
        assert_eq!(policy(), before);
    }
}
