//! Whether the clients of a treatment can be started where the study wants them.

use benchmaster_record::model::{Sharing, Workload};
use benchmaster_record::witness::CutKind;
use benchmaster_units::TimeSpan;
use benchmaster_workload::program::{Effect, Program};

use crate::file::Reader;
use crate::settings::{Launcher, MOST_CLIENTS, Settings, TargetKind};
use benchmaster_units::format::plural;

/// Reports what cannot be.
pub(super) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    let clients = &settings.clients;
    if let Some(count) = clients.count.filter(|count| !(1..=MOST_CLIENTS).contains(count)) {
        let message = format!("a study cannot have {count} clients");
        return reader.error("clients.count", message, format!("write a number from 1 to {MOST_CLIENTS}"));
    }
    let hosts = match settings.hosts() {
        Ok(hosts) => hosts,
        Err(error) => {
            let text = error.to_string();
            let (problem, fix) =
                text.split_once("; ").unwrap_or((&text, "write names or patterns such as `c[1-10]`"));
            return reader.error("clients.hosts", problem.to_owned(), fix);
        }
    };
    launcher(reader, settings, &hosts);
    if clients.patience < TimeSpan::millis(100) {
        let message = format!("a patience of {} gives up processes that are only busy", clients.patience);
        reader.error("clients.patience", message, "write `\"5s\"`, or leave it out");
    }
    if !settings.launcher().is_here() {
        elsewhere(reader, settings);
    }
}

fn launcher(reader: &mut Reader<'_>, settings: &Settings, hosts: &[String]) {
    let clients = &settings.clients;
    let launcher = settings.launcher();
    match (launcher, hosts.is_empty()) {
        (Launcher::Ssh, true) => reader.error(
            "clients.launcher",
            "clients are to be started by ssh, and no hosts are given",
            "add `hosts = [\"c1\", \"c2\"]`, or write `launcher = \"local\"`",
        ),
        (Launcher::Lab, _) => {}
        (Launcher::Threads | Launcher::Local, false) => reader.error(
            "clients.hosts",
            format!("`launcher = \"{}\"` starts all clients on this host", launcher.name()),
            "remove `hosts`, or write `launcher = \"ssh\"`",
        ),
        (Launcher::Slurm, false) => reader.error(
            "clients.hosts",
            "Slurm chooses the hosts itself",
            "remove `hosts`, or write `slurm_options = [\"--nodelist=c[1-10]\"]`",
        ),
        (Launcher::External, false) => reader.error(
            "clients.hosts",
            "what starts the agents chooses the hosts",
            "remove `hosts`, or write `launcher = \"ssh\"`",
        ),
        (Launcher::External, true) if clients.credentials.is_none() => reader.error(
            "clients.launcher",
            "agents that something else starts need credentials, and none are named",
            "run `benchmaster fleet credentials crew`, and add `credentials = \"crew/controller\"`",
        ),
        _ => {}
    }
    if let Some(count) = clients.count.filter(|count| (*count as usize) < hosts.len()) {
        let message =
            format!("{} cannot be spread over {} hosts", plural(count as usize, "client"), hosts.len());
        reader.error("clients.count", message, "name fewer hosts, or remove `count` for one client on each");
    }
    if launcher == Launcher::Threads && settings.server.other_host().is_some() {
        let message = "with all clients in this process no client runs on the server's host";
        let help = "write `launcher = \"local\"`, or remove it";
        reader.error("clients.launcher", message, help);
    }
    let dial = matches!(launcher, Launcher::Slurm | Launcher::External);
    if let Some(nodes) = clients.nodes.filter(|nodes| dial && *nodes > settings.clients()) {
        let message =
            format!("{} cannot be spread over {nodes} nodes", plural(settings.clients() as usize, "client"));
        reader.error("clients.nodes", message, "write fewer nodes, or a larger `count`");
    }
    let counts = |option: &&String| option.starts_with("-N") || option.starts_with("--nodes");
    if let Some(option) = clients.slurm_options.iter().find(counts) {
        let message = format!("`{option}` would start other agents than are waited for");
        reader.error("clients.slurm_options", message, "remove it, and write `nodes = 4`");
    }
    let ssh = launcher == Launcher::Ssh || settings.server.other_host().is_some();
    let unused = [
        ("ssh_options", !clients.ssh_options.is_empty() && !ssh, "ssh"),
        ("slurm_options", !clients.slurm_options.is_empty() && launcher != Launcher::Slurm, "slurm"),
        ("nodes", clients.nodes.is_some() && !dial, "slurm"),
        ("address", clients.address.is_some() && !dial, "slurm"),
        ("credentials", clients.credentials.is_some() && launcher != Launcher::External, "external"),
        ("binary", clients.binary.is_some() && !ssh && launcher != Launcher::Slurm, "ssh"),
    ];
    for (key, _, other) in unused.into_iter().filter(|(_, unused, _)| *unused) {
        let message = format!("`clients.{key}` has no meaning with `launcher = \"{}\"`", launcher.name());
        let help = format!("remove it, or write `launcher = \"{other}\"`");
        reader.error(&format!("clients.{key}"), message, help);
    }
}

/// What clients on other hosts cannot reach.
fn elsewhere(reader: &mut Reader<'_>, settings: &Settings) {
    match settings.target.kind() {
        TargetKind::Scratch => reader.error(
            "target.path",
            "clients are on other hosts, and each would have its own temporary directory",
            "name a directory that all of them have mounted, such as `path = \"/mnt/nfs\"`",
        ),
        TargetKind::Directory(path) if path.is_relative() => reader.error(
            "target.path",
            format!("clients are on other hosts, where `{}` would mean another directory", path.display()),
            "write an absolute path",
        ),
        TargetKind::Embedded(_) if settings.lab.is_none() && settings.server.listen.is_none() => reader.error(
            "server",
            "clients are on other hosts, and the embedded server listens on this host's loopback interface",
            "write `listen = \"10.0.0.1\"` in `[server]`, with the address that clients reach this host by",
        ),
        _ => {}
    }
}

/// Whether the server of a workload that checks what survives can be made to fail without a hook.
fn failure(reader: &mut Reader<'_>, settings: &Settings, name: &str) {
    let (message, help) = match settings.run.failure {
        CutKind::Process if settings.is_knfsd() => (
            "the kernel's server has no process that could be killed".to_owned(),
            "write `failure = \"power\"`",
        ),
        CutKind::Power | CutKind::Process if !settings.is_embedded() && !settings.is_knfsd() => (
            format!(
                "the workload `{name}` checks what survives a failure of the server, and nothing makes this one fail"
            ),
            "write a command in `failure_hook` of `[run]` that cuts the server's power, or kills it, and waits until it serves \
             again; or `failure = \"none\"`",
        ),
        _ => return,
    };
    reader.error("run.failure", message, help);
}

/// Whether clients in processes of their own can do a workload, and begin one after the other as asked for.
pub(crate) fn check_workload(
    reader: &mut Reader<'_>,
    settings: &Settings,
    name: &str,
    workload: &Workload,
    program: &Program,
) {
    let (clients, launcher) = (settings.clients(), settings.launcher());
    if program.witnessed && settings.run.failure_hook.is_none() {
        failure(reader, settings, name);
    }
    if launcher != Launcher::Threads && clients > 1 && program.verify_block.is_some() {
        let filesets = workload.filesets.iter().zip(&program.effects);
        let shared = |fileset: &benchmaster_record::model::Fileset, effect: Effect| {
            fileset.sharing == Sharing::Shared && effect >= Effect::Data
        };
        if let Some(((fileset, _), _)) =
            filesets.clone().find(|((_, fileset), effect)| shared(fileset, **effect))
        {
            let message = format!(
                "the workload `{name}` writes and verifies the fileset `{fileset}`, which clients in several processes \
                 share: none knows what the others write"
            );
            let help = "write `launcher = \"threads\"` in `[clients]`, make the files `\"private\"`, or remove `verify`";
            reader.error(&format!("workload.{name}"), message, help);
        }
    }
    let stagger = settings.clients.stagger;
    if stagger > TimeSpan::default() && clients > 1 {
        let last = stagger.0.saturating_mul(clients - 1);
        match workload.until.duration {
            Some(duration) if duration.0 > last => {}
            Some(duration) => {
                let message = format!(
                    "the last of {clients} clients would start after {}, and the workload `{name}` ends after {duration}",
                    TimeSpan(last)
                );
                let help = "write a longer `duration`, or a shorter `stagger`";
                reader.error("clients.stagger", message, help);
            }
            None => {
                let message = format!(
                    "clients that start one after the other must end together, and the workload `{name}` has no duration"
                );
                let help = format!("add a duration to `[workload.{name}]`, or remove `stagger`");
                reader.error("clients.stagger", message, help);
            }
        }
    }
}
