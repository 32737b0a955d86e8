//! `run` and `quick`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use benchmaster_analysis::adaptive::{Step, is_adaptive, next_step};
use benchmaster_analysis::compare::{Options, Responses, compare_levels};
use benchmaster_analysis::load as curves;
use benchmaster_fleet::controller::FleetError;
use benchmaster_import::line::{self, Line};
use benchmaster_lab::virtual_time as lab_virtual_time;
use benchmaster_record::results::Replication;
use benchmaster_report::{pages, verdicts};
use benchmaster_runner::{self as runner, Faulty, Outcome, Request, RunError};
use benchmaster_store::{CreateError, LockError, OpenError, Store};
use benchmaster_study::battery;
use benchmaster_study::plan::{Plan, screening};
use benchmaster_study::settings::{SERVER, TargetSettings};
use benchmaster_study::target::Target;
use benchmaster_units::format::plural;
use benchmaster_workload::area::AreaError;
use benchmaster_workload::execute::ExecuteError;
use jiff::{Timestamp, Zoned};
use signal_hook::flag;

use crate::cli::{ChangeArgs, FailOn, LineArgs, QuickArgs, RunArgs, RunCommon};
use crate::commands::results::{Found, is_wrong_directory, load};
use crate::commands::{ci, load_study, mistakes, parse, plan_of, print_warnings, virtual_time};
use crate::failure::{Failure, Result, Status, is_no_place};
use crate::json_lines::JsonLines;
use crate::output;
use crate::progress::Reporter;
use crate::signals;

/// What goes on with a study that was stopped.
const SAME: &str = "the same command";

pub(crate) fn run(args: &RunArgs) -> Result<Status> {
    let line = &args.line;
    let (mut file, own) = match (&args.study, line.work()) {
        (place, Some(_)) => {
            let (target, text) = of_line(place.as_deref(), line)?;
            if line.print {
                output::print(&text)?;
                return Ok(Status::Fine);
            }
            (parse("the line", &text, &args.change)?, Some(target))
        }
        (study, None) => (load_study(study_file(study.as_deref(), line)?, &args.change)?, None),
    };
    if args.screen {
        screening(&mut file);
    }
    let mut plan = plan_of(&file)?;
    plan.study.design_details.screen = args.screen;
    if !args.common.quiet {
        print_warnings(&plan, own.is_none());
    }
    if virtual_time::is_wanted(&plan)? {
        return on_virtual_time(&plan, args);
    }
    if args.expect.expect.is_some() {
        return Err(Failure::wrong(
            "only results on virtual time repeat exactly: `--expect` needs a study with `time = \"virtual\"` \
             in `[lab]`",
        ));
    }
    let fail_on = &[args.fail_on];
    match own {
        Some(target) => {
            let (directory, again) = own_results(&plan, &target, &args.common);
            carry_out(&plan, &directory, &again, &args.common, fail_on)
        }
        None => carry_out(&plan, &results_directory(&plan, &args.common), SAME, &args.common, fail_on),
    }
}

/// The study file, where no flag says what to do instead.
fn study_file<'a>(study: Option<&'a Path>, line: &LineArgs) -> Result<&'a Path> {
    let first = line.flags().first().map(|(name, _)| *name);
    let first = first.or(line.runs.map(|_| "runs")).or(line.print.then_some("print"));
    match (study, first) {
        (Some(study), None) => Ok(study),
        (_, Some(flag)) => Err(Failure::wrong(format!(
            "`--{flag}` belongs to a study in one line: add `--rw randread` (or read, write, randwrite, rw, randrw, or \
             `--create N`); a study FILE is changed by `--set KEY=VALUE`"
        ))),
        (None, None) => Err(Failure::wrong(
            "name a study file, or say what to do: `benchmaster run --rw randread --bs 4k --time 30s /mnt/nfs`",
        )),
    }
}

/// What a line measures, and its study.
fn of_line(place: Option<&Path>, line: &LineArgs) -> Result<(Target, String)> {
    if let Some(file) = place.filter(|place| place.is_file()) {
        let (file, flag) = (file.display(), line.work().unwrap_or_default());
        return Err(Failure::wrong(format!(
            "`{file}` is a file, and `--{flag}` needs a directory or an export: leave out `--{flag}` to run it as a study"
        )));
    }
    let target = target_of(place)?;
    let runs = line.runs.unwrap_or(5);
    let wanted = Line { flags: &line.flags(), target: (target.key, &target.value), runs };
    let text = line::to_study(&wanted).map_err(Failure::wrong_input)?;
    Ok((target, text))
}

/// The same in a guest whose clock moves only when everything waits.
fn on_virtual_time(plan: &Plan, args: &RunArgs) -> Result<Status> {
    if args.screen {
        let reason = "--screen decides by intervals, and results on virtual time have none";
        return Err(Failure::wrong(reason));
    }
    // What is only compared need not be kept.
    let passing = match (&args.common.output, &args.expect.expect) {
        (None, Some(_)) => Some(tempfile::tempdir()?),
        _ => None,
    };
    let directory = match &passing {
        Some(directory) => directory.path().join("results"),
        None => results_directory(plan, &args.common),
    };
    let stop = stop_flag()?;
    virtual_time::run(plan, &directory, args.common.quiet, &stop)?;
    let status = match passing {
        Some(_) => Status::Fine,
        None => {
            let lines = JsonLines::new(args.common.json_lines);
            conclude(Outcome::Complete, &directory, SAME, &args.common, &[args.fail_on], &lines)?
        }
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
    let target = target_of(args.target.as_deref())?;
    let against = match &args.against {
        Some(other) => Some(other_target(&target, other)?),
        None => None,
    };
    if against.is_none() && args.fail_on.iter().any(|one| one.compares()) {
        return Err(Failure::wrong(
            "`--fail-on` regression, changed and undecided are about a comparison: name the other target with \
             `--against TARGET`, or compare results with `benchmaster compare A B`",
        ));
    }
    let text = battery::quick(&target, against.as_ref(), args.duration);
    if args.print {
        output::print(&text)?;
        return Ok(Status::Fine);
    }
    let plan = plan_of(&parse("the quick battery", &text, &ChangeArgs::default())?)?;
    let (directory, again) = own_results(&plan, &target, &args.common);
    if against.is_none() {
        return carry_out(&plan, &directory, &again, &args.common, &args.fail_on);
    }
    let mut lines = JsonLines::new(args.common.json_lines);
    compare_targets(&plan, &directory, &again, args, &mut lines).map_err(|failure| lines.failed(failure))
}

/// Two targets in turns, with a verdict for each workload.
fn compare_targets(
    plan: &Plan,
    directory: &Path,
    again: &str,
    args: &QuickArgs,
    lines: &mut JsonLines,
) -> Result<Status> {
    let outcome = measure(plan, directory, again, &args.common, lines)?;
    if outcome == Outcome::Stopped {
        return conclude(outcome, directory, again, &args.common, &args.fail_on, lines);
    }
    let found = Found::load(directory)?;
    let options = Options { responses: Responses::Headlines, band: args.band, confidence: None };
    let comparison =
        compare_levels(&found.results, battery::TARGETS, &options, false).map_err(Failure::wrong_input)?;
    if args.common.json {
        output::print_json(&comparison)?;
    } else {
        lines.tell(&pages::comparison(&comparison, None).text(&output::text_options()))?;
    }
    let report = found.write_report()?;
    if !args.common.json {
        lines.tell(&format!("report: {}\n", report.display()))?;
    }
    let mut judged =
        verdicts::of_comparison(&comparison, |outcome| args.fail_on.iter().any(|one| one.includes(outcome)));
    judged.extend(found.verdicts(&args.fail_on));
    let status = ci::publish(&judged, &args.common.ci, directory, args.common.is_for_programs())?;
    lines.end(outcome, Some(&found), Some(&report), status)?;
    Ok(status)
}

/// As options of a mount have them.
const VERSIONS: [&str; 6] = ["2", "3", "4", "4.0", "4.1", "4.2"];

/// What `--against` names: a target, or a version of the export that the other one is.
fn other_target(target: &Target, other: &Path) -> Result<Target> {
    let version = other.to_str().filter(|text| VERSIONS.contains(text));
    let Some(version) = version else { return target_of(Some(other)) };
    if target.key != "url" {
        return Err(Failure::wrong(format!(
            "--against {version} needs an export by URL, nfs://SERVER/EXPORT, to reach by another version; a directory \
             of that name is ./{version}"
        )));
    }
    let (export, options) = target.place.split_once('?').unwrap_or((&target.place, ""));
    let is_version =
        |option: &&str| ["version", "vers", "nfsvers"].contains(&option.split('=').next().unwrap_or(""));
    let kept = options.split(['&', ',']).filter(|option| !option.is_empty() && !is_version(option));
    let options: Vec<String> = kept.map(str::to_owned).chain([format!("version={version}")]).collect();
    target_of(Some(Path::new(&format!("{export}?{}", options.join("&")))))
}

/// Where the results of a study that no file has go, and what goes on with it if it is stopped.
fn own_results(plan: &Plan, target: &Target, common: &RunCommon) -> (PathBuf, String) {
    match &common.output {
        Some(directory) => (directory.clone(), SAME.to_owned()),
        None => {
            let directory = own_directory(&plan.study.name, &target.place, &Zoned::now());
            let again = format!("{SAME} with `-o {}`", directory.display());
            (directory, again)
        }
    }
}

/// Results of their own for each time: a name from the target and the time, with a number where there are such already.
fn own_directory(study: &str, target: &str, now: &Zoned) -> PathBuf {
    let name = target.strip_prefix("nfs://").unwrap_or(target);
    let name = name.split_once('?').map_or(name, |(name, _)| name).replace(SERVER, "embedded");
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    // Names of files have at most 255 bytes; the end of a path tells more than its beginning.
    let name = &name[name.len().saturating_sub(100)..];
    let first = Path::new("results").join(format!("{study}-{name}-{}", now.strftime("%Y%m%d-%H%M")));
    let numbered = (2..).map(|number| PathBuf::from(format!("{}-{number}", first.display())));
    std::iter::once(first.clone()).chain(numbered).find(|path| !path.exists()).unwrap_or(first)
}

/// The embedded server's export, an export as it is, a directory as an absolute path.
fn target_of(place: Option<&Path>) -> Result<Target> {
    let embedded = PathBuf::from(format!("nfs://{SERVER}/export"));
    let place = place.unwrap_or(&embedded);
    let not_utf8 = || Failure::wrong(format!("the path `{}` is not UTF-8", place.display()));
    let text = place.to_str().ok_or_else(not_utf8)?;
    let target = Target::read(text).map_err(Failure::wrong_input)?;
    match target.key {
        "url" => {
            // A mistake in it would else be shown in a file that the user has not written.
            let settings = TargetSettings { url: Some(target.place.clone()), ..TargetSettings::default() };
            settings.mount_options("127.0.0.1").map_err(|mistake| {
                let fix = mistake.fix.map_or_else(String::new, |fix| format!("; {fix}"));
                Failure::wrong(format!("{}{fix}", mistake.problem))
            })?;
            Ok(target)
        }
        "path" => {
            let path = std::path::absolute(place).map_err(Failure::wrong_input)?;
            Ok(Target::directory(path.to_str().ok_or_else(not_utf8)?))
        }
        _ => Ok(target),
    }
}

/// `again` is what goes on with the study if it is stopped.
fn carry_out(
    plan: &Plan,
    directory: &Path,
    again: &str,
    common: &RunCommon,
    fail_on: &[FailOn],
) -> Result<Status> {
    let mut lines = JsonLines::new(common.json_lines);
    let outcome = measure(plan, directory, again, common, &mut lines);
    // The host prints what a guest on virtual time found: it gets the results.
    if lab_virtual_time::is_inside() {
        return outcome.map(|_| Status::Fine);
    }
    outcome
        .and_then(|outcome| conclude(outcome, directory, again, common, fail_on, &lines))
        .map_err(|failure| lines.failed(failure))
}

/// All runs of a study, with the stages that their results ask for.
fn measure(
    plan: &Plan,
    directory: &Path,
    again: &str,
    common: &RunCommon,
    lines: &mut JsonLines,
) -> Result<Outcome> {
    // While there is one thread. Where it is refused, the networks that need it say so, or a relay takes their place.
    let _ = runner::prepare_process(plan);
    let stop = stop_flag()?;
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    let trial = common.faults.as_deref().map(virtual_time::trial).transpose()?;
    let history = virtual_time::history();
    let faults = trial.as_ref().map(|trial| Faulty { trial, history: &history });
    let request = Request { plan, directory, command: &command, stop: &stop, faults };
    let mut announces = true;
    loop {
        let mut reporter = Reporter::new(plan, directory, again, common.quiet, announces);
        announces = false;
        let mut written = Ok(());
        let outcome = runner::run(&request, &mut |event, live| {
            reporter.take(&event, live);
            if written.is_ok() {
                written = lines.take(&event, live, plan, directory);
            }
        });
        reporter.finish();
        written?;
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => return Err(Failure { consequence: reporter.stored(), ..failure(error) }),
        };
        if outcome == Outcome::Stopped || !add_stage(plan, directory)? {
            return Ok(outcome);
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
    store.add_stage(&stage.stage, &stage.new)?;
    Ok(true)
}

fn conclude(
    outcome: Outcome,
    directory: &Path,
    again: &str,
    common: &RunCommon,
    fail_on: &[FailOn],
    lines: &JsonLines,
) -> Result<Status> {
    let results = load(directory)?;
    if outcome == Outcome::Stopped && results.runs.is_empty() {
        output::note(&format!("interrupted before the first run was done; {again} begins again"));
        lines.end(outcome, None, None, Status::Interrupted)?;
        return Ok(Status::Interrupted);
    }
    let found = Found::of(directory, results);
    // The summary does not wait for a report that cannot be written.
    let report = found.write_report();
    if common.json {
        output::print_json(&found.answer())?
    } else {
        lines.tell(&found.summary(report.as_ref().ok().cloned()))?;
    }
    if outcome == Outcome::Stopped {
        output::note(&format!(
            "interrupted: the run in flight is lost, all others are stored; {again} resumes"
        ));
    }
    let report = report?;
    let status = match outcome {
        Outcome::Stopped => Status::Interrupted,
        Outcome::Complete => {
            ci::publish(&found.verdicts(fail_on), &common.ci, directory, common.is_for_programs())?
        }
    };
    lines.end(outcome, Some(&found), Some(&report), status)?;
    Ok(status)
}

/// A signal that ends commands stops the study; a second one ends the process at once.
pub(crate) fn stop_flag() -> std::io::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals::ending() {
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
            return Failure::wrong(format!(
                "`{path}` cannot be a results directory ({source}): choose another with `-o`"
            ));
        }
        RunError::Area(AreaError::NotADirectory { .. } | AreaError::Mount(_)) => true,
        RunError::Target { .. } | RunError::NoSource { .. } | RunError::Resolve { .. } => true,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_of_quick_are_named_after_target_and_time() {
        let now: Zoned = "2026-11-23T03:27:59+01:00[Europe/Berlin]".parse().unwrap();
        let name = |target: &str| own_directory("quick", target, &now).display().to_string();
        assert_eq!(name("/mnt/nfs"), "results/quick-mnt-nfs-20261123-0327");
        assert_eq!(
            name("nfs://filer.site:2050/vol1?version=3"),
            "results/quick-filer-site-2050-vol1-20261123-0327"
        );
        assert_eq!(name("filer:/vol1"), "results/quick-filer-vol1-20261123-0327");
        assert_eq!(name("nfs://{server}/export"), "results/quick-embedded-export-20261123-0327");
        assert!(name(&"/über/straße".repeat(100)).len() < 200);
    }
}
