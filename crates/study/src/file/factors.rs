//! The section `[factors]`: what is varied.

use std::collections::BTreeMap;
use std::ops::Range;

use benchmaster_record::results::numeric_values;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::design::centre;
use super::load::LoadPlan;
use super::path::{self, Node, Segment};
use super::place;
use super::section::Reader;
use super::words;
use crate::diagnostics::Diagnostic;
use crate::settings::HARD_TO_CHANGE;

/// A factor as it is written.
#[derive(Debug, Clone)]
pub(crate) struct Factor<'t> {
    pub(crate) name: String,
    /// Place of its section.
    pub(crate) place: Range<usize>,
    pub(crate) levels: Vec<Level<'t>>,
    /// Whether its level is changed as seldom as possible, if it says so.
    pub(crate) hard_to_change: Option<bool>,
    /// Whether it stands for the blocks of the design, and is thus no factor of the study.
    pub(crate) is_block: bool,
    /// Whether its levels are the loads of a curve.
    pub(crate) is_load: bool,
}

/// A level of a factor.
#[derive(Debug, Clone)]
pub(crate) struct Level<'t> {
    pub(crate) name: String,
    pub(crate) place: Range<usize>,
    /// The parameters it sets.
    pub(crate) settings: Vec<Setting<'t>>,
}

/// A parameter set by a level.
#[derive(Debug, Clone)]
pub(crate) struct Setting<'t> {
    pub(crate) path: String,
    /// Place of the path's text.
    pub(crate) origin: Range<usize>,
    pub(crate) value: Node<'t>,
    /// The value as written in TOML, when it is not in the file at its place.
    pub(crate) written: Option<String>,
}

/// Sections whose parameters can be factors.
const PARAMETER_SECTIONS: [&str; 9] =
    ["target", "lab", "server", "network", "clients", "run", "sampling", "collect", "workload"];

/// Keys of a factor.
const FACTOR_KEYS: [&str; 3] = ["parameter", "levels", "hard_to_change"];

/// Reads all factors, and after them what stands for the blocks if these set parameters. `None` when there are mistakes, which have then been reported.
pub(crate) fn read<'t>(reader: &mut Reader<'_, 't>, text: &str) -> Option<Vec<Factor<'t>>> {
    let factors = read_factors(reader, text)?;
    let blocks = read_blocks(reader)?;
    let factors: Vec<_> = factors.into_iter().chain(blocks).collect();
    no_parameter_twice(reader, &factors).then_some(factors)
}

/// The factors with the loads of a curve as the last one of the study. `None` when it gets into the way of another, which
/// has then been reported.
pub(crate) fn with_load<'t>(
    reader: &mut Reader<'_, '_>,
    mut factors: Vec<Factor<'t>>,
    load: Option<&'t LoadPlan>,
) -> Option<Vec<Factor<'t>>> {
    let Some(load) = load.map(LoadPlan::factor) else { return Some(factors) };
    if let Some(same) = factors.iter().find(|factor| factor.name == load.name) {
        let message = format!("with `[load]` no other factor can be called `{}`", load.name);
        reader.found.push(Diagnostic::error(message).at(same.place.clone()).help("give it another name"));
        return None;
    }
    let own = factors.iter().filter(|factor| !factor.is_block).count();
    factors.insert(own, load);
    no_parameter_twice(reader, &factors).then_some(factors)
}

fn read_factors<'t>(reader: &mut Reader<'_, 't>, text: &str) -> Option<Vec<Factor<'t>>> {
    let Some(node) = reader.tree.get("factors") else { return Some(Vec::new()) };
    if !reader.is_table("factors", node) {
        return None;
    }
    let DeValue::Table(table) = node.get_ref() else { return None };
    let factors: Vec<_> =
        table.iter().map(|(key, node)| read_factor(reader, text, key.get_ref(), key.span(), node)).collect();
    factors.into_iter().collect()
}

fn read_factor<'t>(
    reader: &mut Reader<'_, 't>,
    text: &str,
    name: &str,
    key: Range<usize>,
    node: &Node<'t>,
) -> Option<Factor<'t>> {
    let section = format!("factors.{name}");
    let mut good = check_name(reader, "factor", name, &key);
    if !reader.is_table(&section, node) {
        return None;
    }
    let DeValue::Table(table) = node.get_ref() else { return None };
    for key in table.keys().filter(|key| !FACTOR_KEYS.contains(&&**key.get_ref())) {
        let word = key.get_ref();
        let help = words::suggest(word, "known keys", FACTOR_KEYS);
        reader.found.push(
            Diagnostic::error(format!("unknown key `{word}` in `{section}`")).at(key.span()).help(help),
        );
        good = false;
    }
    let Some(levels) = table.get("levels") else {
        reader.found.push(
            Diagnostic::error(format!("the factor `{name}` has no levels"))
                .at(node.span())
                .help("add `levels = [ … ]`, or `levels = { name = { \"path\" = value }, … }`"),
        );
        return None;
    };
    let levels = match levels.get_ref() {
        DeValue::Array(values) => listed_levels(reader, text, name, table, node, values),
        DeValue::Table(named) => named_levels(reader, name, table, named),
        other => {
            let message = format!("`{section}.levels` must be an array or a table, not {}", other.type_str());
            let help =
                "write `levels = [\"64KiB\", \"1MiB\"]`, or `levels = { name = { \"path\" = value }, … }`";
            reader.found.push(Diagnostic::error(message).at(levels.span()).help(help));
            None
        }
    }?;
    good &= check_levels(reader, name, &node.span(), &levels);
    let hard_to_change = match table.get("hard_to_change").map(|value| (value.get_ref(), value.span())) {
        None => None,
        Some((DeValue::Boolean(hard), _)) => Some(*hard),
        Some((other, place)) => {
            let message =
                format!("`{section}.hard_to_change` must be `true` or `false`, not {}", other.type_str());
            reader.found.push(Diagnostic::error(message).at(place));
            good = false;
            None
        }
    };
    good.then(|| Factor {
        name: name.to_owned(),
        place: node.span(),
        levels,
        hard_to_change,
        is_block: false,
        is_load: false,
    })
}

/// The parameters that the blocks of the design set, as a factor whose levels are the blocks; `Some(None)` when they set
/// none. `None` when there are mistakes, which have then been reported.
pub(crate) fn read_blocks<'t>(reader: &mut Reader<'_, 't>) -> Option<Option<Factor<'t>>> {
    let tree = reader.tree;
    let path = [Segment::Key("design"), Segment::Key("blocks")];
    let Some((key, node)) = path::find(tree, &path) else { return Some(None) };
    let DeValue::Array(blocks) = node.get_ref() else { return Some(None) };
    let mut levels = Vec::new();
    let mut good = true;
    for node in blocks {
        // What is not of this form has been reported when the section was read.
        let DeValue::Table(block) = node.get_ref() else { return None };
        let name = block.get("name")?;
        let DeValue::String(text) = name.get_ref() else { return None };
        good &= check_name(reader, "block", text, &name.span());
        let mut settings = Vec::new();
        if let Some(DeValue::Table(set)) = block.get("set").map(|set| set.get_ref()) {
            flatten(set, "", None, &mut settings);
        }
        for setting in &settings {
            good &= check_path(reader, &setting.path, setting.origin.clone());
        }
        levels.push(Level { name: text.to_string(), place: name.span(), settings });
    }
    if levels.iter().all(|level| level.settings.is_empty()) {
        return good.then_some(None);
    }
    good &= same_parameters(reader, "the block", "blocks", &levels);
    let blocks = Factor {
        name: "block".to_owned(),
        place: key,
        levels,
        hard_to_change: None,
        is_block: true,
        is_load: false,
    };
    good.then_some(Some(blocks))
}

/// The centre between the two levels of each factor, as written in TOML. Reports factors that have none.
pub(crate) fn centres(
    reader: &mut Reader<'_, '_>,
    text: &str,
    factors: &[Factor<'_>],
) -> Option<Vec<String>> {
    let place = reader.place("design.centre_points");
    let found: Vec<_> = factors
        .iter()
        .map(|factor| {
            let why = match centre_of(text, factor) {
                Ok(centre) => return Some(centre),
                Err(why) => why,
            };
            let name = &factor.name;
            let message = format!("centre points need a centre of every factor, and `{name}` has none: {why}");
            let help = "remove `centre_points`, or give every factor two levels that are numbers, sizes, durations or \
                        rates with a value in the middle";
            reader.found.push(Diagnostic::error(message).at(place.clone()).help(help));
            None
        })
        .collect();
    found.into_iter().collect()
}

fn centre_of(text: &str, factor: &Factor<'_>) -> Result<String, String> {
    let [low, high] = &factor.levels[..] else {
        return Err(format!("it has {} levels", factor.levels.len()));
    };
    let ([low], [high]) = (&low.settings[..], &high.settings[..]) else {
        return Err("its levels set several parameters".into());
    };
    let (from, to) = (low.text(text), high.text(text));
    centre::between(from, to).ok_or_else(|| {
        let level = |text: &str| BTreeMap::from([(low.path.clone(), text.to_owned())]);
        match numeric_values(&[level(from), level(to)]) {
            Some(_) => format!("no value that can be written is in the middle of {from} and {to}"),
            None => format!("{from} and {to} are not numbers of one kind"),
        }
    })
}

/// Gives each factor its centre as a further level.
pub(crate) fn add_centres<'t>(factors: &mut [Factor<'t>], centres: &'t [String]) {
    for (factor, centre) in factors.iter_mut().zip(centres) {
        // It has been written by this program.
        let (Ok(value), Some(last)) = (DeValue::parse(centre), factor.levels.last()) else { continue };
        let listed = last.settings.first().is_some_and(|setting| setting.value.span() == last.place);
        let name = if listed { centre.trim_matches('"').to_owned() } else { "centre".to_owned() };
        let place = last.place.clone();
        // Mistakes about it are shown where the level beside it is.
        let setting = |neighbour: &Setting<'t>| Setting {
            path: neighbour.path.clone(),
            origin: neighbour.origin.clone(),
            value: Spanned::new(neighbour.value.span(), value.get_ref().clone()),
            written: Some(centre.clone()),
        };
        let settings = last.settings.iter().map(setting).collect();
        factor.levels.push(Level { name, place, settings });
    }
}

impl Factor<'_> {
    /// Whether a change of its level takes long by the nature of what it sets, and it does not say otherwise.
    pub(crate) fn takes_long(&self) -> bool {
        let slow = |setting: &Setting<'_>| HARD_TO_CHANGE.contains(&setting.path.as_str());
        self.hard_to_change.is_none() && self.levels.iter().flat_map(|level| &level.settings).any(slow)
    }
}

impl Setting<'_> {
    /// The value as written in TOML.
    pub(crate) fn text<'a>(&'a self, file: &'a str) -> &'a str {
        self.written.as_deref().unwrap_or_else(|| file.get(self.value.span()).unwrap_or_default())
    }
}

/// `parameter = "…"` with `levels = [ … ]`.
fn listed_levels<'t>(
    reader: &mut Reader<'_, 't>,
    text: &str,
    name: &str,
    table: &DeTable<'t>,
    node: &Node<'t>,
    values: &[Node<'t>],
) -> Option<Vec<Level<'t>>> {
    let Some(parameter) = table.get("parameter") else {
        reader.found.push(
            Diagnostic::error(format!(
                "the factor `{name}` lists values but does not say of which parameter"
            ))
            .at(node.span())
            .help("add `parameter = \"workload.NAME.io_size\"` (the path of any parameter of the study)"),
        );
        return None;
    };
    let DeValue::String(path) = parameter.get_ref() else {
        let what = parameter.get_ref().type_str();
        reader.found.push(
            Diagnostic::error(format!("`factors.{name}.parameter` must be a text in quotes, not {what}"))
                .at(parameter.span()),
        );
        return None;
    };
    if !check_path(reader, path, parameter.span()) {
        return None;
    }
    let level = |value: &Node<'t>| Level {
        name: level_name(text, value),
        place: value.span(),
        settings: vec![Setting {
            path: path.to_string(),
            origin: parameter.span(),
            value: value.clone(),
            written: None,
        }],
    };
    Some(values.iter().map(level).collect())
}

/// A text by itself, anything else as it is written.
fn level_name(text: &str, value: &Node<'_>) -> String {
    match value.get_ref() {
        DeValue::String(string) => string.to_string(),
        _ => text.get(value.span()).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// `levels = { name = { "path" = value, … }, … }`.
fn named_levels<'t>(
    reader: &mut Reader<'_, 't>,
    factor: &str,
    table: &DeTable<'t>,
    named: &DeTable<'t>,
) -> Option<Vec<Level<'t>>> {
    if let Some(parameter) = table.get("parameter") {
        reader.found.push(
            Diagnostic::error(format!(
                "the factor `{factor}` has both a `parameter` and levels that name parameters"
            ))
            .at(parameter.span())
            .help("remove `parameter`, or list the values: `levels = [ … ]`"),
        );
        return None;
    }
    let mut levels = Vec::new();
    let mut good = true;
    for (key, node) in named {
        good &= check_name(reader, "level", key.get_ref(), &key.span());
        let DeValue::Table(parameters) = node.get_ref() else {
            reader.found.push(
                Diagnostic::error(format!("the level `{}` must be a table of parameters", key.get_ref()))
                    .at(node.span())
                    .help("write `{ \"workload.NAME.io_size\" = \"64KiB\" }`"),
            );
            good = false;
            continue;
        };
        let mut settings = Vec::new();
        flatten(parameters, "", None, &mut settings);
        for setting in &settings {
            good &= check_path(reader, &setting.path, setting.origin.clone());
        }
        if settings.is_empty() {
            reader.found.push(
                Diagnostic::error(format!("the level `{}` sets no parameter", key.get_ref())).at(node.span()),
            );
            good = false;
        }
        levels.push(Level { name: key.get_ref().to_string(), place: key.span(), settings });
    }
    good.then_some(levels)
}

/// Collects the parameters of a level. A dotted key without quotes (`target.path = …`) is a table in TOML whose place is
/// that of its key; it is taken as the path that it looks like.
fn flatten<'t>(table: &DeTable<'t>, prefix: &str, start: Option<usize>, settings: &mut Vec<Setting<'t>>) {
    for (key, node) in table {
        let path =
            if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        let start = start.unwrap_or(key.span().start);
        match node.get_ref() {
            DeValue::Table(below) if node.span() == key.span() => {
                flatten(below, &path, Some(start), settings)
            }
            _ => settings.push(Setting {
                path,
                origin: start..key.span().end,
                value: node.clone(),
                written: None,
            }),
        }
    }
}

/// Whether a path may be that of a parameter: it leads into a section of parameters and to a workload that exists.
/// What it leads to there is found out when it is set.
fn check_path(reader: &mut Reader<'_, '_>, path: &str, origin: Range<usize>) -> bool {
    let error = |message: String| Diagnostic::error(message).at(origin.clone());
    let diagnostic = match path::parse(path).as_deref() {
        None => error(format!("`{path}` is not the path of a parameter"))
            .help("write it like `run.cache`, `workload.write.io_size` or `workload.mix.groups[0].workers`"),
        Some([Segment::Key(section @ ("study" | "design" | "factors")), ..]) => {
            error(format!("`{path}` cannot be a factor: `{section}` describes the experiment itself"))
                .help(format!("factors set parameters of {}", words::quoted(&PARAMETER_SECTIONS)))
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
                let help = match words::nearest(name, names.iter().map(String::as_str)) {
                    Some(meant) => format!("did you mean `workload.{meant}{below}`?"),
                    None => format!("workloads of this study: {}", words::quoted(&names)),
                };
                error(format!("there is no workload `{name}`")).help(help)
            }
        }
        Some([Segment::Key(section), _, ..]) if PARAMETER_SECTIONS.contains(section) => return true,
        Some([Segment::Key(section), ..]) => {
            let help = match words::nearest(section, PARAMETER_SECTIONS) {
                Some(meant) if meant != *section => {
                    format!("did you mean `{}`?", path.replacen(section, meant, 1))
                }
                _ => "write it like `run.cache` or `workload.write.io_size`".into(),
            };
            error(format!("there is no parameter `{path}`")).help(help)
        }
        Some(_) => error(format!("there is no parameter `{path}`")),
    };
    reader.found.push(diagnostic);
    false
}

/// The names of the workloads of a study.
pub(crate) fn workload_names(tree: &DeTable<'_>) -> Vec<String> {
    match tree.get("workload").map(|node| node.get_ref()) {
        Some(DeValue::Table(table)) => table.keys().map(|key| key.get_ref().to_string()).collect(),
        _ => Vec::new(),
    }
}

/// Whether a name can be a name; reports it otherwise.
pub(crate) fn check_name(reader: &mut Reader<'_, '_>, what: &str, name: &str, place: &Range<usize>) -> bool {
    let good = path::is_name(name) && name.len() <= 64;
    if !good {
        reader.found.push(
            Diagnostic::error(format!("`{name}` cannot be the name of a {what}"))
                .at(place.clone())
                .help("use up to 64 letters, digits, `_` and `-`"),
        );
    }
    good
}

fn check_levels(
    reader: &mut Reader<'_, '_>,
    factor: &str,
    place: &Range<usize>,
    levels: &[Level<'_>],
) -> bool {
    let mut good = true;
    if levels.len() < 2 {
        let count = if levels.is_empty() { "no level" } else { "only one level" };
        reader.found.push(
            Diagnostic::error(format!("the factor `{factor}` has {count}, and nothing varies"))
                .at(place.clone())
                .help("give it at least two levels, or remove it and set the parameter in its section"),
        );
        good = false;
    }
    for (index, level) in levels.iter().enumerate() {
        if levels[..index].iter().any(|other| other.name == level.name) {
            reader.found.push(
                Diagnostic::error(format!("the factor `{factor}` has the level `{}` twice", level.name))
                    .at(level.place.clone())
                    .label("given before")
                    .help("remove it; `replicates` says how often each level is run"),
            );
            good = false;
        }
    }
    same_parameters(reader, "the level", factor, levels) && good
}

/// All levels of a factor, and all blocks, set the same parameters.
fn same_parameters(reader: &mut Reader<'_, '_>, what: &str, factor: &str, levels: &[Level<'_>]) -> bool {
    let Some(first) = levels.first() else { return true };
    let mut good = true;
    for level in levels {
        let sets = |level: &Level<'_>, path: &str| {
            level
                .settings
                .iter()
                .any(|s| s.path == path || place::alternatives(path).contains(&s.path.as_str()))
        };
        let lacking = first.settings.iter().find(|s| !sets(level, &s.path)).map(|s| (level, first, s));
        let extra = level.settings.iter().find(|s| !sets(first, &s.path)).map(|s| (first, level, s));
        if let Some((without, with, setting)) = lacking.or(extra) {
            reader.found.push(
                Diagnostic::error(format!(
                    "{what} `{}` of `{factor}` does not set `{}`, which `{}` sets",
                    without.name, setting.path, with.name
                ))
                .at(level.place.clone())
                .help(format!(
                    "all {} set the same parameters",
                    if what == "the block" { "blocks" } else { "levels of a factor" }
                )),
            );
            good = false;
        }
    }
    good
}

/// Two factors must not set the same parameter, nor one a part of what the other sets.
fn no_parameter_twice(reader: &mut Reader<'_, '_>, factors: &[Factor<'_>]) -> bool {
    let set: Vec<_> = factors
        .iter()
        .flat_map(|factor| {
            factor.levels.iter().take(1).flat_map(|level| &level.settings).map(move |s| (factor, s))
        })
        .collect();
    let within = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    let mut good = true;
    for (index, (factor, setting)) in set.iter().enumerate() {
        let clash = set[..index].iter().find(|(_, other)| {
            within(&other.path, &setting.path)
                || within(&setting.path, &other.path)
                || place::alternatives(&other.path).contains(&setting.path.as_str())
        });
        if let Some((first, other)) = clash {
            let message = if first.name == factor.name {
                format!("the factor `{}` sets `{}` and `{}`", factor.name, other.path, setting.path)
            } else if factor.is_block {
                format!(
                    "the factor `{}` and the blocks of the design both set `{}`",
                    first.name, setting.path
                )
            } else {
                format!("the factors `{}` and `{}` both set `{}`", first.name, factor.name, setting.path)
            };
            reader.found.push(
                Diagnostic::error(message)
                    .at(setting.origin.clone())
                    .label("set a second time")
                    .help("a parameter is set by one factor; put both into the levels of one factor"),
            );
            good = false;
        }
    }
    good
}
