//! A plan for people: what `benchmaster plan` shows.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use benchmaster_design::regular::{Fraction, Generator};
use benchmaster_design::term::{self, Term};
use benchmaster_record::results::{BlocksRecord, LoadCurve, LoadRecord, Replication, StudyRecord};
use benchmaster_units::{ByteSize, TimeSpan};
use serde::Serialize;

use super::design::text::{decimals, line, listed, more, row_text};
use super::design::words::bits;
use super::design::{
    BlockInput, DesignDescription, DesignFactor, DesignInput, MAX_ORDER, POWER, TextForm, describe,
};
use super::estimate::Estimate;
use super::setup::{self, LocalEmulation, PlannedNetwork, PlannedStep};
use super::study::Plan;
use crate::diagnostics::Diagnostic;
use crate::response_names::response_names;
use benchmaster_analysis::schedule::first_runs;

/// What a plan is, for people and for `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanDescription {
    /// Name of the study.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The target of the base treatment.
    pub target: String,
    /// The design: what it can tell and what it cannot.
    pub design: DesignDescription,
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
    pub factors: Vec<PlannedFactor>,
    /// The load curve that is measured for each treatment.
    pub load: Option<PlannedLoad>,
    /// What a run does, in order.
    pub workloads: Vec<PlannedWorkload>,
    /// Who generates load, and where: of the base treatment.
    pub clients: String,
    /// What is emulated between clients and server, over all treatments.
    pub networks: Vec<PlannedNetwork>,
    /// What is read and run beside every measured phase, in the base treatment.
    pub beside: String,
    /// What is done to set the server up, over all treatments.
    pub steps: Vec<PlannedStep>,
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
    pub name: String,
    /// Its levels; the first is the base level.
    pub levels: Vec<PlannedLevel>,
}

/// A level of a factor of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedLevel {
    pub name: String,
    /// The parameters it sets, by path, as written in TOML.
    pub settings: BTreeMap<String, String>,
}

/// The load curves of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlannedLoad {
    /// What is asked for.
    #[serde(flatten)]
    pub record: LoadRecord,
    /// The loads, as written in TOML, among which is searched.
    pub loads: Vec<String>,
}

impl PlannedLoad {
    fn of(study: &StudyRecord) -> Option<Self> {
        let record = study.design_details.load.clone()?;
        let factor = study.factors.get(record.factor as usize)?;
        Some(Self { loads: factor.levels.clone(), record })
    }

    fn text(&self, replicates: &Replication) -> String {
        let PlannedLoad { record, loads } = self;
        let (from, to) =
            (loads.first().map_or("?", String::as_str), loads.last().map_or("?", String::as_str));
        let until = match record.curve {
            LoadCurve::Open => {
                format!("less than {} % of it are achieved", decimals(100.0 * record.achieved, 3))
            }
            LoadCurve::Closed => "the rate no longer grows".to_owned(),
        };
        let goal = record.goal.map_or_else(String::new, |goal| {
            let most = TimeSpan(Duration::from_nanos(goal.at_most_ns as u64));
            format!(", or the latency's {} is above {most}", goal.latency.name())
        });
        let first = match replicates {
            Replication::Fixed(n) => *n,
            Replication::Sequential { min, .. } => *min,
        };
        format!(
            "{} from {from} to {to} in {} steps until {until}{goal}; then between two steps, {} loads in all; {first} to {} \
             runs of each",
            record.parameter,
            record.rise.len(),
            loads.len(),
            record.max_replicates
        )
    }
}

/// A workload of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedWorkload {
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
    /// Block, from 0, when runs are blocked.
    pub block: Option<u32>,
    /// Number of the whole plot in the order of time, from 0, when factors are hard to change.
    pub whole_plot: Option<u32>,
}

/// So many runs are listed in the text form.
const LISTED: usize = 400;

impl Plan {
    /// The design of the study, to be described: stages that were added later are not in it.
    pub fn design_input(&self) -> DesignInput<'static> {
        let study = &self.study;
        let details = &study.design_details;
        let numbers = |factors: &[u32]| factors.iter().map(|&factor| factor as usize).collect::<Vec<_>>();
        let own = study.treatments.iter().filter(|treatment| treatment.stage == 0 && !treatment.centre);
        // The loads are no factor of the design: curves begin with the first, and what they show decides about the others.
        let factors = study.designed_factors();
        let rows: Vec<Vec<u32>> =
            own.clone().map(|treatment| treatment.levels.iter().take(factors).copied().collect()).collect();
        let before_exclusion =
            (!details.excluded.is_empty()).then(|| rows.iter().chain(&details.excluded).cloned().collect());
        // The centre is no level of the design.
        let levels = study.design_levels();
        let factors =
            study.factors.iter().take(factors).zip(levels).enumerate().map(|(index, (factor, levels))| {
                DesignFactor {
                    name: factor.name.clone(),
                    levels: factor.levels.iter().take(levels as usize).cloned().collect(),
                    hard_to_change: details.hard_to_change.contains(&(index as u32)),
                }
            });
        let mut blocks = BlockInput::default();
        match &details.blocks {
            None => {}
            Some(BlocksRecord::Replicates) => blocks.replicates = true,
            Some(BlocksRecord::Named { names }) => blocks.named.clone_from(names),
            Some(BlocksRecord::Confounded { effects, .. }) => {
                blocks.replicates = true;
                blocks.of_treatment = own.map(|treatment| treatment.block).collect();
                blocks.confounded = effects.iter().filter_map(|effect| bits(&numbers(effect))).collect();
                blocks.generators = independent(&blocks.confounded);
            }
        }
        DesignInput {
            kind: study.design.clone(),
            fraction: self.fraction(),
            factors: factors.collect(),
            rows: rows.into(),
            before_exclusion,
            replicates: study.replicates,
            interest: details.interest.iter().map(|effect| numbers(effect)).collect(),
            blocks,
            centre_points: details.centre_points,
            max_order: MAX_ORDER,
            confidence: study.confidence,
            power: POWER,
            spread: None,
            effect: None,
            pilot: None,
        }
    }

    /// The fraction that the treatments of the file are; what exclusions leave of one is none.
    pub(super) fn fraction(&self) -> Option<Fraction> {
        let details = &self.study.design_details;
        if details.generators.is_empty() || !details.excluded.is_empty() {
            return None;
        }
        let letters: Vec<_> = (0..self.study.factors.len()).map(term::letter).collect();
        let generators = details.generators.iter().map(|text| Generator::parse(text, &letters).ok());
        Fraction::from_generators(letters.len() as u32, &generators.collect::<Option<Vec<_>>>()?).ok()
    }

    /// The plan for people, with what can be known of this host only: by what means networks would be emulated here.
    /// `design` is what [`describe`] says of [`Plan::design_input`].
    pub fn describe_here(&self, design: DesignDescription, emulation: LocalEmulation) -> PlanDescription {
        PlanDescription {
            networks: setup::networks(&self.treatments, Some(emulation)),
            ..self.describe_with(design)
        }
    }

    /// The plan for people.
    pub fn describe(&self) -> PlanDescription {
        self.describe_with(describe(&self.design_input()))
    }

    fn describe_with(&self, design: DesignDescription) -> PlanDescription {
        let study = &self.study;
        let base = self.treatments.first();
        let responses = base.map(|base| {
            let pairs = base.settings.workloads.iter().zip(&base.workloads);
            pairs
                .flat_map(|((name, spec), (_, full))| {
                    response_names(name, spec, full, base.settings.access())
                })
                .collect()
        });
        let factors = study.factors.iter().take(study.designed_factors()).map(|factor| PlannedFactor {
            name: factor.name.clone(),
            levels: factor
                .levels
                .iter()
                .zip(&factor.settings)
                .map(|(name, settings)| PlannedLevel { name: name.clone(), settings: settings.clone() })
                .collect(),
        });
        let runs = first_runs(study).into_iter().zip(0..).map(|(run, position)| PlannedRun {
            position,
            treatment: run.key.treatment,
            replicate: run.key.replicate,
            block: run.block,
            whole_plot: run.whole_plot,
        });
        let workloads = study.workloads.iter().map(|workload| PlannedWorkload {
            name: workload.name.clone(),
            use_name: workload.use_name.clone(),
        });
        PlanDescription {
            name: study.name.clone(),
            description: study.description.clone(),
            target: base.map(|base| base.settings.target.place().to_owned()).unwrap_or_default(),
            design,
            replicates: study.replicates,
            order: study.order.clone(),
            seed: study.seed,
            generator: study.generator.clone(),
            confidence: study.confidence,
            response: study.primary_response.clone(),
            responses: responses.unwrap_or_default(),
            factors: factors.collect(),
            load: PlannedLoad::of(study),
            workloads: workloads.collect(),
            clients: base.map(|base| setup::clients(&base.settings)).unwrap_or_default(),
            networks: setup::networks(&self.treatments, None),
            beside: base.map(|base| setup::sampling(&base.settings)).unwrap_or_default(),
            steps: setup::steps(&self.treatments),
            treatments: study.treatments.iter().map(|treatment| treatment.label.clone()).collect(),
            runs: runs.collect(),
            estimate: self.estimate(),
            warnings: self.warnings.list().iter().map(Diagnostic::sentence).collect(),
        }
    }
}

impl PlanDescription {
    /// The description as plain text.
    pub fn render(&self, form: TextForm) -> String {
        let mut out = format!("study       {}\n", self.name);
        let mut line = |title: &str, text: String| line(&mut out, title, &text, form);
        if let Some(description) = &self.description {
            line("about", description.split_whitespace().collect::<Vec<_>>().join(" "));
        }
        line("target", self.target.clone());
        let workloads =
            self.workloads.iter().map(|w| format!("{} ({})", w.name, w.use_name)).collect::<Vec<_>>();
        line("clients", self.clients.clone());
        for network in &self.networks {
            let means = network.means.as_ref().map_or_else(String::new, |means| format!(": {means}"));
            line("network", format!("{}{means}", network.link));
        }
        line("each run", workloads.join(", then "));
        line("beside", self.beside.clone());
        line("response", format!("{}, {} % confidence", self.response, decimals(100.0 * self.confidence, 3)));
        if let Some(load) = &self.load {
            line("load", load.text(&self.replicates));
        }
        line("design", self.design.title.clone());
        line("replicates", self.replicates_text());
        line(
            "order",
            match self.order.as_str() {
                "random" => format!("random ({}, seed {})", self.generator, self.seed),
                order => order.to_owned(),
            },
        );
        line("runs", self.runs_text());
        line("time", self.time_text());
        line(
            "files",
            format!(
                "{} prepared before a run, {} in all",
                bytes(self.estimate.bytes_prepared),
                bytes(self.estimate.bytes_needed)
            ),
        );
        self.design.render_properties(&mut out, form);
        self.render_steps(&mut out);
        self.render_factors(&mut out);
        self.render_treatments(&mut out, form);
        self.design.render_aliases(&mut out, form);
        self.render_runs(&mut out, form);
        for warning in &self.warnings {
            let _ = writeln!(out, "\nwarning: {warning}");
        }
        self.design.render_advice(&mut out, form, true);
        out
    }

    fn replicates_text(&self) -> String {
        match self.replicates {
            Replication::Fixed(n) => n.to_string(),
            Replication::Sequential { min, max, relative_half_width } => format!(
                "{min} to {max}, until the interval is within ±{} % of the mean (a stop that depends on the data: \
                 intervals cover less often than they say)",
                decimals(100.0 * relative_half_width, 3)
            ),
        }
    }

    fn runs_text(&self) -> String {
        let Estimate { runs_min, runs_max, runs_likely, .. } = self.estimate;
        match runs_likely {
            Some(likely) => format!("about {likely} ({runs_min} to {runs_max}, as the data decide)"),
            None => self.design.runs_text(),
        }
    }

    fn time_text(&self) -> String {
        self.estimate.time.to_string()
    }

    /// Commands that are run on hosts, in full: some destroy what is there.
    fn render_steps(&self, out: &mut String) {
        if self.steps.is_empty() {
            return;
        }
        let _ = writeln!(out, "\nsteps on hosts");
        for step in &self.steps {
            let place = step.host.as_deref().unwrap_or(match step.on.as_str() {
                "server" => "this host",
                _ => "the clients' hosts",
            });
            let when = match step.when.as_str() {
                "end" => "at the end of a session".to_owned(),
                when => format!("before each {when}"),
            };
            let of = match &step.treatments[..] {
                [] => String::new(),
                [one] => format!(" of {one}"),
                [one, rest @ ..] => format!(" of {one} and {} more", rest.len()),
            };
            let _ = writeln!(out, "  {when}{of}, on {place} ({}):", step.name);
            for line in step.command.trim().lines() {
                let _ = writeln!(out, "      {line}");
            }
        }
    }

    fn render_factors(&self, out: &mut String) {
        if self.factors.is_empty() {
            return;
        }
        let _ = writeln!(out, "\nfactors");
        let width = self.factors.iter().map(|factor| factor.name.chars().count()).max().unwrap_or(0);
        for (factor, described) in self.factors.iter().zip(&self.design.factors) {
            let single = factor.levels.iter().all(|level| level.settings.len() == 1);
            // The middle of a centre point is no level of the design.
            let levels = factor.levels.iter().take(described.levels.len());
            let levels = levels.map(|level| level_text(level, single)).collect::<Vec<_>>().join(", ");
            let parameter = match factor.levels.first().and_then(|level| level.settings.keys().next()) {
                Some(path) if single => format!("{path}: "),
                _ => String::new(),
            };
            let hard = if described.hard_to_change { "  (hard to change)" } else { "" };
            let _ =
                writeln!(out, "  {}  {:<width$}  {parameter}{levels}{hard}", described.letter, factor.name);
        }
    }

    fn render_treatments(&self, out: &mut String, form: TextForm) {
        let _ = writeln!(out, "\ntreatments");
        let widths = self.design.table_widths(form);
        let mut signs = self.design.sign_table.rows.iter().map(|row| row_text(row, &widths));
        // Levels of other factors are in the labels.
        let two_level =
            !self.factors.is_empty() && self.design.factors.iter().all(|factor| factor.levels.len() == 2);
        if two_level {
            let letters = self.design.sign_table.columns.iter().zip(&widths);
            let letters: Vec<_> = letters.map(|(letter, &width)| format!("{letter:>width$}")).collect();
            let _ = writeln!(out, "        {}", letters.join(" "));
        }
        for (index, label) in self.treatments.iter().take(listed(self.treatments.len(), form)).enumerate() {
            let _ = match signs.next().filter(|_| two_level) {
                Some(signs) => writeln!(out, "  {index:>4}  {signs}  {label}"),
                None => writeln!(out, "  {index:>4}  {label}"),
            };
        }
        more(out, self.treatments.len(), form);
    }

    fn render_runs(&self, out: &mut String, form: TextForm) {
        let more = self.estimate.runs_max > self.runs.len() as u64;
        let _ = writeln!(out, "\norder of runs (treatment.replicate)");
        let most = if form.all { self.runs.len() } else { LISTED };
        let listed = &self.runs[..self.runs.len().min(most)];
        for group in listed.chunk_by(|a, b| (a.block, a.whole_plot) == (b.block, b.whole_plot)) {
            if let Some(PlannedRun { block: Some(block), .. }) = group.first() {
                let _ = write!(out, "  block {:<3}", block + 1);
            }
            if let Some(PlannedRun { whole_plot: Some(plot), .. }) = group.first() {
                let _ = write!(out, "  whole plot {:<3}", plot + 1);
            }
            let head =
                if out.ends_with('\n') { 0 } else { out.chars().rev().take_while(|&c| c != '\n').count() };
            for (number, row) in group.chunks(10).enumerate() {
                let cells: Vec<_> = row
                    .iter()
                    .map(|run| format!("{:>6}", format!("{}.{}", run.treatment, run.replicate)))
                    .collect();
                let indent = if number == 0 { 0 } else { head };
                let _ = writeln!(out, "{:indent$}  {}", "", cells.join(" ").trim_end());
            }
        }
        match self.runs.len().checked_sub(most) {
            Some(left) if left > 0 => {
                let _ = writeln!(out, "  … and {left} more (`--all` shows them, `--json` has them)");
            }
            _ if more => {
                let _ = writeln!(out, "  then round by round, each treatment that is not precise enough yet");
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

/// Terms of which all others are products, the shortest first.
fn independent(terms: &[Term]) -> Vec<Term> {
    let mut sorted = terms.to_vec();
    sorted.sort_by(|a, b| term::compare(*a, *b));
    let mut products = vec![0];
    let mut chosen = Vec::new();
    for of in sorted {
        if !products.contains(&of) {
            products.extend(products.clone().into_iter().map(|other| other ^ of));
            chosen.push(of);
        }
    }
    chosen
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
    use crate::plan::design::text::range;

    #[test]
    fn quantities_for_people() {
        assert_eq!(bytes(64 << 20), "64MiB");
        assert_eq!(bytes(20_000_000_000), "20GB");
        assert_eq!(bytes(123_456_789), "123.457MB");
        assert_eq!(bytes(0), "0B");
        assert_eq!(range(5.0, 30.0, |n| n.to_string()), "5 to 30");
    }

    #[test]
    fn generators_of_blocks_are_found_among_what_is_confounded() {
        // AB, ACD and BCD: any two give the third.
        assert_eq!(independent(&[0b1101, 0b1110, 0b0011]), [0b0011, 0b1101]);
    }
}
