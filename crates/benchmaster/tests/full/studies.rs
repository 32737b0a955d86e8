//! Every ready study is run, scaled to seconds, in a directory and over the wire, with its data verified.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use benchmaster_builtin::WorkloadSpec;
use benchmaster_store::Store;
use libtest_mimic::{Failed, Trial};
use toml::{Table, Value};

use crate::limit::output_within;

/// What a study of the repository cannot do here: hosts that it has to name, file systems that it makes, a realm (in which the
/// tests of the command run it).
const ELSEWHERE: [&str; 4] = ["fleet", "kerberos", "managed", "paper000-random-read-cold"];

/// A study takes seconds; this ends one that hangs.
const PATIENCE: Duration = Duration::from_secs(1200);

/// How small studies are made, unless that makes two of their levels the same.
const SCALE: &str = "0.0005";

/// Studies with levels that are the same at that scale, and what they are scaled by.
const LARGER: [(&str, &str); 5] = [
    ("durability", "1"),
    ("durability-lab", "1"),
    ("wan-factorial", "1"),
    ("wan-factorial-fraction", "1"),
    ("wan-factorial-paper", "1"),
];

/// Servers of studies of durability that keep their promises; all others lie.
const HONEST: [&str; 2] = ["server=honest", "server=sync"];

/// What a study needs for its data to be proved: sizes that are multiples of a stamp, a version that has what it asks for.
const BESIDES: [(&str, &str, &str); 3] = [
    ("mdtest", "directory", "factors.size.levels=[0, 3904]"),
    ("mdtest", "wire", "factors.size.levels=[0, 3904]"),
    ("smallfile", "wire", "target.version=\"4.2\""),
];

/// A trial for each study and each kind of target that it can have.
pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for path in studies() {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ELSEWHERE.contains(&&*name) {
            continue;
        }
        let study: Table = std::fs::read_to_string(&path).unwrap().parse().unwrap();
        if study.contains_key("lab") {
            if !on_virtual_time(&study) {
                trials.push(Trial::test(format!("{name}_lab"), move || in_a_lab(&path)));
            }
            continue;
        }
        for (engine, target) in [("directory", "{scratch}"), ("wire", "nfs://{server}/export")] {
            if engine == "directory" && needs_the_wire(&study) {
                continue;
            }
            let mut changes = changes(&study);
            let besides = BESIDES.iter().filter(|(study, on, _)| *study == name && *on == engine);
            changes.extend(besides.map(|(.., change)| (*change).to_owned()));
            let path = path.clone();
            trials.push(Trial::test(format!("{name}_{engine}"), move || run(&path, &changes, Some(target))));
        }
    }
    trials
}

/// Whether a study is compared with what is expected of it, by tests of its own.
fn on_virtual_time(study: &Table) -> bool {
    study["lab"].get("time").and_then(Value::as_str) == Some("virtual")
}

/// Runs a study in a lab, if there can be one here.
fn in_a_lab(path: &Path) -> Result<(), Failed> {
    static LAB: LazyLock<Result<(), String>> = LazyLock::new(|| {
        let name = format!("studies-{}", std::process::id());
        let lab = |arguments: &[&str]| {
            let done = Command::new(crate::program()).arg("lab").args(arguments).output();
            let done = done.map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            if done.status.success() { Ok(()) } else { Err(said) }
        };
        lab(&["up", "--name", &name]).and_then(|()| lab(&["down", "--name", &name]))
    });
    match &*LAB {
        Ok(()) => {
            let ended = run(path, &["design={ kind = \"one-at-a-time\", replicates = 1 }".to_owned()], None);
            match ended {
                // Building one takes a quarter of an hour of a processor.
                Err(failed)
                    if failed.message().is_some_and(|text| text.contains("benchmaster lab kernel build")) =>
                {
                    println!("skipped: {}: {}", path.display(), failed.message().unwrap_or_default());
                    Ok(())
                }
                ended => ended,
            }
        }
        Err(reason) if std::env::var("BENCHMASTER_REQUIRE_LAB").as_deref() == Ok("1") => Err(reason.into()),
        Err(reason) => {
            println!("skipped: no lab: {reason}");
            Ok(())
        }
    }
}

fn studies() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut studies: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    studies.sort();
    studies
}

/// Whether a study is about the protocol, the server or the network.
fn needs_the_wire(study: &Table) -> bool {
    let text = toml::to_string(study).unwrap();
    let about = ["target.version", "target.cache", "target.nconnect", "network.", "server."];
    let sections = ["network", "server"];
    let target = study["target"].as_table().unwrap();
    target.contains_key("cache")
        || sections.iter().any(|section| study.contains_key(*section))
        || about.iter().any(|key| text.contains(key))
}

/// The changes that make a study short: the first and last level of each factor, one factor at a time, one replicate.
fn changes(study: &Table) -> Vec<String> {
    let mut changes = if study.contains_key("load") {
        // Every load of a curve is run twice, which is the least.
        ["design.replicates=2", "load.max_replicates=2"].map(str::to_owned).to_vec()
    } else {
        vec!["design={ kind = \"one-at-a-time\", replicates = 1 }".to_owned()]
    };
    if let Some(response) = study.get("design").and_then(|design| design.get("response")) {
        changes.push(format!("design.response={response}"));
    }
    for (name, factor) in study.get("factors").and_then(Value::as_table).into_iter().flatten() {
        if let Some([first, .., last]) = factor.get("levels").and_then(Value::as_array).map(Vec::as_slice) {
            changes.push(format!("factors.{name}.levels=[{first}, {last}]"));
        }
    }
    if study.get("run").is_some_and(|run| run.get("cache").is_some()) {
        changes.push("run.cache=keep".into());
    }
    changes.push("run.interval=50ms".into());
    // Without optimisation, server, network and clients of some studies want more than two processors have.
    changes.push("clients.patience=60s".into());
    let null_data = study.get("server").and_then(|server| server.get("null_data")).and_then(Value::as_bool);
    let keeps_data = null_data != Some(true);
    for (name, workload) in study["workload"].as_table().unwrap() {
        let workload = workload.as_table().unwrap();
        let with = |key: &str, value: Value| {
            let mut parameters = workload.clone();
            let uses = parameters.remove("use");
            let uses = uses.as_ref().and_then(Value::as_str).unwrap_or("custom").to_owned();
            parameters.insert(key.into(), value);
            matches!(WorkloadSpec::deserialize(&uses, parameters), Some(Ok(_)))
        };
        // What one workload writes another may read, which needs all of it.
        let writes_all = workload.get("prefill").and_then(|prefill| prefill.as_bool()) == Some(false);
        if !workload.contains_key("groups") && !writes_all && with("duration", "200ms".into()) {
            changes.push(format!("workload.{name}.duration=200ms"));
        }
        if keeps_data && !workload.contains_key("verify") && with("verify", true.into()) {
            // Processes do not know of each other what they wrote into files that they share.
            let shared = toml::to_string(workload).unwrap().contains("\"shared\"");
            let sharing = ["ior", "mdtest"].map(Value::from);
            if shared || workload.get("use").is_some_and(|uses| sharing.contains(uses)) {
                changes.push("clients.launcher=threads".into());
            }
            changes.push(format!("workload.{name}.verify=true"));
        }
    }
    changes
}

fn run(path: &Path, changes: &[String], target: Option<&str>) -> Result<(), Failed> {
    let place = tempfile::TempDir::new_in("/dev/shm").or_else(|_| tempfile::TempDir::new())?;
    let name = path.file_stem().unwrap().to_str().unwrap();
    let scale = LARGER.iter().find(|(larger, _)| *larger == name).map_or(SCALE, |(_, scale)| scale);
    let mut command = Command::new(crate::program());
    command.arg("run").arg(path).args(["-q", "-o", "results", "--scale", scale]);
    command.args(target.iter().flat_map(|target| ["--target", target]));
    for change in changes {
        command.args(["--set", change]);
    }
    command.current_dir(place.path()).env("TMPDIR", place.path()).stdin(Stdio::null());
    let output = output_within(command, PATIENCE)?;
    let printed = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("{}\n{printed}", output.status).into());
    }
    let results = Store::load(&place.path().join("results"))?;
    let replicates = if changes.iter().any(|change| change == "design.replicates=2") { 2 } else { 1 };
    let expected = results.study.treatments.len() * replicates;
    if results.runs.len() != expected {
        return Err(format!("{} runs of {expected}\n{}", results.runs.len(), printed).into());
    }
    for run in &results.runs {
        let witnesses: Vec<_> =
            run.recordings.iter().filter_map(|recording| recording.witness.as_ref()).collect();
        let missing: u64 = witnesses.iter().map(|witness| witness.missing()).sum();
        let label = &results.study.treatments[run.key.treatment as usize].label;
        if !witnesses.is_empty() && HONEST.contains(&&**label) != (missing == 0) {
            return Err(format!("{label}: {missing} of the acknowledged are missing\n{printed}").into());
        }
    }
    for recording in results.runs.iter().flat_map(|run| &run.recordings) {
        let operations: u64 = recording.series.iter().map(|series| series.total.count).sum();
        let failed: u64 = recording.series.iter().map(|series| series.total.errors).sum();
        let moves = recording.series.iter().any(|series| series.key.operation.moves_data());
        let (name, verified) = (&recording.workload, recording.verified_bytes);
        if failed > 0 || recording.corruption.is_some() {
            return Err(format!("{name}: {failed} errors, {:?}\n{}", recording.corruption, printed).into());
        }
        if operations == 0 || (moves && recording.witness.is_none() && verified == Some(0)) {
            return Err(
                format!("{name}: {operations} operations, {verified:?} bytes verified\n{}", printed).into()
            );
        }
    }
    Ok(())
}
