//! The thread that does the work: it owns the working directories, and does one thing after the other.

use std::any::Any;
use std::collections::BTreeMap;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::time::Duration;

use benchmaster_workload::area::WorkArea;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Working directories by the names of their places.
pub(super) type Areas = BTreeMap<String, WorkArea>;

type Task = Box<dyn FnOnce(&mut Areas) + Send>;

#[derive(Debug)]
pub(super) struct Work {
    handle: Handle,
    /// Closed when the thread has ended.
    ended: Receiver<()>,
}

#[derive(Debug, Clone)]
pub(super) struct Handle {
    tasks: Sender<Task>,
    /// Of everything under way.
    stops: Arc<Mutex<Vec<Weak<AtomicBool>>>>,
}

/// The thread ended over something.
#[derive(Debug, thiserror::Error)]
#[error("the agent's work ended unexpectedly ({0}); internal error, please report it")]
pub(super) struct Defect(String);

/// Keeps something under way: it is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Wanted(pub(super) Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Work {
    pub(super) fn start() -> io::Result<Self> {
        let (tasks, queue) = mpsc::channel::<Task>();
        let (ending, ended) = mpsc::channel();
        std::thread::Builder::new().name("work".into()).spawn(move || {
            let _ending: Sender<()> = ending;
            let mut areas = Areas::new();
            for task in queue {
                task(&mut areas);
            }
        })?;
        Ok(Self { handle: Handle { tasks, stops: Arc::default() }, ended })
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Stops what is under way and waits for it for some time. All other handles are gone.
    pub(super) fn end(self, grace: Duration) {
        let Self { handle, ended } = self;
        for stop in handle.stops.lock().drain(..).filter_map(|stop| stop.upgrade()) {
            stop.store(true, Ordering::Relaxed);
        }
        drop(handle);
        // Nothing is ever sent: it is closed, or the time is over.
        let _ = ended.recv_timeout(grace);
    }
}

impl Handle {
    /// A flag that stops something when the agent ends, or earlier.
    pub(super) fn wanted(&self) -> Wanted {
        let stop = Arc::new(AtomicBool::new(false));
        let mut stops = self.stops.lock();
        stops.retain(|stop| stop.strong_count() > 0);
        stops.push(Arc::downgrade(&stop));
        Wanted(stop)
    }

    /// Does something on the thread, after what was given to it earlier. When the future is dropped the flag is set.
    pub(super) async fn run<R: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Areas, &AtomicBool) -> R + Send + 'static,
    ) -> Result<R, Defect> {
        let wanted = self.wanted();
        let stop = Arc::clone(&wanted.0);
        let result = self.submit(move |areas| task(areas, &stop)).await;
        result.unwrap_or_else(|_| Err(Defect("the thread is gone".into())))
    }

    /// Does something on the thread; the receiver may be forgotten.
    pub(super) fn submit<R: Send + 'static>(
        &self,
        task: impl FnOnce(&mut Areas) -> R + Send + 'static,
    ) -> oneshot::Receiver<Result<R, Defect>> {
        let (reply, receiver) = oneshot::channel();
        // A thread that is gone drops the reply, which the receiver sees.
        let _ = self.tasks.send(Box::new(move |areas| {
            // A defect in a workload must not leave the controller waiting: it is reported.
            let result = catch_unwind(AssertUnwindSafe(|| task(areas)));
            let _ = reply.send(result.map_err(|panic| Defect(text(&*panic))));
        }));
        receiver
    }
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn cancelled_work_is_stopped_and_a_defect_is_reported() {
        let work = Work::start().unwrap();
        let handle = work.handle();
        let error = handle.run(|_, _| -> u8 { panic!("no such thing") }).await.unwrap_err();
        assert!(error.to_string().contains("no such thing"), "{error}");
        let (began, begun) = oneshot::channel();
        let (done, ended) = oneshot::channel();
        let task = handle.run(move |_, stop| {
            began.send(()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            done.send(()).unwrap();
        });
        tokio::select! {
            _ = task => panic!("it waits to be stopped"),
            begun = begun => begun.unwrap(),
        }
        ended.await.unwrap();
        assert_eq!(handle.run(|areas, _| areas.len()).await.unwrap(), 0);
        drop(handle);
        work.end(Duration::from_secs(60));
    }
}
