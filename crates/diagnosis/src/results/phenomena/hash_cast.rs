//! Winners and losers over many runs, beside what hashing of connections would give.

use std::collections::BTreeSet;

use benchmaster_analysis::counts;
use benchmaster_record::results::RunKey;
use benchmaster_stats::share::wilson;
use benchmaster_stats::{hash_cast, mean, standard_deviation};

use super::clients::together;
use super::tools::digits;
use super::winners::{transmit_queues, winners};
use crate::prelude::*;

const LEAST_RUNS: usize = 5;
/// What the sum over clients may vary by.
const MOST_VARIATION: f64 = 0.05;

pub(super) const COMPARISON: Comparison = Comparison { id: "hash-cast", compare };

fn compare(whole: &Whole<'_>) -> Compared {
    let mut compared = Compared::nothing(false);
    for treatment in &whole.results.study.treatments {
        for workload in &whole.results.study.workloads {
            let runs =
                whole.results.runs.iter().filter(|run| run.key.treatment == treatment.index && counts(run));
            let recordings: Vec<(&RunRecord, &Recording)> = runs
                .filter_map(|run| {
                    Some((run, run.recordings.iter().find(|recording| recording.workload == workload.name)?))
                })
                .collect();
            let rates: Vec<Rated> = recordings
                .iter()
                .filter_map(|(run, recording)| {
                    let rates = together(recording, |_| None)?;
                    Some((run.key, rates.of))
                })
                .collect();
            let clients = rates.first().map_or(0, |(_, of)| of.len());
            if rates.len() < LEAST_RUNS
                || !(3..=64).contains(&clients)
                || rates.iter().any(|(_, of)| of.len() != clients)
            {
                continue;
            }
            compared.irrelevant = false;
            let Some((run, _)) = recordings.first() else { continue };
            let judged = transmit_queues(run).and_then(|queues| judge(&rates, clients as u32, queues));
            let Some(finding) = judged else { continue };
            let place = format!("{}: {}", workload.name, plural(rates.len(), "run"));
            let runs = rates.iter().map(|of| of.0).collect();
            let treatment = (treatment.index, treatment.label.clone());
            let finding = finding.in_treatment(&workload.name, treatment, runs, rates.len());
            compared.found.push(Finding { place, ..finding });
        }
    }
    compared
}

/// A run, and what its clients got.
type Rated = (RunKey, Vec<(u32, f64)>);

fn judge(rates: &[Rated], clients: u32, queues: u32) -> Option<Finding> {
    let sums: Vec<f64> = rates.iter().map(|(_, of)| of.iter().map(|(_, rate)| rate).sum()).collect();
    let variation = standard_deviation(&sums)? / mean(&sums)?;
    let patterns: Vec<_> = rates.iter().filter_map(|(_, of)| winners(of)).collect();
    let losers: BTreeSet<&Vec<usize>> = patterns.iter().map(|found| &found.losers).collect();
    let expected = hash_cast::probability_of_ratio(clients, queues, 1.5).ok()?;
    let seen = patterns.len() as f64 / rates.len() as f64;
    let (low, high) = wilson(patterns.len() as u64, rates.len() as u64, 0.95);
    if patterns.len() < 2
        || losers.len() < 2
        || variation > MOST_VARIATION
        || !(low..=high).contains(&expected)
    {
        return None;
    }
    let mean_of = mean(&sums)? / f64::from(clients);
    let ratio = mean(&patterns.iter().map(|found| found.ratio()).collect::<Vec<_>>())?;
    let lost = mean(&patterns.iter().map(|found| 1.0 - found.losers_mean / mean_of).collect::<Vec<_>>())?;
    let what = format!(
        "In {} of {} runs ({}) some clients get {} times what others get, and they are others in each; together they always move the same (within {}). Hashing of {clients} connections to {queues} transmit queues \
         would do so in {}.",
        patterns.len(),
        rates.len(),
        percent(seen),
        digits(ratio),
        percent(variation),
        percent(expected)
    );
    Some(
        Finding::new(Confidence::Likely, what)
            .with([
                Evidence::number("runs with winners and losers", patterns.len() as f64),
                Evidence::number("groups of losers that differ", losers.len() as f64),
                Evidence::number("expected share of such runs", expected),
                Evidence::number("winners' rate / losers' rate, mean", ratio),
                Evidence::number("variation of the rate of all clients over runs", variation),
            ])
            .tested(
                "share of runs with winners and losers (Wilson)",
                None,
                TestInterval { value: seen, lower: low, upper: high, confidence: 0.95 },
            )
            .costs(lost),
    )
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;

    use super::super::made;
    use super::*;

    fn verdict(runs: &[[f64; 5]]) -> Compared {
        let mut results = made::study(
            "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.read]\nuse = \"sequential-read\"\nduration = \"1s\"\n",
        );
        for rates in runs {
            let mut recording = made::recording("read", 60.0);
            let sum: f64 = rates.iter().sum();
            made::series(&mut recording, OperationKind::Read, 1_000_000, &[(9_000_000, (sum * 60.0) as u64)]);
            made::workers(&mut recording, rates);
            made::add(&mut results, 0, vec![recording], &[]);
        }
        made::compare(&results, compare)
    }

    #[test]
    fn others_lose_in_each_run() {
        let runs = [
            [14.0, 28.0, 14.0, 28.0, 28.0],
            [28.0, 28.0, 28.0, 14.0, 14.0],
            [37.0, 37.0, 12.6, 12.7, 12.6],
            [22.4, 22.5, 22.3, 22.4, 22.4],
            [28.0, 14.0, 28.0, 14.0, 28.0],
        ];
        let found = verdict(&runs);
        assert!(found.found[0].what.starts_with("In 4 of 5 runs (80 %)"), "{:?}", found.found);
        // The same lose each time; the sum is another each time; four runs.
        assert!(verdict(&[runs[0]; 5]).found.is_empty());
        let mut other = runs;
        other[1] = other[1].map(|rate| rate * 1.5);
        assert!(verdict(&other).found.is_empty());
        assert!(verdict(&runs[..4]).irrelevant);
        assert!(verdict(&[runs[3]; 5]).found.is_empty());
    }
}
