//! A server with Kerberos, clients with tickets, and studies with Kerberos as a factor: in the realm of docs/security.md, made by the
//! commands there.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use crate::built_in::repository;
use crate::place::{Place, Running, finish, stderr, transcript};

#[test]
fn what_serve_and_check_cannot_use_is_named() {
    let place = Place::new();
    let wrong = |arguments: &[&str], part: &str| {
        let output = place.run(&[&["serve", "--listen", "0"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
        assert!(stderr(&output).contains(part), "{}", transcript(&output));
    };
    wrong(&["--sec", "krb4"], "`krb4` is no security flavour");
    wrong(&["--export", "/a:sec=sys,krb5"], "`krb5` is not known");
    let check = place.run(&["check", "nfs://127.0.0.1/export?sec=krb5"]);
    assert_eq!(check.status.code(), Some(2), "{}", transcript(&check));
    assert!(stderr(&check).contains("with AUTH_SYS; remove"), "{}", transcript(&check));
    // Whether there is a library or not, there is no such keytab.
    let output = place.run(&["serve", "--listen", "0", "--sec", "krb5p", "--keytab", "none.keytab"]);
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    let said = stderr(&output);
    assert!(said.contains("none.keytab cannot be read") || said.contains("libgssapi-krb5-2"), "{said}");
}

#[test]
fn a_study_with_kerberos_needs_keys_for_the_embedded_server() {
    let place = Place::new();
    let study = fs::read_to_string(repository("studies/kerberos.toml")).unwrap();
    place.write("kerberos.toml", &study);
    let planned = place.run(&["plan", "kerberos.toml"]);
    assert_eq!(planned.status.code(), Some(0), "{}", transcript(&planned));
    place.write("kerberos.toml", &study.replace("keytab = \"nfs.keytab\" ", "# "));
    let refused = place.run(&["plan", "kerberos.toml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", transcript(&refused));
    assert!(
        stderr(&refused).contains("the embedded server has no keys for `krb5`"),
        "{}",
        transcript(&refused)
    );
}

/// The KDC that the commands of the documentation start; ends when dropped.
struct Kdc(u32);

impl Kdc {
    /// It writes its number a moment after it has gone to the background.
    fn of(realm: &Path) -> Self {
        for _ in 0..1000 {
            let number = fs::read_to_string(realm.join("kdc.pid")).ok();
            if let Some(number) = number.and_then(|number| number.trim().parse().ok()) {
                return Self(number);
            }
            sleep(Duration::from_millis(20));
        }
        panic!("the KDC does not say which process it is");
    }
}

impl Drop for Kdc {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.to_string()).status();
    }
}

/// The commands of the documentation under a heading: its first block of code.
fn documented(heading: &str) -> String {
    let text = fs::read_to_string(repository("docs/security.md")).unwrap();
    let (_, section) = text.split_once(heading).unwrap();
    section.split("```").nth(1).unwrap().to_owned()
}

#[test]
#[ignore = "full tier: needs a KDC"]
fn the_realm_of_the_documentation_serves_commands_and_studies() {
    if !["/usr/sbin/krb5kdc", "/usr/sbin/kadmin.local"].iter().all(|program| fs::exists(program).unwrap()) {
        assert!(std::env::var_os("BENCHMASTER_REQUIRE_KERBEROS").is_none(), "no krb5-kdc, krb5-admin-server");
        eprintln!("skipped: install krb5-kdc, krb5-admin-server and krb5-user");
        return;
    }
    let place = Place::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let commands = documented("### A realm to try it with").replace("8088", &free.to_string());
    let made = Command::new("bash").args(["-ec", &commands]).current_dir(place.root()).output().unwrap();
    assert!(made.status.success(), "{}", transcript(&made));
    let realm = place.path("realm");
    let _kdc = Kdc::of(&realm);
    let command = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.current_dir(&realm).env("KRB5_CONFIG", realm.join("krb5.conf"));
        command
    };
    let flavors = "krb5:krb5i:krb5p";
    let serve = ["serve", "--listen", "0", "--sec", flavors, "--keytab", "nfs.keytab", "--map", "users"];
    let mut server = Running::start(command(&serve));
    let line = server.wait_for("serving ");
    let port = line.rsplit(':').next().unwrap().to_owned();
    let run = |options: &str| {
        let url = format!("nfs://localhost:{port}/export?version=4.1{options}");
        finish(command(&[
            "run", "--rw", "read", "--bs", "64k", "--size", "1m", "--time", "200ms", &url, "-o", "r",
        ]))
    };
    let plain = run("");
    assert_eq!(plain.status.code(), Some(2), "{}", transcript(&plain));
    assert!(stderr(&plain).contains("it allows sec=krb5:krb5i:krb5p"), "{}", transcript(&plain));
    let safe = run("&sec=krb5p&krb5_keytab=alice.keytab");
    assert_eq!(safe.status.code(), Some(0), "{}", transcript(&safe));
    server.signal(Signal::TERM);
    let (_, counted, _) = server.end();
    let counted: serde_json::Value = serde_json::from_str(counted.lines().last().unwrap()).unwrap();
    assert!(counted["transport"]["gss_contexts"].as_u64() > Some(0), "{counted}");

    let study = repository("studies/kerberos.toml").canonicalize().unwrap();
    let study = study.to_str().unwrap();
    let small = ["run", study, "-o", "study", "--scale", "0.02", "--set", "design.replicates=1"];
    let output = finish(command(&small));
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let results = place.results("realm/study");
    assert_eq!(results.runs.len(), 4);
    for run in &results.runs {
        let label = &results.study.treatments[run.key.treatment as usize].label;
        let rpc = run.recordings[0].rpc.as_ref().unwrap();
        let event =
            |name: &str| -> u64 { rpc.phases.iter().filter_map(|phase| phase.events.get(name)).sum() };
        assert_eq!(event("gss-cipher-ns") > 0, label.contains("krb5"), "{label}");
        assert!(rpc.problems.is_empty(), "{label}: {:?}", rpc.problems);
    }
}
