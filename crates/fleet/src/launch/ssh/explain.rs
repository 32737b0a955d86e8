//! What ssh and hosts say when something is wrong, in words that help.

use std::process::ExitStatus;

/// What OpenSSH says, and what to do about it. The first that is found counts.
const KNOWN: &str = include_str!("known.tsv");

/// Whether a server turned a connection away for having too many.
pub(super) fn is_crowded(said: &str) -> bool {
    ["kex_exchange_identification", "Connection reset by peer", "Exceeded MaxStartups", "Session open refused by peer"]
        .iter()
        .any(|part| said.contains(part))
        // A jump host says this when the host behind it does not answer; trying again does not help.
        && !said.contains("stdio forwarding failed")
}

/// Why ssh gave no agent. `by_hand` shows the same when it is typed.
pub(super) fn failed(host: &str, by_hand: &str, status: Option<ExitStatus>, said: &str) -> String {
    let ended = match status.map(|status| (status.code(), status)) {
        // ssh's own failures, of which it has said something.
        Some((Some(255), _)) if !said.is_empty() => String::new(),
        Some((Some(code), _)) => format!("exit status {code}"),
        Some((None, status)) => status.to_string(),
        None => "ssh does not end".to_owned(),
    };
    let mut known = KNOWN.lines().filter_map(|line| line.split_once('\t'));
    let help = match known.find(|(part, _)| said.contains(part)) {
        Some((_, help)) => help.replace("HOST", host),
        None => format!("try `{by_hand}`"),
    };
    let facts: Vec<&str> = [ended.as_str(), said].into_iter().filter(|fact| !fact.is_empty()).collect();
    format!("{help} (ssh: {})", facts.join(": ").replace('\n', " | "))
}

/// Why a program that is there cannot be run.
pub(super) fn broken(there: &str, status: i32, libc: &str, said: &str) -> String {
    let why = if said.contains("GLIBC_") {
        format!("needs a newer C library than that host's ({libc})")
    } else if said.contains("Exec format error") || said.contains("cannot execute binary file") {
        "is for another processor".to_owned()
    } else if said.contains("ermission denied") {
        return format!(
            "{there} cannot be run ({}): the home directory is mounted `noexec`, or the file may not be executed; install the \
             program where it may and give its path in the study",
            said.replace('\n', " | ")
        );
    } else if status == 127 || said.contains("not found") {
        format!("needs a C library or loader that host does not have ({libc})")
    } else {
        format!("fails there with exit status {status}")
    };
    format!(
        "{there} {why}: {}; build Benchmaster on that host, or statically for all (`--target {}-unknown-linux-musl`), and give its \
         path in the study",
        said.replace('\n', " | "),
        std::env::consts::ARCH
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    fn status(code: i32) -> Option<ExitStatus> {
        Some(ExitStatus::from_raw(code << 8))
    }

    #[test]
    fn failures_say_what_to_do() {
        let denied = "root@c1: Permission denied (publickey).";
        assert_eq!(
            failed("root@c1", "ssh root@c1 true", status(255), denied),
            "it must be possible to log in without a password: `ssh-copy-id root@c1`, or a key in ssh-agent \
             (ssh: root@c1: Permission denied (publickey).)"
        );
        let changed = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.";
        assert!(failed("c1", "", status(255), changed).contains("`ssh-keygen -R c1`"));
        let odd = failed("c1", "ssh c1 true", status(3), "what\nis this");
        assert_eq!(odd, "try `ssh c1 true` (ssh: exit status 3: what | is this)");
        assert_eq!(failed("c1", "ssh c1 true", None, ""), "try `ssh c1 true` (ssh: ssh does not end)");
        let full = failed("c1", "", status(1), "cat: write error: No space left on device");
        assert!(full.starts_with("the disk of the home directory is full there"), "{full}");
        let killed = failed("c1", "ssh c1 true", Some(ExitStatus::from_raw(9)), "");
        assert!(killed.contains("signal: 9"), "{killed}");
    }

    #[test]
    fn a_crowded_server_is_tried_again() {
        assert!(is_crowded("kex_exchange_identification: Connection closed by remote host"));
        assert!(!is_crowded("ssh: connect to host c1 port 22: Connection refused"));
    }

    #[test]
    fn programs_that_cannot_run_are_explained() {
        let old = broken(
            "~/b",
            1,
            "glibc 2.17",
            "./b: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by ./b)",
        );
        assert!(old.starts_with("~/b needs a newer C library than that host's (glibc 2.17): "), "{old}");
        assert!(old.contains("unknown-linux-musl`"), "{old}");
        let other = broken("~/b", 126, "", "sh: ./b: cannot execute binary file: Exec format error");
        assert!(other.starts_with("~/b is for another processor"), "{other}");
        let noexec = broken("~/b", 126, "", "sh: ./b: Permission denied");
        assert!(noexec.contains("noexec"), "{noexec}");
        let loader = broken("~/b", 127, "musl libc (x86_64) Version 1.2.4", "sh: ./b: not found");
        assert!(
            loader.contains("loader that host does not have (musl libc (x86_64) Version 1.2.4)"),
            "{loader}"
        );
        assert!(broken("~/b", 3, "", "what").starts_with("~/b fails there with exit status 3: what"));
    }
}
