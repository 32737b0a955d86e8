//! Futures side by side within one task.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Runs them to their ends.
pub(crate) async fn together<'f>(futures: impl IntoIterator<Item = Pin<Box<dyn Future<Output = ()> + 'f>>>) {
    let mut all: Vec<_> = futures.into_iter().map(Some).collect();
    poll_fn(|context| {
        for place in &mut all {
            if let Some(future) = place
                && future.as_mut().poll(context).is_ready()
            {
                *place = None;
            }
        }
        match all.iter().all(Option::is_none) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
}
