//! An OpenSSH server on a port of 127.0.0.1, with its own keys and home directory. Meant to be included by path.
//!
//! `ssh -F CONFIG cN` (any N) leads to it. `badkey` has a key that it does not know, `strange` a host key that the client does
//! not know, nothing listens for `closed`, and `nowhere` does not exist.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs while it lives.
pub(crate) struct Sshd {
    directory: tempfile::TempDir,
    server: Child,
}

/// Where a program of the system is, also when the path of users does not lead to it.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Says why a test is skipped; fails it where the thing is required.
pub(crate) fn skip(thing: &str, why: &str) {
    assert!(std::env::var_os(format!("BENCHMASTER_REQUIRE_{thing}")).is_none(), "required, but {why}");
    println!("skipped: {why}");
}

/// Waits until something holds; panics when it takes too long.
pub(crate) fn wait_for(what: &str, limit: Duration, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A command that is killed with the thread that starts it, whatever ends that.
pub(crate) fn mortal(program: &Path) -> Command {
    match self::program("setpriv") {
        Some(setpriv) => {
            let mut command = Command::new(setpriv);
            command.args(["--pdeathsig", "KILL"]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

fn keygen(file: &Path) {
    let done =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(file).status().unwrap();
    assert!(done.success());
}

impl Sshd {
    /// Starts one; `None`, after saying why, where there is no OpenSSH.
    pub(crate) fn start() -> Option<Self> {
        let Some(sshd) =
            program("sshd").filter(|_| program("ssh").is_some() && program("ssh-keygen").is_some())
        else {
            skip("SSHD", "there is no sshd and ssh (Debian: openssh-server, openssh-client)");
            return None;
        };
        if rustix::process::geteuid().is_root() {
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for key in ["host", "key", "badkey"] {
            keygen(&path(key));
        }
        fs::create_dir(path("home")).unwrap();
        fs::copy(path("key.pub"), path("authorized")).unwrap();
        let public = fs::read_to_string(path("host.pub")).unwrap();
        fs::write(path("known"), format!("benchmaster-test {public}")).unwrap();
        let mut last = String::new();
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let place = directory.path().display();
            let config = format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {place}/host\nAuthorizedKeysFile {place}/authorized\n\
                 UsePAM no\nStrictModes no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
                 MaxStartups 100:30:200\nPermitRootLogin yes\nSetEnv HOME={place}/home\n"
            );
            fs::write(path("sshd_config"), config).unwrap();
            let client = format!(
                "Host nowhere\n HostName nowhere.invalid\nHost closed\n HostName 127.0.0.1\n Port 1\n\
                 Host badkey\n IdentityFile {place}/badkey\nHost strange\n HostKeyAlias strange\n\
                 Host * !badkey\n IdentityFile {place}/key\n\
                 Host *\n HostName 127.0.0.1\n Port {port}\n IdentitiesOnly yes\n\
                 IdentityAgent none\n KexAlgorithms curve25519-sha256\n UserKnownHostsFile {place}/known\n GlobalKnownHostsFile /dev/null\n\
                 StrictHostKeyChecking yes\n HostKeyAlias benchmaster-test\n"
            );
            fs::write(path("ssh_config"), client).unwrap();
            let mut server = mortal(&sshd)
                .args(["-D", "-e", "-f"])
                .arg(path("sshd_config"))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(fs::File::create(path("log")).unwrap())
                .spawn()
                .unwrap();
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(10) && server.try_wait().unwrap().is_none() {
                if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                    return Some(Self { directory, server });
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            // Somebody else may have taken the port.
            let _ = server.kill();
            let _ = server.wait();
            last = fs::read_to_string(path("log")).unwrap();
        }
        panic!("sshd does not start: {last}");
    }

    /// Options for `ssh`.
    pub(crate) fn options(&self) -> Vec<String> {
        vec!["-F".into(), self.directory.path().join("ssh_config").to_str().unwrap().into()]
    }

    /// The home directory of those who log in.
    pub(crate) fn home(&self) -> PathBuf {
        self.directory.path().join("home")
    }

    /// Cuts all connections, as a network that goes away does for the hosts.
    pub(crate) fn cut(&self) {
        for session in children(self.server.id()) {
            let pid = rustix::process::Pid::from_raw(session.cast_signed()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            for inner in children(session) {
                // The part of a session that runs as the user; the agent itself is its child.
                let name = fs::read_to_string(format!("/proc/{inner}/comm")).unwrap_or_default();
                if name.starts_with("sshd") {
                    let pid = rustix::process::Pid::from_raw(inner.cast_signed()).unwrap();
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
        }
    }
}

/// Processes started by a process.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.cut();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
