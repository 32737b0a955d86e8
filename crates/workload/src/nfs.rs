//! Work on an NFS server by the user-space client: mounting, unmounting, and many files at once.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::task::{Context, Poll, Waker, ready};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

use benchmaster_nfs_client::counters::{Event, Snapshot};
use benchmaster_nfs_client::mount::{self, Mount};
use benchmaster_nfs_client::options::{Cache, MountOptions, Paging};
use benchmaster_nfs_client::reactor::{EndsBackground, Reactor};

use crate::area::error::AreaError;
use crate::engine::nfs::NfsEngine;
use crate::parallel::THREADS;
use crate::target::NfsTarget;

/// Files that a thread works on at a time: enough to fill a link with a delay, each with a buffer of at most
/// [`CHUNK`](crate::parallel::CHUNK) bytes.
const AT_A_TIME: u64 = 16;

/// How a client was connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) read_size: u32,
    pub(crate) write_size: u32,
    /// Session slots that the server granted.
    pub(crate) slots: Option<u32>,
    /// Cipher suite of TLS, if there is TLS.
    pub(crate) tls: Option<&'static str>,
}

/// What is left of a mount.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) counters: Snapshot,
    /// What was wrong in the end, in words.
    pub(crate) problems: Vec<String>,
    pub(crate) facts: Facts,
}

/// Result of a job and what is left of its mount; or why there was no mount.
pub(crate) type Job<T, E> = Result<(Result<T, E>, Left), AreaError>;

/// Unmounts, and looks what is left.
pub(crate) async fn unmount(reactor: &Reactor, mount: Mount) -> Left {
    let counters = mount.counters().clone();
    let limits = mount.limits();
    let slots = match mount.client() {
        mount::Client::V4(client) => u32::try_from(client.slots().0).ok().filter(|slots| *slots > 0),
        mount::Client::V2(_) | mount::Client::V3(_) => None,
    };
    let tls = counters.tls().map(|facts| facts.suite);
    let facts = Facts { read_size: limits.max_read, write_size: limits.max_write, slots, tls };
    let mut problems = Vec::new();
    if let Err(error) = mount.unmount().await {
        problems.push(format!("unmounting failed: {error}"));
    }
    // Calls of the background (renewals of the lease) see now that the client is gone.
    reactor.yield_now().await;
    reactor.yield_now().await;
    match counters.outstanding() {
        0 => {}
        calls => problems.push(format!("{calls} calls were still outstanding after unmounting")),
    }
    let counters = counters.snapshot();
    match counters.event(Event::StateLost) {
        0 => {}
        times => problems.push(format!("state of open files or locks was lost {times} times")),
    }
    Left { counters, problems, facts }
}

/// Runs all futures to their ends, or until `give_up` ends: what is left then is dropped with whatever calls it waits
/// for, and has no result. A server that does not answer must not hold up what was stopped until all deadlines are over.
pub(crate) fn run_all<F: Future>(
    reactor: &Reactor,
    futures: impl IntoIterator<Item = F>,
    give_up: impl Future<Output = ()>,
) -> io::Result<Vec<Option<F::Output>>> {
    enum Part<F, G> {
        /// A future, and whether the crowd has its waker.
        Work(F, bool),
        GiveUp(G),
        Over,
    }
    let crowd = Crowd::default();
    let crowd = &crowd;
    let work = futures.into_iter().map(|future| Part::Work(Box::pin(future), false));
    let mut parts: Vec<_> = work
        .chain([Part::GiveUp(Box::pin(give_up))])
        .map(|mut part| {
            // Not an async block: it would keep room for the future each time that it hands it on.
            poll_fn(move |context| {
                let result = match &mut part {
                    Part::Work(future, known) => ready!(crowd.work(future.as_mut(), known, context)),
                    Part::GiveUp(give_up) => {
                        ready!(crowd.watch(give_up.as_mut(), context));
                        None
                    }
                    Part::Over => None,
                };
                part = Part::Over;
                Poll::Ready(result)
            })
        })
        .collect();
    crowd.left.set(parts.len() - 1);
    let mut results = reactor.run_all(&mut parts)?;
    results.pop();
    Ok(results)
}

/// Futures that are given up together.
#[derive(Default)]
struct Crowd {
    /// Those that have not ended.
    left: Cell<usize>,
    given_up: Cell<bool>,
    /// Of all, to tell them when they are given up.
    wakers: RefCell<Vec<Waker>>,
    watcher: RefCell<Option<Waker>>,
}

impl Crowd {
    fn work<F: Future>(
        &self,
        future: Pin<&mut F>,
        known: &mut bool,
        context: &mut Context<'_>,
    ) -> Poll<Option<F::Output>> {
        if self.given_up.get() {
            return Poll::Ready(None);
        }
        if !std::mem::replace(known, true) {
            self.wakers.borrow_mut().push(context.waker().clone());
        }
        let result = ready!(future.poll(context));
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0
            && let Some(watcher) = self.watcher.take()
        {
            watcher.wake();
        }
        Poll::Ready(Some(result))
    }

    fn watch(&self, give_up: Pin<&mut impl Future<Output = ()>>, context: &mut Context<'_>) -> Poll<()> {
        if self.left.get() == 0 {
            return Poll::Ready(());
        }
        if give_up.poll(context).is_ready() {
            self.given_up.set(true);
            self.wakers.borrow_mut().drain(..).for_each(Waker::wake);
            return Poll::Ready(());
        }
        *self.watcher.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

/// How long what was stopped may take to come to an end.
const GRACE: Duration = Duration::from_secs(5);

/// Ends some time after `stop` was set; calls `tick` about ten times a second until it is.
async fn stopped(reactor: &Reactor, stop: &AtomicBool, mut tick: impl FnMut()) {
    while !stop.load(Ordering::Relaxed) {
        reactor.sleep(Duration::from_millis(100)).await;
        tick();
    }
    reactor.sleep(GRACE).await;
}

/// The options of jobs on the working directory: what they read must come from the server.
fn uncached(target: &NfsTarget) -> MountOptions {
    MountOptions {
        cache: Cache::Off,
        delegations: None,
        append_to_locks: false,
        paging: Paging::default(),
        ..(*target.options).clone()
    }
}

fn client_error(target: &NfsTarget, error: io::Error) -> AreaError {
    AreaError::Client { path: target.place().into(), problem: error.to_string() }
}

/// Mounts on this thread, does `work`, and unmounts whether or not it succeeded.
///
/// # Errors
/// When there is no mount.
pub(crate) fn job<T, E>(
    target: &NfsTarget,
    identity: &str,
    work: impl AsyncFn(&Mount) -> Result<T, E>,
) -> Job<T, E> {
    let fail = |error| client_error(target, error);
    let kept = Kept::connect(target, identity, std::future::pending(), &Reactor::new().map_err(fail)?)?;
    let result = kept.reactor.block_on(work(&kept.mount)).map_err(fail)?;
    Ok((result, kept.unmount().map_err(fail)?))
}

/// A mount, and what drives it.
#[derive(Debug)]
struct Kept {
    mount: Mount,
    _ends: EndsBackground,
    reactor: Reactor,
}

impl Kept {
    /// Mounts, unless `give_up` ends before.
    fn connect(
        target: &NfsTarget,
        identity: &str,
        give_up: impl Future<Output = ()>,
        reactor: &Reactor,
    ) -> Result<Self, AreaError> {
        let ends = reactor.ends_background();
        let options = uncached(target);
        let connecting = [Mount::connect(reactor, &options, identity)];
        let connected = run_all(reactor, connecting, give_up).map_err(|error| client_error(target, error))?;
        let mount = connected.into_iter().flatten().next().ok_or(AreaError::Stopped)??;
        Ok(Self { mount, _ends: ends, reactor: reactor.clone() })
    }

    fn unmount(self) -> io::Result<Left> {
        let Self { mount, _ends, reactor } = self;
        reactor.block_on(unmount(&reactor, mount))
    }
}

/// One mount for jobs that follow each other on one thread, made by the first that needs it: over a network with a delay,
/// mounting and unmounting take longer than most jobs.
#[derive(Debug, Default)]
pub(crate) struct SharedMount(RefCell<Option<Kept>>);

impl SharedMount {
    fn take(&self, target: &NfsTarget, identity: &str) -> Result<Kept, AreaError> {
        match self.0.take() {
            Some(kept) => Ok(kept),
            None => {
                let reactor = Reactor::new().map_err(|error| client_error(target, error))?;
                Kept::connect(target, identity, std::future::pending(), &reactor)
            }
        }
    }

    /// Does `work` on this thread.
    ///
    /// # Errors
    /// Those of `work`; and when there is no mount.
    pub(crate) fn job<T>(
        &self,
        target: &NfsTarget,
        identity: &str,
        work: impl AsyncFn(&Mount) -> Result<T, AreaError>,
    ) -> Result<T, AreaError> {
        let kept = self.take(target, identity)?;
        let result = kept.reactor.block_on(work(&kept.mount));
        self.0.replace(Some(kept));
        result.map_err(|error| client_error(target, error))?
    }

    /// Unmounts, if any job was done.
    ///
    /// # Errors
    /// When this thread cannot wait for sockets.
    pub(crate) fn unmount(self, target: &NfsTarget) -> Result<Option<Left>, AreaError> {
        let kept = self.0.into_inner();
        kept.map(|kept| kept.unmount().map_err(|error| client_error(target, error))).transpose()
    }
}

/// Work on many files.
pub(crate) struct Jobs<'j> {
    pub(crate) target: &'j NfsTarget,
    /// Identity of the mount of each thread.
    pub(crate) identity: &'j (dyn Fn(u64) -> String + Sync),
    /// Ends it early when set, also when the server does not answer.
    pub(crate) stop: &'j AtomicBool,
}

impl Jobs<'_> {
    /// Does `work` for every number below `count` on all processors, several at a time on each, in no certain order, each
    /// time with a buffer that is made as long as it is needed, at most [`CHUNK`](crate::parallel::CHUNK) bytes, and calls `tick`
    /// on this thread about ten times a second meanwhile. What is too little for several threads is done on this one, by the
    /// mount that jobs share.
    ///
    /// # Errors
    /// The first error of `work`, or of a mount; what was not begun by then is left out.
    pub(crate) fn for_each<E: From<AreaError> + Send>(
        &self,
        count: u64,
        shared: &SharedMount,
        work: impl AsyncFn(&NfsEngine<'_>, u64, &mut Vec<u8>) -> Result<(), E> + Sync,
        tick: &mut dyn FnMut(),
    ) -> (Result<(), E>, Left) {
        let (next, failed) = (AtomicU64::new(0), AtomicBool::new(false));
        let facts = Facts { read_size: 0, write_size: 0, slots: None, tls: None };
        let mut sum = Left { counters: Snapshot::default(), problems: Vec::new(), facts };
        let each = async |mount: &Mount, reactor: &Reactor| {
            let engine = NfsEngine::new(reactor, mount);
            let mut chunk = Vec::new();
            while !failed.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                let done = work(&engine, number, &mut chunk).await;
                done.inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            }
            Ok(())
        };
        let processors = std::thread::available_parallelism().map_or(1, |n| n.get()) as u64;
        let threads = processors.min(THREADS as u64).min(count.div_ceil(AT_A_TIME));
        if threads <= 1 {
            return (self.here(count.min(AT_A_TIME), shared, &each, tick), sum);
        }
        let run = |number| {
            let result = self.on_thread(number, AT_A_TIME, &each);
            result.inspect_err(|_| failed.store(true, Ordering::Relaxed))
        };
        let run = &run;
        let results: Vec<Job<(), E>> = std::thread::scope(|scope| {
            let (alive, ended) = channel::<()>();
            let start = |number| {
                let alive = alive.clone();
                let body = move || {
                    let _alive = alive;
                    run(number)
                };
                Builder::new().spawn_scoped(scope, body).ok()
            };
            // Fewer threads than wanted only take longer; without any this one does the work.
            let started: Vec<ScopedJoinHandle<'_, _>> = (0..threads).filter_map(start).collect();
            drop(alive);
            if started.is_empty() && count > 0 {
                return vec![run(0)];
            }
            while ended.recv_timeout(Duration::from_millis(100)) == Err(RecvTimeoutError::Timeout) {
                tick();
            }
            let join = |thread: ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            started.into_iter().map(join).collect()
        });
        let mut outcome = Ok(());
        for result in results {
            let result = match result {
                Ok((result, left)) => {
                    sum.counters.add(&left.counters);
                    sum.problems.extend(left.problems);
                    sum.facts = left.facts;
                    result
                }
                Err(error) => Err(error.into()),
            };
            outcome = outcome.and(result);
        }
        (outcome, sum)
    }

    /// All of it on this thread, by the mount that jobs share: `each` for each of so many at once.
    fn here<E: From<AreaError>>(
        &self,
        count: u64,
        shared: &SharedMount,
        each: &impl AsyncFn(&Mount, &Reactor) -> Result<(), E>,
        tick: &mut dyn FnMut(),
    ) -> Result<(), E> {
        if count == 0 {
            return Ok(());
        }
        let kept = shared.take(self.target, &(self.identity)(0))?;
        let watch = stopped(&kept.reactor, self.stop, tick);
        let result = run_each(&kept, count, each, watch).map_err(|error| client_error(self.target, error))?;
        // What was given up is not unmounted: that would take as long.
        let result = result.ok_or(AreaError::Stopped)?;
        shared.0.replace(Some(kept));
        result
    }

    /// One thread's part: mounts, runs `each` so many times at once, and unmounts.
    fn on_thread<E>(
        &self,
        number: u64,
        at_a_time: u64,
        each: &impl AsyncFn(&Mount, &Reactor) -> Result<(), E>,
    ) -> Job<(), E> {
        let fail = |error| client_error(self.target, error);
        let reactor = Reactor::new().map_err(fail)?;
        let watch = || stopped(&reactor, self.stop, || ());
        let kept = Kept::connect(self.target, &(self.identity)(number), watch(), &reactor)?;
        let result = run_each(&kept, at_a_time, each, watch()).map_err(fail)?.ok_or(AreaError::Stopped)?;
        Ok((result, kept.unmount().map_err(fail)?))
    }
}

/// Runs `each` so many times at once; `None` when that was given up.
fn run_each<E>(
    kept: &Kept,
    at_a_time: u64,
    each: &impl AsyncFn(&Mount, &Reactor) -> Result<(), E>,
    give_up: impl Future<Output = ()>,
) -> io::Result<Option<Result<(), E>>> {
    let tasks = (0..at_a_time).map(|_| each(&kept.mount, &kept.reactor));
    let results = run_all(&kept.reactor, tasks, give_up)?;
    let results = results.into_iter().collect::<Option<Vec<_>>>();
    Ok(results.map(|results| results.into_iter().fold(Ok(()), Result::and)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_given_up_and_what_ends_is_not_waited_for() {
        let reactor = Reactor::new().unwrap();
        let never = std::future::pending::<()>;
        let work = |number: u32| {
            let reactor = &reactor;
            async move {
                if number == 1 {
                    never().await;
                }
                reactor.yield_now().await;
                number
            }
        };
        let ended = run_all(&reactor, [work(0), work(2)], never()).unwrap();
        assert_eq!(ended, [Some(0), Some(2)]);
        let given_up = run_all(&reactor, (0..3).map(work), reactor.sleep(Duration::from_millis(20))).unwrap();
        assert_eq!(given_up, [Some(0), None, Some(2)]);
        assert_eq!(run_all(&reactor, (0..0).map(work), never()).unwrap(), []);
    }
}
