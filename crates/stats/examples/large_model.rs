//! Time of a large analysis: a model of a mixed study of 1,000 runs.
//! `cargo run --release -p benchmaster-stats --example large_model`
#![allow(clippy::print_stdout, reason = "it is there to print")]

use std::error::Error;
use std::time::Instant;

use benchmaster_stats::model::{Data, Factor, SumOfSquares, all_terms, fit};
use benchmaster_stats::transform::choose_scale;

fn main() -> Result<(), Box<dyn Error>> {
    // Five factors of two levels, two of three and one of four, 992 runs kept of 1,000: all two-factor interactions.
    let levels = [2usize, 2, 2, 2, 2, 3, 3, 4];
    let mut factors: Vec<_> = levels.map(Factor::named).into();
    factors[6] = Factor::numeric(vec![0.027, 6.87, 13.9]);
    let mut data = Data { factors, rows: Vec::new(), y: Vec::new(), block: None, whole_plot: None };
    for run in (0..1_000u64).filter(|run| run % 125 != 7) {
        let row: Vec<u32> =
            levels.iter().enumerate().map(|(j, n)| (hash(run * 64 + j as u64) % *n as u64) as u32).collect();
        data.y.push((f64::from(row[0]) + 0.5 * f64::from(row[6] * row[5]) + 0.2 * noise(run)).exp());
        data.rows.push(row);
    }
    let terms = all_terms(levels.len(), 2);
    let start = Instant::now();
    let model = fit(&data, &terms, 0.95)?;
    let fitted = start.elapsed();
    for kind in [SumOfSquares::I, SumOfSquares::II, SumOfSquares::III] {
        let start = Instant::now();
        let rows = model.anova(kind).rows.len();
        println!("type {kind:?} table of {rows} rows: {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    let columns = model.coefficients.len();
    println!("{} runs, {columns} coefficients fitted: {:.1} ms", model.n, fitted.as_secs_f64() * 1e3);
    let start = Instant::now();
    let scale = choose_scale(&data, &terms, 0.95)?;
    println!("scale chosen (log: {}): {:.1} ms", scale.log, start.elapsed().as_secs_f64() * 1e3);
    Ok(())
}

/// SplitMix64.
fn hash(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// About normal, with variance 1: the sum of twelve uniform numbers.
fn noise(run: u64) -> f64 {
    (0..12).map(|i| (hash(run * 12 + i + (1 << 40)) >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0
}
