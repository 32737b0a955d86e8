//! Whether the steps of a managed server make sense.

use std::collections::BTreeSet;

use crate::file::Reader;
use crate::path;
use crate::settings::{
    CacheControl, LabServer, SERVER, ServerCache, ServerKind, Settings, StepSide, TargetKind, substitute,
};

/// Reports what cannot be.
pub(super) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    let server = &settings.server;
    if !server.is_managed() {
        // A host alone is what `{server}` stands for.
        let named = match settings.target.kind() {
            TargetKind::Mount(mount) => mount.host() == Some(SERVER),
            _ => settings.lab.as_ref().is_some_and(|lab| lab.server == LabServer::Host),
        };
        for key in server.changed_managed().into_iter().filter(|key| !(named && key == "host")) {
            let message = format!("`server.{key}` is for a server that the study sets up");
            let help = "write `kind = \"managed\"` in `[server]`, or remove it";
            reader.error(&format!("server.{key}"), message, help);
        }
    } else {
        steps(reader, settings);
        // Of an export they have been told to be for the embedded one.
        if matches!(settings.target.kind(), TargetKind::Scratch) {
            let message = "the target is a temporary directory, which no managed server serves";
            let help = "give the `mount` or the `url` that the steps set up";
            reader.error("target.path", message, help);
        }
        if let Some(host) = server.other_host().filter(|_| server.cache == ServerCache::Cold) {
            let message =
                format!("`cold` empties the cache of a server on this host, and the server is on `{host}`");
            let help = "add a step with `when = \"run\"` and `command = \"sync; echo 3 > /proc/sys/vm/drop_caches\"`: it is done \
                        before files are prepared, which are used again by later runs";
            reader.error("server.cache", message, help);
        }
        if server.host.as_ref().is_some_and(|host| host.trim().is_empty() || host.starts_with('-')) {
            let help = "write its name as `ssh` knows it, or leave it out for this host";
            reader.error("server.host", "the host of the server has no name that can be", help);
        }
    }
    let embedded = matches!(settings.target.kind(), TargetKind::Embedded(_));
    let here = settings.launcher().is_here() && (server.is_managed() || embedded);
    let here = here || settings.has_server_machine();
    for (index, collect) in settings.collect.iter().enumerate() {
        if collect.on == StepSide::Server && server.other_host().is_none() && !here {
            let message =
                format!("`{}` is to run on the server's host, where the study has no agent", collect.name);
            let help =
                "write `on = \"clients\"`, or `kind = \"managed\"` and the server's `host` in `[server]`";
            reader.error(&format!("collect[{index}].on"), message, help);
        }
    }
    let mounted = matches!(settings.target.kind(), TargetKind::Mount(_));
    if settings.run.cache == CacheControl::Remount && !mounted {
        let help = "let the study mount the target: `mount = { source = \"server:/export\" }` in `[target]`; or use \
                    `cache_hook`";
        reader.error("run.cache", "only what the study has mounted can be mounted again", help);
    }
}

fn steps(reader: &mut Reader<'_>, settings: &Settings) {
    let server = &settings.server;
    debug_assert_eq!(server.kind, Some(ServerKind::Managed));
    for name in server.parameters.keys().filter(|name| !path::is_name(name)) {
        let message = format!("`{name}` cannot be the name of a parameter");
        reader.error("server.parameters", message, "use letters, digits, `_` and `-`");
    }
    let steps = server.steps.iter().map(|step| (&step.name, &step.command, step.timeout));
    let teardown = server.teardown.iter().map(|step| (&step.name, &step.command, step.timeout));
    let all = steps
        .enumerate()
        .map(|(index, step)| (format!("server.steps[{index}]"), step))
        .chain(teardown.enumerate().map(|(index, step)| (format!("server.teardown[{index}]"), step)));
    let mut names = BTreeSet::new();
    for (place, (name, command, timeout)) in all {
        if name.trim().is_empty() || !names.insert((place.split('[').next().map(str::to_owned), name.clone()))
        {
            let message = match name.trim() {
                "" => "a step has an empty name".to_owned(),
                name => format!("two steps are called `{name}`"),
            };
            reader.error(&format!("{place}.name"), message, "give each its own name");
        }
        if command.trim().is_empty() {
            let message = format!("the step `{name}` has no command");
            reader.error(&format!("{place}.command"), message, "write a shell command");
        }
        if timeout.nanos() == 0 {
            let message = format!("a timeout of 0 stops the step `{name}` at once");
            reader.error(&format!("{place}.timeout"), message, "write `\"60s\"`, or leave it out");
        }
        if let Err(unknown) = substitute(command, &server.parameters) {
            let message =
                format!("the step `{name}` has `{{{0}}}`, and there is no parameter `{0}`", unknown.0);
            let names: Vec<_> = server.parameters.keys().map(|name| format!("`{name}`")).collect();
            let known =
                if names.is_empty() { String::new() } else { format!(" (there are {})", names.join(", ")) };
            let help = format!(
                "add it to `[server.parameters]`{known}; double the braces that are meant for the shell: `{{{{{}}}}}`",
                unknown.0
            );
            reader.error(&format!("{place}.command"), message, help);
        }
    }
}
