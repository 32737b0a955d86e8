//! On a terminal: progress bar and colours; elsewhere neither.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use crate::place::{Place, TINY, stderr, stdout};

/// What a command writes to standard error when that is a terminal.
pub(crate) fn on_a_terminal(mut command: Command) -> (Option<i32>, String) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    command.env("TERM", "xterm-256color").stdout(Stdio::null()).stderr(OwnedFd::from(terminal));
    let mut child = command.spawn().unwrap();
    drop(command);
    let (mut text, mut controller) = (Vec::new(), File::from(controller));
    // The end of the last writer is told as an error (EIO).
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = controller.read(&mut buffer) {
        text.extend_from_slice(&buffer[..n]);
    }
    (child.wait().unwrap().code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_terminal_gets_a_progress_bar_and_lines() {
    let place = Place::tiny();
    let (status, text) = on_a_terminal(place.command(&["run", "tiny.toml"]));
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("/10 runs, about ") && text.contains(" left"), "{text}");
    assert!(text.contains("[10/10] io_size="), "{text}");
    let (_, text) = on_a_terminal(place.command(&["run", "tiny.toml", "-o", "quiet", "--quiet"]));
    assert_eq!(text, "");
}

#[test]
fn pipes_get_neither_bars_nor_colours() {
    let place = Place::tiny();
    let output = place.run(&["run", "tiny.toml"]);
    for text in [stdout(&output), stderr(&output)] {
        assert!(!text.contains(['\x1b', '\r']), "{text:?}");
    }
    // One line when it begins, two for the places, one per run.
    assert_eq!(stderr(&output).lines().count(), 13, "{}", stderr(&output));
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let place = Place::new();
    place.write("wrong.toml", &TINY.replace("1KiB", "1kb/s"));
    let (status, text) = on_a_terminal(place.command(&["plan", "wrong.toml"]));
    assert_eq!(status, Some(2));
    assert!(text.contains("\x1b["), "{text:?}");
    let mut plain = place.command(&["plan", "wrong.toml"]);
    plain.env("NO_COLOR", "1");
    let (_, text) = on_a_terminal(plain);
    assert!(text.contains("wrong.toml:") && !text.contains("\x1b["), "{text:?}");
    assert!(!stderr(&place.run(&["plan", "wrong.toml"])).contains('\x1b'));
}
