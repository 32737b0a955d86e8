//! All integration tests in one executable, which is also the supervisor of labs, process 1 of machines, as `hold` a
//! process that has a lab and is killed, and as `hold-lock` a program in a machine.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "skipped tests, and what other processes wait for")]

mod labs;
mod machines;

use std::process::ExitCode;

use benchmaster_lab::{guest, supervisor};
use libtest_mimic::Arguments;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["__supervisor", stage] => ended(supervisor::run(stage.parse().unwrap())),
        ["__guest"] if std::env::var_os(machines::guest::TEST).is_some() => machines::guest::main(),
        ["__guest"] => ended(guest::process_1().map(drop)),
        ["__guest", "--serve", address] => ended(guest::serve(address.parse().unwrap())),
        ["hold", name, back_end] => labs::crashes::hold(name, back_end.parse().unwrap()),
        ["hold-lock", file, signs] => labs::cuts::hold_lock(file, signs),
        _ => {
            let trials = labs::trials().into_iter().chain(machines::trials());
            // The full tier: machines, and networks of their own.
            let tests = trials.map(|trial| trial.with_ignored_flag(true)).collect();
            libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
        }
    }
}

fn ended<T, E: std::fmt::Display>(result: Result<T, E>) -> ExitCode {
    match result {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
