//! The sections of parameters, each read into its type once: a treatment reads again only those that its levels touch.

use std::sync::Arc;

use benchmaster_builtin::{BUILT_IN, Scale, WorkloadSpec};
use serde::de::DeserializeOwned;

use super::section::Reader;
use super::tree::{Node, Table, Value};
use crate::checks;
use crate::diagnostics::Diagnostic;
use crate::settings::{
    ClientSettings, CollectSettings, LabSettings, NetworkSettings, RunSettings, SamplingSettings,
    ServerSettings, Settings, TargetSettings,
};
use crate::suggest;

/// A section and the node it was read from; no value when it has mistakes, which have then been reported.
#[derive(Debug, Clone, PartialEq)]
struct Section<T> {
    node: Option<Arc<Node>>,
    value: Option<T>,
}

/// All sections of parameters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sections {
    target: Section<TargetSettings>,
    server: Section<ServerSettings>,
    network: Section<NetworkSettings>,
    clients: Section<ClientSettings>,
    lab: Section<Option<LabSettings>>,
    run: Section<RunSettings>,
    sampling: Section<SamplingSettings>,
    collect: Section<Vec<CollectSettings>>,
    workloads: Vec<(String, Section<WorkloadSpec>)>,
}

/// Reads the sections of a file, or of a treatment: those that are the same as in `file` are taken from there.
pub(crate) fn read_sections(reader: &mut Reader<'_>, file: Option<&Sections>) -> Sections {
    Sections {
        target: section(reader, "target", file.map(|file| &file.target), target),
        server: section(reader, "server", file.map(|file| &file.server), or_default),
        network: section(reader, "network", file.map(|file| &file.network), or_default),
        clients: section(reader, "clients", file.map(|file| &file.clients), or_default),
        lab: section(reader, "lab", file.map(|file| &file.lab), |reader, name, node| match node {
            Some(node) => reader.read(name, node).map(Some),
            None => Some(None),
        }),
        run: section(reader, "run", file.map(|file| &file.run), or_default),
        sampling: section(reader, "sampling", file.map(|file| &file.sampling), or_default),
        collect: section(reader, "collect", file.map(|file| &file.collect), collect),
        workloads: workloads(reader, file),
    }
}

impl Sections {
    /// The settings of a treatment. `None` when a section has mistakes, which have then been reported.
    pub(crate) fn settings(self, reader: &mut Reader<'_>, scale: Option<Scale>) -> Option<Settings> {
        let (target, server, lab) = (self.target.value?, self.server.value?, self.lab.value?);
        let target = checks::target_of(target, &server, lab.as_ref());
        let target = target.map_err(|(message, help)| reader.error("target.mount", message, help)).ok()?;
        let mut clients = self.clients.value?;
        if let Some(scale) = scale {
            clients.stagger = scale.part(clients.stagger);
        }
        let workloads = self.workloads.into_iter().map(|(name, section)| {
            let mut spec = section.value?;
            if let Some(scale) = scale {
                spec.scale(scale);
            }
            Some((name, spec))
        });
        let workloads = workloads.collect::<Option<Vec<_>>>().filter(|all| !all.is_empty())?;
        Some(Settings {
            target,
            server,
            network: self.network.value?,
            clients,
            lab,
            run: self.run.value?,
            sampling: self.sampling.value?,
            collect: self.collect.value?,
            workloads,
        })
    }
}

fn section<T: Clone>(
    reader: &mut Reader<'_>,
    name: &str,
    file: Option<&Section<T>>,
    read: impl Fn(&mut Reader<'_>, &str, Option<&Arc<Node>>) -> Option<T>,
) -> Section<T> {
    let node = reader.tree.get(name);
    match file {
        Some(file) if is_same(file, node) => file.clone(),
        _ => Section { node: node.cloned(), value: read(reader, name, node) },
    }
}

/// Whether a section is the file's own. One that was wrong there, or had a gap for a factor, is read again.
fn is_same<T>(file: &Section<T>, node: Option<&Arc<Node>>) -> bool {
    let same = match (&file.node, node) {
        (Some(file), Some(node)) => Arc::ptr_eq(file, node),
        (file, node) => file.is_none() && node.is_none(),
    };
    same && file.value.is_some()
}

fn or_default<T: DeserializeOwned + Default>(
    reader: &mut Reader<'_>,
    name: &str,
    node: Option<&Arc<Node>>,
) -> Option<T> {
    node.map_or_else(|| Some(T::default()), |node| reader.read(name, node))
}

fn target(reader: &mut Reader<'_>, name: &str, node: Option<&Arc<Node>>) -> Option<TargetSettings> {
    if let Some(node) = node {
        return reader.read(name, node);
    }
    if !reader.gaps.allow(name) {
        let message = "the study has no target: section `[target]` is missing";
        let help = "add `[target]` with `path = \"/mnt/x\"` (a directory) or `url = \"nfs://server/export\"`; \
                    `path = \"{scratch}\"` is a temporary directory, `url = \"nfs://{server}/export\"` the embedded \
                    server";
        reader.diagnostics.push(Diagnostic::error(message).help(help));
    }
    None
}

fn collect(reader: &mut Reader<'_>, name: &str, node: Option<&Arc<Node>>) -> Option<Vec<CollectSettings>> {
    let Some(node) = node else { return Some(Vec::new()) };
    let Value::Array(commands) = &node.value else {
        let message = format!("`{name}` must be an array of tables, not {}", node.value.type_name());
        let help = "write a section `[[collect]]` for each command, with `name` and `command`";
        reader.diagnostics.error(&node.span, message, help);
        return None;
    };
    let commands = commands.iter().enumerate();
    let read: Vec<_> = commands.map(|(index, node)| reader.read(&format!("{name}[{index}]"), node)).collect();
    read.into_iter().collect()
}

fn workloads(reader: &mut Reader<'_>, file: Option<&Sections>) -> Vec<(String, Section<WorkloadSpec>)> {
    let missing = Diagnostic::error("the study has no workload")
        .help("add a section `[workload.NAME]` with `use = \"sequential-write\"`, for example");
    let Some(node) = reader.tree.get("workload") else {
        reader.diagnostics.push(missing);
        return Vec::new();
    };
    let Some(table) = reader.table("workload", node) else { return Vec::new() };
    if table.is_empty() {
        reader.diagnostics.push(missing.at(node.span.clone()));
    }
    let sections = table.iter().map(|(key, node)| {
        let name = &key.name;
        let known = file.and_then(|file| file.workloads.iter().find(|(of, _)| of == name));
        let section = match known {
            Some((_, known)) if is_same(known, Some(node)) => known.clone(),
            _ => Section { node: Some(node.clone()), value: workload(reader, name, node) },
        };
        (name.clone(), section)
    });
    sections.collect()
}

fn workload(reader: &mut Reader<'_>, name: &str, node: &Arc<Node>) -> Option<WorkloadSpec> {
    let section = format!("workload.{name}");
    let table = reader.table(&section, node)?;
    let use_name = use_name(reader, name, node, table)?;
    let parameters = Node::new(node.span.clone(), Value::Table(table.filtered(|key| key != "use")));
    reader.read_with(&section, &parameters, |table| {
        let unknown = || Err(serde::de::Error::custom(format!("unknown workload `{use_name}`")));
        WorkloadSpec::deserialize(use_name, table).unwrap_or_else(unknown)
    })
}

/// The built-in workload that one uses; `custom` for one that is written in full.
fn use_name(reader: &mut Reader<'_>, name: &str, node: &Node, table: &Table) -> Option<&'static str> {
    let names = || BUILT_IN.iter().map(|built_in| built_in.name);
    let Some(value) = table.get("use") else {
        if table.get("groups").or(table.get("filesets")).is_some() {
            return Some("custom");
        }
        let keys = ["use", "groups", "filesets"];
        if !keys.iter().any(|key| reader.gaps.allow(&format!("workload.{name}.{key}"))) {
            let message = format!("the workload `{name}` says neither what it uses nor what it does");
            let help = format!("add `use = …` with one of {}", suggest::quoted(&names().collect::<Vec<_>>()));
            reader.diagnostics.error(&node.span, message, help);
        }
        return None;
    };
    let Some(text) = value.text() else {
        let message = format!("`workload.{name}.use` must be a string, not {}", value.value.type_name());
        reader.diagnostics.push(Diagnostic::error(message).at(value.span.clone()));
        return None;
    };
    let known = names().find(|built_in| *built_in == text);
    if known.is_none() {
        let help = suggest::suggest(text, "built-in workloads", names());
        reader.diagnostics.error(&value.span, format!("unknown built-in workload `{text}`"), help);
    }
    known
}
