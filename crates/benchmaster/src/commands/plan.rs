//! `plan`.

use std::path::Path;

use benchmaster_runner::{emulation_here, missing_targets};
use benchmaster_study::plan::design::request::of_rows;
use benchmaster_study::plan::design::{DesignFactor, DesignInput, Pilot, TextForm, describe};

use crate::cli::PlanArgs;
use crate::commands::data::Csv;
use crate::commands::extend;
use crate::commands::load_plan;
use crate::commands::results::load;
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn plan(args: &PlanArgs) -> Result<Status> {
    if args.study.is_none() && !args.change.is_empty() {
        return Err(Failure::wrong(
            "`--scale`, `--target` and `--set` change a study, and no study is given; name a study file",
        ));
    }
    if let Some(directory) = &args.extension.extend {
        return extend::extend(directory, args);
    }
    let pilot = args.pilot.as_deref().map(|path| pilot(path, args.response.as_deref())).transpose()?;
    let form = TextForm { width: output::text_options().width, all: args.all };
    if let Some(study) = &args.study {
        let plan = load_plan(study, &args.change)?;
        let input = DesignInput { pilot: pilot.as_ref(), ..of_options(plan.design_input(), args) };
        let mut description = plan.describe_here(describe(&input), emulation_here);
        description.warnings.extend(missing_targets(&plan).iter().map(ToString::to_string));
        return output::answer(args.json, &description, || description.render(form));
    }
    let input = match &args.data {
        Some(path) => of_data(path, args)?,
        None => args.request().input().map_err(Failure::wrong_input)?,
    };
    let description = describe(&DesignInput { pilot: pilot.as_ref(), ..of_options(input, args) });
    output::answer(args.json, &description, || description.render(form))
}

/// What is asked for in the same way of every design.
fn of_options<'a>(input: DesignInput<'a>, args: &PlanArgs) -> DesignInput<'a> {
    DesignInput {
        max_order: args.max_order,
        power: args.power,
        spread: args.sd,
        effect: args.effect,
        ..input
    }
}

fn pilot(path: &Path, response: Option<&str>) -> Result<Pilot> {
    Pilot::from_results(&path.display().to_string(), &load(path)?, response).map_err(Failure::wrong_input)
}

/// The rows of a CSV file. Without names, all its columns are factors but those that have another meaning.
fn of_data(path: &Path, args: &PlanArgs) -> Result<DesignInput<'static>> {
    let csv = Csv::read(path)?;
    let named: Vec<(&str, Option<Vec<String>>)> = match &args.factors[..] {
        [] => {
            let columns = csv.columns.iter().map(|column| column.name.as_str());
            let (others, factors): (Vec<_>, Vec<_>) = columns.partition(|name| is_no_factor(name));
            if !others.is_empty() {
                output::note(&format!(
                    "note: not used as factors: {}; `--factors` selects the factors",
                    others.join(", ")
                ));
            }
            factors.into_iter().map(|name| (name, None)).collect()
        }
        names => names
            .iter()
            .map(|text| match text.split_once('=') {
                Some((name, levels)) => (name, Some(levels.split(':').map(str::to_owned).collect())),
                None => (text.as_str(), None),
            })
            .collect(),
    };
    let mut columns = Vec::new();
    for (name, order) in named {
        let column = csv.factor(name, order.as_deref())?;
        if column.levels.len() > MOST_LEVELS {
            return Err(Failure::wrong(format!(
                "`{}`: the column `{name}` has {} different values, too many for a factor; name the columns that are \
                 factors, as in `--factors version,sync`",
                csv.name,
                column.levels.len()
            )));
        }
        columns.push(column);
    }
    let rows = (0..csv.rows()).map(|row| columns.iter().map(|column| column.rows[row]).collect()).collect();
    let factors = columns
        .into_iter()
        .map(|column| DesignFactor { name: column.name, levels: column.levels, hard_to_change: false })
        .collect();
    of_rows(factors, rows, &args.request()).map_err(Failure::wrong_input)
}

/// Names of columns that say what was measured, and when.
fn is_no_factor(name: &str) -> bool {
    const OTHERS: [&str; 10] = [
        "y",
        "response",
        "value",
        "run",
        "run_order",
        "order",
        "replicate",
        "block",
        "whole_plot",
        "treatment",
    ];
    OTHERS.contains(&name.to_lowercase().as_str())
}

/// A column with more different values is no factor.
const MOST_LEVELS: usize = 64;
