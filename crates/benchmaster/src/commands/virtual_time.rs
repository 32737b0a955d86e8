//! Studies on virtual time: the controller runs in a guest, and the results come out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context as _;
use benchmaster_explore::study::Trial;
use benchmaster_lab::FileSystem;
use benchmaster_lab::kernel::{self, Architecture, KernelChoice};
use benchmaster_lab::root;
use benchmaster_lab::virtual_time::{self, Boot, BootError, Ended, HOST, Job, LIMIT, Part, PartError};
use benchmaster_record::results::LabTime;
use benchmaster_runner::expect::{ExpectError, Expectation};
use benchmaster_store::Store;
use benchmaster_study::plan::Plan;
use benchmaster_study::settings::Settings;

use tempfile::TempDir;

use crate::cli::ExpectArgs;
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Where the controller in the guest has the results.
const RESULTS: &str = "/tmp/results";

/// How long a trial may take on the host's clock: an idle host needs two seconds. One that takes longer stands still.
const TRIAL_LIMIT: Duration = Duration::from_secs(300);

/// What goes wrong, in the share.
const TRIAL: &str = "trial.json";
/// What went wrong, in the share.
pub(crate) const HISTORY: &str = "history.json";

/// Memory that the guest's kernel, programs and the controller's results take beside clients and server.
const OWN_MEMORY: u64 = 256 << 20;

/// The part of a lab on virtual time that this process was started for, which only this program does.
pub(crate) fn part_wanted() -> Option<Vec<String>> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == virtual_time::COMMAND) {
        return Some(arguments.map(|argument| argument.to_string_lossy().into_owned()).collect());
    }
    // Nodes have a process 1 of their own, which was asked for a part.
    let is_first = std::process::id() == 1 && std::env::var_os(virtual_time::VARIABLE).is_some();
    is_first.then(|| Part::First.arguments())
}

/// What this program does for a lab on virtual time, as a process of its own.
pub(crate) fn part(arguments: &[String]) -> Result<Status> {
    let part = Part::parse(arguments).map_err(Failure::wrong_input)?;
    part.play().map_err(|error| match error {
        error @ PartError::Unknown(_) => Failure::wrong_input(error),
        error => Failure::failed(error),
    })?;
    Ok(Status::Fine)
}

/// Whether a study runs on virtual time, and this is not the guest in which it does.
///
/// # Errors
/// When only some of its treatments do.
pub(crate) fn is_wanted(plan: &Plan) -> Result<bool> {
    let on_virtual_time =
        |settings: &Settings| settings.lab.as_ref().is_some_and(|lab| lab.time == LabTime::Virtual);
    let (yes, no): (Vec<_>, Vec<_>) =
        plan.all_treatments().partition(|treatment| on_virtual_time(&treatment.settings));
    match (yes.is_empty(), no.is_empty()) {
        (false, false) => Err(Failure::wrong(format!(
            "`lab.time` is \"virtual\" for the treatment `{}` and not for `{}`: one study runs on one kind of time; write two \
             studies, or choose with `--set lab.time=virtual`",
            yes[0].record.label, no[0].record.label
        ))),
        (true, _) => Ok(false),
        (false, _) => {
            let study: toml::Table = toml::from_str(&plan.study.text).unwrap_or_default();
            let response = study.get("design").and_then(|design| design.get("response"));
            match response.and_then(toml::Value::as_str).filter(|response| is_meaningless(response)) {
                Some(response) => Err(Failure::wrong(format!(
                    "`design.response`: `{response}` means nothing on virtual time, where computing takes no time; choose a \
                     latency, `elapsed` or counts of RPCs, or write `time = \"real\"` in `[lab]`"
                ))),
                None => Ok(!virtual_time::is_inside()),
            }
        }
    }
}

/// Whether a response is a rate or a use of processors.
fn is_meaningless(response: &str) -> bool {
    let rates = ["throughput", "operations", "active_operations", "wire_sent", "wire_received"];
    let last = response.rsplit('.').next().unwrap_or_default();
    rates.contains(&last) || last.contains("cpu") || last.ends_with("busy")
}

/// Runs the study in a guest, and puts the results into the directory.
pub(crate) fn run(plan: &Plan, directory: &Path, quiet: bool, stop: &Arc<AtomicBool>) -> Result<()> {
    if Store::exists(directory) || fs::read_dir(directory).is_ok_and(|mut found| found.next().is_some()) {
        return Err(Failure::wrong(format!(
            "`{}` already exists: a study on virtual time is never resumed; choose another directory with `-o`",
            directory.display()
        )));
    }
    let mut report = |text: &str| {
        if !quiet {
            output::note(text);
        }
    };
    let (share, ended) = Guest::of(plan, &mut report)?.run(&plan.study.text, None, stop)?;
    let ended = ended.map_err(failure)?;
    let results = share.path().join("results");
    if !Store::exists(&results) {
        let said = ended.messages.trim();
        return Err(Failure::fault(format!("the study did not run on virtual time: {said}")));
    }
    copy(&results, directory).map_err(|source| {
        let place = directory.display();
        Failure::fault(format!("the results cannot be copied to `{place}`: {source}")).of_a_place_given()
    })?;
    // What the controller complained of; the summary has the rest.
    if ended.status != 0 && !ended.messages.trim().is_empty() {
        output::note(ended.messages.trim());
    }
    Ok(())
}

/// Why a guest did not do its job, and what that means for the exit status.
fn failure(error: BootError) -> Failure {
    match error {
        error @ BootError::NoVirtualTime { .. } => Failure::wrong_input(error),
        BootError::Stopped => Failure::new(Status::Interrupted, BootError::Stopped.into()),
        error => Failure::failed(error),
    }
}

/// What guests for a study are made of.
#[derive(Debug)]
pub(crate) struct Guest {
    kernel: kernel::Kernel,
    image: PathBuf,
    hash: String,
    memory: u64,
    disk: Option<u64>,
}

impl Guest {
    pub(crate) fn of(plan: &Plan, report: &mut dyn FnMut(&str)) -> Result<Self> {
        let (kernel, image) = bootable(plan, report)?;
        let hash = root::hash(&image)?;
        let clients = plan.all_treatments().map(|treatment| treatment.settings.clients()).max().unwrap_or(1);
        let memory = |of: fn(&benchmaster_study::settings::LabSettings) -> u64| {
            plan.all_treatments().filter_map(|treatment| treatment.settings.lab.as_ref().map(of)).max()
        };
        let memory = OWN_MEMORY
            + memory(|lab| lab.server_memory.0).unwrap_or_default()
            + u64::from(clients) * memory(|lab| lab.memory.0).unwrap_or_default();
        Ok(Self { kernel, image, hash, memory, disk: disk(plan) })
    }

    /// Runs a study in one; gives its share and how it ended.
    pub(crate) fn run(
        &self,
        study: &str,
        trial: Option<&Trial>,
        stop: &AtomicBool,
    ) -> Result<(TempDir, std::result::Result<Ended, BootError>)> {
        let share = virtual_time::share()?;
        fs::write(share.path().join("study.toml"), study)?;
        let study = format!("{HOST}/study.toml");
        let mut arguments: Vec<String> =
            ["run", &study, "--quiet", "-o", RESULTS].into_iter().map(str::to_owned).collect();
        if let Some(trial) = trial {
            fs::write(share.path().join(TRIAL), serde_json::to_vec(trial)?)?;
            arguments.extend(["--faults".to_owned(), format!("{HOST}/{TRIAL}")]);
        }
        let job = Job {
            arguments,
            results: vec![(RESULTS.into(), "results".into())],
            kernel: self.kernel.clone(),
            image: self.hash.clone(),
            memory: self.memory,
            disk: self.disk,
            seed: trial.map_or(0, |trial| trial.seed),
        };
        let limit = trial.map_or(LIMIT, |_| TRIAL_LIMIT);
        let boot = Boot { image: &self.image, share: share.path(), job: &job, limit, stop };
        let ended = virtual_time::boot(&boot);
        Ok((share, ended))
    }
}

/// The trial that the host gave to this guest.
pub(crate) fn trial(file: &Path) -> Result<Trial> {
    let text = fs::read_to_string(file)
        .with_context(|| format!("cannot read the trial {}", file.display()))
        .map_err(Failure::wrong_input)?;
    let place = || format!("{} is no trial", file.display());
    let trial: Trial = serde_json::from_str(&text).with_context(place).map_err(Failure::wrong_input)?;
    trial.check(u8::MAX).with_context(place).map_err(Failure::wrong_input)?;
    Ok(trial)
}

/// Where a guest tells what went wrong.
pub(crate) fn history() -> PathBuf {
    Path::new(HOST).join(HISTORY)
}

/// Size of the largest disk that a treatment's server has.
fn disk(plan: &Plan) -> Option<u64> {
    let labs = plan.all_treatments().filter_map(|treatment| treatment.settings.lab.as_ref());
    let on_disk = labs.map(|lab| lab.knfsd()).filter(|server| server.file_system != FileSystem::Tmpfs);
    on_disk.map(|server| server.disk_size).max()
}

fn bootable(plan: &Plan, report: &mut dyn FnMut(&str)) -> Result<(kernel::Kernel, PathBuf)> {
    let labs = || plan.all_treatments().filter_map(|treatment| treatment.settings.lab.as_ref());
    let mut kernels: Vec<&str> = labs().flat_map(|lab| [lab.kernel.as_str(), lab.server_kernel()]).collect();
    kernels.sort_unstable();
    kernels.dedup();
    let [choice] = kernels[..] else {
        return Err(Failure::wrong(format!(
            "on virtual time clients and server are in one kernel, and the study names several: {}; run it once for each, with \
             `--set lab.kernel=…`, and compare their expectations",
            kernels.join(", ")
        )));
    };
    let choice: KernelChoice = choice.parse().map_err(Failure::wrong_input)?;
    // The error names the command that installs what is missing.
    let consent = &mut |_: &str| false;
    let kernel =
        kernel::find(&choice, Architecture::UserMode, consent, report).map_err(Failure::wrong_input)?;
    let image = root::image(&kernel, &[], consent, report)?;
    Ok((kernel, image))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() { copy(&from, &to)? } else { fs::copy(&from, &to).map(drop)? }
    }
    Ok(())
}

/// Compares what was found with what is expected, or writes it.
pub(crate) fn expect(plan: &Plan, directory: &Path, args: &ExpectArgs) -> Result<Status> {
    let Some(path) = &args.expect else { return Ok(Status::Fine) };
    let failure = |error: ExpectError| match error {
        error @ (ExpectError::File { .. } | ExpectError::Text { .. } | ExpectError::Format { .. }) => {
            Failure::wrong_input(error)
        }
        error => Failure::failed(error),
    };
    let found = Expectation::read(directory, plan).map_err(failure)?;
    if args.accept {
        found.save(path).map_err(failure)?;
        output::note(&format!("what was found is now expected: {}", path.display()));
        return Ok(Status::Fine);
    }
    let expected = Expectation::load(path).map_err(failure)?;
    let differences = expected.differences(&found);
    if differences.is_empty() {
        output::note(&format!("everything is as expected: {}", path.display()));
        return Ok(Status::Fine);
    }
    let lines: String = differences.iter().map(|difference| format!("{difference}\n")).collect();
    output::print(&lines)?;
    output::note(&format!(
        "{} differences from what is expected ({}); if they are intended, update the file with `--accept`",
        differences.len(),
        path.display()
    ));
    Ok(Status::ChecksFailed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_processor_times_mean_nothing() {
        for response in
            ["files.operations", "read.throughput", "a.b.active_operations", "a.cpu_per_operation"]
        {
            assert!(is_meaningless(response), "{response}");
        }
        for response in
            ["files.elapsed", "files.create.latency.p50", "files.rpc.OPEN.per_operation", "files.rpcs"]
        {
            assert!(!is_meaningless(response), "{response}");
        }
    }
}
