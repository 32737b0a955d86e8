//! Tasks of one thread that wait: for something to hold, or in line.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// Tasks that wait for something to hold, and all look when they are woken.
#[derive(Debug, Default)]
pub(crate) struct Waiters(RefCell<Vec<Waker>>);

impl Waiters {
    /// Waits until `holds`, which is looked at now and whenever they are woken.
    pub(crate) async fn until(&self, mut holds: impl FnMut() -> bool) {
        poll_fn(|context| {
            if holds() {
                return Poll::Ready(());
            }
            self.add(context);
            Poll::Pending
        })
        .await;
    }

    pub(crate) fn add(&self, context: &Context<'_>) {
        self.0.borrow_mut().push(context.waker().clone());
    }

    pub(crate) fn wake(&self) {
        self.0.borrow_mut().drain(..).for_each(Waker::wake);
    }
}

/// Tasks that are served one after the other, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Line {
    waiting: RefCell<VecDeque<(u64, Waker)>>,
    next: Cell<u64>,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Waits until `take` gives something: it is asked while the task is the first, now and whenever that is woken. With
    /// `ahead` the task stands before all others.
    pub(crate) async fn wait<T>(&self, ahead: bool, mut take: impl FnMut() -> Option<T>) -> T {
        let mut place = Place { line: self, number: None };
        poll_fn(|context| {
            let first = match (self.waiting.borrow().front(), place.number) {
                (Some((first, _)), Some(own)) => *first == own,
                (Some(_), None) => ahead,
                (None, _) => true,
            };
            if first && let Some(taken) = take() {
                place.leave();
                return Poll::Ready(taken);
            }
            place.stand(context, ahead);
            Poll::Pending
        })
        .await
    }

    /// Wakes the first.
    pub(crate) fn wake(&self) {
        if let Some((_, waker)) = self.waiting.borrow().front() {
            waker.wake_by_ref();
        }
    }
}

/// A place in a line; who gives it up lets the next one look.
struct Place<'l> {
    line: &'l Line,
    number: Option<u64>,
}

impl Place<'_> {
    fn stand(&mut self, context: &Context<'_>, ahead: bool) {
        let mut waiting = self.line.waiting.borrow_mut();
        if let Some(own) = self.number {
            if let Some((_, waker)) = waiting.iter_mut().find(|(number, _)| *number == own) {
                waker.clone_from(context.waker());
            }
            return;
        }
        let number = self.line.next.get();
        self.line.next.set(number + 1);
        self.number = Some(number);
        let entry = (number, context.waker().clone());
        if ahead { waiting.push_front(entry) } else { waiting.push_back(entry) }
    }

    /// Whether it was in the line.
    fn leave(&mut self) -> bool {
        let Some(own) = self.number.take() else { return false };
        self.line.waiting.borrow_mut().retain(|(number, _)| *number != own);
        true
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.leave() {
            self.line.wake();
        }
    }
}
