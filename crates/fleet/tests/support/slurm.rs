//! A Slurm cluster of four nodes, n1 to n4, on this machine, with its own munge and ports. Meant to be included by path, beside
//! `sshd.rs`.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::sshd::{mortal, program, skip, wait_for};

/// Runs while it lives.
pub(crate) struct Slurm {
    directory: tempfile::TempDir,
    /// In the order of their start.
    daemons: Vec<Child>,
}

impl Slurm {
    /// Starts one; `None`, after saying why, where Slurm or the right to run it is missing.
    pub(crate) fn start() -> Option<Self> {
        let names = ["munged", "slurmctld", "slurmd", "srun"];
        let [Some(munged), Some(slurmctld), Some(slurmd), Some(_)] = names.map(program) else {
            skip("SLURM", "there is no Slurm and munge (Debian: slurm-wlm, munge)");
            return None;
        };
        if !rustix::process::geteuid().is_root() {
            skip("SLURM", "a Slurm cluster of one's own needs root");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("state")).unwrap();
        let mut key = vec![0; 128];
        std::io::Read::read_exact(&mut fs::File::open("/dev/urandom").unwrap(), &mut key).unwrap();
        fs::write(path("munge.key"), key).unwrap();
        fs::set_permissions(path("munge.key"), fs::Permissions::from_mode(0o600)).unwrap();
        let sockets: Vec<_> = (0..5).map(|_| TcpListener::bind("0.0.0.0:0").unwrap()).collect();
        let ports: Vec<u16> = sockets.iter().map(|socket| socket.local_addr().unwrap().port()).collect();
        drop(sockets);
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let place = directory.path().display();
        let mut config = format!(
            "ClusterName=loop\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
             AuthInfo=socket={place}/munge.socket\nCredType=cred/munge\nMpiDefault=none\nProctrackType=proctrack/pgid\n\
             TaskPlugin=task/none\nJobAcctGatherType=jobacct_gather/none\nAccountingStorageType=accounting_storage/none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\nReturnToService=2\nSlurmctldPort={}\n\
             StateSaveLocation={place}/state\nSlurmdSpoolDir={place}/spool.%n\nSlurmctldPidFile={place}/slurmctld.pid\n\
             SlurmdPidFile={place}/slurmd.%n.pid\nPartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP \
             OverSubscribe=YES\n",
            ports[0]
        );
        for (number, port) in (1..).zip(&ports[1..]) {
            config += &format!(
                "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 State=UNKNOWN\n"
            );
        }
        fs::write(path("slurm.conf"), config).unwrap();
        for command in ["srun", "sinfo", "squeue", "salloc", "scancel", "sbatch"] {
            let Some(real) = program(command) else { continue };
            let text = format!("#!/bin/sh\nSLURM_CONF={place}/slurm.conf exec {} \"$@\"\n", real.display());
            fs::write(path(command), text).unwrap();
            fs::set_permissions(path(command), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let mut cluster = Self { directory, daemons: Vec::new() };
        let munge =
            |name: &str, file: &str| format!("--{name}={}/{file}", cluster.directory.path().display());
        let arguments = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            munge("socket", "munge.socket"),
            munge("pid-file", "munged.pid"),
            munge("log-file", "munged.log"),
            munge("seed-file", "munged.seed"),
            munge("key-file", "munge.key"),
        ];
        cluster.run(&munged, &arguments);
        let socket = cluster.directory.path().join("munge.socket");
        wait_for("munge", Duration::from_secs(20), || socket.exists());
        cluster.run(&slurmctld, &["-D".to_owned()]);
        for number in 1..=4 {
            cluster.run(&slurmd, &["-D".to_owned(), "-N".to_owned(), format!("n{number}")]);
        }
        wait_for("four idle nodes", Duration::from_secs(120), || {
            cluster.say("sinfo", &["-h", "-N", "-o", "%t"]) == "idle\n".repeat(4)
        });
        Some(cluster)
    }

    fn run(&mut self, program: &Path, arguments: &[String]) {
        let log = self.directory.path().join(format!("daemon.{}.log", self.daemons.len()));
        let log = fs::File::create(log).unwrap();
        let daemon = mortal(program)
            .args(arguments)
            .env("SLURM_CONF", self.directory.path().join("slurm.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.daemons.push(daemon);
    }

    /// The path of one of Slurm's commands, which speaks to this cluster.
    pub(crate) fn command(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What a command of Slurm prints.
    pub(crate) fn say(&self, name: &str, arguments: &[&str]) -> String {
        let output = Command::new(self.command(name)).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until no job is left.
    pub(crate) fn wait_until_idle(&self) {
        wait_for("an empty queue", Duration::from_secs(120), || {
            self.say("squeue", &["-h"]).trim().is_empty()
        });
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        if !self.say("squeue", &["-h"]).trim().is_empty() {
            let _ = Command::new(self.command("scancel")).args(["--user", "root"]).status();
        }
        while let Some(mut daemon) = self.daemons.pop() {
            let pid = rustix::process::Pid::from_child(&daemon);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            let start = std::time::Instant::now();
            while start.elapsed() < Duration::from_secs(5)
                && daemon.try_wait().is_ok_and(|ended| ended.is_none())
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
