//! `relay`: an emulated network between clients and a server.

use std::process::Command;

use benchmaster_netem::relay::{Relay, RelayConfig, RelayError};
use serde_json::json;
use signal_hook::consts::{SIGCHLD, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::wire::Children;
use super::{Failure, Result, Status};
use crate::cli::RelayArgs;
use crate::output;

/// Relays until SIGINT or SIGTERM, or until the command ends.
pub(crate) fn relay(args: &RelayArgs) -> Result<Status> {
    if !args.listen.ip().is_loopback() && !args.allow_remote {
        return Err(Failure::wrong_input(anyhow::anyhow!(
            "{} can be reached from other hosts; add --allow-remote if that is meant",
            args.listen
        )));
    }
    // Before the first thread: signals are then handled here alone.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGCHLD]).map_err(Failure::failed)?;
    let config = RelayConfig { listen: args.listen, ..RelayConfig::new(args.target, args.delay.0) };
    let relay = Relay::start(config).map_err(|error| match error {
        RelayError::Resources(error) => Failure::failed(error),
        error => Failure::wrong_input(error),
    })?;
    output::note(&format!("relaying to {}, {} each way, from {}", args.target, args.delay, relay.address()));
    let mut children = Children::default();
    if let Some((program, arguments)) = args.command.split_first() {
        let address = relay.address();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("BENCHMASTER_SERVER", address.to_string())
            .env("BENCHMASTER_SERVER_ADDRESS", address.ip().to_string())
            .env("BENCHMASTER_SERVER_PORT", address.port().to_string());
        children.start(command)?;
    }
    let status = children.wait(&mut signals)?;
    let done = relay.stop();
    let microseconds = |time: std::time::Duration| time.as_nanos() as f64 / 1e3;
    let text = json!({
        "connections": done.connections,
        "refused": done.refused,
        "bytes_to_target": done.bytes_to_target,
        "bytes_to_clients": done.bytes_to_clients,
        "forwarded": done.forwarded,
        "held_up": done.held_up,
        "lateness_us": {
            "median": microseconds(done.lateness_median),
            "p99": microseconds(done.lateness_99),
            "max": microseconds(done.lateness_max),
        },
    });
    output::print(&text.to_string())?;
    Ok(status)
}
