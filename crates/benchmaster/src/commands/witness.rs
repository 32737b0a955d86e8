//! `witness`: what was acknowledged as stable to a run that was killed, looked for.

use std::sync::atomic::AtomicBool;

use benchmaster_report::pages;
use benchmaster_workload::witness::check;

use crate::cli::WitnessArgs;
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn witness(args: &WitnessArgs) -> Result<Status> {
    let never = AtomicBool::new(false);
    let (header, found) =
        check(&args.ledger, args.target.as_deref(), &never).map_err(Failure::wrong_input)?;
    output::document(args.json, &found, || pages::witness(&header.name, &found))?;
    Ok(if found.missing() == 0 { Status::Fine } else { Status::ChecksFailed })
}
