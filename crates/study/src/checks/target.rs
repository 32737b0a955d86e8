//! Whether the target of a treatment, and the server of an export, can be used.

use crate::file::Reader;
use benchmaster_nfs_client::options::{MountOptions, Security};
use benchmaster_rpc_gss::Flavor;

use crate::settings::{CERTIFICATES, SCRATCH, SERVER, ServerKind, Settings, TargetKind, TargetMistake};

/// Reports what cannot be.
pub(super) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    let target = &settings.target;
    let given =
        [("path", target.path.is_some()), ("url", target.url.is_some()), ("mount", target.mount.is_some())];
    let given: Vec<_> = given.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
    match given[..] {
        [] => reader.error("target",
            "the target has neither a `path` nor a `url`",
            "add `path = \"/mnt/x\"` (a directory) or `url = \"nfs://server/export\"`; `path = \"{scratch}\"` is a temporary \
             directory, `url = \"nfs://{server}/export\"` the embedded server, and `mount = { source = \"server:/export\" }` is \
             mounted for the study",
        ),
        ["path"] => directory(reader, settings, target.path.as_deref().unwrap_or_default()),
        ["mount"] => mount(reader, settings),
        ["url"] => export(reader, settings),
        [first, .., last] => reader.error(&format!("target.{last}"),
            format!("the target has both a `{first}` and a `{last}`"),
            "keep one: a directory, a file system to mount, or an export for Benchmaster's own client",
        ),
        [_] => {}
    }
}

fn directory(reader: &mut Reader<'_>, settings: &Settings, path: &str) {
    if path.is_empty() {
        let help = "name a directory such as `\"/mnt/x\"`";
        reader.error("target.path", "the target's path is empty", help);
    }
    if path.contains('\0') {
        reader.error("target.path", "the target's path has a NUL character", "remove it");
    }
    if path.starts_with("nfs://") {
        let help = "write it as `url`; a `path` is a directory";
        reader.error("target.path", format!("`{path}` is a URL, not a path"), help);
    } else if path != SCRATCH && path.contains(['{', '}']) {
        let help = "`{scratch}` alone is a temporary directory; any other path is used as written";
        reader.error("target.path", format!("`{path}` has an unknown placeholder"), help);
    }
    only_of_exports(reader, settings);
}

fn mount(reader: &mut Reader<'_>, settings: &Settings) {
    let Some(mount) = &settings.target.mount else { return };
    for (key, text) in [("source", &mount.source), ("type", &mount.kind)] {
        if text.trim().is_empty() {
            let help = "write `mount = { source = \"server:/export\", options = \"vers=4.1\" }`";
            reader.error("target.mount", format!("the `{key}` of the mount is empty"), help);
        }
    }
    if let Some(path) = mount.path.as_ref().filter(|path| !path.starts_with('/')) {
        let help = "write an absolute path such as `\"/mnt/x\"`, or leave it out";
        reader.error("target.mount", format!("the mount's path `{path}` is not absolute"), help);
    }
    let texts = [&mount.source, &mount.options, &mount.kind].into_iter().chain(&mount.path);
    if texts.into_iter().any(|text| text.contains(['\0', '\n'])) {
        let message = "the mount has a character that no mount can have";
        reader.error("target.mount", message, "remove line breaks and NUL characters");
    }
    let rest = mount.source.strip_prefix(SERVER).unwrap_or(&mount.source);
    if rest.contains(['{', '}']) || (rest.len() < mount.source.len() && !rest.starts_with(':')) {
        let message = format!("`{}` has an unknown placeholder", mount.source);
        let help = format!("`{SERVER}` as the host stands for the server: `{SERVER}:/export`");
        reader.error("target.mount", message, help);
    }
    only_of_exports(reader, settings);
}

/// Reports keys that a target which is reached by system calls does not use.
fn only_of_exports(reader: &mut Reader<'_>, settings: &Settings) {
    if let Some(name) = settings.target.options.keys().next() {
        let message = format!(
            "`target.{name}` is an option of Benchmaster's own client, and a directory does not use it"
        );
        let help = "give a `url`, or mount the file system with this option";
        reader.error(&format!("target.{name}"), message, help);
    }
    // What serves a lab is looked at with it.
    if settings.lab.is_some() {
        return;
    }
    let server = &settings.server;
    let kind = server.kind.filter(|kind| *kind != ServerKind::Managed).map(|_| "kind".to_owned());
    let key = server.changed().into_iter().next().or(kind);
    if let Some(key) = key {
        let help =
            "a directory is served by whatever it is mounted from; remove it, or give the target a `url`";
        let message = format!("`server.{key}` has no meaning for a target that is a directory");
        reader.error(&format!("server.{key}"), message, help);
    }
}

/// The embedded server makes the certificates itself, on this host.
fn certificates(reader: &mut Reader<'_>, settings: &Settings, options: &MountOptions) {
    let files = [("tls_ca", &options.tls_ca), ("tls_cert", &options.tls_cert), ("tls_key", &options.tls_key)];
    let given = files.into_iter().find_map(|(name, file)| {
        let file = file.as_deref().filter(|file| !file.starts_with(CERTIFICATES))?;
        Some((name, file))
    });
    if let Some((name, file)) = given {
        let key = if settings.target.options.contains_key(name) { name } else { "url" };
        let message = format!("the embedded server makes its own certificates, and `{file}` is not of them");
        reader.error(&format!("target.{key}"), message, format!("remove `{name}`"));
    }
    if options.security != Security::None && !settings.launcher().is_here() {
        let key = ["security", "xprtsec"].into_iter().find(|key| settings.target.options.contains_key(key));
        let message =
            "clients are on other hosts, and the certificates of the embedded server are made on this one";
        let help = "start the server by `benchmaster serve --tls CERT,KEY`, and name its CA in `tls_ca`";
        reader.error(&format!("target.{}", key.unwrap_or("url")), message, help);
    }
}

/// The embedded server needs keys for Kerberos, and makes none.
fn kerberos(reader: &mut Reader<'_>, settings: &Settings, options: &MountOptions) {
    if options.sec != Flavor::Sys && settings.server.keytab.is_none() {
        let message = format!("the embedded server has no keys for `{}`", options.sec.name());
        let help = "name a keytab of `nfs/HOST` in `keytab` of `[server]`, and the principal in `target.krb5_server`";
        let key = ["security", "sec"].into_iter().find(|key| settings.target.options.contains_key(key));
        reader.error(&format!("target.{}", key.unwrap_or("url")), message, help);
    }
}

fn export(reader: &mut Reader<'_>, settings: &Settings) {
    let (target, server) = (&settings.target, &settings.server);
    let options = match target.mount_options("127.0.0.1") {
        Ok(options) => options,
        Err(mistake) => {
            let fix =
                mistake.fix.unwrap_or_else(|| "write `url = \"nfs://server/export?version=4.1\"`".into());
            return reader.error(&format!("target.{}", mistake.key), mistake.problem, fix);
        }
    };
    let url = target.place();
    let embedded = matches!(target.kind(), TargetKind::Embedded(_));
    let rest = if embedded { url.replacen(SERVER, "", 1) } else { url.to_owned() };
    if rest.contains(['{', '}']) {
        let help = "`{server}` as the host stands for the embedded server: `nfs://{server}/export`";
        return reader.error("target.url", format!("`{url}` has an unknown placeholder"), help);
    }
    // What serves a lab is looked at with it.
    if settings.lab.is_some() {
        let protected =
            |options: MountOptions| options.security != Security::None || options.sec != Flavor::Sys;
        if options.is_some_and(|options| embedded && protected(options)) {
            let message = "the embedded server of a lab has no certificates and no Kerberos keys";
            reader.error("target", message, "remove `security`, or `[lab]`");
        }
        return;
    }
    match (embedded, server.kind) {
        (true, Some(kind @ (ServerKind::External | ServerKind::Managed))) => reader.error(
            "server.kind",
            format!("the server is {}, and the URL's host stands for the embedded one", kind.name()),
            "name the host in `target.url`, or remove `kind`",
        ),
        (false, Some(ServerKind::Memory)) => reader.error(
            "server.kind",
            format!("the server is the embedded one, and `{url}` names another"),
            "write `url = \"nfs://{server}/export\"`, or remove `kind`",
        ),
        (false, _) => {
            for key in server.changed() {
                let help = "remove it, or write `url = \"nfs://{server}/export\"` for the embedded server";
                let message = format!("`server.{key}` is for the embedded server, and `{url}` names another");
                reader.error(&format!("server.{key}"), message, help);
            }
        }
        (true, _) => {
            if let Some(options) =
                options.as_ref().filter(|options| options.port.or(options.mount_port).is_some())
            {
                let key = ["port", "mountport"].into_iter().find(|key| target.options.contains_key(key));
                let key = key.unwrap_or("url");
                let port = options.port.or(options.mount_port).unwrap_or_default();
                let message = format!("the embedded server takes a free port, not port {port}");
                reader.error(&format!("target.{key}"), message, "remove the port");
            }
            if let Err(TargetMistake { key, problem, fix }) = target.also_listens() {
                reader.error(&format!("target.{key}"), problem, fix.unwrap_or_default());
            }
            if let Some(options) = &options {
                certificates(reader, settings, options);
                kerberos(reader, settings, options);
            }
            if let Err((key, problem, help)) = server.config("/export") {
                reader.error(&format!("server.{key}"), problem, help);
            }
        }
    }
}
