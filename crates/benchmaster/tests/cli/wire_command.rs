//! Programs over an emulated network. Without the right to make namespaces these are skipped, unless
//! `BENCHMASTER_REQUIRE_NAMESPACES=1`.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use benchmaster_netem::namespace::capabilities;
use rustix::process::{Pid, Signal, geteuid, test_kill_process};

use crate::place::{PROGRAM, Place, Running, finish, stderr, stdout};

/// Whether the tests cannot be done here.
fn skipped() -> bool {
    let Err(reason) = capabilities().wire else { return false };
    assert_ne!(std::env::var("BENCHMASTER_REQUIRE_NAMESPACES").as_deref(), Ok("1"), "{reason}");
    eprintln!("skipped: {reason}");
    true
}

fn has(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// Waits for something that others bring about.
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
#[ignore = "full tier: network namespaces"]
fn a_command_runs_in_the_namespace_of_a_client_and_a_report_follows() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let script = "echo $BENCHMASTER_SERVER_ADDRESS $BENCHMASTER_CLIENT_ADDRESS; cat /proc/net/dev; \
                  test -n \"$(readlink /proc/self/ns/net)\"";
    let arguments = ["wire", "--means", "wire", "--delay", "2ms", "--", "sh", "-c", script];
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let out = stdout(&output);
    assert!(out.starts_with("10.77.0.1 10.77.1.1\n"), "{out}");
    assert!(out.contains("bm0:") && !out.contains("eth0"), "{out}");
    assert!(stderr(&output).contains("client 1 to server"), "{}", stderr(&output));
}

#[test]
#[ignore = "full tier: network namespaces"]
fn the_report_as_json_tells_link_means_and_counts() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let mut arguments =
        vec!["wire", "--json", "--means", "wire", "--clients", "3", "--all", "--delay", "1ms"];
    arguments.extend(["--bandwidth", "100Mbit", "--loss", "0%", "--mtu", "9000", "--", "sh", "-c"]);
    arguments.push("exec true");
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["means"], "wire");
    assert_eq!(report["link"]["delay_us"], 1_000.0);
    assert_eq!(report["link"]["bandwidth_bit_per_s"], 100_000_000);
    assert_eq!(report["link"]["queue_bytes"], 25_000 + 65_536);
    assert_eq!(report["link"]["mtu_bytes"], 9_000);
    assert!(report["link"]["congestion"].is_null());
    assert_eq!(report["clients"].as_array().unwrap().len(), 3);
    assert_eq!(report["clients"][2]["to_client"]["overruns"], 0);
    assert!(report["base_round_trip_us"].as_f64().unwrap() > 0.0);
}

#[test]
#[ignore = "full tier: network namespaces"]
fn the_congestion_control_is_one_that_the_kernel_has() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let wire = |name: &str| place.run(&["wire", "--json", "--congestion", name, "--", "true"]);
    let output = wire("reno");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(
        (&report["link"]["congestion"], &report["link"]["mtu_bytes"]),
        (&"reno".into(), &1_500.into())
    );
    let output = wire("nosuch");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(
        said.contains("`nosuch` is not available on this host; available: ") && said.contains("reno"),
        "{said}"
    );
}

#[test]
#[ignore = "full tier: network namespaces"]
fn a_command_that_fails_is_told() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let output = place.run(&["wire", "--", "sh", "-c", "exit 3"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("`sh` ended with exit status: 3"), "{}", stderr(&output));
    let output = place.run(&["wire", "--", "no-such-program"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot run `no-such-program`"), "{}", stderr(&output));
    let output = place.run(&["wire", "--server", "exit 4", "--port", "7", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("before it listened on port 7"), "{}", stderr(&output));
}

#[test]
#[ignore = "full tier: network namespaces"]
fn a_server_is_started_first_and_ended_last() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let server = format!("exec {PROGRAM} serve --listen 10.77.0.1:2049 --allow-remote --stats served");
    let listens = "grep -q '0A 00000000:00000000' /proc/net/tcp";
    let arguments = ["wire", "--means", "wire", "--server", &server, "--port", "2049", "--", "sh", "-c"];
    let output = finish(place.command(&[&arguments[..], &[&format!("! {listens}")]].concat()));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // It was ended with SIGTERM, so that it could write what it served.
    let served = std::fs::read_to_string(place.path("served")).unwrap();
    assert!(served.contains("\"connections\""), "{served}");
}

#[test]
#[ignore = "full tier: network namespaces"]
fn without_a_command_it_says_how_to_enter_until_it_is_told_to_stop() {
    if skipped() || !has("nsenter") {
        return;
    }
    let place = Place::new();
    let mut running = Running::start(place.command(&["wire", "--means", "wire", "--clients", "2"]));
    let line = running.wait_for("  client 2");
    running.wait_for("running until");
    let enter = line.split_once("nsenter").unwrap().1.replace("COMMAND", "cat /proc/net/route");
    let output = Command::new("sh").args(["-c", &format!("nsenter {enter}")]).output().unwrap();
    let routes = String::from_utf8(output.stdout).unwrap();
    assert!(routes.contains("bm0"), "{routes}{}", String::from_utf8_lossy(&output.stderr));
    running.signal(Signal::TERM);
    let (status, out, err) = running.end();
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(out.contains("client 2 to client"), "{out}");
}

#[test]
#[ignore = "full tier: network namespaces"]
fn nothing_is_left_after_a_kill() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let arguments = [
        "wire",
        "--server",
        "echo $$ > server; exec sleep 600",
        "--",
        "sh",
        "-c",
        "echo $$ > client; exec sleep 600",
    ];
    let running = Running::start(place.command(&arguments));
    let read = |name: &str| {
        std::fs::read_to_string(place.path(name)).ok()?.trim().parse().ok().and_then(Pid::from_raw)
    };
    eventually("both run", || read("server").is_some() && read("client").is_some());
    let pids = [read("server").unwrap(), read("client").unwrap()];
    assert!(pids.iter().all(|pid| test_kill_process(*pid).is_ok()));
    running.signal(Signal::KILL);
    drop(running);
    for pid in pids {
        // A zombie that init has not collected yet has ended too.
        let ended = || match std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
            Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
            Err(_) => true,
        };
        eventually("the command ended", ended);
    }
}

/// Runs the program (`$0`) as `nobody`, in a mount namespace where `nobody` reaches it and the device of TAPs: the program may be
/// below directories that others cannot enter, and some systems keep the device for root.
const AS_NOBODY: &str = "mount -t tmpfs -o mode=755 tmpfs /mnt
    : >/mnt/program
    mount --bind \"$0\" /mnt/program
    case $(stat -c %a /dev/net/tun) in
    *6) ;;
    *)
        mknod -m 666 /mnt/tun c 10 200
        mount --bind /mnt/tun /dev/net/tun
        ;;
    esac
    cd /
    exec setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/program \"$@\"";

#[test]
#[ignore = "full tier: network namespaces"]
fn it_works_without_root() {
    if skipped() {
        return;
    }
    let place = Place::new();
    let arguments = ["wire", "--means", "wire", "--json", "--", "true"];
    if geteuid().is_root() {
        let mut command = Command::new("unshare");
        place.surround(&mut command);
        command
            .args(["--mount", "--propagation", "private", "sh", "-euc", AS_NOBODY, PROGRAM])
            .args(arguments);
        return check_unprivileged(&finish(command));
    }
    check_unprivileged(&finish(place.command(&arguments)));
}

fn check_unprivileged(output: &std::process::Output) {
    // To those who are not root, some systems give neither.
    let refused = ["cannot create a user namespace", "/dev/net/tun"];
    if refused.iter().any(|why| stderr(output).contains(why)) {
        assert_ne!(std::env::var("BENCHMASTER_REQUIRE_NAMESPACES").as_deref(), Ok("1"), "{}", stderr(output));
        eprintln!("skipped: {}", stderr(output));
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let report: serde_json::Value = serde_json::from_str(&stdout(output)).unwrap();
    assert_eq!(report["means"], "wire");
}
