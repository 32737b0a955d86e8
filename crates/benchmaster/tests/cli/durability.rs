//! What is acknowledged survives, or is found lost: servers that are killed, and clients.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{PROGRAM, Place, Running, stderr, stdout, transcript};

/// A server that a script starts, and kills and starts again.
struct Killable<'p> {
    place: &'p Place,
    port: u16,
}

impl<'p> Killable<'p> {
    fn start(place: &'p Place, durability: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let start = format!(
            "rm -f serve.log
             {PROGRAM} serve --listen 127.0.0.1:{port} --state state --durability {durability} --lease 1s >serve.log 2>&1 &
             echo $! >pid
             until grep -qs 'serving /export' serve.log; do kill -0 $(cat pid) && sleep 0.02 || exit 1; done"
        );
        place.write("start.sh", &start);
        place.write(
            "fail.sh",
            &format!(
                "kill -9 $(cat pid); while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done\n{start}"
            ),
        );
        let server = Self { place, port };
        server.script("start.sh");
        server
    }

    fn script(&self, name: &str) {
        let mut shell = std::process::Command::new("sh");
        self.place.surround(&mut shell);
        let done = shell.arg(name).output().unwrap();
        assert!(done.status.success(), "{name}: {}", transcript(&done));
    }

    fn study(&self, duration: &str) -> String {
        format!(
            r#"
            [study]
            name = "killed"
            seed = 3

            [target]
            url = "nfs://127.0.0.1:{}/export?version=4.1&timeo=200ms&retrans=100"

            [run]
            failure = "process"
            failure_hook = "sh fail.sh"
            baseline = false

            [design]
            replicates = 1

            [workload.flushed]
            use = "random-write"
            file_size = "1MiB"
            io_size = "4KiB"
            sync = "fsync"
            duration = "{duration}"
            verify = "durability"

            [workload.names]
            use = "metadata"
            directory_entries = 10
            duration = "{duration}"
            verify = "durability"
            "#,
            self.port
        )
    }

    fn kill(&self) {
        if let Some(pid) =
            fs::read_to_string(self.place.path("pid")).ok().and_then(|text| text.trim().parse().ok())
        {
            let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
    }
}

impl Drop for Killable<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The state file and its logs.
fn remove_state(place: &Place) {
    for left in place.list(".").iter().filter(|name| name.starts_with("state")) {
        fs::remove_file(place.path(left)).unwrap();
    }
}

#[test]
fn a_server_with_a_log_survives_kill_9_and_one_without_is_found_out() {
    let place = Place::in_memory();
    for (durability, class) in [("process", "survives its process"), ("none", "loses")] {
        let server = Killable::start(&place, durability);
        place.write("killed.toml", &server.study("100ms"));
        let run = place.run(&["run", "killed.toml", "-o", durability]);
        assert!(matches!(run.status.code(), Some(0 | 1)), "{}", transcript(&run));
        assert!(stdout(&run).contains(class), "{durability}: {}", transcript(&run));
        let results = place.results(durability);
        let witnesses =
            results.runs[0].recordings.iter().map(|recording| recording.witness.as_ref().unwrap());
        for witness in witnesses {
            // A file whose removal was promised is not there either way.
            let right =
                if durability == "process" { witness.missing() == 0 } else { witness.missing() >= 10 };
            assert!(right && witness.acknowledged() >= 10, "{durability}: {witness:?}");
        }
        drop(server);
        remove_state(&place);
    }
    let refused = place.run(&["compare", "process", "none"]);
    assert_eq!(refused.status.code(), Some(2), "{}", transcript(&refused));
    assert!(stderr(&refused).contains("survives its process | loses"), "{}", transcript(&refused));
    let forced = place.run(&["compare", "process", "none", "--force", "--fail-on", "never"]);
    assert_eq!(forced.status.code(), Some(0), "{}", transcript(&forced));
}

/// The ledger of a run in flight, once it has entries.
fn ledger(place: &Place) -> PathBuf {
    let began = Instant::now();
    loop {
        let names = if place.path("out").is_dir() { place.list("out") } else { Vec::new() };
        let found = names.iter().map(|name| place.path("out").join(name));
        let grown = |path: &PathBuf| {
            path.extension().is_some_and(|end| end == "ledger")
                && fs::metadata(path).is_ok_and(|found| found.len() > 20_000)
        };
        if let Some(path) = found.into_iter().find(grown) {
            return path;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "there is no ledger: {names:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_a_killed_run_was_told_is_checked_by_its_ledger() {
    let place = Place::in_memory();
    let server = Killable::start(&place, "process");
    place.write("killed.toml", &server.study("60s"));
    let mut run = Running::start(place.command(&["run", "killed.toml", "-o", "out", "-q"]));
    let ledger = ledger(&place);
    run.signal(Signal::KILL);
    run.child.wait().unwrap();
    server.script("fail.sh");
    let path = ledger.to_str().unwrap();
    let checked = place.run(&["witness", path]);
    assert_eq!(checked.status.code(), Some(0), "{}", transcript(&checked));
    assert!(
        stdout(&checked).contains("Everything that was acknowledged is there"),
        "{}",
        transcript(&checked)
    );
    let json = place.run(&["witness", path, "--json"]);
    assert!(stdout(&json).contains("\"lost\": 0"), "{}", transcript(&json));
    let wrong = place.run(&["witness", "killed.toml"]);
    assert!(stderr(&wrong).contains("is no ledger of a durability witness"), "{}", transcript(&wrong));
    server.kill();
    remove_state(&place);
    server.script("start.sh");
    let lost = place.run(&["witness", path]);
    assert_eq!(lost.status.code(), Some(2), "{}", transcript(&lost));
    assert!(stderr(&lost).contains("nothing that was acknowledged survived"), "{}", transcript(&lost));
}
