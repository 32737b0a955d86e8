//! `compare`: two results directories against each other.

use std::path::Path;

use benchmaster_analysis::analyze;
use benchmaster_analysis::compare::{self, Comparison, Options, Responses, compare_levels};
use benchmaster_record::results::StudyResults;
use benchmaster_report::Document;
use benchmaster_report::pages::{self, Compared};
use benchmaster_report::verdicts::{self, Outcome};

use crate::cli::CompareArgs;
use crate::commands::ci;
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
        (compare_levels(&a, factor, &options, args.force).map_err(Failure::wrong_input)?, None)
    };
    let fails = |outcome| args.fail_on.iter().any(|one| one.includes(outcome));
    let mut judged = verdicts::of_comparison(&comparison, fails);
    if fails(Outcome::Warned) {
        let sides = match &other {
            Some((_, b)) => vec![("checks of A", &a), ("checks of B", b)],
            None => vec![("checks", &a)],
        };
        judged
            .extend(sides.into_iter().flat_map(|(name, of)| verdicts::of_checks(name, &analyze(of), fails)));
    }
    if let Some(path) = &args.output {
        let page = match other {
            Some((b, other)) => sides(&comparison, [&args.a, b], [a, other]),
            None => pages::comparison(&comparison, None),
        };
        write_page(path, page).map_err(Failure::of_a_place_given)?;
    }
    output::document(args.json, &comparison, || pages::comparison(&comparison, None))?;
    ci::publish(&judged, &args.ci, args.b.as_deref().unwrap_or(&args.a), args.json)
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
