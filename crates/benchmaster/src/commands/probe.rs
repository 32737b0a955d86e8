//! `probe`: what the network can do without a file system.

use std::time::Duration;

use benchmaster_probe::{self, Direction, NullDataConfig, ProbeConfig, ProbeError, ServeConfig, Token};
use serde_json::json;
use signal_hook::iterator::Signals;

use crate::bar::Bar;
use crate::cli::{Directions, ProbeArgs, ProbeCommand, ProbeNetworkArgs, ProbeRpcArgs};
use crate::failure::{Failure, Result, Status};
use crate::output;
use crate::signals;

mod text;

/// Probes as asked for.
pub(crate) fn probe(args: &ProbeArgs) -> Result<Status> {
    match &args.command {
        ProbeCommand::Network(args) if args.serve => serve(args),
        ProbeCommand::Network(args) => network(args),
        ProbeCommand::Rpc(args) => rpc(args),
    }
}

/// The far end, until SIGINT or SIGTERM.
fn serve(args: &ProbeNetworkArgs) -> Result<Status> {
    if !args.listen.ip().is_loopback() && !args.allow_remote {
        return Err(Failure::wrong(format!(
            "{} can be reached from other hosts; add --allow-remote if that is intended",
            args.listen
        )));
    }
    // Before the first thread: signals are then handled here alone.
    let mut signals = Signals::new(signals::ending())?;
    let token = token(args)?;
    if token.is_none() && !args.listen.ip().is_loopback() {
        output::note("note: any host that reaches this address can use it; --token-file restricts access");
    }
    let far_end =
        benchmaster_probe::serve(ServeConfig { token, ..ServeConfig::new(args.listen) }).map_err(failure)?;
    output::note(&format!("far end of network probes at {}", far_end.address()));
    signals.forever().next();
    let done = far_end.stop();
    let report = json!({ "tests": done.tests, "refused": done.refused, "failed": done.failed });
    output::print(&report.to_string())?;
    Ok(Status::Fine)
}

fn network(args: &ProbeNetworkArgs) -> Result<Status> {
    let config = config(args)?;
    let mut bar = Bar::on_terminal(1_000);
    let measured = benchmaster_probe::network_with(&config, &mut |what, share| {
        if let Some(bar) = &mut bar {
            bar.position = (share * 1e3) as u64;
            bar.beside = format!("{:.0} %, {what}", share * 1e2);
            bar.show();
        }
    });
    if let Some(bar) = &mut bar {
        bar.erase();
    }
    let measured = measured.map_err(failure)?;
    output::answer(args.json, &measured, || text::network(&measured, output::text_options().unicode))
}

fn rpc(args: &ProbeRpcArgs) -> Result<Status> {
    let measured = benchmaster_probe::rpc_null(args.server, args.count).map_err(failure)?;
    output::answer(args.json, &measured, || text::rpc(&measured, output::text_options().unicode))
}

fn config(args: &ProbeNetworkArgs) -> Result<ProbeConfig> {
    let reply_bytes = u32::try_from(args.reply.bytes()).unwrap_or(u32::MAX);
    let null = NullDataConfig { connections: args.connections, threads: args.threads, reply_bytes };
    Ok(ProbeConfig {
        target: args.target,
        token: token(args)?,
        repetitions: args.repetitions,
        round_trips: args.round_trips,
        flows: args.flows.iter().copied().filter(|flows| *flows > 0).collect(),
        directions: match args.direction {
            Directions::Both => vec![Direction::ToFarEnd, Direction::ToClient],
            Directions::ToFarEnd => vec![Direction::ToFarEnd],
            Directions::ToClient => vec![Direction::ToClient],
        },
        duration: args.duration.0,
        warm_up: args.warm_up.map(|time| time.0),
        sample_interval: args.sample_interval.0,
        null_data: (args.connections > 0).then_some(null),
        patience: Duration::from_secs(10),
        ..ProbeConfig::default()
    })
}

fn token(args: &ProbeNetworkArgs) -> Result<Option<Token>> {
    args.token_file.as_deref().map(Token::read).transpose().map_err(failure)
}

/// What is wrong with the arguments is wrong input; that a network does not work is a measurement that failed.
fn failure(error: ProbeError) -> Failure {
    match error {
        ProbeError::Config(_)
        | ProbeError::Token(_)
        | ProbeError::TokenFile { .. }
        | ProbeError::Listen { .. }
        | ProbeError::NotAFarEnd { .. }
        | ProbeError::Version { .. }
        | ProbeError::Refused { .. } => Failure::wrong_input(error),
        error => Failure::failed(error),
    }
}
