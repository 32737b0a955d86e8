//! Winners and losers among clients, and whether hashing of their connections is enough to explain them.

use std::collections::BTreeMap;

use benchmaster_stats::fairness::two_clusters;
use benchmaster_stats::hash_cast;
use serde::Serialize;

use benchmaster_units::format::plural;

/// A worker of a client; a client as a whole without a worker.
pub(super) type Member = (u32, Option<u32>);

/// Winners and losers among clients.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterSummary {
    /// Runs with winners and losers: two groups whose means differ by half or more, while each varies by 10 % or less.
    pub runs: usize,
    /// Runs that were looked at.
    pub of: usize,
    /// Clients that won in the run with the largest ratio.
    pub winners: Vec<u32>,
    /// Clients that lost in it.
    pub losers: Vec<u32>,
    /// Their mean rates, winners over losers.
    pub ratio: f64,
    /// Queues of the model, as many as a common network card has.
    pub queues: u32,
    /// The probability of a ratio as large, or up to a tenth smaller, when one connection of each client is hashed to so
    /// many queues.
    pub probability: f64,
    /// What that says.
    pub sentence: String,
}

/// Queues of common network cards, and of the papers'.
const QUEUES: u32 = 8;

/// Clients beyond which winners and losers are no question of hashing.
const MOST: usize = 64;

/// Part of the ratio that measurement may take from it.
const TOLERANCE: f64 = 0.9;

/// Looks for winners and losers in the rates of every run; `None` when no run has any.
pub(super) fn clusters(per_run: &[BTreeMap<Member, f64>]) -> Option<ClusterSummary> {
    let patterns = per_run.iter().filter(|rates| (2..=MOST).contains(&rates.len())).filter_map(|rates| {
        let values: Vec<f64> = rates.values().copied().collect();
        let found = two_clusters(&values).filter(|found| found.is_pattern() && found.ratio().is_finite())?;
        Some((rates, found))
    });
    let patterns: Vec<_> = patterns.collect();
    let (rates, strongest) = patterns.iter().max_by(|a, b| a.1.ratio().total_cmp(&b.1.ratio()))?;
    let ratio = strongest.ratio();
    let clients: Vec<u32> = rates.keys().map(|(client, _)| *client).collect();
    let named = |indices: &[usize]| indices.iter().map(|&i| clients[i]).collect::<Vec<_>>();
    let flows = u32::try_from(clients.len()).ok()?;
    let probability = hash_cast::probability_of_ratio(flows, QUEUES, (ratio * TOLERANCE).max(1.0)).ok()?;
    let chance =
        if probability < 0.001 { "below 0.1 %".into() } else { format!("{:.1} %", 100.0 * probability) };
    let judgement =
        if probability >= 0.05 { "this alone may be the reason" } else { "look for another reason" };
    let sentence = format!(
        "winners and losers in {} of {}, up to {ratio:.1} to 1. Hashing of {flows} connections to {QUEUES} queues of a \
         network card gives such a ratio with a probability of {chance}: {judgement}",
        patterns.len(),
        plural(per_run.len(), "run"),
    );
    Some(ClusterSummary {
        runs: patterns.len(),
        of: per_run.len(),
        winners: named(&strongest.winners),
        losers: named(&strongest.losers),
        ratio,
        queues: QUEUES,
        probability,
        sentence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(values: &[f64]) -> BTreeMap<Member, f64> {
        (1..).zip(values).map(|(client, &rate)| ((client, None), rate)).collect()
    }

    #[test]
    fn two_to_one_among_five_is_what_hashing_gives() {
        let found = clusters(&[
            rates(&[14.0, 28.0, 14.1, 28.2, 27.9]),
            rates(&[22.0, 22.5, 22.1, 22.0, 21.9]),
            rates(&[25.0, 24.9, 12.6, 12.5, 25.1]),
        ])
        .unwrap();
        assert_eq!((found.runs, found.of), (2, 3));
        assert!(found.ratio > 1.99 && found.ratio < 2.0);
        // Those of the run with the largest ratio.
        assert_eq!((found.losers, found.winners), (vec![1, 3], vec![2, 4, 5]));
        assert!((found.probability - 0.777_588).abs() < 1e-6);
        assert!(found.sentence.contains("77.8 %: this alone may be the reason"), "{}", found.sentence);
    }

    #[test]
    fn what_hashing_does_not_explain_is_said() {
        // Two connections are in one queue, and alike, or in two, and alike.
        let found = clusters(&[rates(&[10.0, 30.0])]).unwrap();
        assert_eq!(found.probability, 0.0);
        assert!(found.sentence.contains("look for another reason"), "{}", found.sentence);
        assert_eq!(clusters(&[rates(&[10.0, 10.0, 10.1])]), None);
        assert_eq!(clusters(&[]), None);
    }
}
