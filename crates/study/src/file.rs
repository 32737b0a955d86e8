//! The study file: TOML read into checked types, with every mistake reported at its place.

mod clients;
mod design;
mod factors;
mod lab;
mod load;
mod managed;
mod network;
mod overrides;
mod path;
mod place;
mod section;
mod treatment;
mod words;

use std::path::{Path, PathBuf};

use benchmaster_record::results::{FactorRecord, LoadRecord, numeric_values};
use benchmaster_workload::builtin::Scale;
use toml::de::{DeTable, DeValue};

use self::factors::Factor;
use self::section::{Gaps, Reader};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::response_names::{default_response, response_names};
use crate::settings::Settings;

pub(crate) use self::design::only_regular;
pub use self::design::{
    Blocks, ConfoundedBlocks, DesignChoice, DesignKind, DesignSection, FractionBy, LevelWord, NamedBlock,
    ReplicateBlocks, Replicates, RunOrder, SequentialReplicates, StudySection, TimeOfDay,
};
pub use self::load::{Curve, GoalSection, Load, LoadPlan, LoadSection, Measure};
pub use self::overrides::{Override, OverrideError};
pub(crate) use self::treatment::Treatment;

/// A study file without mistakes in anything that can be told from one treatment at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyFile {
    /// The name of the file, as it was given.
    pub file_name: String,
    /// Its text, byte for byte.
    pub text: String,
    /// The section `[study]`.
    pub study: StudySection,
    /// The section `[design]`.
    pub design: DesignSection,
    /// What `[design]` says of factors and levels, by number.
    pub choice: DesignChoice,
    /// The factors in the order of the file, and after them the loads of `[load]`.
    pub factors: Vec<FactorRecord>,
    /// The section `[load]` with its loads.
    pub load: Option<LoadPlan>,
    /// What is stored of it.
    pub load_record: Option<LoadRecord>,
    /// The settings of the base treatment: every factor at its first level.
    pub base: Settings,
    /// The response that the study is about: that of `[design]`, or the first workload's.
    pub response: String,
    /// What its author should know.
    pub warnings: Diagnostics,
}

/// Why a study file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read the study file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It has mistakes.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// A value could not be put into it.
    #[error(transparent)]
    Override(#[from] OverrideError),
}

/// The sections of a study file.
const SECTIONS: [&str; 13] = [
    "study", "lab", "server", "target", "network", "clients", "run", "sampling", "collect", "factors",
    "design", "load", "workload",
];

impl StudyFile {
    /// Reads a study file.
    ///
    /// # Errors
    /// When it cannot be read or has mistakes.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        Self::load_with(path, &[])
    }

    /// Reads a study file and puts values in the place of its own.
    ///
    /// # Errors
    /// When it cannot be read or has mistakes, with these values in it, or when they have no place in it.
    pub fn load_with(path: &Path, overrides: &[Override]) -> Result<Self, LoadError> {
        let mut bytes = std::fs::read(path).map_err(|source| LoadError::Io { path: path.into(), source })?;
        if let Ok(text) = std::str::from_utf8(&bytes) {
            bytes = overrides::apply(text, overrides)?.into_bytes();
        }
        Self::parse_bytes(&path.display().to_string(), &bytes).map_err(LoadError::Invalid)
    }

    /// Reads the bytes of a study file.
    ///
    /// # Errors
    /// All mistakes in it; one of them can be that it is not UTF-8.
    pub fn parse_bytes(file_name: &str, bytes: &[u8]) -> Result<Self, Diagnostics> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(file_name, text),
            Err(error) => {
                let mut found = Diagnostics::new(file_name, &String::from_utf8_lossy(bytes));
                let at = error.valid_up_to();
                // The replacement character that stands for the bad bytes is 3 bytes long.
                found.push(
                    Diagnostic::error(format!("the file is not UTF-8: byte {at} is 0x{:02x}", bytes[at]))
                        .at(at..at + 3)
                        .help("save it as UTF-8"),
                );
                Err(found)
            }
        }
    }

    /// Reads the text of a study file. `file_name` is used in messages only.
    ///
    /// # Errors
    /// All mistakes in it.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, Diagnostics> {
        let mut found = Diagnostics::new(file_name, text);
        let file = read(text, &mut found);
        match file {
            Some(file) if !found.has_errors() => Ok(Self { warnings: found, ..file }),
            _ => {
                if !found.has_errors() {
                    found.push(Diagnostic::error("the study could not be read"));
                }
                Err(found)
            }
        }
    }

    /// Reads and checks the treatments with these levels, one after the other, as they are in a block when blocks set
    /// parameters: the first when none is given.
    pub(crate) fn treatments(
        &self,
        rows: &[Vec<u32>],
        block: Option<u32>,
    ) -> Result<Vec<Treatment>, Diagnostics> {
        let mut found = self.warnings.clone();
        let tree = parse_toml(&self.text, &mut found);
        let mut reader = Reader { tree: &tree, overlaid: &[], gaps: Gaps::NONE, found: &mut found };
        let factors = factors::read(&mut reader, &self.text).unwrap_or_default();
        let factors = factors::with_load(&mut reader, factors, self.load.as_ref()).unwrap_or_default();
        let centres = match self.design.centre_points {
            0 => Vec::new(),
            _ => factors::centres(&mut reader, &self.text, own(&factors)).unwrap_or_default(),
        };
        let mut factors = factors;
        factors::add_centres(&mut factors, &centres);
        let blocks = factors.len() > own(&factors).len();
        let mut treatments = Vec::new();
        for row in rows {
            let row: Vec<_> = row.iter().copied().chain(blocks.then_some(block.unwrap_or(0))).collect();
            let Some(treatment) = treatment::read(&tree, &factors, &row, &mut found) else { continue };
            check_response(&tree, &factors, &row, &self.response, &treatment, &mut found);
            treatments.push(treatment);
        }
        if found.has_errors() { Err(found) } else { Ok(treatments) }
    }

    /// Whether the blocks of the design set parameters.
    pub(crate) fn blocks_differ(&self) -> bool {
        matches!(&self.design.blocks, Some(Blocks::Named(blocks)) if blocks.iter().any(|block| !block.set.is_empty()))
    }

    /// The place in the file that is nearest to a path.
    pub(crate) fn place(&self, path: &str) -> std::ops::Range<usize> {
        let mut found = Diagnostics::new(&self.file_name, &self.text);
        let tree = parse_toml(&self.text, &mut found);
        Reader { tree: &tree, overlaid: &[], gaps: Gaps::NONE, found: &mut found }.place(path)
    }

    /// The label of a treatment.
    pub(crate) fn label(&self, levels: &[u32]) -> String {
        let parts = self.factors.iter().zip(levels).filter_map(|(factor, &level)| {
            Some(format!("{}={}", factor.name, factor.levels.get(level as usize)?))
        });
        match parts.collect::<Vec<_>>().join(" ") {
            label if label.is_empty() => self.study.name.clone(),
            label => label,
        }
    }
}

fn read(text: &str, found: &mut Diagnostics) -> Option<StudyFile> {
    let tree = parse_toml(text, found);
    if found.has_errors() {
        return None;
    }
    if tree.is_empty() {
        found.push(Diagnostic::error("the study is empty").help(
            "a study needs at least `[study]` with a `name`, `[target]` with a `path` or `url`, and one `[workload.NAME]` with `use`",
        ));
        return None;
    }
    // Values are stored as TOML knows them, which has no larger integers than these.
    if let Err(error) = text.parse::<toml::Table>() {
        let place = error.span().unwrap_or(0..0);
        found.push(Diagnostic::error(format!("a value cannot be kept: {}", error.message())).at(place));
    }
    check_sections(&tree, found);
    let mut reader = Reader { tree: &tree, overlaid: &[], gaps: Gaps::NONE, found };
    let study = read_study(&mut reader);
    if let Some(study) = &study {
        note_scale(&mut reader, study);
    }
    let design = match tree.get("design") {
        Some(node) => reader.read::<DesignSection>("design", node),
        None => Some(DesignSection::default()),
    };
    if let Some(design) = &design {
        design::check(&mut reader, design, on_virtual_time(&tree));
    }
    let factors = factors::read(&mut reader, text);
    let load = load::read(&mut reader, design.as_ref());
    let factors = match (factors, &load) {
        (Some(factors), Some(load)) => factors::with_load(&mut reader, factors, load.as_ref()),
        _ => None,
    };
    let (mut choice, mut centres) = (None, None);
    if let (Some(design), Some(factors)) = (&design, &factors) {
        choice = design::choose(&mut reader, design, own(factors));
        centres = match design.centre_points {
            0 => Some(Vec::new()),
            _ => factors::centres(&mut reader, text, own(factors)),
        };
    }
    // As the file stands, before any level is put into it, so that values which a factor replaces are right as well.
    // What a factor sets may be missing there.
    let varied = factors.as_ref().is_none_or(|factors| !factors.is_empty());
    if varied {
        let set = |factors: &Vec<Factor<'_>>| {
            let levels = factors.iter().filter_map(|factor| factor.levels.first());
            levels.flat_map(|level| &level.settings).map(|setting| setting.path.clone()).collect()
        };
        reader.gaps = factors.as_ref().map_or(Gaps::Any, |factors| Gaps::Only(set(factors)));
        treatment::read_settings(&mut reader);
    }
    let (mut factors, choice, centres) = (factors?, choice?, centres?);
    if varied && found.has_errors() {
        return None;
    }
    factors::add_centres(&mut factors, &centres);
    let base = read_one_at_a_time(&tree, &factors, found);
    let (study, design, base, load) = (study?, design?, base?, load.as_ref()?);
    let (first, spec) = base.settings.workloads.first()?;
    let of_goal = || choice.goal.as_ref().map(|goal| goal.response.clone());
    let response = design.response.clone().or_else(of_goal).unwrap_or_else(|| default_response(first, spec));
    check_response(&tree, &factors, &vec![0; factors.len()], &response, &base, found);
    let load_record = match &load {
        Some(plan) => Some(load::stored(plan, &base, &factors, found)?),
        None => None,
    };
    Some(StudyFile {
        file_name: found.file_name().to_owned(),
        text: text.to_owned(),
        study,
        design,
        choice,
        factors: own(&factors).iter().map(|factor| record(text, factor)).collect(),
        load: load.clone(),
        load_record,
        base: base.settings,
        response,
        warnings: found.clone(),
    })
}

/// The factors of the study, without what stands for its blocks.
fn own<'a, 't>(factors: &'a [Factor<'t>]) -> &'a [Factor<'t>] {
    match factors.split_last() {
        Some((last, rest)) if last.is_block => rest,
        _ => factors,
    }
}

fn read_study(reader: &mut Reader<'_, '_>) -> Option<StudySection> {
    let tree = reader.tree;
    let Some((key, node)) = tree.get_key_value("study") else {
        reader.found.push(
            Diagnostic::error("the study has no name: there is no section `[study]`")
                .help("add `[study]` with `name = \"my-study\"`"),
        );
        return None;
    };
    let study = reader.read::<StudySection>("study", node)?;
    let place = match reader.place("study.name") {
        place if place.is_empty() => key.span(),
        place => place,
    };
    factors::check_name(reader, "study", &study.name, &place).then_some(study)
}

/// Whether all runs of the study are on virtual time, where a second one would be the same as the first.
fn on_virtual_time(tree: &DeTable<'_>) -> bool {
    let time = tree.get("lab").and_then(|lab| lab.get_ref().get("time"));
    time.and_then(|time| time.get_ref().as_str()) == Some("virtual")
}

/// Says that a scaled study is not the one that its levels and texts speak of.
fn note_scale(reader: &mut Reader<'_, '_>, study: &StudySection) {
    if study.scale == 1.0 {
        return;
    }
    let place = reader.place("study.scale");
    let diagnostic = match Scale::new(study.scale) {
        Some(_) => Diagnostic::warning(format!(
            "the study is scaled by {}: amounts of data, numbers of files and times are that part of what it says",
            study.scale
        ))
        .help("its results are not those of the experiment at its full size"),
        None => Diagnostic::error(format!("nothing can be scaled by {}", study.scale))
            .help("write a number above 0, such as `0.01`"),
    };
    reader.found.push(diagnostic.at(place));
}

/// The tree of a file; syntax errors are reported, the first of each line.
fn parse_toml<'t>(text: &'t str, found: &mut Diagnostics) -> DeTable<'t> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut lines: Vec<usize> = Vec::new();
    let mut section_twice = 0..0;
    let mut errors: Vec<_> = errors.into_iter().map(|error| (error.span().unwrap_or(0..0), error)).collect();
    errors.sort_by_key(|(place, _)| place.start);
    for (place, error) in errors {
        let (line, _) = found.line_column(&place);
        let twice = error.message().starts_with("duplicate key");
        if lines.contains(&line) || (twice && section_twice.contains(&place.start)) {
            continue;
        }
        lines.push(line);
        let line_start = text.get(..place.start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
        if twice && text[line_start..].trim_start().starts_with('[') {
            // The keys of a section that is there twice are no further mistakes.
            let length = text[place.start..].find("\n[").unwrap_or(text.len() - place.start);
            section_twice = place.start..place.start + length;
        }
        found.push(syntax_error(error.message()).at(place.clone()));
    }
    tree.into_inner()
}

fn syntax_error(message: &str) -> Diagnostic {
    if message.starts_with("string values must be quoted") {
        return Diagnostic::error("a value is missing, or a text that is not in quotes")
            .help("texts, sizes and durations are written in quotes: `\"64KiB\"`, `\"30s\"`");
    }
    if message.starts_with("duplicate key") {
        return Diagnostic::error("this key or section is given twice")
            .help("keep one of the two, or give the second another name");
    }
    Diagnostic::error(format!("the file is not TOML: {message}"))
}

fn check_sections(tree: &DeTable<'_>, found: &mut Diagnostics) {
    for (key, node) in tree {
        let name = &**key.get_ref();
        if SECTIONS.contains(&name) {
            continue;
        }
        let what = match node.get_ref() {
            DeValue::Table(_) | DeValue::Array(_) => "section",
            _ => "key",
        };
        found.push(
            Diagnostic::error(format!("unknown {what} `{name}`"))
                .at(key.span())
                .help(words::suggest(name, "sections", SECTIONS)),
        );
    }
}

/// Checks every level of every factor with the other factors at their first level; gives the base treatment.
fn read_one_at_a_time(
    tree: &DeTable<'_>,
    factors: &[Factor<'_>],
    found: &mut Diagnostics,
) -> Option<Treatment> {
    let base_levels = vec![0; factors.len()];
    let base = treatment::read(tree, factors, &base_levels, found);
    for (number, factor) in factors.iter().enumerate() {
        let mut settings = vec![base.as_ref().map(|base| base.settings.clone())];
        // Loads are values of one parameter between the first and the last.
        let first = if factor.is_load { factor.levels.len().saturating_sub(1) } else { 1 };
        for index in first.max(1)..factor.levels.len() {
            let mut levels = base_levels.clone();
            levels[number] = index as u32;
            settings.push(treatment::read(tree, factors, &levels, found).map(|treatment| treatment.settings));
        }
        for (index, this) in settings.iter().enumerate() {
            let same = settings[..index].iter().position(|other| this.is_some() && other == this);
            let Some(same) = same.filter(|_| !factor.is_block) else { continue };
            let (level, other) = (&factor.levels[index], &factor.levels[same]);
            found.push(
                Diagnostic::error(format!(
                    "the levels `{}` and `{}` of the factor `{}` are the same",
                    other.name, level.name, factor.name
                ))
                .at(level.place.clone())
                .help("remove one of them"),
            );
        }
    }
    base
}

/// Whether a treatment has the response that the study is about.
fn check_response(
    tree: &DeTable<'_>,
    factors: &[Factor<'_>],
    levels: &[u32],
    response: &str,
    treatment: &Treatment,
    found: &mut Diagnostics,
) {
    let names: Vec<_> = treatment
        .settings
        .workloads
        .iter()
        .zip(&treatment.workloads)
        .flat_map(|((name, spec), (_, full))| response_names(name, spec, full, treatment.settings.access()))
        .collect();
    if names.iter().any(|name| name == response) {
        return;
    }
    let written = ["design.response", "design.goal"].into_iter().find_map(|path| {
        let (_, node) = path::find(tree, &path::parse(path)?)?;
        Some(node.span())
    });
    let label = treatment::label(factors, levels).map(|label| format!("in the treatment {label}"));
    let help = match words::nearest(response, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("responses of this study: {}", words::quoted(&names)),
    };
    let factor = || factors.iter().map(|factor| factor.place.clone()).next_back();
    let message = format!("there is no response `{response}`");
    let diagnostic = Diagnostic::error(message).label(label.unwrap_or_default()).help(help);
    found.push(match written.or_else(factor) {
        Some(place) => diagnostic.at(place),
        None => diagnostic,
    });
}

fn record(text: &str, factor: &Factor<'_>) -> FactorRecord {
    let settings = factor.levels.iter().map(|level| {
        let pairs = level.settings.iter().map(|s| (s.path.clone(), s.text(text).to_owned()));
        pairs.collect()
    });
    let settings: Vec<_> = settings.collect();
    FactorRecord {
        name: factor.name.clone(),
        levels: factor.levels.iter().map(|level| level.name.clone()).collect(),
        values: numeric_values(&settings),
        settings,
    }
}
