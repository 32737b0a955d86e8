//! `results`: what was measured and kept.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use benchmaster_report::pages::{self, Kept};
use benchmaster_store::outline::{self, Outline};
use benchmaster_store::{OpenError, Store};
use benchmaster_units::format;
use jiff::Timestamp;

use crate::cli::{CleanArgs, ListArgs, ResultsArgs, ResultsCommand};
use crate::commands::results::{Found, load_failure};
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Where `run` and `quick` put results that are given no place.
const USUAL: &str = "results";

pub(crate) fn results(args: &ResultsArgs) -> Result<Status> {
    match &args.command {
        ResultsCommand::List(args) => list(args),
        ResultsCommand::Show { directory } => {
            let report = directory.join("report.html");
            Found::load(directory)?.print_summary(report.is_file().then_some(report))?;
            Ok(Status::Fine)
        }
        ResultsCommand::Tag { directory, tag } => {
            Outline::of(directory).map_err(load_failure)?;
            outline::tag(directory, tag)?;
            Ok(Status::Fine)
        }
        ResultsCommand::Clean(args) => clean(args),
    }
}

fn list(args: &ListArgs) -> Result<Status> {
    let kept = below(&args.directory)?;
    output::document(args.json, &kept, || pages::kept(&args.directory, &kept))
}

/// The results directories below a directory, the newest last.
fn below(directory: &Path) -> Result<Vec<Kept>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound && directory == Path::new(USUAL) => {
            return Ok(Vec::new());
        }
        Err(error) => {
            let place = directory.display();
            return Err(Failure::wrong(format!(
                "cannot read `{place}` ({error}): name the directory of results"
            )));
        }
        Ok(entries) => entries,
    };
    let paths = entries.flatten().map(|entry| entry.path()).filter(|path| Store::exists(path));
    let read = |directory: PathBuf| match Outline::of(&directory) {
        Ok(outline) => Kept { directory, outline: Some(outline), error: None },
        Err(error) => Kept { directory, outline: None, error: Some(error.to_string()) },
    };
    let mut kept: Vec<Kept> = paths.map(read).collect();
    kept.sort_by_cached_key(|one| (one.outline.as_ref().map(|found| found.began), one.directory.clone()));
    Ok(kept)
}

fn clean(args: &CleanArgs) -> Result<Status> {
    let chosen = if args.directories.is_empty() {
        let now = Timestamp::now();
        let old = |found: &Outline| {
            let age = found.began.map(|began| now.duration_since(began).as_secs_f64());
            args.older_than.is_none_or(|least| age.is_some_and(|age| age >= least.0.as_secs_f64()))
        };
        let is_chosen =
            |found: &Outline| found.tag.is_none() && old(found) && (!args.unfinished || !found.is_complete());
        let kept = below(Path::new(USUAL))?.into_iter();
        let kept = kept.filter_map(|one| Some((one.directory, one.outline.filter(is_chosen)?.bytes)));
        kept.collect::<Vec<_>>()
    } else {
        let named = args.directories.iter();
        let named = named.map(|one| Ok((one.clone(), Outline::of(one).map_err(load_failure)?.bytes)));
        named.collect::<Result<_>>()?
    };
    let mut left_out = false;
    for (directory, bytes) in &chosen {
        let size = format::bytes(*bytes as f64);
        let named = directory.display();
        if !args.yes {
            output::print(&format!("would remove {named} ({size})\n"))?;
            continue;
        }
        // Nothing is removed beneath a study that is being carried out.
        let store = match Store::open(directory) {
            Ok(store) => store,
            Err(OpenError::Lock(error)) => {
                output::note(&format!("{named} stays: {error}"));
                left_out = true;
                continue;
            }
            Err(error) => return Err(Failure::failed(error)),
        };
        match outline::remove(store)? {
            None => output::print(&format!("removed {named} ({size})\n"))?,
            Some(_) => {
                output::print(&format!("removed the results in {named} ({size}); other files stay there\n"))?
            }
        }
    }
    if chosen.is_empty() {
        output::note("nothing to remove");
    } else if !args.yes {
        output::note("nothing was removed: --yes removes them");
    }
    Ok(if left_out { Status::ChecksFailed } else { Status::Fine })
}
