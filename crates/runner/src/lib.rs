//! The runner: carries out a plan in a results directory, run by run, and resumes where it was interrupted.

mod baseline;
mod certificates;
mod crew;
pub mod expect;
mod faults;
mod hooks;
mod lab;
mod live;
mod local;
mod moment;
mod network;
mod outcome;
mod server_use;
mod services;
mod session;
mod setup;
mod targets;
mod transmit_queues;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use benchmaster_analysis::schedule::is_complete;
use benchmaster_explore::study::Trial;
use benchmaster_record::live::Live;
use benchmaster_record::results::{RunRecord, SessionEnd, StudyRecord, StudyResults, TreatmentRecord};
use benchmaster_store::trace::TraceError;
use benchmaster_store::{CreateError, LoadError, OpenError, Store, WriteError};
use benchmaster_telemetry::Environment;
use benchmaster_workload::area::{AreaError, new_id};
use benchmaster_workload::execute::{Done, ExecuteError, Progress};
use jiff::{Timestamp, Zoned};

use self::live::Watched;
use self::session::Runner;
use self::targets::check_targets;
use benchmaster_study::diagnostics::Diagnostics;
use benchmaster_study::plan::{Difference, Plan, compatible};

pub use self::faults::{FaultLine, FaultLineKind};
pub use self::network::{emulation_here, prepare_process};
pub use self::targets::missing_targets;

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
    /// What goes wrong while workloads are measured, in a lab on virtual time.
    pub faults: Option<Faulty<'a>>,
}

/// What goes wrong in a study, and where that is written.
#[derive(Debug, Clone, Copy)]
pub struct Faulty<'a> {
    /// What goes wrong.
    pub trial: &'a Trial,
    /// A file to which a line of JSON is added for everything that went wrong ([`FaultLine`]).
    pub history: &'a Path,
}

/// What happens while a study is run.
#[derive(Debug)]
pub enum RunEvent<'a> {
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
    /// The time of day at which a block begins is waited for.
    Waiting {
        /// The name of the block.
        block: &'a str,
        /// Until when.
        until: &'a Zoned,
    },
    /// Something that takes time outside of runs is done: agents are started, a step of the server is run.
    Note(&'a str),
    /// An attempt at the run in flight failed, and it is tried again.
    Retry {
        /// Why it failed.
        reason: &'a str,
    },
    /// A run goes on.
    Progress {
        /// The workload at work.
        workload: &'a str,
        /// How far all clients together are.
        progress: Progress,
        /// How far each process is.
        clients: &'a [ClientProgress],
    },
    /// A run is stored.
    RunStored {
        /// The run.
        run: &'a RunRecord,
        /// Its treatment.
        treatment: &'a TreatmentRecord,
    },
}

/// How far one process of clients is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientProgress {
    /// Its name in the study.
    pub name: String,
    /// Its host.
    pub host: String,
    /// What it did in the present phase so far.
    pub done: Done,
    /// What it does.
    pub state: ClientState,
}

/// What a process of clients does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClientState {
    /// Its part of the run.
    #[default]
    Working,
    /// It waits for others.
    Waiting,
    /// It has brought home what it recorded.
    Done,
    /// It failed or was lost.
    Failed,
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
    /// A target cannot be what it is said to be.
    #[error("target `{target}`: {problem}")]
    Target {
        /// The target.
        target: String,
        /// What is wrong.
        problem: String,
    },
    /// What is to be mounted is not there.
    #[error(
        "`{source_path}`, the `source` of `target.mount`, does not exist; name the device or directory to mount"
    )]
    NoSource {
        /// Its path.
        source_path: PathBuf,
    },
    /// The name of a server means nothing.
    #[error("cannot find the server `{host}`: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// Why not.
        source: std::io::Error,
    },
    /// The embedded server does not start.
    #[error("the embedded server: {0}")]
    Server(#[from] benchmaster_nfs_server::ServerError),
    /// It has no Kerberos keys.
    #[error("the embedded server: {0}")]
    Kerberos(#[from] benchmaster_rpc_gss::GssError),
    /// It does not know who its users are.
    #[error("the embedded server: {0}")]
    Users(#[from] benchmaster_nfs_server::users::UsersError),
    /// Its certificates cannot be made.
    #[error("the certificates of the embedded server cannot be made: {error}")]
    Certificates {
        /// Why not.
        error: String,
    },
    /// The relay does not start.
    #[error("the emulated network: {0}")]
    Relay(#[from] benchmaster_netem::relay::RelayError),
    /// The network between namespaces does not start, or stopped.
    #[error("the emulated network: {0}")]
    Network(#[from] benchmaster_netem::network::NetworkError),
    /// The lab could not be brought up, or could not do its part.
    #[error("the lab: {0}")]
    Lab(Box<benchmaster_lab::LabError>),
    /// A lab of that name is up, and is not what the study asks for.
    #[error(
        "the lab `{name}` is up, but {difference}: end it with `benchmaster lab down --name {name}`, so that the study brings \
         up its own, or write another `name` in `[lab]`"
    )]
    OtherLab {
        /// Its name.
        name: String,
        /// The first difference.
        difference: String,
    },
    /// A step of the study failed.
    #[error("the step `{step}` failed on {agent} ({ended}): `{command}`{}", printed(output))]
    Step {
        /// Its name.
        step: String,
        /// Where.
        agent: String,
        /// The command.
        command: String,
        /// How it ended.
        ended: String,
        /// The end of what it printed.
        output: String,
    },
    /// A process of clients was lost outside of a run, or as often as the study allows.
    #[error("{agent} is lost: {reason}")]
    Lost {
        /// Which.
        agent: String,
        /// Why.
        reason: String,
    },
    /// A run failed, and the study asks to stop then.
    #[error("treatment `{treatment}`, replicate {}, failed: {reason}; the same command continues with the next run", replicate + 1)]
    RunFailed {
        /// Label of the treatment.
        treatment: String,
        /// Replicate, from 0.
        replicate: u32,
        /// Why.
        reason: String,
    },
    /// Agents could not be started, or could not do their part.
    #[error(transparent)]
    Fleet(#[from] benchmaster_fleet::controller::FleetError),
    /// Recordings of several processes do not go together.
    #[error(transparent)]
    Merge(#[from] benchmaster_fleet::merge::MergeError),
    /// The results directory holds another study.
    #[error("`{}`: {difference}", directory.display())]
    OtherStudy {
        /// The directory.
        directory: PathBuf,
        /// The first difference.
        difference: Box<Difference>,
    },
    /// The stored study has a treatment that the plan does not have.
    #[error(
        "the plan has no treatment {treatment}, which is to be run next; internal error, please report it"
    )]
    NoTreatment {
        /// Its number.
        treatment: u32,
    },
    /// Treatments that were added to the study cannot be run.
    #[error("treatments that were added to the study cannot be run:\n{0}")]
    Stages(Diagnostics),
    /// A target is not what it was.
    #[error(
        "finished runs measured {then}, and this would measure {now}: bring back what was measured (mount, current \
         directory), or begin again in another directory with `-o`"
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
        source: Box<ExecuteError>,
    },
}

/// What a command printed, for the end of a message.
fn printed(output: &str) -> String {
    match output {
        "" => String::new(),
        output => format!("\n{output}"),
    }
}

/// Runs or resumes a study until it is complete, stopped, or cannot go on. `observe` takes what happens, with the state of
/// the study then.
///
/// # Errors
/// See [`RunError`]. Nothing is created when the target is missing or the directory holds another study.
pub fn run(request: &Request<'_>, observe: &mut dyn FnMut(RunEvent<'_>, &Live)) -> Result<Outcome, RunError> {
    let unknown = Live::default();
    let is_new = !Store::exists(request.directory);
    if is_new {
        check_targets(request.plan, &mut |event| observe(event, &unknown))?;
    }
    let mut store = open_store(request)?;
    let staged;
    let request = if store.study().stages.is_empty() {
        request
    } else {
        let plan = request.plan.with_stages(store.study()).map_err(RunError::Stages)?;
        staged = plan;
        &Request { plan: &staged, ..*request }
    };
    let earlier = Store::load(request.directory)?;
    if is_complete(&earlier) {
        observe(RunEvent::AlreadyComplete { done: earlier.runs.len() as u32 }, &unknown);
        return Ok(Outcome::Complete);
    }
    if !is_new {
        check_targets(request.plan, &mut |event| observe(event, &unknown))?;
    }
    let mut watched = Watched::begin(request.plan, request.directory, &earlier);
    let mut tell = |event: RunEvent<'_>| {
        watched.take(&event);
        observe(event, &watched.live);
    };
    let result = carry_out(request, &earlier, &mut store, &mut tell);
    watched.end(&result);
    result
}

fn carry_out(
    request: &Request<'_>,
    earlier: &StudyResults,
    store: &mut Store,
    observe: &mut dyn FnMut(RunEvent<'_>),
) -> Result<Outcome, RunError> {
    let mut runner = Runner::begin(request, earlier, store, observe)?;
    let result = runner.all(earlier);
    let removed = runner.clean_up();
    let end = match (&result, &removed) {
        (Ok(Outcome::Complete), Ok(())) => SessionEnd::Complete,
        (Ok(Outcome::Stopped), Ok(())) => SessionEnd::Stopped,
        _ => SessionEnd::Failed,
    };
    let session = runner.session();
    let ended = store.end_session(session, Timestamp::now(), end);
    let outcome = result?;
    removed?;
    ended?;
    Ok(outcome)
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
