//! What was imported as the text of a study file.

use std::fmt::Write;

use benchmaster_record::model::Workload;
use toml::{Table, Value};

use crate::{Imported, Note, NoteKind};

/// Width of the text, in characters.
const WIDTH: usize = 110;

/// The study file: readable TOML, in which every option that is not supported or only approximated is a comment at the
/// workload it belongs to. Reading it gives the workloads as they are.
pub fn to_study(imported: &Imported) -> String {
    let mut text = String::new();
    section(&mut text, "study");
    key(&mut text, "name", &Value::String(imported.name.clone()));
    if let Some(description) = &imported.description {
        key(&mut text, "description", &Value::String(description.clone()));
    }
    if let Some(seed) = imported.seed.and_then(|seed| i64::try_from(seed).ok()) {
        key(&mut text, "seed", &Value::Integer(seed));
    }
    let target = |note: &&Note| {
        note.workload.is_none() && matches!(note.kind, NoteKind::Approximated | NoteKind::Unsupported)
    };
    for note in imported.notes.iter().filter(target) {
        comment(&mut text, &note.to_string());
    }
    section(&mut text, "target");
    let path = imported.directory.clone().unwrap_or_else(|| ".".into());
    key(&mut text, if path.starts_with("nfs://") { "url" } else { "path" }, &Value::String(path));
    if !imported.run.is_empty() {
        section(&mut text, "run");
        for (name, value) in &imported.run {
            key(&mut text, name, value);
        }
    }
    if let Some(response) = &imported.response {
        section(&mut text, "design");
        key(&mut text, "response", &Value::String(response.clone()));
    }
    for (name, workload) in &imported.workloads {
        section(&mut text, &format!("workload.{name}"));
        for note in imported.unmet().filter(|note| note.workload.as_ref() == Some(name)) {
            comment(&mut text, &note.to_string());
        }
        write_workload(&mut text, name, workload);
    }
    text
}

pub(crate) fn section(text: &mut String, name: &str) {
    let gap = if text.is_empty() { "" } else { "\n" };
    let _ = writeln!(text, "{gap}[{name}]");
}

pub(crate) fn key(text: &mut String, name: &str, value: &Value) {
    let _ = writeln!(text, "{name} = {}", inline(value));
}

fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    // TOML has no control characters, in comments neither.
    let words = words.replace(|c: char| c.is_control() && !c.is_whitespace(), "\u{fffd}");
    for word in words.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH && line.len() > 1 {
            let _ = writeln!(text, "{line}");
            line = String::from("#  ");
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(text, "{line}");
}

/// Scalars first, then filesets, then groups, each step on a line of its own.
fn write_workload(text: &mut String, name: &str, workload: &Workload) {
    let Some(table) = readable(workload) else { return };
    for (name, value) in table.iter().filter(|(name, _)| !["filesets", "groups"].contains(&name.as_str())) {
        key(text, name, value);
    }
    for (fileset, value) in table.get("filesets").and_then(Value::as_table).into_iter().flatten() {
        section(text, &format!("workload.{name}.filesets.{fileset}"));
        keys(text, value);
    }
    for group in table.get("groups").and_then(Value::as_array).into_iter().flatten() {
        section(text, &format!("[workload.{name}.groups]"));
        keys(text, group);
    }
}

fn keys(text: &mut String, table: &Value) {
    for (name, value) in table.as_table().into_iter().flatten() {
        match value {
            Value::Array(steps) if steps.iter().all(Value::is_table) && !steps.is_empty() => {
                let _ = writeln!(text, "{name} = {}", lines(steps, 0));
            }
            value => key(text, name, value),
        }
    }
}

/// The workload as a table without the keys that say nothing: those which may be left out without a change.
fn readable(workload: &Workload) -> Option<Table> {
    let Ok(Value::Table(mut table)) = Value::try_from(workload) else { return None };
    let same = |table: &Table| table.clone().try_into::<Workload>().is_ok_and(|other| other == *workload);
    let mut paths: Vec<Vec<String>> = table.keys().map(|name| vec![name.clone()]).collect();
    for (name, fileset) in table.get("filesets").and_then(Value::as_table).into_iter().flatten() {
        let keys = fileset.as_table().into_iter().flat_map(Table::keys);
        paths.extend(keys.map(|key| vec!["filesets".into(), name.clone(), key.clone()]));
    }
    for (number, group) in table.get("groups").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let keys = group.as_table().into_iter().flat_map(Table::keys);
        paths.extend(keys.map(|key| vec!["groups".into(), number.to_string(), key.clone()]));
    }
    for path in paths {
        let mut shorter = table.clone();
        if remove(&mut shorter, &path).is_some() && same(&shorter) {
            table = shorter;
        }
    }
    Some(table)
}

/// Removes what is at a path of keys and, in arrays, numbers.
fn remove(table: &mut Table, path: &[String]) -> Option<Value> {
    let (last, way) = path.split_last()?;
    let Some((first, rest)) = way.split_first() else { return table.remove(last) };
    let mut place = table.get_mut(first)?;
    for step in rest {
        place = match place {
            Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?)?,
            Value::Table(table) => table.get_mut(step)?,
            _ => return None,
        };
    }
    place.as_table_mut()?.remove(last)
}

/// An array of tables, one on each line; those that nest further are broken where they nest.
fn lines(items: &[Value], depth: usize) -> String {
    let indent = "    ".repeat(depth + 1);
    let mut text = String::from("[\n");
    for item in items {
        let whole = inline(item);
        let item = if indent.len() + whole.len() < WIDTH { whole } else { broken(item, depth + 1) };
        let _ = writeln!(text, "{indent}{item},");
    }
    text + &"    ".repeat(depth) + "]"
}

/// An inline table whose arrays of tables are broken into lines.
fn broken(item: &Value, depth: usize) -> String {
    let Value::Table(table) = item else { return inline(item) };
    let parts = table.iter().map(|(name, value)| match value {
        Value::Array(items) if items.iter().all(Value::is_table) => {
            format!("{} = {}", bare(name), lines(items, depth))
        }
        value => format!("{} = {}", bare(name), inline(value)),
    });
    format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
}

fn inline(value: &Value) -> String {
    match value {
        Value::Table(table) if table.is_empty() => "{}".into(),
        Value::Table(table) => {
            let parts = table.iter().map(|(name, value)| format!("{} = {}", bare(name), inline(value)));
            format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => quoted(text),
        value => value.to_string(),
    }
}

fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(plain) { name.to_owned() } else { quoted(name) }
}

/// A basic string on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_read_back() {
        for text in ["plain", "a \"quoted\" \\ one", "line\nbreak\tand \u{1}", "é"] {
            let table: Table = format!("x = {}", quoted(text)).parse().unwrap();
            assert_eq!(table["x"].as_str(), Some(text));
        }
    }

    #[test]
    fn long_words_do_not_hang_a_comment() {
        let mut text = String::new();
        comment(&mut text, &format!("a {} b", "x".repeat(300)));
        assert!(text.lines().all(|line| line.starts_with('#')));
        assert_eq!(text.lines().count(), 3);
    }

    #[test]
    fn a_comment_has_no_control_characters() {
        let mut text = String::new();
        comment(&mut text, "zonemode=\u{1b}non\u{7f}e\tthat\r\nis");
        assert_eq!(text, "# zonemode=\u{fffd}non\u{fffd}e that is\n");
        assert!(text.parse::<Table>().is_ok());
    }
}
