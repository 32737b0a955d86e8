//! What lies in a directory of results.

use std::path::{Path, PathBuf};

use benchmaster_record::results::SessionEnd;
use benchmaster_store::outline::Outline;
use serde::Serialize;

use crate::document::{Cell, Document, Section, Table};
use crate::format;

/// A results directory in a list.
#[derive(Debug, Clone, Serialize)]
pub struct Kept {
    pub directory: PathBuf,
    /// `None` where it cannot be read.
    pub outline: Option<Outline>,
    /// Why it cannot.
    pub error: Option<String>,
}

impl Kept {
    fn state(&self) -> Cell {
        let Some(found) = &self.outline else {
            return Cell::text(self.error.clone().unwrap_or_default());
        };
        Cell::text(match found.end {
            Some(SessionEnd::Complete) if found.failed > 0 => {
                format!("complete, {}", format::plural(found.failed as usize, "failed run"))
            }
            Some(SessionEnd::Complete) => "complete".into(),
            Some(SessionEnd::Stopped) => "interrupted".into(),
            Some(SessionEnd::Failed) => "failed".into(),
            None => "running, or killed".into(),
        })
    }
}

/// A list of results.
pub fn document(directory: &Path, kept: &[Kept]) -> Document {
    let found =
        |cell: fn(&Outline) -> Cell| move |one: &&Kept| one.outline.as_ref().map_or_else(Cell::none, cell);
    let all: u64 = kept.iter().filter_map(|one| Some(one.outline.as_ref()?.bytes)).sum();
    let title = format!(
        "{} in {}, {}",
        if kept.len() == 1 { "1 result".into() } else { format!("{} results", kept.len()) },
        directory.display(),
        format::bytes(all as f64)
    );
    let table = Table::of("", kept)
        .column("directory", |one| Cell::name(one.directory.display().to_string()))
        .column("study", found(|one| Cell::text(&one.study)))
        .column(
            "begun|1",
            found(|one| {
                Cell::text(
                    one.began.map_or_else(String::new, |time| time.strftime("%Y-%m-%d %H:%M").to_string()),
                )
            }),
        )
        .column("#runs", found(|one| Cell::whole(Some(one.runs.into()))))
        .column("state", |one| one.state())
        .column("#size", found(|one| Cell::number(format::bytes(one.bytes as f64), one.bytes as f64)))
        .column("tag", found(|one| Cell::text(one.tag.clone().unwrap_or_default())))
        .filled();
    let sections = vec![Section::new("results", "Results").brief(table)];
    Document { kind: "Benchmaster results", title, lead: Vec::new(), sections }
}
