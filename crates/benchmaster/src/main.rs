//! The `benchmaster` command: arguments in, calls to the libraries, text out.

mod cli;
mod commands;
mod output;
mod progress;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::commands::Status;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match cli.command {
        Command::Run(args) => commands::run::run(&args),
        Command::Quick(args) => commands::run::quick(&args),
        Command::Plan(args) => commands::plan::plan(&args),
        Command::Analyze(args) => commands::results::analyze(&args),
        Command::Report(args) => commands::results::report(&args),
        Command::Export(args) => commands::results::export(&args),
        Command::Serve(args) => commands::serve::serve(&args),
        Command::Workloads(args) => commands::built_in::workloads(&args),
        Command::Schema => commands::built_in::schema(),
        Command::Completions { shell } => commands::built_in::completions(shell),
        Command::Man(args) => commands::built_in::man(&args),
    };
    let status = result.unwrap_or_else(|failure| {
        output::error(&failure);
        failure.status
    });
    ExitCode::from(match status {
        Status::Fine => 0,
        Status::ChecksFailed => 1,
        Status::WrongInput => 2,
        Status::Interrupted => 130,
    })
}
