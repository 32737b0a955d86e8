//! Precedence of a worker's thread at the moment of a start: on hosts with more workers than processors each would else wait
//! until the scheduler takes the processor from another one, which can be milliseconds.

/// Real-time scheduling, at the lowest priority of it, of the thread that took it, until it is dropped there.
#[derive(Debug)]
pub(crate) struct RealTime {
    taken: bool,
}

impl RealTime {
    /// Goes before other threads from now on, where that is allowed (`CAP_SYS_NICE`, or the limit `RLIMIT_RTPRIO`) and
    /// nobody has chosen another scheduling for this thread. It must only sleep, or spin for microseconds, meanwhile.
    pub(crate) fn take() -> Self {
        let ordinary = policy() == libc::c_long::from(libc::SCHED_OTHER);
        Self { taken: ordinary && set(libc::SCHED_FIFO, 1) }
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        if self.taken {
            // Less is always allowed.
            set(libc::SCHED_OTHER, 0);
        }
    }
}

/// The policy of the calling thread, or -1. By the kernel's call: that of the C library musl does nothing, because it would have
/// to speak of the whole process.
fn policy() -> libc::c_long {
    // SAFETY: it only asks for the policy of the calling thread.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
}

/// Sets the policy of the calling thread. What the kernel calls `struct sched_param` is a priority alone.
fn set(policy: libc::c_int, priority: libc::c_int) -> bool {
    // SAFETY: the pointer is to a priority that lives during the call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_back_and_nested_ones_leave_it_alone() {
        let [fifo, other] = [libc::SCHED_FIFO, libc::SCHED_OTHER].map(libc::c_long::from);
        let seen = std::thread::spawn(move || {
            let before = policy();
            let outer = RealTime::take();
            let during = policy();
            drop(RealTime::take());
            let still = policy();
            let taken = outer.taken;
            drop(outer);
            (before, taken, during, still, policy())
        });
        let (before, taken, during, still, after) = seen.join().unwrap();
        assert_eq!((before, after), (other, other));
        assert_eq!(during, if taken { fifo } else { other });
        assert_eq!(still, during);
    }
}
