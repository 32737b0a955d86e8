//! Reads one table of the file into its type, and turns every mistake in it into a diagnostic.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::deserialize::{Deserializer, Fault, Mistake, UnknownKeys};
use super::tree::{Node, Table, Value};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::path;
use crate::suggest;

/// A file whose tables are being read.
pub(crate) struct Reader<'a> {
    /// The whole file; of a treatment, with its levels.
    pub(crate) tree: &'a Table,
    /// What may be missing because a factor sets it.
    pub(crate) gaps: Gaps,
    pub(crate) diagnostics: &'a mut Diagnostics,
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
    pub(crate) const NONE: Self = Self::Only(Vec::new());

    /// Whether what is at `path` may be missing.
    pub(crate) fn allow(&self, path: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(set) => {
                set.iter().any(|known| path::is_within(known, path) || path::is_within(path, known))
            }
        }
    }
}

impl Reader<'_> {
    /// Reads the table at `section`. `None` when there is a mistake in it, which has then been reported.
    pub(crate) fn read<T: DeserializeOwned>(&mut self, section: &str, node: &Arc<Node>) -> Option<T> {
        self.read_with(section, node, |table| T::deserialize(table))
    }

    /// The same with another function that reads it.
    ///
    /// Deserializing stops at the first mistake in a value. To report the others too, each key is then read by itself,
    /// and those that are right are read together, which shows what is missing.
    pub(crate) fn read_with<T>(
        &mut self,
        section: &str,
        node: &Arc<Node>,
        read: impl Fn(Deserializer<'_>) -> Result<T, Mistake>,
    ) -> Option<T> {
        let table = self.table(section, node)?;
        let unknown = UnknownKeys::default();
        if let Ok(value) = read(Deserializer::new(node, section, &unknown))
            && unknown.borrow().is_empty()
        {
            return Some(value);
        }
        let read_keys = |wanted: &dyn Fn(&str) -> bool| {
            let keys = Node::new(node.span.clone(), Value::Table(table.filtered(wanted)));
            read(Deserializer::new(&keys, section, &unknown)).err()
        };
        let mut wrong: Vec<&str> = Vec::new();
        for key in table.keys() {
            let mistake = read_keys(&|name| name == key.name);
            // Other keys of the section are missing here, of course.
            let in_key = |(path, _): &(String, _)| path != section;
            if let Some(mistake) = mistake.filter(|mistake| mistake.location.as_ref().is_some_and(in_key)) {
                self.report(mistake);
                wrong.push(&key.name);
            }
        }
        if let Some(mistake) = read_keys(&|name| !wrong.contains(&name)) {
            let stands_for = |missing| wrong.iter().any(|key| suggest::is_like(key, missing));
            if !matches!(mistake.fault, Fault::MissingKey(key) if stands_for(key)) {
                self.report(mistake);
            }
        }
        for mistake in unknown.take() {
            self.report(mistake);
        }
        None
    }

    /// The table that a section is; a section of another type is reported.
    pub(crate) fn table<'n>(&mut self, section: &str, node: &'n Node) -> Option<&'n Table> {
        let table = node.table();
        if table.is_none() {
            let message = format!("`{section}` must be a table, not {}", node.value.type_name());
            let help = format!("write a section `[{section}]` with keys below it");
            self.diagnostics.error(&node.span, message, help);
        }
        table
    }

    /// Reports what is wrong at a path.
    pub(crate) fn report_at(&mut self, path: &str, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic.at(self.tree.span_of(path)));
    }

    /// Reports an error at a path.
    pub(crate) fn error(&mut self, path: &str, message: impl Into<String>, help: impl Into<String>) {
        self.report_at(path, Diagnostic::error(message).help(help));
    }

    fn report(&mut self, mistake: Mistake) {
        let Some((path, span)) = mistake.location else { return };
        let diagnostic = match mistake.fault {
            Fault::Misspelt => return,
            Fault::MissingKey(key) if self.gaps.allow(&format!("{path}.{key}")) => return,
            Fault::MissingKey(key) => {
                Diagnostic::error(format!("`{path}` lacks the key `{key}`")).help(missing_help(&path, key))
            }
            Fault::UnknownKey { key, known } if mistake.by_level => {
                let help = match suggest::nearest(&key, known.iter().copied()) {
                    Some(meant) => format!("did you mean `{path}.{meant}`?"),
                    None => format!("parameters of `{path}`: {}", suggest::quoted(known)),
                };
                Diagnostic::error(format!("unknown parameter `{path}.{key}`")).help(help)
            }
            Fault::UnknownKey { key, known } => unknown_key(&key, &path, known),
            Fault::UnknownWord { word, known } => Diagnostic::error(format!(
                "unknown value `{word}` for `{path}`"
            ))
            .help(suggest::suggest(&word, "known values", known.iter().copied())),
            Fault::WrongType { found, expected } => {
                Diagnostic::error(format!("`{path}` must be {expected}, not {found}"))
            }
            Fault::Other(message) => match message.split_once("; ") {
                Some((problem, fix)) => Diagnostic::error(format!("`{path}`: {problem}")).help(fix),
                None => Diagnostic::error(format!("`{path}`: {message}")),
            },
        };
        self.diagnostics.push(diagnostic.at(span));
    }
}

/// A key that its table does not know.
pub(crate) fn unknown_key(key: &str, table: &str, known: &[&str]) -> Diagnostic {
    let help = suggest::suggest(key, "known keys", known.iter().copied());
    Diagnostic::error(format!("unknown key `{key}` in `{table}`")).help(help)
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
