//! Precedence of the wire's thread over those of clients and servers, as a real network takes no processor from them.

use std::io;

/// Gives the calling thread real-time scheduling, at the lowest priority of it: it runs whenever it has something to do. What it
/// starts does not inherit it.
///
/// # Errors
/// Without the right to (`CAP_SYS_NICE`, or the limit `RLIMIT_RTPRIO`).
pub(super) fn take() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is to parameters that live during the call.
    match unsafe {
        libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_taken_or_refused_and_only_for_this_thread() {
        // SAFETY: it only asks for the policy of the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) } & !libc::SCHED_RESET_ON_FORK;
        let before = policy();
        let (result, inside) = std::thread::spawn(move || (take(), policy())).join().unwrap();
        match result {
            Ok(()) => assert_eq!(inside, libc::SCHED_RR),
            Err(error) => assert_eq!((error.kind(), inside), (io::ErrorKind::PermissionDenied, before)),
        }
        assert_eq!(policy(), before);
    }
}
