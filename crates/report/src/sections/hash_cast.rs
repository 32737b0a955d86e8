//! How likely winners and losers are when flows are hashed to the queues of a network card.

use benchmaster_stats::share::wilson;
use serde::Serialize;

use crate::document::{Block, Cell, Document, Section, Table};
use crate::format;
use crate::overview::unbroken;
use crate::plots::figure::{Axis, Figure, Line, Mode, Values, View, short};

/// Confidence level of the intervals of shares.
const CONFIDENCE: f64 = 0.95;

/// Flows in queues: the probability that the highest rate of a flow is at least a multiple of the lowest, by the number of
/// flows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HashCast {
    pub queues: u32,
    /// Simulated, for each number of flows.
    pub trials: u64,
    pub seed: u64,
    pub flows: Vec<HashCastFlows>,
}

/// All with the same ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HashCastFlows {
    pub flows: u32,
    pub ratios: Vec<HashCastRatio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loads: Option<Vec<HashCastLoads>>,
}

/// The probability that the fastest flow is at least this many times as fast as the slowest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HashCastRatio {
    pub ratio: f64,
    pub probability: f64,
    pub simulated: Option<f64>,
}

/// Smallest load that is not 0, and largest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HashCastLoads {
    pub min: u32,
    pub max: u32,
    pub ratio: f64,
    pub probability: f64,
    pub simulated: Option<f64>,
}

/// Probabilities of a ratio by the number of flows.
struct Curve {
    ratio: f64,
    exact: Vec<(u32, f64)>,
    simulated: Vec<(u32, f64)>,
}

fn curves(model: &HashCast) -> Vec<Curve> {
    let ratios = model.flows.first().map_or(&[][..], |flows| &flows.ratios);
    let curve = |(number, ratio): (usize, &HashCastRatio)| {
        let points = || model.flows.iter().map(move |flows| (flows.flows, &flows.ratios[number]));
        Curve {
            ratio: ratio.ratio,
            exact: points().map(|(flows, found)| (flows, found.probability)).collect(),
            simulated: points().filter_map(|(flows, found)| Some((flows, found.simulated?))).collect(),
        }
    };
    ratios.iter().enumerate().map(curve).collect()
}

/// Probabilities of winner/loser ratios by the number of flows.
pub fn document(model: &HashCast) -> Document {
    let queues = format::plural(model.queues as usize, "queue");
    let lead = format!(
        "A network card sends each flow through the queue that a hash of it selects, and each queue has the same \
         rate. Flows \
         that share a queue with others lose. Hashes are taken as independent and equally likely for all {queues}."
    );
    let curves = curves(model);
    Document {
        kind: "Benchmaster model",
        title: format!("Hash-Cast: flows in {queues}"),
        lead: vec![lead],
        sections: vec![
            Section::new("answer", "Answer")
                .full([Block::Answer(curves.iter().filter_map(sentence).collect())])
                .page([figure(model, &curves)])
                .full([table(&curves)]),
        ],
    }
}

fn figure(model: &HashCast, curves: &[Curve]) -> Figure {
    let line = |name: String, color: usize, mode: Mode, points: &[(u32, f64)]| {
        let y = Values::numbers(points.iter().map(|(_, probability)| *probability));
        Line::new(name, color, mode, y).at(Values::numbers(points.iter().map(|(flows, _)| f64::from(*flows))))
    };
    let exact = curves.iter().enumerate().map(|(color, curve)| {
        line(format!("ratio ≥ {}, exact", curve.ratio), color, Mode::Lines, &curve.exact)
    });
    let source = format!("simulated, seed {}", model.seed);
    let hits = |share: f64| (share * model.trials as f64).round() as u64;
    let bar = |share: f64| {
        let (low, high) = wilson(hits(share), model.trials, CONFIDENCE);
        Some((short(share - low), short(high - share)))
    };
    let simulated = curves.iter().enumerate().filter(|(_, curve)| !curve.simulated.is_empty());
    let simulated = simulated.map(|(color, curve)| {
        let shares = || curve.simulated.iter().map(|(_, share)| *share);
        Line {
            error_y: Some(shares().map(bar).collect()),
            symbol: "circle",
            size: Some(6),
            text: shares().map(|share| format!("{} of {}", hits(share), model.trials)).collect(),
            ..line(format!("ratio ≥ {}, {source}", curve.ratio), color, Mode::Markers, &curve.simulated)
        }
    });
    let lines = exact.chain(simulated).collect();
    let points = match model.trials {
        0 => String::new(),
        n => format!(
            " Marks are shares: {source} (n = {} for each number of flows). Their error bars are {} Wilson intervals.",
            format::count(n),
            unbroken(&format::percent(CONFIDENCE))
        ),
    };
    Figure {
        id: "hash-cast".into(),
        title: format!("Probability of a winner/loser ratio, {} queues", model.queues),
        note: format!(
            "The ratio is that of the largest to the smallest number of flows in a queue that has any, which is \
             the ratio \
             of the highest to the lowest rate of a flow. Lines are exact and have no interval; they connect \
             whole numbers of flows.{points}"
        ),
        height: 440,
        x: Axis::titled("flows"),
        y: Axis { range: Some((0.0, 1.03)), ..Axis::titled("probability") },
        views: vec![View { label: "probabilities".into(), lines, ..View::default() }],
        ..Figure::default()
    }
}

/// The numbers of flows at which the probability is above a bound: `6 to 60, 62`.
fn above(curve: &Curve, bound: f64) -> String {
    let runs = curve.exact.chunk_by(|(_, a), (_, b)| (*a > bound) == (*b > bound));
    let ranges = runs.filter(|run| run[0].1 > bound).map(|run| match run {
        [(from, _), .., (to, _)] => format!("{from} to {to}"),
        run => run[0].0.to_string(),
    });
    let ranges: Vec<_> = ranges.collect();
    if ranges.is_empty() { "none".into() } else { ranges.join(", ") }
}

fn peak(curve: &Curve) -> Option<(u32, f64)> {
    curve.exact.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))
}

fn sentence(curve: &Curve) -> Option<String> {
    let (flows, p) = peak(curve)?;
    let bound = [0.9, 0.5, 0.2].into_iter().find(|bound| p > *bound)?;
    Some(format!(
        "Some flow gets at least {} times the rate of another with a probability above {} for {} flows; most \
         often, with \
         {} %, for {flows}.",
        curve.ratio,
        format::percent(bound),
        above(curve, bound),
        format::fixed(p * 100.0, 1)
    ))
}

fn table(curves: &[Curve]) -> Table {
    let rows = curves.iter().filter_map(|curve| Some((curve, peak(curve)?)));
    let mut table = Table::of("Numbers of flows by probability", rows)
        .column("ratio", |(curve, _)| Cell::text(format!("at least {}", curve.ratio)))
        .column("#highest probability", |(_, (_, p))| Cell::number(format::fixed(*p, 4), *p))
        .column("#with flows", |(_, (flows, _))| Cell::count(*flows as usize));
    for bound in [0.9, 0.5, 0.4, 0.2] {
        table = table.column(&format!("above {bound}"), |(curve, _)| Cell::text(above(curve, bound)));
    }
    table.note("Exact, within the requested numbers of flows.").table()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_flows_are_told_in_ranges() {
        let exact = [(2, 0.1), (3, 0.95), (4, 0.96), (5, 0.3), (6, 0.97)].to_vec();
        let curve = Curve { ratio: 2.0, exact, simulated: vec![] };
        assert_eq!(above(&curve, 0.9), "3 to 4, 6");
        assert_eq!(above(&curve, 0.2), "3 to 6");
        assert_eq!(above(&curve, 0.99), "none");
        assert_eq!(peak(&curve), Some((6, 0.97)));
    }
}
