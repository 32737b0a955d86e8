//! Ends of labs, of their machines, and of those who use them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use benchmaster_lab::LabConfig;
use benchmaster_lab::backend::BackEnd;
use benchmaster_lab::facts::ProblemKind;
use benchmaster_lab::guest::{self, Request};
use benchmaster_lab::lab::{Lab, LabError};
use libtest_mimic::Failed;

use super::{config, gone, up};

/// Nothing here takes so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that has a lab and waits to be killed.
pub(crate) fn hold(name: &str, back_end: BackEnd) -> ExitCode {
    let lab = up(&LabConfig { name: name.into(), ..config(back_end, "") }).unwrap();
    println!("{}", lab.facts().unwrap().machines.len());
    loop {
        std::thread::park();
    }
}

/// Starts such a process; when it has its lab.
fn holder(name: &str, back_end: BackEnd) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["hold", name, &back_end.to_string()]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.trim().parse::<u32>().is_ok(), "{line}");
    child
}

fn within_patience(what: &str, so: impl Fn() -> bool) -> Result<(), Failed> {
    let start = Instant::now();
    while !so() {
        if start.elapsed() > PATIENCE {
            return Err(what.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Processes whose command line has a word that contains this.
fn processes_with(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(word)).collect()
}

pub(super) fn controller_killed(back_end: BackEnd) -> Result<(), Failed> {
    let name = config(back_end, "orphan").name;
    let mut child = holder(&name, back_end);
    let process = Lab::list().into_iter().find(|lab| lab.name == name).and_then(|lab| lab.process).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let alive = || fs::exists(format!("/proc/{process}")).unwrap_or(true);
    within_patience("the supervisor lives on", || !alive())?;
    let mentioned = processes_with(&format!("lab-{name}"));
    assert!(mentioned.is_empty(), "{mentioned:?}");
    gone(&name)
}

pub(super) fn supervisor_killed(back_end: BackEnd) -> Result<(), Failed> {
    let config = config(back_end, "killed");
    let lab = up(&config)?;
    let process = Lab::list().into_iter().find(|lab| lab.name == config.name).and_then(|lab| lab.process);
    let killed = Command::new("kill").args(["-9", &process.unwrap().to_string()]).status()?;
    assert!(killed.success());
    within_patience("the lab is still up", || matches!(Lab::attach(&config.name), Ok(None)))?;
    let error = lab.run("c1", &guest::Command::new(["true"])).unwrap_err();
    assert!(matches!(error, LabError::Ended(_)), "{error}");
    let problems = lab.problems();
    assert!(problems.iter().all(|problem| problem.what == ProblemKind::Ended), "{problems:?}");
    within_patience("machines live on", || processes_with(&format!("lab-{}/", config.name)).is_empty())?;
    drop(lab);
    // Its directory is there, and what comes next takes it.
    let lab = up(&config)?;
    assert_eq!(lab.run("c1", &guest::Command::new(["true"]))?.status, 0);
    drop(lab);
    gone(&config.name)
}

pub(super) fn down(back_end: BackEnd) -> Result<(), Failed> {
    let config = LabConfig { lasting: true, ..config(back_end, "down") };
    let missing = Lab::down(&config.name, &mut |_| {}).unwrap_err();
    assert!(matches!(missing, LabError::NotUp(_)), "{missing}");
    assert!(Lab::attach(&config.name)?.is_none());
    let lab = up(&config)?;
    let second = up(&config).unwrap_err();
    assert!(matches!(second, LabError::UpAlready(_)), "{second}");
    drop(lab);
    // It stays, and others use it.
    let lab = Lab::attach(&config.name)?.expect("it is lasting");
    assert_eq!(lab.config(), &config);
    assert_eq!(lab.run("c1", &guest::Command::new(["true"]))?.status, 0);
    Lab::down(&config.name, &mut |_| {})?;
    let mentioned = processes_with(&format!("lab-{}/", config.name));
    assert!(mentioned.is_empty(), "{mentioned:?}");
    assert!(matches!(lab.facts().unwrap_err(), LabError::Ended(_)));
    drop(lab);
    let wrong = up(&LabConfig { name: "a/b".into(), ..config.clone() }).unwrap_err().to_string();
    assert!(wrong.contains("a/b") && wrong.contains("letters"), "{wrong}");
    gone(&config.name)
}

pub(super) fn machine_ends(back_end: BackEnd) -> Result<(), Failed> {
    let config = LabConfig { clients: 5, ..config(back_end, "ends") };
    let lab = up(&config)?;
    signal("-KILL", &config, "c4");
    lab.ask::<()>("c1", &Request::PowerOff, PATIENCE)?;
    // The connection ends with the kernel.
    let panic = lab.run("c2", &guest::Command::shell("echo c >/proc/sysrq-trigger"));
    assert!(panic.is_err(), "{panic:?}");
    // Nobody answers then.
    let reboot = guest::Command { limit: Duration::from_secs(2), ..guest::Command::shell("reboot -f") };
    let restarted = lab.run("c5", &reboot);
    assert!(restarted.is_err(), "{restarted:?}");
    let ended = |name: &str| {
        let problems = lab.problems();
        let found =
            problems.iter().find(|problem| problem.machine == name && problem.what == ProblemKind::Ended);
        found.map(|problem| problem.lines.join("\n"))
    };
    within_patience("c1 is on", || ended("c1").is_some())?;
    within_patience("c2 lives", || ended("c2").is_some())?;
    within_patience("c4 lives", || ended("c4").is_some())?;
    within_patience("c5 lives", || ended("c5").is_some())?;
    assert!(ended("c4").unwrap().contains("signal 9"), "{:?}", ended("c4"));
    let (first, second) = (ended("c1").unwrap(), ended("c2").unwrap());
    assert!(first.contains("switched itself off"), "{first}");
    assert!(second.contains("panicked") && second.contains("sysrq"), "{second}");
    assert!(ended("c5").unwrap().contains("rebooted"), "{:?}", ended("c5"));
    let error = lab.run("c2", &guest::Command::new(["true"])).unwrap_err().to_string();
    assert!(error.contains("`c2` has ended") && error.contains("panicked"), "{error}");
    // The others go on.
    assert_eq!(lab.run("c3", &guest::Command::new(["true"]))?.status, 0);
    assert!(ended("c3").is_none() && ended("server").is_none());
    drop(lab);
    gone(&config.name)
}

/// Sends a signal to the processes of a machine.
fn signal(which: &str, config: &LabConfig, machine: &str) {
    let directory = format!("lab-{}/machines/{machine}", config.name);
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(&directory) {
            let process = entry.file_name().into_string().unwrap();
            // Others of them may have ended with the first.
            Command::new("kill").args([which, &process]).stderr(Stdio::null()).status().unwrap();
        }
    }
}

pub(super) fn machine_hangs(back_end: BackEnd) -> Result<(), Failed> {
    let config = config(back_end, "hangs");
    let lab = up(&config)?;
    // As a machine that does not run any more: all its processes stand still.
    signal("-STOP", &config, "c1");
    let problems = lab.problems();
    signal("-CONT", &config, "c1");
    let hangs: Vec<_> = problems.iter().map(|problem| (problem.machine.as_str(), problem.what)).collect();
    assert_eq!(hangs, [("c1", ProblemKind::Hangs)], "{problems:?}");
    Ok(())
}

pub(super) fn full_disk(back_end: BackEnd) -> Result<(), Failed> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: a full file system takes root");
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    let program = std::env::current_exe()?;
    let script = format!(
        "mount -t tmpfs -o size=32k full {0} && head -c 28k /dev/zero >{0}/filler && \
         XDG_RUNTIME_DIR={0} exec {1} hold full {back_end}",
        place.path().display(),
        program.display()
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output()?;
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("No space left on device") || said.contains("StorageFull"), "{said}");
    within_patience("it is up", || processes_with(place.path().to_str().unwrap()).is_empty())
}
