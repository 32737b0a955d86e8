//! Agents that something else starts: by hand, and as a cluster of Kubernetes does what it is given.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::fleet::FLEET;
use crate::place::{Place, Running, finish, stderr, transcript};

/// The study of the other fleets, with a server that agents reach, and without its clients.
fn study() -> String {
    let server = "[server]\nlisten = \"127.0.0.1\"\n";
    FLEET.replace("\"fleet\"", "\"external\"").replace("[clients]\ncount = 3\n", server)
}

/// How long agents wait for a controller: longer than one needs to start on a busy host.
const WAIT: &str = "30s";

/// A port that is free and stays so: below those that the kernel gives to the other connections of this host.
fn port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut ports =
        (0..10_000).map(|_| 20_000 + (std::process::id() + NEXT.fetch_add(1, Ordering::Relaxed)) % 10_000);
    ports
        .find_map(|port| Some(TcpListener::bind(("127.0.0.1", port as u16)).ok()?.local_addr().ok()?.port()))
        .unwrap()
}

fn agent(place: &Place, port: u16, wait: &str) -> Command {
    let dial = format!("127.0.0.1:{port}");
    place.command(&["agent", "--dial", &dial, "--credentials", "crew/agent", "--wait", wait])
}

#[test]
fn agents_wait_for_a_controller_and_for_the_next_one() {
    let place = Place::in_memory();
    let made = place.run(&["fleet", "credentials", "crew"]);
    assert_eq!(made.status.code(), Some(0), "{}", transcript(&made));
    let again = place.run(&["fleet", "credentials", "crew"]);
    assert_eq!(again.status.code(), Some(2), "keys are not overwritten: {}", transcript(&again));
    let port = port();
    // With one client and with two there are other agents: a launch may have no place for the second.
    let clients = format!(
        "[clients]\nlauncher = \"external\"\naddress = \"127.0.0.1:{port}\"\ncredentials = \"crew/controller\"\n\
         [factors.clients]\nparameter = \"clients.count\"\nlevels = [1, 2]\n[design]"
    );
    place.write(
        "external.toml",
        &study().replace("[design]", &clients).replace("replicates = 2", "replicates = 4"),
    );
    // Each as its launcher numbers it, and before the controller.
    let ranks = [("OMPI_COMM_WORLD_RANK", "0"), ("PMI_RANK", "1")];
    let agents = ranks.map(|(name, rank)| agent(&place, port, WAIT).env(name, rank).spawn().unwrap());
    let output = place.run(&["run", "external.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert!(stderr(&output).contains("waiting for 2 agents, which dial 127.0.0.1:"), "{}", stderr(&output));
    let results = place.results("results/external");
    let numbers: Vec<_> = results.runs.iter().map(|run| run.recordings[0].agents.len()).collect();
    assert_eq!((numbers.len(), numbers.iter().sum::<usize>()), (8, 12), "{numbers:?}");
    // No controller comes any more.
    for agent in agents {
        let ended = agent.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{}", transcript(&ended));
    }
    let keys = [fs::read_to_string(place.path("crew/controller")).unwrap(), output_text(&output)];
    let secrets: Vec<&str> = keys[0].split('"').filter(|text| text.len() >= 64).collect();
    assert!(secrets.len() == 2 && secrets.iter().all(|secret| !keys[1].contains(secret)));
    place.assert_nothing_left();
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

#[test]
fn agents_whose_controller_never_comes_say_so() {
    let place = Place::in_memory();
    place.run(&["fleet", "credentials", "crew"]);
    let mut first = agent(&place, port(), "200ms");
    first.arg("--rank=0");
    let output = finish(first);
    assert_eq!(output.status.code(), Some(1), "{}", transcript(&output));
    assert!(stderr(&output).contains("within 200ms"), "{}", stderr(&output));
    let without = finish(agent(&place, port(), "200ms"));
    assert!(stderr(&without).contains("`--rank`, or in one of SLURM_PROCID"), "{}", stderr(&without));
}

/// The nodes of a cluster: starts the pods of the objects that it is given as processes of this host.
struct Cluster<'a> {
    place: &'a Place,
    objects: Vec<Value>,
    port: u16,
}

impl Cluster<'_> {
    fn object(&self, kind: &str, name: &str) -> &Value {
        let mut all = self.objects.iter();
        all.find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
            .unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    /// Gives a pod its volumes: where each path in it is on this host.
    fn mount(&self, pod: &str, spec: &Value) -> Vec<(String, PathBuf)> {
        let volumes = spec["volumes"].as_array().unwrap();
        let mounts = spec["containers"][0]["volumeMounts"].as_array().unwrap();
        let mount = |mount: &Value| {
            let volume = volumes.iter().find(|volume| volume["name"] == mount["name"]).unwrap();
            let name = volume["name"].as_str().unwrap();
            let claim = volume["persistentVolumeClaim"]["claimName"].as_str();
            let here = self.place.path(&claim.map_or(format!("{pod}-{name}"), str::to_owned));
            fs::DirBuilder::new().recursive(true).mode(0o755).create(&here).unwrap();
            if let Some(secret) = volume.get("secret") {
                let data = &self.object("Secret", secret["secretName"].as_str().unwrap())["stringData"];
                let mode = u32::try_from(secret["defaultMode"].as_u64().unwrap()).unwrap();
                for item in secret["items"].as_array().unwrap() {
                    let path = here.join(item["path"].as_str().unwrap());
                    let mut file =
                        fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path).unwrap();
                    let text = data[item["key"].as_str().unwrap()].as_str().unwrap();
                    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
                }
            } else if let Some(map) = volume.get("configMap") {
                let data = &self.object("ConfigMap", map["name"].as_str().unwrap())["data"];
                for (name, text) in data.as_object().unwrap() {
                    fs::write(here.join(name), text.as_str().unwrap()).unwrap();
                }
            } else {
                self.object("PersistentVolumeClaim", claim.unwrap());
            }
            (mount["mountPath"].as_str().unwrap().to_owned(), here)
        };
        mounts.iter().map(mount).collect()
    }

    /// Starts a pod of a job. Its network is this host's: the service's name and all addresses are the loopback address.
    fn start(&self, job: &str, index: u32) -> Command {
        let spec = &self.object("Job", job)["spec"]["template"]["spec"];
        let paths = self.mount(&format!("{job}-{index}"), spec);
        let service = self.object("Service", "external");
        let port = service["spec"]["ports"][0]["port"].as_u64().unwrap();
        let here = format!("127.0.0.1:{}", self.port);
        let arguments = spec["containers"][0]["args"].as_array().unwrap().iter().map(|argument| {
            let mut argument = argument.as_str().unwrap().replace("$(POD_IP)", "127.0.0.1");
            for address in ["external", "0.0.0.0"] {
                argument = argument.replace(&format!("{address}:{port}"), &here);
            }
            let (option, value) =
                argument.split_once('=').map_or(("", argument.as_str()), |(key, value)| (key, value));
            let found = paths.iter().find_map(|(path, here)| Some((here, value.strip_prefix(path)?)));
            if let Some((here, rest)) = found {
                let equals = if option.is_empty() { "" } else { "=" };
                argument = format!("{option}{equals}{}{rest}", here.display());
            }
            // Else they would wait for minutes when all is over.
            if argument == "10m" { WAIT.to_owned() } else { argument }
        });
        let arguments: Vec<String> = arguments.collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut command = self.place.command(&arguments);
        command.env("JOB_COMPLETION_INDEX", index.to_string());
        command
    }
}

#[test]
fn a_cluster_that_does_what_the_manifest_says_runs_the_study() {
    let place = Place::in_memory();
    place.write("external.toml", &study().replace("listen = \"127.0.0.1\"\n", ""));
    let base = ["fleet", "manifest", "external.toml", "--agents", "3", "--image", "registry/benchmaster"];
    let refused = place.run(&base);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--set 'server.listen=$(POD_IP)'"), "{}", transcript(&refused));
    let printed = place.run(&[&base[..], &["--set", "server.listen=$(POD_IP)"]].concat());
    assert_eq!(printed.status.code(), Some(0), "{}", transcript(&printed));
    let list: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let objects = list["items"].as_array().unwrap().clone();
    assert_eq!((objects.len(), &list["kind"]), (6, &Value::from("List")));
    let cluster = Cluster { place: &place, objects, port: port() };
    let agents = &cluster.object("Job", "external-agents")["spec"];
    assert_eq!(
        (&agents["completionMode"], &agents["completions"]),
        (&Value::from("Indexed"), &Value::from(3))
    );
    assert_eq!(agents["template"]["spec"]["containers"][0]["image"], "registry/benchmaster");
    // Keys of the controller are not among what agents see.
    let items = agents["template"]["spec"]["volumes"][0]["secret"]["items"].as_array().unwrap();
    assert!(items.len() == 1 && items[0]["key"] == "agent", "{items:?}");

    // In an order that a cluster may have.
    let agent = |index| -> Child { cluster.start("external-agents", index).spawn().unwrap() };
    let mut pods = vec![agent(2), agent(0)];
    let controller = Running::start(cluster.start("external", 0));
    pods.push(agent(1));
    let (status, _, said) = controller.end();
    assert_eq!(status.code(), Some(0), "{said}");
    let results = place.results("external-results/external");
    assert!(results.runs.len() == 2 && results.runs.iter().all(|run| run.failure.is_none()));
    assert!(results.runs.iter().all(|run| run.recordings[0].agents.len() == 3));
    for pod in pods {
        assert_eq!(pod.wait_with_output().unwrap().status.code(), Some(0));
    }
}
