//! Text to the terminal: results on standard output, everything else on standard error.

use std::borrow::Cow;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use benchmaster_report::Document;
use benchmaster_report::terminal::TextOptions;

use crate::failure::{Failure, Status};

/// Prints results. A reader that has gone away (`| head`) is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let text = harmless(text, color(&io::stdout()));
    let mut out = io::stdout().lock();
    let end = if text.ends_with('\n') { "" } else { "\n" };
    match out
        .write_all(text.as_bytes())
        .and_then(|()| out.write_all(end.as_bytes()))
        .and_then(|()| out.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::fault(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    print(&serde_json::to_string_pretty(value)?)
}

/// Prints what was found, as JSON or in words.
pub(crate) fn answer(
    json: bool,
    value: &impl serde::Serialize,
    words: impl FnOnce() -> String,
) -> Result<Status, Failure> {
    if json {
        print_json(value)?
    } else {
        print(&words())?
    }
    Ok(Status::Fine)
}

/// Prints what was found, as JSON or as a document.
pub(crate) fn document(
    json: bool,
    value: &impl serde::Serialize,
    document: impl FnOnce() -> Document,
) -> Result<Status, Failure> {
    answer(json, value, || document().text(&text_options()))
}

/// Writes a file in one step: one that is there is whole.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    fs::write(&partial, text).and_then(|()| fs::rename(&partial, path)).inspect_err(|_| {
        // The reason is the first error; a left-over file is only untidy.
        let _ = fs::remove_file(&partial);
    })
}

/// Prints a line that is no result.
pub(crate) fn note(text: &str) {
    // A closed standard error leaves no way to report this.
    let _ = writeln!(io::stderr().lock(), "{}", harmless(text, color(&io::stderr())));
}

/// Text without characters that a terminal obeys, which names and paths may contain: they are shown as `\u001b`, which JSON
/// reads back. Line
/// breaks and tabs stay, and colours where they are wanted.
pub(crate) fn harmless(text: &str, color: bool) -> Cow<'_, str> {
    let obeyed = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(obeyed) {
        shown.push_str(&rest[..at]);
        rest = &rest[at..];
        let colour = color.then(|| colour_at(rest)).flatten();
        match (colour, rest.chars().next()) {
            (Some(length), _) => {
                shown.push_str(&rest[..length]);
                rest = &rest[length..];
            }
            (None, Some(c)) => {
                shown.push_str(&format!("\\u{:04x}", u32::from(c)));
                rest = &rest[c.len_utf8()..];
            }
            (None, None) => break,
        }
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// Length of the sequence that sets colours (`ESC [ numbers m`) with which text begins.
fn colour_at(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\x1b[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some(2 + end + 1)
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
pub(crate) fn chain(error: &anyhow::Error) -> String {
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

pub(crate) fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size().map(|(columns, _)| columns.0.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_no_cursor() {
        let title = "target \x1b]0;owned\x07 \x1b[2J\u{9b}31m\rx";
        let expected = "target \\u001b]0;owned\\u0007 \\u001b[2J\\u009b31m\\u000dx";
        assert_eq!(harmless(title, true), expected);
        assert_eq!(harmless(title, false), expected);
        let coloured = "\x1b[1;31mbad\x1b[0m\n\tgood";
        assert_eq!(harmless(coloured, true), coloured);
        assert_eq!(harmless(coloured, false), "\\u001b[1;31mbad\\u001b[0m\n\tgood");
        assert!(matches!(harmless("ordinary: µ ± ─", false), Cow::Borrowed(_)));
    }
}
