//! `run` and `quick`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use benchmaster_analysis::adaptive::{Step, is_adaptive, next_step};
use benchmaster_analysis::load as curves;
use benchmaster_fleet::controller::FleetError;
use benchmaster_lab::virtual_time as lab_virtual_time;
use benchmaster_record::results::Replication;
use benchmaster_runner::{self as runner, Outcome, Request, RunError};
use benchmaster_store::{CreateError, LockError, OpenError, Store};
use benchmaster_study::battery;
use benchmaster_study::plan::{Plan, screening};
use benchmaster_study::settings::{SERVER, TargetSettings};
use benchmaster_units::format::plural;
use benchmaster_workload::area::AreaError;
use benchmaster_workload::execute::ExecuteError;
use jiff::Timestamp;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::cli::{QuickArgs, RunArgs, RunCommon};
use crate::commands::results::{
    found, is_wrong_directory, load, print_json, print_summary, status, write_report_into,
};
use crate::commands::{load_study, mistakes, parse, plan_of, virtual_time};
use crate::failure::{Failure, Result, Status, is_no_place};
use crate::output;
use crate::progress::Reporter;

pub(crate) fn run(args: &RunArgs) -> Result<Status> {
    let mut file = load_study(&args.study, &args.change)?;
    if args.screen {
        screening(&mut file);
    }
    let mut plan = plan_of(&file)?;
    plan.study.design_details.screen = args.screen;
    if virtual_time::is_wanted(&plan)? {
        return on_virtual_time(&plan, args);
    }
    if args.expect.expect.is_some() {
        return Err(Failure::wrong_input(anyhow::anyhow!(
            "only what is found on virtual time is the same in every run: `--expect` is for studies with `time = \"virtual\"` \
             in `[lab]`"
        )));
    }
    carry_out(&plan, &args.common)
}

/// The same in a guest whose clock moves only when everything waits.
fn on_virtual_time(plan: &Plan, args: &RunArgs) -> Result<Status> {
    if args.screen {
        let reason = "--screen decides by intervals, and what is found on virtual time has none";
        return Err(Failure::wrong_input(anyhow::anyhow!(reason)));
    }
    // What is only compared need not be kept.
    let passing = match (&args.common.output, &args.expect.expect) {
        (None, Some(_)) => Some(tempfile::tempdir().map_err(Failure::failed)?),
        _ => None,
    };
    let directory = match &passing {
        Some(directory) => directory.path().join("results"),
        None => results_directory(plan, &args.common),
    };
    let stop = stop_flag().map_err(Failure::failed)?;
    virtual_time::run(plan, &directory, args.common.quiet, &stop)?;
    let status = match passing {
        Some(_) => Status::Fine,
        None => conclude(Outcome::Complete, &directory, args.common.json)?,
    };
    match virtual_time::expect(plan, &directory, &args.expect)? {
        Status::Fine => Ok(status),
        other => Ok(other),
    }
}

fn results_directory(plan: &Plan, common: &RunCommon) -> PathBuf {
    common.output.clone().unwrap_or_else(|| Path::new("results").join(&plan.study.name))
}

pub(crate) fn quick(args: &QuickArgs) -> Result<Status> {
    let target = quick_target(args.target.as_deref())?;
    let text = battery::quick(&target, args.duration);
    if args.print {
        output::print(&text)?;
        return Ok(Status::Fine);
    }
    carry_out(&plan_of(&parse("the quick battery", &text)?)?, &args.common)
}

/// The embedded server's export, a URL as it is, a directory as an absolute path.
fn quick_target(target: Option<&Path>) -> Result<String> {
    let Some(target) = target else { return Ok(format!("nfs://{SERVER}/export")) };
    if let Some(url) = target.to_str().filter(|text| text.starts_with("nfs://")) {
        // A mistake in it would else be shown in a file that the user has not written.
        let settings = TargetSettings { url: Some(url.to_owned()), ..TargetSettings::default() };
        settings.mount_options("127.0.0.1").map_err(|mistake| {
            let fix = mistake.fix.map_or_else(String::new, |fix| format!("; {fix}"));
            Failure::wrong_input(anyhow::anyhow!("{}{fix}", mistake.problem))
        })?;
        return Ok(url.to_owned());
    }
    let path = std::path::absolute(target).map_err(Failure::wrong_input)?;
    let not_utf8 = || Failure::wrong_input(anyhow::anyhow!("the path `{}` is not UTF-8", path.display()));
    path.to_str().map(str::to_owned).ok_or_else(not_utf8)
}

fn carry_out(plan: &Plan, common: &RunCommon) -> Result<Status> {
    let directory = results_directory(plan, common);
    // While there is one thread. Where it is refused, the networks that need it say so, or a relay takes their place.
    let _ = runner::prepare_process(plan);
    let stop = stop_flag().map_err(Failure::failed)?;
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let request = Request { plan, directory: &directory, command: &command, stop: &stop };
    loop {
        let mut reporter = Reporter::new(plan, &directory, common.quiet);
        let outcome = runner::run(&request, &mut |happening| reporter.take(&happening));
        reporter.finish();
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return Err(Failure { consequence: reporter.stored(), ..failure(error) }),
        };
        if outcome == Outcome::Stopped || !add_stage(plan, &directory)? {
            // The host prints what a guest on virtual time found: it gets the results.
            return if lab_virtual_time::is_inside() {
                Ok(Status::Fine)
            } else {
                conclude(outcome, &directory, common.json)
            };
        }
    }
}

/// Adds what a study whose planned runs are done needs next. Returns whether there is anything.
fn add_stage(plan: &Plan, directory: &Path) -> Result<bool> {
    let results = load(directory)?;
    let addition = if curves::is_load(&results) {
        curves::addition(&results)
    } else if is_adaptive(&results) {
        match next_step(&results) {
            Ok(Step::Add(addition)) => Some(addition),
            // The summary says what cannot be decided.
            Ok(Step::Finished(_)) | Err(_) => None,
        }
    } else {
        None
    };
    let Some(addition) = addition else { return Ok(false) };
    let planned = plan.with_stages(&results.study).map_err(|found| mistakes(&found))?;
    let replicates = Replication::Fixed(addition.replicates);
    let stage = planned.stage(addition.kind, addition.reason, &addition.rows, replicates, Timestamp::now());
    output::note(&format!(
        "stage {}: {} × {}, because {}",
        stage.stage.number,
        plural(stage.stage.treatments.len(), "treatment"),
        plural(addition.replicates as usize, "replicate"),
        stage.stage.reason
    ));
    let mut store = Store::open(directory).map_err(|error| failure(error.into()))?;
    store.add_stage(&stage.stage, &stage.new).map_err(Failure::failed)?;
    Ok(true)
}

fn conclude(outcome: Outcome, directory: &Path, json: bool) -> Result<Status> {
    let results = load(directory)?;
    if outcome == Outcome::Stopped && results.runs.is_empty() {
        output::note("interrupted before the first run was done; the same command begins again");
        return Ok(Status::Interrupted);
    }
    let (analysis, diagnosis) = found(directory, &results);
    // The summary does not wait for a report that cannot be written.
    let report = write_report_into(directory, &results, &analysis, &diagnosis);
    if json {
        print_json(&analysis, &diagnosis)?
    } else {
        let written = report.as_ref().ok().cloned();
        print_summary(directory, &results, &analysis, &diagnosis, written)?;
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
        RunError::Area(AreaError::NotADirectory { .. } | AreaError::Mount(_)) => true,
        RunError::Target { .. } | RunError::Resolve { .. } => true,
        RunError::Fleet(FleetError::Launch(_) | FleetError::Config(_)) => true,
        RunError::OtherStudy { .. } | RunError::OtherTarget { .. } => true,
        RunError::Create(CreateError::NotEmpty { .. } | CreateError::Plan(_)) => true,
        RunError::Create(CreateError::Lock(lock)) | RunError::Open(OpenError::Lock(lock)) => {
            matches!(lock, LockError::Running(_))
        }
        RunError::Open(OpenError::Database(error)) => is_wrong_directory(error),
        RunError::Execute { source, .. } => matches!(**source, ExecuteError::Workload(_)),
        _ => false,
    };
    if input { Failure::wrong_input(error) } else { Failure::failed(error) }
}
