//! Agents by Slurm, on a real cluster of four nodes on this machine. The agents are this test's own program, which gives back
//! what it is sent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use benchmaster_fleet::launch::slurm::{SlurmConfig, allocated_nodes, launch};
use benchmaster_fleet::launch::{LaunchError, Started};
use benchmaster_fleet::secure::{AgentOptions, agent_stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::slurm_cluster::Slurm;
use crate::sshd::{self, wait_for};
use crate::support;

const LIMIT: Duration = Duration::from_secs(120);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_io().enable_time().build().unwrap()
}

/// A program that is called as `PROGRAM agent --dial ADDRESS`, after `first` was done. It keeps what it gets on standard input
/// for the test to look for elsewhere.
fn program(folder: &Path, first: &str) -> PathBuf {
    let (test, place) = (std::env::current_exe().unwrap(), folder.display().to_string());
    let path = folder.join("program");
    let text = format!(
        "#!/bin/sh\n{first}\numask 077; cat >{place}/credentials.$SLURM_PROCID; echo $$ >{place}/pid.$SLURM_PROCID\n\
         exec {} slurm-agent \"$3\" <{place}/credentials.$SLURM_PROCID\n",
        test.display()
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// The agent.
pub(crate) fn agent(dial: &str) {
    let options = AgentOptions { dial: dial.to_owned(), rank: None, credentials: None, wait: None };
    support::block_on(async {
        let stream = agent_stream(&options).await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(stream);
        // A stream that is cut is no failure of the agent's.
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
    });
}

fn start(config: &SlurmConfig) -> (Result<Vec<Started>, LaunchError>, tokio::runtime::Runtime) {
    let runtime = runtime();
    let started = runtime.block_on(launch(config, &mut |note| println!("{note}")));
    (started, runtime)
}

async fn echo(agent: &mut Started) {
    let sent = agent.name.repeat(10_000);
    agent.stream.write_all(sent.as_bytes()).await.unwrap();
    agent.stream.flush().await.unwrap();
    let mut got = vec![0; sent.len()];
    tokio::time::timeout(LIMIT, agent.stream.read_exact(&mut got)).await.unwrap().unwrap();
    assert!(got == sent.as_bytes(), "{}", agent.name);
}

/// Every command line and environment on this machine that has a text.
fn shown_anywhere(secret: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let mut found = Vec::new();
    for process in processes.filter(|path| path.join("exe").symlink_metadata().is_ok()) {
        for file in ["cmdline", "environ"] {
            let content = fs::read(process.join(file)).unwrap_or_default();
            if String::from_utf8_lossy(&content).contains(secret) {
                found.push(format!("{}", process.join(file).display()));
            }
        }
    }
    found
}

fn config(cluster: &Slurm, binary: PathBuf, nodes: u32) -> SlurmConfig {
    SlurmConfig { program: cluster.command("srun"), deadline: LIMIT, ..SlurmConfig::new(binary, nodes) }
}

pub(crate) fn agents_by_slurm() {
    let Some(cluster) = Slurm::start() else { return };
    println!("all four nodes");
    all_nodes(&cluster);
    println!("in an allocation");
    in_an_allocation(&cluster);
    println!("failures");
    failures(&cluster);
    println!("a controller that is killed");
    killed(&cluster);
}

fn all_nodes(cluster: &Slurm) {
    let folder = tempfile::tempdir().unwrap();
    let (started, inside) = start(&config(cluster, program(folder.path(), "echo here >&2"), 4));
    let mut agents = started.unwrap();
    let mut names: Vec<_> = agents.iter().map(|agent| agent.name.clone()).collect();
    names.sort();
    assert_eq!(names, ["n1", "n2", "n3", "n4"]);
    inside.block_on(async {
        for agent in &mut agents {
            echo(agent).await;
        }
    });
    wait_for("what tasks said", LIMIT, || agents.iter().all(|agent| agent.errors.text().contains("here")));
    // The secret is where it must be, and nowhere where others could see it.
    let credentials = fs::read_to_string(folder.path().join("credentials.0")).unwrap();
    let token = credentials.split('"').nth_back(1).unwrap();
    assert_eq!(token.len(), 64, "64 hexadecimal digits");
    assert_eq!(shown_anywhere(token), Vec::<String>::new());
    assert!(!shown_anywhere("--job-name=benchmaster").is_empty(), "the search finds what is there");
    assert!(agents.iter().all(|agent| !agent.errors.text().contains(token)));
    drop(agents);
    cluster.wait_until_idle();
}

fn in_an_allocation(cluster: &Slurm) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(cluster.command("salloc"))
        .args(["--quiet", "--nodes=2"])
        .arg(std::env::current_exe().unwrap())
        .arg("slurm-controller")
        .args([program(folder.path(), ""), cluster.command("srun")])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("2 agents on n1, n2"), "{output:?}");
    cluster.wait_until_idle();
}

/// A controller as a process of its own: its program and `srun`, and whether it stays.
pub(crate) fn controller(arguments: &[String]) {
    let [program, srun, stay @ ..] = arguments else { panic!("{arguments:?}") };
    let nodes = allocated_nodes().unwrap_or(3);
    let (started, inside) =
        start(&SlurmConfig { program: srun.into(), ..SlurmConfig::new(program.into(), nodes) });
    let mut agents = started.unwrap();
    inside.block_on(async {
        for agent in &mut agents {
            echo(agent).await;
        }
    });
    let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
    println!("{} agents on {}", agents.len(), names.join(", "));
    if !stay.is_empty() {
        std::thread::sleep(Duration::from_secs(120));
    }
}

fn failures(cluster: &Slurm) {
    let (missing, _) = start(&config(cluster, "/nonexistent/benchmaster".into(), 2));
    let error = missing.unwrap_err();
    // It has no node where the scheduler ends it before it said on which it is.
    assert!(["n1", "n2", "rank 0", "rank 1"].contains(&error.agent.as_str()), "{error}");
    let said = error.to_string();
    assert!(
        said.contains("srun ended with exit status: ")
            // srun may end before it has passed on what the shell said.
            && (said.contains("/nonexistent/benchmaster: not found") || said.contains("exit code 127")),
        "{said}"
    );

    let folder = tempfile::tempdir().unwrap();
    let hangs =
        program(folder.path(), "test $SLURM_PROCID != 2 || { echo this node hangs >&2; exec sleep 100; }");
    let (late, _) = start(&SlurmConfig { deadline: Duration::from_secs(15), ..config(cluster, hangs, 3) });
    let error = late.unwrap_err();
    let said = error.to_string();
    let expected = format!(
        "2 of 3 agents were connected after 15s; missing: rank 2 on {}: this node hangs",
        error.agent
    );
    assert!(said.contains(&expected), "{said}");
    cluster.wait_until_idle();

    let mut unknown = config(cluster, hangs_never(folder.path()), 1);
    unknown.options = vec!["--nodelist=n9".into()];
    let said = start(&unknown).0.unwrap_err().to_string();
    assert!(
        said.contains("agent `slurm` could not be started: ") && said.contains("Invalid node name"),
        "{said}"
    );

    let unreachable =
        SlurmConfig { address: Some("192.0.2.1:1".into()), ..config(cluster, folder.path().join("x"), 1) };
    let said = start(&unreachable).0.unwrap_err().to_string();
    assert!(said.contains("cannot listen for agents on 192.0.2.1:1"), "{said}");
    let no_slurm =
        SlurmConfig { program: "/nonexistent/srun".into(), ..config(cluster, folder.path().join("x"), 1) };
    let said = start(&no_slurm).0.unwrap_err().to_string();
    assert!(
        said.contains("cannot run /nonexistent/srun") && said.contains("are Slurm's commands installed"),
        "{said}"
    );
}

fn hangs_never(folder: &Path) -> PathBuf {
    program(folder, "")
}

fn killed(cluster: &Slurm) {
    let folder = tempfile::tempdir().unwrap();
    let mut controller = sshd::mortal(&std::env::current_exe().unwrap())
        .arg("slurm-controller")
        .args([program(folder.path(), ""), cluster.command("srun")])
        .arg("stay")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pids = || -> Vec<String> {
        (0..3).filter_map(|rank| fs::read_to_string(folder.path().join(format!("pid.{rank}"))).ok()).collect()
    };
    let alive =
        |pid: &String| fs::read(format!("/proc/{}/cmdline", pid.trim())).is_ok_and(|words| !words.is_empty());
    wait_for("three agents", LIMIT, || pids().len() == 3 && pids().iter().all(alive));
    controller.kill().unwrap();
    controller.wait().unwrap();
    wait_for("agents that end without a controller", LIMIT, || !pids().iter().any(alive));
    cluster.wait_until_idle();
}
