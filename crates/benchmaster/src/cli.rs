//! The command line.

mod analyze;
mod certificates;
mod change;
mod check;
mod ci;
mod compare;
mod complete;
mod diagnose;
mod explore;
mod extend;
mod fleet;
mod import;
mod lab;
mod network;
mod plan;
mod probe;
mod results;
mod run;
mod serve;
mod simulate;
mod value;
mod witness;

use std::path::PathBuf;

use benchmaster_units::TimeSpan;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::value::{prometheus, watch_interval};

pub(crate) use self::analyze::{AnalyzeArgs, ModelArgs, Polynomials, SumsType};
pub(crate) use self::certificates::CertificatesArgs;
pub(crate) use self::change::ChangeArgs;
pub(crate) use self::check::CheckArgs;
pub(crate) use self::ci::{CiArgs, FailOn, Service};
pub(crate) use self::compare::{CompareArgs, HistoryArgs};
pub(crate) use self::complete::COMPLETE;
pub(crate) use self::diagnose::DiagnoseArgs;
pub(crate) use self::explore::ExploreArgs;
pub(crate) use self::extend::ExtendArgs;
pub(crate) use self::fleet::{CredentialsArgs, FleetArgs, FleetCommand, ManifestArgs};
pub(crate) use self::import::{ImportArgs, ImportCommon, ImportFile, ImportFormat, ImportPcap, ImportStrace};
pub(crate) use self::lab::{
    ExecArgs, GuestArgs, KernelBuildArgs, KernelCommand, KernelListArgs, LabArgs, LabCommand, LogsArgs,
    NameArgs, SetupArgs, ShellArgs, StatusArgs, SupervisorArgs, UpArgs,
};
pub(crate) use self::network::{NetworkMeans, WireArgs};
pub(crate) use self::plan::PlanArgs;
pub(crate) use self::probe::{Directions, ProbeArgs, ProbeCommand, ProbeNetworkArgs, ProbeRpcArgs};
pub(crate) use self::results::{
    CleanArgs, ExportArgs, ExportFormat, ListArgs, ReportArgs, ResultsArgs, ResultsCommand,
};
pub(crate) use self::run::{AgentArgs, ExpectArgs, LineArgs, QuickArgs, RunArgs, RunCommon};
pub(crate) use self::serve::{KeptThrough, ServeArgs};
pub(crate) use self::simulate::{HashCastArgs, SimulateArgs, SimulateCommand};
pub(crate) use self::value::Prometheus;
pub(crate) use self::witness::WitnessArgs;

/// Measure and explain network file systems.
///
/// A study file says what to measure and what to vary; `run` measures it repeatedly and in random
/// order, and reports how sure the result is and any reasons to distrust it.
#[derive(Debug, Parser)]
#[command(name = "benchmaster", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "\
Examples:
  benchmaster quick /mnt/nfs                 the standard battery on a directory
  benchmaster quick nfs://filer/vol1         the same over the wire, without a mount
  benchmaster plan studies/quickstart.toml   what a study will do
  benchmaster run studies/quickstart.toml    do it; run the same line again to resume
  benchmaster analyze results/quickstart     effects and intervals of what was measured

Exit status: 0 fine, 1 the measurement failed or failed its own checks, 2 wrong usage or input, 130 interrupted.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What other tools call what a command does. Not for commands of commands (`lab ls`).
const CALLED_ELSEWHERE: [(&[&str], &str); 8] = [
    (&["ls", "list"], "results list"),
    (&["show", "info"], "results show"),
    (&["rm", "delete", "clean"], "results clean"),
    (&["test", "bench", "benchmark", "fio"], "quick"),
    (&["start", "exec", "resume"], "run"),
    (&["top", "stat", "iostat", "monitor"], "watch"),
    (&["validate", "dry-run"], "plan"),
    (&["plot", "html"], "report"),
];

/// The arguments of this process.
///
/// # Errors
/// What `clap` says of wrong ones, and help that was asked for.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|mut error| {
        if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
            && std::env::args_os().nth(1).is_some_and(|first| *first == **word)
            && let Some((_, ours)) = CALLED_ELSEWHERE.iter().find(|(names, _)| names.contains(&word.as_str()))
        {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![(*ours).into()]));
        }
        error
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Quick(QuickArgs),
    Plan(PlanArgs),
    Analyze(AnalyzeArgs),
    Report(ReportArgs),
    Results(ResultsArgs),
    Export(ExportArgs),
    Compare(CompareArgs),
    History(HistoryArgs),
    Diagnose(DiagnoseArgs),
    Simulate(SimulateArgs),
    Check(CheckArgs),
    Explore(ExploreArgs),
    Witness(WitnessArgs),
    Serve(ServeArgs),
    Certificates(CertificatesArgs),
    Wire(WireArgs),
    Probe(ProbeArgs),
    Watch(WatchArgs),
    Agent(AgentArgs),
    Fleet(FleetArgs),
    Lab(LabArgs),
    // Names that no command is mistaken for.
    #[command(hide = true, name = "__supervisor")]
    LabSupervisor(SupervisorArgs),
    #[command(hide = true, name = "__guest")]
    Guest(GuestArgs),
    Doctor(DoctorArgs),
    Import(ImportArgs),
    Workloads(WorkloadsArgs),
    Generate(GenerateArgs),
}

/// Show NFS mounts or a running study, live
///
/// For mounts: rates, bytes, queue, round trip and execution time, errors, timeouts and retransmissions of every operation,
/// as the kernel's client counts them, and what the connections do. For the results directory of a study that is running:
/// how far it is, and what each client does. On a terminal it shows a live view (? lists the keys); otherwise,
/// or with --once, --count or --json, it prints lines. With --prometheus it serves the counters of mounts.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster watch                       all NFS mounts of this host
  benchmaster watch /mnt/nfs              one of them; any path on it will do
  benchmaster watch --once --json | jq    what happens in one interval
  benchmaster watch --prometheus          the counters, for Prometheus to read
  benchmaster watch results/quickstart    a study that `benchmaster run` is carrying out")]
pub(crate) struct WatchArgs {
    /// A mount, or the results directory of a study [default: all NFS mounts]
    #[arg(value_name = "MOUNT|DIR", add = complete::results())]
    pub(crate) target: Option<PathBuf>,
    /// Time between two readings
    #[arg(short, long, value_name = "TIME", value_parser = watch_interval, default_value = "1s")]
    pub(crate) interval: TimeSpan,
    /// Print one interval as text and exit
    #[arg(long, conflicts_with = "count")]
    pub(crate) once: bool,
    /// Print N intervals as text and exit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    /// Print each interval as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Serve the counters of mounts at http://ADDRESS/metrics: ADDRESS, PORT or ADDRESS:PORT, 127.0.0.1:12049 if nothing is
    /// given; with `=-` print them and exit
    #[arg(long, value_name = "ADDRESS|-", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1",
        value_parser = prometheus, conflicts_with_all = ["once", "count", "json", "interval"])]
    pub(crate) prometheus: Option<Prometheus>,
    /// Read this file in place of /proc/self/mountstats
    #[arg(long, value_name = "FILE")]
    pub(crate) mountstats: Option<PathBuf>,
}

/// Say what this host can do, and how to get the rest
///
/// Looks at what studies may need besides a target, by trying it: emulated networks, machines, mounts, io_uring, launchers, clocks.
/// What is missing has the command that mends it. A study needs only what it uses.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster doctor
  benchmaster doctor --json | jq '.[] | select(.works | not) | .fix'")]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the built-in workloads, or show one
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  benchmaster workloads
  benchmaster workloads show random-read          its parameters, as a starting point for a study
  benchmaster workloads show random-read --full   the filesets, groups and flow behind it"
)]
pub(crate) struct WorkloadsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WorkloadsCommand>,
    /// Print the list as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkloadsCommand {
    /// Print a built-in workload as it stands in a study file
    Show {
        /// Its name
        #[arg(add = complete::workloads())]
        name: String,
        /// In full: filesets, groups of workers, flow of operations
        #[arg(long)]
        full: bool,
    },
}

/// Print shell completions, manual pages, or the study file's schema
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster generate completions bash > /etc/bash_completion.d/benchmaster
  benchmaster generate man | man -l -
  benchmaster generate man run > benchmaster-run.1
  benchmaster generate schema > study-schema.json")]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    pub(crate) what: Generated,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generated {
    /// Shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// The manual page of the program or of a command, as roff
    Man {
        /// The command
        command: Option<String>,
    },
    /// The JSON Schema of the study file, for editors
    Schema,
}

/// Commands as the help lists them; every one that is not hidden stands in one group.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Measure", &["run", "quick", "plan", "watch"]),
    ("Analyze", &["analyze", "diagnose", "compare", "history", "report", "export", "results"]),
    (
        "Servers, clients and networks",
        &["check", "serve", "certificates", "lab", "explore", "witness", "wire", "probe", "agent", "fleet"],
    ),
    ("Helpers", &["doctor", "import", "workloads", "simulate", "generate", "help"]),
];

/// The command line, with its commands in groups.
pub(crate) fn command() -> clap::Command {
    let mut built = Cli::command();
    built.build();
    let styles = built.get_styles();
    let (header, literal) = (*styles.get_header(), *styles.get_literal());
    let width = GROUPS.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or(0);
    let mut groups = String::new();
    for (group, names) in GROUPS {
        groups.push_str(&format!("\n{header}{group}:{header:#}\n"));
        for command in names.iter().filter_map(|name| built.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            groups.push_str(&format!("  {literal}{:<width$}{literal:#} {about}\n", command.get_name()));
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{groups}\n{header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    Cli::command().help_template(template)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let mut built = Cli::command();
        built.build();
        let visible = built.get_subcommands().filter(|command| !command.is_hide_set());
        let mut visible: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, visible);
        built.debug_assert();
    }

    /// Words of a line as a shell has them, up to a redirection or `&`; variables stay as they are.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for c in line.chars().chain([' ']) {
            match (quote, c) {
                (Some(open), c) if c == open => quote = None,
                (None, '"' | '\'') => quote = Some(c),
                (None, ' ') => words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty())),
                _ => word.push(c),
            }
        }
        words.into_iter().take_while(|word| !word.starts_with('>') && word != "&" && word != "|").collect()
    }

    #[test]
    fn command_lines_of_the_documentation_of_ci_are_understood() {
        let page = include_str!("../../../docs/ci.md").replace("\\\n", " ");
        let mut understood = 0;
        for line in page.lines().filter(|line| line.trim_start().starts_with("benchmaster ")) {
            let parsed = command().try_get_matches_from(words(line.trim_start()));
            assert!(parsed.is_ok(), "{line}\n{}", parsed.unwrap_err());
            understood += 1;
        }
        assert!(understood >= 13, "{understood}");
    }
}
