//! fio's job files, as fio 3.33 reads them.
//!
//! Jobs that run at the same time become the groups of one workload; what `stonewall` and `wait_for` keep apart becomes
//! one workload after the other. Every option has its fate: see the table in `options`.

use benchmaster_record::model::leaves;

use crate::{ImportError, Imported, Mistake, Note, NoteKind, name_of};

mod expression;
pub mod file;
mod files;
mod flow;
pub(crate) mod number;
mod options;
mod reader;
pub(crate) mod spec;
mod stages;

pub use file::{Job, Keyword, Setting, Surroundings};

use files::Files;
use reader::Reader;
use stages::Part;

/// Imports the job file called `name` (a path or a file name, for the study's name) with this `text`.
///
/// # Errors
/// Everything in the file that fio would not accept either, and a file without jobs about files.
pub fn import(name: &str, text: &str, surroundings: &dyn Surroundings) -> Result<Imported, ImportError> {
    let jobs = file::parse(text, surroundings)?;
    let (mut notes, mut mistakes) = (Vec::new(), Vec::new());
    if jobs.is_empty() {
        let message = "the file has no job: begin one with its name in brackets, `[name]`".into();
        mistakes.push(Mistake { file: None, line: 1, text: name.into(), message });
    }
    let mut files = Files::default();
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut seed = None;
    let mut description: Option<String> = None;
    for job in &jobs {
        let mut reader = Reader::new(job, surroundings.existing_size());
        let spec = spec::read(&mut reader);
        seed = seed.or_else(|| reader.size("randseed"));
        description = description.or_else(|| reader.text("description").map(ToOwned::to_owned));
        match spec {
            Some(spec) => {
                let own = files.add(&mut reader, &spec);
                let name = free_name(&spec.name, &parts);
                parts.push(Part { reader, spec, files: own, name, workload: String::new() });
            }
            None => {
                let (of_job, wrong) = reader.finish();
                notes.extend(of_job);
                mistakes.extend(wrong);
            }
        }
    }
    let mut workloads = Vec::new();
    let starts = if parts.is_empty() { Vec::new() } else { stages::begin(&mut parts) };
    for (number, start) in starts.iter().enumerate() {
        let end = starts.get(number + 1).copied().unwrap_or(parts.len());
        let taken = |name: &str| workloads.iter().any(|(other, _)| other == name);
        let of_stage = stages::workloads(&mut parts[*start..end], &files, &taken);
        workloads.extend(of_stage);
    }
    let cached = !parts.is_empty() && parts.iter().all(|part| part.spec.cached);
    // A rate that is given in bytes is answered in bytes.
    let response = workloads.first().and_then(|(name, workload)| {
        let mut of_first = parts.iter().filter(|part| part.workload == *name);
        let is_asked = of_first.all(|part| part.spec.rate_in_bytes);
        let mut steps = workload.groups.iter().flat_map(|group| leaves(&group.flow));
        let moves = steps.any(|step| step.op.is_some_and(|op| op.moves_data()));
        (is_asked && moves).then(|| format!("{name}.throughput"))
    });
    for mut part in parts {
        if part.spec.cached && !cached {
            part.reader.approximated("invalidate", "the cache is emptied before every workload");
        }
        let workload = part.workload;
        let (of_job, wrong) = part.reader.finish();
        notes.extend(of_job.into_iter().map(|note| Note { workload: Some(workload.clone()), ..note }));
        mistakes.extend(wrong);
    }
    if workloads.is_empty() && mistakes.is_empty() {
        mistakes.extend(notes.iter().map(|note| Mistake {
            file: note.file.clone(),
            line: note.line,
            text: note.text.clone(),
            message: note.message.clone(),
        }));
    }
    if !mistakes.is_empty() {
        mistakes.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
        mistakes.dedup();
        return Err(ImportError { mistakes });
    }
    let base = name.rsplit('/').next().unwrap_or(name);
    let mut run = toml::Table::new();
    if !cached {
        run.insert("cache".into(), toml::Value::String("fadvise".into()));
    }
    let count = workloads.len();
    Ok(Imported {
        name: name_of(base.strip_suffix(".fio").unwrap_or(base), "fio"),
        description,
        seed,
        directory: files.directory,
        run,
        response,
        workloads,
        notes: merged(notes, count),
    })
}

/// The job's name, or one like it that no other group has.
fn free_name(job: &str, parts: &[Part<'_>]) -> String {
    let name = name_of(job, "job");
    let taken = |name: &String| parts.iter().any(|part| part.name == *name);
    let short: String = name.chars().take(58).collect();
    let mut others = (2..).map(|number| format!("{short}-{number}"));
    if taken(&name) { others.find(|other| !taken(other)).unwrap_or(short) } else { name }
}

/// Notes in the order of lines; what is said alike about an option of several jobs is said once per workload, and
/// what is said of all of them without any.
fn merged(mut notes: Vec<Note>, workloads: usize) -> Vec<Note> {
    notes.sort_by(|a, b| (&a.file, a.line, &a.text, a.kind).cmp(&(&b.file, b.line, &b.text, b.kind)));
    let alike = |a: &Note, b: &Note| {
        (&a.file, a.line, &a.text, a.kind, &a.message) == (&b.file, b.line, &b.text, b.kind, &b.message)
    };
    let mut kept: Vec<Note> = Vec::new();
    let mut rest = notes.into_iter().peekable();
    while let Some(note) = rest.next() {
        let mut others = vec![note];
        while let Some(next) = rest.next_if(|next| {
            others.first().is_some_and(|first| {
                (&first.file, first.line, &first.text) == (&next.file, next.line, &next.text)
            })
        }) {
            others.push(next);
        }
        while let Some(first) = others.first().cloned() {
            let (same, different): (Vec<Note>, Vec<Note>) =
                others.into_iter().partition(|note| alike(note, &first));
            others = different;
            let mut names: Vec<Option<String>> = same.into_iter().map(|note| note.workload).collect();
            names.dedup();
            let said = matches!(first.kind, NoteKind::Translated | NoteKind::Irrelevant);
            if !said && (names.len() <= 1 || names.len() < workloads) {
                kept.extend(names.into_iter().map(|workload| Note { workload, ..first.clone() }));
            } else if names.len() == 1 {
                kept.push(first);
            } else {
                kept.push(Note { workload: None, ..first });
            }
        }
    }
    kept
}
