//! The `benchmaster` command: arguments in, calls to the libraries, text out.

mod bar;
mod cli;
mod commands;
mod failure;
mod json_lines;
mod output;
mod progress;
mod signals;

use std::process::ExitCode;

use clap_complete::CompleteEnv;

use crate::cli::Command;

// Its allocator and memory functions.
#[cfg(target_env = "musl")]
use benchmaster_musl as _;

fn main() -> ExitCode {
    // Before all commands are described, which takes more memory than the part itself.
    if let Some(arguments) = commands::virtual_time::part_wanted() {
        return status_of(commands::virtual_time::part(&arguments));
    }
    // When a shell asks for completions: prints them, and ends.
    CompleteEnv::with_factory(cli::command).var(cli::COMPLETE).complete();
    let cli = cli::parse().unwrap_or_else(|error| error.exit());
    let result = match cli.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Quick(args) => commands::run::quick(&args),
        Command::Plan(args) => commands::plan::plan(&args),
        Command::Analyze(args) => commands::results::analyze(&args),
        Command::Report(args) => commands::results::report(&args),
        Command::Results(args) => commands::kept::results(&args),
        Command::Export(args) => commands::results::export(&args),
        Command::Compare(args) => commands::compare::compare(&args),
        Command::History(args) => commands::history::history(&args),
        Command::Diagnose(args) => commands::diagnose::diagnose(&args),
        Command::Simulate(args) => commands::simulate::simulate(&args),
        Command::Check(args) => commands::check::check(&args),
        Command::Explore(args) => commands::explore::explore(&args),
        Command::Witness(args) => commands::witness::witness(&args),
        Command::Serve(args) => commands::serve::serve(&args),
        Command::Certificates(args) => commands::certificates::certificates(&args),
        Command::Wire(args) => commands::wire::wire(&args),
        Command::Probe(args) => commands::probe::probe(&args),
        Command::Watch(args) => commands::watch::watch(&args),
        Command::Agent(args) => commands::agent::agent(&args),
        Command::Fleet(args) => commands::fleet::fleet(&args),
        Command::Lab(args) => commands::lab::lab(&args),
        Command::LabSupervisor(args) => commands::lab::supervisor(&args),
        Command::Guest(args) => commands::lab::guest(&args),
        Command::Doctor(args) => commands::doctor::doctor(&args),
        Command::Import(args) => commands::import::import(&args),
        Command::Workloads(args) => commands::built_in::workloads(&args),
        Command::Generate(args) => commands::built_in::generate(&args.what),
    };
    status_of(result)
}

/// Says what failed, if anything did.
fn status_of(result: failure::Result<failure::Status>) -> ExitCode {
    let status = result.unwrap_or_else(|failure| {
        output::error(&failure);
        failure.status
    });
    ExitCode::from(status.code())
}
