//! Whether a lab is what the rest of a treatment can run in, and what `{server}` stands for in a mount.

use benchmaster_nfs_client::options::MountOptions;
use benchmaster_record::results::LabTime;
use benchmaster_units::{ByteSize, TimeSpan};

use super::place::report;
use super::section::Reader;
use crate::settings::{
    LabBackEnd, LabServer, LabSettings, Launcher, Means, MountSettings, OptionText, SERVER, ServerKind,
    ServerSettings, Settings, TargetKind, TargetSettings, host_of,
};

/// The least memory of a machine: below, its kernel does not boot.
const LEAST_MEMORY: ByteSize = ByteSize::mib(64);

/// The target of a treatment. A mount from `{server}` without a lab and without a host is an export of the embedded server,
/// which Benchmaster's own client mounts with the cache of the Linux client: the same study on neither machines nor hosts.
/// `None` when the mount cannot be taken over, which has then been reported.
pub(super) fn target(
    reader: &mut Reader<'_, '_>,
    target: TargetSettings,
    server: &ServerSettings,
    lab: Option<&LabSettings>,
) -> Option<TargetSettings> {
    let elsewhere = lab.is_some() || server.host.is_some() || server.is_managed();
    let mount = target.mount.as_ref().filter(|_| !elsewhere && target.url.is_none() && target.path.is_none());
    let Some(mount) = mount.filter(|mount| mount.host() == Some(SERVER)) else { return Some(target) };
    match export(mount) {
        Ok((url, options)) => Some(TargetSettings { url: Some(url), options, ..TargetSettings::default() }),
        Err((option, why)) => {
            let message =
                format!("without `[lab]` and `[server] host`, `{SERVER}` is the embedded server, and {why}");
            let help = format!(
                "remove `{option}`, run the study with `--lab`, or name the server in `[server] host`"
            );
            report(reader, "target.mount", message, help);
            None
        }
    }
}

type Options = std::collections::BTreeMap<&'static str, OptionText>;

/// The same as a URL with options; else the option that Benchmaster's own client does not have, and what is to be said.
fn export(mount: &MountSettings) -> Result<(String, Options), (String, String)> {
    if !mount.kind.starts_with("nfs") {
        return Err((mount.kind.clone(), format!("serves NFS, not {}", mount.kind)));
    }
    let path = mount.source.split_once(':').map_or("/", |(_, path)| path);
    let url = format!("nfs://{SERVER}{path}");
    let mut options = Options::from([("cache", OptionText("linux".into()))]);
    let (mut version, mut minor) = ("4.2".to_owned(), None);
    for written in mount.options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        let (name, value) = written.split_once('=').unwrap_or((written, ""));
        let known = match (name, value) {
            ("vers" | "nfsvers", value) => {
                version = value.to_owned();
                continue;
            }
            ("minorversion", value) => {
                minor = Some(value.to_owned());
                continue;
            }
            ("noac", "") => Some(("actimeo", "0")),
            // What the client always does, or what says nothing of the wire.
            (
                "hard" | "rw" | "async" | "intr" | "nointr" | "tcp" | "cto" | "ac" | "noatime" | "relatime"
                | "nodiratime" | "bg" | "fg" | "resvport" | "noresvport" | "sharecache" | "nosharecache",
                "",
            )
            | ("sec", "sys") => continue,
            ("udp", "") => Some(("proto", "udp")),
            (name, value) => MountOptions::names().find(|known| *known == name).map(|known| (known, value)),
        };
        let Some((name, value)) = known else {
            return Err((
                written.to_owned(),
                format!("Benchmaster's own client has no mount option `{written}`"),
            ));
        };
        options.insert(name, OptionText(value.to_owned()));
    }
    let version = match (version.as_str(), minor) {
        ("4", Some(minor)) => format!("4.{minor}"),
        ("4", None) => "4.2".into(),
        (version, _) => version.to_owned(),
    };
    options.insert("version", OptionText(version));
    Ok((url, options))
}

/// Reports what cannot be.
pub(super) fn check(reader: &mut Reader<'_, '_>, settings: &Settings) {
    let Some(lab) = &settings.lab else {
        if settings.clients.launcher == Some(Launcher::Lab) {
            let help = "add a section `[lab]`, run the study with `--lab`, or remove it";
            report(reader, "clients.launcher", "there is no lab to start clients in".into(), help);
        }
        return;
    };
    clients(reader, settings);
    target_of(reader, settings, lab);
    server(reader, settings, lab);
    values(reader, settings, lab);
    network(reader, settings, lab);
}

fn clients(reader: &mut Reader<'_, '_>, settings: &Settings) {
    let clients = &settings.clients;
    let most = benchmaster_lab::config::MOST_CLIENTS;
    if let Some(launcher) = clients.launcher.filter(|launcher| *launcher != Launcher::Lab) {
        let message = format!(
            "with `[lab]` clients are its machines, and `launcher = \"{}\"` has no meaning",
            launcher.name()
        );
        report(reader, "clients.launcher", message, "remove it, or `[lab]`");
    } else if !clients.hosts.is_empty() {
        let message = "with `[lab]` clients are its machines, not hosts".to_owned();
        report(
            reader,
            "clients.hosts",
            message,
            "remove `hosts` and write `count = 2`, for example; or remove `[lab]`",
        );
    } else if settings.clients() > most {
        let message = format!("a lab has no room for {} clients", settings.clients());
        report(reader, "clients.count", message, format!("write a number up to {most}"));
    }
    if clients.namespaces {
        let message = "each machine of a lab has a network of its own already".to_owned();
        report(reader, "clients.namespaces", message, "remove it");
    }
}

fn target_of(reader: &mut Reader<'_, '_>, settings: &Settings, lab: &LabSettings) {
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
        report(reader, key, message, help);
    }
    if lab.back_end == Some(LabBackEnd::Namespaces) {
        if settings.target.url.is_none() {
            let message =
                "without machines there is no kernel of their own to mount anything with".to_owned();
            let help = "write `url = \"nfs://{server}/export\"` in `[target]`, or use another `back_end`";
            report(reader, "target", message, help);
        }
        if lab.server != LabServer::Memory {
            let message = format!("without machines there is none for the server `{}`", lab.server.name());
            report(reader, "lab.server", message, "write `server = \"memory\"`, or use another `back_end`");
        }
    }
}

fn server(reader: &mut Reader<'_, '_>, settings: &Settings, lab: &LabSettings) {
    let server = &settings.server;
    if server.is_managed() {
        let message = "the lab sets its server up itself".to_owned();
        return report(reader, "server.kind", message, "remove `kind`, or `[lab]`");
    }
    if server.kind == Some(ServerKind::Memory) && lab.server != LabServer::Memory {
        let message =
            format!("the server is the embedded one, and that of the lab is `{}`", lab.server.name());
        report(reader, "server.kind", message, "write `server = \"memory\"` in `[lab]`, or remove `kind`");
    }
    if lab.server == LabServer::Host && server.host.is_none() {
        let message = "`server = \"host\"` does not say which host".to_owned();
        report(
            reader,
            "lab.server",
            message,
            "add `host = \"filer\"` to `[server]`, or write `server = \"knfsd\"`",
        );
    }
    if lab.server == LabServer::Memory {
        if let Err((key, problem, help)) = server.config("/export") {
            report(reader, &format!("server.{key}"), problem, help);
        }
        if server.listen.is_some() {
            let message =
                "the lab's server listens in the lab's network, not at an address of this host".to_owned();
            report(reader, "server.listen", message, "remove it");
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
        report(reader, &format!("server.{key}"), message, help);
    }
    let machine = [LabServer::Knfsd, LabServer::Ganesha].contains(&lab.server);
    let of_machine = |key: &str| key.starts_with("server_");
    for key in lab.changed_knfsd() {
        if lab.server == LabServer::Knfsd || (machine && of_machine(key)) {
            continue;
        }
        let message =
            format!("`lab.{key}` is for the kernel's server, and that of the lab is `{}`", lab.server.name());
        let help = match lab.server {
            LabServer::Memory => "remove it, or describe the embedded server in `[server]`",
            _ => "remove it, or write `server = \"knfsd\"`",
        };
        report(reader, &format!("lab.{key}"), message, help);
    }
}

fn values(reader: &mut Reader<'_, '_>, settings: &Settings, lab: &LabSettings) {
    for (key, memory) in [("memory", lab.memory), ("server_memory", lab.server_memory)] {
        if memory < LEAST_MEMORY {
            let message = format!("no machine boots with {memory} of memory");
            report(reader, &format!("lab.{key}"), message, format!("write at least `\"{LEAST_MEMORY}\"`"));
        }
    }
    if !(1..=1024).contains(&lab.threads) {
        let message = format!("the kernel's server cannot have {} threads", lab.threads);
        report(reader, "lab.threads", message, "write a number from 1 to 1024");
    }
    if !(TimeSpan::seconds(10)..=TimeSpan::seconds(3600)).contains(&lab.lease) {
        let message = format!("the kernel's server has no lease of {}", lab.lease);
        report(reader, "lab.lease", message, "write `\"10s\"` to `\"3600s\"`");
    }
    if lab.disk_size < ByteSize::mib(64) && lab.file_system.name() != "tmpfs" {
        let message = format!("a disk of {} is too small for {}", lab.disk_size, lab.file_system.name());
        report(reader, "lab.disk_size", message, "write `\"1GiB\"`, for example");
    }
    if !lab.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
        || !(1..=32).contains(&lab.name.len())
    {
        let message = format!("`{}` cannot be the name of a lab", lab.name);
        report(reader, "lab.name", message, "use up to 32 letters, digits, `-` and `_`");
    }
    if let Err((key, problem, help)) = lab.config(settings.clients(), false, settings.server.host.as_deref())
    {
        let problem = problem.split_once(": ").map_or(problem.clone(), |(what, _)| what.to_owned());
        report(reader, &format!("lab.{key}"), problem, help);
    }
}

fn network(reader: &mut Reader<'_, '_>, settings: &Settings, lab: &LabSettings) {
    let network = &settings.network;
    if let Means::Netem | Means::Relay = network.means {
        let message =
            format!("in a lab the network is emulated by a wire, not by `{}`", network.means.name());
        report(reader, "network.means", message, "remove it");
    }
    if network.server_bandwidth.is_some() {
        let message = "in a lab the link of the server cannot be limited".to_owned();
        report(reader, "network.server_bandwidth", message, "limit those of the clients: `bandwidth`");
    }
    for (key, asked) in [("mtu", network.mtu.is_some()), ("congestion", network.congestion.is_some())] {
        if asked {
            let message = match key {
                "mtu" => "interfaces of a lab's machines have the MTU of Ethernet, 1500 bytes",
                _ => "the congestion control of a lab's machines is the default of their kernels",
            };
            let help =
                "remove it, or use the embedded server without a lab: `url = \"nfs://{server}/export\"`";
            report(reader, &format!("network.{key}"), message.into(), help);
        }
    }
    if lab.time == LabTime::Virtual && (network.loss.0 > 0.0 || network.jitter > TimeSpan::default()) {
        let key = if network.loss.0 > 0.0 { "loss" } else { "jitter" };
        let message = format!("virtual time makes runs exactly alike, and `{key}` is drawn at random");
        report(
            reader,
            &format!("network.{key}"),
            message,
            "remove it, or write `time = \"real\"` in `[lab]`",
        );
    }
    if lab.time == LabTime::Virtual && lab.server != LabServer::Knfsd {
        let message = format!("on virtual time the kernel's server serves, not `{}`", lab.server.name());
        report(reader, "lab.server", message, "write `server = \"knfsd\"`, or `time = \"real\"`");
    }
}
