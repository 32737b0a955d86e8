//! What a mount from `{server}` is where neither a lab nor a host serves it.

use std::collections::BTreeMap;

use benchmaster_nfs_client::options::MountOptions;

use crate::settings::{LabSettings, MountSettings, OptionText, SERVER, ServerSettings, TargetSettings};

/// The target of a treatment. A mount from `{server}` without a lab and without a host is an export of the embedded server,
/// which Benchmaster's own client mounts with the cache of the Linux client: the same study on neither machines nor hosts.
///
/// # Errors
/// When the mount has an option that Benchmaster's own client does not: the mistake, and what would be right.
pub(crate) fn target_of(
    target: TargetSettings,
    server: &ServerSettings,
    lab: Option<&LabSettings>,
) -> Result<TargetSettings, (String, String)> {
    let elsewhere = lab.is_some() || server.host.is_some() || server.is_managed();
    let mount = target.mount.as_ref().filter(|_| !elsewhere && target.url.is_none() && target.path.is_none());
    let Some(mount) = mount.filter(|mount| mount.host() == Some(SERVER)) else { return Ok(target) };
    match export_of(mount) {
        Ok((url, options)) => Ok(TargetSettings { url: Some(url), options, ..TargetSettings::default() }),
        Err((option, why)) => {
            let message =
                format!("without `[lab]` and `[server] host`, `{SERVER}` is the embedded server, and {why}");
            let help = format!(
                "remove `{option}`, run the study with `--lab`, or name the server in `[server] host`"
            );
            Err((message, help))
        }
    }
}

type Options = BTreeMap<&'static str, OptionText>;

/// The same as a URL with options; else the option that Benchmaster's own client does not have, and what is to be said.
fn export_of(mount: &MountSettings) -> Result<(String, Options), (String, String)> {
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
