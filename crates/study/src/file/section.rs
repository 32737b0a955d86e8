//! Reads one table of the file into its type, and turns every mistake in it into a diagnostic.

use std::ops::Range;

use benchmaster_record::model::{RepeatUntil, SizeDistribution};
use benchmaster_units::ByteSize;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue, Error, ValueDeserializer};

use super::design::{ConfoundedBlocks, NamedBlock, ReplicateBlocks, SequentialReplicates};
use super::path::{self, Node};
use super::words;
use crate::diagnostics::{Diagnostic, Diagnostics};

/// A file whose tables are being read.
pub(crate) struct Reader<'a, 't> {
    /// The whole file; with the levels of one treatment put into their places, if it is a treatment that is read.
    pub(crate) tree: &'a DeTable<'t>,
    /// Places of the paths by which levels were put into the tree.
    pub(crate) overlaid: &'a [Range<usize>],
    /// What may be missing because a factor sets it.
    pub(crate) gaps: Gaps,
    /// Where mistakes go.
    pub(crate) found: &'a mut Diagnostics,
}

/// What may be missing from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Gaps {
    /// Anything: what the factors set is not known.
    Any,
    /// Parameters that factors set, and what lies around or below them.
    Only(Vec<String>),
}

impl Gaps {
    /// Nothing may be missing.
    pub(crate) const NONE: Self = Self::Only(Vec::new());

    /// Whether what is at `path` may be missing.
    pub(crate) fn allow(&self, path: &str) -> bool {
        let below = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        match self {
            Self::Any => true,
            Self::Only(set) => set.iter().any(|known| below(known, path) || below(path, known)),
        }
    }
}

impl<'t> Reader<'_, 't> {
    /// Reads the table at `section`. `None` when there is a mistake in it, which has then been reported.
    pub(crate) fn read<T: DeserializeOwned>(&mut self, section: &str, node: &Node<'t>) -> Option<T> {
        self.read_with(section, node, |node| T::deserialize(ValueDeserializer::from(node)))
    }

    /// The same with another way to read it.
    ///
    /// A deserializer stops at the first mistake. To find the others too, the key with the mistake is removed and the
    /// rest read again.
    pub(crate) fn read_with<T>(
        &mut self,
        section: &str,
        node: &Node<'t>,
        read: impl Fn(Node<'t>) -> Result<T, Error>,
    ) -> Option<T> {
        if !self.is_table(section, node) {
            return None;
        }
        let mut rest = node.clone();
        let mut removed: Vec<String> = Vec::new();
        loop {
            let error = match read(rest.clone()) {
                Ok(value) => return removed.is_empty().then_some(value),
                Err(error) => error,
            };
            let place = error.span().unwrap_or_else(|| node.span());
            let gap = ticked(error.message(), "missing field ").is_some_and(|key| {
                let around = path::path_at(self.tree, &place).unwrap_or_else(|| section.to_owned());
                removed.iter().any(|gone| stands_for(gone, key))
                    || self.gaps.allow(&format!("{around}.{key}"))
            });
            if !gap {
                let diagnostic = self.explain(section, &error, place.clone());
                self.found.push(diagnostic);
            }
            match remove_key_around(&mut rest, &place) {
                Some(key) => removed.push(key),
                None => return None,
            }
        }
    }

    /// Whether a node is a table; reports it otherwise.
    pub(crate) fn is_table(&mut self, section: &str, node: &Node<'_>) -> bool {
        let is_table = node.get_ref().is_table();
        if !is_table {
            let what = node.get_ref().type_str();
            self.found.push(
                Diagnostic::error(format!("`{section}` must be a table, not {} {what}", article(what)))
                    .at(node.span())
                    .help(format!("write a section `[{section}]` with keys below it")),
            );
        }
        is_table
    }

    /// The place in the tree that is nearest to `path`.
    pub(crate) fn place(&self, path: &str) -> Range<usize> {
        let at = |path| path::parse(path).and_then(|segments| path::place(self.tree, &segments));
        // Names that are wrong make paths that are none; what lies around them has a place nevertheless.
        let outer = path.match_indices('.').map(|(dot, _)| &path[..dot]).rev();
        std::iter::once(path).chain(outer).find_map(at).unwrap_or(0..0)
    }

    fn explain(&self, section: &str, error: &Error, place: Range<usize>) -> Diagnostic {
        let path = path::path_at(self.tree, &place).unwrap_or_else(|| section.to_owned());
        let message = error.message();
        let diagnostic = if let Some(key) = ticked(message, "unknown field ") {
            self.unknown_key(&path, key, &expected(message), &place)
        } else if let Some(value) = ticked(message, "unknown variant ") {
            unknown_value(&path, value, &expected(message))
        } else if let Some(key) = ticked(message, "missing field ") {
            Diagnostic::error(format!("`{path}` lacks the key `{key}`")).help(missing_help(&path, key))
        } else if let Some(name) = message.strip_prefix("data did not match any variant of untagged enum ") {
            return self.explain_alternatives(section, name, &path, place);
        } else if let Some((found, wanted)) = wrong_type(message) {
            Diagnostic::error(format!("`{path}` must be {}, not {found}", type_words(wanted)))
        } else if message == "wanted string or table" {
            Diagnostic::error(format!("`{path}` must be a text in quotes"))
        } else if let Some((problem, fix)) = message.split_once("; ") {
            Diagnostic::error(format!("`{path}`: {problem}")).help(fix)
        } else {
            Diagnostic::error(format!("`{path}`: {message}"))
        };
        diagnostic.at(place)
    }

    fn unknown_key(&self, path: &str, key: &str, keys: &[&str], place: &Range<usize>) -> Diagnostic {
        let parent = path.rsplit_once('.').map_or("", |(parent, _)| parent);
        if self.overlaid.contains(place) {
            let help = match words::nearest(key, keys.iter().copied()) {
                Some(meant) => format!("did you mean `{parent}.{meant}`?"),
                None => format!("parameters of `{parent}`: {}", words::quoted(keys)),
            };
            return Diagnostic::error(format!("there is no parameter `{path}`")).help(help);
        }
        Diagnostic::error(format!("unknown key `{key}` in `{parent}`")).help(words::suggest(
            key,
            "known keys",
            keys.iter().copied(),
        ))
    }

    /// A value that fits none of the forms its parameter may have: it is read again in the form it was probably meant in,
    /// for a message that says more.
    fn explain_alternatives(&self, section: &str, name: &str, path: &str, place: Range<usize>) -> Diagnostic {
        let node =
            path::parse(path).and_then(|segments| path::find(self.tree, &segments)).map(|(_, node)| node);
        let again = node.and_then(|node| match (name, node.get_ref()) {
            ("Size", DeValue::Table(_)) => retry::<SizeDistribution>(node),
            ("Size", _) => retry::<ByteSize>(node),
            ("Repeat", DeValue::String(_)) => retry::<RepeatUntil>(node),
            ("Repeat", _) => retry::<u64>(node),
            ("Replicates", DeValue::Table(_)) => retry::<SequentialReplicates>(node),
            ("Replicates", _) => retry::<u32>(node),
            ("Blocks", DeValue::Table(_)) => retry::<ConfoundedBlocks>(node),
            ("Blocks", DeValue::Array(_)) => retry::<Vec<NamedBlock>>(node),
            ("Blocks", DeValue::String(_)) => retry::<ReplicateBlocks>(node),
            _ => None,
        });
        let diagnostic = match again {
            Some(error) => {
                let place = error.span().unwrap_or_else(|| place.clone());
                self.explain(section, &error, place)
            }
            None => Diagnostic::error(format!("`{path}` has none of the forms it may have")).at(place),
        };
        match name {
            "Size" if diagnostic.help.is_none() => diagnostic.help(
                "write a size such as `\"64KiB\"`, or a distribution such as \
                 `{ distribution = \"uniform\", min = \"1KiB\", max = \"1MiB\" }` (also `gamma`, `log-normal`, `weighted`)",
            ),
            "Repeat" if diagnostic.help.is_none() => diagnostic.help("write a number of times or `\"end-of-file\"`"),
            "Blocks" if diagnostic.help.is_none() => diagnostic.help(
                "write `\"replicates\"`, `{ count = 4 }`, or tables `[[design.blocks]]` with `name`, `at` and `set`",
            ),
            "LevelWord" if diagnostic.help.is_none() => diagnostic.help("write the name of a level"),
            "Replicates" if diagnostic.help.is_none() => {
                diagnostic.help("write a number such as `5`, or `{ min = 5, max = 30, relative_half_width = 0.05 }`")
            }
            _ => diagnostic,
        }
    }
}

/// Whether a key that was removed for its mistake was meant to be `key`, which then is not missing as well.
fn stands_for(removed: &str, key: &str) -> bool {
    removed == key || words::nearest(removed, [key]).is_some()
}

fn retry<T: DeserializeOwned>(node: &Node<'_>) -> Option<Error> {
    T::deserialize(ValueDeserializer::from(node.clone())).err()
}

fn unknown_value(path: &str, value: &str, values: &[&str]) -> Diagnostic {
    Diagnostic::error(format!("unknown value `{value}` for `{path}`")).help(words::suggest(
        value,
        "known values",
        values.iter().copied(),
    ))
}

fn missing_help(path: &str, key: &str) -> String {
    match (path, key) {
        ("study", "name") => "add `name = \"my-study\"`".into(),
        (path, "groups" | "filesets") if path.starts_with("workload.") => {
            format!("a workload without `use` is written in full and needs `{key}`")
        }
        (_, "distribution") => "one of `uniform`, `gamma`, `log-normal`".into(),
        _ => format!("add `{key} = …`"),
    }
}

/// The word in backticks after `prefix`.
fn ticked<'m>(message: &'m str, prefix: &str) -> Option<&'m str> {
    message.strip_prefix(prefix)?.strip_prefix('`')?.split('`').next()
}

/// The words in backticks after `expected`.
fn expected(message: &str) -> Vec<&str> {
    let list = message.split_once("expected ").map_or("", |(_, list)| list);
    list.split('`').skip(1).step_by(2).collect()
}

/// Splits `invalid type: integer `3`, expected a string`.
fn wrong_type(message: &str) -> Option<(String, &str)> {
    let rest =
        ["invalid type: ", "invalid value: "].iter().find_map(|prefix| message.strip_prefix(prefix))?;
    let (found, wanted) = rest.rsplit_once(", expected ")?;
    let found = match found {
        "map" => "a table".to_owned(),
        "sequence" => "an array".to_owned(),
        found => {
            let found = found.replacen("floating point", "number", 1).replacen("string", "text", 1);
            format!("the {found}")
        }
    };
    Some((found, wanted))
}

fn type_words(wanted: &str) -> String {
    match wanted {
        "u32" => "a whole number from 0 to 4294967295".into(),
        "u64" | "usize" => "a whole number, 0 or more".into(),
        "f64" => "a number".into(),
        "a string" | "string" => "a text in quotes".into(),
        "a boolean" => "`true` or `false`".into(),
        "a sequence" => "an array".into(),
        "a map" => "a table".into(),
        wanted if wanted.starts_with("struct ") => "a table".into(),
        wanted if wanted.starts_with("internally tagged enum") => "a table".into(),
        wanted => wanted.into(),
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// Removes the key of a table in whose entry the place lies.
fn remove_key_around(node: &mut Node<'_>, place: &Range<usize>) -> Option<String> {
    let DeValue::Table(table) = node.get_mut() else { return None };
    let key = table
        .iter()
        .find(|(key, value)| key.span() == *place || path::covers(value, place))
        .map(|(key, _)| key.get_ref().to_string())?;
    table.remove(key.as_str());
    Some(key)
}
