//! `watch` in pipes and on a terminal.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use benchmaster_record::live::{Live, Session};
use benchmaster_store::live::{begin, write};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;

use crate::place::{Place, ending_signals, snapshot, stderr, stdout};

const BEFORE: &str = include_str!("../../../telemetry/src/mountstats/samples/linux-6.1-before.txt");
const AFTER: &str = include_str!("../../../telemetry/src/mountstats/samples/linux-6.1.txt");
const PATIENCE: Duration = Duration::from_secs(600);

/// Puts a text in the place of the one in `mountstats`, so that no reader sees half of it.
fn replace(place: &Place, text: &str) {
    place.write("new", text);
    fs::rename(place.path("new"), place.path("mountstats")).unwrap();
}

fn mountstats() -> Place {
    let place = Place::new();
    replace(&place, BEFORE);
    place
}

const WATCH: [&str; 5] = ["watch", "--mountstats", "mountstats", "--interval", "100ms"];

fn watch<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&WATCH, more].concat()
}

/// A child that does not outlive its test.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn lines_of_json_tell_what_changed_between_readings() {
    let place = mountstats();
    let mut child = Watching(place.command(&watch(&["--json"])).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let first = next();
    assert_eq!(first["mounts"][0]["mount_point"], "/mnt/3");
    assert_eq!(first["mounts"][0]["interval"]["total"]["ops"], 0);
    replace(&place, AFTER);
    let changed = (0..600).map(|_| next()).find(|line| line["mounts"][0]["interval"]["total"]["ops"] != 0);
    let interval = changed.unwrap()["mounts"][0]["interval"].clone();
    // Five operations lie between the two recorded readings.
    assert_eq!(interval["total"]["ops"], 5);
    assert_eq!(interval["total"]["errors"], 1);
    let seconds = interval["seconds"].as_f64().unwrap();
    assert!((interval["total"]["ops_per_s"].as_f64().unwrap() * seconds - 5.0).abs() < 1e-9);
    // And the other way: it was mounted again.
    replace(&place, BEFORE);
    let noted = (0..600).map(|_| next()).find(|line| line["mounts"][0]["note"].is_string()).unwrap();
    assert!(noted["mounts"][0]["interval"].is_null(), "{noted}");
}

#[test]
fn once_and_count_end() {
    let place = mountstats();
    let output = place.run(&watch(&["--once", "/mnt/4.1/some/file"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("/mnt/4.1 (10.78.0.2:/export, NFS 4.1), 0."), "{text}");
    assert_eq!(text.lines().count(), 1, "no operation was used: {text}");
    let output = place.run(&watch(&["--count", "2"]));
    assert_eq!(stdout(&output).lines().count(), 2 * 4);
    assert!(!stdout(&output).contains('\x1b'));
}

#[test]
fn this_host_s_own_mounts_can_be_read() {
    let place = Place::new();
    let output = place.run(&["watch", "--once", "--interval", "100ms", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(serde_json::from_str::<Value>(&stdout(&output)).unwrap()["mounts"].is_array());
}

#[test]
fn what_cannot_be_watched_is_named() {
    let place = mountstats();
    place.write("wrong", "device a:/b mounted on /c with fstype nfs4 statvers=1.1\n\tage:\tlong\n");
    for (name, arguments) in [
        ("watch_no_mount", watch(&["/home"])),
        ("watch_interval", vec!["watch", "--interval", "1ms"]),
        ("watch_absent_file", vec!["watch", "--mountstats", "absent"]),
        ("watch_wrong_file", vec!["watch", "--mountstats", "wrong"]),
        ("watch_absent", vec!["watch", "nowhere"]),
        ("watch_count", vec!["watch", "--count", "0"]),
    ] {
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{name}");
        snapshot(name, &place, &stderr(&output));
    }
}

fn live() -> Live {
    let mut live = begin("wan-nfs", "head1");
    (live.runs.position, live.runs.total) = (3, 10);
    live
}

#[test]
fn a_study_is_followed_until_it_ends() {
    let place = Place::new();
    let results = place.path("results");
    fs::create_dir(&results).unwrap();
    let mut state = live();
    write(&mut state, &results).unwrap();
    let output = place.run(&["watch", "results", "--once"]);
    assert_eq!(
        (output.status.code(), stdout(&output).as_str()),
        (Some(0), "wan-nfs: run 3 of 10; 0 clients, 0 errors\n")
    );

    let mut child =
        Watching(place.command(&["watch", "results", "--interval", "100ms", "--json"]).spawn().unwrap());
    let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!((&first["running"], &first["state"]["runs"]["position"]), (&true.into(), &3.into()));
    state.session = Session::Finished;
    write(&mut state, &results).unwrap();
    let last: Value = serde_json::from_str(&lines.map_while(Result::ok).last().unwrap()).unwrap();
    assert_eq!((&last["running"], &last["state"]["session"]), (&false.into(), &"finished".into()));
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_study_that_does_not_run_is_said_to_be_so() {
    let place = Place::new();
    fs::create_dir(place.path("results")).unwrap();
    place.write("results/study.toml", "");
    let output = place.run(&["watch", "results"]);
    assert_eq!(output.status.code(), Some(1));
    snapshot("watch_no_live", &place, &stdout(&output));
    let old = Live { written_ms: 1, ..live() };
    place.write("results/live.json", &serde_json::to_string(&old).unwrap());
    let output = place.run(&["watch", "results"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("; no news for "), "{}", stdout(&output));
    place.write("results/live.json", "{");
    let output = place.run(&["watch", "results"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("live.json` is not the state of a study"), "{}", stdout(&output));
}

/// What a terminal of 80 columns and 24 lines shows after such bytes: of their sequences, those that move the cursor count.
fn picture(sent: &str) -> String {
    let mut lines = vec![[' '; 80]; 24];
    let (mut row, mut column) = (0, 0);
    let mut characters = sent.chars();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' => {
                let mut sequence = String::new();
                for c in characters.by_ref().skip(1) {
                    sequence.push(c);
                    if c.is_ascii_alphabetic() {
                        break;
                    }
                }
                let place = sequence.strip_suffix('H').and_then(|place| place.split_once(';'));
                if let Some((y, x)) = place {
                    (row, column) = (y.parse::<usize>().unwrap() - 1, x.parse::<usize>().unwrap() - 1);
                }
            }
            '\r' => column = 0,
            '\n' => row += 1,
            shown => {
                if let Some(cell) = lines.get_mut(row).and_then(|line| line.get_mut(column)) {
                    *cell = shown;
                }
                column += 1;
            }
        }
    }
    lines.iter().map(|line| line.iter().collect::<String>() + "\n").collect()
}

/// A command on a terminal of 80 columns and 24 lines.
struct OnTerminal {
    child: Watching,
    keyboard: File,
    /// Kept open, so that its settings can be looked at after the command's end.
    terminal: File,
    before: Termios,
    seen: Arc<(Mutex<Vec<u8>>, Condvar)>,
}

impl OnTerminal {
    fn start(command: Command) -> Self {
        let started = Self::start_unread(command);
        let mut screen = started.keyboard.try_clone().unwrap();
        let sink = Arc::clone(&started.seen);
        // Ends with the test: the terminal's other end is closed then.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = screen.read(&mut buffer) {
                sink.0.lock().unwrap().extend_from_slice(&buffer[..n]);
                sink.1.notify_all();
            }
        });
        started
    }

    /// The same without a reader of what it shows.
    fn start_unread(mut command: Command) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let terminal = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        tcsetwinsize(&terminal, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let before = tcgetattr(&terminal).unwrap();
        let end = || OwnedFd::from(terminal.try_clone().unwrap());
        command.env("TERM", "xterm-256color").stdin(end()).stdout(end()).stderr(end());
        let child = Watching(command.spawn().unwrap());
        drop(command);
        let seen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        Self { child, keyboard: File::from(controller), terminal, before, seen }
    }

    /// Waits until a text stands on the screen, or a sequence was sent to it.
    fn wait_for(&self, text: &str) {
        let (seen, changed) = &*self.seen;
        let absent = |seen: &mut Vec<u8>| {
            let sent = String::from_utf8_lossy(seen);
            !sent.contains(text) && !picture(&sent).contains(text)
        };
        let waiting = changed.wait_timeout_while(seen.lock().unwrap(), PATIENCE, absent);
        let (seen, timeout) = waiting.unwrap();
        let shown = picture(&String::from_utf8_lossy(&seen));
        assert!(!timeout.timed_out(), "`{text}` was not shown:\n{shown}");
    }

    fn press(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }

    /// Waits for the end, and for the terminal to be as it was; gives the exit status.
    fn end(mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.0.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < deadline, "it did not end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // The other screen is left, and the cursor shown.
        self.wait_for("\x1b[?1049l");
        self.wait_for("\x1b[?25h");
        let after = tcgetattr(&self.terminal).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        assert_eq!(after.input_modes, self.before.input_modes);
        status.code()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child.0), signal).unwrap();
    }
}

#[test]
fn the_view_follows_the_counters_and_keys() {
    let place = mountstats();
    let mut view = OnTerminal::start(place.command(&WATCH));
    view.wait_for("\x1b[?1049h");
    view.wait_for("4 NFS mounts of ");
    view.wait_for("no calls in this interval");
    replace(&place, AFTER);
    view.wait_for("LOOKUP");
    view.press(b" ");
    view.wait_for("PAUSED");
    view.press(b"\x1b[B?");
    view.wait_for("column that rows are sorted by");
    view.press(b"?q");
    assert_eq!(view.end(), Some(0));
}

#[test]
fn the_terminal_is_given_back_at_every_end() {
    let place = mountstats();
    for signal in ending_signals() {
        let view = OnTerminal::start(place.command(&WATCH));
        view.wait_for("NFS mounts of ");
        view.signal(signal);
        assert_eq!(view.end(), Some(130), "{signal:?}");
    }
    let mut view = OnTerminal::start(place.command(&WATCH));
    view.wait_for("NFS mounts of ");
    view.press(b"\x03");
    assert_eq!(view.end(), Some(130), "Ctrl-C");
    // An error in the middle: the file is gone.
    let view = OnTerminal::start(place.command(&WATCH));
    view.wait_for("NFS mounts of ");
    fs::remove_file(place.path("mountstats")).unwrap();
    view.wait_for("error: cannot read `mountstats`");
    assert_eq!(view.end(), Some(2));
}

/// A terminal window that is closed, or a connection that is lost: no signal is sent.
#[test]
fn a_terminal_that_is_gone_ends_the_view() {
    let place = mountstats();
    let mut view = OnTerminal::start_unread(place.command(&WATCH));
    let mut shown = Vec::new();
    while !String::from_utf8_lossy(&shown).contains("NFS mounts of ") {
        let mut buffer = [0; 4096];
        let length = view.keyboard.read(&mut buffer).unwrap();
        shown.extend_from_slice(&buffer[..length]);
    }
    drop((view.keyboard, view.terminal));
    let deadline = Instant::now() + PATIENCE;
    while view.child.0.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it did not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_running_study_is_shown_on_a_terminal() {
    let place = Place::new();
    let results = place.path("results");
    fs::create_dir(&results).unwrap();
    let mut state = live();
    write(&mut state, &results).unwrap();
    let mut view = OnTerminal::start(place.command(&["watch", "results", "-i", "100ms"]));
    view.wait_for("wan-nfs on head1");
    view.wait_for("between runs");
    state.message(1_772_442_000_000, "c3 is lost");
    write(&mut state, &results).unwrap();
    view.wait_for("c3 is lost");
    fs::remove_file(results.join("live.json")).unwrap();
    view.wait_for("has no live.json");
    view.press(b"q");
    assert_eq!(view.end(), Some(0));
}

#[test]
fn without_a_terminal_for_keys_lines_are_printed() {
    let place = mountstats();
    let mut command = place.command(&watch(&["--count", "1"]));
    command.stdin(Stdio::null());
    let output = crate::place::finish(command);
    assert!(stdout(&output).starts_with("/mnt/3 ("), "{}", stdout(&output));
}
