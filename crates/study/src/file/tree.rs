//! The values of a study file, each with its span. A level of a factor is put over a tree without copying what it does
//! not touch, so that a section which no level touches stays the same node.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::path::{self, Segment};

/// A value and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Range<usize>,
    pub(crate) value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date,
    Array(Vec<Arc<Node>>),
    Table(Table),
}

impl Value {
    /// A number, or text of a quantity, as written in TOML.
    pub(crate) fn to_toml(&self) -> String {
        match self {
            Self::Text(text) => format!("\"{text}\""),
            Self::Integer(number) => number.to_string(),
            // With its point it stays a number that may have a fraction.
            Self::Float(number) => format!("{number:?}"),
            _ => String::new(),
        }
    }

    /// The type in words.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "a string",
            Self::Integer(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "a boolean",
            Self::Date => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

impl Node {
    pub(crate) fn new(span: Range<usize>, value: Value) -> Arc<Self> {
        Arc::new(Self { span, value })
    }

    pub(crate) fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    /// Whether a level of a factor put it here.
    pub(crate) by_level: bool,
}

/// The entries of a table in the order of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Table(Vec<(Key, Arc<Node>)>);

impl Table {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Node>)> {
        self.0.iter().map(|(key, node)| (key, node))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter().map(|(key, _)| key)
    }

    pub(crate) fn entry(&self, name: &str) -> Option<(&Key, &Arc<Node>)> {
        self.iter().find(|(key, _)| key.name == name)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Node>> {
        self.entry(name).map(|(_, node)| node)
    }

    /// The table below a key, if there is one.
    pub(crate) fn table(&self, name: &str) -> Option<&Self> {
        self.get(name)?.table()
    }

    /// The entries that are wanted.
    pub(crate) fn filtered(&self, wanted: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(key, _)| wanted(&key.name)).cloned().collect())
    }

    /// The value at a path, and the span of its key.
    fn find(&self, path: &[Segment<'_>]) -> Option<(&Range<usize>, &Arc<Node>)> {
        let (Segment::Key(key), rest) = path.split_first()? else { return None };
        let (key, node) = self.entry(key)?;
        let mut found = (&key.span, node);
        for segment in rest {
            found = match (segment, &found.1.value) {
                (Segment::Key(key), Value::Table(table)) => {
                    let (key, node) = table.entry(key)?;
                    (&key.span, node)
                }
                (Segment::Index(index), Value::Array(array)) => {
                    let node = array.get(*index)?;
                    (&node.span, node)
                }
                _ => return None,
            };
        }
        Some(found)
    }

    /// The value at a path.
    pub(crate) fn at(&self, path: &str) -> Option<&Arc<Node>> {
        self.find(&path::parse(path)?).map(|(_, node)| node)
    }

    /// The span nearest to a path: that of the value, or of the innermost table around it that is written. Arrays are
    /// long, so the span of their key stands for them.
    pub(crate) fn span_of(&self, path: &str) -> Range<usize> {
        let nearest = |path| {
            let path = path::parse(path)?;
            let (key, node) = (1..=path.len()).rev().find_map(|length| self.find(&path[..length]))?;
            Some(if matches!(node.value, Value::Array(_)) { key.clone() } else { node.span.clone() })
        };
        // A wrong name makes a path that cannot be parsed; what is around it has a span nevertheless.
        let outer = path.match_indices('.').map(|(dot, _)| &path[..dot]).rev();
        std::iter::once(path).chain(outer).find_map(nearest).unwrap_or(0..0)
    }

    /// Puts `value` at `path`, which is written at `origin`. Missing tables on the way are added.
    ///
    /// # Errors
    /// What is in the way.
    pub(crate) fn set(
        &mut self,
        path: &[Segment<'_>],
        origin: &Range<usize>,
        value: Arc<Node>,
    ) -> Result<(), String> {
        let Some((Segment::Key(name), rest)) = path.split_first() else {
            return Err("the path starts with an index".into());
        };
        let index = self.0.iter().position(|(key, _)| key.name == *name);
        let key = || Key { name: (*name).to_owned(), span: origin.clone(), by_level: true };
        match (rest.is_empty(), index) {
            // The key is the level's as well: errors about it belong there, not to the value it replaces.
            (true, Some(index)) => self.0[index] = (key(), value),
            (true, None) => self.0.push((key(), value)),
            (false, _) => {
                let index = index.unwrap_or_else(|| {
                    self.0.push((key(), Node::new(origin.clone(), Value::Table(Self::default()))));
                    self.0.len() - 1
                });
                descend(&mut self.0[index].1, name, rest, origin, value)?;
            }
        }
        Ok(())
    }

    /// Removes the entry at a path of keys, if there is one.
    pub(crate) fn remove(&mut self, path: &[Segment<'_>]) {
        let Some((Segment::Key(name), rest)) = path.split_first() else { return };
        let Some(index) = self.0.iter().position(|(key, _)| key.name == *name) else { return };
        if rest.is_empty() {
            self.0.remove(index);
        } else if let Value::Table(below) = &mut Arc::make_mut(&mut self.0[index].1).value {
            below.remove(rest);
        }
    }
}

fn descend(
    node: &mut Arc<Node>,
    name: &str,
    path: &[Segment<'_>],
    origin: &Range<usize>,
    value: Arc<Node>,
) -> Result<(), String> {
    let Some((segment, rest)) = path.split_first() else {
        *node = value;
        return Ok(());
    };
    match (segment, &mut Arc::make_mut(node).value) {
        (Segment::Key(_), Value::Table(table)) => table.set(path, origin, value),
        (Segment::Index(index), Value::Array(array)) => {
            let length = array.len();
            let element = array.get_mut(*index).ok_or_else(|| match length {
                1 => format!("`{name}` has 1 element, and its index is 0"),
                n => format!("`{name}` has {n} elements, with indices from 0 to {}", n.saturating_sub(1)),
            })?;
            descend(element, name, rest, origin, value)
        }
        (Segment::Key(key), Value::Array(_)) => {
            Err(format!("`{name}` is an array; write `{name}[0].{key}` for its first element"))
        }
        (Segment::Index(_), _) => Err(format!("`{name}` is not an array")),
        (Segment::Key(key), _) => Err(format!("`{name}` is a single value and has no `{key}`")),
    }
}

/// Parses the text of a study. Syntax errors are reported, the first of each line.
pub(crate) fn parse(text: &str, diagnostics: &mut Diagnostics) -> Table {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut errors: Vec<_> = errors.into_iter().map(|error| (error.span().unwrap_or(0..0), error)).collect();
    errors.sort_by_key(|(span, _)| span.start);
    let mut lines: Vec<usize> = Vec::new();
    let mut repeated_section = 0..0;
    for (span, error) in errors {
        let line = diagnostics.line_column(&span).0;
        let mistake = Mistake::at(text, &span);
        let repeated = mistake == Mistake::Repeated;
        if lines.contains(&line) || (repeated && repeated_section.contains(&span.start)) {
            continue;
        }
        lines.push(line);
        let line_start = text.get(..span.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        if repeated && text[line_start..].trim_start().starts_with('[') {
            // The keys of a repeated section are no further mistakes.
            let length = text[span.start..].find("\n[").unwrap_or(text.len() - span.start);
            repeated_section = span.start..span.start + length;
        }
        diagnostics.push(mistake.diagnostic(error.message()).at(span));
    }
    table(document.get_ref(), diagnostics)
}

/// A mistake in the syntax, by what stands where it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    /// A well-formed key at a place for keys: it can only be wrong in being there twice.
    Repeated,
    /// Nothing, or a word without quotes, at a place for values.
    Unquoted,
    Other,
}

impl Mistake {
    fn at(text: &str, span: &Range<usize>) -> Self {
        let blank = [' ', '\t'];
        let (Some(before), Some(word), Some(after)) =
            (text.get(..span.start), text.get(span.clone()), text.get(span.end..))
        else {
            return Self::Other;
        };
        let (before, after) = (before.trim_end_matches(blank), after.trim_start_matches(blank));
        let line = before.rsplit('\n').next().unwrap_or(before).trim_start_matches(blank);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let is_word = !word.is_empty() && word.chars().all(is_plain);
        let is_quoted = word.len() > 1 && word.starts_with(['"', '\'']) && word.ends_with(['"', '\'']);
        let is_header = line.starts_with('[') && !line.contains(['=', ',']);
        let of_value = before.ends_with('=');
        if (is_word || is_quoted)
            && !of_value
            && (after.starts_with(['=', '.']) || (is_header && after.starts_with(']')))
        {
            return Self::Repeated;
        }
        let of_element =
            before.trim_end().ends_with(['[', ',']) && after.trim_start().starts_with([',', ']']);
        let is_missing = word.is_empty() && (after.is_empty() || after.starts_with(['\n', '\r', '#']));
        let is_bare = word.starts_with(|c: char| c.is_alphanumeric() || "/._-".contains(c));
        if (of_value && (is_missing || is_bare)) || (of_element && is_bare) {
            return Self::Unquoted;
        }
        Self::Other
    }

    fn diagnostic(self, message: &str) -> Diagnostic {
        match self {
            Self::Repeated => Diagnostic::error("this key or section is given twice")
                .help("keep one of the two, or give the second another name"),
            Self::Unquoted => Diagnostic::error("a value is missing, or a string that is not in quotes")
                .help("strings, sizes and durations are written in quotes: `\"64KiB\"`, `\"30s\"`"),
            Self::Other => Diagnostic::error(format!("the file is not TOML: {message}")),
        }
    }
}

fn table(table: &DeTable<'_>, diagnostics: &mut Diagnostics) -> Table {
    let entries = table.iter().map(|(key, node)| {
        let key = Key { name: key.get_ref().to_string(), span: key.span(), by_level: false };
        (key, value(node, diagnostics))
    });
    Table(entries.collect())
}

fn value(node: &Spanned<DeValue<'_>>, diagnostics: &mut Diagnostics) -> Arc<Node> {
    let mut too_large = |what: &str, limit: &str| {
        let error = Diagnostic::error(format!("the {what} is too large")).at(node.span());
        diagnostics.push(error.help(format!("the largest is {limit}")));
    };
    let value = match node.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(integer) => {
            let number = i64::from_str_radix(integer.as_str(), integer.radix());
            Value::Integer(number.unwrap_or_else(|_| {
                too_large("integer", "9223372036854775807");
                0
            }))
        }
        DeValue::Float(float) => {
            let number = float.as_str().parse::<f64>().unwrap_or(f64::INFINITY);
            if number.is_infinite() && !float.as_str().contains("inf") {
                too_large("number", "1.8e308");
            }
            Value::Float(number)
        }
        DeValue::Boolean(boolean) => Value::Boolean(*boolean),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(elements) => Value::Array(array(elements, diagnostics)),
        DeValue::Table(entries) => Value::Table(table(entries, diagnostics)),
    };
    Node::new(node.span(), value)
}

fn array(elements: &DeArray<'_>, diagnostics: &mut Diagnostics) -> Vec<Arc<Node>> {
    elements.iter().map(|element| value(element, diagnostics)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Table {
        let mut diagnostics = Diagnostics::new("a.toml", text);
        let tree = parse(text, &mut diagnostics);
        assert!(diagnostics.is_empty(), "{diagnostics}");
        tree
    }

    #[test]
    fn values_are_set_and_what_they_do_not_touch_is_shared() {
        let text = "[w]\na = 1\n[[w.g]]\nx = 1\n[v]\n";
        let file = tree(text);
        let mut table = file.clone();
        let set = |table: &mut Table, path: &str, n| {
            table.set(&path::parse(path).unwrap(), &(90..95), Node::new(7..8, Value::Integer(n)))
        };
        for (path, n) in [("w.a", 2), ("w.b.c", 3), ("w.g[0].x", 4), ("w.g[0]", 5)] {
            set(&mut table, path, n).unwrap();
            assert_eq!(table.at(path).unwrap().value, Value::Integer(n), "{path}");
        }
        assert_eq!(table.find(&path::parse("w.a").unwrap()).unwrap().0, &(90..95));
        assert!(table.at("w.g[1]").is_none());
        assert_eq!(file, tree(text), "the file stays as it is");
        assert!(Arc::ptr_eq(file.get("v").unwrap(), table.get("v").unwrap()));
        assert!(!Arc::ptr_eq(file.get("w").unwrap(), table.get("w").unwrap()));
        table.remove(&path::parse("w.a").unwrap());
        assert!(table.at("w.a").is_none());
        let error = |path: &str| set(&mut file.clone(), path, 1).unwrap_err();
        assert_eq!(error("w.g[1].x"), "`g` has 1 element, and its index is 0");
        assert_eq!(error("w.g.x"), "`g` is an array; write `g[0].x` for its first element");
        assert_eq!(error("w.a.x"), "`a` is a single value and has no `x`");
        assert_eq!(error("w[0]"), "`w` is not an array");
    }

    /// The parser gives words and a span; the mistake is known by what stands there.
    #[test]
    fn mistakes_are_known_by_their_place() {
        for (text, mistake) in [
            ("a = 1\na = 2\n", "given twice"),
            ("\"a b\" = 1\n\"a b\" = 2\n", "given twice"),
            ("a = { b = 1, b = 2 }\n", "given twice"),
            ("[t]\nx = 1\n[t]\nx = 2\n", "given twice"),
            ("[t.u]\nx = 1\n[ t.u ] # again\n", "given twice"),
            ("[[t]]\nx = 1\n[t]\n", "given twice"),
            ("a.b = 1\na.b = 2\n", "given twice"),
            ("a = 1\na.b = 2\n", "given twice"),
            ("a = 64KiB\n", "not in quotes"),
            ("a = KiB # size\n", "not in quotes"),
            ("a =\n", "not in quotes"),
            ("a = # nothing\n", "not in quotes"),
            ("a = [2s, 3s]\n", "not in quotes"),
            ("a = [\n  fast,\n  slow\n]\n", "not in quotes"),
            ("a = { b = fast }\n", "not in quotes"),
            ("a 1\n", "not TOML"),
            ("a = \"b\n", "not TOML"),
            ("é = 1\n", "not TOML"),
            ("[t\nx = 1\n", "not TOML"),
        ] {
            let mut diagnostics = Diagnostics::new("a.toml", text);
            parse(text, &mut diagnostics);
            let found = diagnostics.to_string();
            assert!(found.lines().next().is_some_and(|line| line.contains(mistake)), "{text}: {found}");
        }
    }

    #[test]
    fn the_nearest_span_of_a_path() {
        let text = "[w]\na = { b = [1, 2] }\n[[w.g]]\nx = 1\n";
        let at = |part: &str| text.find(part).map(|start| start..start + part.len()).unwrap();
        for (path, part) in [
            ("w.g[0].missing", "[[w.g]]"),
            ("w.missing", "[w]"),
            ("w.a.b", "b"),
            ("w.a.b[1]", "2"),
            ("w.not a name", "[w]"),
        ] {
            assert_eq!(tree(text).span_of(path), at(part), "{path}");
        }
        assert_eq!(tree(text).span_of("v"), 0..0);
    }

    #[test]
    fn numbers_that_are_too_large() {
        for text in ["a = 9223372036854775808", "a = 1e400", "a = [{ b = 0xffffffffffffffff }]"] {
            let mut diagnostics = Diagnostics::new("a.toml", text);
            parse(text, &mut diagnostics);
            assert!(diagnostics.to_string().contains("too large"), "{text}: {diagnostics}");
        }
    }
}
