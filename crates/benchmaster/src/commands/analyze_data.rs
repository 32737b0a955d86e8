//! `analyze --data`: the effects in a CSV file.

use std::collections::HashMap;
use std::path::Path;

use benchmaster_analysis::experiment::{
    self, Experiment, LeftOut, Options, Polynomial, PredictionRequest, Sample, SampleOptions, ScaleUsed,
    SumsOfSquares, Table, TableFactor, TableRow, Transform,
};
use benchmaster_report::pages;
use serde::Serialize;

use crate::cli::{AnalyzeArgs, ModelArgs, Polynomials, SumsType};
use crate::commands::data::{Csv, FactorColumn, centre_points};
use crate::failure::{Failure, Result, Status};
use crate::output;

/// What is printed as JSON. See `docs/analysis-json.md`.
#[derive(Debug, Serialize)]
struct Answer {
    file: String,
    /// Rows of the file.
    rows: usize,
    response: String,
    /// What was decided about the columns.
    notes: Vec<String>,
    experiment: Option<Experiment>,
    /// The same without the logarithm, where the rule chose that.
    as_measured: Option<Experiment>,
    sample: Option<Sample>,
}

/// Which column is what.
#[derive(Debug)]
struct Roles {
    response: String,
    factors: Vec<String>,
    block: Option<String>,
    whole_plot: Option<String>,
    order: Option<String>,
    notes: Vec<String>,
}

pub(crate) fn analyze(path: &Path, args: &AnalyzeArgs) -> Result<Status> {
    let csv = Csv::read(path)?;
    let roles = Roles::of(&csv, args)?;
    let mut options = options(&args.model)?;
    options.confidence = args.model.confidence.unwrap_or(0.95);
    let values = csv.numbers_or_missing(&roles.response)?;
    let missing = values.iter().filter(|v| v.is_none()).count();
    let mut answer = Answer {
        file: csv.name.clone(),
        rows: csv.rows(),
        response: roles.response.clone(),
        notes: roles.notes.clone(),
        experiment: None,
        as_measured: None,
        sample: None,
    };
    let refused = |error: experiment::ExperimentError| {
        Failure::wrong_input(anyhow::Error::new(error).context(format!("`{}` cannot be analysed", csv.name)))
    };
    if roles.factors.is_empty() {
        let values: Vec<f64> = values.into_iter().flatten().collect();
        let sample_options = SampleOptions {
            confidence: options.confidence,
            seed: args.columns.seed,
            changes: args.columns.changes,
            log: options.transform == Transform::Log,
        };
        let sample = experiment::sample(&values, missing, &sample_options);
        answer.sample = Some(sample.map_err(|error| refused(error.into()))?);
    } else {
        let factors = roles.factors(&csv, &args.columns.levels)?;
        let left_out = match missing {
            0 => vec![],
            runs => vec![LeftOut { reason: "no value".into(), runs }],
        };
        let table = roles.table(&csv, factors, values, left_out)?;
        match table.rows.iter().filter(|row| row.centre).count() {
            0 => {}
            1 => answer.notes.push(
                "1 run lies halfway between the levels of every factor that has numbers: it is taken as a centre point."
                    .into(),
            ),
            n => answer.notes.push(format!(
                "{n} runs lie halfway between the levels of every factor that has numbers: they are taken as centre points."
            )),
        }
        let found = experiment::analyze(&table, &options).map_err(refused)?;
        let by_rule = found.scale.used == ScaleUsed::Log && !found.scale.asked;
        if by_rule && args.json {
            let plain = Options { transform: Transform::None, ..options };
            answer.as_measured = Some(experiment::analyze(&table, &plain).map_err(refused)?);
        }
        answer.experiment = Some(found);
    }
    output::answer(args.json, &answer, || {
        let (file, notes) = (answer.file.clone(), &answer.notes);
        let experiment =
            answer.experiment.as_ref().map(|found| pages::experiment(file.clone(), notes, found));
        let sample = || {
            let title = format!("{file}: {}", answer.response);
            answer.sample.as_ref().map(|found| pages::sample(title, notes, found))
        };
        let document = experiment.or_else(sample);
        document.map_or_else(String::new, |document| document.text(&output::text_options()))
    })
}

/// What the arguments say about the model; the confidence level is left at its default.
pub(crate) fn options(args: &ModelArgs) -> Result<Options> {
    let predictions = args.predict.iter().map(|text| {
        let pairs = text.split(',').map(|pair| named(pair, "--predict", "version=v4.1,delay=1ms"));
        let levels =
            pairs.map(|pair| pair.map(|(f, l)| (f.to_owned(), l.to_owned()))).collect::<Result<_>>()?;
        Ok(PredictionRequest { levels, future_runs: args.future_runs })
    });
    Ok(Options {
        transform: match (args.log, args.no_log) {
            (true, _) => Transform::Log,
            (_, true) => Transform::None,
            _ => Transform::Auto,
        },
        max_order: args.order.or(args.pool.map(|pool| pool - 1)),
        terms: args.terms.clone(),
        sums_of_squares: args.sums_of_squares.map(|kind| match kind {
            SumsType::I => SumsOfSquares::I,
            SumsType::Ii => SumsOfSquares::II,
            SumsType::Iii => SumsOfSquares::III,
        }),
        polynomial: match args.polynomial {
            Polynomials::Numeric => Polynomial::Numeric,
            Polynomials::Never => Polynomial::Never,
        },
        predictions: predictions.collect::<Result<_>>()?,
        reduced: args.reduced,
        ..Options::default()
    })
}

/// `name=value`.
fn named<'a>(text: &'a str, option: &str, example: &str) -> Result<(&'a str, &'a str)> {
    let pair = text.split_once('=').map(|(name, value)| (name.trim(), value.trim()));
    pair.filter(|(name, value)| !name.is_empty() && !value.is_empty()).ok_or_else(|| {
        Failure::wrong(format!("`{option} {text}` names no value; write `{option} {example}`"))
    })
}

impl Roles {
    fn of(csv: &Csv, args: &AnalyzeArgs) -> Result<Self> {
        let columns = &args.columns;
        let mut notes = Vec::new();
        let mut by_name = |asked: &Option<String>, names: &[&str], what: &str| -> Result<Option<String>> {
            if let Some(name) = asked {
                csv.column(name)?;
                return Ok(asked.clone());
            }
            let is_other =
                |name: &str| columns.factors.is_some() || args.model.response.as_deref() == Some(name);
            let found =
                names.iter().find(|&&name| !is_other(name) && csv.columns.iter().any(|c| c.name == name));
            if let Some(name) = found {
                notes.push(format!("Column `{name}` is taken as the {what}; `--factors` says otherwise."));
            }
            Ok(found.map(|&name| name.to_owned()))
        };
        let block = by_name(&columns.block, &["block"], "block")?;
        let whole_plot = by_name(&columns.whole_plot, &["whole_plot"], "whole plot")?;
        let order = by_name(&columns.order_column, &["run_order", "order"], "order of execution")?;
        for factor in columns.factors.iter().flatten() {
            csv.column(factor)?;
        }
        let taken = |name: &str| [&block, &whole_plot, &order].iter().any(|t| t.as_deref() == Some(name));
        let is_factor = |name: &str| columns.factors.iter().flatten().any(|factor| factor == name);
        let free: Vec<_> =
            csv.columns.iter().filter(|column| !taken(&column.name) && !is_factor(&column.name)).collect();
        let response = match &args.model.response {
            Some(name) => csv.column(name)?.name.clone(),
            None => {
                let called = free.iter().find(|column| column.name == "y" || column.name == "response");
                let numeric: Vec<_> = free.iter().filter(|column| column.is_numeric()).collect();
                let only = if let [one] = numeric[..] { columns.factors.as_ref().map(|_| one) } else { None };
                let last = free.last().filter(|column| column.is_numeric() && columns.factors.is_none());
                let found = called.or(only).or(last).ok_or_else(|| {
                    Failure::wrong(format!(
                        "`{}`: several columns could be the response; name it with `--response`",
                        csv.name
                    ))
                })?;
                notes.push(format!(
                    "Column `{}` is taken as the response; `--response` says otherwise.",
                    found.name
                ));
                found.name.clone()
            }
        };
        let factors = match &columns.factors {
            Some(factors) => factors.clone(),
            None => free.iter().map(|column| column.name.clone()).filter(|name| *name != response).collect(),
        };
        if let Some(twice) = factors.iter().find(|&name| *name == response || taken(name)) {
            return Err(Failure::wrong(format!(
                "`{}`: column `{twice}` cannot be a factor and something else; leave it out of `--factors`",
                csv.name
            )));
        }
        if let Some((_, twice)) = factors.iter().enumerate().find(|(i, name)| factors[..*i].contains(name)) {
            return Err(Failure::wrong(format!("`--factors` names `{twice}` twice")));
        }
        Ok(Self { response, factors, block, whole_plot, order, notes })
    }

    /// The factors, with their levels in the order asked for.
    fn factors(&self, csv: &Csv, levels: &[String]) -> Result<Vec<FactorColumn>> {
        let mut orders: Vec<(&str, Vec<String>)> = Vec::new();
        for text in levels {
            let (name, order) = named(text, "--levels", "tension=L,M,H")?;
            if !self.factors.iter().any(|factor| factor == name) {
                return Err(Failure::wrong(format!(
                    "`--levels {text}`: unknown factor `{name}`; the factors are {}",
                    self.factors.join(", ")
                )));
            }
            orders.push((name, order.split(',').map(|level| level.trim().to_owned()).collect()));
        }
        let one = |name: &String| {
            let order = orders.iter().find(|(factor, _)| factor == name).map(|(_, order)| order.as_slice());
            csv.factor(name, order)
        };
        self.factors.iter().map(one).collect()
    }

    fn table(
        &self,
        csv: &Csv,
        mut factors: Vec<FactorColumn>,
        values: Vec<Option<f64>>,
        left_out: Vec<LeftOut>,
    ) -> Result<Table> {
        let centre = centre_points(&mut factors);
        let text = |name: &Option<String>| name.as_ref().map(|name| csv.texts(name)).transpose();
        let (block, whole_plot) = (text(&self.block)?, text(&self.whole_plot)?);
        let order = self.order.as_ref().map(|name| csv.numbers(name)).transpose()?;
        if let (Some(order), Some(name)) = (&order, &self.order)
            && let Some(row) = order.iter().position(|&place| place < 0.0 || place.fract() != 0.0)
        {
            return Err(Failure::wrong(format!(
                "`{}`, line {}: `{}` in `{name}` is not a position in an order; number the runs 1, 2, 3, …",
                csv.name, csv.lines[row], order[row]
            )));
        }
        let rows = values.into_iter().enumerate().filter_map(|(row, value)| {
            Some(TableRow {
                levels: factors.iter().map(|factor| factor.rows[row]).collect(),
                response: value?,
                block: block.as_ref().map(|texts| texts[row].clone()),
                whole_plot: whole_plot.as_ref().map(|texts| texts[row].clone()),
                order: order.as_ref().map(|places| places[row] as u64),
                centre: centre.as_ref().is_some_and(|centre| centre[row]),
            })
        });
        let rows = rows.collect();
        // A factor that never changes inside a whole plot was set once for it.
        let hard = |factor: &FactorColumn| {
            let Some(plots) = &whole_plot else { return false };
            let mut level_of: HashMap<&str, u32> = HashMap::new();
            plots
                .iter()
                .zip(&factor.rows)
                .all(|(plot, &level)| *level_of.entry(plot).or_insert(level) == level)
        };
        let factors = factors.into_iter().map(|factor| TableFactor {
            hard_to_change: hard(&factor),
            name: factor.name,
            levels: factor.levels,
            values: factor.values,
        });
        Ok(Table { response: self.response.clone(), unit: None, factors: factors.collect(), rows, left_out })
    }
}
