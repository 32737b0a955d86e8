//! Work on many files by several threads at once.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

/// More threads than this gain little, and would disturb others.
pub(crate) const THREADS: usize = 8;

/// Bytes handled at a time.
pub(crate) const CHUNK: usize = 1 << 20;

/// Does `work` for every number below `count` on all processors, in no certain order, each time with a buffer that is made as
/// long as it is needed, at most [`CHUNK`] bytes, and calls `tick` on this thread about ten times a second meanwhile.
///
/// # Errors
/// The first error of `work`; what was not begun by then is left out.
pub(crate) fn for_each<E: Send>(
    count: u64,
    work: impl Fn(u64, &mut Vec<u8>) -> Result<(), E> + Sync,
    tick: &mut dyn FnMut(),
) -> Result<(), E> {
    let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
    let run = || {
        let mut chunk = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            work(number, &mut chunk).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
        }
        Ok(())
    };
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
    let threads = processors.min(THREADS as u64).min(count);
    std::thread::scope(|scope| {
        let (alive, ended) = channel::<()>();
        let start = |_| {
            let alive = alive.clone();
            let body = move || {
                let _alive = alive;
                run()
            };
            Builder::new().spawn_scoped(scope, body).ok()
        };
        // Fewer threads than wanted only take longer; without any this one does the work.
        let started: Vec<ScopedJoinHandle<'_, Result<(), E>>> = (0..threads).filter_map(start).collect();
        drop(alive);
        if started.is_empty() {
            return run();
        }
        while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
            tick();
        }
        started.into_iter().map(join).fold(Ok(()), Result::and)
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    #[test]
    fn everything_is_done_once() {
        let done = Mutex::new(Vec::new());
        for_each(
            1000,
            |n, _| -> Result<(), ()> { done.lock().map(|mut done| done.push(n)).map_err(drop) },
            &mut || {},
        )
        .unwrap();
        let done = done.into_inner().unwrap();
        assert_eq!((done.len(), done.into_iter().collect::<BTreeSet<_>>().len()), (1000, 1000));
    }

    #[test]
    fn an_error_ends_the_work() {
        let done = AtomicU64::new(0);
        let work = |n, _: &mut Vec<u8>| {
            done.fetch_add(1, Ordering::Relaxed);
            if n == 10 { Err("ten") } else { Ok(()) }
        };
        assert_eq!(for_each(1 << 40, work, &mut || {}), Err("ten"));
        assert!(done.into_inner() < 1 << 30);
        assert_eq!(for_each(0, |_, _| Err("none"), &mut || {}), Ok(()));
    }
}
