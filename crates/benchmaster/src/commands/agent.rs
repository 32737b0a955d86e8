//! `agent`.

use std::io;

use benchmaster_fleet::secure::{AgentOptions, agent_stream};
use benchmaster_fleet::{agent, stream};

use crate::cli::AgentArgs;
use crate::failure::{Result, Status};

pub(crate) fn agent(args: &AgentArgs) -> Result<Status> {
    let ended = match args.dial.clone() {
        None => agent::serve(async || stream::stdio::take()),
        Some(dial) => {
            let options = AgentOptions { dial, rank: args.rank, credentials: args.credentials.clone() };
            agent::serve(async move || agent_stream(&options).await.map_err(io::Error::other))
        }
    };
    // However it ended, the process does: threads of a workload that hang in the kernel are left behind.
    ended?;
    Ok(Status::Fine)
}
