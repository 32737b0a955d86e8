//! `analyze`, `report`, `export`: what is done with a results directory.

use std::fs;
use std::path::{Path, PathBuf};

use benchmaster_report::export::{self, Format};
use benchmaster_report::html::{self, ResultsDirectory};
use benchmaster_report::terminal;
use benchmaster_store::record::StudyResults;
use benchmaster_store::{DatabaseError, LoadError, Store};
use benchmaster_study::analysis::{Analysis, analyze as analysis_of};

use crate::cli::{AnalyzeArgs, ExportArgs, ExportFormat, ReportArgs};
use crate::commands::{Failure, Result, Status};
use crate::output;

pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<Status> {
    let results = load(&args.directory)?;
    let analysis = analysis_of(&results);
    match args.json {
        true => output::print_json(&analysis)?,
        false => output::print(&terminal::analysis_text(&results, &analysis, &output::text_options()))?,
    }
    Ok(status(&analysis))
}

pub(crate) fn report(args: &ReportArgs) -> Result<Status> {
    let results = load(&args.directory)?;
    let analysis = analysis_of(&results);
    let path = args.output.clone().unwrap_or_else(|| args.directory.join(REPORT));
    write_report(&args.directory, &results, &analysis, &path).map_err(|failure| match &args.output {
        Some(_) => failure.of_a_place_given(),
        None => failure,
    })?;
    output::print(&path.display().to_string())?;
    Ok(status(&analysis))
}

pub(crate) fn export(args: &ExportArgs) -> Result<Status> {
    let results = load(&args.directory)?;
    if args.output.as_deref() == Some(Path::new("-")) {
        match args.format {
            ExportFormat::Json => {
                output::print_json(&export::export_json(&results).map_err(Failure::failed)?)?;
            }
            ExportFormat::Csv => {
                let mut text = Vec::new();
                export::responses_csv(&results, &mut text).map_err(Failure::failed)?;
                output::print(&String::from_utf8_lossy(&text))?;
            }
            ExportFormat::Parquet => {
                let error = anyhow::anyhow!("Parquet is not printed; name a directory with `-o`");
                return Err(Failure::wrong_input(error));
            }
        }
        return Ok(Status::Fine);
    }
    let format = match args.format {
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Json => Format::Json,
        ExportFormat::Parquet => Format::Parquet,
    };
    let out = args.output.clone().unwrap_or_else(|| args.directory.join("export"));
    let files =
        export::export(&results, format, &out).map_err(|error| Failure::failed(error).of_a_place_given())?;
    let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    output::print(&lines)?;
    Ok(Status::Fine)
}

const REPORT: &str = "report.html";

/// Writes the report of a results directory to its place in it.
pub(crate) fn write_report_into(
    directory: &Path,
    results: &StudyResults,
    analysis: &Analysis,
) -> Result<PathBuf> {
    let path = directory.join(REPORT);
    write_report(directory, results, analysis, &path)?;
    Ok(path)
}

fn write_report(directory: &Path, results: &StudyResults, analysis: &Analysis, path: &Path) -> Result<()> {
    let page =
        html::render(results, analysis, &ResultsDirectory(directory.into())).map_err(Failure::failed)?;
    // A page that is there is whole: nobody opens half a report.
    let partial = path.with_extension("html.partial");
    let written = fs::write(&partial, page).and_then(|()| fs::rename(&partial, path));
    written.map_err(|error| {
        // The reason is the first error; a left-over file is only untidy.
        let _ = fs::remove_file(&partial);
        let message = format!("cannot write `{}`: {error}", path.display());
        Failure::failed(anyhow::Error::new(error).context(message))
    })
}

/// Reads a results directory.
pub(crate) fn load(directory: &Path) -> Result<StudyResults> {
    Store::load(directory).map_err(|error| match error {
        LoadError::Missing(_) => Failure::wrong_input(error),
        LoadError::Database(ref database) if is_wrong_directory(database) => Failure::wrong_input(error),
        error => Failure::failed(error),
    })
}

/// Whether a database is none that this program can use, as opposed to one that it cannot use just now.
pub(crate) fn is_wrong_directory(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Foreign { .. } | DatabaseError::Newer { .. })
}

/// Whether the measurement passed its own checks.
pub(crate) fn status(analysis: &Analysis) -> Status {
    let sound =
        analysis.failed == 0 && analysis.excluded == 0 && analysis.errors == 0 && analysis.damage.is_empty();
    if sound { Status::Fine } else { Status::ChecksFailed }
}
