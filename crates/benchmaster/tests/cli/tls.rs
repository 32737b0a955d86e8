//! Certificates, a server with them, and studies over TLS.

use std::process::Command;

use rustix::process::Signal;

use crate::place::{Place, finish, stderr, stdout, transcript};
use crate::serve::serve;

#[test]
fn certificates_are_made_once_and_serve_server_and_client() {
    let place = Place::new();
    let made = place.run(&["certificates", "tls"]);
    assert_eq!(made.status.code(), Some(0), "{}", transcript(&made));
    let files = ["ca.pem", "server.pem", "server.key", "client.pem", "client.key"];
    assert_eq!(stdout(&made).lines().collect::<Vec<_>>(), files.map(|file| format!("tls/{file}")));
    let again = place.run(&["certificates", "tls"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("tls/ca.pem: File exists"), "{}", transcript(&again));

    let tls = ["--tls", "tls/server.pem,tls/server.key,tls/ca.pem", "--require-tls"];
    let (server, address) = serve(&place, &tls);
    let quick = |options: &str| {
        let url = format!("nfs://127.0.0.1:{}/export?version=4.1{options}", address.port());
        place.run(&[
            "run", "--rw", "read", "--bs", "64k", "--size", "1m", "--time", "200ms", &url, "-o", "results",
        ])
    };
    let plain = quick("");
    assert_eq!(plain.status.code(), Some(2), "{}", transcript(&plain));
    assert!(stderr(&plain).contains("the server asks for TLS"), "{}", transcript(&plain));
    let alone = quick("&xprtsec=tls&tls_ca=tls/ca.pem");
    assert_eq!(alone.status.code(), Some(2), "{}", transcript(&alone));
    assert!(stderr(&alone).contains("cannot be reached over TLS"), "{}", transcript(&alone));
    let both = "&xprtsec=mtls&tls_ca=tls/ca.pem&tls_cert=tls/client.pem&tls_key=tls/client.key";
    let mutual = quick(both);
    assert_eq!(mutual.status.code(), Some(0), "{}", transcript(&mutual));
    server.signal(Signal::TERM);
    let (_, counted, _) = server.end();
    let counted: serde_json::Value = serde_json::from_str(counted.lines().last().unwrap()).unwrap();
    assert!(counted["transport"]["tls_handshakes"].as_u64() > Some(0), "{counted}");
    assert!(counted["transport"]["bad_auth"].as_u64() > Some(0), "{counted}");
}

#[test]
fn what_serve_cannot_use_is_named() {
    let place = Place::new();
    let wrong = |arguments: &[&str], part: &str| {
        let output = place.run(&[&["serve", "--listen", "0"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
        assert!(stderr(&output).contains(part), "{}", transcript(&output));
    };
    wrong(&["--require-tls"], "--tls");
    wrong(&["--tls", "one.pem"], "write two or three files");
    wrong(&["--tls", "none.pem,none.key"], "none.pem: No such file");
}

#[test]
fn a_study_with_the_embedded_server_needs_no_files() {
    let place = Place::new();
    let study = r#"
        [study]
        name = "safe"
        [target]
        url = "nfs://{server}/export?version=4.1"
        [factors.security]
        parameter = "target.security"
        levels = ["sys", "tls", "mtls"]
        [design]
        replicates = 1
        [workload.read]
        use = "sequential-read"
        file_size = "1MiB"
        io_size = "64KiB"
        duration = "150ms"
    "#;
    place.write("safe.toml", study);
    let output = place.run(&["run", "safe.toml", "-o", "results"]);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let results = place.results("results");
    assert_eq!(results.runs.len(), 3);
    for run in &results.runs {
        let label = &results.study.treatments[run.key.treatment as usize].label;
        let rpc = run.recordings[0].rpc.as_ref().unwrap();
        let suite = rpc.connection.tls.as_deref();
        assert_eq!(suite.is_some(), !label.contains("sys"), "{label}: {suite:?}");
        assert!(suite.is_none_or(|suite| suite.starts_with("TLS13_")), "{suite:?}");
        let event =
            |name: &str| -> u64 { rpc.phases.iter().filter_map(|phase| phase.events.get(name)).sum() };
        assert_eq!(event("tls-bytes-received") > 0, suite.is_some(), "{label}");
        assert!(rpc.problems.is_empty(), "{:?}", rpc.problems);
        let url = &run.service.as_ref().unwrap().url;
        assert_eq!(url.contains("{certificates}/ca.pem"), suite.is_some(), "{url}");
    }
    place.assert_nothing_left();
    let refused = place.run(&["plan", "safe.toml", "--set", "target.tls_ca=ca.pem"]);
    assert_eq!(refused.status.code(), Some(2), "{}", transcript(&refused));
}

/// Another implementation of TLS, and calls written by hand: the probe, the handshake with `sunrpc`, NULL.
const PYTHON: &str = r#"
import socket, ssl, struct, sys
port, ca, cert, key = int(sys.argv[1]), *sys.argv[2:5]
def call(xid, flavor):
    body = struct.pack(">IIIIIIIIII", xid, 0, 2, 100003, 3, 0, flavor, 0, 0, 0)
    return struct.pack(">I", 0x80000000 | len(body)) + body
def reply(stream):
    length = struct.unpack(">I", stream.recv(4))[0] & 0x7fffffff
    data = b""
    while len(data) < length:
        data += stream.recv(length - len(data))
    return data
plain = socket.create_connection(("127.0.0.1", port), 20)
plain.sendall(call(1, 7))
answer = reply(plain)
assert answer[:8] == struct.pack(">II", 1, 1) and answer[12:24] == struct.pack(">II", 0, 8) + b"STARTTLS"[:4], answer
context = ssl.create_default_context(cafile=ca)
context.minimum_version = ssl.TLSVersion.TLSv1_3
context.load_cert_chain(cert, key)
context.set_alpn_protocols(["sunrpc"])
safe = context.wrap_socket(plain, server_hostname="127.0.0.1")
assert safe.selected_alpn_protocol() == "sunrpc", safe.selected_alpn_protocol()
for xid in range(2, 50):
    safe.sendall(call(xid, 0))
    answer = reply(safe)
    assert answer == struct.pack(">IIIIII", xid, 1, 0, 0, 0, 0), answer
# The probe again, within the session: AUTH_BADCRED.
safe.sendall(call(50, 7))
assert reply(safe) == struct.pack(">IIIII", 50, 1, 1, 1, 1)
# Without the protocol's name there is no session.
other = socket.create_connection(("127.0.0.1", port), 20)
other.sendall(call(1, 7))
reply(other)
bare = ssl.create_default_context(cafile=ca)
bare.load_cert_chain(cert, key)
try:
    wrapped = bare.wrap_socket(other, server_hostname="127.0.0.1")
    wrapped.sendall(call(2, 0))
    assert wrapped.recv(4) == b"", "a session without ALPN"
except (ssl.SSLError, ConnectionError):
    pass
print(safe.version(), safe.cipher()[0])
"#;

#[test]
fn another_implementation_of_tls_is_served() {
    let place = Place::new();
    let mut python = Command::new("python3");
    python.args(["-c", "import ssl; assert ssl.HAS_TLSv1_3"]);
    if !python.status().is_ok_and(|status| status.success()) {
        println!("skipped: no python3 with TLS 1.3");
        return;
    }
    let made = place.run(&["certificates", "tls", "--name", "127.0.0.1"]);
    assert_eq!(made.status.code(), Some(0), "{}", transcript(&made));
    let tls = ["--tls", "tls/server.pem,tls/server.key,tls/ca.pem", "--require-tls"];
    let (_server, address) = serve(&place, &tls);
    let mut python = Command::new("python3");
    let port = address.port().to_string();
    python.args(["-c", PYTHON, &port, "tls/ca.pem", "tls/client.pem", "tls/client.key"]);
    python.current_dir(place.root());
    let output = finish(python);
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    assert!(stdout(&output).starts_with("TLSv1.3 TLS_"), "{}", transcript(&output));
}
