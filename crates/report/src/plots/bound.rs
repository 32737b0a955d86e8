//! What a rate could be at most: what the network carries without NFS.

use benchmaster_analysis::{Analysis, TreatmentSummary};
use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{RunRecord, StudyResults};

use super::figure::{Line, Mode, Values, View, short};
use crate::overview::unbroken;
use crate::{format, overview};

/// An upper bound is drawn up to so many times the largest value; one beyond would squeeze the values.
const DRAWN_TO: f64 = 4.0;

/// The most that a workload could move.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bound {
    /// Bytes per second, over all clients.
    pub(crate) rate: f64,
    /// What it is, for the label of its line.
    pub(crate) name: String,
}

impl Bound {
    /// Whether it stands near enough to the largest value to be drawn.
    pub(super) fn is_near(&self, largest: f64) -> bool {
        self.rate <= largest * DRAWN_TO
    }

    /// That it is not drawn, in a sentence with a blank before it; nothing where it is.
    pub(super) fn far(&self, largest: f64) -> String {
        if self.is_near(largest) || largest <= 0.0 {
            return String::new();
        }
        let rate = format::rounded(self.rate, None, benchmaster_record::results::Unit::BytesPerSecond, None);
        format!(
            " Not drawn, far beyond the axis ({:.0} times the largest value): {}, {}.",
            self.rate / largest,
            self.name,
            unbroken(&rate.text(true))
        )
    }
}

/// The most bytes per second that the network carries for a workload of a run: raw TCP as measured, in the direction in which
/// the workload moves most, else the bandwidth that is emulated. `None` when neither is known.
pub(crate) fn network(results: &StudyResults, run: &RunRecord, recording: &Recording) -> Option<Bound> {
    let network = &run.service.as_ref()?.network;
    let moved = |kind: OperationKind| -> u64 {
        recording.series.iter().filter(|s| s.key.operation == kind).map(|s| s.total.bytes).sum()
    };
    let direction =
        if moved(OperationKind::Read) >= moved(OperationKind::Write) { "receive" } else { "send" };
    let clients = recording.agents.iter().map(|agent| agent.clients).sum::<u32>().max(1);
    let many = network.is_emulated() && clients > 1;
    let factor = if many { f64::from(clients) } else { 1.0 };
    let of = match (clients, many) {
        (1, _) => String::new(),
        (_, true) => format!(" × {clients} clients"),
        (_, false) => " of one client".into(),
    };
    let flows = results.baseline_of(network).into_iter().flat_map(|baseline| &baseline.flows);
    let measured = flows
        .filter(|flows| flows.direction == direction && flows.throughput > 0.0)
        .max_by(|a, b| a.throughput.total_cmp(&b.throughput));
    match (measured, network.bandwidth) {
        (Some(flows), _) => Some(Bound {
            rate: flows.throughput * factor,
            name: format!("network{of} (raw TCP, {})", format::plural(flows.flows as usize, "flow")),
        }),
        (None, Some(bits)) => {
            Some(Bound { rate: bits as f64 / 8.0 * factor, name: format!("network{of} (as emulated)") })
        }
        (None, None) => None,
    }
}

/// The shortest that an answer from the server can take, in seconds: one round trip as measured, else as emulated.
pub(super) fn round_trip(results: &StudyResults, run: &RunRecord) -> Option<f64> {
    let network = &run.service.as_ref()?.network;
    let measured = results.baseline_of(network).and_then(|baseline| baseline.round_trip);
    match measured {
        Some(measured) => Some(measured.min_ns as f64 / 1e9),
        None => (network.delay_ns > 0).then(|| 2.0 * network.delay_ns as f64 / 1e9),
    }
}

/// What the network carries for each treatment, by its number, where it is known.
pub(super) fn of_treatments(
    results: &StudyResults,
    analysis: &Analysis,
    workload: &str,
) -> Vec<(usize, Bound)> {
    let of = |treatment: &TreatmentSummary| {
        let run = overview::counted_runs(results, treatment.index).next()?;
        network(results, run, run.recordings.iter().find(|r| r.workload == workload)?)
    };
    analysis.treatments.iter().enumerate().filter_map(|(i, treatment)| Some((i, of(treatment)?))).collect()
}

/// Adds the upper bounds of treatments. Returns what is not drawn, in a sentence with a blank before it.
pub(super) fn by_treatment(view: &mut View, bounds: &[(usize, Bound)]) -> String {
    let largest = |line: &Line| match &line.x {
        Some(Values::Numbers(x)) => x.iter().copied().fold(0.0, f64::max),
        _ => 0.0,
    };
    let largest = view.lines.iter().map(largest).fold(0.0, f64::max);
    let (near, far): (Vec<_>, Vec<_>) = bounds.iter().partition(|(_, bound)| bound.is_near(largest));
    if !near.is_empty() {
        let places = near.iter().map(|(at, bound)| (bound.rate, *at as f64));
        view.lines.push(Line {
            symbol: "line-ns-open",
            size: Some(20),
            quiet: true,
            text: near.iter().map(|(_, bound)| bound.name.clone()).collect(),
            ..Line::through("upper bound: network", 9, Mode::Markers, places)
        });
    }
    let furthest = far.into_iter().map(|(_, bound)| bound).min_by(|a, b| a.rate.total_cmp(&b.rate));
    furthest.map_or_else(String::new, |bound| bound.far(largest))
}

/// Adds the upper bound to plots over time where it is the same for all treatments. Returns what is not drawn, in a sentence with a
/// blank before it.
pub(super) fn over_time(views: &mut [View], bounds: &[(usize, Bound)], analysis: &Analysis) -> String {
    let Some((_, bound)) = bounds.first() else { return String::new() };
    if bounds.len() < analysis.treatments.len() || bounds.iter().any(|(_, other)| other != bound) {
        return String::new();
    }
    let mut far = String::new();
    for view in views {
        let largest = |line: &Line| match &line.y {
            Values::Numbers(y) => y.iter().copied().fold(0.0, f64::max),
            Values::Names(_) => 0.0,
        };
        let largest = view.lines.iter().map(largest).fold(0.0, f64::max);
        if bound.is_near(largest) {
            view.marks_y.push((short(bound.rate), bound.name.clone()));
        } else if far.is_empty() {
            far = bound.far(largest);
        }
    }
    far
}

#[cfg(test)]
mod tests {
    use benchmaster_testkit::{serve, spread, study_results};

    use super::*;

    #[test]
    fn a_bound_is_of_all_clients_and_is_drawn_only_where_it_does_not_squeeze_the_values() {
        let mut results = study_results(3, 1, 1);
        assert_eq!(network(&results, &results.runs[0], &results.runs[0].recordings[0]), None);
        serve(&mut results);
        spread(&mut results);
        let run = &results.runs[0];
        let recording = &run.recordings[0];
        let bound = network(&results, run, recording).unwrap();
        let baseline = results.baseline_of(&run.service.as_ref().unwrap().network).unwrap();
        let best = baseline.flows.iter().map(|f| f.throughput).fold(0.0, f64::max);
        let clients: u32 = recording.agents.iter().map(|agent| agent.clients).sum();
        assert!(clients > 1 && bound.name.contains("clients"), "{bound:?}");
        assert!(bound.rate <= best * f64::from(clients), "{bound:?}");
        assert!(bound.is_near(bound.rate) && bound.far(bound.rate).is_empty());
        assert!(bound.far(bound.rate / 10.0).contains("10 times the largest value"));
        assert!(round_trip(&results, run).unwrap() > 0.0);
    }
}
