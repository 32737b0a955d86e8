//! A plan for people: what `benchmaster plan` shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use benchmaster_design::run_order;
use benchmaster_store::record::Replication;
use benchmaster_units::ByteSize;
use serde::Serialize;

use super::{Estimate, Plan};
use crate::response_names::response_names;
use crate::schedule::order_of;

/// What a plan is, for people and for `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanDescription {
    /// Name of the study.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The target of the base treatment.
    pub target: String,
    /// Kind of design.
    pub design: String,
    /// How often each treatment is run.
    pub replicates: Replication,
    /// `random` or `listed`.
    pub order: String,
    /// Seed of the order.
    pub seed: u64,
    /// Name of the random generator.
    pub generator: String,
    /// Confidence level of intervals.
    pub confidence: f64,
    /// The response that the study is about.
    pub response: String,
    /// All responses of the base treatment.
    pub responses: Vec<String>,
    /// What is varied.
    pub factors: Vec<PlannedFactor>,
    /// What a run does, in order.
    pub workloads: Vec<PlannedWorkload>,
    /// Labels of the treatments in standard order.
    pub treatments: Vec<String>,
    /// The runs in the order in which they are done; of a sequential study those that are done in any case.
    pub runs: Vec<PlannedRun>,
    /// What it will take.
    pub estimate: Estimate,
    /// What the study's author should know.
    pub warnings: Vec<String>,
}

/// A factor of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedFactor {
    /// Its name.
    pub name: String,
    /// Its levels; the first is the base level.
    pub levels: Vec<PlannedLevel>,
}

/// A level of a factor of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedLevel {
    /// Its name.
    pub name: String,
    /// The parameters it sets, by path, as written in TOML.
    pub settings: BTreeMap<String, String>,
}

/// A workload of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedWorkload {
    /// Its name.
    pub name: String,
    /// The built-in it uses, or `custom`.
    pub use_name: String,
}

/// A run of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PlannedRun {
    /// Position in the order, from 0.
    pub position: u32,
    /// Index of the treatment.
    pub treatment: u32,
    /// Replicate, from 0.
    pub replicate: u32,
}

/// So many runs and treatments are listed in full in the text form.
const LISTED: usize = 40;

impl Plan {
    /// The plan for people.
    pub fn describe(&self) -> PlanDescription {
        let study = &self.study;
        let least = match study.replicates {
            Replication::Fixed(n) => n,
            Replication::Sequential { min, .. } => min,
        };
        let order = run_order(study.treatments.len() as u32, least, order_of(study), study.seed);
        let base = self.treatments.first();
        let responses = base.map(|base| {
            let pairs = base.settings.workloads.iter().zip(&base.workloads);
            pairs.flat_map(|((name, spec), (_, full))| response_names(name, spec, full)).collect()
        });
        let factors = study.factors.iter().map(|factor| PlannedFactor {
            name: factor.name.clone(),
            levels: factor
                .levels
                .iter()
                .zip(&factor.settings)
                .map(|(name, settings)| PlannedLevel { name: name.clone(), settings: settings.clone() })
                .collect(),
        });
        let runs = order.into_iter().zip(0..).map(|((treatment, replicate), position)| PlannedRun {
            position,
            treatment,
            replicate,
        });
        let workloads = study.workloads.iter().map(|workload| PlannedWorkload {
            name: workload.name.clone(),
            use_name: workload.use_name.clone(),
        });
        PlanDescription {
            name: study.name.clone(),
            description: study.description.clone(),
            target: base.map(|base| base.settings.target.path.clone()).unwrap_or_default(),
            design: study.design.clone(),
            replicates: study.replicates,
            order: study.order.clone(),
            seed: study.seed,
            generator: study.generator.clone(),
            confidence: study.confidence,
            response: study.primary_response.clone(),
            responses: responses.unwrap_or_default(),
            factors: factors.collect(),
            workloads: workloads.collect(),
            treatments: study.treatments.iter().map(|treatment| treatment.label.clone()).collect(),
            runs: runs.collect(),
            estimate: self.estimate(),
            warnings: self.warnings.list().iter().map(|warning| warning.message.clone()).collect(),
        }
    }
}

impl PlanDescription {
    /// The description as plain text.
    pub fn render(&self) -> String {
        let mut out = format!("study       {}\n", self.name);
        let mut line = |title: &str, text: String| {
            let _ = writeln!(out, "{title:<12}{text}");
        };
        if let Some(description) = &self.description {
            line("about", description.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        line("target", self.target.clone());
        let workloads =
            self.workloads.iter().map(|w| format!("{} ({})", w.name, w.use_name)).collect::<Vec<_>>();
        line("each run", workloads.join(", then "));
        line("response", format!("{}, {} % confidence", self.response, trim(100.0 * self.confidence)));
        line("design", format!("{}, {}", self.design, counted(self.treatments.len() as u64, "treatment")));
        line("replicates", self.replicates_text());
        line(
            "order",
            match self.order.as_str() {
                "random" => format!("random ({}, seed {})", self.generator, self.seed),
                order => order.to_owned(),
            },
        );
        line("runs", range(self.estimate.runs_min as f64, self.estimate.runs_max as f64, |n| n.to_string()));
        line("time", self.time_text());
        line(
            "files",
            format!(
                "{} prepared before a run, {} in all",
                bytes(self.estimate.bytes_prepared),
                bytes(self.estimate.bytes_needed)
            ),
        );
        self.render_factors(&mut out);
        self.render_treatments(&mut out);
        self.render_runs(&mut out);
        for warning in &self.warnings {
            let _ = writeln!(out, "\nwarning: {warning}");
        }
        out
    }

    fn replicates_text(&self) -> String {
        match self.replicates {
            Replication::Fixed(n) => n.to_string(),
            Replication::Sequential { min, max, relative_half_width } => format!(
                "{min} to {max}, until the interval is within ±{} % of the mean (a stop that depends on the data: \
                 intervals cover less often than they say)",
                trim(100.0 * relative_half_width)
            ),
        }
    }

    fn time_text(&self) -> String {
        let estimate = &self.estimate;
        let time = range(estimate.seconds_min, estimate.seconds_max, duration);
        let open_ended = estimate.open_ended.join(", ");
        match (open_ended.is_empty(), estimate.seconds_max > 0.0) {
            (true, _) => format!("{time}, and preparation"),
            (false, true) => format!("{time}, and preparation, and what {open_ended} will take"),
            (false, false) => format!("cannot be told: {open_ended} runs until its work is done"),
        }
    }

    fn render_factors(&self, out: &mut String) {
        if self.factors.is_empty() {
            return;
        }
        let _ = writeln!(out, "\nfactors");
        let width = self.factors.iter().map(|factor| factor.name.len()).max().unwrap_or(0);
        for factor in &self.factors {
            let single = factor.levels.iter().all(|level| level.settings.len() == 1);
            let levels =
                factor.levels.iter().map(|level| level_text(level, single)).collect::<Vec<_>>().join(", ");
            let parameter = match factor.levels.first().and_then(|level| level.settings.keys().next()) {
                Some(path) if single => format!("{path}: "),
                _ => String::new(),
            };
            let _ = writeln!(out, "  {:<width$}  {parameter}{levels}", factor.name);
        }
    }

    fn render_treatments(&self, out: &mut String) {
        let _ = writeln!(out, "\ntreatments");
        for (index, label) in self.treatments.iter().take(LISTED).enumerate() {
            let _ = writeln!(out, "  {index:>4}  {label}");
        }
        if self.treatments.len() > LISTED {
            let _ = writeln!(out, "  … and {} more", self.treatments.len() - LISTED);
        }
    }

    fn render_runs(&self, out: &mut String) {
        let more = self.estimate.runs_max > self.runs.len() as u64;
        let _ = writeln!(out, "\norder of runs (treatment.replicate)");
        for row in self.runs[..self.runs.len().min(10 * LISTED)].chunks(10) {
            let cells: Vec<_> = row
                .iter()
                .map(|run| format!("{:>6}", format!("{}.{}", run.treatment, run.replicate)))
                .collect();
            let _ = writeln!(out, "  {}", cells.join(" ").trim_end());
        }
        match self.runs.len().checked_sub(10 * LISTED) {
            Some(left) if left > 0 => {
                let _ = writeln!(out, "  … and {left} more");
            }
            _ if more => {
                let _ = writeln!(out, "  then round by round, each treatment that is not tight yet");
            }
            _ => {}
        }
    }
}

/// The name of a level and what it sets, unless the name says so; without the path when there is a `single` one.
fn level_text(level: &PlannedLevel, single: bool) -> String {
    let name = &level.name;
    let set = level
        .settings
        .iter()
        .map(|(path, value)| if single { value.clone() } else { format!("{path} = {value}") });
    let set = set.collect::<Vec<_>>().join(", ");
    if set.trim_matches('"') == name { name.clone() } else { format!("{name} ({set})") }
}

fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// `min`, or `min to max` when they differ.
fn range(min: f64, max: f64, text: impl Fn(f64) -> String) -> String {
    if min == max { text(min) } else { format!("{} to {}", text(min), text(max)) }
}

/// A number with at most three decimals, and none that are 0.
fn trim(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{} s", trim(seconds)),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// Exact when it is a round number, else to three digits.
fn bytes(count: u64) -> String {
    let exact = ByteSize(count).to_string();
    let digits = exact.chars().filter(char::is_ascii_digit).count();
    if digits <= 4 {
        return exact;
    }
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.iter().find(|(_, factor)| count as f64 >= *factor) {
        Some((unit, factor)) => format!("{:.3}{unit}", count as f64 / factor),
        None => exact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_for_people() {
        assert_eq!(duration(7.5), "7.5 s");
        assert_eq!(duration(60.0), "1 min 00 s");
        assert_eq!(duration(7260.0), "2 h 01 min");
        assert_eq!(bytes(64 << 20), "64MiB");
        assert_eq!(bytes(20_000_000_000), "20GB");
        assert_eq!(bytes(123_456_789), "123.457MB");
        assert_eq!(bytes(0), "0B");
        assert_eq!(range(5.0, 30.0, trim), "5 to 30");
    }
}
