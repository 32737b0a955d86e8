//! Wakers that are numbers: cloning one costs nothing, and waking a task puts its number into a list of its thread.
//!
//! A waker holds no pointer: its data are the numbers of reactor and task. Woken on another thread than the
//! reactor's, it does nothing ([`super::Remote`] is for that).

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{RawWaker, RawWakerVTable, Waker};

/// Set in the number of a task that is not a background task.
pub(super) const FOREGROUND: u32 = 1 << 31;

thread_local! {
    /// Reactor and task.
    static READY: RefCell<Vec<(u32, u32)>> = const { RefCell::new(Vec::new()) };
}

/// A number for a new reactor.
pub(super) fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Puts a task into this thread's list.
pub(super) fn push(reactor: u32, task: u32) {
    // Fails only while the thread ends.
    let _ = READY.try_with(|ready| ready.borrow_mut().push((reactor, task)));
}

/// Moves the tasks of `reactor` into `turn`, which is emptied before.
pub(super) fn take(reactor: u32, turn: &mut Vec<u32>) {
    turn.clear();
    READY.with(|ready| {
        ready.borrow_mut().retain(|&(of, task)| {
            if of == reactor {
                turn.push(task);
            }
            of != reactor
        });
    });
}

/// Whether a task of `reactor` can go on.
pub(super) fn is_waiting(reactor: u32) -> bool {
    READY.with(|ready| ready.borrow().iter().any(|(of, _)| *of == reactor))
}

/// Forgets the tasks of a reactor that is no more.
pub(super) fn forget(reactor: u32) {
    let _ = READY.try_with(|ready| ready.borrow_mut().retain(|&(of, _)| of != reactor));
}

/// The waker of a task.
pub(super) fn waker(reactor: u32, task: u32) -> Waker {
    // SAFETY: the functions below never dereference the data pointer, which is a pair of numbers, so that any value of
    // it is valid on any thread and needs no release.
    unsafe { Waker::from_raw(raw(data(reactor, task))) }
}

const _: () = assert!(size_of::<usize>() == 8, "a waker holds two numbers of 32 bits");

fn data(reactor: u32, task: u32) -> *const () {
    std::ptr::without_provenance(((reactor as usize) << 32) | task as usize)
}

fn raw(data: *const ()) -> RawWaker {
    RawWaker::new(data, &TABLE)
}

static TABLE: RawWakerVTable = RawWakerVTable::new(raw, wake, wake, |_| ());

fn wake(data: *const ()) {
    let data = data.addr();
    push((data >> 32) as u32, data as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakers_carry_their_numbers() {
        let mut turn = Vec::new();
        let first = waker(7, 3);
        let copy = first.clone();
        assert!(first.will_wake(&copy));
        assert!(!first.will_wake(&waker(7, 4)));
        first.wake();
        copy.wake_by_ref();
        waker(8, 9).wake();
        take(7, &mut turn);
        assert_eq!(turn, [3, 3]);
        take(7, &mut turn);
        assert!(turn.is_empty());
        take(8, &mut turn);
        assert_eq!(turn, [9]);
        waker(8, 1).wake();
        forget(8);
        take(8, &mut turn);
        assert!(turn.is_empty());
        let other = waker(7, 5);
        std::thread::spawn(move || other.wake()).join().unwrap();
        take(7, &mut turn);
        assert!(turn.is_empty(), "woken elsewhere");
    }
}
