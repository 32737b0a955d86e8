//! Searches fractions with minimum aberration and prints rows of the catalogue.
//!
//! `cargo run --release -p benchmaster-design --example catalogue -- BASE FACTORS EFFORT`
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::time::Instant;

use benchmaster_design::regular::Fraction;
use benchmaster_design::search::search;
use benchmaster_design::term::letters;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<u64> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let &[base, factors, effort] = arguments.as_slice() else {
        return Err("give the number of base factors, of all factors, and the effort".into());
    };
    let start = Instant::now();
    let fraction: Fraction = search(factors as u32, 1 << base, effort)?;
    let words: Vec<_> = fraction.generators().iter().map(|generator| letters(generator.word)).collect();
    println!(
        "{base} {factors} {:?} {} # {:?} clear {} in {:.1} s",
        fraction.aberration(),
        words.join(","),
        &fraction.word_length_pattern()[3..],
        fraction.clear().two_factor.len(),
        start.elapsed().as_secs_f64()
    );
    Ok(())
}
