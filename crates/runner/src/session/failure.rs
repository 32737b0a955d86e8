//! What happens to the server between the measured phase of a workload with a durability witness and its verdict.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use benchmaster_fleet::job::HookSpec;
use benchmaster_nfs_server::{Loss, Server};
use benchmaster_record::witness::{CutKind, CutRecord};
use benchmaster_study::settings::Settings;
use benchmaster_units::format::bytes;

use super::super::hooks;
use super::super::lab::Labs;
use super::super::network::nanos;

/// Makes it happen, and waits until the server serves again.
///
/// # Errors
/// Why it could not be done, in words.
pub(super) fn cut(
    settings: &Settings,
    server: Option<&Server>,
    labs: &Labs,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<CutRecord>, String> {
    let began = Instant::now();
    let kind = settings.run.failure;
    let how = match (&settings.run.failure_hook, server, kind) {
        (_, _, CutKind::None) => return Ok(None),
        (Some(command), ..) => {
            let environment = vec![
                ("BENCHMASTER_TARGET".to_owned(), settings.target.place().to_owned()),
                ("BENCHMASTER_FAILURE".to_owned(), kind.name().to_owned()),
            ];
            let hook =
                HookSpec { command: command.clone(), timeout: settings.run.hook_timeout.0, environment };
            let ended = hooks::run(&hook, stop);
            if !ended.succeeded {
                return Err(format!("`{command}`: {}: {}", ended.ended, ended.output));
            }
            format!("the hook `{command}`")
        }
        (None, Some(server), CutKind::Power | CutKind::Process) => {
            let loss = if kind == CutKind::Power { Loss::Power } else { Loss::Process };
            let crash = server.crash(loss, seed).map_err(|error| error.to_string())?;
            match loss {
                Loss::Process => "the embedded server forgot all but files and names of clients".into(),
                Loss::Power => format!(
                    "the embedded server also lost {} that were not stable",
                    bytes(512.0 * crash.lost_blocks as f64)
                ),
            }
        }
        (None, None, CutKind::Power | CutKind::Process) => labs.cut_server(settings, seed)?,
    };
    Ok(Some(CutRecord { kind, how, outage_ns: nanos(began.elapsed()) }))
}
