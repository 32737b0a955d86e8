//! Agents on the nodes of a Slurm cluster, as the tasks of one `srun`: within the allocation of an `sbatch` or `salloc`, or in
//! one that srun asks for.
//!
//! The tasks dial back over TLS (see [`crate::secure`]); what they need for that comes over srun's standard input, which
//! Slurm passes to all of them. When the controller ends, however it does, their connections do, and so do they.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::net::lookup_host;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::ranked::{self, Ranked};
use super::{LaunchError, Started, by_host, each_line, resolve};
use crate::secure::{Listener, Missing, Refusal};
use crate::tree;

mod output;

use output::Output;

/// How agents are started by Slurm.
#[derive(Debug, Clone)]
pub struct SlurmConfig {
    /// `srun`; `sinfo` must be beside it.
    pub program: PathBuf,
    /// Its further options, as they would be typed: `--partition=batch`, `--cpus-per-task=8`, `--nodelist=n[1-4]`. They
    /// override ours.
    pub options: Vec<String>,
    /// The file of the program, at a path that is the same on all nodes.
    pub binary: PathBuf,
    /// The agent's arguments before `--dial HOST:PORT`.
    pub arguments: Vec<String>,
    /// How many nodes, with one agent each.
    pub nodes: u32,
    /// Address of this host that the nodes can reach, with a port or without (then a free one is taken). `None`: that of the
    /// host's name, or the loopback address when all nodes are this host.
    pub address: Option<String>,
    /// How long it may take until all agents are there, waiting for an allocation included.
    pub deadline: Duration,
    /// Most agents behind one process: see [`crate::tree`].
    pub fan_out: u32,
    /// Arguments of the program for an agent on standard input and output.
    pub own_arguments: Vec<String>,
}

impl SlurmConfig {
    /// `srun --nodes=NODES BINARY agent --dial`, within a minute.
    pub fn new(binary: PathBuf, nodes: u32) -> Self {
        Self {
            program: "srun".into(),
            options: Vec::new(),
            binary,
            arguments: vec!["agent".into()],
            nodes,
            address: None,
            deadline: Duration::from_secs(60),
            fan_out: tree::FAN_OUT,
            own_arguments: ["agent", "--stdio"].map(str::to_owned).into(),
        }
    }
}

/// How many nodes the allocation has in which this process runs; `None` outside of one.
pub fn allocated_nodes() -> Option<u32> {
    std::env::var("SLURM_JOB_ID").ok()?;
    std::env::var("SLURM_JOB_NUM_NODES").ok()?.parse().ok()
}

/// Starts one agent on each node, in the order of Slurm's ranks; each is named after its node. `tell` hears what users should
/// know. Dropping the future ends what was started.
///
/// # Errors
/// When srun cannot be run or ends early, or a task is not there in time: which, where, and what it said.
pub async fn launch(config: &SlurmConfig, tell: &mut dyn FnMut(&str)) -> Result<Vec<Started>, LaunchError> {
    let failed = |reason: String| LaunchError::new("slurm", reason);
    let deadline = Instant::now() + config.deadline;
    let address = ListenAddress::choose(config).await.map_err(failed)?;
    let (listener, credentials) =
        Listener::bind(address.listen).await.map_err(|error| failed(error.to_string()))?;
    let dial = address.dial(listener.address().port());
    let inside = allocated_nodes().is_some();
    let mut srun = Srun(command(config, &dial, inside).spawn().map_err(|error| {
        failed(format!(
            "cannot run {}: {error}; are Slurm's commands installed here?",
            config.program.display()
        ))
    })?);
    let output = Output::new(config.nodes);
    let mut readers = JoinSet::new();
    if let (Some(out), Some(errors)) = (srun.0.stdout.take(), srun.0.stderr.take()) {
        readers.spawn(follow(out, output.clone()));
        readers.spawn(follow(errors, output.clone()));
    }
    if let Some(mut input) = srun.0.stdin.take() {
        // When srun ends at once, its words say why; a broken pipe would not.
        let _ = input.write_all(credentials.to_json().as_bytes()).await;
    }
    let outcome = tokio::select! {
        biased;
        ranked = ranked::admit(listener, config.nodes, config.fan_out, &config.own_arguments, deadline) => Ok(ranked),
        ended = srun.0.wait() => Err(ended),
    };
    match outcome {
        Ok(Ok(ranked)) => {
            ranked.admitted.refused.iter().for_each(|refusal| tell(&refusal.to_string()));
            let keep = Arc::new(Kept { _srun: srun, _readers: readers });
            Ok(started(ranked, &output, &keep))
        }
        Ok(Err(missing)) => Err(late(&missing, &output, config, &dial)),
        Err(ended) => {
            // All that was said is in the pipes now.
            let _ =
                timeout(Duration::from_secs(2), async { while readers.join_next().await.is_some() {} }).await;
            Err(early(ended, &output, config))
        }
    }
}

/// srun. It is asked to end when this is dropped; it then ends its tasks or gives its request up. Killed, it could do neither.
struct Srun(Child);

impl Drop for Srun {
    fn drop(&mut self) {
        // No id: it has ended, and its number may be another's.
        if let Some(pid) = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}

/// What lives as long as the agents.
struct Kept {
    _srun: Srun,
    /// Dropping them would close srun's output.
    _readers: JoinSet<()>,
}

/// A shell that prints its node and becomes the agent, so that it is known which rank is where before it has said anything.
const TASK: &str = r#"echo "benchmaster-task $SLURM_PROCID $SLURMD_NODENAME"; exec "$0" "$@""#;

fn command(config: &SlurmConfig, dial: &str, inside: bool) -> Command {
    let mut srun = Command::new(&config.program);
    srun.arg(format!("--nodes={}", config.nodes)).arg(format!("--ntasks={}", config.nodes));
    srun.args(["--kill-on-bad-exit=1", "--label", "--unbuffered", "--mpi=none", "--job-name=benchmaster"]);
    // No longer than the controller waits: a request that waits on without it would start agents for no controller.
    srun.arg(format!("--immediate={}", config.deadline.as_secs().max(1)));
    if inside {
        // The controller may be a step of this job itself.
        srun.arg("--overlap");
    }
    srun.args(&config.options);
    srun.args(["/bin/sh", "-c", TASK]).arg(&config.binary).args(&config.arguments).args(["--dial", dial]);
    srun.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Signals of the terminal are the controller's matter, which instructs its agents.
    srun.process_group(0);
    srun
}

/// Where the controller listens, and the address for the nodes.
#[derive(Debug, PartialEq, Eq)]
struct ListenAddress {
    listen: SocketAddr,
    host: String,
}

impl ListenAddress {
    async fn choose(config: &SlurmConfig) -> Result<Self, String> {
        if let Some(address) = &config.address {
            let (listen, host) = resolve(address, 0).await?;
            return Ok(Self { listen, host: host.to_owned() });
        }
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        if all_here(&config.program, &name).await {
            return Ok(Self { listen: (Ipv4Addr::LOCALHOST, 0).into(), host: "127.0.0.1".into() });
        }
        let found =
            lookup_host((name.as_str(), 0)).await.map(Iterator::collect::<Vec<_>>).unwrap_or_default();
        match found.iter().find(|address| !address.ip().is_loopback()) {
            Some(address) => Ok(Self { listen: *address, host: address.ip().to_string() }),
            // Here the name leads to this host itself (Debian's 127.0.1.1); the nodes may know better.
            None => Ok(Self { listen: (Ipv4Addr::UNSPECIFIED, 0).into(), host: name }),
        }
    }

    fn dial(&self, port: u16) -> String {
        match self.host.parse() {
            Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
            _ => format!("{}:{port}", self.host),
        }
    }
}

/// Whether all nodes that could be used are this host, as on a cluster of one machine.
async fn all_here(srun: &Path, name: &str) -> bool {
    let mut sinfo = Command::new(srun.with_file_name("sinfo"));
    sinfo.args(["--noheader", "--format=%n"]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    if let Ok(nodes) = std::env::var("SLURM_JOB_NODELIST") {
        sinfo.arg(format!("--nodes={nodes}"));
    }
    let Ok(Ok(output)) = timeout(Duration::from_secs(10), sinfo.output()).await else { return false };
    let hosts = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut hosts = hosts.lines().map(str::trim).filter(|host| !host.is_empty()).peekable();
    output.status.success() && hosts.peek().is_some() && hosts.all(|host| host == name)
}

async fn follow(reader: impl AsyncRead + Send + Unpin, output: Output) {
    each_line(reader, |line| output.line(line)).await;
}

fn started(mut ranked: Ranked, output: &Output, keep: &Arc<Kept>) -> Vec<Started> {
    let mut leads = ranked.leads();
    let agents = by_host(ranked.admitted.joined).map(|(name, agent)| {
        let keep: Arc<dyn std::any::Any + Send + Sync> = Arc::<Kept>::clone(keep);
        Started {
            name,
            stream: agent.stream,
            process: None,
            errors: output.errors(agent.rank),
            keep: Some(keep),
            leads: leads(),
        }
    });
    agents.collect()
}

/// Most tasks that are named in a message.
const MOST_NAMED: usize = 5;

fn names(ranks: &[u32], output: &Output) -> String {
    let named: Vec<String> = ranks.iter().take(MOST_NAMED).map(|rank| output.task(*rank)).collect();
    let more = ranks.len() - named.len();
    named.join("; ") + &if more == 0 { String::new() } else { format!("; and {more} more") }
}

/// The name of an agent that did not come.
fn absent(rank: u32, output: &Output) -> String {
    output.node(rank).unwrap_or_else(|| format!("rank {rank}"))
}

fn late(missing: &Missing, output: &Output, config: &SlurmConfig, dial: &str) -> LaunchError {
    let (there, all) = (missing.joined.len(), config.nodes);
    let first = missing.missing.first().copied().unwrap_or(0);
    let mut reason = format!(
        "{there} of {all} agents were connected after {:?}; missing: {}",
        config.deadline,
        names(&missing.missing, output)
    );
    if !missing.missing.iter().any(|rank| output.node(*rank).is_some()) && there == 0 {
        reason += "; Slurm started none of them: are the nodes free (`sinfo`, `squeue`)?";
    } else {
        reason += &format!("; they dial {dial}: if the nodes cannot reach it, give another address");
    }
    reason += &facts(output, &missing.refused);
    LaunchError::new(absent(first, output), reason)
}

/// srun ended before all agents were there.
fn early(ended: std::io::Result<ExitStatus>, output: &Output, config: &SlurmConfig) -> LaunchError {
    let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
    let failed = output.failed();
    let mut reason =
        format!("{} ended with {ended} before all agents were connected", config.program.display());
    if !failed.is_empty() {
        reason += &format!(": {}", names(&failed, output));
    }
    reason += &facts(output, &[]);
    let name = failed.first().map_or_else(|| "slurm".to_owned(), |rank| absent(*rank, output));
    LaunchError::new(name, reason)
}

fn facts(output: &Output, refused: &[Refusal]) -> String {
    let mut facts = String::new();
    let said = output.srun().text();
    if !said.is_empty() {
        facts += &format!(" (srun: {})", said.replace('\n', " | "));
    }
    for refusal in refused.iter().take(MOST_NAMED) {
        facts += &format!(" ({refusal})");
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::output::MARK;
    use super::*;

    #[test]
    fn addresses_of_version_6_are_dialled_in_brackets() {
        let address = ListenAddress { listen: (Ipv4Addr::LOCALHOST, 0).into(), host: "fe80::1".into() };
        assert_eq!(address.dial(7), "[fe80::1]:7");
    }

    #[test]
    fn the_command_has_no_secret_and_the_options_of_the_study_last() {
        let mut config = SlurmConfig::new("/opt/bm".into(), 3);
        config.options = vec!["--nodes=2".into()];
        let words = |inside| -> Vec<String> {
            let command = command(&config, "h:1", inside);
            command.as_std().get_args().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let outside = words(false);
        assert_eq!(
            outside[outside.len() - 8..],
            ["--nodes=2", "/bin/sh", "-c", TASK, "/opt/bm", "agent", "--dial", "h:1"]
        );
        assert!(!outside.contains(&"--overlap".to_owned()) && words(true).contains(&"--overlap".to_owned()));
        assert!(TASK.contains(MARK.trim_end()));
    }

    #[tokio::test]
    async fn late_and_early_ends_name_rank_node_and_last_words() {
        let config = SlurmConfig::new("/opt/bm".into(), 3);
        let output = Output::new(3);
        let none = late(
            &Missing { joined: vec![], missing: vec![0, 1, 2], refused: vec![] },
            &output,
            &config,
            "h:1",
        );
        assert!(none.to_string().contains("`rank 0`") && none.reason.contains("`squeue`"), "{none}");
        for line in ["0: benchmaster-task 0 n1", "2: benchmaster-task 2 n3", "2: cannot reach the controller"]
        {
            output.line(line);
        }
        let peer = (Ipv4Addr::LOCALHOST, 9).into();
        let refused = vec![Refusal { peer, reason: "its token is not that of this launch".into() }];
        let two = late(&Missing { joined: vec![], missing: vec![1, 2], refused }, &output, &config, "h:1")
            .to_string();
        assert!(
            two.contains(
                "agent `rank 1` could not be started: 0 of 3 agents were connected after 60s; missing: rank 1"
            ),
            "{two}"
        );
        assert!(two.contains("rank 2 on n3: cannot reach the controller; they dial h:1"), "{two}");
        assert!(
            two.ends_with("(refused a connection from 127.0.0.1:9: its token is not that of this launch)"),
            "{two}"
        );
        output.line("srun: error: n3: task 2: Exited with exit code 127");
        let ended = early(Ok(std::os::unix::process::ExitStatusExt::from_raw(127 << 8)), &output, &config)
            .to_string();
        assert!(
            ended.starts_with("agent `n3` could not be started: srun ended with exit status: 127"),
            "{ended}"
        );
        assert!(
            ended.contains(": rank 2 on n3: cannot reach")
                && ended.contains("(srun: srun: error: n3: task 2"),
            "{ended}"
        );
    }
}
