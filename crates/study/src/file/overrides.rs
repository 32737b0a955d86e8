//! Values that take the place of the file's, from the command line: they are written into the text of the study, so that
//! what is stored, shown and resumed is what was run.

use toml_edit::{DocumentMut, Item, Table, Value};

use crate::path::{self, Segment};
use crate::settings::alternatives;
use crate::target::TargetError;

/// A value for a parameter.
#[derive(Debug, Clone)]
pub struct Override {
    path: String,
    /// `None`: a section that is only to be there.
    value: Option<Value>,
}

/// Why a value could not be put into a study.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// It is not written as `KEY=VALUE`.
    #[error(
        "`{text}` is not of the form KEY=VALUE; write for example `design.replicates=10` or `target.path=/mnt/x`"
    )]
    Form { text: String },
    /// The key is no path.
    #[error("`{path}` is not the path of a parameter; separate names by dots, as in `workload.read.io_size`")]
    Path { path: String },
    /// A target that is none.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A part of the path leads nowhere.
    #[error("`{path}` cannot be set: `{part}` is {what}")]
    Nowhere {
        path: String,
        /// What of it leads nowhere.
        part: String,
        what: &'static str,
    },
}

impl Override {
    /// Reads `KEY=VALUE`. A value that is no TOML is a text, so that texts need no quotes within those of the shell:
    /// `target.path=/mnt/x`, `workload.read.io_size=64KiB`, `factors.clients.levels=[1, 2]`.
    ///
    /// # Errors
    /// When there is no `=`, or no path before it.
    pub fn parse(text: &str) -> Result<Self, OverrideError> {
        let (path, value) =
            text.split_once('=').ok_or_else(|| OverrideError::Form { text: text.to_owned() })?;
        let (path, value) = (path.trim(), value.trim());
        let value = value.parse().unwrap_or_else(|_| Value::from(value));
        Self::checked(path, value)
    }

    /// A text for a parameter.
    ///
    /// # Errors
    /// When the path is none.
    pub fn text(path: &str, text: &str) -> Result<Self, OverrideError> {
        Self::checked(path, Value::from(text))
    }

    /// A section that is made if it is not there.
    pub fn section(name: &str) -> Self {
        Self { path: name.to_owned(), value: None }
    }

    fn checked(path: &str, value: Value) -> Result<Self, OverrideError> {
        match path::parse(path) {
            Some(_) => Ok(Self { path: path.to_owned(), value: Some(value) }),
            None => Err(OverrideError::Path { path: path.to_owned() }),
        }
    }
}

/// The text of a study with these values in it. A text that is not TOML stays as it is, for its mistakes to be reported where
/// they are.
///
/// # Errors
/// When a path leads through something that is no table.
pub(super) fn apply(text: &str, overrides: &[Override]) -> Result<String, OverrideError> {
    if overrides.is_empty() {
        return Ok(text.to_owned());
    }
    let Ok(mut document) = text.parse::<DocumentMut>() else { return Ok(text.to_owned()) };
    for change in overrides {
        let Some(value) = &change.value else {
            if document.get(&change.path).is_none() {
                document.insert(&change.path, Item::Table(Table::new()));
            }
            continue;
        };
        for other in alternatives(&change.path) {
            remove(document.as_table_mut(), other);
        }
        if matches!(&*change.path, "target.path" | "target.mount") {
            remove_options(document.as_table_mut());
        }
        set(document.as_item_mut(), change, value)?;
    }
    Ok(document.to_string())
}

/// All other keys of `[target]` are options of the user-space client, which takes no part any more.
fn remove_options(document: &mut Table) {
    if let Some(target) = document.get_mut("target").and_then(Item::as_table_like_mut) {
        let keys: Vec<_> = target.iter().map(|(key, _)| key.to_owned()).collect();
        for key in keys.iter().filter(|key| !matches!(key.as_str(), "path" | "mount")) {
            target.remove(key);
        }
    }
}

fn remove(document: &mut Table, path: &str) {
    if let Some((section, key)) = path.split_once('.')
        && let Some(section) = document.get_mut(section).and_then(Item::as_table_like_mut)
    {
        section.remove(key);
    }
}

fn set(document: &mut Item, change: &Override, value: &Value) -> Result<(), OverrideError> {
    let path = &change.path;
    let segments = path::parse(path).ok_or_else(|| OverrideError::Path { path: path.clone() })?;
    let nowhere = |part: &Segment<'_>, what| {
        let part = match part {
            Segment::Key(key) => (*key).to_owned(),
            Segment::Index(index) => format!("[{index}]"),
        };
        OverrideError::Nowhere { path: path.clone(), part, what }
    };
    let Some((last, way)) = segments.split_last() else { return Ok(()) };
    let mut place = document;
    for segment in way {
        place = child(place, segment).map_err(|what| nowhere(segment, what))?;
        if !(place.is_table_like() || place.is_array() || place.is_array_of_tables()) {
            return Err(nowhere(segment, "a value, not a table or an array"));
        }
    }
    if matches!(last, Segment::Index(_)) && !place.is_array() {
        return Err(nowhere(last, "a table"));
    }
    *child(place, last).map_err(|what| nowhere(last, what))? = Item::Value(value.clone());
    Ok(())
}

/// What a part of a path leads to, or why it leads nowhere. Missing tables are added.
fn child<'d>(place: &'d mut Item, segment: &Segment<'_>) -> Result<&'d mut Item, &'static str> {
    match segment {
        Segment::Key(key) => {
            let table = place.as_table_like_mut().ok_or("a key in an array: say which entry, from [0] on")?;
            if table.get(key).is_none() {
                let mut section = Table::new();
                // Written only when it gets keys of its own.
                section.set_implicit(true);
                table.insert(key, Item::Table(section));
            }
            table.get_mut(key).ok_or("not there")
        }
        Segment::Index(_) if place.is_table_like() => Err("an index into a table, not an array"),
        Segment::Index(index) => place.get_mut(*index).ok_or("not there"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY: &str = r#"# What it is for.
[study]
name = "s"                      # its name

[target]
url = "nfs://{server}/export"
cache = "linux"

[workload.write]
use = "sequential-write"

[[workload.mix.groups]]
name = "a"
flow = [{ op = "read", io_size = "4KiB" }]
"#;

    fn with(changes: &[&str]) -> String {
        let changes: Vec<_> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
        apply(STUDY, &changes).unwrap()
    }

    #[test]
    fn values_are_put_where_they_belong_and_comments_stay() {
        let text = with(&[
            "study.scale=0.01",
            "design.replicates=1",
            "workload.write.io_size=1MiB",
            "workload.mix.groups[0].workers=4",
            "workload.mix.groups[0].flow[0].io_size=64KiB",
            "factors.clients.levels=[1, 2]",
        ]);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_section_is_made_where_there_is_none() {
        let lab = |study: &str| {
            apply(study, &[Override::section("lab"), Override::parse("lab.threads=4").unwrap()])
        };
        assert!(lab(STUDY).unwrap().ends_with("\n[lab]\nthreads = 4\n"), "{}", lab(STUDY).unwrap());
        let text = apply(STUDY, &[Override::section("lab")]).unwrap();
        assert!(text.ends_with("[lab]\n"), "{text}");
        assert_eq!(apply(&text, &[Override::section("lab")]).unwrap(), text);
    }

    #[test]
    fn a_place_takes_the_place_of_another() {
        let text = with(&["target.path=/mnt/x"]);
        assert!(text.contains("[target]\npath = \"/mnt/x\"\n"), "{text}");
        let text = with(&["target.url=nfs://filer/vol1"]);
        assert!(text.contains("cache = \"linux\"") && text.contains("url = \"nfs://filer/vol1\""), "{text}");
    }

    #[test]
    fn what_cannot_be_set_is_named() {
        for wrong in ["study.name", "=1", "a b=1", "x[=1"] {
            assert!(Override::parse(wrong).is_err(), "{wrong}");
        }
        for (change, part) in [
            ("study.name.first=1", "`name` is a value"),
            ("workload.mix.groups[3].name=b", "`[3]` is not there"),
            ("workload.mix.groups.name=b", "`name` is a key in an array"),
            ("workload.mix.groups[0].flow[7].op=read", "`[7]` is not there"),
            ("workload[0]=1", "`[0]` is a table"),
        ] {
            let error = apply(STUDY, &[Override::parse(change).unwrap()]).unwrap_err().to_string();
            assert!(error.contains(part), "{change}: {error}");
        }
        assert_eq!(apply("no toml", &[Override::parse("a=1").unwrap()]).unwrap(), "no toml");
    }
}
