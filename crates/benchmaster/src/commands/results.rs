//! `analyze`, `report`, `export`: what is done with a results directory.

use std::path::{Path, PathBuf};

use benchmaster_analysis::{self as analysis, Analysis, analyze_with};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::results::diagnose;
use benchmaster_record::results::StudyResults;
use benchmaster_report::details::ResultsDirectory;
use benchmaster_report::export::{self, Format};
use benchmaster_report::terminal::{TextOptions, summary};
use benchmaster_report::verdicts::{self, Verdict};
use benchmaster_report::{Document, pages};
use benchmaster_store::{DatabaseError, LoadError, Store};
use serde::Serialize;

use crate::cli::{AnalyzeArgs, ExportArgs, ExportFormat, FailOn, ReportArgs};
use crate::commands::analyze_data;
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<Status> {
    if let Some(data) = &args.data {
        return analyze_data::analyze(data, args);
    }
    let Some(directory) = &args.directory else {
        return Err(Failure::wrong("name a results directory, or a CSV file with `--data`"));
    };
    let results = load(directory)?;
    let mut options = analyze_data::options(&args.model)?;
    options.confidence = args.model.confidence.unwrap_or(results.study.confidence);
    let response = args.model.response.as_deref();
    let analysis = analyze_with(&results, response, &options).map_err(Failure::wrong_input)?;
    let found = Found::by(directory, results, analysis);
    output::document(args.json, &found.answer(), || found.document())?;
    Ok(found.status())
}

pub(crate) fn report(args: &ReportArgs) -> Result<Status> {
    let found = Found::load(&args.directory)?;
    let path = match &args.output {
        None => found.write_report()?,
        Some(path) => {
            write_page(path, found.page()).map_err(Failure::of_a_place_given)?;
            path.clone()
        }
    };
    found.print_summary(Some(path))?;
    Ok(found.status())
}

pub(crate) fn export(args: &ExportArgs) -> Result<Status> {
    let results = load(&args.directory)?;
    if args.output.as_deref() == Some(Path::new("-")) {
        match args.format {
            ExportFormat::Json => {
                let found = Found::of(&args.directory, results);
                let document = export::export_json(&found.results, &found.diagnosis);
                output::print_json(&document?)?;
            }
            ExportFormat::Csv => {
                let mut text = Vec::new();
                export::responses_csv(&results, &mut text)?;
                output::print(&String::from_utf8_lossy(&text))?;
            }
            ExportFormat::Markdown => {
                output::print(&Found::of(&args.directory, results).document().markdown())?;
            }
            ExportFormat::Parquet => {
                return Err(Failure::wrong("Parquet is not printed; name a directory with `-o`"));
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
    let files = export::export(&results, &ResultsDirectory::new(&args.directory), format, &out)
        .map_err(|error| Failure::failed(error).of_a_place_given())?;
    let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
    output::print(&lines)?;
    Ok(Status::Fine)
}

/// A results directory, what its results say, and what was found in them.
pub(crate) struct Found {
    directory: ResultsDirectory,
    pub(crate) results: StudyResults,
    pub(crate) analysis: Analysis,
    pub(crate) diagnosis: Diagnosis,
}

/// What is printed as JSON.
#[derive(Serialize)]
pub(crate) struct Answer<'a> {
    #[serde(flatten)]
    analysis: &'a Analysis,
    diagnosis: &'a Diagnosis,
}

impl Found {
    pub(crate) fn load(directory: &Path) -> Result<Self> {
        Ok(Self::of(directory, load(directory)?))
    }

    pub(crate) fn of(directory: &Path, results: StudyResults) -> Self {
        let analysis = analysis::analyze(&results);
        Self::by(directory, results, analysis)
    }

    fn by(directory: &Path, results: StudyResults, analysis: Analysis) -> Self {
        let directory = ResultsDirectory::new(directory);
        let diagnosis = diagnose(&results, &analysis, &directory);
        Self { directory, results, analysis, diagnosis }
    }

    pub(crate) fn answer(&self) -> Answer<'_> {
        Answer { analysis: &self.analysis, diagnosis: &self.diagnosis }
    }

    /// Without plots.
    fn document(&self) -> Document {
        pages::study(&self.results, &self.analysis, &self.diagnosis, None)
    }

    fn page(&self) -> Document {
        pages::study(&self.results, &self.analysis, &self.diagnosis, Some(&self.directory))
    }

    /// Writes the report to its place in the directory.
    pub(crate) fn write_report(&self) -> Result<PathBuf> {
        let path = self.directory.path().join("report.html");
        write_page(&path, self.page())?;
        Ok(path)
    }

    pub(crate) fn print_summary(&self, report: Option<PathBuf>) -> Result<()> {
        output::print(&self.summary(report))
    }

    pub(crate) fn summary(&self, report: Option<PathBuf>) -> String {
        let directory = Some(self.directory.path().to_owned());
        let options = TextOptions { report, directory, ..output::text_options() };
        summary(&self.results, &self.analysis, &self.diagnosis, &options)
    }

    /// Whether the measurement passed its own checks.
    pub(crate) fn status(&self) -> Status {
        let Analysis { failed, excluded, errors, damage, .. } = &self.analysis;
        let sound = *failed == 0 && *excluded == 0 && *errors == 0 && damage.is_empty();
        if sound { Status::Fine } else { Status::ChecksFailed }
    }

    /// The same as verdicts, with warnings where they count.
    pub(crate) fn verdicts(&self, fail_on: &[FailOn]) -> Vec<Verdict> {
        verdicts::of_checks("checks", &self.analysis, |outcome| {
            FailOn::Invalid.includes(outcome) || fail_on.iter().any(|one| one.includes(outcome))
        })
    }
}

/// Writes a page to its place.
pub(crate) fn write_page(path: &Path, page: Document) -> Result<()> {
    write(path, &page.page()?)
}

pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    output::replace(path, text).map_err(|error| {
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
