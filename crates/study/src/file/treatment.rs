//! The settings of one treatment: the file with one level of every factor put into its place, read and checked.

use std::collections::BTreeMap;
use std::ops::Range;

use benchmaster_record::model::{Fileset, ParameterError, Workload};
use benchmaster_telemetry::sampling::sampler_names;
use benchmaster_units::TimeSpan;
use benchmaster_workload::builtin::{BUILT_IN, Conditions, Scale, WorkloadSpec};
use benchmaster_workload::program::Program;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use super::factors::{Factor, check_name};
use super::path::{self, Node};
use super::place;
use super::section::{Gaps, Reader};
use super::words;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::settings::{
    ClientSettings, CollectSettings, LabSettings, NetworkSettings, RunSettings, SamplingSettings,
    ServerSettings, Settings, TargetSettings,
};

/// What one treatment does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Treatment {
    pub(crate) settings: Settings,
    /// The workloads in full, in order.
    pub(crate) workloads: Vec<(String, Workload)>,
}

/// Reads and checks the treatment with these levels. `None` when there are mistakes, which have then been reported.
pub(crate) fn read(
    tree: &DeTable<'_>,
    factors: &[Factor<'_>],
    levels: &[u32],
    found: &mut Diagnostics,
) -> Option<Treatment> {
    let (tree, overlaid) = overlay(tree, factors, levels, found)?;
    let label = |workload: &str| {
        let prefix = format!("workload.{workload}.");
        let varied =
            factors.iter().flat_map(|factor| factor.levels.iter().take(1)).flat_map(|level| &level.settings);
        let varied = varied.into_iter().any(|setting| setting.path.starts_with(&prefix));
        label(factors, levels)
            .filter(|_| varied)
            .map_or_else(String::new, |label| format!("in the treatment {label}"))
    };
    let mut reader = Reader { tree: &tree, overlaid: &overlaid, gaps: Gaps::NONE, found };
    let settings = read_settings(&mut reader)?;
    let good = check_settings(&mut reader, &settings);
    let workloads = expand(&mut reader, &settings, label);
    good.then_some(Treatment { settings, workloads: workloads? })
}

/// `io_size=64KiB sync=on`; `None` without factors.
pub(crate) fn label(factors: &[Factor<'_>], levels: &[u32]) -> Option<String> {
    let parts = factors.iter().zip(levels).filter_map(|(factor, &level)| {
        let level = factor.levels.get(level as usize)?;
        Some(format!("{}={}", factor.name, level.name))
    });
    let text = parts.collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then_some(text)
}

/// Puts one level of every factor into a copy of the file.
fn overlay<'t>(
    tree: &DeTable<'t>,
    factors: &[Factor<'t>],
    levels: &[u32],
    found: &mut Diagnostics,
) -> Option<(DeTable<'t>, Vec<Range<usize>>)> {
    let mut tree = tree.clone();
    // A level's value, or a load, is now in two places; its path is the one that it was put to.
    tree.remove("factors");
    tree.remove("load");
    let mut overlaid = Vec::new();
    let mut good = true;
    let chosen = factors.iter().zip(levels).filter_map(|(factor, &level)| factor.levels.get(level as usize));
    for setting in chosen.flat_map(|level| &level.settings) {
        let segments = path::parse(&setting.path)?;
        for other in place::alternatives(&setting.path) {
            path::remove(&mut tree, &path::parse(other)?);
        }
        if let Err(error) = path::set(&mut tree, &segments, &setting.origin, setting.value.clone()) {
            found.push(
                Diagnostic::error(format!("there is no parameter `{}`", setting.path))
                    .at(setting.origin.clone())
                    .help(error.message),
            );
            good = false;
        }
        overlaid.push(setting.origin.clone());
    }
    good.then_some((tree, overlaid))
}

/// Reads all sections of parameters.
pub(crate) fn read_settings(reader: &mut Reader<'_, '_>) -> Option<Settings> {
    let tree = reader.tree;
    let target = match tree.get("target") {
        Some(node) => reader.read::<TargetSettings>("target", node),
        None => {
            if !reader.gaps.allow("target") {
                reader.found.push(
                    Diagnostic::error("the study does not say what is measured: there is no section `[target]`")
                        .help(
                            "add `[target]` with `path = \"/mnt/x\"` (a directory) or `url = \"nfs://server/export\"`; \
                             `path = \"{scratch}\"` is a temporary directory, `url = \"nfs://{server}/export\"` the \
                             embedded server",
                        ),
                );
            }
            None
        }
    };
    let server = match tree.get("server") {
        Some(node) => reader.read::<ServerSettings>("server", node),
        None => Some(ServerSettings::default()),
    };
    let network = match tree.get("network") {
        Some(node) => reader.read::<NetworkSettings>("network", node),
        None => Some(NetworkSettings::default()),
    };
    let clients = match tree.get("clients") {
        Some(node) => reader.read::<ClientSettings>("clients", node),
        None => Some(ClientSettings::default()),
    };
    let clients = clients.map(|clients| match scale_of(tree) {
        Some(scale) => ClientSettings { stagger: scale.part(clients.stagger), ..clients },
        None => clients,
    });
    let lab = match tree.get("lab") {
        Some(node) => reader.read::<LabSettings>("lab", node).map(Some),
        None => Some(None),
    };
    let run = match tree.get("run") {
        Some(node) => reader.read::<RunSettings>("run", node),
        None => Some(RunSettings::default()),
    };
    let sampling = match tree.get("sampling") {
        Some(node) => reader.read::<SamplingSettings>("sampling", node),
        None => Some(SamplingSettings::default()),
    };
    let collect = read_collect(reader);
    let workloads = read_workloads(reader);
    let (target, server, lab) = (target?, server?, lab?);
    Some(Settings {
        target: super::lab::target(reader, target, &server, lab.as_ref())?,
        server,
        network: network?,
        clients: clients?,
        lab,
        run: run?,
        sampling: sampling?,
        collect: collect?,
        workloads: workloads?,
    })
}

fn read_collect(reader: &mut Reader<'_, '_>) -> Option<Vec<CollectSettings>> {
    let tree = reader.tree;
    let Some(node) = tree.get("collect") else { return Some(Vec::new()) };
    let DeValue::Array(commands) = node.get_ref() else {
        let message = format!("`collect` must be an array of tables, not a {}", node.get_ref().type_str());
        let help = "write a section `[[collect]]` for each command, with `name` and `command`";
        reader.found.push(Diagnostic::error(message).at(node.span()).help(help));
        return None;
    };
    let read = commands.iter().enumerate();
    let read: Vec<_> = read
        .map(|(index, node)| reader.read::<CollectSettings>(&format!("collect[{index}]"), node))
        .collect();
    read.into_iter().collect()
}

fn read_workloads(reader: &mut Reader<'_, '_>) -> Option<Vec<(String, WorkloadSpec)>> {
    let missing = || {
        Diagnostic::error("the study does nothing: there is no workload")
            .help("add a section `[workload.NAME]` with `use = \"sequential-write\"`, for example")
    };
    let tree = reader.tree;
    let Some(node) = tree.get("workload") else {
        reader.found.push(missing());
        return None;
    };
    if !reader.is_table("workload", node) {
        return None;
    }
    let DeValue::Table(table) = node.get_ref() else { return None };
    if table.is_empty() {
        reader.found.push(missing().at(node.span()));
        return None;
    }
    let scale = scale_of(tree);
    let mut workloads = Vec::new();
    let mut good = true;
    for (key, node) in table {
        let name = key.get_ref();
        good &= check_name(reader, "workload", name, &key.span());
        match read_workload(reader, name, node) {
            Some(mut spec) => {
                if let Some(scale) = scale {
                    spec.scale(scale);
                }
                workloads.push((name.to_string(), spec));
            }
            None => good = false,
        }
    }
    good.then_some(workloads)
}

/// What `study.scale` says; what is wrong with it is reported with that section.
fn scale_of(tree: &DeTable<'_>) -> Option<Scale> {
    let (_, node) = path::find(tree, &path::parse("study.scale")?)?;
    Scale::new(Deserialize::deserialize(ValueDeserializer::from(node.clone())).ok()?)
}

fn read_workload<'t>(reader: &mut Reader<'_, 't>, name: &str, node: &Node<'t>) -> Option<WorkloadSpec> {
    let section = format!("workload.{name}");
    if !reader.is_table(&section, node) {
        return None;
    }
    let DeValue::Table(table) = node.get_ref() else { return None };
    let use_name = match table.get("use") {
        Some(value) => match value.get_ref() {
            DeValue::String(text) => {
                let known = BUILT_IN.iter().find(|built_in| built_in.name == *text);
                if known.is_none() {
                    let names = BUILT_IN.iter().map(|built_in| built_in.name);
                    reader.found.push(
                        Diagnostic::error(format!("there is no workload called `{text}` to use"))
                            .at(value.span())
                            .help(words::suggest(text, "built-in workloads", names)),
                    );
                }
                known?.name
            }
            other => {
                let message = format!("`{section}.use` must be a text in quotes, not {}", other.type_str());
                reader.found.push(Diagnostic::error(message).at(value.span()));
                return None;
            }
        },
        None if table.contains_key("groups") || table.contains_key("filesets") => "custom",
        None => {
            let set_by_factor = ["use", "groups", "filesets"]
                .iter()
                .any(|key| reader.gaps.allow(&format!("{section}.{key}")));
            if !set_by_factor {
                let names: Vec<_> = BUILT_IN.iter().map(|built_in| built_in.name).collect();
                reader.found.push(
                    Diagnostic::error(format!(
                        "the workload `{name}` says neither what it uses nor what it does"
                    ))
                    .at(node.span())
                    .help(format!("add `use = …` with one of {}", words::quoted(&names))),
                );
            }
            return None;
        }
    };
    let mut parameters = table.clone();
    parameters.remove("use");
    let node = Spanned::new(node.span(), DeValue::Table(parameters));
    let read = |node: Node<'t>| match WorkloadSpec::deserialize(use_name, ValueDeserializer::from(node)) {
        Some(result) => result,
        None => Err(serde::de::Error::custom(format!("there is no workload `{use_name}`"))),
    };
    reader.read_with(&section, &node, read)
}

/// Values that are well-formed but cannot be meant, outside of workloads.
fn check_settings(reader: &mut Reader<'_, '_>, settings: &Settings) -> bool {
    let mut good = place::check(reader, settings);
    let mut require = |holds: bool, path: &str, message: String, help: &str| {
        if !holds {
            let place = reader.place(path);
            reader.found.push(Diagnostic::error(message).at(place).help(help));
            good = false;
        }
    };
    let run = &settings.run;
    require(
        run.interval.is_none_or(|interval| interval >= TimeSpan::millis(1)),
        "run.interval",
        "an interval shorter than 1 ms measures the recorder".into(),
        "write `\"1s\"`, or leave it out",
    );
    require(
        run.hook_timeout.nanos() > 0,
        "run.hook_timeout",
        "a `hook_timeout` of 0 stops every command at once".into(),
        "write `\"60s\"`, or leave it out",
    );
    require(
        run.cache_hook.as_ref().is_none_or(|hook| !hook.trim().is_empty()),
        "run.cache_hook",
        "the `cache_hook` is empty".into(),
        "write a shell command, or leave it out",
    );
    require(
        run.max_errors > 0,
        "run.max_errors",
        "with `max_errors = 0` a worker gives up before its first operation".into(),
        "write 1 to give up at the first error",
    );
    require(
        run.retries <= 100,
        "run.retries",
        format!("a run cannot be tried {} times again", run.retries),
        "write a number from 0 to 100",
    );
    let sampling = &settings.sampling;
    require(
        sampling.interval >= TimeSpan::millis(10),
        "sampling.interval",
        format!("counters cannot be read every {}", sampling.interval),
        "write `\"10ms\"` or longer; most counters are not worth reading more often than once a second",
    );
    let known: Vec<_> = sampler_names().collect();
    for (index, name) in sampling.samplers.iter().flatten().enumerate() {
        require(
            known.iter().any(|known| known == name),
            &format!("sampling.samplers[{index}]"),
            format!("there is no sampler `{name}`"),
            &words::suggest(name, "samplers", known.iter().copied()),
        );
    }
    for (index, collect) in settings.collect.iter().enumerate() {
        require(
            !collect.command.trim().is_empty(),
            &format!("collect[{index}].command"),
            "the command is empty".into(),
            "write a shell command",
        );
        let same = |other: &&CollectSettings| other.name == collect.name;
        require(
            !settings.collect[..index].iter().any(|other| same(&other)),
            &format!("collect[{index}].name"),
            format!("two commands are called `{}`", collect.name),
            "give each a name of its own",
        );
    }
    let names: Vec<_> = settings.collect.iter().map(|collect| collect.name.clone()).collect();
    for (index, name) in names.iter().enumerate() {
        let place = reader.place(&format!("collect[{index}].name"));
        good &= check_name(reader, "command", name, &place);
    }
    good
}

/// The workloads in full, with their contradictions reported. `label` says of a workload in which treatment it is.
fn expand(
    reader: &mut Reader<'_, '_>,
    settings: &Settings,
    label: impl Fn(&str) -> String,
) -> Option<Vec<(String, Workload)>> {
    let mut workloads = Vec::new();
    let mut good = true;
    let access = settings.access();
    let conditions = Conditions { access, clients: settings.clients() };
    for (name, spec) in &settings.workloads {
        // Compiling finds what expanding does not look at: everything in a workload that is written in full.
        let full = spec.expand_under(name, conditions);
        let full = full.and_then(|full| Program::compile_for(&full, access).map(|program| (full, program)));
        match full {
            Ok((full, program)) => {
                good &= super::clients::check_workload(reader, settings, name, &full, &program);
                workloads.push((name.clone(), full));
            }
            Err(errors) => {
                good = false;
                for error in errors {
                    let place = reader.place(&written_path(name, spec, &error));
                    let diagnostic =
                        Diagnostic::error(error.message).at(place).label(label(name)).help(error.fix);
                    reader.found.push(diagnostic);
                }
            }
        }
    }
    good &= filesets_agree(reader, &workloads);
    good.then_some(workloads)
}

/// The path, as it would be written in the study, of what an error is about.
fn written_path(name: &str, spec: &WorkloadSpec, error: &ParameterError) -> String {
    match (spec, &*error.path) {
        (_, "") => format!("workload.{name}"),
        // The fileset of a built-in workload is named by a parameter.
        (WorkloadSpec::Custom(_), below) => format!("workload.{name}.{below}"),
        (_, below) if below.starts_with("filesets.") => format!("workload.{name}.fileset"),
        (_, below) => format!("workload.{name}.{below}"),
    }
}

/// Workloads that name the same fileset must describe it in the same way.
fn filesets_agree(reader: &mut Reader<'_, '_>, workloads: &[(String, Workload)]) -> bool {
    let mut known: BTreeMap<&str, (&str, &Fileset)> = BTreeMap::new();
    let mut good = true;
    for (workload, full) in workloads {
        for (name, fileset) in &full.filesets {
            let Some((first, described)) = known.get(name.as_str()) else {
                known.insert(name, (workload, fileset));
                continue;
            };
            if *described == fileset {
                continue;
            }
            let exact =
                [format!("workload.{workload}.fileset"), format!("workload.{workload}.filesets.{name}")]
                    .into_iter()
                    .find(|path| {
                        path::parse(path).is_some_and(|segments| path::find(reader.tree, &segments).is_some())
                    });
            let place = reader.place(&exact.unwrap_or_else(|| format!("workload.{workload}")));
            let difference = difference(described, fileset);
            reader.found.push(
                Diagnostic::error(format!(
                    "the workloads `{first}` and `{workload}` share the fileset `{name}` but describe it differently: \
                     {difference}"
                ))
                .at(place)
                .help("give both the same description, or each a fileset of its own"),
            );
            good = false;
        }
    }
    good
}

fn difference(one: &Fileset, other: &Fileset) -> String {
    let json = |fileset| serde_json::to_value(fileset).unwrap_or_default();
    let (one, other) = (json(one), json(other));
    let parts = one.as_object().into_iter().flatten().filter_map(|(key, value)| {
        let theirs = other.get(key)?;
        (theirs != value).then(|| format!("`{key}` is {value} and {theirs}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}
