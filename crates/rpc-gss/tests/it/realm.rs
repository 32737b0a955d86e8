//! A Kerberos realm for tests: a KDC on a port of 127.0.0.1 with its database in a temporary directory. Nothing outside of
//! it is read or written.
#![allow(dead_code, unreachable_pub, reason = "tests of several crates include this file")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::env;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Name of the realm.
pub const REALM: &str = "BENCHMASTER.TEST";
/// Set in processes that are within a realm: its directory.
const WITHIN: &str = "BENCHMASTER_TEST_REALM";
/// The server's principal.
pub const SERVER: &str = "nfs/localhost";
/// Programs of krb5-kdc, krb5-admin-server and krb5-user.
const PROGRAMS: [&str; 4] = ["krb5kdc", "kdb5_util", "kadmin.local", "kinit"];

/// A realm; it ends when dropped.
#[derive(Debug)]
pub struct Realm {
    directory: TempDir,
    kdc: Child,
}

/// What a process within a realm finds: keytabs of the server and of users.
#[derive(Debug)]
pub struct Within {
    directory: PathBuf,
}

fn program(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .map(|folder| Path::new(folder).join(name))
        .into_iter()
        .find(|p| p.exists())
}

/// Runs the rest of a test within a realm: in a process of its own, in whose environment `KRB5_CONFIG` names the realm's
/// configuration. `test` is the test's name, with its modules. Without the programs of Kerberos the test is skipped, unless
/// `BENCHMASTER_REQUIRE_KERBEROS` is set.
pub fn within(test: &str, users: &[&str], ticket: Duration, body: impl FnOnce(&Within)) {
    if let Some(directory) = env::var_os(WITHIN) {
        return body(&Within { directory: directory.into() });
    }
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|name| program(name).is_none()).collect();
    if !missing.is_empty() {
        assert!(
            env::var_os("BENCHMASTER_REQUIRE_KERBEROS").is_none(),
            "not installed: {}",
            missing.join(", ")
        );
        eprintln!(
            "skipped: {} not found; install krb5-kdc, krb5-admin-server and krb5-user",
            missing.join(", ")
        );
        return;
    }
    let realm = Realm::new(users, ticket);
    let status = realm
        .command(&env::current_exe().unwrap())
        .args([test, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"])
        .status()
        .unwrap();
    assert!(status.success(), "{test}: {status}");
}

impl Realm {
    /// A realm with a server and users, who get tickets of this lifetime.
    pub fn new(users: &[&str], ticket: Duration) -> Self {
        let directory = tempfile::Builder::new().prefix("benchmaster-realm-").tempdir().unwrap();
        let path = directory.path();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        let here = path.display();
        let seconds = ticket.as_secs();
        let client = format!(
            "[libdefaults]\n default_realm = {REALM}\n dns_lookup_realm = false\n dns_lookup_kdc = false\n \
             dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n clockskew = 2\n \
             ticket_lifetime = {seconds}s\n default_ccache_name = FILE:{here}/cache\n \
             default_keytab_name = FILE:{here}/none\n default_client_keytab_name = FILE:{here}/none\n\
             [realms]\n {REALM} = {{\n  kdc = {address}\n }}\n[domain_realm]\n localhost = {REALM}\n"
        );
        let server = format!(
            "[kdcdefaults]\n kdc_listen = {address}\n kdc_tcp_listen = {address}\n\
             [realms]\n {REALM} = {{\n  database_name = {here}/principal\n  key_stash_file = {here}/stash\n  \
             acl_file = {here}/acl\n  max_life = {seconds}s\n }}\n[logging]\n kdc = FILE:{here}/kdc.log\n"
        );
        fs::write(path.join("krb5.conf"), client).unwrap();
        fs::write(path.join("kdc.conf"), server).unwrap();
        run(path, "kdb5_util", &["create", "-s", "-r", REALM, "-P", "only for tests"]);
        for principal in users.iter().copied().chain([SERVER]) {
            let keytab = path.join(file_of(principal));
            run(path, "kadmin.local", &["-q", &format!("addprinc -randkey {principal}")]);
            run(path, "kadmin.local", &["-q", &format!("ktadd -k {} {principal}", keytab.display())]);
        }
        drop(free);
        let mut kdc = command(path, &program("krb5kdc").unwrap());
        let kdc = kdc.args(["-n", "-r", REALM]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let realm = Self { directory, kdc };
        let until = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < until, "the KDC does not answer at {address}");
            sleep(Duration::from_millis(10));
        }
        realm
    }

    /// A program that finds the realm.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = command(self.directory.path(), program);
        command.env(WITHIN, self.directory.path());
        command
    }

    /// What is in it.
    pub fn within(&self) -> Within {
        Within { directory: self.directory.path().to_owned() }
    }
}

impl Drop for Realm {
    fn drop(&mut self) {
        let _ = self.kdc.kill();
        let _ = self.kdc.wait();
    }
}

impl Within {
    /// The keytab of a principal.
    pub fn keytab(&self, principal: &str) -> PathBuf {
        self.directory.join(file_of(principal))
    }

    /// A file in the realm's directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

fn file_of(principal: &str) -> String {
    format!("{}.keytab", principal.replace('/', "-"))
}

fn command(directory: &Path, program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("KRB5_CONFIG", directory.join("krb5.conf"))
        .env("KRB5_KDC_PROFILE", directory.join("kdc.conf"))
        .env_remove("KRB5CCNAME")
        .env_remove("KRB5_KTNAME");
    command
}

fn run(directory: &Path, name: &str, args: &[&str]) {
    let output = command(directory, &program(name).unwrap()).args(args).output().unwrap();
    assert!(output.status.success(), "{name} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}
