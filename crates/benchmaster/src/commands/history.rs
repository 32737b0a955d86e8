//! `history`: where a series of results changes.

use std::collections::BTreeSet;
use std::path::Path;

use benchmaster_analysis::compare::{self, HistoryOptions, HistoryPoint, Series};
use benchmaster_record::results::StudyResults;
use benchmaster_report::pages;
use benchmaster_store::{LoadError, Store};

use crate::cli::{FailOn, HistoryArgs};
use crate::commands::data::Csv;
use crate::commands::results::{load_failure, write_page};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn history(args: &HistoryArgs) -> Result<Status> {
    let series = match (&args.data, &args.response) {
        (Some(file), Some(response)) => vec![of_file(file, response)?],
        _ => of_directories(args)?,
    };
    let options = HistoryOptions { p_max: args.p_max, min_change: args.min_change };
    let history = compare::history(series, &options).map_err(Failure::wrong_input)?;
    if let Some(path) = &args.output {
        write_page(path, pages::history(&history)).map_err(Failure::of_a_place_given)?;
    }
    output::document(args.json, &history, || pages::history(&history))?;
    let fails = match args.fail_on {
        FailOn::Regression => history.changed(args.recent, true),
        FailOn::Changed => history.changed(args.recent, false),
        _ => false,
    };
    Ok(if fails { Status::ChecksFailed } else { Status::Fine })
}

fn of_directories(args: &HistoryArgs) -> Result<Vec<Series>> {
    let mut results = Vec::with_capacity(args.directories.len());
    let mut strays = Vec::new();
    for directory in &args.directories {
        match Store::load(directory) {
            Ok(found) => results.push((directory.display().to_string(), found)),
            // A pattern such as `results/n*` matches other things as well.
            Err(error @ LoadError::Missing(_)) => strays.push(error),
            Err(error) => return Err(load_failure(error)),
        }
    }
    if results.is_empty()
        && let Some(error) = strays.pop()
    {
        return Err(Failure::wrong_input(error));
    }
    strays.iter().for_each(|error| output::note(&format!("skipped: {error}")));
    results.sort_by_key(|(_, one)| one.runs.iter().map(|run| run.started).min());
    tell_machines(&results);
    let series = compare::series_of(&results, args.response.as_deref());
    if series.is_empty() {
        let what = match &args.response {
            Some(name) => format!("the response `{name}`"),
            None => "the primary response".into(),
        };
        return Err(Failure::wrong(format!(
            "no run that counts has {what}; `analyze` lists those of a results directory"
        )));
    }
    Ok(series)
}

/// Says where results come from other machines than those before them: what changes there need not be what is measured.
fn tell_machines(results: &[(String, StudyResults)]) {
    for pair in results.windows(2) {
        let [(_, before), (name, after)] = pair else { continue };
        let (before, after) = (compare::machines_of(before), compare::machines_of(after));
        if before != after && !before.is_empty() && !after.is_empty() {
            let text = |machines: BTreeSet<String>| machines.into_iter().collect::<Vec<_>>().join("; ");
            output::note(&format!(
                "the machines differ from `{name}` on: {}, before {}",
                text(after),
                text(before)
            ));
        }
    }
}

/// A column of a CSV file. Rows are named by their line.
fn of_file(file: &Path, response: &str) -> Result<Series> {
    let csv = Csv::read(file)?;
    let values = csv.numbers(response)?;
    let point = |(value, line): (f64, &u64)| HistoryPoint {
        label: format!("line {line}"),
        started: None,
        runs: 1,
        value,
        error: None,
    };
    let points = values.into_iter().zip(&csv.lines).map(point).collect();
    Ok(Series { response: response.to_owned(), unit: None, cell: None, points })
}
