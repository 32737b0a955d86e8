//! The arguments of `fleet`.

use std::path::PathBuf;

use benchmaster_fleet::manifest::Volume;
use clap::{Args, Subcommand};

use super::change::ChangeArgs;

/// Prepare agents that something else starts
///
/// Kubernetes, mpiexec or a person starts `benchmaster agent`, and a study with `launcher = "external"` waits for all of them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster fleet manifest study.toml --agents 16 --image registry/benchmaster | kubectl apply -f -
  benchmaster fleet credentials crew
  mpiexec -n 16 benchmaster agent --dial head:7049 --credentials crew/agent --wait 10m")]
pub(crate) struct FleetArgs {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    Credentials(CredentialsArgs),
    Manifest(Box<ManifestArgs>),
}

/// Make a key for a controller and credentials for its agents
///
/// Writes two files that only you can read: `controller`, for `[clients] credentials` in the study, and `agent`, for `benchmaster
/// agent --credentials`. Whoever has them can pass for one or the other.
#[derive(Debug, Args)]
pub(crate) struct CredentialsArgs {
    /// Directory for both; made if it is missing
    pub(crate) directory: PathBuf,
}

/// Print the objects of Kubernetes that run a study with agents on the nodes
///
/// An Indexed Job of agents, a Job and a headless Service of the controller, a Secret with new keys, a ConfigMap with the study
/// and a claim for the results, as JSON for `kubectl apply`. What is printed has the keys in it: pipe it, or keep it as you keep
/// keys. `kubectl logs job/NAME` shows the results, `kubectl delete -f` ends everything.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster fleet manifest study.toml --agents 16 --image registry/benchmaster | kubectl apply -f -
  benchmaster fleet manifest study.toml --agents 4 --image registry/benchmaster \\
    --target /mnt/x --volume /mnt/x=nfs:filer:/vol1 > objects.json
  benchmaster fleet manifest study.toml --agents 4 --image registry/benchmaster \\
    --set 'server.listen=$(POD_IP)'                 the embedded server, in the controller's pod")]
pub(crate) struct ManifestArgs {
    /// The study file
    pub(crate) study: PathBuf,
    /// How many agents, each a pod on a node of its own while there are nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) agents: u32,
    /// Container image whose entry point is this program
    #[arg(long)]
    pub(crate) image: String,
    /// Name of the objects [default: that of the study]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Namespace of the objects [default: kubectl's]
    #[arg(short, long)]
    pub(crate) namespace: Option<String>,
    /// What to mount in all pods: `/mnt/x=nfs:SERVER:/EXPORT`, `/mnt/x=claim:NAME` or `/mnt/x=host:/PATH`. May be given several
    /// times
    #[arg(long, value_name = "PATH=VOLUME")]
    pub(crate) volume: Vec<Volume>,
    /// Space for results
    #[arg(long, value_name = "QUANTITY", default_value = "1Gi")]
    pub(crate) space: String,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}
