//! Fractions with minimum aberration, up to 4096 runs and 20 generators.
//!
//! Rows with up to 15 factors in 8 to 128 runs are the published ones (Chen, Sun and Wu 1993; Xu 2009). The others were
//! found by the search of this crate (`cargo run --release -p benchmaster-design --example catalogue`), or come from
//! the Golay code by leaving out factors. Where a row says so, the search has proved that no design has less aberration.

use crate::regular::{Aberration, Generator};
use crate::term::parse_letters;

/// A line for each design: the number of base factors and of all factors, `P` (proved) or `B` (the best that was
/// found), and the word of each added factor in the order of the factors.
const ROWS: &str = include_str!("catalogue.txt");

/// The generators of the best known fraction with `factors` factors in 2^`base` runs, and whether it is known to have
/// minimum aberration. `None` if the catalogue has none.
pub fn find(factors: u32, base: u32) -> Option<(Vec<Generator>, Aberration)> {
    let size = format!("{base} {factors} ");
    let row = ROWS.lines().find_map(|line| line.strip_prefix(&size))?;
    let (known, words) = row.split_once(' ')?;
    let aberration = if known == "P" { Aberration::Proved } else { Aberration::BestFound };
    let words = words.split(',').map(parse_letters).collect::<Option<Vec<_>>>()?;
    let generator = |(factor, word)| Generator { factor, word, negative: false };
    Some(((base..).zip(words).map(generator).collect(), aberration))
}
