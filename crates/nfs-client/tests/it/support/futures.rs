//! Futures that run concurrently within one task.

use std::future::poll_fn;
use std::task::Poll;

/// Runs all of them to their ends and returns their results, in order.
pub(crate) async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.into_iter().map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, result) in pending.iter_mut().filter(|(_, result)| result.is_none()) {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                *result = Some(output);
            }
        }
        if pending.iter().all(|(_, result)| result.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, result)| result).collect()
}
