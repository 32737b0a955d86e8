//! Tasks of one thread that wait: for something to hold, or in line.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::mem;
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

/// Tasks that are served one after the other, in the order in which they came. Coming and going cost the same however
/// many they are.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// By place; the first is still there.
    places: RefCell<VecDeque<State>>,
    /// Number of the first place.
    first: Cell<i64>,
    /// How many have been woken and have not looked yet.
    woken: Cell<usize>,
    /// Number of the first place that may be asleep: looking for it from the front costs more the more have been woken.
    asleep: Cell<i64>,
}

/// A task in line.
#[derive(Debug)]
enum State {
    Asleep(Waker),
    Woken,
    Gone,
}

impl Line {
    pub(crate) fn is_empty(&self) -> bool {
        self.places.borrow().is_empty()
    }

    /// Waits until `take` gives something: it is asked while the task is the first, now and whenever that is woken. With
    /// `ahead` the task stands before all others.
    pub(crate) async fn wait<T>(&self, ahead: bool, mut take: impl FnMut() -> Option<T>) -> T {
        let mut place = Place { line: self, number: None };
        poll_fn(|context| {
            let first = match place.number {
                Some(own) => own == self.first.get(),
                None => ahead || self.is_empty(),
            };
            if first && let Some(taken) = take() {
                place.leave();
                return Poll::Ready(taken);
            }
            if place.stand(context, ahead) && !first {
                // Woken before another came to stand ahead of it.
                self.wake_first(1);
            }
            Poll::Pending
        })
        .await
    }

    /// Wakes the first ones, as many as are missing until `count` have been woken. They look in their order, in one turn.
    pub(crate) fn wake_first(&self, count: usize) {
        let mut places = self.places.borrow_mut();
        let mut number = self.asleep.get().max(self.first.get());
        while self.woken.get() < count
            && let Some(state) = places.get_mut((number - self.first.get()) as usize)
        {
            match mem::replace(state, State::Woken) {
                State::Asleep(waker) => {
                    self.woken.set(self.woken.get() + 1);
                    waker.wake();
                }
                other => *state = other,
            }
            number += 1;
        }
        self.asleep.set(number);
    }
}

/// A place in a line; who gives it up lets the next one look.
struct Place<'l> {
    line: &'l Line,
    number: Option<i64>,
}

impl Place<'_> {
    /// Puts its state into the line; returns whether it had been woken.
    fn set(&self, number: i64, state: State) -> bool {
        let mut places = self.line.places.borrow_mut();
        let index = usize::try_from(number - self.line.first.get()).unwrap_or(usize::MAX);
        let Some(place) = places.get_mut(index) else { return false };
        let woken = matches!(mem::replace(place, state), State::Woken);
        self.line.woken.set(self.line.woken.get() - usize::from(woken));
        woken
    }

    /// Waits in its place, a new one if it has none; returns whether it had been woken.
    fn stand(&mut self, context: &Context<'_>, ahead: bool) -> bool {
        let asleep = State::Asleep(context.waker().clone());
        if let Some(own) = self.number {
            self.line.asleep.set(own.min(self.line.asleep.get()));
            return self.set(own, asleep);
        }
        let mut places = self.line.places.borrow_mut();
        let first = self.line.first.get();
        if ahead {
            self.line.first.set(first - 1);
            self.line.asleep.set(first - 1);
            self.number = Some(first - 1);
            places.push_front(asleep);
        } else {
            self.number = Some(first + places.len() as i64);
            places.push_back(asleep);
        }
        false
    }

    /// Whether it was in the line.
    fn leave(&mut self) -> bool {
        let Some(own) = self.number.take() else { return false };
        self.set(own, State::Gone);
        let mut places = self.line.places.borrow_mut();
        while places.pop_front_if(|state| matches!(state, State::Gone)).is_some() {
            self.line.first.set(self.line.first.get() + 1);
        }
        true
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.leave() {
            self.line.wake_first(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::rc::Rc;

    use super::*;
    use crate::reactor::Reactor;

    type Task<'t> = Pin<Box<dyn Future<Output = ()> + 't>>;

    /// Tasks of different kinds, for [`Reactor::run_all`].
    fn task<'t>(future: impl Future<Output = ()> + 't) -> Pin<Box<Task<'t>>> {
        Box::pin(Box::pin(future))
    }

    #[test]
    fn as_many_as_are_woken_look_in_one_turn_in_their_order() {
        const TASKS: u32 = 1000;
        let reactor = Reactor::new().unwrap();
        let line = Line::default();
        let (free, turn) = (Cell::new(0u32), Cell::new(0u32));
        let served = RefCell::new(Vec::new());
        let (line, free, turn, served, own) = (&line, &free, &turn, &served, &reactor);
        let waiter = |number: u32| async move {
            let take = || free.get().checked_sub(1).map(|left| free.set(left));
            line.wait(false, take).await;
            served.borrow_mut().push((turn.get(), number));
        };
        let giver = async move {
            while served.borrow().len() < TASKS as usize {
                own.yield_now().await;
                turn.set(turn.get() + 1);
                free.set(8);
                // Repeated: who has been woken is not woken once more.
                line.wake_first(8);
                line.wake_first(8);
                assert!(line.woken.get() <= 8);
            }
        };
        let mut tasks: Vec<_> = (0..TASKS).map(|number| task(waiter(number))).collect();
        tasks.push(task(giver));
        reactor.run_all(&mut tasks).unwrap();
        let wanted: Vec<(u32, u32)> = (0..TASKS).map(|number| (number / 8 + 1, number)).collect();
        assert_eq!(*served.borrow(), wanted);
        assert!(line.is_empty());
    }

    #[test]
    fn who_is_woken_and_goes_away_lets_the_next_look() {
        let reactor = Reactor::new().unwrap();
        let line = Rc::new(Line::default());
        let free = Cell::new(0u32);
        let (own, free) = (&reactor, &free);
        let leaver = {
            let line = line.clone();
            async move {
                let mut wait = Box::pin(line.wait(false, || None::<()>));
                poll_fn(|context| {
                    assert!(wait.as_mut().poll(context).is_pending());
                    Poll::Ready(())
                })
                .await;
                own.yield_now().await;
                free.set(1);
                line.wake_first(1);
                drop(wait);
            }
        };
        let stayer = {
            let line = line.clone();
            async move {
                line.wait(false, || free.get().checked_sub(1)).await;
            }
        };
        reactor.run_all(&mut [task(leaver), task(stayer)]).unwrap();
        assert!(line.is_empty());
    }

    #[test]
    fn who_comes_to_stand_ahead_of_one_that_is_woken_is_served_first() {
        let reactor = Reactor::new().unwrap();
        let line = Line::default();
        let free = Cell::new(0u32);
        let served = RefCell::new(Vec::new());
        let (line, free, served, own) = (&line, &free, &served, &reactor);
        let take = || free.get().checked_sub(1).map(|left| free.set(left));
        let first = async move {
            line.wait(false, take).await;
            served.borrow_mut().push("first");
        };
        let second = async move {
            line.wake_first(1);
            let mut ahead = Box::pin(line.wait(true, take));
            poll_fn(|context| {
                assert!(ahead.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            free.set(1);
            line.wake_first(1);
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
            own.until(deadline, ahead).await.expect("the wake was passed on");
            served.borrow_mut().push("ahead");
            free.set(1);
            line.wake_first(1);
        };
        reactor.run_all(&mut [task(first), task(second)]).unwrap();
        assert_eq!(*served.borrow(), ["ahead", "first"]);
    }
}
