//! The section `[factors]`: what is varied.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use benchmaster_record::results::{FactorRecord, numeric_values};

use super::centre;
use super::section::{Reader, unknown_key};
use super::tree::{Node, Table, Value};
use crate::diagnostics::Diagnostic;
use crate::path::{self, Segment};
use crate::settings::{HARD_TO_CHANGE, alternatives};
use crate::suggest;

/// A factor as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Factor {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    pub(crate) levels: Vec<Level>,
    /// Whether its level is changed as seldom as possible, if it says so.
    pub(crate) hard_to_change: Option<bool>,
    /// Whether it stands for the blocks of the design, and is thus no factor of the study.
    pub(crate) is_block: bool,
    /// Whether its levels are the loads of a curve.
    pub(crate) is_load: bool,
}

/// A level of a factor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    pub(crate) name: String,
    pub(crate) span: Range<usize>,
    /// The parameters it sets.
    pub(crate) settings: Vec<Setting>,
}

/// A parameter set by a level: a value that is put over that of the file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) path: String,
    /// Where the path is written.
    pub(crate) span: Range<usize>,
    pub(crate) value: Arc<Node>,
    /// The value as written in TOML.
    pub(crate) written: String,
}

/// Sections whose parameters can be factors.
const PARAMETER_SECTIONS: [&str; 9] =
    ["target", "lab", "server", "network", "clients", "run", "sampling", "collect", "workload"];

/// Keys of a factor.
const FACTOR_KEYS: [&str; 3] = ["parameter", "levels", "hard_to_change"];

/// Reads all factors, and after them what stands for the blocks if these set parameters. `None` when there are mistakes, which have then been reported.
pub(crate) fn read_all(reader: &mut Reader<'_>, text: &str) -> Option<Vec<Factor>> {
    let before = reader.diagnostics.errors();
    let mut factors = Vec::new();
    if let Some(node) = reader.tree.get("factors") {
        let entries = reader.table("factors", node)?.iter();
        factors.extend(entries.filter_map(|(key, node)| read_factor(reader, text, &key.name, node)));
    }
    factors.extend(read_blocks(reader, text));
    no_parameter_twice(reader, &factors);
    (reader.diagnostics.errors() == before).then_some(factors)
}

fn read_factor(reader: &mut Reader<'_>, text: &str, name: &str, node: &Arc<Node>) -> Option<Factor> {
    let section = format!("factors.{name}");
    let table = reader.table(&section, node)?;
    for key in table.keys().filter(|key| !FACTOR_KEYS.contains(&&*key.name)) {
        reader.diagnostics.push(unknown_key(&key.name, &section, &FACTOR_KEYS).at(key.span.clone()));
    }
    let Some(levels) = table.get("levels") else {
        let help = "add `levels = [ … ]`, or `levels = { name = { \"path\" = value }, … }`";
        reader.diagnostics.error(&node.span, format!("the factor `{name}` has no levels"), help);
        return None;
    };
    let levels = match &levels.value {
        Value::Array(values) => listed_levels(reader, text, name, table, node, values),
        Value::Table(named) => named_levels(reader, text, name, table, named),
        other => {
            let message =
                format!("`{section}.levels` must be an array or a table, not {}", other.type_name());
            let help =
                "write `levels = [\"64KiB\", \"1MiB\"]`, or `levels = { name = { \"path\" = value }, … }`";
            reader.diagnostics.error(&levels.span, message, help);
            None
        }
    }?;
    check_levels(reader, name, &node.span, &levels);
    let hard_to_change = match table.get("hard_to_change").map(|node| (&node.value, node)) {
        None => None,
        Some((Value::Boolean(hard), _)) => Some(*hard),
        Some((other, node)) => {
            let message =
                format!("`{section}.hard_to_change` must be `true` or `false`, not {}", other.type_name());
            reader.diagnostics.push(Diagnostic::error(message).at(node.span.clone()));
            None
        }
    };
    let name = name.to_owned();
    Some(Factor { name, span: node.span.clone(), levels, hard_to_change, is_block: false, is_load: false })
}

/// The parameters that the blocks of the design set, as a factor whose levels are the blocks.
fn read_blocks(reader: &mut Reader<'_>, text: &str) -> Option<Factor> {
    let (key, node) = reader.tree.table("design")?.entry("blocks")?;
    let Value::Array(blocks) = &node.value else { return None };
    let mut levels = Vec::new();
    for node in blocks {
        // What is not of this form has been reported when the section was read.
        let block = node.table()?;
        let name = block.get("name")?;
        let settings = block.table("set").map_or_else(Vec::new, |set| settings(text, set));
        for setting in &settings {
            check_path(reader, &setting.path, &setting.span);
        }
        levels.push(Level { name: name.text()?.to_owned(), span: name.span.clone(), settings });
    }
    if levels.iter().all(|level| level.settings.is_empty()) {
        return None;
    }
    same_parameters(reader, "the block", "blocks", &levels);
    let (name, span) = ("block".to_owned(), key.span.clone());
    Some(Factor { name, span, levels, hard_to_change: None, is_block: true, is_load: false })
}

/// The centre between the two levels of each factor. Reports factors that have none.
pub(crate) fn centres(reader: &mut Reader<'_>, factors: &[Factor]) -> Option<Vec<Value>> {
    let mut centres = Vec::new();
    for factor in factors {
        match centre_of(factor) {
            Ok(centre) => centres.push(centre),
            Err(why) => {
                let name = &factor.name;
                let message =
                    format!("centre points need a centre of every factor, and `{name}` has none: {why}");
                let help = "remove `centre_points`, or give every factor two levels that are numbers, sizes, \
                            durations or rates with a value in the middle";
                reader.error("design.centre_points", message, help);
            }
        }
    }
    (centres.len() == factors.len()).then_some(centres)
}

fn centre_of(factor: &Factor) -> Result<Value, String> {
    let [low, high] = &factor.levels[..] else {
        return Err(format!("it has {} levels", factor.levels.len()));
    };
    let ([low], [high]) = (&low.settings[..], &high.settings[..]) else {
        return Err("its levels set several parameters".into());
    };
    centre::between(&low.value.value, &high.value.value).ok_or_else(|| {
        let level = |set: &Setting| BTreeMap::from([(set.path.clone(), set.written.clone())]);
        match numeric_values(&[level(low), level(high)]) {
            Some(_) => {
                format!(
                    "no value that can be written is in the middle of {} and {}",
                    low.written, high.written
                )
            }
            None => format!("{} and {} are not numbers of one kind", low.written, high.written),
        }
    })
}

/// Gives each factor its centre as a further level.
pub(crate) fn add_centres(factors: &mut [Factor], centres: &[Value]) {
    for (factor, centre) in factors.iter_mut().zip(centres) {
        let Some(last) = factor.levels.last() else { continue };
        let written = centre.to_toml();
        let listed = last.settings.first().is_some_and(|setting| setting.value.span == last.span);
        let name = if listed { written.trim_matches('"').to_owned() } else { "centre".to_owned() };
        // Mistakes about it are shown at the level before it.
        let setting = |neighbour: &Setting| Setting {
            path: neighbour.path.clone(),
            span: neighbour.span.clone(),
            value: Node::new(neighbour.value.span.clone(), centre.clone()),
            written: written.clone(),
        };
        let settings = last.settings.iter().map(setting).collect();
        let span = last.span.clone();
        factor.levels.push(Level { name, span, settings });
    }
}

impl Factor {
    /// What is stored of it.
    pub(crate) fn record(&self) -> FactorRecord {
        let settings = self.levels.iter().map(|level| {
            let pairs = level.settings.iter().map(|setting| (setting.path.clone(), setting.written.clone()));
            pairs.collect()
        });
        let settings: Vec<_> = settings.collect();
        FactorRecord {
            name: self.name.clone(),
            levels: self.levels.iter().map(|level| level.name.clone()).collect(),
            values: numeric_values(&settings),
            settings,
        }
    }

    /// Whether a change of its level takes long by the nature of what it sets, and it does not say otherwise.
    pub(crate) fn takes_long(&self) -> bool {
        let slow = |setting: &Setting| HARD_TO_CHANGE.contains(&setting.path.as_str());
        self.hard_to_change.is_none() && self.levels.iter().flat_map(|level| &level.settings).any(slow)
    }
}

/// `parameter = "…"` with `levels = [ … ]`.
fn listed_levels(
    reader: &mut Reader<'_>,
    text: &str,
    name: &str,
    table: &Table,
    node: &Arc<Node>,
    values: &[Arc<Node>],
) -> Option<Vec<Level>> {
    let Some(parameter) = table.get("parameter") else {
        let message = format!("the factor `{name}` lists values but does not say of which parameter");
        let help = "add `parameter = \"workload.NAME.io_size\"` (the path of any parameter of the study)";
        reader.diagnostics.error(&node.span, message, help);
        return None;
    };
    let Some(path) = parameter.text() else {
        let what = parameter.value.type_name();
        let message = format!("`factors.{name}.parameter` must be a string, not {what}");
        reader.diagnostics.push(Diagnostic::error(message).at(parameter.span.clone()));
        return None;
    };
    if !check_path(reader, path, &parameter.span) {
        return None;
    }
    let level = |value: &Arc<Node>| {
        let setting = Setting {
            path: path.to_owned(),
            span: parameter.span.clone(),
            value: value.clone(),
            written: written(text, value),
        };
        let name = match value.text() {
            Some(text) => text.to_owned(),
            None => setting.written.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        Level { name, span: value.span.clone(), settings: vec![setting] }
    };
    Some(values.iter().map(level).collect())
}

/// A value as it is written in the file.
fn written(text: &str, value: &Node) -> String {
    text.get(value.span.clone()).unwrap_or_default().to_owned()
}

/// `levels = { name = { "path" = value, … }, … }`.
fn named_levels(
    reader: &mut Reader<'_>,
    text: &str,
    factor: &str,
    table: &Table,
    named: &Table,
) -> Option<Vec<Level>> {
    if let Some(parameter) = table.get("parameter") {
        let message = format!("the factor `{factor}` has both a `parameter` and levels that name parameters");
        let help = "remove `parameter`, or list the values: `levels = [ … ]`";
        reader.diagnostics.error(&parameter.span, message, help);
        return None;
    }
    let before = reader.diagnostics.errors();
    let mut levels = Vec::new();
    for (key, node) in named.iter() {
        let Some(parameters) = node.table() else {
            let message = format!("the level `{}` must be a table of parameters", key.name);
            let help = "write `{ \"workload.NAME.io_size\" = \"64KiB\" }`";
            reader.diagnostics.error(&node.span, message, help);
            continue;
        };
        let settings = settings(text, parameters);
        for setting in &settings {
            check_path(reader, &setting.path, &setting.span);
        }
        if settings.is_empty() {
            let error = Diagnostic::error(format!("the level `{}` sets no parameter", key.name));
            reader.diagnostics.push(error.at(node.span.clone()));
        }
        levels.push(Level { name: key.name.clone(), span: key.span.clone(), settings });
    }
    (reader.diagnostics.errors() == before).then_some(levels)
}

/// The parameters of a level. A dotted key without quotes (`target.path = …`) is a table in TOML with the span of its key;
/// it is taken as the path that it looks like.
fn settings(text: &str, level: &Table) -> Vec<Setting> {
    fn flatten(text: &str, table: &Table, prefix: &str, start: Option<usize>, settings: &mut Vec<Setting>) {
        for (key, node) in table.iter() {
            let path = if prefix.is_empty() { key.name.clone() } else { format!("{prefix}.{}", key.name) };
            let start = start.unwrap_or(key.span.start);
            match node.table() {
                Some(below) if node.span == key.span => flatten(text, below, &path, Some(start), settings),
                _ => settings.push(Setting {
                    path,
                    span: start..key.span.end,
                    value: node.clone(),
                    written: written(text, node),
                }),
            }
        }
    }
    let mut settings = Vec::new();
    flatten(text, level, "", None, &mut settings);
    settings
}

/// Whether a path may be that of a parameter: it leads into a section of parameters and to a workload that exists.
/// What it leads to there is found out when it is set.
fn check_path(reader: &mut Reader<'_>, path: &str, span: &Range<usize>) -> bool {
    let error = |message: String| Diagnostic::error(message).at(span.clone());
    let diagnostic = match path::parse(path).as_deref() {
        None => error(format!("`{path}` is not the path of a parameter"))
            .help("write it like `run.cache`, `workload.write.io_size` or `workload.mix.groups[0].workers`"),
        Some([Segment::Key(section @ ("study" | "design" | "factors")), ..]) => {
            error(format!("`{path}` cannot be a factor: `{section}` describes the experiment itself"))
                .help(format!("factors set parameters of {}", suggest::quoted(&PARAMETER_SECTIONS)))
        }
        Some([Segment::Key("workload"), Segment::Key(name), rest @ ..]) => {
            let names = workload_names(reader.tree);
            if names.iter().any(|known| known == name) {
                if !rest.is_empty() {
                    return true;
                }
                error(format!("`{path}` is a whole workload, not a parameter of it"))
                    .help(format!("name a parameter, such as `{path}.io_size`"))
            } else {
                let below =
                    path.strip_prefix("workload.").and_then(|rest| rest.strip_prefix(name)).unwrap_or("");
                let help = match suggest::nearest(name, names.iter().map(String::as_str)) {
                    Some(meant) => format!("did you mean `workload.{meant}{below}`?"),
                    None => format!("workloads of this study: {}", suggest::quoted(&names)),
                };
                error(format!("unknown workload `{name}`")).help(help)
            }
        }
        Some([Segment::Key(section), _, ..]) if PARAMETER_SECTIONS.contains(section) => return true,
        Some([Segment::Key(section), ..]) => {
            let help = match suggest::nearest(section, PARAMETER_SECTIONS) {
                Some(meant) if meant != *section => {
                    format!("did you mean `{}`?", path.replacen(section, meant, 1))
                }
                _ => "write it like `run.cache` or `workload.write.io_size`".into(),
            };
            error(format!("unknown parameter `{path}`")).help(help)
        }
        Some(_) => error(format!("unknown parameter `{path}`")),
    };
    reader.diagnostics.push(diagnostic);
    false
}

/// The names of the workloads of a study.
pub(crate) fn workload_names(tree: &Table) -> Vec<String> {
    tree.table("workload").into_iter().flat_map(Table::keys).map(|key| key.name.clone()).collect()
}

fn check_levels(reader: &mut Reader<'_>, factor: &str, span: &Range<usize>, levels: &[Level]) {
    if levels.len() < 2 {
        let count = if levels.is_empty() { "no level" } else { "only one level" };
        let message = format!("the factor `{factor}` has {count}, and nothing varies");
        let help = "give it at least two levels, or remove it and set the parameter in its section";
        reader.diagnostics.error(span, message, help);
    }
    for (index, level) in levels.iter().enumerate() {
        if levels[..index].iter().any(|other| other.name == level.name) {
            let message = format!("the factor `{factor}` has the level `{}` twice", level.name);
            let help = "remove it; `replicates` says how often each level is run";
            let error = Diagnostic::error(message).at(level.span.clone()).label("given before");
            reader.diagnostics.push(error.help(help));
        }
    }
    same_parameters(reader, "the level", factor, levels);
}

/// All levels of a factor, and all blocks, set the same parameters.
fn same_parameters(reader: &mut Reader<'_>, what: &str, factor: &str, levels: &[Level]) {
    let Some(first) = levels.first() else { return };
    let sets = |level: &Level, path: &str| {
        level.settings.iter().any(|s| s.path == path || alternatives(path).contains(&s.path.as_str()))
    };
    for level in levels {
        let lacking = first.settings.iter().find(|s| !sets(level, &s.path)).map(|s| (level, first, s));
        let extra = level.settings.iter().find(|s| !sets(first, &s.path)).map(|s| (first, level, s));
        let Some((without, with, setting)) = lacking.or(extra) else { continue };
        let message = format!(
            "{what} `{}` of `{factor}` does not set `{}`, which `{}` sets",
            without.name, setting.path, with.name
        );
        let all = if what == "the block" { "blocks" } else { "levels of a factor" };
        reader.diagnostics.error(&level.span, message, format!("all {all} set the same parameters"));
    }
}

/// Two factors must not set the same parameter, nor one a part of what the other sets.
pub(crate) fn no_parameter_twice(reader: &mut Reader<'_>, factors: &[Factor]) {
    let levels = factors.iter().filter_map(|factor| Some((factor, factor.levels.first()?)));
    let set: Vec<_> = levels
        .flat_map(|(factor, level)| level.settings.iter().map(move |setting| (factor, setting)))
        .collect();
    for (index, (factor, setting)) in set.iter().enumerate() {
        let clash = set[..index].iter().find(|(_, other)| {
            path::is_within(&other.path, &setting.path)
                || path::is_within(&setting.path, &other.path)
                || alternatives(&other.path).contains(&setting.path.as_str())
        });
        let Some((first, other)) = clash else { continue };
        let (first, name) = (&first.name, &factor.name);
        let message = if first == name {
            format!("the factor `{name}` sets `{}` and `{}`", other.path, setting.path)
        } else if factor.is_block {
            format!("the factor `{first}` and the blocks of the design both set `{}`", setting.path)
        } else {
            format!("the factors `{first}` and `{name}` both set `{}`", setting.path)
        };
        let error = Diagnostic::error(message).at(setting.span.clone()).label("set a second time");
        let help = "a parameter is set by one factor; put both into the levels of one factor";
        reader.diagnostics.push(error.help(help));
    }
}

/// The factors of the study, without the one that stands for its blocks.
pub(crate) fn of_study(factors: &[Factor]) -> &[Factor] {
    match factors.split_last() {
        Some((last, rest)) if last.is_block => rest,
        _ => factors,
    }
}
