//! `diagnose`: findings, with what they are made of.

use std::path::Path;

use benchmaster_diagnosis::catalogue;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::mountstats::{self, Observations, Reading};
use benchmaster_report::terminal;
use benchmaster_telemetry::mountstats::Mountstats;
use benchmaster_units::format::plural;
use serde::Serialize;

use crate::cli::DiagnoseArgs;
use crate::commands::results::{found, load};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn diagnose(args: &DiagnoseArgs) -> Result<Status> {
    match (&args.explain, &args.directory) {
        (Some(id), _) => explain(id, args.json),
        (None, Some(directory)) => of_results(directory, args.json),
        (None, None) => of_mountstats(args),
    }
}

/// What the runs of a study say.
fn of_results(directory: &Path, json: bool) -> Result<Status> {
    let results = load(directory)?;
    let (_, diagnosis) = found(directory, &results);
    if json {
        output::print_json(&diagnosis)?
    } else {
        let runs = results.runs.iter().filter(|run| run.failure.is_none()).count();
        let lead = format!(
            "{} of {}, {}",
            plural(runs, "run"),
            plural(results.study.treatments.len(), "treatment"),
            plural(diagnosis.findings.len(), "finding")
        );
        let title = results.study.name.clone();
        output::print(&terminal::diagnosis_text(title, vec![lead], &diagnosis, &output::text_options()))?
    }
    Ok(Status::Fine)
}

fn explain(id: &str, json: bool) -> Result<Status> {
    let explained: Vec<_> = match id {
        "all" => catalogue::all().iter().collect(),
        _ => catalogue::explain(id).into_iter().collect(),
    };
    if explained.is_empty() {
        let error =
            anyhow::anyhow!("no finding is called `{id}`; `benchmaster diagnose --explain all` lists them");
        return Err(Failure::wrong_input(error));
    }
    match (json, id) {
        (true, _) => output::print_json(&explained)?,
        (false, "all") => {
            let width = explained.iter().map(|one| one.id.len()).max().unwrap_or(0);
            let lines: Vec<String> =
                explained.iter().map(|one| format!("{:width$}  {}", one.id, one.title)).collect();
            output::print(&lines.join("\n"))?;
        }
        (false, _) => {
            let options = output::text_options();
            let texts = explained.iter().map(|one| terminal::explanation_text(one, &options));
            output::print(&texts.collect::<String>())?;
        }
    }
    Ok(Status::Fine)
}

/// What is printed as JSON.
#[derive(Debug, Serialize)]
struct Printed<'a> {
    #[serde(flatten)]
    diagnosis: &'a Diagnosis,
    /// Mounts that were looked at.
    looked_at: Vec<String>,
    /// Mounts that were not, and why.
    left_out: &'a [String],
}

fn of_mountstats(args: &DiagnoseArgs) -> Result<Status> {
    let later = args.mountstats.iter().map(|file| reading(file)).collect::<Result<Vec<_>>>()?;
    let observations = match args.before.len() {
        0 => mountstats::since_mounted(later),
        before if before == later.len() => {
            let earlier = args.before.iter().map(|file| reading(file)).collect::<Result<Vec<_>>>()?;
            mountstats::between(earlier.into_iter().zip(later).collect()).map_err(Failure::wrong_input)?
        }
        before => {
            let error = anyhow::anyhow!(
                "{} given for {}; give one for each, in the same order",
                if before == 1 {
                    "1 earlier copy was".into()
                } else {
                    format!("{before} earlier copies were")
                },
                plural(later.len(), "client")
            );
            return Err(Failure::wrong_input(error));
        }
    };
    if observations.observed.is_empty() {
        let why = if observations.left_out.is_empty() {
            "there is no NFS mount in what was given".to_owned()
        } else {
            observations.left_out.join("; ")
        };
        return Err(Failure::wrong_input(anyhow::anyhow!("nothing to diagnose: {why}")));
    }
    let diagnosis = mountstats::diagnose(&observations.observed);
    if args.json {
        output::print_json(&Printed {
            diagnosis: &diagnosis,
            looked_at: observations.observed.iter().map(mountstats::Observed::place).collect(),
            left_out: &observations.left_out,
        })?
    } else {
        output::print(&of_observations(&diagnosis, &observations))?
    }
    Ok(Status::Fine)
}

/// The client is called by its file.
fn reading(file: &Path) -> Result<Reading> {
    let shown = file.display();
    let bytes = std::fs::read(file)
        .map_err(|error| Failure::wrong_input(anyhow::anyhow!("cannot read {shown}: {error}")))?;
    let mountstats = Mountstats::parse(&String::from_utf8_lossy(&bytes)).map_err(|error| {
        Failure::wrong_input(anyhow::anyhow!("{shown} is not a copy of mountstats: {error}"))
    })?;
    Ok(Reading { client: shown.to_string(), mountstats })
}

fn of_observations(diagnosis: &Diagnosis, observations: &Observations) -> String {
    let seen = observations.observed.iter().map(|one| format!("{}: {} calls", one.place(), one.calls()));
    let left_out = observations.left_out.iter().map(|one| format!("left out: {one}"));
    let title = plural(observations.observed.len(), "mount");
    terminal::diagnosis_text(title, seen.chain(left_out).collect(), diagnosis, &output::text_options())
}
