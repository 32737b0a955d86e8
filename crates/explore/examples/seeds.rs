//! Tries seeds: `cargo run -p benchmaster-explore --example seeds -- FIRST COUNT`.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example")]

use benchmaster_explore::scenario::{Scenario, Space};
use benchmaster_explore::{run, shrink};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>().unwrap());
    let (first, count) = (arguments.next().unwrap_or(0), arguments.next().unwrap_or(100));
    let verbose = count == 1;
    let (mut failed, mut lines) = (0, 0);
    let begun = std::time::Instant::now();
    for seed in first..first + count {
        let scenario = Scenario::draw(seed, &Space::default());
        let outcome = match run(&scenario) {
            Ok(outcome) => outcome,
            Err(error) => {
                println!("seed {seed}: {error}");
                continue;
            }
        };
        lines += outcome.history.len();
        if verbose {
            println!(
                "{:?} udp {} cached {} clients {}",
                scenario.version,
                scenario.udp,
                scenario.cached,
                scenario.clients.len()
            );
            for line in &outcome.history {
                println!("{:>12.6} {:?} {}", line.at.as_secs_f64(), line.who, line.what);
            }
            println!("fingerprint {:x}", outcome.fingerprint());
        }
        if let Some(violation) = &outcome.violation {
            failed += 1;
            println!(
                "seed {seed} ({:?}{}{}): {}",
                scenario.version,
                if scenario.udp { " udp" } else { "" },
                if scenario.cached { " cached" } else { "" },
                violation.what
            );
            if verbose {
                let shrunk = shrink::shrink(&scenario, violation, 300);
                println!("after {} tries: {:#?}\n{}", shrunk.tried, shrunk.scenario, shrunk.violation.what);
                for line in &run(&shrunk.scenario).unwrap().history {
                    println!("{:>12.6} {:?} {}", line.at.as_secs_f64(), line.who, line.what);
                }
            }
        }
    }
    println!("{failed} of {count} failed, {lines} lines, {:?}", begun.elapsed());
}
