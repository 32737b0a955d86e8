//! Orthogonal arrays with as many columns as possible, from which those of a design are chosen.

use std::collections::BTreeMap;

use super::scheme::{add, prime_power, scheme};
use crate::plackett_burman::plackett_burman;

/// Runs, each with a level per factor.
pub(super) type Rows = Vec<Vec<u32>>;

/// A column and its number of levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) levels: u32,
    pub(super) cells: Vec<u32>,
}

/// A saturated or nearly saturated array.
pub(super) type Parent = Vec<Column>;

/// Columns per number of levels.
pub(super) type Pool = BTreeMap<u32, Vec<Column>>;

/// Two-level columns in 12 runs that are orthogonal to each other and to three levels of four runs each.
const TWELVE_RUNS: [&str; 4] = ["001100110011", "001101011100", "010101100101", "010110010110"];
/// The same in 20 runs with five levels, found by a search.
const TWENTY_RUNS: [&str; 8] = [
    "01101100110011001100",
    "01011010110001010011",
    "01010101011010010110",
    "01100011101010011001",
    "00111100011000111001",
    "01010110100100111100",
    "01100110010110100011",
    "00111010101010100110",
];

/// The arrays of `runs` runs that are known here, one for each set of levels.
pub(super) fn parents(runs: u32) -> Vec<Parent> {
    let mut known: BTreeMap<Vec<u32>, Parent> = BTreeMap::new();
    let mut keep = |parent: Parent| {
        let mut levels: Vec<_> = parent.iter().map(|column| column.levels).collect();
        levels.sort_unstable();
        known.entry(levels).or_insert(parent);
    };
    keep(vec![Column { levels: runs, cells: (0..runs).collect() }]);
    if runs.is_multiple_of(4)
        && (8..=48).contains(&runs)
        && let Ok(rows) = plackett_burman(runs - 1)
    {
        let column =
            |factor: usize| Column { levels: 2, cells: rows.iter().map(|row| row[factor]).collect() };
        keep((0..runs as usize - 1).map(column).collect());
    }
    match runs {
        12 => keep(with_two_level_columns(3, &TWELVE_RUNS)),
        20 => keep(with_two_level_columns(5, &TWENTY_RUNS)),
        _ => {}
    }
    if runs.is_multiple_of(4) && runs > 4 {
        keep(pairs(runs / 2));
    }
    for order in (2..=runs / 2).filter(|order| runs.is_multiple_of(*order)) {
        let inner = runs / order;
        let prime = prime_power(order).map_or(order, |(prime, _)| prime);
        // Each row of the scheme with every element added, and next to it an array of as many rows.
        let cells = |column: &Vec<u32>| {
            column.iter().flat_map(|&x| (0..order).map(move |y| add(x, y, order, prime))).collect()
        };
        let added: Vec<_> = scheme(inner, order)
            .iter()
            .map(|column| Column { levels: order, cells: cells(column) })
            .collect();
        for parent in parents(inner) {
            let repeated = parent.into_iter().map(|column| Column {
                levels: column.levels,
                cells: column.cells.iter().flat_map(|&x| std::iter::repeat_n(x, order as usize)).collect(),
            });
            keep(added.iter().cloned().chain(repeated).collect());
        }
    }
    known.into_values().collect()
}

/// A column of `levels` levels in equal groups of runs, and two-level columns next to it.
fn with_two_level_columns(levels: u32, columns: &[&str]) -> Parent {
    let runs = columns.first().map_or(0, |column| column.len() as u32);
    let first = Column { levels, cells: (0..runs).map(|run| run / (runs / levels)).collect() };
    let two_level = |column: &&str| Column {
        levels: 2,
        cells: column.bytes().map(|digit| u32::from(digit - b'0')).collect(),
    };
    std::iter::once(first).chain(columns.iter().map(two_level)).collect()
}

/// A column of an even number of levels, twice each, and two two-level columns: equal at one half of the levels, opposite
/// at the other.
fn pairs(levels: u32) -> Parent {
    let runs = 0..2 * levels;
    vec![
        Column { levels, cells: runs.clone().map(|run| run / 2).collect() },
        Column { levels: 2, cells: runs.clone().map(|run| run % 2).collect() },
        Column { levels: 2, cells: runs.map(|run| (run % 2) ^ u32::from(run < levels)).collect() },
    ]
}

/// The columns of a parent, by levels, when there are enough for `need` (levels and how many columns of them). Columns that
/// are not needed are split into ones that are: four levels into three columns of two.
pub(super) fn pool(parent: &Parent, need: &BTreeMap<u32, usize>) -> Option<Pool> {
    let mut pool = Pool::new();
    for column in parent {
        pool.entry(column.levels).or_default().push(column.clone());
    }
    let count = |pool: &Pool, levels: u32| pool.get(&levels).map_or(0, Vec::len);
    // The largest first: what they are split into may be split again.
    let composite: Vec<_> = pool.keys().rev().copied().collect();
    for &levels in need.keys().rev() {
        for &large in composite.iter().filter(|large| **large > levels && large.is_multiple_of(levels)) {
            if count(&pool, levels) >= need[&levels] {
                break;
            }
            let spare = count(&pool, large).saturating_sub(need.get(&large).copied().unwrap_or(0));
            let has = |parent: &Parent| parent.iter().filter(|column| column.levels == levels).count();
            let Some(best) = parents(large).into_iter().max_by_key(has).filter(|parent| has(parent) > 0)
            else {
                continue;
            };
            for _ in 0..spare {
                let Some(column) = pool.get_mut(&large).and_then(Vec::pop) else { break };
                for part in &best {
                    let cells = column.cells.iter().map(|&level| part.cells[level as usize]).collect();
                    pool.entry(part.levels).or_default().push(Column { levels: part.levels, cells });
                }
            }
        }
    }
    let enough = need.iter().all(|(&levels, &columns)| count(&pool, levels) >= columns);
    enough.then_some(pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(parent: &Parent) -> BTreeMap<u32, usize> {
        let mut counts = BTreeMap::new();
        parent.iter().for_each(|column| *counts.entry(column.levels).or_default() += 1);
        counts
    }

    #[test]
    fn all_parents_are_orthogonal() {
        for runs in (4..=54).chain([64, 72, 81]) {
            for parent in parents(runs) {
                for (number, a) in parent.iter().enumerate() {
                    assert_eq!(a.cells.len(), runs as usize);
                    for b in &parent[..number] {
                        let mut times = BTreeMap::new();
                        a.cells.iter().zip(&b.cells).for_each(|pair| *times.entry(pair).or_insert(0) += 1);
                        assert_eq!(
                            times.len() as u32,
                            a.levels * b.levels,
                            "{runs} runs, {:?}",
                            levels(&parent)
                        );
                        assert!(times.values().all(|&n| n == runs / (a.levels * b.levels)), "{runs} runs");
                    }
                }
            }
        }
    }

    #[test]
    fn the_well_known_arrays_are_there() {
        let has = |runs: u32, wanted: &[(u32, usize)]| {
            let wanted: BTreeMap<_, _> = wanted.iter().copied().collect();
            parents(runs).iter().any(|parent| levels(parent) == wanted)
        };
        assert!(has(9, &[(3, 4)]));
        assert!(has(12, &[(3, 1), (2, 4)]));
        assert!(has(12, &[(6, 1), (2, 2)]));
        assert!(has(16, &[(4, 5)]));
        assert!(has(18, &[(2, 1), (3, 7)]));
        assert!(has(18, &[(6, 1), (3, 6)]));
        assert!(has(20, &[(5, 1), (2, 8)]));
        assert!(has(24, &[(3, 1), (2, 16)]));
        assert!(has(25, &[(5, 6)]));
        assert!(has(27, &[(3, 13)]));
        assert!(has(32, &[(4, 9), (2, 4)]));
        assert!(has(36, &[(2, 11), (3, 12)]));
        assert!(has(36, &[(3, 13), (2, 4)]));
        assert!(has(48, &[(4, 13), (3, 1)]) || has(48, &[(4, 12), (3, 1), (2, 4)]));
        assert!(has(50, &[(2, 1), (5, 11)]));
        assert!(has(54, &[(2, 1), (3, 25)]));
        assert!(has(64, &[(8, 9)]));
    }

    #[test]
    fn columns_are_split_where_needed() {
        let need = |wanted: &[(u32, usize)]| wanted.iter().copied().collect();
        let four = parents(16).into_iter().find(|parent| levels(parent) == need(&[(4, 5)])).unwrap();
        assert_eq!(pool(&four, &need(&[(4, 2), (2, 9)])).unwrap()[&2].len(), 9);
        assert!(pool(&four, &need(&[(4, 3), (2, 7)])).is_none());
    }
}
