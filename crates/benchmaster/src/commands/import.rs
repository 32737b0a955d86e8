//! `import`: job files of other tools as studies.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use anyhow::Context;
use benchmaster_import::{ImportError, Imported, NoteKind, filebench, fio, pcap, strace, to_study};
use benchmaster_units::ByteSize;
use benchmaster_workload::replay::{self, Where};
use serde::Serialize;

use crate::cli::{ImportArgs, ImportCommon, ImportFile, ImportFormat, ImportPcap, ImportStrace};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn import(args: &ImportArgs) -> Result<Status> {
    match &args.format {
        ImportFormat::Fio(args) => {
            let ImportFile { file, common } = &args.file;
            let here = Here::beside(file, args.size.map(ByteSize::bytes));
            let imported = fio::import(&file.to_string_lossy(), &read(file)?, &here);
            finish(file, imported, common)
        }
        ImportFormat::Filebench(args) => {
            let text = read(&args.file)?;
            finish(&args.file, filebench::import(&args.file.to_string_lossy(), &text), &args.common)
        }
        ImportFormat::Strace(args) => import_strace(args),
        ImportFormat::Pcap(args) => import_pcap(args),
    }
}

/// Reads a trace and writes the study that replays it.
fn import_strace(args: &ImportStrace) -> Result<Status> {
    let place = Where::new(args.root.as_deref(), args.cwd.as_deref());
    let place = place.map_err(Failure::wrong_input)?;
    let plan = replay::load(&args.file, &place).map_err(Failure::wrong_input)?;
    let wanted = strace::Wanted {
        trace: args.file.to_string_lossy().into_owned(),
        root: args.root.clone(),
        cwd: args.cwd.clone(),
        target: args.target.clone(),
    };
    let traced = strace::import(&plan, wanted);
    deliver(args.json, &traced, &traced.study, args.output.as_deref())?;
    for (what, count) in &traced.left_out {
        output::note(&format!("{}: not replayed: {count} × {what}", args.file.display()));
    }
    Ok(if args.strict && !traced.left_out.is_empty() { Status::ChecksFailed } else { Status::Fine })
}

#[derive(Debug, Serialize)]
struct Capture<'a> {
    capture: &'a pcap::Captured,
    #[serde(flatten)]
    traced: &'a strace::Traced,
}

/// Writes the calls of a capture as a trace, and the study that replays it.
fn import_pcap(args: &ImportPcap) -> Result<Status> {
    let beside = || PathBuf::from(format!("{}.strace", args.file.display()));
    let path = args.trace.clone().unwrap_or_else(beside);
    let capture = File::open(&args.file)
        .with_context(|| format!("cannot read {}", args.file.display()))
        .map_err(Failure::wrong_input)?;
    let written = |error: io::Error| {
        let error = anyhow::Error::new(error).context(format!("cannot write {}", path.display()));
        Failure::failed(error).of_a_place_given()
    };
    let mut text = Vec::new();
    let captured = pcap::convert(BufReader::with_capacity(1 << 20, capture), &mut text)
        .with_context(|| format!("cannot import {}", args.file.display()))
        .map_err(Failure::wrong_input)?;
    std::fs::write(&path, text).map_err(written)?;
    let place = Where::new(Some(pcap::ROOT), None).map_err(Failure::wrong_input)?;
    let plan = replay::load(&path, &place).map_err(Failure::wrong_input)?;
    let wanted = strace::Wanted {
        trace: path.to_string_lossy().into_owned(),
        root: Some(pcap::ROOT.to_owned()),
        cwd: None,
        target: args.target.clone(),
    };
    let traced = strace::import(&plan, wanted);
    let document = Capture { capture: &captured, traced: &traced };
    deliver(args.json, &document, &traced.study, args.output.as_deref())?;
    let unusable = captured.unusable.iter().map(|(what, count)| format!("not used: {count} × {what}"));
    let left_out = captured.left_out.iter().chain(&traced.left_out);
    let left_out = left_out.map(|(what, count)| format!("not replayed: {count} × {what}"));
    unusable.chain(left_out).for_each(|note| output::note(&format!("{}: {note}", args.file.display())));
    let complete = captured.unusable.is_empty() && traced.left_out.is_empty();
    Ok(if args.strict && !complete { Status::ChecksFailed } else { Status::Fine })
}

/// Reads a job file.
pub(crate) fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(path)
        .with_context(|| format!("cannot read {}", path.display()))
        .map_err(Failure::wrong_input)?;
    String::from_utf8(bytes).map_err(|_| Failure::wrong(format!("{} is not UTF-8 text", path.display())))
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    imported: &'a Imported,
    study: &'a str,
}

/// Writes the study and reports what it leaves out.
pub(crate) fn finish(
    file: &Path,
    imported: std::result::Result<Imported, ImportError>,
    args: &ImportCommon,
) -> Result<Status> {
    let mut imported = imported.map_err(|error| mistakes(file, &error))?;
    if let Some(target) = &args.target {
        imported.directory = Some(target.clone());
    }
    let study = to_study(&imported);
    let document = Document { imported: &imported, study: &study };
    deliver(args.json, &document, &study, args.output.as_deref())?;
    for note in &imported.notes {
        let listed = matches!(note.kind, NoteKind::Approximated | NoteKind::Unsupported);
        if listed || args.verbose {
            output::note(&format!("{}: {note}", file.display()));
        }
    }
    let unmet = imported.unmet().count();
    if unmet > 0 {
        output::note(&format!(
            "{}: {unmet} {} not supported or only approximated",
            file.display(),
            if unmet == 1 { "option is" } else { "options are" }
        ));
    }
    Ok(if args.strict && unmet > 0 { Status::ChecksFailed } else { Status::Fine })
}

/// Writes a study to its file, or prints it; as JSON it is printed in any case.
fn deliver(json: bool, document: &impl Serialize, study: &str, file: Option<&Path>) -> Result<()> {
    if json || file.is_none() {
        output::answer(json, document, || study.to_owned())?;
    }
    let Some(path) = file else { return Ok(()) };
    std::fs::write(path, study)
        .with_context(|| format!("cannot write {}", path.display()))
        .map_err(|error| Failure::failed(error).of_a_place_given())
}

fn mistakes(file: &Path, error: &ImportError) -> Failure {
    let lines: Vec<String> =
        error.mistakes.iter().map(|mistake| format!("error: {}: {mistake}", file.display())).collect();
    let failure = Failure::wrong(format!("{} has mistakes", file.display()));
    Failure { rendered: Some(lines.join("\n")), ..failure }
}

/// This host and its environment; included files are looked for beside the job file.
struct Here {
    directory: PathBuf,
    existing_size: Option<u64>,
}

impl Here {
    fn beside(file: &Path, existing_size: Option<u64>) -> Self {
        Self { directory: file.parent().unwrap_or(Path::new(".")).to_owned(), existing_size }
    }
}

impl fio::Surroundings for Here {
    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }

    fn include(&self, path: &str) -> io::Result<String> {
        let beside = self.directory.join(path);
        std::fs::read_to_string(if beside.exists() { &beside } else { Path::new(path) })
    }

    fn existing_size(&self) -> Option<u64> {
        self.existing_size
    }

    fn keyword(&self, keyword: fio::Keyword) -> u64 {
        match keyword {
            fio::Keyword::PageSize => rustix::param::page_size() as u64,
            fio::Keyword::MemoryMib => {
                let info = rustix::system::sysinfo();
                info.totalram.saturating_mul(info.mem_unit.into()) >> 20
            }
            fio::Keyword::Processors => {
                std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
            }
        }
    }
}
