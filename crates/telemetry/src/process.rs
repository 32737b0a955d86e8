//! What this process and its threads used.

use std::fs;
use std::mem::MaybeUninit;

use crate::host::kib_field;

/// Processor time of this process, all its threads together, in nanoseconds: in user mode and in the kernel.
pub fn cpu_time() -> (u64, u64) {
    resource_usage(libc::RUSAGE_SELF)
}

/// Processor time of the calling thread in nanoseconds: in user mode and in the kernel.
pub fn thread_cpu_time() -> (u64, u64) {
    resource_usage(libc::RUSAGE_THREAD)
}

/// The most memory this process has had resident, in bytes (`VmHWM`). `None` when the system does not tell.
pub fn peak_memory_bytes() -> Option<u64> {
    kib_field(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM")
}

/// Processor time of those threads of this process that now run and whose name `wanted` says yes to (the kernel cuts names
/// to 15 bytes), user mode and kernel together, in nanoseconds. `None` when the system does not tell.
pub fn named_threads_cpu_ns(wanted: impl Fn(&str) -> bool) -> Option<u64> {
    let mut sum = 0;
    for entry in fs::read_dir("/proc/self/task").ok()?.flatten() {
        let path = entry.path();
        // A thread may end meanwhile.
        let Ok(name) = fs::read_to_string(path.join("comm")) else { continue };
        if wanted(name.trim_end()) {
            let Ok(text) = fs::read_to_string(path.join("schedstat")) else { continue };
            sum += text.split_whitespace().next()?.parse::<u64>().ok()?;
        }
    }
    Some(sum)
}

fn resource_usage(who: libc::c_int) -> (u64, u64) {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` points to writable memory of the size of `rusage`, which getrusage fills or leaves alone.
    unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: `rusage` is a plain struct of integers, for which all zero bytes are valid as well. The call cannot
    // fail: both values of `who` exist since Linux 2.6.26, and the pointer is valid.
    let usage = unsafe { usage.assume_init() };
    (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
}

fn nanoseconds(time: libc::timeval) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    use super::*;

    fn spin(length: Duration) {
        let start = Instant::now();
        while start.elapsed() < length {
            black_box((0..1_000u64).sum::<u64>());
        }
    }

    fn total((user, system): (u64, u64)) -> u64 {
        user + system
    }

    #[test]
    fn work_in_another_thread_counts_for_the_process_alone() {
        let (process, thread) = (total(cpu_time()), total(thread_cpu_time()));
        let other = std::thread::spawn(|| {
            let before = total(thread_cpu_time());
            while total(thread_cpu_time()) - before < 50_000_000 {
                spin(Duration::from_millis(5));
            }
        });
        other.join().unwrap();
        assert!(total(cpu_time()) - process >= 50_000_000);
        assert!(total(thread_cpu_time()) - thread < 40_000_000);
    }

    #[test]
    fn threads_are_found_by_name() {
        let spinner = std::thread::Builder::new().name("spinner-7".into());
        let (sender, done) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = spinner
            .spawn(move || {
                spin(Duration::from_millis(30));
                sender.send(()).unwrap();
                let _ = ended.recv();
            })
            .unwrap();
        done.recv().unwrap();
        let Some(found) = named_threads_cpu_ns(|name| name.starts_with("spinner-")) else {
            return;
        };
        assert_eq!(named_threads_cpu_ns(|name| name == "nobody"), Some(0));
        drop(end);
        thread.join().unwrap();
        assert!(found >= 1_000_000, "{found}");
    }

    #[test]
    fn peak_memory_grows_with_use() {
        const SIZE: usize = 64 << 20;
        let before = peak_memory_bytes().unwrap();
        drop(black_box(vec![1u8; SIZE]));
        let after = peak_memory_bytes().unwrap();
        assert!(after >= SIZE as u64 && after >= before, "{before} {after}");
    }
}
