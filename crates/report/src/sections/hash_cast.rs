//! How likely winners and losers are when flows are hashed to the queues of a network card.

use benchmaster_stats::share::wilson;

use crate::document::{Block, Cell, Document, Section, Table};
use crate::format;
use crate::overview::unbroken;
use crate::plots::figure::{Axis, Figure, Line, Mode, Values, View, short};

/// What is shown: the probability that the highest rate of a flow is at least a multiple of the lowest, by the number of
/// flows.
#[derive(Debug, Clone, PartialEq)]
pub struct HashCast {
    pub queues: u32,
    /// Confidence level of the intervals of shares.
    pub confidence: f64,
    /// Exact probabilities, a curve for each threshold of the ratio.
    pub curves: Vec<HashCastCurve>,
    /// What was simulated or measured.
    pub points: Vec<HashCastPoints>,
}
#[derive(Debug, Clone, PartialEq)]
pub struct HashCastCurve {
    pub ratio: f64,
    /// Number of flows and probability, by number of flows.
    pub points: Vec<(u32, f64)>,
}
#[derive(Debug, Clone, PartialEq)]
pub struct HashCastPoints {
    /// `simulation, seed 7`, or the name of a study.
    pub source: String,
    pub points: Vec<HashCastPoint>,
}
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HashCastPoint {
    pub ratio: f64,
    pub flows: u32,
    pub trials: u64,
    /// How many of them had at least this ratio.
    pub hits: u64,
}

pub(crate) fn document(model: &HashCast) -> Document {
    let queues = format::plural(model.queues as usize, "queue");
    let lead = format!(
        "A network card sends each flow through the queue that a hash of it selects, and each queue has the same \
         rate. Flows \
         that share a queue with others lose. Hashes are taken as independent and equally likely for all {queues}."
    );
    Document {
        kind: "Benchmaster model",
        title: format!("Hash-Cast: flows in {queues}"),
        lead: vec![lead],
        sections: vec![
            Section::new("answer", "Answer")
                .full([Block::Answer(model.curves.iter().filter_map(sentence).collect())])
                .page([figure(model)])
                .full([table(model)]),
        ],
    }
}

fn figure(model: &HashCast) -> Figure {
    let mut lines = Vec::new();
    for (color, curve) in model.curves.iter().enumerate() {
        let name = format!("ratio ≥ {}, exact", curve.ratio);
        let y = Values::numbers(curve.points.iter().map(|p| p.1));
        let x = Values::numbers(curve.points.iter().map(|p| f64::from(p.0)));
        lines.push(Line::new(name, color, Mode::Lines, y).at(x));
    }
    for (number, points) in model.points.iter().enumerate() {
        for (color, curve) in model.curves.iter().enumerate() {
            let found: Vec<_> =
                points.points.iter().filter(|p| p.ratio == curve.ratio && p.trials > 0).collect();
            if found.is_empty() {
                continue;
            }
            let bars = found.iter().map(|p| {
                let share = share(p);
                let (low, high) = wilson(p.hits, p.trials, model.confidence);
                Some((short(share - low), short(high - share)))
            });
            lines.push(Line {
                error_y: Some(bars.collect()),
                symbol: ["circle", "diamond", "square"][number % 3],
                size: Some(6),
                text: found.iter().map(|p| format!("{} of {}", p.hits, p.trials)).collect(),
                ..Line::new(
                    format!("ratio ≥ {}, {}", curve.ratio, points.source),
                    color,
                    Mode::Markers,
                    Values::numbers(found.iter().map(|p| share(p))),
                )
                .at(Values::numbers(found.iter().map(|p| f64::from(p.flows))))
            });
        }
    }
    let points = match model.points.as_slice() {
        [] => String::new(),
        sources => {
            let described = sources.iter().map(|source| {
                let trials = source.points.iter().map(|p| p.trials);
                let (least, most) = (trials.clone().min().unwrap_or(0), trials.max().unwrap_or(0));
                let n = if least == most {
                    format::count(most)
                } else {
                    format!("{} to {}", format::count(least), format::count(most))
                };
                format!("{} (n = {n} for each number of flows)", source.source)
            });
            format!(
                " Marks are shares: {}. Their error bars are {} Wilson intervals.",
                described.collect::<Vec<_>>().join("; "),
                unbroken(&format::percent(model.confidence))
            )
        }
    };
    Figure {
        id: "hash-cast".into(),
        workload: String::new(),
        title: format!("Probability of a winner/loser ratio, {} queues", model.queues),
        note: format!(
            "The ratio is that of the largest to the smallest number of flows in a queue that has any, which is \
             the ratio \
             of the highest to the lowest rate of a flow. Lines are exact and have no interval; they connect \
             whole numbers of flows.{points}"
        ),
        choice: "",
        height: 440,
        x: Axis { title: "flows".into(), ..Axis::default() },
        y: Axis { title: "probability".into(), range: Some((0.0, 1.03)), ..Axis::default() },
        views: vec![View { label: "probabilities".into(), lines, ..View::default() }],
    }
}

fn share(point: &HashCastPoint) -> f64 {
    point.hits as f64 / point.trials as f64
}

/// The numbers of flows at which the probability is above a bound: `6 to 60, 62`.
fn above(curve: &HashCastCurve, bound: f64) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    let mut inside = false;
    for (flows, p) in &curve.points {
        match (inside && *p > bound, parts.last_mut()) {
            (true, Some(last)) => last.1 = *flows,
            _ if *p > bound => parts.push((*flows, *flows)),
            _ => {}
        }
        inside = *p > bound;
    }
    let ranges: Vec<_> = parts
        .iter()
        .map(|(from, to)| if from == to { from.to_string() } else { format!("{from} to {to}") })
        .collect();
    if ranges.is_empty() { "none".into() } else { ranges.join(", ") }
}

fn peak(curve: &HashCastCurve) -> Option<(u32, f64)> {
    curve.points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))
}

fn sentence(curve: &HashCastCurve) -> Option<String> {
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

fn table(model: &HashCast) -> Table {
    let mut table = Table::new(
        "Numbers of flows by probability",
        &["ratio", "#highest probability", "#with flows", "above 0.9", "above 0.5", "above 0.4", "above 0.2"],
    );
    for curve in &model.curves {
        let Some((flows, p)) = peak(curve) else { continue };
        let mut row = vec![
            Cell::text(format!("at least {}", curve.ratio)),
            Cell::number(format::fixed(p, 4), p),
            Cell::count(flows as usize),
        ];
        row.extend([0.9, 0.5, 0.4, 0.2].map(|bound| Cell::text(above(curve, bound))));
        table.row(row);
    }
    table.note = "Exact, within the requested numbers of flows.".into();
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_flows_are_told_in_ranges() {
        let points = [(2, 0.1), (3, 0.95), (4, 0.96), (5, 0.3), (6, 0.97)].to_vec();
        let curve = HashCastCurve { ratio: 2.0, points };
        assert_eq!(above(&curve, 0.9), "3 to 4, 6");
        assert_eq!(above(&curve, 0.2), "3 to 6");
        assert_eq!(above(&curve, 0.99), "none");
        assert_eq!(peak(&curve), Some((6, 0.97)));
    }
}
