//! `lab shell`: a terminal in a machine.

use std::io::{self, IsTerminal, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::thread;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use super::{attached, failure};
use crate::cli::ShellArgs;
use crate::failure::{Result, Status};

/// The terminal as it was, which it becomes again when this is dropped.
struct Raw(Termios);

impl Raw {
    /// Hands every key on, also those that send signals.
    fn take() -> io::Result<Self> {
        let before = tcgetattr(io::stdin().as_fd())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &raw)?;
        Ok(Self(before))
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // It was a terminal when this was made; if it is gone there is nothing to give back.
        let _ = tcsetattr(io::stdin().as_fd(), OptionalActions::Now, &self.0);
    }
}

pub(super) fn shell(args: &ShellArgs) -> Result<Status> {
    const USUAL: (u16, u16) = (24, 80);
    let lab = attached(&args.lab)?;
    let size = tcgetwinsize(io::stdout().as_fd()).map_or(USUAL, |size| (size.ws_row, size.ws_col));
    let program =
        if args.program.is_empty() { vec!["sh".to_owned(), "-l".to_owned()] } else { args.program.clone() };
    let stream = lab.shell(&args.machine, &program, size).map_err(failure)?;
    let raw = io::stdin().is_terminal().then(Raw::take).transpose()?;
    let keys = stream.try_clone()?;
    // It ends with this process.
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = io::stdin().lock().read(&mut buffer) {
            if (&keys).write_all(&buffer[..length]).is_err() {
                return;
            }
        }
        // End of file, as typed on a terminal.
        if (&keys).write_all(&[4]).is_err() {
            let _ = keys.shutdown(Shutdown::Write);
        }
    });
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = (&stream).read(&mut buffer) {
        let mut out = io::stdout().lock();
        if out.write_all(&buffer[..length]).and_then(|()| out.flush()).is_err() {
            break;
        }
    }
    drop(raw);
    Ok(Status::Fine)
}
