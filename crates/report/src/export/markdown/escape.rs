//! Texts that are no markup, whatever is in them.

/// Text within a paragraph or an item of a list. Line breaks become blanks.
pub(super) fn text(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    let line: Vec<char> =
        printable(&words.split_whitespace().collect::<Vec<_>>().join(" ")).chars().collect();
    for (at, &c) in line.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| line.get(at));
        let within_a_word = [before, line.get(at + 1)].iter().all(|c| c.is_some_and(|c| c.is_alphanumeric()));
        match c {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '_' if within_a_word => escaped.push(c),
            '\\' | '`' | '*' | '_' | '[' | ']' | '~' | '|' | '$' => escaped.extend(['\\', c]),
            // Neither a person nor an issue.
            '@' | '#' if line.get(at + 1).is_some_and(|c| c.is_alphanumeric()) => escaped.extend(['\\', c]),
            '#' | '-' | '+' | '=' if at == 0 => escaped.extend(['\\', c]),
            '.' | ')' if line[..at].iter().all(char::is_ascii_digit) && at > 0 => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Code within a paragraph.
pub(super) fn code(words: &str) -> String {
    let line = printable(&words.split_whitespace().collect::<Vec<_>>().join(" "));
    if line.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&line) + 1);
    // The blanks are taken off again by the reader, and keep a backtick away from the fence.
    let space = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{line}{space}{fence}")
}

/// Code in a cell of a table, where a bar ends the cell even within code.
pub(super) fn code_cell(words: &str) -> String {
    // There is no way to write a backslash before a bar as code.
    if words.contains("\\|") { text(words) } else { code(words).replace('|', "\\|") }
}

/// A block of code.
pub(super) fn fenced(language: &str, block: &str) -> String {
    let fence = "`".repeat((longest_run(block) + 1).max(3));
    format!("{fence}{language}\n{}\n{fence}", printable(block))
}

/// Text without characters that a terminal obeys, but line breaks and tabs.
fn printable(text: &str) -> String {
    let show = |c: char| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c };
    text.chars().map(show).collect()
}

/// The most backticks in a row.
fn longest_run(words: &str) -> usize {
    words.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}
