//! Paths of parameters (`workload.write.io_size`, `workload.w.groups[0].workers`) and the tree they lead through.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of the file with its place.
pub(crate) type Node<'t> = Spanned<DeValue<'t>>;

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

/// The value at a path, and the place of its key.
pub(crate) fn find<'a, 't>(
    table: &'a DeTable<'t>,
    path: &[Segment<'_>],
) -> Option<(Range<usize>, &'a Node<'t>)> {
    let (Segment::Key(key), rest) = path.split_first()? else { return None };
    let (key, node) = table.get_key_value(*key)?;
    let mut found = (key.span(), node);
    for segment in rest {
        found = match (segment, found.1.get_ref()) {
            (Segment::Key(key), DeValue::Table(table)) => {
                let (key, node) = table.get_key_value(*key)?;
                (key.span(), node)
            }
            (Segment::Index(index), DeValue::Array(array)) => {
                let node = array.get(*index)?;
                (node.span(), node)
            }
            _ => return None,
        };
    }
    Some(found)
}

/// The nearest place in the file to a path: that of the value, or of the innermost table around it that is written.
/// Inline tables and arrays are long, so their key is shown instead.
pub(crate) fn place(table: &DeTable<'_>, path: &[Segment<'_>]) -> Option<Range<usize>> {
    (1..=path.len()).rev().find_map(|length| find(table, &path[..length])).map(|(key, node)| {
        match node.get_ref() {
            DeValue::Array(_) => key,
            _ => node.span(),
        }
    })
}

/// The path of the key or value at exactly this place.
pub(crate) fn path_at(table: &DeTable<'_>, place: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(key, node)| {
        let name = key.get_ref().to_string();
        (key.span() == *place).then(|| name.clone()).or_else(|| path_within(name, node, place))
    })
}

fn path_within(path: String, node: &Node<'_>, place: &Range<usize>) -> Option<String> {
    if node.span() == *place {
        return Some(path);
    }
    match node.get_ref() {
        DeValue::Table(table) => path_at(table, place).map(|below| format!("{path}.{below}")),
        DeValue::Array(array) => array.iter().enumerate().find_map(|(index, node)| {
            let mut path = path.clone();
            let _ = write!(path, "[{index}]");
            path_within(path, node, place)
        }),
        _ => None,
    }
}

/// Whether a place lies within a value, anything below it included.
pub(crate) fn covers(node: &Node<'_>, place: &Range<usize>) -> bool {
    let within = |outer: Range<usize>| outer.start <= place.start && place.end <= outer.end;
    within(node.span())
        || match node.get_ref() {
            DeValue::Table(table) => {
                table.iter().any(|(key, node)| within(key.span()) || covers(node, place))
            }
            DeValue::Array(array) => array.iter().any(|node| covers(node, place)),
            _ => false,
        }
}

/// Why a parameter could not be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoSuchPlace {
    /// What stands in the way.
    pub(crate) message: String,
}

/// Puts `value` at `path`, whose text is at `origin` in the file. Tables on the way are made when they are missing.
pub(crate) fn set<'t>(
    table: &mut DeTable<'t>,
    path: &[Segment<'_>],
    origin: &Range<usize>,
    value: Node<'t>,
) -> Result<(), NoSuchPlace> {
    let (Some(Segment::Key(key)), rest) = (path.first(), &path[1.min(path.len())..]) else {
        return Err(NoSuchPlace { message: "the path starts with an index".into() });
    };
    let spanned_key = || Spanned::new(origin.clone(), Cow::Owned((*key).to_owned()));
    if rest.is_empty() {
        // The key has to be new as well: errors about it belong to the level, not to the value it replaces.
        table.remove(*key);
        table.insert(spanned_key(), value);
        return Ok(());
    }
    let node = table
        .entry(spanned_key())
        .or_insert_with(|| Spanned::new(origin.clone(), DeValue::Table(DeTable::new())));
    descend(node, key, rest, origin, value)
}

fn descend<'t>(
    node: &mut Node<'t>,
    name: &str,
    path: &[Segment<'_>],
    origin: &Range<usize>,
    value: Node<'t>,
) -> Result<(), NoSuchPlace> {
    match (path, node.get_mut()) {
        ([], slot) => {
            *slot = DeValue::Boolean(false);
            *node = value;
            Ok(())
        }
        ([Segment::Key(_), ..], DeValue::Table(table)) => set(table, path, origin, value),
        ([Segment::Index(index), rest @ ..], DeValue::Array(array)) => {
            let length = array.len();
            let element = array.get_mut(*index).ok_or_else(|| NoSuchPlace {
                message: match length {
                    1 => format!("`{name}` has 1 element, and its index is 0"),
                    n => format!("`{name}` has {n} elements, with indices from 0 to {}", n.saturating_sub(1)),
                },
            })?;
            descend(element, name, rest, origin, value)
        }
        ([Segment::Key(key), ..], DeValue::Array(_)) => Err(NoSuchPlace {
            message: format!("`{name}` is an array; write `{name}[0].{key}` for its first element"),
        }),
        ([Segment::Index(_), ..], _) => Err(NoSuchPlace { message: format!("`{name}` is not an array") }),
        ([Segment::Key(key), ..], _) => {
            Err(NoSuchPlace { message: format!("`{name}` is a single value and has nothing called `{key}`") })
        }
    }
}

/// Removes what is at a path of keys, if it is there.
pub(crate) fn remove(table: &mut DeTable<'_>, path: &[Segment<'_>]) {
    match path {
        [Segment::Key(key)] => {
            table.remove(*key);
        }
        [Segment::Key(key), rest @ ..] => {
            if let Some(DeValue::Table(below)) = table.get_mut(*key).map(|node| node.get_mut()) {
                remove(below, rest);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> DeTable<'_> {
        DeTable::parse(text).unwrap().into_inner()
    }

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
    fn values_are_set_and_found_again() {
        let text = "[w]\na = 1\n[[w.g]]\nx = 1\n";
        let mut table = tree(text);
        for (path, value) in [("w.a", "2"), ("w.b.c", "3"), ("w.g[0].x", "4"), ("w.g[0]", "{ y = 5 }")] {
            let node = DeValue::parse(value).unwrap();
            let segments = parse(path).unwrap();
            set(&mut table, &segments, &(90..95), node).unwrap();
            assert_eq!(find(&table, &segments).unwrap().1.span(), 0..value.len(), "{path}");
        }
        assert_eq!(find(&table, &parse("w.a").unwrap()).unwrap().0, 90..95);
        assert!(find(&table, &parse("w.g[1]").unwrap()).is_none());
        let one = || DeValue::parse("1").unwrap();
        let error =
            |path: &str| set(&mut tree(text), &parse(path).unwrap(), &(0..1), one()).unwrap_err().message;
        assert_eq!(error("w.g[1].x"), "`g` has 1 element, and its index is 0");
        assert_eq!(error("w.g.x"), "`g` is an array; write `g[0].x` for its first element");
        assert_eq!(error("w.a.x"), "`a` is a single value and has nothing called `x`");
        assert_eq!(error("w[0]"), "`w` is not an array");
    }

    #[test]
    fn places_and_paths_belong_together() {
        let text = "[w]\na = { b = [1, 2] }\n[[w.g]]\nx = 1\n";
        let table = tree(text);
        let at = |part: &str| text.find(part).map(|start| start..start + part.len()).unwrap();
        assert_eq!(path_at(&table, &at("2")).as_deref(), Some("w.a.b[1]"));
        assert_eq!(path_at(&table, &at("x")).as_deref(), Some("w.g[0].x"));
        assert_eq!(place(&table, &parse("w.g[0].missing").unwrap()), Some(at("[[w.g]]")));
        assert_eq!(place(&table, &parse("w.missing").unwrap()), Some(at("[w]")));
        assert!(covers(find(&table, &parse("w.a").unwrap()).unwrap().1, &at("2")));
    }
}
