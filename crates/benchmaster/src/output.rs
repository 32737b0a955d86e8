//! Text to the terminal: results on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};

use benchmaster_report::terminal::TextOptions;

use crate::failure::{Failure, Status};

/// Prints results. A reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()))
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            Status::ChecksFailed,
            anyhow::anyhow!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::new(Status::ChecksFailed, error.into()))?;
    print(&text)
}

/// Prints a line that is no result.
pub(crate) fn note(text: &str) {
    // A closed standard error leaves no way to report this.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints why a command failed, and what that means for the user.
pub(crate) fn error(failure: &Failure) {
    match &failure.rendered {
        Some(text) => note(text.trim_end()),
        None => note(&format!("error: {}", chain(&failure.error))),
    }
    if let Some(consequence) = &failure.consequence {
        note(&format!("note: {consequence}"));
    }
}

/// An error with its causes, without those that an outer message contains.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text.push_str(&format!(": {cause}"));
        }
    }
    text
}

/// Whether colours are wanted on a stream: it is a terminal, and `NO_COLOR` is not set.
pub(crate) fn color(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// How summaries look on standard output.
pub(crate) fn text_options() -> TextOptions {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = io::stdout().is_terminal().then(terminal_width).flatten();
    let unicode = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .is_none_or(|locale| locale != "C" && locale != "POSIX");
    TextOptions {
        width: columns.or(terminal).unwrap_or(100).clamp(40, 240),
        color: color(&io::stdout()),
        unicode,
        cut: io::stdout().is_terminal(),
        report: None,
        directory: None,
    }
}

fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(columns, _)| columns.0.into())
}
