//! `diagnose`: findings, with what they are made of.

use std::path::Path;

use benchmaster_diagnosis::catalogue;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::mountstats::{self, Observations, Reading};
use benchmaster_report::{Document, pages};
use benchmaster_telemetry::mountstats::Mountstats;
use benchmaster_units::format::plural;
use serde::Serialize;

use crate::cli::DiagnoseArgs;
use crate::commands::results::Found;
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
    let found = Found::load(directory)?;
    output::document(json, &found.diagnosis, || {
        let study = &found.results.study;
        let runs = found.results.runs.iter().filter(|run| run.failure.is_none()).count();
        let lead = format!(
            "{} of {}, {}",
            plural(runs, "run"),
            plural(study.treatments.len(), "treatment"),
            plural(found.diagnosis.findings.len(), "finding")
        );
        pages::diagnosis(study.name.clone(), vec![lead], &found.diagnosis)
    })
}

fn explain(id: &str, json: bool) -> Result<Status> {
    let explained: Vec<_> = match id {
        "all" => catalogue::all().iter().collect(),
        _ => catalogue::explain(id).into_iter().collect(),
    };
    if explained.is_empty() {
        return Err(Failure::wrong(format!(
            "no finding is called `{id}`; `benchmaster diagnose --explain all` lists them"
        )));
    }
    output::answer(json, &explained, || match id {
        "all" => {
            let width = explained.iter().map(|one| one.id.len()).max().unwrap_or(0);
            explained.iter().map(|one| format!("{:width$}  {}\n", one.id, one.title)).collect()
        }
        _ => {
            let options = output::text_options();
            explained.iter().map(|one| pages::explanation(one).text(&options)).collect()
        }
    })
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
            let given = match before {
                1 => "1 earlier copy was".to_owned(),
                n => format!("{n} earlier copies were"),
            };
            let clients = plural(later.len(), "client");
            return Err(Failure::wrong(format!(
                "{given} given for {clients}; give one for each, in the same order"
            )));
        }
    };
    if observations.observed.is_empty() {
        let why = if observations.left_out.is_empty() {
            "there is no NFS mount in what was given".to_owned()
        } else {
            observations.left_out.join("; ")
        };
        return Err(Failure::wrong(format!("nothing to diagnose: {why}")));
    }
    let diagnosis = mountstats::diagnose(&observations.observed);
    let printed = Printed {
        diagnosis: &diagnosis,
        looked_at: observations.observed.iter().map(mountstats::Observed::place).collect(),
        left_out: &observations.left_out,
    };
    output::document(args.json, &printed, || of_observations(&diagnosis, &observations))
}

/// The client is called by its file.
fn reading(file: &Path) -> Result<Reading> {
    let shown = file.display();
    let bytes =
        std::fs::read(file).map_err(|error| Failure::wrong(format!("cannot read {shown}: {error}")))?;
    let mountstats = Mountstats::parse(&String::from_utf8_lossy(&bytes))
        .map_err(|error| Failure::wrong(format!("{shown} is not a copy of mountstats: {error}")))?;
    Ok(Reading { client: shown.to_string(), mountstats })
}

fn of_observations(diagnosis: &Diagnosis, observations: &Observations) -> Document {
    let seen = observations.observed.iter().map(|one| format!("{}: {} calls", one.place(), one.calls()));
    let left_out = observations.left_out.iter().map(|one| format!("left out: {one}"));
    let title = plural(observations.observed.len(), "mount");
    pages::diagnosis(title, seen.chain(left_out).collect(), diagnosis)
}
