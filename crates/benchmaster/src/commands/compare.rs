//! `compare`: two results directories against each other.

use benchmaster_analysis::compare::{self, Comparison, Options, Responses};
use benchmaster_report::html::{self, Compared};
use benchmaster_report::terminal;

use crate::cli::{CompareArgs, FailOn};
use crate::commands::results::{found, load, write_page};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn compare(args: &CompareArgs) -> Result<Status> {
    let (a, b) = (load(&args.a)?, load(&args.b)?);
    for (directory, results) in [(&args.a, &a), (&args.b, &b)] {
        if !results.runs.iter().any(benchmaster_analysis::counts) {
            let message = format!("`{}` has no run that counts; run the study first", directory.display());
            return Err(Failure::wrong_input(anyhow::anyhow!(message)));
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
        let found = [found(&args.a, &a), found(&args.b, &b)];
        let names = [&args.a, &args.b].map(|directory| directory.display().to_string());
        let [first, second] = [&a, &b];
        let of = |n: usize, results| {
            let (analysis, diagnosis) = &found[n];
            Compared { name: &names[n], results, analysis, diagnosis }
        };
        let page = html::compare(&comparison, of(0, first), of(1, second)).map_err(Failure::failed)?;
        write_page(path, &page).map_err(Failure::of_a_place_given)?;
    }
    if args.json {
        output::print_json(&comparison)?
    } else {
        output::print(&terminal::comparison_text(&comparison, &output::text_options()))?
    }
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
