//! Agents over the system's OpenSSH, to a real sshd on loopback.
//!
//! The program on the hosts is a script that speaks as `benchmaster` does when it is started, and then gives back what it is
//! sent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use benchmaster_fleet::hosts::expand;
use benchmaster_fleet::launch::ssh::{SshConfig, launch};
use benchmaster_fleet::launch::{LaunchError, Started};
use benchmaster_fleet::protocol::VERSION;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::sshd::{self, Sshd, wait_for};

const LIMIT: Duration = Duration::from_secs(120);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().enable_time().build().unwrap()
}

/// A program that notes its process and gives back what it gets.
fn program(folder: &Path, version: &str) -> PathBuf {
    let path = folder.join("program");
    write(
        &path,
        format!(
            "#!/bin/sh\nif test \"$1\" = --version; then echo 'benchmaster {version}'; exit; fi\n\
             mkdir -p \"$HOME/running\" && echo $$ >\"$HOME/running/$$\"; echo \"agent of $*\" >&2; exec cat\n"
        ),
    );
    path
}

/// Puts a program in place of another that may be being run at this moment: a file that is being executed cannot be
/// written to, but it can be replaced.
fn write(path: &Path, text: impl AsRef<[u8]>) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(&new, path).unwrap();
}

fn config(sshd: &Sshd, binary: PathBuf) -> SshConfig {
    SshConfig { options: sshd.options(), deadline: LIMIT, ..SshConfig::new(binary) }
}

fn start(
    config: &SshConfig,
    hosts: &str,
) -> (Result<Vec<Started>, LaunchError>, Vec<String>, tokio::runtime::Runtime) {
    let runtime = runtime();
    let mut notes = Vec::new();
    let hosts = expand(&[hosts]).unwrap();
    let started = runtime.block_on(launch(config, &hosts, &mut |note| notes.push(note.to_owned())));
    (started, notes, runtime)
}

/// Sends something to an agent and sees it come back.
async fn echo(agent: &mut Started) {
    let sent = agent.name.repeat(1000);
    agent.stream.write_all(sent.as_bytes()).await.unwrap();
    agent.stream.flush().await.unwrap();
    let mut got = vec![0; sent.len()];
    tokio::time::timeout(LIMIT, agent.stream.read_exact(&mut got)).await.unwrap().unwrap();
    assert!(got == sent.as_bytes(), "{}", agent.name);
}

/// Programs on the "hosts" that still run.
fn running(sshd: &Sshd) -> Vec<PathBuf> {
    let Ok(notes) = fs::read_dir(sshd.home().join("running")) else { return Vec::new() };
    let pids = notes.map(|note| PathBuf::from("/proc").join(note.unwrap().file_name()));
    pids.filter(|process| fs::read(process.join("cmdline")).is_ok_and(|words| !words.is_empty())).collect()
}

pub(crate) fn the_program_is_copied_once_and_agents_end_with_their_streams() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = config(&sshd, program(folder.path(), VERSION));
    let (started, notes, inside) = start(&config, "c[1-5]");
    let mut agents = started.unwrap();
    assert_eq!(
        agents.iter().map(|agent| agent.name.as_str()).collect::<Vec<_>>(),
        ["c1", "c2", "c3", "c4", "c5"]
    );
    // All five share a home directory and copied at the same time.
    assert!(notes.iter().any(|note| note.contains(": copied the program there (")), "{notes:?}");
    let hash = benchmaster_fleet::secure::build::hash_of(&config.binary).unwrap();
    let copies = sshd.home().join(format!(".cache/benchmaster/{VERSION}-{hash}"));
    let names: Vec<_> = fs::read_dir(&copies).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["benchmaster"]);
    inside.block_on(async {
        for agent in &mut agents {
            echo(agent).await;
        }
    });
    assert_eq!(running(&sshd).len(), 5);
    assert!(agents[0].errors.text().contains("agent of agent --stdio"), "{}", agents[0].errors.text());
    // One that ends by itself is seen by its stream.
    let process = running(&sshd).remove(0);
    let pid = process.file_name().unwrap().to_str().unwrap().parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    inside.block_on(async {
        let mut ends = tokio::task::JoinSet::new();
        for mut agent in agents {
            ends.spawn(async move {
                let end = agent.stream.read_u8().await.map_err(|error| error.kind());
                (end, agent)
            });
        }
        let (end, _agent) = tokio::time::timeout(LIMIT, ends.join_next()).await.unwrap().unwrap().unwrap();
        assert_eq!((end, ends.len()), (Err(std::io::ErrorKind::UnexpectedEof), 4));
        ends.shutdown().await;
    });
    wait_for("agents that end", LIMIT, || running(&sshd).is_empty());
    let (again, notes, _inside) = start(&config, "c[1-2]");
    assert_eq!((again.unwrap().len(), notes), (2, vec![]), "nothing is copied twice");
}

pub(crate) fn failures_name_the_host_and_what_to_do() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = config(&sshd, program(folder.path(), VERSION));
    let cases = [
        (
            "badkey",
            "could not be started: it must be possible to log in without a password: `ssh-copy-id badkey`",
        ),
        ("strange", "its host key is not known here; connect once (`ssh strange`)"),
        ("closed", "no sshd listens there; start it, or give its port"),
        ("nowhere", "unknown host"),
    ];
    for (host, help) in cases {
        let (failed, ..) = start(&config, host);
        let error = failed.unwrap_err().to_string();
        assert!(error.starts_with(&format!("agent `{host}` ")) && error.contains(help), "{error}");
    }
    let (failed, ..) = start(&config, "c1,closed,user@badkey,c2");
    let error = failed.unwrap_err();
    assert_eq!(error.agent, "closed");
    assert!(error.reason.ends_with(" (also failed: badkey)"), "{error}");
    wait_for("those that could be started end", LIMIT, || running(&sshd).is_empty());
    let (failed, ..) = start(&SshConfig { program: "/nonexistent/ssh".into(), ..config.clone() }, "c1");
    let error = failed.unwrap_err().to_string();
    assert!(
        error.contains("cannot run /nonexistent/ssh: ") && error.contains("is OpenSSH's client installed?"),
        "{error}"
    );
    // A file where the cache directory would be.
    fs::remove_dir_all(sshd.home().join(".cache")).unwrap();
    fs::write(sshd.home().join(".cache"), "").unwrap();
    let (failed, ..) = start(&config, "c1");
    let error = failed.unwrap_err().to_string();
    assert!(error.contains("the program could not be copied: ") && error.contains(".cache"), "{error}");
}

pub(crate) fn a_program_that_is_there_must_be_this_build_and_run() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let own = program(folder.path(), VERSION);
    let at = |there: &str| SshConfig { binary_on_hosts: Some(there.into()), ..config(&sshd, own.clone()) };
    let said =
        |there: &str| start(&at(there), "c1").0.map(|agents| agents.len()).map_err(|error| error.to_string());
    let missing = said("~/bm").unwrap_err();
    assert!(missing.contains("there is no program ~/bm that can be run; put this one there"), "{missing}");
    let there = sshd.home().join("bm");
    write(&there, "#!/bin/sh\necho benchmaster 0.0.1\n");
    let other = said("~/bm").unwrap_err();
    assert!(other.contains("~/bm is another build (benchmaster 0.0.1, SHA-256 "), "{other}");
    write(&there, format!("#!/bin/sh\necho benchmaster {VERSION}\n"));
    let hash = benchmaster_fleet::secure::build::hash_of(&there).unwrap();
    let same_version = said("~/bm").unwrap_err();
    assert!(same_version.contains(&format!("(benchmaster {VERSION}, SHA-256 {hash})")), "{same_version}");
    // For another processor: an ELF header of a machine that does not exist.
    let mut elf = fs::read("/bin/true").unwrap();
    elf[18..20].copy_from_slice(&[0xee, 0xee]);
    write(&there, elf);
    let foreign = said("~/bm").unwrap_err();
    assert!(
        foreign.contains("~/bm is for another processor: ")
            && foreign.contains("build Benchmaster on that host"),
        "{foreign}"
    );
    write(&there, "#!/bin/sh\nsleep 20\n");
    let hangs = SshConfig { deadline: Duration::from_secs(2), ..at("~/bm") };
    let error = start(&hangs, "c1").0.unwrap_err().to_string();
    assert!(error.contains("no agent ran there within 2s; try `ssh -F "), "{error}");
    write(&there, fs::read(&own).unwrap());
    assert_eq!(said("~/bm"), Ok(1));
    assert_eq!(said(there.to_str().unwrap()), Ok(1));
}

pub(crate) fn nothing_is_left_when_the_network_goes_or_the_controller_is_killed() {
    let Some(sshd) = Sshd::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let config = config(&sshd, program(folder.path(), VERSION));
    let (started, _, inside) = start(&config, "c[1-2]");
    let mut agents = started.unwrap();
    wait_for("two agents", LIMIT, || running(&sshd).len() == 2);
    sshd.cut();
    wait_for("agents that end without a network", LIMIT, || running(&sshd).is_empty());
    let end =
        inside.block_on(async { tokio::time::timeout(LIMIT, agents[0].stream.read_u8()).await.unwrap() });
    assert!(end.is_err());

    let mut controller = sshd::mortal(&std::env::current_exe().unwrap())
        .arg("ssh-controller")
        .arg(&config.binary)
        .args(&config.options)
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.path().join("errors")).unwrap())
        .spawn()
        .unwrap();
    wait_for("the agents of another controller", LIMIT, || {
        assert!(
            controller.try_wait().unwrap().is_none(),
            "{}",
            fs::read_to_string(folder.path().join("errors")).unwrap()
        );
        running(&sshd).len() == 3
    });
    controller.kill().unwrap();
    controller.wait().unwrap();
    wait_for("agents that end without a controller", LIMIT, || running(&sshd).is_empty());
}

/// The controller that the test above kills: its program, and options of `ssh`.
pub(crate) fn controller(arguments: &[String]) {
    let [program, options @ ..] = arguments else { panic!("{arguments:?}") };
    let config = SshConfig { options: options.to_vec(), ..SshConfig::new(program.into()) };
    let (started, _, _inside) = start(&config, "c[1-3]");
    let agents = started.unwrap();
    assert_eq!(agents.len(), 3);
    std::thread::sleep(Duration::from_secs(120));
}
