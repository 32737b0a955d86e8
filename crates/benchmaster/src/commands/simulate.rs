//! `simulate`: models from the papers.

use benchmaster_report::html;
use benchmaster_stats::hash_cast::{self, Simulated};
use serde::Serialize;

use crate::cli::{HashCastArgs, SimulateArgs, SimulateCommand};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn simulate(args: &SimulateArgs) -> Result<Status> {
    match &args.model {
        SimulateCommand::HashCast(args) => hash_cast(args),
    }
}

/// Flows in queues: for one number of flows everything, for several the probability of ratios.
#[derive(Debug, Serialize)]
struct HashCast {
    queues: u32,
    trials: u64,
    seed: u64,
    flows: Vec<Flows>,
}

#[derive(Debug, Serialize)]
struct Flows {
    flows: u32,
    ratios: Vec<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loads: Option<Vec<Loads>>,
}

/// The probability that the fastest flow is at least so many times as fast as the slowest.
#[derive(Debug, Serialize)]
struct Ratio {
    ratio: f64,
    probability: f64,
    simulated: Option<f64>,
}

/// Smallest load that is not 0, and largest.
#[derive(Debug, Serialize)]
struct Loads {
    min: u32,
    max: u32,
    ratio: f64,
    probability: f64,
    simulated: Option<f64>,
}

fn hash_cast(args: &HashCastArgs) -> Result<Status> {
    if let Some(wrong) = args.ratio.iter().find(|r| !(r.is_finite() && **r >= 1.0)) {
        let error =
            anyhow::anyhow!("a ratio of {wrong} has no meaning; write numbers from 1 on, such as 2,5");
        return Err(Failure::wrong_input(error));
    }
    let (from, to) = args.flows;
    let all = (from..=to).map(|flows| of_flows(args, flows, from == to)).collect::<Result<Vec<_>>>()?;
    let found = HashCast { queues: args.queues, trials: args.trials, seed: args.seed, flows: all };
    if let Some(path) = &args.html {
        let page = html::hash_cast(&drawing(&found)).map_err(Failure::failed)?;
        super::results::write_page(path, &page).map_err(Failure::of_a_place_given)?;
    }
    if args.json {
        output::print_json(&found)?
    } else {
        output::print(&text(&found))?
    }
    Ok(Status::Fine)
}

/// What is drawn: a curve for each ratio, and what was simulated as marks.
fn drawing(found: &HashCast) -> html::HashCast {
    let ratios = found.flows.first().map_or(&[][..], |flows| &flows.ratios);
    let curve = |number: usize, ratio: f64| {
        let points = found.flows.iter().map(|f| (f.flows, f.ratios[number].probability)).collect();
        html::HashCastCurve { ratio, points }
    };
    let shares = found.flows.iter().flat_map(|flows| {
        let point = |ratio: &Ratio| {
            let hits = (ratio.simulated? * found.trials as f64).round() as u64;
            Some(html::HashCastPoint { ratio: ratio.ratio, flows: flows.flows, trials: found.trials, hits })
        };
        flows.ratios.iter().filter_map(point)
    });
    let simulated = (found.trials > 0).then(|| html::HashCastPoints {
        source: format!("simulated, seed {}", found.seed),
        points: shares.collect(),
    });
    html::HashCast {
        queues: found.queues,
        confidence: 0.95,
        curves: ratios.iter().enumerate().map(|(number, ratio)| curve(number, ratio.ratio)).collect(),
        points: simulated.into_iter().collect(),
    }
}

fn of_flows(args: &HashCastArgs, flows: u32, single: bool) -> Result<Flows> {
    let queues = args.queues;
    let simulated = match args.trials {
        0 => None,
        trials => Some(hash_cast::simulate(flows, queues, trials, args.seed).map_err(Failure::wrong_input)?),
    };
    let mut ratios = Vec::with_capacity(args.ratio.len());
    for &ratio in &args.ratio {
        let probability =
            hash_cast::probability_of_ratio(flows, queues, ratio).map_err(Failure::wrong_input)?;
        ratios.push(Ratio {
            ratio,
            probability,
            simulated: simulated.as_ref().map(|s| s.share_of_ratio(ratio)),
        });
    }
    let loads = if single { Some(loads(flows, queues, simulated.as_ref())?) } else { None };
    Ok(Flows { flows, ratios, loads })
}

fn loads(flows: u32, queues: u32, simulated: Option<&Simulated>) -> Result<Vec<Loads>> {
    let outcomes = hash_cast::distribution(flows, queues).map_err(Failure::wrong_input)?;
    let share = |min, max| {
        simulated.map(|s| s.counts.get(&(min, max)).copied().unwrap_or(0) as f64 / s.trials as f64)
    };
    let mut loads: Vec<_> = outcomes
        .into_iter()
        .map(|o| Loads {
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
    if let [Flows { flows, ratios, loads: Some(loads) }] = found.flows.as_slice() {
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
