//! Conformance from the command line.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};

use benchmaster_nfs_server::{Server, ServerConfig};
use serde_json::Value;

use crate::place::{Place, stderr, stdout};
use crate::serve::serve;

fn server() -> Server {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Server::start(ServerConfig { listen, threads: 1, ..ServerConfig::default() }).unwrap()
}

fn url(server: &Server) -> String {
    format!("nfs://{}/export?uid=1000&gid=1000", server.address())
}

#[test]
fn groups_are_checked_and_written_for_ci() {
    let (place, server) = (Place::new(), server());
    let output = place.run(&[
        "check",
        &url(&server),
        "--nfs",
        "3,4.1",
        "--only",
        "readdir,lookup-missing",
        "--json",
        "--junit",
        "junit.xml",
        "--html",
        "page.html",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let versions: Vec<&str> =
        found.as_array().unwrap().iter().filter_map(|one| one["version"].as_str()).collect();
    assert_eq!(versions, ["3", "4.1"]);
    let findings = found[1]["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["name"] == "lookup-missing"));
    assert!(
        findings.len() > 5 && findings.iter().all(|finding| finding["verdict"] == "pass"),
        "{findings:?}"
    );
    let junit = fs::read_to_string(place.path("junit.xml")).unwrap();
    assert!(junit.contains("classname=\"NFS 4.1 names\" name=\"lookup-missing\""), "{junit}");
    assert!(fs::read_to_string(place.path("page.html")).unwrap().contains("lookup-missing"));
}

#[test]
fn an_export_with_entries_is_refused() {
    let (place, server) = (Place::new(), server());
    // The root has the export in it.
    let output = place.run(&["check", &format!("nfs://{}/", server.address()), "--nfs", "4.1"]);
    assert_eq!(output.status.code(), Some(2), "{}", stdout(&output));
    assert!(stderr(&output).contains("the export is not empty: it has `export`"), "{}", stderr(&output));
    assert!(stderr(&output).contains("--force"), "{}", stderr(&output));
}

#[test]
fn checks_are_listed_and_unknown_ones_named() {
    let place = Place::new();
    let output = place.run(&["check", "--list", "--only", "mount"]);
    let text = stdout(&output);
    assert!(text.contains("mount-missing (mount, must, NFS 2 3)"), "{text}");
    assert!(text.contains("RFC 1813 §5.2.1, RFC 1094 §A.5.2: "), "{text}");
    let output = place.run(&["check", "nfs://127.0.0.1/export", "--only", "nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no group and no check `nonsense`"), "{}", stderr(&output));
}

#[test]
fn several_addresses_of_a_server_are_checked_together() {
    let place = Place::new();
    let (_running, address) = serve(&place, &["--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0"]);
    // The last address is printed last.
    assert_eq!(address.ip(), Ipv4Addr::new(127, 0, 0, 2));
    let check = |addresses: &str| {
        let url = format!("nfs://127.0.0.1:{}/export?uid=1000&gid=1000{addresses}", address.port());
        let output = place.run(&["check", &url, "--nfs", "4.1", "--only", "session", "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let of_trunks = found[0]["findings"].as_array().unwrap().clone();
        let verdicts = of_trunks.into_iter().filter(|f| f["name"].as_str().unwrap().starts_with("trunk-"));
        verdicts.map(|finding| finding["verdict"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(check("&addresses=127.0.0.2"), ["pass"; 5]);
    assert_eq!(check(""), ["not-applicable"; 5]);
}
