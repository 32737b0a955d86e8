//! `plan --extend`.

use std::path::Path;

use benchmaster_store::Store;
use benchmaster_study::plan::Plan;
use benchmaster_study::plan::design::{DesignInput, TextForm, describe};
use benchmaster_study::plan::extend::Extension;
use jiff::Timestamp;

use crate::cli::{ExtendArgs, PlanArgs};
use crate::commands::results::load;
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Shows what would be added to a study, and adds it if that is asked for.
pub(crate) fn extend(directory: &Path, args: &PlanArgs) -> Result<Status> {
    let stored = load(directory)?.study;
    let plan = Plan::of_results(&stored).map_err(Failure::wrong_input)?;
    let extension = extension(&args.extension, &plan).map_err(Failure::wrong_input)?;
    let proposal = plan.extend(&extension, Timestamp::now()).map_err(Failure::wrong_input)?;
    let mut extended = stored.clone();
    extended.treatments.extend(proposal.new.iter().cloned());
    extended.stages.push(proposal.stage.clone());
    // Treatments that cannot be run are not added.
    let together = plan.with_stages(&extended).map_err(|found| Failure::wrong(format!("{found}")))?;
    let input = DesignInput {
        max_order: args.max_order,
        power: args.power,
        spread: args.sd,
        effect: args.effect,
        ..together.extended_input()
    };
    let description = proposal.describe(&together, describe(&input), args.extension.apply);
    if args.extension.apply {
        let mut store = Store::open(directory).map_err(Failure::wrong_input)?;
        store.add_stage(&proposal.stage, &proposal.new)?;
    }
    output::answer(args.json, &description, || {
        let form = TextForm { width: output::text_options().width, all: args.all };
        description.render(&directory.display().to_string(), form)
    })
}

fn extension(
    args: &ExtendArgs,
    plan: &Plan,
) -> std::result::Result<Extension, benchmaster_study::plan::extend::ExtendError> {
    match (&args.fold, &args.semifold, &args.resolve) {
        (Some(factors), ..) => Extension::fold(factors, plan),
        (_, Some(factor), _) => Extension::semifold(factor, plan),
        (.., effects) => Extension::resolve(effects.as_deref().unwrap_or_default(), plan),
    }
}
