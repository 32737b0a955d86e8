//! Verdicts: the exit status, and what CI shows.

use std::path::Path;

use benchmaster_report::verdicts::{self, Verdict};

use crate::cli::{CiArgs, Service};
use crate::commands::results::write;
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Where GitLab's examples have it.
const CODE_QUALITY: &str = "gl-code-quality-report.json";

/// Writes what is wanted, and says whether a verdict fails. `place` is what was judged; `json`: standard output is JSON.
pub(crate) fn publish(verdicts: &[Verdict], args: &CiArgs, place: &Path, json: bool) -> Result<Status> {
    if let Some(path) = &args.junit {
        write(path, &verdicts::junit(verdicts)).map_err(Failure::of_a_place_given)?;
    }
    match args.annotations {
        Some(Service::Github) => {
            let commands = verdicts::github(verdicts);
            if json && !commands.is_empty() {
                output::note(commands.trim_end());
            } else if !commands.is_empty() {
                output::print(&commands)?;
            }
        }
        Some(Service::Gitlab) => {
            write(Path::new(CODE_QUALITY), &verdicts::gitlab(verdicts, &place.to_string_lossy()))?;
        }
        None => {}
    }
    let fails = verdicts.iter().any(|verdict| verdict.fails);
    Ok(if fails { Status::ChecksFailed } else { Status::Fine })
}
