//! A progress bar on a terminal: the last lines of standard error, drawn again in place.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output;

/// Changes that follow each other more closely are drawn with the next one.
const REDRAW: Duration = Duration::from_millis(200);

#[derive(Debug, Default)]
pub(crate) struct Bar {
    /// What is done, of `length`.
    pub(crate) position: u64,
    pub(crate) length: u64,
    /// Text beside the bar, and in the lines below it.
    pub(crate) beside: String,
    pub(crate) below: Vec<String>,
    drawn: Option<Instant>,
    /// Lines that stand on the terminal.
    lines: usize,
}

impl Bar {
    /// A bar, where standard error is a terminal.
    pub(crate) fn on_terminal(length: u64) -> Option<Self> {
        std::io::stderr().is_terminal().then(|| Self { length, ..Self::default() })
    }

    /// Shows what has changed.
    pub(crate) fn show(&mut self) {
        if self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW) {
            self.draw();
        }
    }

    /// Prints a line above the bar.
    pub(crate) fn note(&mut self, text: &str) {
        self.erase();
        output::note(text);
        self.draw();
    }

    fn draw(&mut self) {
        self.erase();
        let lines = self.text(output::terminal_width().unwrap_or(80));
        // A closed standard error leaves no way to report this.
        let _ = std::io::stderr().lock().write_all(lines.join("\n").as_bytes());
        (self.drawn, self.lines) = (Some(Instant::now()), lines.len());
    }

    /// Takes the bar from the terminal.
    pub(crate) fn erase(&mut self) {
        if self.lines > 0 {
            let text = format!("\r\x1b[2K{}", "\x1b[1A\x1b[2K".repeat(self.lines - 1));
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
            self.lines = 0;
        }
    }

    fn text(&self, columns: usize) -> Vec<String> {
        let beside = output::harmless(&self.beside, false);
        let room = columns.saturating_sub(beside.width() + 1);
        let done = (room as u64).saturating_mul(self.position.min(self.length)) / self.length.max(1);
        let bar = "█".repeat(done as usize) + &"░".repeat(room - done as usize);
        let mut lines = vec![cut(&format!("{bar} {beside}"), columns)];
        lines.extend(self.below.iter().map(|line| cut(&output::harmless(line, false), columns)));
        lines
    }
}

/// What of a line fits.
fn cut(line: &str, columns: usize) -> String {
    let mut width = 0;
    let fits = |c: &char| {
        width += c.width().unwrap_or(0);
        width <= columns
    };
    line.chars().take_while(fits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_fills_the_width() {
        let bar = Bar { position: 3, length: 4, beside: "3/4 runs".into(), ..Bar::default() };
        assert_eq!(bar.text(17), ["██████░░ 3/4 runs"]);
        let bar = Bar { below: vec!["io_size=1MiB\x1b, replicate 2".into()], position: 9, ..bar };
        assert_eq!(bar.text(17), ["████████ 3/4 runs", "io_size=1MiB\\u001"]);
        assert_eq!(bar.text(6), [" 3/4 r", "io_siz"]);
        assert_eq!(Bar::default().text(3), ["░░ "]);
    }
}
