//! Process 1 of the machines: does what the word [`TEST`] of the kernel's command line says.

use std::env;
use std::fs;
use std::process::{Command, ExitCode};

use rustix::system::{RebootCommand, reboot};

/// Names what a machine of these tests does; machines of labs do not have it.
pub(crate) const TEST: &str = "lab_test";

pub(crate) fn main() -> ExitCode {
    let test = env::var(TEST).unwrap_or_default();
    match test.as_str() {
        "facts" => facts(),
        "registers" => super::registers::check(),
        // The kernel panics when its process 1 ends.
        "panic" => return ExitCode::SUCCESS,
        "sleep" => {
            println!("asleep");
            loop {
                std::thread::park();
            }
        }
        other => println!("no test {other}"),
    }
    reboot(RebootCommand::PowerOff).unwrap();
    ExitCode::SUCCESS
}

fn facts() {
    println!("release {}", fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());
    println!("uptime {}", fs::read_to_string("/proc/uptime").unwrap().trim());
    for name in ["lab_name", "lab_word"] {
        println!("{name} {}", env::var(name).unwrap_or_default());
    }
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    println!("{}", memory.lines().take(3).collect::<Vec<_>>().join(" "));
    for words in [
        &["modprobe", "nfsv4"] as &[&str],
        &["modprobe", "nfsd"],
        &["mount.nfs", "-V"],
        &["ip", "-V"],
        &["rpc.nfsd", "--help"],
        &["mkfs.ext4", "-V"],
        &["mkfs.xfs", "-V"],
    ] {
        let output = Command::new(words[0]).args(&words[1..]).output();
        let ran = output.is_ok_and(|output| output.status.code().is_some_and(|code| code != 127));
        println!("runs {} {ran}", words.join(" "));
    }
    let file_systems = fs::read_to_string("/proc/filesystems").unwrap();
    println!("nfs4 {}", file_systems.lines().any(|line| line.ends_with("\tnfs4")));
    println!("share {}", fs::read_to_string("/host/word").unwrap_or_default());
}
