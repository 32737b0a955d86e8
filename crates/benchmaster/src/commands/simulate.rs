//! `simulate`: models from the papers.

use crate::cli::{HashCastArgs, SimulateArgs, SimulateCommand};
use crate::commands::results::write_page;
use crate::failure::{Failure, Result, Status};
use crate::output;
use benchmaster_report::pages::{self, HashCast, HashCastFlows, HashCastLoads, HashCastRatio};
use benchmaster_stats::hash_cast::{self, Simulated};

pub(crate) fn simulate(args: &SimulateArgs) -> Result<Status> {
    match &args.model {
        SimulateCommand::HashCast(args) => hash_cast(args),
    }
}

fn hash_cast(args: &HashCastArgs) -> Result<Status> {
    if let Some(wrong) = args.ratio.iter().find(|r| !(r.is_finite() && **r >= 1.0)) {
        return Err(Failure::wrong(format!(
            "a ratio of {wrong} has no meaning; write numbers from 1 on, such as 2,5"
        )));
    }
    let (from, to) = args.flows;
    let all = (from..=to).map(|flows| of_flows(args, flows, from == to)).collect::<Result<Vec<_>>>()?;
    let found = HashCast { queues: args.queues, trials: args.trials, seed: args.seed, flows: all };
    if let Some(path) = &args.html {
        write_page(path, pages::hash_cast(&found)).map_err(Failure::of_a_place_given)?;
    }
    output::answer(args.json, &found, || text(&found))
}

/// For one number of flows everything, for several the probability of ratios.
fn of_flows(args: &HashCastArgs, flows: u32, single: bool) -> Result<HashCastFlows> {
    let queues = args.queues;
    let simulated = match args.trials {
        0 => None,
        trials => Some(hash_cast::simulate(flows, queues, trials, args.seed).map_err(Failure::wrong_input)?),
    };
    let mut ratios = Vec::with_capacity(args.ratio.len());
    for &ratio in &args.ratio {
        let probability =
            hash_cast::probability_of_ratio(flows, queues, ratio).map_err(Failure::wrong_input)?;
        ratios.push(HashCastRatio {
            ratio,
            probability,
            simulated: simulated.as_ref().map(|s| s.share_of_ratio(ratio)),
        });
    }
    let loads = if single { Some(loads(flows, queues, simulated.as_ref())?) } else { None };
    Ok(HashCastFlows { flows, ratios, loads })
}

fn loads(flows: u32, queues: u32, simulated: Option<&Simulated>) -> Result<Vec<HashCastLoads>> {
    let outcomes = hash_cast::distribution(flows, queues).map_err(Failure::wrong_input)?;
    let share = |min, max| {
        simulated.map(|s| s.counts.get(&(min, max)).copied().unwrap_or(0) as f64 / s.trials as f64)
    };
    let mut loads: Vec<_> = outcomes
        .into_iter()
        .map(|o| HashCastLoads {
            min: o.min,
            max: o.max,
            ratio: f64::from(o.max) / f64::from(o.min),
            probability: o.probability,
            simulated: share(o.min, o.max),
        })
        .collect();
    loads.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    Ok(loads)
}

/// Loads beyond which only JSON tells.
const SHOWN: usize = 15;

fn text(found: &HashCast) -> String {
    let mut text = String::new();
    let simulated = |s: Option<f64>| s.map_or(String::new(), |s| format!("  {s:>9.6}"));
    let heading = if found.trials > 0 { "  simulated" } else { "" };
    if let [HashCastFlows { flows, ratios, loads: Some(loads) }] = found.flows.as_slice() {
        text += &format!("{flows} flows hashed to {} queues\n\nfastest over slowest\n", found.queues);
        text += &format!("  ratio  probability{heading}\n");
        for ratio in ratios {
            let at_least = format!(">= {}", ratio.ratio);
            text += &format!("{at_least:>7}  {:>11.6}{}\n", ratio.probability, simulated(ratio.simulated));
        }
        text += &format!("\nloads of the queues in use (smallest:largest)\n  loads  probability{heading}\n");
        for load in loads.iter().take(SHOWN) {
            let pair = format!("{}:{}", load.min, load.max);
            text += &format!("{pair:>7}  {:>11.6}{}\n", load.probability, simulated(load.simulated));
        }
        if loads.len() > SHOWN {
            text += &format!("({} more with --json)\n", loads.len() - SHOWN);
        }
    } else {
        text += &format!(
            "flows hashed to {} queues: probability that the fastest is this many times as fast as the \
                          slowest\n\n  flows",
            found.queues
        );
        for ratio in found.flows.iter().take(1).flat_map(|f| &f.ratios) {
            let at_least = format!(">= {}", ratio.ratio);
            text += &format!("  {at_least:>9}{}", if found.trials > 0 { "  simulated" } else { "" });
        }
        text += "\n";
        for flows in &found.flows {
            text += &format!("{:>7}", flows.flows);
            for ratio in &flows.ratios {
                text += &format!("  {:>9.6}{}", ratio.probability, simulated(ratio.simulated));
            }
            text += "\n";
        }
    }
    if found.trials > 0 {
        text += &format!("simulated: {} trials, seed {}\n", found.trials, found.seed);
    }
    text
}
