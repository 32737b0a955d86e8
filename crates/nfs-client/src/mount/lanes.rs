//! Several requests of one task at a time.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::protocol::NfsResult;

/// Requests outstanding at a time for one call that is larger than one request.
pub(super) const LANES: usize = 8;

/// Does all of `work`, up to [`LANES`] at a time.
///
/// # Errors
/// The first one. What is outstanding then is waited for, and no more is begun.
pub(super) async fn all<T, F>(work: impl Iterator<Item = T>, perform: impl Fn(T) -> F) -> NfsResult<()>
where
    F: Future<Output = NfsResult<()>>,
{
    let work = RefCell::new(work);
    let next = || work.borrow_mut().next();
    let failed = RefCell::new(None);
    let lane = async || {
        while failed.borrow().is_none()
            && let Some(item) = next()
        {
            if let Err(error) = perform(item).await {
                failed.borrow_mut().get_or_insert(error);
            }
        }
    };
    let mut lanes: Vec<Pin<Box<_>>> = (0..LANES).map(|_| Box::pin(lane())).collect();
    poll_fn(|context| {
        lanes.retain_mut(|lane| lane.as_mut().poll(context).is_pending());
        if lanes.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    drop(lanes);
    failed.into_inner().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::NfsError;
    use crate::reactor::Reactor;
    use std::cell::Cell;

    #[test]
    fn some_at_a_time_until_one_fails() {
        let reactor = Reactor::new().unwrap();
        let (running, most, done) = (Cell::new(0), Cell::new(0), Cell::new(0));
        let run = |last: usize| {
            let work = all(0..100, |item| {
                let (reactor, running, most, done) = (&reactor, &running, &most, &done);
                async move {
                    running.set(running.get() + 1);
                    most.set(most.get().max(running.get()));
                    reactor.yield_now().await;
                    running.set(running.get() - 1);
                    done.set(done.get() + 1);
                    if item == last { Err(NfsError::NameTooLong) } else { Ok(()) }
                }
            });
            reactor.block_on(work).unwrap()
        };
        assert_eq!(run(100), Ok(()));
        assert_eq!((most.get(), done.get(), running.get()), (LANES, 100, 0));
        done.set(0);
        assert_eq!(run(20), Err(NfsError::NameTooLong));
        assert!((21..=20 + LANES).contains(&done.get()) && running.get() == 0);
    }
}
