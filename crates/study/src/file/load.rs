//! The section `[load]`: a load curve, whose loads are the levels of a factor of their own.

use std::ops::Range;

use benchmaster_record::model::{Group, Repeat, Step, Workload};
use benchmaster_record::results::{LatencyGoal, LatencyMeasure, LoadCurve, LoadRecord};
use benchmaster_units::{Rate, TimeSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::design::{DesignKind, DesignSection, Replicates};
use super::factors::{Factor, Level, Setting, no_parameter_twice, workload_names};
use super::section::Reader;
use super::treatment::Treatment;
use super::tree::{Node, Value};
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::path::{self, Segment};
use crate::scalar::Scalar;
use crate::suggest;
use benchmaster_analysis::load::grid;
use benchmaster_record::model::leaves;

/// The name of the factor that the loads are levels of.
pub(crate) const LOAD_FACTOR: &str = "load";

/// The section `[load]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadSection {
    /// The workload whose load is raised.
    pub workload: String,
    /// What is raised: the rate at which operations are begun, or the number of workers.
    pub curve: LoadCurve,
    /// The parameter that is raised; if absent, `rate` or `workers` of the workload, or of its first group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["workload.mix.groups[0].rate"]))]
    pub parameter: Option<String>,
    /// The lowest load: a rate per client (`"100/s"`), or workers per client.
    pub from: Load,
    /// The highest load that is tried.
    pub to: Load,
    /// Loads rise by this factor; 1.5 if neither it nor `points` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 1.0))]
    pub factor: Option<f64>,
    /// Number of loads, in equal steps from `from` to `to`, both included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub points: Option<u32>,
    /// What is asked of the latency: the highest load that keeps it is searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<GoalSection>,
    /// How finely is searched: the distance of neighbouring loads, as a share.
    #[serde(default = "resolution")]
    #[schemars(range(min = 0.005, max = 0.5))]
    pub resolution: f64,
    /// Open loop: the share of the requested rate that must be achieved.
    #[serde(default = "achieved")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub achieved: f64,
    /// The most runs of one load: a load whose interval contains a limit is run again up to this number of times.
    #[serde(default = "max_replicates")]
    #[schemars(range(min = 2, max = 1000))]
    pub max_replicates: u32,
}

fn resolution() -> f64 {
    0.05
}

fn achieved() -> f64 {
    0.95
}

fn max_replicates() -> u32 {
    20
}

/// A rate, or a number of workers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Load {
    /// Workers per client.
    Workers(#[schemars(range(min = 1))] u32),
    /// Operations per second of a client.
    Rate(Rate),
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a rate such as \"100/s\", or a number of workers";
        match Scalar::read(deserializer, EXPECTED)? {
            Scalar::Text(text) => text.parse().map(Self::Rate).map_err(de::Error::custom),
            Scalar::Whole(n @ 0..=0xffff_ffff) => Ok(Self::Workers(n as u32)),
            other => Err(other.unexpected(EXPECTED)),
        }
    }
}

impl Load {
    fn value(self) -> f64 {
        match self {
            Self::Workers(workers) => workers.into(),
            Self::Rate(rate) => rate.0,
        }
    }
}

/// What is asked of the latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GoalSection {
    /// What of it.
    pub latency: LatencyMeasure,
    /// The most that it may be.
    pub at_most: TimeSpan,
}

/// The section with the loads that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadPlan {
    /// As it is written.
    pub section: LoadSection,
    /// The parameter that the load is.
    pub parameter: String,
    /// The loads in ascending order.
    loads: Vec<Value>,
    /// Which of them are run while the load rises.
    pub rise: Vec<u32>,
    span: Range<usize>,
}

/// Reads the section; `Some(None)` when there is none, `None` when there are mistakes, which have then been reported.
pub(crate) fn read_section(
    reader: &mut Reader<'_>,
    design: Option<&DesignSection>,
) -> Option<Option<LoadPlan>> {
    let Some((key, node)) = reader.tree.entry("load") else { return Some(None) };
    let section = reader.read::<LoadSection>("load", node)?;
    let before = reader.diagnostics.errors();
    check(reader, &section);
    if let Some(design) = design {
        check_design(reader, design, &section);
    }
    let parameter = parameter(reader, &section)?;
    if reader.diagnostics.errors() > before {
        return None;
    }
    let (from, to) = (section.from.value(), section.to.value());
    let whole = section.curve == LoadCurve::Closed;
    let grid = grid::loads(from, to, section.factor, section.points, section.resolution, whole);
    let grid = grid.map_err(|count| {
        let message = format!("there would be {count} loads to search among, which are too many");
        let help = format!("raise `resolution` or `factor`; at most {} are searched", grid::MOST_LOADS);
        reader.error("load.resolution", message, help);
    });
    let grid = grid.ok()?;
    let value =
        |load: &f64| if whole { Value::Integer(*load as i64) } else { Value::Text(Rate(*load).to_string()) };
    Some(Some(LoadPlan {
        parameter,
        loads: grid.loads.iter().map(value).collect(),
        rise: grid.rise,
        span: key.span.clone(),
        section,
    }))
}

/// The factors with the loads of a curve as the last one of the study. `None` when it gets into the way of another, which
/// has then been reported.
pub(crate) fn with_load(
    reader: &mut Reader<'_>,
    mut factors: Vec<Factor>,
    load: Option<&LoadPlan>,
) -> Option<Vec<Factor>> {
    let Some(load) = load.map(LoadPlan::factor) else { return Some(factors) };
    if let Some(same) = factors.iter().find(|factor| factor.name == load.name) {
        let message = format!("with `[load]` no other factor can be called `{}`", load.name);
        reader.diagnostics.error(&same.span, message, "give it another name");
        return None;
    }
    let own = factors.iter().filter(|factor| !factor.is_block).count();
    factors.insert(own, load);
    let before = reader.diagnostics.errors();
    no_parameter_twice(reader, &factors);
    (reader.diagnostics.errors() == before).then_some(factors)
}

/// Values that cannot be meant.
fn check(reader: &mut Reader<'_>, section: &LoadSection) {
    let mut require = |holds: bool, key: &str, message: String, help: &str| {
        if !holds {
            reader.error(&format!("load.{key}"), message, help);
        }
    };
    for (key, load) in [("from", section.from), ("to", section.to)] {
        let fits = matches!(
            (section.curve, load),
            (LoadCurve::Open, Load::Rate(_)) | (LoadCurve::Closed, Load::Workers(1..))
        );
        let (what, help) = match section.curve {
            LoadCurve::Open => ("an open loop is loaded by a rate", "write a rate such as `\"100/s\"`"),
            LoadCurve::Closed => {
                ("a closed loop is loaded by workers", "write a number of workers, 1 or more")
            }
        };
        require(fits, key, format!("{what}, and `load.{key}` is none"), help);
    }
    let (from, to) = (section.from.value(), section.to.value());
    require(
        from < to,
        "to",
        "`to` is not above `from`, so that the load cannot rise".into(),
        "write the load at which the curve ends at the latest",
    );
    require(
        section.factor.is_none() || section.points.is_none(),
        "points",
        "`factor` and `points` both say how the load rises".into(),
        "keep one of them",
    );
    require(
        section.factor.is_none_or(|factor| factor.is_finite() && factor > 1.0),
        "factor",
        "by a `factor` of 1 or less the load does not rise".into(),
        "write a number above 1, such as 1.5 or 2",
    );
    require(
        section.points.is_none_or(|points| (2..=1000).contains(&points)),
        "points",
        "a curve has from 2 to 1000 points".into(),
        "write 10, for example",
    );
    require(
        (0.005..=0.5).contains(&section.resolution),
        "resolution",
        "the `resolution` is a share from 0.005 to 0.5".into(),
        "write 0.05 for loads that are 5 % apart",
    );
    require(
        section.achieved > 0.0 && section.achieved < 1.0,
        "achieved",
        "the share that must be `achieved` lies between 0 and 1".into(),
        "write 0.95: at 1 itself, chance alone would break it",
    );
    require(
        section.goal.is_none_or(|goal| goal.at_most.nanos() > 0),
        "goal",
        "no latency is at most 0".into(),
        "write `goal = { latency = \"p99\", at_most = \"10ms\" }`, for example",
    );
}

/// What a load curve asks of the rest of the experiment.
fn check_design(reader: &mut Reader<'_>, design: &DesignSection, section: &LoadSection) {
    let mut refuse = |key: &str, message: &str, help: &str| {
        reader.error(&format!("design.{key}"), message, help);
    };
    let other = "remove it, or `[load]`";
    if design.kind != DesignKind::Full {
        refuse("kind", "with `[load]` a curve is measured for every combination of levels", other);
    }
    if design.centre_points > 0 {
        refuse("centre_points", "a study with `[load]` has no centre points", other);
    }
    if design.blocks.is_some() {
        refuse("blocks", "the runs of load curves are not blocked", other);
    }
    if design.goal.is_some() {
        refuse("goal", "the goal of a study with `[load]` is `load.goal`", "move it there");
    }
    match design.replicates {
        Replicates::Fixed(n) if n < 2 => {
            let message = "one run of a load has no interval to decide by";
            refuse("replicates", message, "write 3 or more; 5 are better");
        }
        Replicates::Fixed(n) if n > section.max_replicates => {
            let message = format!("{n} replicates are more than `load.max_replicates` allows");
            refuse("replicates", &message, "raise `max_replicates`, or lower `replicates`");
        }
        Replicates::Fixed(_) => {}
        Replicates::Sequential(_) => refuse(
            "replicates",
            "with `[load]` it is the distance from a limit that decides about more replicates",
            "write a number; `load.max_replicates` is the most",
        ),
    }
}

/// The path of the parameter that the load is.
fn parameter(reader: &mut Reader<'_>, section: &LoadSection) -> Option<String> {
    let names = workload_names(reader.tree);
    let name = &section.workload;
    if !names.contains(name) {
        let help = suggest::suggest(name, "workloads of this study", names.iter().map(String::as_str));
        reader.error("load.workload", format!("unknown workload `{name}`"), help);
        return None;
    }
    let key = match section.curve {
        LoadCurve::Open => "rate",
        LoadCurve::Closed => "workers",
    };
    if let Some(path) = &section.parameter {
        let below = match path::parse(path).as_deref() {
            Some([Segment::Key("workload"), Segment::Key(of), .., Segment::Key(last)]) => {
                of == name && *last == key
            }
            _ => false,
        };
        if !below {
            let message = format!("`{path}` is not the {key} of the workload `{name}`");
            let help = format!("write `workload.{name}.{key}`, or `workload.{name}.groups[0].{key}`");
            reader.error("load.parameter", message, help);
            return None;
        }
        return Some(path.clone());
    }
    let workload = reader.tree.table("workload").and_then(|all| all.table(name));
    let custom = workload.is_some_and(|workload| workload.get("use").is_none());
    let group = if custom { "groups[0]." } else { "" };
    Some(format!("workload.{name}.{group}{key}"))
}

impl LoadPlan {
    /// The factor whose levels are the loads.
    pub(crate) fn factor(&self) -> Factor {
        let level = |load: &Value| {
            let written = load.to_toml();
            let name = written.trim_matches('"').to_owned();
            let value = Node::new(self.span.clone(), load.clone());
            let setting = Setting { path: self.parameter.clone(), span: self.span.clone(), value, written };
            Level { name, span: self.span.clone(), settings: vec![setting] }
        };
        Factor {
            name: LOAD_FACTOR.to_owned(),
            span: self.span.clone(),
            levels: self.loads.iter().map(level).collect(),
            hard_to_change: None,
            is_block: false,
            is_load: true,
        }
    }

    /// What is stored of it. `base` is the treatment with the lowest load; `factor` is the number of the load's factor.
    ///
    /// # Errors
    /// When the flow does not tell how often it was done.
    pub(crate) fn record(&self, base: &Treatment, factor: u32) -> Result<LoadRecord, Diagnostic> {
        let name = &self.section.workload;
        let at = |message: String, help: &str| Diagnostic::error(message).at(self.span.clone()).help(help);
        let workload = base.workloads.iter().find(|(of, _)| of == name).map(|(_, workload)| workload);
        let group = workload.and_then(|workload| self.group(workload));
        let Some(group) = group else {
            return Err(at(
                format!("the workload `{name}` has no group to load"),
                "name another `parameter`",
            ));
        };
        let (counted, per_flow) = match (counted(&group.flow), self.section.curve) {
            (Some(counted), _) => counted,
            // Operations serve as well where no rate was asked for.
            (None, LoadCurve::Closed) => (labels(&group.flow), 1.0),
            (None, LoadCurve::Open) => {
                return Err(at(
                    format!(
                        "how often the flow of `{name}` is done cannot be counted: it has no step outside of \
                             `choose` and `repeat`, and these do not always do as many operations"
                    ),
                    "add such a step, or measure a closed loop: `curve = \"closed\"`",
                ));
            }
        };
        Ok(LoadRecord {
            curve: self.section.curve,
            factor,
            parameter: self.parameter.clone(),
            workload: name.clone(),
            group: group.name.clone(),
            outstanding: group.queue_depth,
            counted,
            per_flow,
            rise: self.rise.clone(),
            achieved: self.section.achieved,
            goal: self
                .section
                .goal
                .map(|goal| LatencyGoal { latency: goal.latency, at_most_ns: goal.at_most.nanos() as f64 }),
            max_replicates: self.section.max_replicates,
        })
    }

    /// The group whose rate or workers the parameter is. Built-in workloads have the one that has the rate, or the first.
    fn group<'w>(&self, workload: &'w Workload) -> Option<&'w Group> {
        let numbered = path::parse(&self.parameter).and_then(|path| {
            path.iter().find_map(|segment| match segment {
                Segment::Index(index) => Some(*index),
                Segment::Key(_) => None,
            })
        });
        match numbered {
            Some(index) => workload.groups.get(index),
            None => workload.groups.iter().find(|group| group.rate.is_some()).or(workload.groups.first()),
        }
    }
}

/// The series whose operations tell how often the flow was done, and how many of them each time has.
fn counted(flow: &[Step]) -> Option<(Vec<String>, f64)> {
    if let Some(all) = operations(flow).filter(|all| *all > 0.0) {
        return Some((labels(flow), all));
    }
    let outside = || flow.iter().filter(|step| step.op.is_some()).map(label);
    let once = outside().find(|name| leaves(flow).filter(|step| label(step) == *name).count() == 1)?;
    Some((vec![once], 1.0))
}

/// Operations that a flow has each time it is done; `None` when that depends.
fn operations(flow: &[Step]) -> Option<f64> {
    flow.iter().map(of_step).sum()
}

fn of_step(step: &Step) -> Option<f64> {
    if step.op.is_some() {
        return Some(1.0);
    }
    if let Some(repeat) = &step.repeat {
        return match repeat {
            Repeat::Times(times) => Some(*times as f64 * operations(&step.flow)?),
            _ => None,
        };
    }
    let mut branches = step.choose.iter().map(|choice| operations(&choice.flow));
    let Some(first) = branches.next() else { return Some(0.0) };
    branches.all(|other| other == first).then_some(first).flatten()
}

fn label(step: &Step) -> String {
    let named = || step.op.map_or_else(String::new, |op| op.name().to_owned());
    step.label.clone().unwrap_or_else(named)
}

fn labels(flow: &[Step]) -> Vec<String> {
    let mut labels: Vec<_> = leaves(flow).map(label).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// What the study has to say about the load that it asks for.
pub(crate) fn stored(
    plan: &LoadPlan,
    base: &Treatment,
    factors: &[Factor],
    diagnostics: &mut Diagnostics,
) -> Option<LoadRecord> {
    let factor = factors.iter().position(|factor| factor.is_load)? as u32;
    plan.record(base, factor).map_err(|diagnostic| diagnostics.push(diagnostic)).ok()
}
