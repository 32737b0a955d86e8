//! `plan`.

use crate::cli::PlanArgs;
use crate::commands::{Result, Status, load_plan};
use crate::output;

pub(crate) fn plan(args: &PlanArgs) -> Result<Status> {
    let description = load_plan(&args.study)?.describe();
    match args.json {
        true => output::print_json(&description)?,
        false => output::print(&description.render())?,
    }
    Ok(Status::Fine)
}
