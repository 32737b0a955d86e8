//! Studies with clients, and servers that are set up, on other hosts: a real sshd, and a real Slurm, on this one.

use std::fs;
use std::time::Duration;

use benchmaster_record::results::StudyResults;
use benchmaster_store::Store;

use crate::place::{Place, finish, transcript};
use crate::slurm::Slurm;
use crate::sshd::{Sshd, wait_for};

/// Reads below a directory that all hosts see, by the clients that `clients` says.
fn study(place: &Place, clients: &str) -> String {
    let target = place.path("target");
    fs::create_dir_all(&target).unwrap();
    format!(
        r#"[study]
name = "hosts"

[target]
path = "{}"

{clients}

[run]
interval = "50ms"

[sampling]
interval = "100ms"
samplers = ["cpu"]

[design]
replicates = 2

[workload.read]
use = "random-read"
file_size = "64KiB"
io_size = "4KiB"
duration = "300ms"
claims = "cache"
"#,
        target.display()
    )
}

fn quoted(options: &[String]) -> String {
    let quoted: Vec<String> = options.iter().map(|option| format!("{option:?}")).collect();
    format!("[{}]", quoted.join(", "))
}

/// What is true of every run, whoever started its clients.
fn check(place: &Place, results: &StudyResults, agents: u32, clients: u32) {
    assert_eq!(results.runs.len(), 2);
    for run in &results.runs {
        assert_eq!(run.failure, None);
        let recording = &run.recordings[0];
        let with_clients: Vec<_> = recording.agents.iter().filter(|agent| agent.clients > 0).collect();
        assert_eq!(with_clients.len() as u32, agents);
        assert_eq!(with_clients.iter().map(|agent| agent.clients).sum::<u32>(), clients);
        assert_eq!(recording.workers.len() as u32, clients);
        assert!(recording.workers.iter().all(|worker| worker.series.iter().any(|series| series.count > 0)));
        assert!(recording.start.is_some());
    }
    assert_eq!(fs::read_dir(place.path("target")).unwrap().count(), 0, "nothing is left on the target");
}

/// No process of the program is left but this test's own.
fn nobody_is_left(place: &Place) {
    let root = place.root().display().to_string();
    wait_for("the end of all agents", Duration::from_secs(20), || {
        let agents = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let directory = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            command.split(|byte| *byte == 0).any(|word| word == b"agent")
                && directory.to_string_lossy().starts_with(&root)
        });
        agents.count() == 0
    });
}

#[test]
#[ignore = "full tier: ssh and Slurm"]
fn clients_on_hosts_over_ssh_and_a_server_that_is_set_up_on_another() {
    let Some(sshd) = Sshd::start() else { return };
    let place = Place::new();
    let log = place.path("log");
    let clients = format!(
        r#"[clients]
hosts = ["c[1-3]"]
count = 5
ssh_options = {options}

[server]
kind = "managed"
host = "c9"

[server.parameters]
log = "{log}"

[[server.steps]]
name = "export"
when = "run"
command = "echo exported >> {{log}}"

[[collect]]
name = "beside"
on = "server"
command = "echo looked; exec sleep 100"
"#,
        options = quoted(&sshd.options()),
        log = log.display(),
    );
    place.write("hosts.toml", &study(&place, &clients));
    let output = place.run(&["run", "hosts.toml"]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", transcript(&output));
    let results = place.results("results/hosts");
    check(&place, &results, 3, 5);
    assert_eq!(fs::read_to_string(&log).unwrap(), "exported\nexported\n");
    let exports: Vec<_> = results.hooks.iter().filter(|hook| hook.step == "server.export").collect();
    assert!(exports.len() == 2 && exports.iter().all(|hook| hook.succeeded), "{exports:?}");
    let run = Store::load_run(&place.path("results/hosts"), results.runs[0].key).unwrap().unwrap();
    let recording = &run.recordings[0];
    let onlookers: Vec<_> = recording.agents.iter().filter(|agent| agent.clients == 0).collect();
    assert_eq!(onlookers.len(), 1, "{:?}", recording.agents);
    assert!(recording.samples.iter().any(|samples| samples.agent == onlookers[0].name));
    assert_eq!(recording.collected[0].output, b"looked\n");
    assert_eq!(recording.collected[0].agent, onlookers[0].name);
    // The program was copied to where it runs.
    let copies = sshd.home().join(".cache/benchmaster");
    assert_eq!(fs::read_dir(copies).unwrap().count(), 1);
}

#[test]
#[ignore = "full tier: ssh and Slurm"]
fn a_host_that_cannot_be_reached_is_named_with_the_fix() {
    let Some(sshd) = Sshd::start() else { return };
    let place = Place::new();
    let clients =
        format!("[clients]\nhosts = [\"c1\", \"closed\"]\nssh_options = {}", quoted(&sshd.options()));
    place.write("hosts.toml", &study(&place, &clients));
    let output = place.run(&["run", "hosts.toml"]);
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    assert!(transcript(&output).contains("closed"), "{}", transcript(&output));
}

#[test]
#[ignore = "full tier: ssh and Slurm"]
fn clients_as_tasks_of_slurm() {
    let Some(slurm) = Slurm::start() else { return };
    let place = Place::new();
    place.write(
        "hosts.toml",
        &study(&place, "[clients]\nlauncher = \"slurm\"\ncount = 6\nnodes = 4\naddress = \"127.0.0.1\""),
    );
    let mut command = place.command(&["run", "hosts.toml"]);
    let tools = slurm.command("srun").parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", tools.display()));
    let output = finish(command);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", transcript(&output));
    check(&place, &place.results("results/hosts"), 4, 6);
    slurm.wait_until_idle();
    nobody_is_left(&place);
}
