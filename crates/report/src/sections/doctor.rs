//! What a host can do.

use benchmaster_record::results::Severity;
use serde::Serialize;

use crate::document::{Block, Cell, Document, Section, Table};

/// Something that a host can do or cannot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ability {
    /// What is looked at.
    pub what: &'static str,
    /// What needs it.
    pub purpose: &'static str,
    pub works: bool,
    /// What was found.
    pub found: String,
    /// The command that mends it; `None` where it works or no command can.
    pub fix: Option<String>,
}

/// All abilities, with the fixes of those that are missing.
pub fn document(host: &str, abilities: &[Ability]) -> Document {
    let missing: Vec<&Ability> = abilities.iter().filter(|one| !one.works).collect();
    let title = match missing.len() {
        0 => format!("{host} can do all that was looked at"),
        n => format!("{host}: {n} of {} are missing", abilities.len()),
    };
    let table = Table::of("", abilities)
        .column("what", |one| Cell::name(one.what))
        .column("", |one| {
            if one.works { Cell::text("ok") } else { Cell::text("MISSING").marked(Some(Severity::Warning)) }
        })
        .column("for", |one| Cell::text(one.purpose))
        .column("found", |one| Cell::text(&one.found))
        .table();
    let fixes = missing.iter().filter_map(|one| Some(format!("{}: {}", one.what, one.fix.as_ref()?)));
    let fixes: Vec<String> = fixes.collect();
    let mut sections = vec![Section::new("abilities", "What this host can do").brief([table])];
    if !fixes.is_empty() {
        sections.push(Section::new("fixes", "To mend what is missing").brief([Block::List(fixes)]));
    }
    Document { kind: "Benchmaster doctor", title, lead: Vec::new(), sections }
}
