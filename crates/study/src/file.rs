//! The study file: TOML read into checked types, with every mistake reported where it is written.

mod centre;
mod deserialize;
mod design;
mod factors;
mod load;
mod names;
mod overrides;
mod section;
mod sections;
mod treatment;
mod tree;

use std::ops::Range;
use std::path::{Path, PathBuf};

use benchmaster_builtin::Scale;
use benchmaster_record::results::{FactorRecord, LoadRecord};

use self::factors::Factor;
use self::section::Gaps;
use self::treatment::Template;
use self::tree::{Table, Value};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::response_names::default_response;
use crate::settings::Settings;
use crate::suggest;

pub(crate) use self::design::only_regular;
pub use self::design::{
    Blocks, ConfoundedBlocks, DesignChoice, DesignKind, DesignSection, FractionBy, Layout, LevelWord,
    NamedBlock, ReplicateBlocks, Replicates, RunOrder, SequentialReplicates, StudySection, TimeOfDay,
};
pub use self::load::{GoalSection, Load, LoadPlan, LoadSection};
pub use self::overrides::{Override, OverrideError};
pub(crate) use self::section::Reader;
pub(crate) use self::treatment::{Treatment, Treatments};

/// A study file without mistakes in any level with the other factors at their first levels.
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
    /// What its treatments are made of.
    template: Template,
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
    Io { path: PathBuf, source: std::io::Error },
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

    /// Reads a study file, with these values instead of its own.
    ///
    /// # Errors
    /// When it cannot be read or has mistakes, with these values in it, or when a value cannot be put into it.
    pub fn load_with(path: &Path, overrides: &[Override]) -> Result<Self, LoadError> {
        let bytes = std::fs::read(path).map_err(|source| LoadError::Io { path: path.into(), source })?;
        let name = path.display().to_string();
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse_with(&name, text, overrides),
            Err(_) => Self::parse_bytes(&name, &bytes).map_err(LoadError::Invalid),
        }
    }

    /// Reads the text of a study, with values that take the place of its own.
    ///
    /// # Errors
    /// When it has mistakes, with these values in it, or when a value cannot be put into it.
    pub fn parse_with(file_name: &str, text: &str, overrides: &[Override]) -> Result<Self, LoadError> {
        Self::parse(file_name, &overrides::apply(text, overrides)?).map_err(LoadError::Invalid)
    }

    /// Reads the bytes of a study file.
    ///
    /// # Errors
    /// All mistakes in it; one of them can be that it is not UTF-8.
    pub fn parse_bytes(file_name: &str, bytes: &[u8]) -> Result<Self, Diagnostics> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(file_name, text),
            Err(error) => {
                let mut diagnostics = Diagnostics::new(file_name, &String::from_utf8_lossy(bytes));
                let at = error.valid_up_to();
                // The replacement character that stands for the bad bytes is 3 bytes long.
                diagnostics.push(
                    Diagnostic::error(format!("the file is not UTF-8: byte {at} is 0x{:02x}", bytes[at]))
                        .at(at..at + 3)
                        .help("save it as UTF-8"),
                );
                Err(diagnostics)
            }
        }
    }

    /// Reads the text of a study file. `file_name` is used in messages only.
    ///
    /// # Errors
    /// All mistakes in it.
    pub fn parse(file_name: &str, text: &str) -> Result<Self, Diagnostics> {
        let mut diagnostics = Diagnostics::new(file_name, text);
        match read_file(text, &mut diagnostics) {
            Some(file) if !diagnostics.has_errors() => Ok(Self { warnings: diagnostics, ..file }),
            _ => {
                if !diagnostics.has_errors() {
                    diagnostics.push(Diagnostic::error("the study could not be read"));
                }
                Err(diagnostics)
            }
        }
    }

    /// Reads and checks the treatments with these levels, and again for each block where blocks set parameters.
    pub(crate) fn treatments(&self, rows: &[Vec<u32>]) -> Result<Treatments, Diagnostics> {
        let mut diagnostics = self.warnings.clone();
        let mut in_block = |block: Option<u32>| {
            let mut treatments = Vec::new();
            for row in rows {
                let levels: Vec<_> = row.iter().copied().chain(block).collect();
                let Some(treatment) = self.template.treatment(&levels, &mut diagnostics) else { continue };
                self.template.check_response(&levels, &self.response, &treatment, &mut diagnostics);
                treatments.push(treatment);
            }
            treatments
        };
        let named = match &self.design.blocks {
            Some(Blocks::Named(blocks)) => &blocks[..],
            _ => &[],
        };
        let differ = named.iter().any(|block| !block.set.is_empty());
        let all = in_block(differ.then_some(0));
        let blocks = (0..)
            .zip(named)
            .map(|(number, block)| (block.clone(), if differ { in_block(Some(number)) } else { Vec::new() }));
        let treatments = Treatments { all, blocks: blocks.collect() };
        if diagnostics.has_errors() { Err(diagnostics) } else { Ok(treatments) }
    }

    /// Where a parameter, or the innermost table around it, is written.
    pub(crate) fn span_of(&self, path: &str) -> Range<usize> {
        self.template.tree.span_of(path)
    }

    /// The label of a treatment.
    pub(crate) fn label(&self, levels: &[u32]) -> String {
        match self.template.label(levels) {
            label if label.is_empty() => self.study.name.clone(),
            label => label,
        }
    }
}

fn read_file(text: &str, diagnostics: &mut Diagnostics) -> Option<StudyFile> {
    let tree = tree::parse(text, diagnostics);
    if diagnostics.has_errors() {
        return None;
    }
    if tree.is_empty() {
        let help = "a study needs at least `[study]` with a `name`, `[target]` with a `path` or `url`, and one \
                    `[workload.NAME]` with `use`";
        diagnostics.push(Diagnostic::error("the study is empty").help(help));
        return None;
    }
    check_sections(&tree, diagnostics);
    let named = names::check(&tree, diagnostics);
    let mut reader = Reader { tree: &tree, gaps: Gaps::NONE, diagnostics };
    let study = read_study(&mut reader);
    let scale = study.as_ref().and_then(|study| scale(&mut reader, study));
    let design = match tree.get("design") {
        Some(node) => reader.read::<DesignSection>("design", node),
        None => Some(DesignSection::default()),
    };
    if let Some(design) = &design {
        design::check(&mut reader, design, on_virtual_time(&tree));
    }
    let factors = factors::read_all(&mut reader, text);
    let load = load::read_section(&mut reader, design.as_ref());
    let factors = match (factors, &load) {
        (Some(factors), Some(load)) => load::with_load(&mut reader, factors, load.as_ref()),
        _ => None,
    };
    let (mut choice, mut centres) = (None, None);
    if let (Some(design), Some(factors)) = (&design, &factors) {
        choice = design::choose(&mut reader, design, factors::of_study(factors));
        centres = match design.centre_points {
            0 => Some(Vec::new()),
            _ => factors::centres(&mut reader, factors::of_study(factors)),
        };
    }
    // The file as it stands: values that a factor replaces are right as well, and what a factor sets may be missing.
    reader.gaps = factors.as_ref().map_or(Gaps::Any, |factors| {
        let levels = factors.iter().filter_map(|factor| factor.levels.first());
        let settings = levels.flat_map(|level| &level.settings);
        Gaps::Only(settings.map(|setting| setting.path.clone()).collect())
    });
    let sections = sections::read_sections(&mut reader, None);
    let mut factors = factors.filter(|_| named)?;
    factors::add_centres(&mut factors, centres.as_deref().unwrap_or_default());
    let template = Template { tree: tree.clone(), factors, sections, scale };
    // Also after mistakes elsewhere: those of levels are shown with them.
    let base = template.one_at_a_time(diagnostics);
    let choice = choice.filter(|_| centres.is_some())?;
    let (study, design, base, load) = (study?, design?, base?, load?);
    let (first, spec) = base.settings.workloads.first()?;
    let of_goal = || choice.goal.as_ref().map(|goal| goal.response.clone());
    let response = design.response.clone().or_else(of_goal).unwrap_or_else(|| default_response(first, spec));
    template.check_response(&vec![0; template.factors.len()], &response, &base, diagnostics);
    let load_record = match &load {
        Some(plan) => Some(load::stored(plan, &base, &template.factors, diagnostics)?),
        None => None,
    };
    Some(StudyFile {
        file_name: diagnostics.file_name().to_owned(),
        text: text.to_owned(),
        study,
        design,
        choice,
        factors: factors::of_study(&template.factors).iter().map(Factor::record).collect(),
        load,
        load_record,
        base: base.settings,
        template,
        response,
        warnings: diagnostics.clone(),
    })
}

fn read_study(reader: &mut Reader<'_>) -> Option<StudySection> {
    let Some(node) = reader.tree.get("study") else {
        let error = Diagnostic::error("the study has no name: section `[study]` is missing");
        reader.diagnostics.push(error.help("add `[study]` with `name = \"my-study\"`"));
        return None;
    };
    reader.read("study", node)
}

/// Whether all runs of the study are on virtual time, where a second one would be the same as the first.
fn on_virtual_time(tree: &Table) -> bool {
    tree.at("lab.time").and_then(|time| time.text()) == Some("virtual")
}

/// By what the study is scaled, with a warning: it is then not the one that its levels and texts speak of.
fn scale(reader: &mut Reader<'_>, study: &StudySection) -> Option<Scale> {
    if study.scale == 1.0 {
        return None;
    }
    let scale = Scale::new(study.scale);
    let diagnostic = match scale {
        Some(_) => Diagnostic::warning(format!(
            "the study is scaled by {}: amounts of data, numbers of files and times are multiplied by it",
            study.scale
        ))
        .help("its results are not those of the experiment at full size"),
        None => Diagnostic::error(format!("a study cannot be scaled by {}", study.scale))
            .help("write a number above 0, such as `0.01`"),
    };
    reader.report_at("study.scale", diagnostic);
    scale
}

fn check_sections(tree: &Table, diagnostics: &mut Diagnostics) {
    for (key, node) in tree.iter().filter(|(key, _)| !SECTIONS.contains(&&*key.name)) {
        let name = &key.name;
        let what = match node.value {
            Value::Table(_) | Value::Array(_) => "section",
            _ => "key",
        };
        let help = suggest::suggest(name, "sections", SECTIONS);
        diagnostics.error(&key.span, format!("unknown {what} `{name}`"), help);
    }
}
