//! The terminal: taken at the beginning, given back at every end.

use std::io::{self, Write as _};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_watch::{Action, Key, Screen};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, Termios, Winsize, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::flag;

use super::keyboard::{Typed, typed};
use crate::failure::{Failure, Result, Status};
use crate::signals;

/// The other screen of the terminal, without a cursor; and back.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// Signals are noticed after so long at the latest.
const ATTENTION: Duration = Duration::from_millis(100);
const INTERVALS: [Duration; 8] = [
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(60),
];

/// What a terminal shows.
pub(super) trait View {
    fn read(&mut self) -> Result<()>;
    /// Does what a key is for.
    fn key(&mut self, key: Key) -> Action;
    /// Draws all of it; `every` is the time between readings.
    fn draw(&self, screen: &mut Screen, every: Duration);
}

/// The terminal in raw mode; it is given back however the view ends.
struct Terminal(Termios);

impl Terminal {
    fn take() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        // A panic gives the terminal back before its message is printed.
        let (saved, hook) = (before.clone(), panic::take_hook());
        panic::set_hook(Box::new(move |panic| {
            give_back(&saved);
            hook(panic);
        }));
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        let terminal = Self(before);
        write(ENTER)?;
        Ok(terminal)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        give_back(&self.0);
        // The hook of the panic goes with the terminal.
        if !std::thread::panicking() {
            drop(panic::take_hook());
        }
    }
}

fn give_back(before: &Termios) {
    // Nothing is left to report an error to.
    let _ = write(LEAVE);
    let _ = tcsetattr(stdin(), OptionalActions::Now, before);
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn size() -> io::Result<(u16, u16)> {
    let Winsize { ws_col, ws_row, .. } = tcgetwinsize(stdout())?;
    Ok(if ws_col == 0 || ws_row == 0 { (80, 24) } else { (ws_col, ws_row) })
}

/// Shows a view until `q`, the end of the terminal, or SIGINT, SIGTERM or SIGHUP.
pub(super) fn run(view: &mut dyn View, every: Duration) -> Result<Status> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals::ending() {
        flag::register(signal, Arc::clone(&stop))?;
    }
    // An error of the first reading is printed on the terminal as it was.
    view.read()?;
    let terminal = Terminal::take().map_err(|error| failed(&error))?;
    let (mut every, mut read) = (every, Instant::now());
    let status = loop {
        let shown = size().map_err(|error| failed(&error))?;
        let mut screen = Screen::new(shown.0, shown.1);
        view.draw(&mut screen, every);
        write(screen.ansi().as_bytes()).map_err(|error| failed(&error))?;
        match wait(read + every, shown, &stop).map_err(|error| failed(&error))? {
            Woken::Stop => break Status::Interrupted,
            Woken::Time => {
                read = Instant::now();
                view.read()?;
            }
            Woken::Keys(keys) => {
                let mut quit = false;
                for key in keys {
                    match view.key(key) {
                        Action::Draw => {}
                        Action::Quit => quit = true,
                        Action::Faster => {
                            every = INTERVALS.into_iter().rev().find(|i| *i < every).unwrap_or(every);
                        }
                        Action::Slower => every = INTERVALS.into_iter().find(|i| *i > every).unwrap_or(every),
                    }
                }
                if quit {
                    break Status::Fine;
                }
            }
            Woken::Resized => write(b"\x1b[2J").map_err(|error| failed(&error))?,
        }
    };
    drop(terminal);
    Ok(status)
}

fn failed(error: &io::Error) -> Failure {
    Failure::fault(format!("cannot use the terminal: {error}; --count prints lines instead"))
}

/// Why waiting ended.
enum Woken {
    Time,
    Keys(Vec<Key>),
    Resized,
    Stop,
}

/// Waits until an instant, for keys, for another size than `shown`, or for a signal.
fn wait(until: Instant, shown: (u16, u16), stop: &AtomicBool) -> io::Result<Woken> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(Woken::Stop);
        }
        if size()? != shown {
            return Ok(Woken::Resized);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Woken::Time);
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: left.min(ATTENTION).as_nanos() as _ };
        let input = stdin();
        let mut ready = [PollFd::new(&input, PollFlags::IN)];
        match poll(&mut ready, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => continue,
            polled => polled?,
        };
        let mut bytes = [0; 256];
        match rustix::io::read(input, &mut bytes) {
            // The terminal is gone.
            Ok(0) | Err(Errno::IO) => return Ok(Woken::Stop),
            Ok(length) => {
                let typed = typed(bytes.get(..length).unwrap_or_default());
                if typed.contains(&Typed::Interrupt) {
                    return Ok(Woken::Stop);
                }
                let keys = typed.into_iter().filter_map(|typed| match typed {
                    Typed::Key(key) => Some(key),
                    Typed::Interrupt => None,
                });
                return Ok(Woken::Keys(keys.collect()));
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
