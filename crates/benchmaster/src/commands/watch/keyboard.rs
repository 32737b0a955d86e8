//! Keys as terminals send them.

use benchmaster_watch::Key;

/// What was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Typed {
    Key(Key),
    /// Control and C: a terminal in raw mode does not send the signal itself.
    Interrupt,
}

/// The keys in what a terminal sent at once; sequences of other keys are passed over.
pub(super) fn typed(bytes: &[u8]) -> Vec<Typed> {
    let text = String::from_utf8_lossy(bytes);
    let (mut rest, mut keys) = (&*text, Vec::new());
    while let Some(first) = rest.chars().next() {
        let mut length = first.len_utf8();
        match (first, sequence(rest)) {
            ('\x03', _) => keys.push(Typed::Interrupt),
            ('\x1b', Some((key, of_sequence))) => {
                length = of_sequence;
                keys.extend(key.map(Typed::Key));
            }
            ('\x1b', None) => keys.push(Typed::Key(Key::Escape)),
            (first, _) if first.is_control() => {}
            (first, _) => keys.push(Typed::Key(Key::Char(first))),
        }
        rest = &rest[length..];
    }
    keys
}

/// An escape sequence of ECMA-48 (CSI or SS3) at the beginning of a text: its key, if it is a known one, and its length.
fn sequence(text: &str) -> Option<(Option<Key>, usize)> {
    let parameters = text.strip_prefix("\x1b[").or_else(|| text.strip_prefix("\x1bO"))?;
    let end = parameters.find(|c: char| ('@'..='~').contains(&c)).unwrap_or(parameters.len());
    let known = match parameters.get(..=end) {
        Some("A") => Some(Key::Up),
        Some("B") => Some(Key::Down),
        Some("C") => Some(Key::Right),
        Some("D") => Some(Key::Left),
        Some("H" | "1~" | "7~") => Some(Key::Home),
        Some("F" | "4~" | "8~") => Some(Key::End),
        _ => None,
    };
    Some((known, text.len() - parameters.len() + (end + 1).min(parameters.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_their_sequences() {
        let keys = |bytes: &[u8]| typed(bytes);
        assert_eq!(keys(b"q"), [Typed::Key(Key::Char('q'))]);
        assert_eq!(keys("µ+".as_bytes()), [Typed::Key(Key::Char('µ')), Typed::Key(Key::Char('+'))]);
        assert_eq!(keys(b"\x1b"), [Typed::Key(Key::Escape)]);
        let arrows = [Key::Up, Key::Down, Key::Right, Key::Left, Key::Home, Key::End].map(Typed::Key);
        assert_eq!(keys(b"\x1b[A\x1b[B\x1bOC\x1bOD\x1b[1~\x1b[F"), arrows);
        assert_eq!(keys(b"a\x03"), [Typed::Key(Key::Char('a')), Typed::Interrupt]);
    }

    #[test]
    fn other_keys_and_broken_sequences_are_passed_over() {
        for bytes in [&b"\x1b[5~"[..], b"\x1b[15;2~", b"\x1b[", b"\x1b[12", b"\x1bO", b"\t", b"\r", b""] {
            assert_eq!(typed(bytes), [], "{bytes:?}");
        }
        assert_eq!(typed(b"\x1b[5~r"), [Typed::Key(Key::Char('r'))]);
        assert_eq!(typed(b"\xff"), [Typed::Key(Key::Char('\u{fffd}'))]);
    }
}
