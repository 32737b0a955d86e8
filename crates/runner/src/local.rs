//! Clients in this process: its working directories, and jobs done in them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use benchmaster_fleet::clock::Relation;
use benchmaster_fleet::job::{Job, Side};
use benchmaster_fleet::merge::{MergeError, Part, merge};
use benchmaster_fleet::perform::{Performed, Surroundings, perform};
use benchmaster_netem::namespace::{Namespace, NamespaceError};
use benchmaster_record::recording::Recording;
use benchmaster_trace::TraceSink;
use benchmaster_workload::area::{AreaError, WorkArea};
use benchmaster_workload::conduct::{Alone, Share};
use benchmaster_workload::execute::{ExecuteError, Progress};
use benchmaster_workload::target::Target;

/// Why something could not be done in this process.
#[derive(Debug, thiserror::Error)]
pub(super) enum LocalError {
    /// With a working directory.
    #[error(transparent)]
    Area(#[from] AreaError),
    /// With a workload.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// With its recording.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// With the namespace of the clients.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A thread ended by itself.
    #[error("the thread that executed the workload ended unexpectedly; internal error, please report it")]
    Panicked,
}

/// The working directories that clients in this process have open, one per target.
#[derive(Default)]
pub(super) struct LocalClients {
    open: Vec<Open>,
}

impl fmt::Debug for LocalClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open.iter().map(|open| &open.place)).finish()
    }
}

/// A working directory, where it is, and from where it is reached.
struct Open {
    place: String,
    area: WorkArea,
    namespace: Option<Arc<Namespace>>,
}

impl LocalClients {
    /// Makes the working directory of a place if there is none yet, and reaches it by `target` from now on. `false` when
    /// `target` is another directory or export than the one that files were prepared on.
    pub(super) fn open(
        &mut self,
        place: &str,
        target: &Target,
        id: &str,
        namespace: Option<&Arc<Namespace>>,
    ) -> Result<bool, LocalError> {
        if let Some(open) = self.open.iter_mut().find(|open| open.place == place) {
            return Ok(open.area.reach_by(target));
        }
        // Exports may be the same directory: each needs a name of its own.
        let others = self.open.iter().filter(|open| matches!(open.area.target(), Target::Nfs(_))).count();
        let id = match target {
            Target::Nfs(_) if others > 0 => format!("{id}-{others}"),
            _ => id.to_owned(),
        };
        let area = within(namespace, || WorkArea::create(target, &id))??;
        self.open.push(Open { place: place.to_owned(), area, namespace: namespace.cloned() });
        Ok(true)
    }

    fn at(&mut self, place: &str) -> Result<&mut Open, LocalError> {
        // A place that nobody opened is a defect, and is told as what it would lead to.
        let missing = || AreaError::NotADirectory { path: place.into() };
        Ok(self.open.iter_mut().find(|open| open.place == place).ok_or_else(missing)?)
    }

    /// Forgets filesets that must not be carried over into another run.
    pub(super) fn begin_run(&mut self, place: &str, fresh: bool) -> Result<(), LocalError> {
        let open = self.at(place)?;
        within(open.namespace.as_ref(), || open.area.begin_run(fresh))??;
        Ok(())
    }

    /// Does a job with all clients in this process. `observe` is called on this thread.
    pub(super) fn perform(
        &mut self,
        place: &str,
        job: &Job,
        clients: u32,
        sink: Option<&mut dyn TraceSink>,
        stop: &AtomicBool,
        observe: &mut dyn FnMut(Progress),
    ) -> Result<Recording, LocalError> {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let share = Share::all(clients);
        let open = self.at(place)?;
        let surroundings = Surroundings {
            agent: &host,
            side: Side::Clients,
            neighbours: 1,
            looks: true,
            stop,
            samplers: Vec::new(),
        };
        let area = &mut open.area;
        let performed = match &open.namespace {
            None => perform(area, job, share, surroundings, &mut Alone, sink, observe)?,
            Some(namespace) => in_namespace(namespace, area, job, share, surroundings, sink, observe)?,
        };
        let start_ns = performed.start_monotonic_ns;
        let part = Part {
            name: host.clone(),
            host: host.clone(),
            pid: std::process::id(),
            share,
            relation: Relation::same(),
            performed,
        };
        let stagger_ns = u64::try_from(job.stagger.as_nanos()).unwrap_or(u64::MAX);
        Ok(merge(&job.workload, vec![part], Vec::new(), start_ns, stagger_ns)?)
    }

    /// Removes all working directories.
    pub(super) fn remove(&mut self) -> Result<(), LocalError> {
        let open = std::mem::take(&mut self.open).into_iter();
        let removed = open.map(|Open { area, namespace, .. }| {
            within(namespace.as_ref(), || area.remove()).map_err(LocalError::from)?.map_err(LocalError::from)
        });
        removed.fold(Ok(()), Result::and)
    }
}

/// Does something where the clients are.
fn within<T: Send>(
    namespace: Option<&Arc<Namespace>>,
    what: impl FnOnce() -> T + Send,
) -> Result<T, NamespaceError> {
    match namespace {
        None => Ok(what()),
        Some(namespace) => namespace.run(what),
    }
}

/// Does a job on a thread in a namespace, and tells of its progress on this one. At the edges of the measured phase that
/// thread waits until `observe` has returned: counters are read in between.
fn in_namespace(
    namespace: &Namespace,
    area: &mut WorkArea,
    job: &Job,
    share: Share,
    surroundings: Surroundings<'_>,
    sink: Option<&mut dyn TraceSink>,
    observe: &mut dyn FnMut(Progress),
) -> Result<Performed, LocalError> {
    let (tell, told) = mpsc::channel::<Progress>();
    let (go_on, goes_on) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let body = move || {
            namespace.run(move || {
                let mut observe = |progress: Progress| {
                    let edge = progress.edge.is_some();
                    if tell.send(progress).is_ok() && edge {
                        // The other end is gone only when the whole process ends.
                        let _ = goes_on.recv();
                    }
                };
                perform(area, job, share, surroundings, &mut Alone, sink, &mut observe)
            })
        };
        let thread = std::thread::Builder::new().name("clients".into()).spawn_scoped(scope, body);
        let thread = thread.map_err(NamespaceError::from)?;
        for progress in told {
            let edge = progress.edge.is_some();
            observe(progress);
            if edge {
                let _ = go_on.send(());
            }
        }
        match thread.join() {
            Ok(performed) => Ok(performed??),
            Err(_) => Err(LocalError::Panicked),
        }
    })
}
