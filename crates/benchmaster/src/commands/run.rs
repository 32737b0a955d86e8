//! `run` and `quick`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use benchmaster_report::terminal::{self, TextOptions};
use benchmaster_store::{CreateError, LockError, OpenError};
use benchmaster_study::analysis::analyze;
use benchmaster_study::battery;
use benchmaster_study::plan::Plan;
use benchmaster_study::runner::{self, Outcome, Request, RunError};
use benchmaster_workload::area::AreaError;
use benchmaster_workload::execute::ExecuteError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::cli::{QuickArgs, RunArgs, RunCommon};
use crate::commands::results::{is_wrong_directory, load, status, write_report_into};
use crate::commands::{Failure, Result, Status, is_no_place, load_plan, parse, plan_of};
use crate::output;
use crate::progress::Reporter;

pub(crate) fn run(args: &RunArgs) -> Result<Status> {
    carry_out(&load_plan(&args.study)?, &args.common)
}

pub(crate) fn quick(args: &QuickArgs) -> Result<Status> {
    let path = match std::path::absolute(&args.target) {
        Ok(path) => path,
        Err(error) => return Err(Failure::wrong_input(error)),
    };
    let Some(path) = path.to_str() else {
        let error = anyhow::anyhow!("the path `{}` is not UTF-8", path.display());
        return Err(Failure::wrong_input(error));
    };
    let text = battery::quick(path, args.duration);
    if args.print {
        output::print(&text)?;
        return Ok(Status::Fine);
    }
    carry_out(&plan_of(&parse("the quick battery", &text)?)?, &args.common)
}

fn carry_out(plan: &Plan, common: &RunCommon) -> Result<Status> {
    let directory = common.output.clone().unwrap_or_else(|| Path::new("results").join(&plan.study.name));
    let stop = stop_flag().map_err(Failure::failed)?;
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let request = Request { plan, directory: &directory, command: &command, stop: &stop };
    let mut reporter = Reporter::new(plan, &directory, common.quiet);
    let outcome = runner::run(&request, &mut |happening| reporter.take(&happening));
    reporter.finish();
    match outcome {
        Ok(outcome) => conclude(outcome, &directory, common.json),
        Err(error) => Err(Failure { consequence: reporter.stored(), ..failure(error) }),
    }
}

fn conclude(outcome: Outcome, directory: &Path, json: bool) -> Result<Status> {
    let results = load(directory)?;
    if outcome == Outcome::Stopped && results.runs.is_empty() {
        output::note("interrupted before the first run was done; the same command begins again");
        return Ok(Status::Interrupted);
    }
    let analysis = analyze(&results);
    // The summary does not wait for a report that cannot be written.
    let report = write_report_into(directory, &results, &analysis);
    match json {
        true => output::print_json(&analysis)?,
        false => {
            let options = TextOptions { report: report.as_ref().ok().cloned(), ..output::text_options() };
            output::print(&terminal::summary(&results, &analysis, &options))?;
        }
    }
    if outcome == Outcome::Stopped {
        output::note(
            "interrupted: the run in flight is lost, all others are stored; the same command resumes",
        );
    }
    report?;
    Ok(match outcome {
        Outcome::Stopped => Status::Interrupted,
        Outcome::Complete => status(&analysis),
    })
}

/// SIGINT and SIGTERM stop the study; a second one ends the process at once.
fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, stop.clone())?;
        flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Errors of what the user gave are wrong input; all others stop the measurement.
fn failure(error: RunError) -> Failure {
    let input = match &error {
        RunError::Create(CreateError::Io { path, source }) if is_no_place(source.kind()) => {
            let path = path.display();
            return Failure::wrong_input(anyhow::anyhow!(
                "`{path}` cannot be a results directory ({source}): choose another with `-o`"
            ));
        }
        RunError::Area(AreaError::NotADirectory { .. }) => true,
        RunError::OtherStudy { .. } | RunError::OtherTarget { .. } => true,
        RunError::Create(CreateError::NotEmpty { .. } | CreateError::Plan(_)) => true,
        RunError::Create(CreateError::Lock(lock)) | RunError::Open(OpenError::Lock(lock)) => {
            matches!(lock, LockError::Running(_))
        }
        RunError::Open(OpenError::Database(error)) => is_wrong_directory(error),
        RunError::Execute { source, .. } => matches!(source, ExecuteError::Workload(_)),
        _ => false,
    };
    match input {
        true => Failure::wrong_input(error),
        false => Failure::failed(error),
    }
}
