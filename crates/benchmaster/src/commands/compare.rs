//! `compare`: two results directories against each other.

use std::path::Path;

use benchmaster_analysis::compare::{self, Comparison, Options, Responses, compare_levels};
use benchmaster_record::results::StudyResults;
use benchmaster_report::Document;
use benchmaster_report::pages::{self, Compared};

use crate::cli::{CompareArgs, FailOn};
use crate::commands::results::{Found, load, write_page};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn compare(args: &CompareArgs) -> Result<Status> {
    let responses = match args.response.as_slice() {
        [] => Responses::Headlines,
        names if names.iter().any(|name| name == "all") => Responses::All,
        names => Responses::Named(names.to_vec()),
    };
    let options = Options { responses, band: args.band, confidence: args.confidence };
    let a = measured(&args.a)?;
    let (comparison, other) = if let Some(b) = &args.b {
        let other = measured(b)?;
        let comparison = compare::compare(&a, &other, &options, args.force).map_err(Failure::wrong_input)?;
        (comparison, Some((b, other)))
    } else {
        let factor = args.factor.as_deref().unwrap_or_default();
        (compare_levels(&a, factor, &options).map_err(Failure::wrong_input)?, None)
    };
    if let Some(path) = &args.output {
        let page = match other {
            Some((b, other)) => sides(&comparison, [&args.a, b], [a, other]),
            None => pages::comparison(&comparison, None),
        };
        write_page(path, page).map_err(Failure::of_a_place_given)?;
    }
    output::document(args.json, &comparison, || pages::comparison(&comparison, None))?;
    Ok(status(&comparison, args.fail_on))
}

/// Results with something to compare.
fn measured(directory: &Path) -> Result<StudyResults> {
    let results = load(directory)?;
    if results.runs.iter().any(benchmaster_analysis::counts) {
        return Ok(results);
    }
    let message = format!("`{}` has no run that counts; run the study first", directory.display());
    Err(Failure::wrong(message))
}

/// The page of two results with both sides.
fn sides(comparison: &Comparison, directories: [&Path; 2], results: [StudyResults; 2]) -> Document {
    let [a, b] = results;
    let found = [Found::of(directories[0], a), Found::of(directories[1], b)];
    let names = directories.map(|directory| directory.display().to_string());
    let sides = [0, 1].map(|n| {
        let Found { results, analysis, diagnosis, .. } = &found[n];
        Compared { name: &names[n], results, analysis, diagnosis }
    });
    pages::comparison(comparison, Some(sides))
}

pub(crate) fn status(comparison: &Comparison, fail_on: FailOn) -> Status {
    let fails = match fail_on {
        FailOn::Never => false,
        FailOn::Worse => comparison.worse(),
        FailOn::Changed => comparison.changed(),
        FailOn::Undecided => comparison.changed() || comparison.undecided(),
    };
    if fails { Status::ChecksFailed } else { Status::Fine }
}
