//! The half of the tests that runs on the host.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use benchmaster_lab::backend::BackEnd;
use benchmaster_lab::kernel::{self, Architecture};
use benchmaster_lab::machine::{ExitCause, Machine, MachineSpec, MachineState};
use benchmaster_lab::{Kernel, KernelChoice, choice, root};
use libtest_mimic::{Failed, Trial};
use tempfile::TempDir;

/// Longer than any machine takes here.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    type Test = fn(&Bench) -> Result<(), Failed>;
    let tests: [(&str, Test); 5] = [
        ("boots_with_its_programs", boots),
        ("panics_are_reported", panics),
        ("is_killed_with_all_its_processes", killed),
        ("keeps_registers", registers),
        ("kernel_of_another_kind_is_refused", refused),
    ];
    for back_end in [BackEnd::Uml, BackEnd::QemuKvm, BackEnd::QemuTcg] {
        for (name, test) in tests {
            trials.push(Trial::test(format!("{back_end}::{name}"), move || match Bench::new(back_end) {
                Ok(bench) => test(&bench),
                Err(reason) if required(back_end) => Err(reason.into()),
                Err(reason) => {
                    println!("skipped: {reason}");
                    Ok(())
                }
            }));
        }
    }
    trials
}

/// Whether tests of a back-end that does not work here fail.
fn required(back_end: BackEnd) -> bool {
    let name = format!("BENCHMASTER_REQUIRE_{}", back_end.to_string().to_uppercase().replace('-', "_"));
    let all = "BENCHMASTER_REQUIRE_LAB";
    std::env::var(name).is_ok_and(|value| value == "1")
        || back_end == BackEnd::Uml && std::env::var(all).is_ok_and(|value| value == "1")
}

/// What starts machines.
struct Bench {
    back_end: BackEnd,
    kernel: Kernel,
    directory: TempDir,
}

impl Bench {
    fn new(back_end: BackEnd) -> Result<Self, String> {
        choice::available(back_end).map_err(|error| error.to_string())?;
        let kind = back_end.architecture().unwrap();
        let choice = match std::env::var("BENCHMASTER_TEST_KERNEL") {
            Ok(text) if kind == Architecture::UserMode => text.parse().unwrap(),
            _ => KernelChoice::Packaged,
        };
        let kernel =
            kernel::find(&choice, kind, &mut |_| true, &mut |_| {}).map_err(|error| error.to_string())?;
        Ok(Self { back_end, kernel, directory: tempfile::tempdir().unwrap() })
    }

    fn spec(&self, test: &str) -> MachineSpec {
        // Only root on Debian, as in CI, downloads packages for a test.
        let image = root::image(&self.kernel, &[], &mut |_| true, &mut |_| {}).unwrap();
        fs::write(self.directory.path().join("word"), "shared").unwrap();
        MachineSpec {
            name: "m1".into(),
            memory: 256 << 20,
            kernel: self.kernel.clone(),
            image,
            interfaces: Vec::new(),
            disks: Vec::new(),
            disk_log: None,
            share: self.directory.path().into(),
            arguments: vec![("lab_test".into(), test.into()), ("lab_word".into(), "a-word".into())],
            console: self.directory.path().join("console.log"),
            again: false,
        }
    }

    /// Runs a machine to its end.
    fn run(&self, test: &str) -> (ExitCause, String) {
        let mut machine = choice::start(self.back_end, &self.spec(test)).unwrap();
        let cause = wait(&mut machine, || self.console());
        (cause, self.console())
    }

    fn console(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.directory.path().join("console.log")).unwrap_or_default())
            .into_owned()
    }
}

fn wait(machine: &mut Machine, console: impl Fn() -> String) -> ExitCause {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match machine.state() {
            MachineState::Ended(cause) => return cause,
            MachineState::Running => assert!(Instant::now() < deadline, "does not end:\n{}", console()),
        }
        sleep(Duration::from_millis(5));
    }
}

fn boots(bench: &Bench) -> Result<(), Failed> {
    let (cause, console) = bench.run("facts");
    assert_eq!(cause, ExitCause::PoweredOff, "{console}");
    let expected = [
        format!("release {}", bench.kernel.release),
        "lab_name m1".into(),
        "lab_word a-word".into(),
        "runs modprobe nfsd true".into(),
        "runs mount.nfs -V true".into(),
        "runs ip -V true".into(),
        "runs rpc.nfsd --help true".into(),
        "runs mkfs.ext4 -V true".into(),
        "runs mkfs.xfs -V true".into(),
        "nfs4 true".into(),
    ];
    for line in expected {
        assert!(console.lines().any(|found| found.trim_end() == line), "`{line}` is not in\n{console}");
    }
    if bench.kernel.architecture == Architecture::UserMode {
        assert!(console.contains("share shared"), "{console}");
    }
    Ok(())
}

fn panics(bench: &Bench) -> Result<(), Failed> {
    let (cause, console) = bench.run("panic");
    let ExitCause::Panicked { message } = cause else { panic!("{cause:?}\n{console}") };
    assert!(message.contains("Attempted to kill init"), "{message}");
    Ok(())
}

fn killed(bench: &Bench) -> Result<(), Failed> {
    let mut machine = choice::start(bench.back_end, &bench.spec("sleep")).unwrap();
    let process = machine.process();
    let deadline = Instant::now() + PATIENCE;
    while !bench.console().contains("asleep") {
        assert!(Instant::now() < deadline, "does not boot:\n{}", bench.console());
        sleep(Duration::from_millis(5));
    }
    let group = members(process);
    assert!(group.contains(&process));
    machine.kill();
    // The kernel of the host ends the others a moment later.
    while group.iter().any(|process| alive(*process)) {
        assert!(Instant::now() < deadline, "left: {:?}", members(process));
        sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Processes of a process group, also those in sessions of their own that a member of it has started.
fn members(group: u32) -> Vec<u32> {
    let mut found = vec![group];
    loop {
        let more: Vec<u32> = processes()
            .filter(|(process, parent, own)| {
                (*own == group || found.contains(parent)) && !found.contains(process)
            })
            .map(|(process, _, _)| process)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Process, parent and group of all.
fn processes() -> impl Iterator<Item = (u32, u32, u32)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| {
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        let mut fields = text.rsplit(')').next()?.split_ascii_whitespace().skip(1);
        let process = entry.file_name().to_string_lossy().parse().ok()?;
        Some((process, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// Whether it runs: what has ended and was not waited for does not.
fn alive(process: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !matches!(
        text.rsplit(')').next().and_then(|rest| rest.split_ascii_whitespace().next()),
        None | Some("Z" | "X")
    )
}

fn registers(bench: &Bench) -> Result<(), Failed> {
    let (cause, console) = bench.run("registers");
    assert_eq!(cause, ExitCause::PoweredOff, "{console}");
    let line =
        console.lines().find(|line| line.starts_with("registers")).unwrap_or_else(|| panic!("{console}"));
    assert!(line.contains(" kept"), "{line}");
    println!("{line}");
    Ok(())
}

fn refused(bench: &Bench) -> Result<(), Failed> {
    let mut spec = bench.spec("facts");
    spec.kernel.architecture = match spec.kernel.architecture {
        Architecture::UserMode => Architecture::Pc,
        Architecture::Pc => Architecture::UserMode,
    };
    let error = choice::start(bench.back_end, &spec).unwrap_err().to_string();
    assert!(error.contains("the back-end") && error.contains("boots"), "{error}");
    Ok(())
}
