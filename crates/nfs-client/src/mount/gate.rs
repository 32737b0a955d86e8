//! Waiting for tasks of the same thread.

use std::cell::Cell;

use crate::reactor::Line;

/// Lets one task through at a time, or many that share it, in the order in which they come.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Tasks inside that share it; [`ALONE`] when one is alone.
    inside: Cell<u32>,
    line: Line,
}

const ALONE: u32 = u32::MAX;

/// Being inside; ends when dropped.
#[derive(Debug)]
pub(crate) struct Inside<'g>(&'g Gate);

impl Gate {
    /// Waits until no other task is inside, and keeps all others out.
    pub(crate) async fn alone(&self) -> Inside<'_> {
        self.enter(true).await
    }

    /// Waits until no task is alone inside, and keeps those out who want to be.
    pub(crate) async fn shared(&self) -> Inside<'_> {
        self.enter(false).await
    }

    async fn enter(&self, alone: bool) -> Inside<'_> {
        if !self.line.is_empty() || !self.try_enter(alone) {
            self.line.wait(false, || self.try_enter(alone).then_some(())).await;
            self.wake();
        }
        Inside(self)
    }

    fn try_enter(&self, alone: bool) -> bool {
        let inside = match (self.inside.get(), alone) {
            (0, true) => ALONE,
            (ALONE, _) | (_, true) => return false,
            (inside, false) => inside + 1,
        };
        self.inside.set(inside);
        true
    }

    /// Wakes who comes next, if it can come in.
    fn wake(&self) {
        if self.inside.get() != ALONE {
            self.line.wake_first(1);
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let inside = self.0.inside.get();
        self.0.inside.set(if inside == ALONE { 0 } else { inside - 1 });
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::reactor::Reactor;

    #[test]
    fn tasks_come_in_in_order_alone_or_together() {
        let reactor = Reactor::new().unwrap();
        let gate = Gate::default();
        let log = RefCell::new(Vec::new());
        let task = |number: u32, alone: bool| {
            let (gate, log, reactor) = (&gate, &log, &reactor);
            Box::pin(async move {
                let _inside = if alone { gate.alone().await } else { gate.shared().await };
                log.borrow_mut().push((number, true));
                reactor.yield_now().await;
                reactor.yield_now().await;
                log.borrow_mut().push((number, false));
            })
        };
        reactor
            .run_all(&mut [task(0, false), task(1, true), task(2, false), task(3, true), task(4, false)])
            .unwrap();
        let log = log.into_inner();
        assert_eq!(log.len(), 10);
        let number = |at: usize| log[at].0;
        assert_eq!((number(0), number(1), number(2), number(3)), (0, 0, 1, 1));
        assert_eq!((number(4), number(5), number(6), number(7)), (2, 2, 3, 3));
        assert!(gate.inside.get() == 0 && gate.line.is_empty());
        let log = RefCell::new(Vec::new());
        let task = |number: u32| {
            let (gate, log, reactor) = (&gate, &log, &reactor);
            Box::pin(async move {
                let _inside = gate.shared().await;
                log.borrow_mut().push((number, true));
                reactor.yield_now().await;
                log.borrow_mut().push((number, false));
            })
        };
        reactor.run_all(&mut [task(0), task(1)]).unwrap();
        assert_eq!(log.into_inner(), [(0, true), (1, true), (0, false), (1, false)]);
    }

    #[test]
    fn who_gives_up_waiting_lets_the_next_one_in() {
        let reactor = Reactor::new().unwrap();
        let gate = Gate::default();
        reactor
            .block_on(async {
                let inside = gate.shared().await;
                let gone = reactor.until(std::time::Instant::now(), gate.alone()).await;
                assert!(gone.is_none());
                let _other = gate.shared().await;
                drop(inside);
            })
            .unwrap();
        assert!(gate.inside.get() == 0 && gate.line.is_empty());
    }
}
