//! `agent`.

use std::cell::Cell;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use benchmaster_fleet::agent::{self, AgentError};
use benchmaster_fleet::secure::{AgentOptions, DialError, agent_stream};
use benchmaster_fleet::stream;

use crate::cli::AgentArgs;
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn agent(args: &AgentArgs) -> Result<Status> {
    let alone = Cell::new(false);
    let ended = match args.dial.clone() {
        None => agent::serve(async || stream::stdio::take()),
        Some(dial) => {
            let options = AgentOptions {
                dial,
                rank: args.rank,
                credentials: args.credentials.clone(),
                wait: args.wait.map(|wait| wait.0),
            };
            agent::serve(async || {
                let stream = agent_stream(&options).await;
                alone.set(matches!(stream, Err(DialError::Reach { .. })));
                stream.map_err(io::Error::other)
            })
        }
    };
    if args.wait.is_none() {
        // However it ended, the process does: threads of a workload that hang in the kernel are left behind.
        ended?;
        return Ok(Status::Fine);
    }
    match ended {
        // All studies are over.
        Err(_) if alone.get() && args.served => return Ok(Status::Fine),
        Err(error @ AgentError::Start(_)) => return Err(error.into()),
        Err(error) => output::note(&format!("{error}; waiting for the controller")),
        Ok(_) => {}
    }
    Err(again(args))
}

/// This program from its start in the same process, so that nothing of the last service is left. Only returns when it fails.
fn again(args: &AgentArgs) -> Failure {
    let mut command = Command::new("/proc/self/exe");
    command.args(std::env::args_os().skip(1));
    if !args.served {
        command.arg("--served");
    }
    Failure::fault(format!("cannot start again: {}", command.exec()))
}
