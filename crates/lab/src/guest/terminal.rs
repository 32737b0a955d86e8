//! Programs in a guest on a terminal of their own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::thread;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::programs::prepare;
use super::protocol::answer;

/// Runs a program on a terminal whose other side the connection is. It gets SIGHUP when the connection ends.
pub(super) fn serve(stream: &TcpStream, argv: &[String], rows: u16, columns: u16) {
    let started = prepare(argv).and_then(|command| {
        terminal(rows, columns)
            .map(|terminal| (command, terminal))
            .map_err(|error| format!("no terminal: {error}"))
    });
    let (mut command, (ours, theirs)) = match started {
        Ok(started) => started,
        Err(reason) => return answer(stream, Err::<(), _>(reason)),
    };
    answer(stream, Ok(()));
    let ended = (|| {
        let (input, output) = (theirs.as_fd().try_clone_to_owned()?, theirs.as_fd().try_clone_to_owned()?);
        command.stdin(input).stdout(output).stderr(theirs).env("TERM", "xterm");
        let control = || {
            setsid()?;
            Ok(ioctl_tiocsctty(rustix::stdio::stdin())?)
        };
        // SAFETY: between fork and exec only system calls are made; nothing is allocated and no lock is taken.
        unsafe { command.pre_exec(control) };
        let mut child = command.spawn()?;
        // It keeps the other side of the terminal open otherwise.
        drop(command);
        pump(stream, ours)?;
        // Its terminal is gone: it has got SIGHUP.
        child.wait()
    })();
    if let Err(error) = ended {
        let _ = writeln!(&mut &*stream, "{}: {error}\r", argv.join(" "));
    }
    let _ = stream.shutdown(Shutdown::Both);
}

/// A terminal of a size: our side and the program's.
fn terminal(rows: u16, columns: u16) -> io::Result<(OwnedFd, OwnedFd)> {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let theirs = open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?;
    tcsetwinsize(&ours, Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 })?;
    Ok((ours, theirs))
}

/// Moves bytes both ways until the program has closed the terminal, or the connection is closed.
fn pump(stream: &TcpStream, terminal: OwnedFd) -> io::Result<()> {
    let terminal = std::fs::File::from(terminal);
    let typed = terminal.try_clone()?;
    let keys = stream.try_clone()?;
    // It ends with the connection, which is shut down when the program has ended.
    thread::Builder::new().name("keys".into()).spawn(move || {
        let copied = io::copy(&mut &keys, &mut &typed);
        // Nothing reads it any more: what the program prints next fails.
        let _ = copied.and_then(|_| hang_up(&typed));
    })?;
    let mut buffer = [0; 4096];
    loop {
        // EIO: no process has the other side open.
        let Ok(length @ 1..) = (&terminal).read(&mut buffer) else { return Ok(()) };
        if (&mut &*stream).write_all(&buffer[..length]).is_err() {
            return hang_up(&terminal);
        }
    }
}

/// Sends SIGHUP to the session on the terminal.
fn hang_up(terminal: &std::fs::File) -> io::Result<()> {
    let group = rustix::termios::tcgetpgrp(terminal)?;
    Ok(rustix::process::kill_process_group(group, rustix::process::Signal::HUP)?)
}
