//! Tables of what becomes of names: options, commands.

use serde::Deserialize;

use crate::NoteKind;

/// What becomes of a name, and why or how; `None` where it depends on its value.
pub(crate) type Fate = Option<(NoteKind, &'static str)>;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Fates {
    rows: Vec<Row>,
}

#[derive(Debug, Deserialize)]
struct Row {
    kind: Option<NoteKind>,
    #[serde(default)]
    why: String,
    /// Separated by spaces; those of one thing by `|`, its canonical one first.
    names: String,
}

impl Fates {
    /// The table of a text that this program contains; a test reads each.
    pub(crate) fn read(text: &str) -> Self {
        toml::from_str(text).unwrap_or_default()
    }

    /// The canonical name of a thing and what becomes of it.
    pub(crate) fn find(&'static self, name: &str) -> Option<(&'static str, Fate)> {
        self.rows.iter().find_map(|row| {
            let aliases =
                row.names.split_whitespace().find(|one| one.split('|').any(|alias| alias == name))?;
            let canonical = aliases.split('|').next()?;
            Some((canonical, row.kind.map(|kind| (kind, row.why.as_str()))))
        })
    }

    pub(crate) fn names(&'static self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().flat_map(|row| row.names.split_whitespace()).flat_map(|one| one.split('|'))
    }
}
