//! `compare`: two results directories against each other.

use benchmaster_analysis::compare::{self, Comparison, Options, Responses};
use benchmaster_report::pages::{self, Compared};

use crate::cli::{CompareArgs, FailOn};
use crate::commands::results::{Found, load, write_page};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn compare(args: &CompareArgs) -> Result<Status> {
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    for (directory, results) in [(&args.a, &a), (&args.b, &b)] {
        if !results.runs.iter().any(benchmaster_analysis::counts) {
            let message = format!("`{}` has no run that counts; run the study first", directory.display());
            return Err(Failure::wrong(message));
        }
    }
    let responses = match args.response.as_slice() {
        [] => Responses::Headlines,
        [all] if all == "all" => Responses::All,
        names => Responses::Named(names.to_vec()),
    };
    let options = Options { responses, band: args.band, confidence: args.confidence };
    let comparison = compare::compare(&a, &b, &options, args.force).map_err(Failure::wrong_input)?;
    if let Some(path) = &args.output {
        let found = [Found::of(&args.a, a), Found::of(&args.b, b)];
        let names = [&args.a, &args.b].map(|directory| directory.display().to_string());
        let sides = [0, 1].map(|n| {
            let Found { results, analysis, diagnosis, .. } = &found[n];
            Compared { name: &names[n], results, analysis, diagnosis }
        });
        let page = pages::comparison(&comparison, Some(sides));
        write_page(path, page).map_err(Failure::of_a_place_given)?;
    }
    output::document(args.json, &comparison, || pages::comparison(&comparison, None))?;
    Ok(status(&comparison, args.fail_on))
}

fn status(comparison: &Comparison, fail_on: FailOn) -> Status {
    let fails = match fail_on {
        FailOn::Never => false,
        FailOn::Worse => comparison.worse(),
        FailOn::Changed => comparison.changed(),
        FailOn::Undecided => comparison.changed() || comparison.undecided(),
    };
    if fails { Status::ChecksFailed } else { Status::Fine }
}
