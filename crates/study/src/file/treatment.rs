//! The settings of one treatment: the file with one level of every factor put into it, read and checked.

use std::collections::BTreeMap;

use benchmaster_builtin::{Conditions, Scale, WorkloadSpec};
use benchmaster_record::model::{Fileset, ParameterError, Workload};
use benchmaster_workload::program::Program;

use super::design::NamedBlock;
use super::factors::Factor;
use super::section::{Gaps, Reader};
use super::sections::{self, Sections};
use super::tree::Table;
use crate::checks;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::path;
use crate::response_names::response_names;
use crate::settings::{Settings, alternatives};
use crate::suggest;

/// What one treatment does.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Treatment {
    pub(crate) settings: Settings,
    /// The workloads in full, in order.
    pub(crate) workloads: Vec<(String, Workload)>,
}

/// Treatments, and as they are in each of the named blocks; none there when blocks set no parameters.
pub(crate) struct Treatments {
    pub(crate) all: Vec<Treatment>,
    pub(crate) blocks: Vec<(NamedBlock, Vec<Treatment>)>,
}

/// What all treatments of a study are made of: the file as it stands, and the levels that are put over it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    pub(crate) tree: Table,
    /// The factors of the study, and after them that of its blocks if they set parameters.
    pub(crate) factors: Vec<Factor>,
    pub(crate) sections: Sections,
    /// The part of amounts of data, numbers of files and times that is done.
    pub(crate) scale: Option<Scale>,
}

impl Template {
    /// Reads and checks the treatment with these levels. `None` when there are mistakes, which have then been reported.
    pub(crate) fn treatment(&self, levels: &[u32], diagnostics: &mut Diagnostics) -> Option<Treatment> {
        let tree = self.overlay(levels, diagnostics)?;
        let reader = &mut Reader { tree: &tree, gaps: Gaps::NONE, diagnostics };
        let settings = sections::read_sections(reader, Some(&self.sections)).settings(reader, self.scale)?;
        let before = reader.diagnostics.errors();
        checks::check(reader, &settings);
        let workloads = expand(reader, &settings, |workload| self.label_of(workload, levels));
        (reader.diagnostics.errors() == before).then_some(Treatment { settings, workloads })
    }

    /// One level of every factor put over the file.
    fn overlay(&self, levels: &[u32], diagnostics: &mut Diagnostics) -> Option<Table> {
        let mut tree = self.tree.clone();
        let mut good = true;
        let chosen = self.factors.iter().zip(levels);
        let chosen = chosen.filter_map(|(factor, &level)| factor.levels.get(level as usize));
        for setting in chosen.flat_map(|level| &level.settings) {
            for other in alternatives(&setting.path) {
                tree.remove(&path::parse(other)?);
            }
            let path = path::parse(&setting.path)?;
            if let Err(help) = tree.set(&path, &setting.span, setting.value.clone()) {
                let message = format!("unknown parameter `{}`", setting.path);
                diagnostics.error(&setting.span, message, help);
                good = false;
            }
        }
        good.then_some(tree)
    }

    /// Which treatment a workload is in, when factors vary the workload.
    fn label_of(&self, workload: &str, levels: &[u32]) -> String {
        let prefix = format!("workload.{workload}.");
        let mut varied = self.factors.iter().filter_map(|factor| factor.levels.first());
        let varied = varied.any(|level| level.settings.iter().any(|set| set.path.starts_with(&prefix)));
        if varied { self.place(levels) } else { String::new() }
    }

    /// `in the treatment io_size=64KiB sync=on`; empty without factors.
    fn place(&self, levels: &[u32]) -> String {
        let label = self.label(levels);
        if label.is_empty() { label } else { format!("in the treatment {label}") }
    }

    /// `io_size=64KiB sync=on`; empty without factors.
    pub(crate) fn label(&self, levels: &[u32]) -> String {
        let parts = self.factors.iter().zip(levels).filter_map(|(factor, &level)| {
            let level = factor.levels.get(level as usize)?;
            Some(format!("{}={}", factor.name, level.name))
        });
        parts.collect::<Vec<_>>().join(" ")
    }

    /// Checks every level of every factor with the other factors at their first level. Returns the treatment of the
    /// first levels.
    pub(crate) fn one_at_a_time(&self, diagnostics: &mut Diagnostics) -> Option<Treatment> {
        let first_levels = vec![0; self.factors.len()];
        let base = self.treatment(&first_levels, diagnostics);
        for (number, factor) in self.factors.iter().enumerate() {
            let mut settings = vec![base.as_ref().map(|base| base.settings.clone())];
            // Loads are values of one parameter between the first and the last.
            let second = if factor.is_load { factor.levels.len().saturating_sub(1).max(1) } else { 1 };
            for index in second..factor.levels.len() {
                let mut levels = first_levels.clone();
                levels[number] = index as u32;
                settings.push(self.treatment(&levels, diagnostics).map(|treatment| treatment.settings));
            }
            for (index, this) in settings.iter().enumerate().filter(|_| !factor.is_block) {
                let same = settings[..index].iter().position(|other| this.is_some() && other == this);
                let Some(same) = same else { continue };
                let (level, other) = (&factor.levels[index], &factor.levels[same]);
                let message = format!(
                    "the levels `{}` and `{}` of the factor `{}` are the same",
                    other.name, level.name, factor.name
                );
                diagnostics.error(&level.span, message, "remove one of them");
            }
        }
        base
    }

    /// Reports a response that a treatment does not have.
    pub(crate) fn check_response(
        &self,
        levels: &[u32],
        response: &str,
        treatment: &Treatment,
        diagnostics: &mut Diagnostics,
    ) {
        let access = treatment.settings.access();
        let workloads = treatment.settings.workloads.iter().zip(&treatment.workloads);
        let names = workloads.flat_map(|((name, spec), (_, full))| response_names(name, spec, full, access));
        let names: Vec<_> = names.collect();
        if names.iter().any(|name| name == response) {
            return;
        }
        let written = ["design.response", "design.goal"].iter().find_map(|path| self.tree.at(path));
        let help = match suggest::nearest(response, names.iter().map(String::as_str)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("responses of this study: {}", suggest::quoted(&names)),
        };
        let error = Diagnostic::error(format!("unknown response `{response}`"));
        let error = error.label(self.place(levels)).help(help);
        let span = written.map(|node| &node.span).or(self.factors.last().map(|factor| &factor.span));
        diagnostics.push(match span {
            Some(span) => error.at(span.clone()),
            None => error,
        });
    }
}

/// The workloads in full, with their contradictions reported. `label` says of a workload in which treatment it is.
fn expand(
    reader: &mut Reader<'_>,
    settings: &Settings,
    label: impl Fn(&str) -> String,
) -> Vec<(String, Workload)> {
    let mut workloads = Vec::new();
    let access = settings.access();
    let conditions = Conditions { access, clients: settings.clients() };
    for (name, spec) in &settings.workloads {
        // Compiling finds what expanding does not look at: everything in a workload that is written in full.
        let full = spec.expand_under(name, conditions);
        let full = full.and_then(|full| Program::compile_for(&full, access).map(|program| (full, program)));
        match full {
            Ok((full, program)) => {
                checks::check_workload(reader, settings, name, &full, &program);
                workloads.push((name.clone(), full));
            }
            Err(errors) => {
                for error in errors {
                    let path = written_path(name, spec, &error);
                    let diagnostic = Diagnostic::error(error.message).label(label(name)).help(error.fix);
                    reader.report_at(&path, diagnostic);
                }
            }
        }
    }
    filesets_agree(reader, &workloads);
    workloads
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
fn filesets_agree(reader: &mut Reader<'_>, workloads: &[(String, Workload)]) {
    let mut known: BTreeMap<&str, (&str, &Fileset)> = BTreeMap::new();
    let filesets =
        workloads.iter().flat_map(|(workload, full)| full.filesets.iter().map(move |f| (workload, f)));
    for (workload, (name, fileset)) in filesets {
        let (first, described) = *known.entry(name.as_str()).or_insert((workload, fileset));
        if described == fileset {
            continue;
        }
        let paths = [format!("workload.{workload}.fileset"), format!("workload.{workload}.filesets.{name}")];
        let path = paths.into_iter().find(|path| reader.tree.at(path).is_some());
        let message = format!(
            "the workloads `{first}` and `{workload}` share the fileset `{name}` but describe it differently: {}",
            difference(described, fileset)
        );
        let help = "give both the same description, or each its own fileset";
        reader.error(&path.unwrap_or_else(|| format!("workload.{workload}")), message, help);
    }
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
