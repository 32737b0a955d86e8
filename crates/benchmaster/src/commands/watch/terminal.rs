//! The terminal: taken at the beginning, given back at every end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_watch::{Action, Key};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use crate::commands::{Failure, Result, Status};

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

/// What is shown on a terminal.
pub(super) trait Screen {
    /// Takes a reading.
    fn read(&mut self) -> Result<()>;
    /// Does what a key is for.
    fn key(&mut self, key: Key) -> Action;
    /// Draws all of it; `every` is the time between readings.
    fn draw(&self, frame: &mut Frame<'_>, every: Duration);
}

/// Gives the terminal back, however the view ends. A panic does so before its message is printed.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Shows a screen until `q`, or SIGINT, SIGTERM or SIGHUP.
pub(super) fn run(screen: &mut dyn Screen, every: Duration) -> Result<Status> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, Arc::clone(&stop)).map_err(Failure::failed)?;
    }
    // What is wrong from the beginning is said on the terminal as it was.
    screen.read()?;
    let restore = Restore;
    let mut terminal = ratatui::try_init().map_err(|error| failed(&error))?;
    let (mut every, mut read) = (every, Instant::now());
    let status = loop {
        terminal.draw(|frame| screen.draw(frame, every)).map_err(|error| failed(&error))?;
        let until = read + every;
        match wait(until, &stop).map_err(|error| failed(&error))? {
            Woken::Stop => break Status::Interrupted,
            Woken::Time => {
                read = Instant::now();
                screen.read()?;
            }
            Woken::Key(key) => match screen.key(key) {
                Action::Draw => {}
                Action::Quit => break Status::Fine,
                Action::Faster => every = INTERVALS.into_iter().rev().find(|i| *i < every).unwrap_or(every),
                Action::Slower => every = INTERVALS.into_iter().find(|i| *i > every).unwrap_or(every),
            },
            Woken::Resized => {}
        }
    };
    drop(restore);
    Ok(status)
}

fn failed(error: &io::Error) -> Failure {
    Failure::failed(anyhow::anyhow!("cannot use the terminal: {error}; --count prints lines instead"))
}

/// Why waiting ended.
enum Woken {
    Time,
    Key(Key),
    Resized,
    Stop,
}

fn wait(until: Instant, stop: &AtomicBool) -> io::Result<Woken> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Ok(Woken::Stop);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Woken::Time);
        }
        match event::poll(left.min(ATTENTION)) {
            Ok(false) => continue,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            polled => polled?,
        };
        match event::read()? {
            // The terminal does not send the signal itself while it is in raw mode.
            Event::Key(KeyEvent { code: KeyCode::Char('c'), modifiers: KeyModifiers::CONTROL, .. }) => {
                return Ok(Woken::Stop);
            }
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                if let Some(key) = known(key.code) {
                    return Ok(Woken::Key(key));
                }
            }
            Event::Resize(..) => return Ok(Woken::Resized),
            _ => {}
        }
    }
}

fn known(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Esc => Key::Escape,
        _ => return None,
    })
}
