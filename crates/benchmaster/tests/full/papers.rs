//! Figures of the papers beside ours: the studies of `papers.toml` are run, and a table is written.
//!
//! `just papers` sets `BENCHMASTER_PAPERS=all`; arguments are parts of names of studies. Other environment variables:
//!
//! * `BENCHMASTER_PAPERS_PLACE`: where results are kept; those that are there already are not measured again.
//! * `UPDATE_PAPERS=1`: the table of `docs/papers.md` is written, if every study was run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use benchmaster_stats::ratio::fieller_welch;
use benchmaster_units::format;
use libtest_mimic::Trial;
use serde::Deserialize;

use crate::limit::output_within;

const PATIENCE: Duration = Duration::from_secs(3600);
const CONFIDENCE: f64 = 0.95;

/// Sizes agree if the paper's figure lies in our interval, or all of that within this factor of it.
const NEAR: f64 = 1.5;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Papers {
    experiment: Vec<Experiment>,
}

/// One run of a study.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    /// The name of a file in `studies/`.
    study: String,
    #[serde(default)]
    scale: Option<String>,
    /// Arguments of `--set`.
    #[serde(default)]
    set: Vec<String>,
    figure: Vec<Figure>,
}

/// One figure of a paper.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    /// The paper and its section, table or figure.
    from: String,
    what: String,
    /// The paper's figure: a value, or both ends of a range. None if the paper shows a phenomenon without a figure.
    #[serde(default)]
    paper: Vec<f64>,
    /// The response; with `to`, its ratio between two treatments.
    #[serde(default)]
    response: Option<String>,
    /// Levels of the treatment, as its label shows them.
    #[serde(default)]
    of: Vec<String>,
    /// Levels of the treatment that it is divided by.
    #[serde(default)]
    to: Vec<String>,
    /// What the diagnosis must find in this experiment.
    #[serde(default)]
    finding: Option<String>,
    /// Why ours differs, or what is to be known of it.
    #[serde(default)]
    note: String,
}

/// What `benchmaster analyze --json` prints, as far as it is used.
#[derive(Debug, Deserialize)]
struct Analysis {
    treatments: Vec<Treatment>,
    diagnosis: Diagnosis,
}

#[derive(Debug, Deserialize)]
struct Treatment {
    label: String,
    responses: Vec<Response>,
}

#[derive(Debug, Deserialize)]
struct Response {
    name: String,
    unit: String,
    values: Vec<Observed>,
}

#[derive(Debug, Deserialize)]
struct Observed {
    value: f64,
    excluded: bool,
}

#[derive(Debug, Deserialize)]
struct Diagnosis {
    findings: Vec<Found>,
}

#[derive(Debug, Deserialize)]
struct Found {
    id: String,
}

/// An estimate with its interval, if the runs give one.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ours {
    value: f64,
    interval: Option<(f64, f64)>,
}

/// Whether ours is like the paper's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agreement {
    /// The paper's figure lies in our interval or near our estimate.
    Size,
    /// Both are on the same side of 1.
    Direction,
    No,
}

impl Agreement {
    fn of(ours: Ours, paper: &[f64], is_ratio: bool) -> Option<Self> {
        let (low, high) = (*paper.first()?, *paper.last()?);
        let (lower, upper) = ours.interval.unwrap_or((ours.value, ours.value));
        let near = low / NEAR <= lower && upper <= high * NEAR;
        let overlap = lower <= high && low <= upper;
        // An interval so wide that it says nothing does not agree.
        let decides = lower > 0.0 && upper / lower <= NEAR * NEAR;
        if near || (overlap && decides) {
            return Some(Self::Size);
        }
        let same_side = is_ratio && ((low > 1.0 && lower > 1.0) || (high < 1.0 && upper < 1.0));
        Some(if same_side { Self::Direction } else { Self::No })
    }

    fn text(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::Direction => "direction",
            Self::No => "**no**",
        }
    }
}

impl Analysis {
    /// The one treatment that has these levels.
    fn treatment(&self, levels: &[String]) -> Result<&Treatment, String> {
        let has = |treatment: &&Treatment| {
            levels.iter().all(|level| treatment.label.split_whitespace().any(|word| word == level))
        };
        let mut found = self.treatments.iter().filter(has);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (one, _) => {
                let labels: Vec<&str> = self.treatments.iter().map(|one| &*one.label).collect();
                let how = if one.is_some() { "several treatments have" } else { "no treatment has" };
                Err(format!("{how} {levels:?}: {labels:?}"))
            }
        }
    }

    fn values(&self, levels: &[String], name: &str) -> Result<(Vec<f64>, &str), String> {
        let treatment = self.treatment(levels)?;
        let found = treatment.responses.iter().find(|response| response.name == name).ok_or_else(|| {
            let names: Vec<&str> = treatment.responses.iter().map(|response| &*response.name).collect();
            format!("{} has no response {name}: {names:?}", treatment.label)
        })?;
        let kept = found.values.iter().filter(|value| !value.excluded).map(|value| value.value);
        Ok((kept.collect(), &found.unit))
    }

    /// Our figure, and how ours and the paper's are written.
    fn ours(&self, figure: &Figure) -> Result<Option<(Ours, String, String)>, String> {
        let Some(response) = &figure.response else { return Ok(None) };
        let (values, unit) = self.values(&figure.of, response)?;
        let paper = |text: &dyn Fn(f64) -> String| {
            figure.paper.iter().map(|value| text(*value)).collect::<Vec<_>>().join(" to ")
        };
        if figure.to.is_empty() {
            let n = values.len() as f64;
            let value = values.iter().sum::<f64>() / n;
            let half = benchmaster_stats::interval::mean_interval(&values, CONFIDENCE).ok();
            let half = half.and_then(|found| found.half_width);
            let interval = half.map(|half| (value - half, value + half));
            let unit = serde_json::from_value(unit.into()).map_err(|error| error.to_string())?;
            let text = format::estimate(value, half, unit, None);
            let paper = paper(&|value| format::estimate(value, None, unit, None));
            return Ok(Some((Ours { value, interval }, text, paper)));
        }
        let (base, _) = self.values(&figure.to, response)?;
        let found = fieller_welch(&base, &values, CONFIDENCE).map_err(|error| error.to_string())?;
        let ours = Ours { value: found.ratio, interval: found.interval };
        let short = |ratio: f64| format::fixed(ratio, format::decimals_for(ratio, 3).min(3));
        let interval = match found.interval {
            Some((lower, upper)) if lower < upper => format!(" ({} to {})", short(lower), short(upper)),
            Some(_) => String::new(),
            None => " (no interval)".to_owned(),
        };
        let text = format!("× {}{interval}", short(found.ratio));
        Ok(Some((ours, text, paper(&|ratio| format!("× {ratio}")))))
    }
}

fn papers() -> Papers {
    toml::from_str(include_str!("papers.toml")).unwrap()
}

/// All experiments, if they are asked for.
pub(crate) fn all() -> Option<ExitCode> {
    let asked = std::env::var("BENCHMASTER_PAPERS").ok()?;
    assert_eq!(asked, "all", "the value of BENCHMASTER_PAPERS");
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let made = tempfile::tempdir().unwrap();
    let kept = std::env::var_os("BENCHMASTER_PAPERS_PLACE").map(PathBuf::from);
    let place = kept.as_deref().unwrap_or(made.path());
    let mut table =
        String::from("| paper | experiment | study | paper's | ours (95 %) | agrees in | finding | |\n");
    table += "|---|---|---|---|---|---|---|---|\n";
    let mut wrong = Vec::new();
    for (index, experiment) in papers().experiment.iter().enumerate() {
        if !parts.is_empty() && !parts.iter().any(|part| experiment.study.contains(&**part)) {
            continue;
        }
        let directory = place.join(format!("{}-{index}", experiment.study));
        match measured(experiment, &directory) {
            Ok(analysis) => {
                for figure in &experiment.figure {
                    let (row, problem) = row(experiment, figure, &analysis);
                    eprint!("{row}");
                    table += &row;
                    wrong.extend(problem);
                }
            }
            Err(why) => wrong.push(format!("{}: {why}", experiment.study)),
        }
    }
    println!("{table}");
    wrong.iter().for_each(|problem| eprintln!("{problem}"));
    if parts.is_empty() && wrong.is_empty() && std::env::var_os("UPDATE_PAPERS").is_some() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/papers.md");
        crate::update(&document, "just papers", &format!("\n{table}\n"));
    }
    Some(if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs an experiment, unless its results are there.
fn measured(experiment: &Experiment, directory: &Path) -> Result<Analysis, String> {
    if !directory.join("report.html").exists() {
        let started = Instant::now();
        crate::run(&experiment.study, directory, experiment.scale.as_deref(), &experiment.set, PATIENCE)?;
        eprintln!("{}: {:.0} s", experiment.study, started.elapsed().as_secs_f64());
    }
    let mut command = Command::new(crate::program());
    command.arg("analyze").arg(directory).arg("--json").stdin(Stdio::null());
    let output = output_within(command, PATIENCE).map_err(|error| error.to_string())?;
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// A line of the table, and what is wrong with it.
fn row(experiment: &Experiment, figure: &Figure, analysis: &Analysis) -> (String, Option<String>) {
    let mut problems = Vec::new();
    let ours = analysis.ours(figure).unwrap_or_else(|why| {
        problems.push(why);
        None
    });
    let is_ratio = !figure.to.is_empty();
    let agrees = ours.as_ref().and_then(|(ours, ..)| Agreement::of(*ours, &figure.paper, is_ratio));
    if agrees != Some(Agreement::Size) && figure.note.is_empty() && !figure.paper.is_empty() {
        problems.push("differs from the paper, and no `note` says why".to_owned());
    }
    let found = figure.finding.as_ref().map(|id| {
        let is_found = analysis.diagnosis.findings.iter().any(|found| found.id == *id);
        if !is_found {
            problems.push(format!("`{id}` was not found"));
        }
        format!("`{id}`{}", if is_found { "" } else { ": **not found**" })
    });
    let (ours, paper) = ours.map_or_else(Default::default, |(_, ours, paper)| (ours, paper));
    let row = format!(
        "| {} | {} | `{}` | {paper} | {ours} | {} | {} | {} |\n",
        figure.from,
        figure.what,
        experiment.study,
        agrees.map_or("", Agreement::text),
        found.unwrap_or_default(),
        figure.note,
    );
    let problem = (!problems.is_empty())
        .then(|| format!("{}, {}: {}", experiment.study, figure.what, problems.join("; ")));
    (row, problem)
}

/// Tests of what judges, and that each experiment is of a study that exists.
pub(crate) fn trials() -> Vec<Trial> {
    vec![Trial::test("papers_name_studies_and_agreement_is_judged", || {
        for experiment in papers().experiment {
            let file = crate::study(&experiment.study);
            assert!(file.exists(), "{}", experiment.study);
        }
        let ours = |value, interval| Ours { value, interval };
        let cases = BTreeMap::from([
            ("near", (ours(1.9, Some((1.8, 2.0))), vec![2.5], Agreement::Size)),
            ("within the interval", (ours(2.0, Some((1.4, 3.1))), vec![3.05], Agreement::Size)),
            ("an interval that says nothing", (ours(2.0, Some((0.1, 9.0))), vec![8.0], Agreement::No)),
            ("the same side", (ours(2.0, Some((1.8, 2.2))), vec![8.0], Agreement::Direction)),
            ("not clear of 1", (ours(1.2, Some((0.9, 1.5))), vec![8.0], Agreement::No)),
            ("the other side", (ours(0.5, Some((0.4, 0.6))), vec![8.0], Agreement::No)),
            ("a range", (ours(40.0, None), vec![6.0, 193.0], Agreement::Size)),
        ]);
        for (name, (ours, paper, expected)) in cases {
            assert_eq!(Agreement::of(ours, &paper, true), Some(expected), "{name}");
        }
        assert_eq!(Agreement::of(ours(1.0, None), &[], true), None);
        Ok(())
    })]
}
