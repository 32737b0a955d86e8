//! A search column by column, where no construction is known (Xu 2002).

use benchmaster_stats::random::Generator;

use super::parent::Rows;

/// How often a column is begun again before the whole array is.
const COLUMN_STARTS: usize = 30;

/// An orthogonal array found by exchanging the levels of two runs in a new column until it is orthogonal to those before.
/// `effort` is about the number of exchanges that may be looked at, for each column before.
pub(super) fn columnwise(levels: &[u32], runs: usize, mut effort: usize) -> Option<Rows> {
    let mut generator = Generator::of_seed(runs as u64 ^ 0x5eed);
    // The factors with most levels first: they leave the least freedom.
    let mut order: Vec<_> = (0..levels.len()).collect();
    order.sort_by_key(|&factor| std::cmp::Reverse(levels[factor]));
    while effort > 0 {
        let mut columns: Vec<(u32, Vec<u32>)> = Vec::new();
        for &factor in &order {
            let found = (0..COLUMN_STARTS)
                .find_map(|_| orthogonal(&columns, levels[factor], runs, &mut generator, &mut effort));
            match found {
                Some(column) => columns.push((levels[factor], column)),
                None => break,
            }
        }
        if columns.len() == levels.len() {
            let position = |factor: usize| order.iter().position(|&other| other == factor);
            let of_factor: Vec<_> = (0..levels.len()).filter_map(|f| columns.get(position(f)?)).collect();
            return Some(
                (0..runs).map(|run| of_factor.iter().map(|(_, cells)| cells[run]).collect()).collect(),
            );
        }
    }
    None
}

/// A column that is orthogonal to all others, from a random balanced one.
fn orthogonal(
    columns: &[(u32, Vec<u32>)],
    levels: u32,
    runs: usize,
    generator: &mut Generator,
    effort: &mut usize,
) -> Option<Vec<u32>> {
    let mut column: Vec<_> = (0..runs as u32).map(|run| run % levels).collect();
    generator.shuffle(&mut column);
    // How often each pair of levels occurs, for each column.
    let mut times: Vec<Vec<i64>> = columns
        .iter()
        .map(|(other_levels, other)| {
            let mut times = vec![0; (other_levels * levels) as usize];
            other.iter().zip(&column).for_each(|(&a, &b)| times[(a * levels + b) as usize] += 1);
            times
        })
        .collect();
    let expected = |times: &Vec<i64>| runs as i64 / times.len() as i64;
    let distance = |times: &[Vec<i64>]| -> i64 {
        times.iter().map(|own| own.iter().map(|n| (n - expected(own)).pow(2)).sum::<i64>()).sum()
    };
    let mut left = distance(&times);
    while left > 0 {
        let mut best: Option<(i64, usize, usize)> = None;
        for a in 0..runs {
            for b in (0..a).filter(|&b| column[a] != column[b]) {
                let change: i64 = columns
                    .iter()
                    .zip(&times)
                    .map(|((_, other), times)| {
                        if other[a] == other[b] {
                            return 0;
                        }
                        let at = |run: usize, level: u32| times[(other[run] * levels + level) as usize];
                        // Two cells lose a run, two gain one.
                        let loses = at(a, column[a]) + at(b, column[b]);
                        let gains = at(a, column[b]) + at(b, column[a]);
                        2 * (gains - loses) + 4
                    })
                    .sum();
                if change < best.map_or(0, |(least, ..)| least) {
                    best = Some((change, a, b));
                }
            }
        }
        *effort = effort.saturating_sub(runs * runs / 2 * columns.len().max(1));
        let (change, a, b) = best?;
        for ((_, other), times) in columns.iter().zip(&mut times) {
            for (run, from, to) in [(a, column[a], column[b]), (b, column[b], column[a])] {
                times[(other[run] * levels + from) as usize] -= 1;
                times[(other[run] * levels + to) as usize] += 1;
            }
        }
        column.swap(a, b);
        left += change;
    }
    Some(column)
}
