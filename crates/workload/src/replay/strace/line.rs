//! Lines of `strace -f -ttt -T`.

use crate::operation_error::errno_named;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The thread; 0 where only one was traced.
    pub(super) pid: u32,
    pub(super) at_ns: u64,
    pub(super) what: What<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum What<'a> {
    /// A whole call: name, and the text after the opening parenthesis.
    Call(&'a str, &'a [u8]),
    Unfinished(&'a str, &'a [u8]),
    /// The rest of a call that began earlier.
    Resumed(&'a str, &'a [u8]),
    /// The thread has ended.
    Ended,
    /// A signal, or something that strace says about itself.
    Other,
}

/// Arguments and result of a call.
#[derive(Debug, PartialEq)]
pub(super) struct Call<'a> {
    pub(super) arguments: Vec<&'a [u8]>,
    pub(super) result: Outcome<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome<'a> {
    /// The value, and the path that `strace -y` shows of a descriptor.
    Value(i64, Option<&'a [u8]>),
    Error(u16),
    /// Interrupted, or never returned.
    Unknown,
}

/// Reads a line; `None` when it is none of strace's.
pub(super) fn line(text: &[u8]) -> Option<Line<'_>> {
    let text = text.trim_ascii();
    let (pid, text) = pid(text);
    let (at_ns, text) = time(text)?;
    let text = text.trim_ascii_start();
    let what = if text.starts_with(b"+++") {
        What::Ended
    } else if text.starts_with(b"---") || text.starts_with(b"strace:") {
        What::Other
    } else if let Some(rest) = text.strip_prefix(b"<... ") {
        let end = find(rest, b" resumed>")?;
        let name = std::str::from_utf8(&rest[..end]).ok()?;
        What::Resumed(name, &rest[end + b" resumed>".len()..])
    } else {
        let open = text.iter().position(|&byte| byte == b'(')?;
        let name = std::str::from_utf8(&text[..open]).ok().filter(|name| is_name(name))?;
        let rest = &text[open + 1..];
        match rest.strip_suffix(b"<unfinished ...>") {
            Some(begun) => What::Unfinished(name, begun.trim_ascii_end()),
            None => What::Call(name, rest),
        }
    };
    Some(Line { pid, at_ns, what })
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `5012  ` or `[pid  5012] ` before the time.
fn pid(text: &[u8]) -> (u32, &[u8]) {
    if let Some(rest) = text.strip_prefix(b"[pid ")
        && let Some(end) = rest.iter().position(|&byte| byte == b']')
        && let Some(pid) = number(rest[..end].trim_ascii())
    {
        return (u32::try_from(pid).unwrap_or(0), rest[end + 1..].trim_ascii_start());
    }
    let end = text.iter().position(|&byte| byte == b' ').unwrap_or(0);
    match number(&text[..end]) {
        Some(pid) => (u32::try_from(pid).unwrap_or(0), text[end..].trim_ascii_start()),
        None => (0, text),
    }
}

/// `1795331833.026811` (`-ttt`) or `14:03:59.026811` (`-tt`), in nanoseconds.
fn time(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|&byte| byte == b' ')?;
    let (stamp, rest) = text.split_at(end);
    let point = stamp.iter().position(|&byte| byte == b'.')?;
    let (whole, fraction) = (&stamp[..point], &stamp[point + 1..]);
    let mut seconds = 0u64;
    for part in whole.split(|&byte| byte == b':') {
        seconds = seconds.checked_mul(60)?.checked_add(u64::try_from(number(part)?).ok()?)?;
    }
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    let nanos = u64::try_from(number(fraction)?).ok()? * 10u64.pow(9 - digits);
    Some((seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?, rest))
}

/// A whole number in decimal, octal (`0777`) or hexadecimal form.
pub(super) fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(u64::cast_signed);
    }
    text.parse().ok()
}

/// Splits what follows the opening parenthesis into arguments and result; `None` when the line is cut.
pub(super) fn call(text: &[u8]) -> Option<Call<'_>> {
    let mut arguments = Vec::new();
    let (mut at, mut from, mut depth) = (0, 0, 0usize);
    loop {
        match *text.get(at)? {
            b'"' => at = string_end(text, at)?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' if depth == 0 => break,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'/' if text[at..].starts_with(b"/*") => at += find(&text[at..], b"*/")? + 1,
            // The path of a descriptor, as `-y` shows it.
            b'<' if at > from && (text[at - 1].is_ascii_digit() || text[at - 1] == b'D') => {
                at += text[at..].iter().position(|&byte| byte == b'>')?;
            }
            b',' if depth == 0 => {
                arguments.push(text[from..at].trim_ascii());
                from = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    let last = text[from..at].trim_ascii();
    if !(last.is_empty() && arguments.is_empty()) {
        arguments.push(last);
    }
    let rest = text[at + 1..].trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
    let (value, after) = rest.split_at(end);
    let (value, path) = decorated(value);
    let result = match number(value) {
        Some(-1) => {
            let name = after.trim_ascii_start().split(|&byte| byte == b' ').next().unwrap_or_default();
            let error = std::str::from_utf8(name).ok().and_then(errno_named);
            error.map_or(Outcome::Unknown, Outcome::Error)
        }
        Some(value) => Outcome::Value(value, path),
        None => Outcome::Unknown,
    };
    Some(Call { arguments, result })
}

/// Index of the quote that ends the string that begins at `from`.
fn string_end(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// A descriptor without the path that `-y` shows, and that path.
pub(super) fn decorated(text: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(open) = text.iter().position(|&byte| byte == b'<') else { return (text, None) };
    let path = text[open + 1..].strip_suffix(b">").unwrap_or(&text[open + 1..]);
    let path = path.strip_suffix(b">(deleted)").or_else(|| path.strip_suffix(b" (deleted)")).unwrap_or(path);
    (&text[..open], Some(path).filter(|path| path.starts_with(b"/")))
}

/// The text of a quoted string; `None` when it is none, or cut off (`"…"...`).
pub(super) fn string(text: &[u8]) -> Option<Vec<u8>> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut out = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        out.push(match bytes.next()? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'v' => 11,
            b'f' => 12,
            b'x' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                (digit(bytes.next()?)? * 16 + digit(bytes.next()?)?) as u8
            }
            first @ b'0'..=b'7' => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(next) = bytes.next_if(|byte| (b'0'..=b'7').contains(byte)) else { break };
                    value = value * 8 + u32::from(next - b'0');
                }
                value as u8
            }
            other => other,
        });
    }
    Some(out)
}

pub(super) fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> (u32, u64, String, Vec<String>, String) {
        let line = line(text.as_bytes()).unwrap();
        let What::Call(name, rest) = line.what else { panic!("{text}: {:?}", line.what) };
        let call = call(rest).unwrap();
        let arguments = call.arguments.iter().map(|a| String::from_utf8_lossy(a).into_owned()).collect();
        (line.pid, line.at_ns, name.into(), arguments, format!("{:?}", call.result))
    }

    #[test]
    fn calls_are_taken_apart() {
        let (pid, at, name, arguments, result) = whole(
            "5012  1795331833.099296 openat(AT_FDCWD, \"d/a, (b\\\")\", O_RDWR|O_CREAT, 0644) = 3 <0.000019>",
        );
        assert_eq!((pid, at, name.as_str()), (5012, 1_795_331_833_099_296_000, "openat"));
        assert_eq!(arguments, ["AT_FDCWD", "\"d/a, (b\\\")\"", "O_RDWR|O_CREAT", "0644"]);
        assert_eq!(result, "Value(3, None)");
        let (pid, _, _, arguments, result) = whole(
            "[pid  7] 12:00:01.5 newfstatat(3</x, y>, \"\", {st_mode=S_IFREG|0644, st_size=9, ...}, AT_EMPTY_PATH) = 0",
        );
        assert_eq!((pid, arguments.len(), result.as_str()), (7, 4, "Value(0, None)"));
        assert_eq!(arguments[0], "3</x, y>");
        let (_, _, _, arguments, result) =
            whole("1.000001 getdents64(4, 0x36542960 /* 79, entries */, 32768) = 3224 <0.000045>");
        assert_eq!((arguments.len(), result.as_str()), (3, "Value(3224, None)"));
        let (_, _, _, _, result) =
            whole("1 2.5 open(\"x\", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000045>");
        assert_eq!(result, format!("Error({})", libc::ENOENT));
        let (_, _, _, arguments, result) = whole("1 2.5 getpid() = 8");
        assert_eq!((arguments.len(), result.as_str()), (0, "Value(8, None)"));
        let (_, _, _, _, result) = whole("1 2.5 openat(AT_FDCWD</w>, \"x\", O_RDONLY) = 4</w/x> <0.1>");
        assert!(result.starts_with("Value(4, Some("), "{result}");
        let (_, _, _, _, result) = whole("1 2.5 exit_group(0) = ?");
        assert_eq!(result, "Unknown");
    }

    #[test]
    fn calls_in_two_parts_signals_and_ends_are_told_apart() {
        let what = |text: &'static str| line(text.as_bytes()).map(|line| line.what);
        assert_eq!(what("1 2.5 fsync(3 <unfinished ...>"), Some(What::Unfinished("fsync", b"3")));
        assert_eq!(
            what("1 2.5 <... fsync resumed>) = 0 <0.1>"),
            Some(What::Resumed("fsync", b") = 0 <0.1>"))
        );
        assert_eq!(what("1 2.5 +++ exited with 0 +++"), Some(What::Ended));
        assert_eq!(what("1 2.5 --- SIGCHLD {si_signo=SIGCHLD} ---"), Some(What::Other));
        assert_eq!(what("no line of strace"), None);
        assert_eq!(what("1 read(3, \"\", 1) = 0"), None, "without a time");
        assert_eq!(call(b"3, \"abc"), None);
    }

    #[test]
    fn strings_are_decoded() {
        assert_eq!(string(b"\"a\\n\\\\\\303\\244\\0b\\x41\"").unwrap(), b"a\n\\\xc3\xa4\0bA");
        assert_eq!(string(b"\"cut\"..."), None);
        assert_eq!(decorated(b"3</a/b>"), (&b"3"[..], Some(&b"/a/b"[..])));
        assert_eq!(decorated(b"3<socket:[1]>"), (&b"3"[..], None));
    }
}
