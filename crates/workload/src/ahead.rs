//! Precedence of a worker's thread at the moment of a start: on hosts with more workers than processors each would else wait
//! until the scheduler takes the processor from another one, which can be milliseconds.

/// Real-time scheduling, at the lowest priority of it, of the thread that took it, until it is dropped there.
#[derive(Debug)]
pub(crate) struct Ahead {
    taken: bool,
}

impl Ahead {
    /// Goes before other threads from now on, where that is allowed (`CAP_SYS_NICE`, or the limit `RLIMIT_RTPRIO`) and
    /// nobody has chosen another scheduling for this thread. It must only sleep, or spin for microseconds, meanwhile.
    pub(crate) fn take() -> Self {
        // SAFETY: it only asks for the policy of the calling thread.
        let ordinary = unsafe { libc::sched_getscheduler(0) } == libc::SCHED_OTHER;
        Self { taken: ordinary && set(libc::SCHED_FIFO, 1) }
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if self.taken {
            // Less is always allowed.
            set(libc::SCHED_OTHER, 0);
        }
    }
}

fn set(policy: libc::c_int, sched_priority: libc::c_int) -> bool {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the pointer is to parameters that live during the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_given_back_and_nested_ones_leave_it_alone() {
        // SAFETY: it only asks for the policy of the calling thread.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let seen = std::thread::spawn(move || {
            let before = policy();
            let outer = Ahead::take();
            let during = policy();
            drop(Ahead::take());
            let still = policy();
            let taken = outer.taken;
            drop(outer);
            (before, taken, during, still, policy())
        });
        let (before, taken, during, still, after) = seen.join().unwrap();
        assert_eq!((before, after), (libc::SCHED_OTHER, libc::SCHED_OTHER));
        assert_eq!(during, if taken { libc::SCHED_FIFO } else { libc::SCHED_OTHER });
        assert_eq!(still, during);
    }
}
