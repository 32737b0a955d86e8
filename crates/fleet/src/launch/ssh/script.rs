//! The scripts that run on hosts, for any POSIX shell, and what they answer.

use ring::rand::{SecureRandom as _, SystemRandom};

use super::SshConfig;
use crate::secure::build::hex;

/// How our scripts' lines begin.
const MARK: &str = "benchmaster-launch ";

/// What a script says in its one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    /// The agent runs, its stream begins.
    Ready {
        /// SHA-256 of the program's file, if asked for and there is a tool for it.
        hash: Option<String>,
        /// What `--version` printed.
        version: String,
    },
    Missing {
        /// `uname -sm`.
        system: String,
    },
    /// There is one which cannot be run.
    Broken {
        /// Of `--version`.
        status: i32,
        /// `uname -sm`.
        system: String,
        /// Name and version of the host's C library, as far as it is known.
        libc: String,
    },
    /// The program is there now.
    Copied,
    /// It ended without a word.
    None,
}

impl Answer {
    /// Of one line; `None` when it is not of our scripts.
    pub(super) fn of(line: &str) -> Option<Self> {
        let (kind, rest) = split(line.trim_end().strip_prefix(MARK)?);
        match kind {
            "ready" => {
                let (hash, version) = split(rest);
                let hash = (hash != "-").then(|| hash.to_owned());
                Some(Self::Ready { hash, version: version.to_owned() })
            }
            "missing" => Some(Self::Missing { system: rest.to_owned() }),
            "broken" => {
                let (status, rest) = split(rest);
                let (kernel, rest) = split(rest);
                let (machine, libc) = split(rest);
                let system = format!("{kernel} {machine}");
                Some(Self::Broken { status: status.parse().unwrap_or(-1), system, libc: libc.to_owned() })
            }
            "copied" => Some(Self::Copied),
            _ => None,
        }
    }
}

fn split(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

/// As one word of a shell: `it's` becomes `'it'\''s'`, which all shells read the same. Words of harmless characters stay.
pub(super) fn quote(word: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(harmless) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A script with its arguments as a command for the user's login shell, which can be any: it only has to run `/bin/sh`.
fn command(script: &str, arguments: &[&str]) -> String {
    // Scripts are without quotes of this kind and without line ends, which csh does not take.
    let lines: Vec<&str> = script.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut command = format!("exec /bin/sh -c '{}' benchmaster-launch", lines.join(" "));
    for argument in arguments {
        command.push(' ');
        command.push_str(&quote(argument));
    }
    command
}

/// Arguments: program, whether to hash it, the agent's arguments.
const START: &str = r#"
    b=$1; hashed=$2; shift 2;
    case $b in "~/"*) b=$HOME/${b#??};; esac;
    if p=$(command -v "$b" 2>/dev/null) && test -x "$p"; then
        v=$("$p" --version 2>&1 </dev/null); s=$?;
        if test $s -eq 0; then
            h=-;
            if test $hashed = yes; then h=$(sha256sum "$p" 2>/dev/null | cut -c1-64); test -n "$h" || h=-; fi;
            printf "benchmaster-launch ready %s %s\n" "$h" "$v"; exec "$p" "$@";
        fi;
        printf "%s\n" "$v" >&2;
        l=$(getconf GNU_LIBC_VERSION 2>/dev/null || (ldd --version 2>&1 | head -n 2 | tr "\n" " "));
        printf "benchmaster-launch broken %s %s %s\n" "$s" "$(uname -sm)" "$l"; exit 1;
    fi;
    printf "benchmaster-launch missing %s\n" "$(uname -sm)"; exit 1
"#;

/// The command that starts an agent.
pub(super) fn start(there: &str, config: &SshConfig) -> String {
    let hashed = if config.binary_on_hosts.is_some() { "yes" } else { "no" };
    let mut arguments = vec![there, hashed];
    arguments.extend(config.arguments.iter().map(String::as_str));
    command(START, &arguments)
}

/// Arguments: program, its bytes, a name that no other process uses.
const COPY: &str = r#"
    umask 077; b=$HOME/${1#??}; d=${b%/*}; t=$d/.new-$3;
    mkdir -p "$d" || exit 1;
    trap "rm -f \"\$t\"" EXIT; trap "exit 1" HUP INT TERM;
    cat >"$t" && test $(wc -c <"$t") -eq "$2" && chmod 700 "$t" &&
    mv -f "$t" "$b" && printf "benchmaster-launch copied\n"
"#;

/// The command that takes the program from its standard input. A part of it is thrown away.
pub(super) fn copy(there: &str, bytes: u64) -> Result<String, String> {
    let mut random = [0; 8];
    SystemRandom::new().fill(&mut random).map_err(|_| "the kernel gives no random numbers".to_owned())?;
    Ok(command(COPY, &[there, &bytes.to_string(), &hex(&random)]))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;
    use std::process::{Command, Stdio};

    use super::*;

    /// Runs a command as sshd does: by a login shell, in the home directory.
    fn run(home: &Path, shell: &str, command: &str, input: &[u8]) -> (String, String) {
        use std::io::Write as _;
        let mut process = Command::new(shell)
            .args(["-c", command])
            .env("HOME", home)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A script that ends early does not take it all.
        let _ = process.stdin.take().unwrap().write_all(input);
        let output = process.wait_with_output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn config(there: Option<&str>) -> SshConfig {
        let mut config = SshConfig::new("/bin/true".into());
        config.binary_on_hosts = there.map(Into::into);
        config.arguments = vec!["it's".into(), "$HOME \"x\"".into()];
        config
    }

    const FAKE: &str = "#!/bin/sh\nif test \"$1\" = --version; then echo benchmaster 1.2.3; exit; fi\nprintf '<%s>' \"$@\"\ncat\n";

    fn install(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn words_survive_shells() {
        for word in ["", "plain", "it's", "a b", "$HOME", "`x`", "\\", "*", "é\"", "-o", "a!b"] {
            let (said, _) = run(Path::new("/"), "/bin/sh", &format!("printf %s {}", quote(word)), b"");
            assert_eq!(said, word);
        }
    }

    #[test]
    fn an_agent_is_started_with_its_arguments_and_its_input() {
        let home = tempfile::tempdir().unwrap();
        install(&home.path().join("my bin/bm"), FAKE);
        for there in ["~/my bin/bm", "my bin/bm", &format!("{}/my bin/bm", home.path().display())] {
            let (said, errors) = run(home.path(), "/bin/sh", &start(there, &config(Some(there))), b"input");
            let (line, rest) = said.split_once('\n').unwrap_or_else(|| panic!("{said} {errors}"));
            let Some(Answer::Ready { hash: Some(hash), version }) = Answer::of(line) else {
                panic!("{line}")
            };
            assert_eq!(hash, crate::secure::build::hash_of(&home.path().join("my bin/bm")).unwrap());
            assert_eq!((version.as_str(), rest), ("benchmaster 1.2.3", "<it's><$HOME \"x\">input"));
        }
        let (said, _) = run(home.path(), "/bin/sh", &start("~/my bin/bm", &config(None)), b"");
        assert!(said.starts_with("benchmaster-launch ready - benchmaster 1.2.3\n"), "{said}");
    }

    #[test]
    fn what_is_missing_or_cannot_run_is_told() {
        let home = tempfile::tempdir().unwrap();
        let system = format!("Linux {}", std::env::consts::ARCH);
        let said = |there: &str| run(home.path(), "/bin/sh", &start(there, &config(None)), b"");
        let (missing, _) = said("~/bm");
        assert_eq!(Answer::of(&missing), Some(Answer::Missing { system: system.clone() }), "{missing}");
        install(&home.path().join("bm"), "#!/nonexistent/interpreter\n");
        let (broken, errors) = said("~/bm");
        let Some(Answer::Broken { status: 126 | 127, system: found, libc }) = Answer::of(&broken) else {
            panic!("{broken}")
        };
        assert_eq!(found, system);
        assert!(!libc.is_empty() && errors.contains("bm"), "{libc} {errors}");
        std::fs::write(
            home.path().join("bm"),
            "#!/bin/sh\necho 'version `GLIBC_9.9 not found' >&2; exit 1\n",
        )
        .unwrap();
        let (broken, errors) = said("~/bm");
        assert!(broken.contains("benchmaster-launch broken 1 Linux "), "{broken}");
        assert!(errors.contains("GLIBC_9.9"), "{errors}");
    }

    #[test]
    fn a_copy_appears_when_it_is_whole() {
        let home = tempfile::tempdir().unwrap();
        let there = "~/.cache/benchmaster/1-ab/benchmaster";
        let folder = home.path().join(".cache/benchmaster/1-ab");
        let names = || -> Vec<_> {
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
        };
        let (said, _) = run(home.path(), "/bin/sh", &copy(there, 10).unwrap(), b"only half");
        assert_eq!((said.as_str(), names().len()), ("", 0), "a part is thrown away");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let (said, errors) = run(
                        home.path(),
                        "/bin/sh",
                        &copy(there, FAKE.len() as u64).unwrap(),
                        FAKE.as_bytes(),
                    );
                    assert_eq!(Answer::of(&said), Some(Answer::Copied), "{errors}");
                });
            }
        });
        assert_eq!(names(), ["benchmaster"]);
        assert_eq!(std::fs::read_to_string(folder.join("benchmaster")).unwrap(), FAKE);
        assert_eq!(
            std::fs::metadata(folder.join("benchmaster")).unwrap().permissions().mode() & 0o777,
            0o700
        );
        let (said, _) = run(home.path(), "/bin/sh", &start(there, &config(None)), b"");
        assert!(said.starts_with("benchmaster-launch ready"), "{said}");
    }

    #[test]
    fn other_lines_are_no_answers() {
        for line in
            ["", "hello", "benchmaster-launch", "benchmaster-launch what", " benchmaster-launch copied"]
        {
            assert_eq!(Answer::of(line), None, "{line}");
        }
    }
}
