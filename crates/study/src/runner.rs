//! The runner: carries a plan out in a results directory, run by run, and goes on where it was interrupted.

mod targets;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use benchmaster_design::stream_seed;
use benchmaster_store::record::{
    Event, RunKey, RunRecord, SessionEnd, SessionRecord, StudyRecord, StudyResults, TreatmentRecord,
};
use benchmaster_store::trace::{TraceError, TraceWriter};
use benchmaster_store::{CreateError, LoadError, OpenError, Store, WriteError};
use benchmaster_telemetry::Environment;
use benchmaster_workload::area::{AreaError, new_id};
use benchmaster_workload::cache::CacheControl;
use benchmaster_workload::execute::{ExecuteError, Options, Progress, execute};
use benchmaster_workload::model::Workload;
use benchmaster_workload::recording::{Recording, TraceSink};
use jiff::Timestamp;

use self::targets::{Areas, check_same_targets, check_targets, environments};
use crate::analysis::is_invalid;
use crate::plan::{Difference, Plan, PlannedTreatment, compatible};
use crate::responses::{cut_warm_up, responses};
use crate::schedule::{Next, next};
use crate::settings::{self, FilesetReuse, Settings};
use crate::validity::{self, Subject};

/// What to run, and where.
#[derive(Debug)]
pub struct Request<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The results directory: made if it is not there, gone on with if it holds the same study.
    pub directory: &'a Path,
    /// The command line, for the record.
    pub command: &'a str,
    /// Set from outside (SIGINT) to stop: the run in flight is given up, and the study can be resumed.
    pub stop: &'a AtomicBool,
}

/// What happens while a study is run.
#[derive(Debug)]
pub enum Happening<'a> {
    /// An earlier session has done all runs; this one does nothing.
    AlreadyComplete {
        /// Runs done.
        done: u32,
    },
    /// The results directory and the targets are open.
    Begun {
        /// Runs done by earlier sessions.
        done: u32,
        /// How often the study has been interrupted so far.
        interruptions: usize,
        /// This host as seen from every target, by name.
        environments: &'a BTreeMap<String, Environment>,
        /// The temporary directory that is measured, if the study asks for one.
        scratch: Option<&'a Path>,
    },
    /// A run begins.
    RunBegins {
        /// Its position in the order of execution, from 0.
        position: u32,
        /// Its treatment.
        treatment: &'a TreatmentRecord,
        /// Its replicate, from 0.
        replicate: u32,
    },
    /// A run goes on.
    Progress {
        /// The workload at work.
        workload: &'a str,
        /// How far it is.
        progress: Progress,
    },
    /// A run is stored.
    RunStored {
        /// The run.
        run: &'a RunRecord,
        /// Its treatment.
        treatment: &'a TreatmentRecord,
    },
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All runs of the plan are done.
    Complete,
    /// It was stopped; the same command resumes it.
    Stopped,
}

/// Why a study could not be run. What is stored stays; the same command resumes it once the cause is gone.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The target does not exist or cannot be used.
    #[error(transparent)]
    Area(#[from] AreaError),
    /// The results directory holds another study.
    #[error("`{}`: {difference}", directory.display())]
    OtherStudy {
        /// The directory.
        directory: PathBuf,
        /// The first difference.
        difference: Box<Difference>,
    },
    /// A target is not what it was.
    #[error(
        "finished runs measured {then}, and this would measure {now}: bring back what was measured (mount, current \
         directory), or begin anew in another directory with `-o`"
    )]
    OtherTarget {
        /// What was measured.
        then: String,
        /// What is there now.
        now: String,
    },
    /// The results directory could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// It could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It could not be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A trace could not be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A workload could not be carried out.
    #[error("treatment `{treatment}`, replicate {}, workload `{workload}`: {source}", replicate + 1)]
    Execute {
        /// Label of the treatment.
        treatment: String,
        /// Replicate, from 0.
        replicate: u32,
        /// The workload.
        workload: String,
        /// Why not.
        source: ExecuteError,
    },
}

/// Runs or resumes a study until it is complete, stopped, or cannot go on.
///
/// # Errors
/// See [`RunError`]. Nothing is created when the target is missing or the directory holds another study.
pub fn run(request: &Request<'_>, observe: &mut dyn FnMut(Happening<'_>)) -> Result<Outcome, RunError> {
    if !Store::exists(request.directory) {
        check_targets(request.plan)?;
    }
    let mut store = open_store(request)?;
    let earlier = Store::load(request.directory)?;
    if is_complete(&earlier) {
        observe(Happening::AlreadyComplete { done: earlier.runs.len() as u32 });
        return Ok(Outcome::Complete);
    }
    check_targets(request.plan)?;
    let mut areas = Areas::new(&earlier.study.id);
    let opened = open_session(request, &earlier, &mut store, &mut areas);
    let (session, environments) = opened.inspect_err(|_| {
        // The error is that of opening; the next session removes what is left.
        let _ = areas.remove();
    })?;
    observe(Happening::Begun {
        done: earlier.runs.len() as u32,
        interruptions: earlier.sessions.iter().filter(|session| is_interrupted(session)).count(),
        environments: &environments,
        scratch: areas.scratch.as_deref(),
    });
    let host = environments.into_values().next().unwrap_or_default();
    let study = &earlier.study;
    let mut runner = Runner { request, study, store: &mut store, areas, session, host, observe };
    let result = runner.all(&earlier);
    let removed = runner.areas.remove();
    let end = match (&result, &removed) {
        (Ok(Outcome::Complete), Ok(())) => SessionEnd::Complete,
        (Ok(Outcome::Stopped), Ok(())) => SessionEnd::Stopped,
        _ => SessionEnd::Failed,
    };
    let ended = store.end_session(session, Timestamp::now(), end);
    let outcome = result?;
    removed?;
    ended?;
    Ok(outcome)
}

/// Whether all runs are done and nothing of the study is left on its targets.
fn is_complete(results: &StudyResults) -> bool {
    results.sessions.last().is_some_and(|session| !is_interrupted(session))
}

fn is_interrupted(session: &SessionRecord) -> bool {
    !matches!(session.ended, Some((_, SessionEnd::Complete)))
}

/// Makes the working directories, in place of those that a killed session left, and begins the session.
fn open_session(
    request: &Request<'_>,
    earlier: &StudyResults,
    store: &mut Store,
    areas: &mut Areas,
) -> Result<(u32, BTreeMap<String, Environment>), RunError> {
    for treatment in &request.plan.treatments {
        areas.area(&treatment.settings)?;
    }
    let environments = environments(request.plan, areas)?;
    check_same_targets(earlier, &environments)?;
    let session = store.begin_session(request.command, Timestamp::now(), &environments)?;
    Ok((session, environments))
}

fn open_store(request: &Request<'_>) -> Result<Store, RunError> {
    if Store::exists(request.directory) {
        let store = Store::open(request.directory)?;
        compatible(store.study(), request.plan).map_err(|difference| RunError::OtherStudy {
            directory: request.directory.into(),
            difference: Box::new(difference),
        })?;
        return Ok(store);
    }
    let study = StudyRecord { id: new_id(), ..request.plan.study.clone() };
    Ok(Store::create(request.directory, &study)?)
}

struct Runner<'a> {
    request: &'a Request<'a>,
    study: &'a StudyRecord,
    store: &'a mut Store,
    areas: Areas,
    session: u32,
    host: Environment,
    observe: &'a mut dyn FnMut(Happening<'_>),
}

impl Runner<'_> {
    fn all(&mut self, earlier: &StudyResults) -> Result<Outcome, RunError> {
        let value = |run: &RunRecord| (run.key, primary(&self.study.primary_response, run));
        let mut done: Vec<(RunKey, Option<f64>)> = earlier.runs.iter().map(value).collect();
        loop {
            let Next::Run { key, position } = next(self.study, &done) else { return Ok(Outcome::Complete) };
            if self.stopped() {
                return Ok(Outcome::Stopped);
            }
            let planned = &self.request.plan.treatments[key.treatment as usize];
            (self.observe)(Happening::RunBegins {
                position,
                treatment: &planned.record,
                replicate: key.replicate,
            });
            self.store.begin_run(self.session, key, position)?;
            let run = match self.one(key, position, planned) {
                Err(RunError::Execute { .. }) if self.stopped() => return Ok(Outcome::Stopped),
                run => run?,
            };
            self.store.commit_run(&run)?;
            done.push((key, primary(&self.study.primary_response, &run)));
            (self.observe)(Happening::RunStored { run: &run, treatment: &planned.record });
        }
    }

    fn stopped(&self) -> bool {
        self.request.stop.load(Ordering::Relaxed)
    }

    fn one(&mut self, key: RunKey, position: u32, planned: &PlannedTreatment) -> Result<RunRecord, RunError> {
        let settings = &planned.settings;
        let (started, began) = (Timestamp::now(), Instant::now());
        let mut run = RunRecord {
            key,
            position,
            session: self.session,
            started,
            elapsed_ns: 0,
            failure: None,
            recordings: Vec::new(),
            responses: Vec::new(),
            checks: Vec::new(),
            events: Vec::new(),
            traces: BTreeMap::new(),
        };
        self.areas.area(settings)?.begin_run(settings.run.filesets == FilesetReuse::Fresh)?;
        for ((name, spec), (_, workload)) in settings.workloads.iter().zip(&planned.workloads) {
            let mut trace = match workload.trace || settings.run.trace {
                true => Some(TraceWriter::create(self.store.directory(), key, name)?),
                false => None,
            };
            let executed = self.execute(key, settings, name, workload, trace.as_mut());
            let mut recording = match executed {
                Ok(recording) => recording,
                // The run itself went wrong, and would not be better for being repeated: it is kept, as failed.
                Err(error @ (ExecuteError::ReadBack(_) | ExecuteError::WorkerLost { .. }))
                    if !self.stopped() =>
                {
                    run.failure = Some(format!("workload `{name}`: {error}"));
                    break;
                }
                Err(source) => {
                    let treatment = planned.record.label.clone();
                    let replicate = key.replicate;
                    return Err(RunError::Execute { treatment, replicate, workload: name.clone(), source });
                }
            };
            if let Some(trace) = trace {
                let series: Vec<_> = recording.series.iter().map(|series| series.key.clone()).collect();
                run.traces.insert(name.clone(), trace.finish(&series)?);
            }
            let steady = cut_warm_up(&mut recording, settings.run.cut);
            let subject = Subject { workload, recording: &recording, environment: &self.host, steady };
            run.checks.extend(validity::check(subject));
            run.events.extend(events(&recording));
            if let Some(what) = &recording.corruption {
                run.failure = Some(format!("workload `{name}`: wrong data were read: {what}"));
                run.recordings.push(recording);
                break;
            }
            run.responses.extend(responses(&recording, spec));
            run.recordings.push(recording);
        }
        if run.failure.is_some() {
            run.responses.clear();
        }
        run.elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(run)
    }

    fn execute(
        &mut self,
        key: RunKey,
        settings: &Settings,
        name: &str,
        workload: &Workload,
        trace: Option<&mut TraceWriter>,
    ) -> Result<Recording, ExecuteError> {
        let label = format!("run/{}/{}/{name}", key.treatment, key.replicate);
        let options = Options {
            clients: settings.clients.count,
            seed: stream_seed(self.study.seed, &label),
            fileset_seed: stream_seed(self.study.seed, "filesets"),
            interval_ns: settings.run.interval_for(workload.until.duration).nanos(),
            cache: match settings.run.cache {
                settings::CacheControl::Keep => CacheControl::Keep,
                settings::CacheControl::Drop => CacheControl::Drop,
                settings::CacheControl::Fadvise => CacheControl::Fadvise,
            },
            hook: settings.run.cache_hook.as_deref().map(|hook| (hook, settings.run.hook_timeout.0)),
            max_errors: settings.run.max_errors,
            stop: self.request.stop,
        };
        let area = self.areas.area(settings)?;
        let observe = &mut *self.observe;
        let sink = trace.map(|trace| trace as &mut dyn TraceSink);
        execute(area, name, workload, &options, sink, &mut |progress| {
            observe(Happening::Progress { workload: name, progress });
        })
    }
}

/// The value that the stopping rule sees; runs that failed or must not be used have none.
fn primary(name: &str, run: &RunRecord) -> Option<f64> {
    let usable = run.failure.is_none() && !is_invalid(run);
    run.responses.iter().find(|response| response.name == name).map(|r| r.value).filter(|_| usable)
}

fn events(recording: &Recording) -> Vec<Event> {
    let time = |offset: i64| {
        Timestamp::from_nanosecond(i128::from(recording.started_unix_ns) + i128::from(offset))
            .unwrap_or_default()
    };
    let name = &recording.workload;
    let at_phase = |phase: &str| recording.phases.iter().find(|p| p.phase == phase).map_or(0, |p| p.start_ns);
    let event = |time, kind: &str, text| Event { time, kind: kind.into(), text };
    let mut events = Vec::new();
    for facts in &recording.filesets {
        let how = if facts.reused { "used again" } else { "made" };
        let text =
            format!("{name}: fileset `{}` {how}: {} files, {} bytes", facts.name, facts.files, facts.bytes);
        events.push(event(time(at_phase("prepare")), "prepare", text));
    }
    let cache = format!("{name}: asked for {}; done: {}", recording.cache.requested, recording.cache.done);
    events.push(event(time(at_phase("prepare")), "cache", cache));
    events.push(event(time(0), "measure", format!("{name}: measured phase; {}", recording.cut_reason)));
    let end = time(recording.length_ns.cast_signed());
    events.extend(recording.error_details.iter().map(|text| event(end, "error", format!("{name}: {text}"))));
    events
}
