//! Whether the rest of a treatment can run in its lab.

use benchmaster_record::results::LabTime;
use benchmaster_units::{ByteSize, TimeSpan};

use crate::file::Reader;
use crate::settings::{
    LabBackEnd, LabDiskCache, LabServer, LabSettings, Launcher, Means, SERVER, ServerKind, Settings,
    TargetKind, host_of,
};

/// The least memory of a machine: below, its kernel does not boot.
const LEAST_MEMORY: ByteSize = ByteSize::mib(64);

/// Reports what cannot be.
pub(super) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    let Some(lab) = &settings.lab else {
        if settings.clients.launcher == Some(Launcher::Lab) {
            let help = "add a section `[lab]`, run the study with `--lab`, or remove it";
            reader.error("clients.launcher", "there is no lab to start clients in", help);
        }
        return;
    };
    clients(reader, settings);
    target_of(reader, settings, lab);
    server(reader, settings, lab);
    values(reader, settings, lab);
    network(reader, settings, lab);
}

fn clients(reader: &mut Reader<'_>, settings: &Settings) {
    let clients = &settings.clients;
    let most = benchmaster_lab::config::MOST_CLIENTS;
    if let Some(launcher) = clients.launcher.filter(|launcher| *launcher != Launcher::Lab) {
        let message = format!(
            "with `[lab]` clients are its machines, and `launcher = \"{}\"` has no meaning",
            launcher.name()
        );
        reader.error("clients.launcher", message, "remove it, or `[lab]`");
    } else if !clients.hosts.is_empty() {
        let message = "with `[lab]` clients are its machines, not hosts";
        let help = "remove `hosts` and write `count = 2`, for example; or remove `[lab]`";
        reader.error("clients.hosts", message, help);
    } else if settings.clients() > most {
        let message = format!("a lab has no room for {} clients", settings.clients());
        reader.error("clients.count", message, format!("write a number up to {most}"));
    }
    if clients.namespaces {
        let message = "each machine of a lab already has its own network";
        reader.error("clients.namespaces", message, "remove it");
    }
}

fn target_of(reader: &mut Reader<'_>, settings: &Settings, lab: &LabSettings) {
    let host = match settings.target.kind() {
        TargetKind::Mount(mount) => mount.host(),
        TargetKind::Embedded(url) | TargetKind::External(url) => Some(host_of(url)),
        // A directory of the machines themselves.
        TargetKind::Directory(_) | TargetKind::Scratch => None,
    };
    let key = if settings.target.url.is_some() { "target.url" } else { "target.mount" };
    if let Some(host) = host.filter(|host| *host != SERVER) {
        let message = format!("the target is on `{host}`, which no machine of a lab can reach");
        let help = format!("write `{SERVER}` instead of `{host}`: it stands for the lab's server");
        reader.error(key, message, help);
    }
    if lab.back_end == Some(LabBackEnd::Namespaces) {
        if settings.target.url.is_none() {
            let message = "without machines no kernel of the lab can mount it";
            let help = "write `url = \"nfs://{server}/export\"` in `[target]`, or use another `back_end`";
            reader.error("target", message, help);
        }
        if lab.server != LabServer::Memory {
            let message = format!("without machines nothing runs the server `{}`", lab.server.name());
            reader.error("lab.server", message, "write `server = \"memory\"`, or use another `back_end`");
        }
    }
}

fn server(reader: &mut Reader<'_>, settings: &Settings, lab: &LabSettings) {
    let server = &settings.server;
    if server.is_managed() {
        let message = "the lab sets its server up itself";
        return reader.error("server.kind", message, "remove `kind`, or `[lab]`");
    }
    if server.kind == Some(ServerKind::Memory) && lab.server != LabServer::Memory {
        let message =
            format!("the server is the embedded one, and that of the lab is `{}`", lab.server.name());
        reader.error("server.kind", message, "write `server = \"memory\"` in `[lab]`, or remove `kind`");
    }
    if lab.server == LabServer::Host && server.host.is_none() {
        let message = "`server = \"host\"` does not say which host";
        let help = "add `host = \"filer\"` to `[server]`, or write `server = \"knfsd\"`";
        reader.error("lab.server", message, help);
    }
    if lab.server == LabServer::Memory {
        if let Err((key, problem, help)) = server.config("/export") {
            reader.error(&format!("server.{key}"), problem, help);
        }
        if server.listen.is_some() {
            let message = "the lab's server listens in the lab's network, not at an address of this host";
            reader.error("server.listen", message, "remove it");
        }
    } else if let Some(key) = server.changed().into_iter().next() {
        let message = format!(
            "`server.{key}` is for the embedded server, and that of the lab is `{}`",
            lab.server.name()
        );
        let help = match lab.changed_key(&key) {
            Some(key) => format!("write `{key}` in `[lab]`, or `server = \"memory\"` there"),
            None => "remove it, or write `server = \"memory\"` in `[lab]`".into(),
        };
        reader.error(&format!("server.{key}"), message, help);
    }
    let machine = [LabServer::Knfsd, LabServer::Ganesha].contains(&lab.server);
    let of_machine = |key: &str| key.starts_with("server_");
    for key in lab.changed_knfsd() {
        if lab.server == LabServer::Knfsd || (machine && of_machine(&key)) {
            continue;
        }
        let message =
            format!("`lab.{key}` is for the kernel's server, and that of the lab is `{}`", lab.server.name());
        let help = match lab.server {
            LabServer::Memory => "remove it, or describe the embedded server in `[server]`",
            _ => "remove it, or write `server = \"knfsd\"`",
        };
        reader.error(&format!("lab.{key}"), message, help);
    }
}

fn values(reader: &mut Reader<'_>, settings: &Settings, lab: &LabSettings) {
    for (key, memory) in [("memory", lab.memory), ("server_memory", lab.server_memory)] {
        if memory < LEAST_MEMORY {
            let message = format!("no machine boots with {memory} of memory");
            reader.error(&format!("lab.{key}"), message, format!("write at least `\"{LEAST_MEMORY}\"`"));
        }
    }
    if !(1..=1024).contains(&lab.threads) {
        let message = format!("the kernel's server cannot have {} threads", lab.threads);
        reader.error("lab.threads", message, "write a number from 1 to 1024");
    }
    if !(TimeSpan::seconds(10)..=TimeSpan::seconds(3600)).contains(&lab.lease) {
        let message = format!("the kernel's server has no lease of {}", lab.lease);
        reader.error("lab.lease", message, "write `\"10s\"` to `\"3600s\"`");
    }
    if lab.disk_size < ByteSize::mib(64) && lab.file_system.name() != "tmpfs" {
        let message = format!("a disk of {} is too small for {}", lab.disk_size, lab.file_system.name());
        reader.error("lab.disk_size", message, "write `\"1GiB\"`, for example");
    }
    if !lab.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        || !(1..=32).contains(&lab.name.len())
    {
        let message = format!("`{}` cannot be the name of a lab", lab.name);
        reader.error("lab.name", message, "use up to 32 letters, digits, `-` and `_`");
    }
    if let Err((key, problem, help)) = lab.config(settings.clients(), false, settings.server.host.as_deref())
    {
        let problem = problem.split_once(": ").map_or(problem.clone(), |(what, _)| what.to_owned());
        reader.error(&format!("lab.{key}"), problem, help);
    }
}

fn network(reader: &mut Reader<'_>, settings: &Settings, lab: &LabSettings) {
    let network = &settings.network;
    if let Means::Netem | Means::Relay = network.means {
        let message =
            format!("in a lab the network is emulated by a wire, not by `{}`", network.means.name());
        reader.error("network.means", message, "remove it");
    }
    if network.server_bandwidth.is_some() {
        let message = "in a lab the link of the server cannot be limited";
        reader.error("network.server_bandwidth", message, "limit those of the clients: `bandwidth`");
    }
    for (key, asked) in [
        ("mtu", network.mtu.is_some()),
        ("congestion", network.congestion.is_some()),
        ("cwnd_clamp", network.cwnd_clamp.is_some()),
    ] {
        if asked {
            let message = match key {
                "mtu" => "interfaces of a lab's machines have the MTU of Ethernet, 1500 bytes",
                _ => {
                    "the congestion control of a lab's machines, and its limits, are the defaults of their kernels"
                }
            };
            let help =
                "remove it, or use the embedded server without a lab: `url = \"nfs://{server}/export\"`";
            reader.error(&format!("network.{key}"), message, help);
        }
    }
    if let Some(key) = network.of_queues() {
        let message = "the interfaces of a lab's machines have one transmit queue each";
        let help = "remove it, or use the embedded server without a lab: `url = \"nfs://{server}/export\"`";
        reader.error(&format!("network.{key}"), message, help);
    }
    if lab.time == LabTime::Virtual && (network.loss.0 > 0.0 || network.jitter > TimeSpan::default()) {
        let key = if network.loss.0 > 0.0 { "loss" } else { "jitter" };
        let message = format!("virtual time makes runs exactly alike, and `{key}` is drawn at random");
        reader.error(&format!("network.{key}"), message, "remove it, or write `time = \"real\"` in `[lab]`");
    }
    if lab.time == LabTime::Virtual && lab.disk_cache == LabDiskCache::Lying {
        let message = "no disk on virtual time lies: its cache is written when the kernel flushes it";
        let help =
            "write `mount_options = \"nobarrier\"`, with which ext4 does not flush it; or `time = \"real\"`";
        reader.error("lab.disk_cache", message, help);
    }
    if lab.time == LabTime::Virtual && lab.server != LabServer::Knfsd {
        let message = format!("on virtual time the kernel's server serves, not `{}`", lab.server.name());
        reader.error("lab.server", message, "write `server = \"knfsd\"`, or `time = \"real\"`");
    }
}
