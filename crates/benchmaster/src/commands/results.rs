//! `analyze`, `report`, `export`: what is done with a results directory.

use std::fs;
use std::path::{Path, PathBuf};

use benchmaster_analysis::{Analysis, analyze_with};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::results::diagnose;
use benchmaster_record::results::StudyResults;
use benchmaster_report::details::ResultsDirectory;
use benchmaster_report::export::{self, Format};
use benchmaster_report::html;
use benchmaster_report::terminal::{self, TextOptions};
use benchmaster_store::{DatabaseError, LoadError, Store};
use serde::Serialize;

use crate::cli::{AnalyzeArgs, ExportArgs, ExportFormat, ReportArgs};
use crate::commands::analyze_data;
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<Status> {
    if let Some(data) = &args.data {
        return analyze_data::analyze(data, args);
    }
    let Some(directory) = &args.directory else {
        return Err(Failure::wrong_input(anyhow::anyhow!(
            "name a results directory, or a CSV file with `--data`"
        )));
    };
    let results = load(directory)?;
    let mut options = analyze_data::options(&args.model)?;
    options.confidence = args.model.confidence.unwrap_or(results.study.confidence);
    let response = args.model.response.as_deref();
    let analysis = analyze_with(&results, response, &options).map_err(Failure::wrong_input)?;
    let diagnosis = diagnose(&results, &analysis, &ResultsDirectory(directory.clone()));
    if args.json {
        print_json(&analysis, &diagnosis)?
    } else {
        let options = output::text_options();
        output::print(&terminal::analysis_text(&results, &analysis, &diagnosis, &options))?;
    }
    Ok(status(&analysis))
}

pub(crate) fn report(args: &ReportArgs) -> Result<Status> {
    let results = load(&args.directory)?;
    let (analysis, diagnosis) = found(&args.directory, &results);
    let path = args.output.clone().unwrap_or_else(|| args.directory.join(REPORT));
    let written = write_report(&args.directory, &results, &analysis, &diagnosis, &path);
    written.map_err(|failure| match &args.output {
        Some(_) => failure.of_a_place_given(),
        None => failure,
    })?;
    print_summary(&args.directory, &results, &analysis, &diagnosis, Some(path))?;
    Ok(status(&analysis))
}

pub(crate) fn export(args: &ExportArgs) -> Result<Status> {
    let results = load(&args.directory)?;
    if args.output.as_deref() == Some(Path::new("-")) {
        match args.format {
            ExportFormat::Json => {
                let (_, diagnosis) = found(&args.directory, &results);
                output::print_json(&export::export_json(&results, &diagnosis).map_err(Failure::failed)?)?;
            }
            ExportFormat::Csv => {
                let mut text = Vec::new();
                export::responses_csv(&results, &mut text).map_err(Failure::failed)?;
                output::print(&String::from_utf8_lossy(&text))?;
            }
            ExportFormat::Markdown => {
                let (analysis, diagnosis) = found(&args.directory, &results);
                output::print(&export::markdown(&results, &analysis, &diagnosis))?;
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
        ExportFormat::Markdown => Format::Markdown,
    };
    let out = args.output.clone().unwrap_or_else(|| args.directory.join("export"));
    let files = export::export(&results, &ResultsDirectory(args.directory.clone()), format, &out)
        .map_err(|error| Failure::failed(error).of_a_place_given())?;
    let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    output::print(&lines)?;
    Ok(Status::Fine)
}

/// What results say, and what was found in them.
pub(crate) fn found(directory: &Path, results: &StudyResults) -> (Analysis, Diagnosis) {
    benchmaster_diagnosis::results::found(results, &ResultsDirectory(directory.into()))
}

const REPORT: &str = "report.html";

/// Writes the report of a results directory to its place in it.
pub(crate) fn write_report_into(
    directory: &Path,
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
) -> Result<PathBuf> {
    let path = directory.join(REPORT);
    write_report(directory, results, analysis, diagnosis, &path)?;
    Ok(path)
}

fn write_report(
    directory: &Path,
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    path: &Path,
) -> Result<()> {
    let details = ResultsDirectory(directory.into());
    let page = html::render(results, analysis, diagnosis, &details).map_err(Failure::failed)?;
    write_page(path, &page)
}

/// Prints the summary of a results directory.
pub(crate) fn print_summary(
    directory: &Path,
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    report: Option<PathBuf>,
) -> Result<()> {
    let options = TextOptions { report, directory: Some(directory.into()), ..output::text_options() };
    output::print(&terminal::summary(results, analysis, diagnosis, &options))
}

/// Prints what results say, and what was found in them.
pub(crate) fn print_json(analysis: &Analysis, diagnosis: &Diagnosis) -> Result<()> {
    #[derive(Serialize)]
    struct Printed<'a> {
        #[serde(flatten)]
        analysis: &'a Analysis,
        diagnosis: &'a Diagnosis,
    }
    output::print_json(&Printed { analysis, diagnosis })
}

/// Writes a page to its place.
pub(crate) fn write_page(path: &Path, page: &str) -> Result<()> {
    // A page that is there is complete.
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
    Store::load(directory).map_err(load_failure)
}

pub(crate) fn load_failure(error: LoadError) -> Failure {
    match error {
        LoadError::Missing(_) => Failure::wrong_input(error),
        LoadError::Database(ref database) if is_wrong_directory(database) => Failure::wrong_input(error),
        error => Failure::failed(error),
    }
}

/// Whether a database is none that this program can use, as opposed to one that it cannot use just now.
pub(crate) fn is_wrong_directory(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Foreign { .. } | DatabaseError::Version { .. })
}

/// Whether the measurement passed its own checks.
pub(crate) fn status(analysis: &Analysis) -> Status {
    let sound =
        analysis.failed == 0 && analysis.excluded == 0 && analysis.errors == 0 && analysis.damage.is_empty();
    if sound { Status::Fine } else { Status::ChecksFailed }
}
