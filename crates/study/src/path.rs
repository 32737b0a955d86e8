//! Paths of parameters: `workload.write.io_size`, `workload.w.groups[0].workers`.

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment<'p> {
    Key(&'p str),
    Index(usize),
}

/// Splits a path. `None` when it is not one.
pub(crate) fn parse(path: &str) -> Option<Vec<Segment<'_>>> {
    let mut segments = Vec::new();
    for part in path.split('.') {
        let (key, mut indices) = part.split_at(part.find('[').unwrap_or(part.len()));
        if !is_name(key) {
            return None;
        }
        segments.push(Segment::Key(key));
        while let Some(rest) = indices.strip_prefix('[') {
            let (digits, rest) = rest.split_once(']')?;
            if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            segments.push(Segment::Index(digits.parse().ok()?));
            indices = rest;
        }
        if !indices.is_empty() {
            return None;
        }
    }
    Some(segments)
}

/// Whether a name consists of letters, digits, `_` and `-`.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Whether `inner` is the path `outer`, or one of a part of it.
pub(crate) fn is_within(outer: &str, inner: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split() {
        use Segment::{Index, Key};
        assert_eq!(parse("a.b-c.d_1"), Some(vec![Key("a"), Key("b-c"), Key("d_1")]));
        assert_eq!(
            parse("w.groups[0].flow[12]"),
            Some(vec![Key("w"), Key("groups"), Index(0), Key("flow"), Index(12)])
        );
        for bad in ["", ".", "a.", "a..b", "a[", "a[]", "a[x]", "a[0]b", "a b", "[0]", "a[+1]"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn parts_are_within() {
        assert!(is_within("a.b", "a.b") && is_within("a.b", "a.b[0].c") && is_within("a", "a.b"));
        assert!(!is_within("a.b", "a.bc") && !is_within("a.b", "a"));
    }
}
