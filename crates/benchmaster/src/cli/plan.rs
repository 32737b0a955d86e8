//! The arguments of `plan`.

use std::path::PathBuf;

use benchmaster_study::plan::design::{DesignRequest, Spread};
use clap::{ArgGroup, Args};

use super::complete::{results, studies};
use super::{ChangeArgs, ExtendArgs};

/// Show what a study will run and which effects it can resolve
///
/// Of a study: treatments, order, time, space. Of every design, with or without a study: what is varied in which combinations
/// (the sign table), which effects cannot be separated (aliases), how precise the result can be, and better designs.
/// docs/design.md explains how to read it.
///
/// Factors have letters in their order: A to H, J to Z. Effects are written by letters (AB) or names (delay*sync).
#[derive(Debug, Args)]
#[command(override_usage = "benchmaster plan [OPTIONS] <STUDY>
       benchmaster plan [OPTIONS] --factors <NAMES|N> | --levels <N,...>
       benchmaster plan [OPTIONS] --data <FILE> [--factors <NAMES>]
       benchmaster plan [OPTIONS] --extend <DIR>")]
#[command(group = ArgGroup::new("subject").args(["study", "factors", "levels", "data", "extend"]).multiple(true).required(true))]
#[command(after_help = "\
Examples:
  benchmaster plan studies/quickstart.toml
  benchmaster plan studies/quickstart.toml --pilot results/quickstart      time and precision from runs that were measured
  benchmaster plan --factors version,storage,sync,size --resolution 4      fewest treatments with main effects clear
  benchmaster plan --factors 6 --generators D=AB,E=AC,F=BC --replicates 5 --sd 5%
  benchmaster plan --factors version,sync --sd 5% --effect 3%              how many replicates?
  benchmaster plan --factors 7 --runs 16 --clear AB,AC --blocks 2
  benchmaster plan --levels 2,2,2,2,2,3 --runs 48
  benchmaster plan --data design.csv --factors version,sync --json | jq .chains
  benchmaster plan --extend results/wan --resolve delay*sync               what to run in addition; --apply adds it")]
pub(crate) struct PlanArgs {
    /// The study file
    #[arg(conflicts_with_all = WITHOUT_STUDY, add = studies())]
    pub(crate) study: Option<PathBuf>,

    /// Factors without a study: names, each with its levels if you like (sync=off:on), or how many there are. With --data:
    /// the columns that are factors [default: all]
    #[arg(long, value_name = "NAMES|N", value_delimiter = ',', help_heading = "Designs without a study")]
    pub(crate) factors: Vec<String>,
    /// Number of levels of each factor [default: 2]
    #[arg(long, value_name = "N,...", value_delimiter = ',', help_heading = "Designs without a study")]
    pub(crate) levels: Vec<u32>,
    /// A fraction: added factors as products of others
    #[arg(long, value_name = "D=AB,...", value_delimiter = ',', help_heading = "Designs without a study")]
    pub(crate) generators: Vec<String>,
    /// The smallest fraction of this resolution: 3 main effects are clear of each other, 4 also of interactions of two
    /// factors, 5 these too
    #[arg(long, value_name = "R", help_heading = "Designs without a study")]
    pub(crate) resolution: Option<u32>,
    /// The best fraction (or orthogonal array) with N treatments
    #[arg(long, value_name = "N", help_heading = "Designs without a study")]
    pub(crate) runs: Option<u64>,
    /// Effects of interest. Without another choice: the smallest fraction in which they are clear of main effects and
    /// interactions of two factors
    #[arg(long, value_name = "AB,...", value_delimiter = ',', help_heading = "Designs without a study")]
    pub(crate) clear: Vec<String>,
    /// A Plackett-Burman design, for screening
    #[arg(long, help_heading = "Designs without a study")]
    pub(crate) plackett_burman: bool,
    /// The smallest orthogonal array, for factors with any numbers of levels
    #[arg(long, help_heading = "Designs without a study")]
    pub(crate) orthogonal_array: bool,
    /// One factor at a time
    #[arg(long, help_heading = "Designs without a study")]
    pub(crate) one_at_a_time: bool,
    /// Blocks in each replicate: 2, 4, 8, ...
    #[arg(long, value_name = "N", help_heading = "Designs without a study")]
    pub(crate) blocks: Option<u32>,
    /// Every replicate is complete before the next one begins, and is a block
    #[arg(long, help_heading = "Designs without a study")]
    pub(crate) replicate_blocks: bool,
    /// Factors that are set up as rarely as possible (split plots)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Designs without a study")]
    pub(crate) hard_to_change: Vec<String>,
    /// Runs in the middle of all factors
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Designs without a study",
        value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) centre_points: u32,
    /// Replicates of each treatment
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Designs without a study",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) replicates: u32,
    /// Confidence level of the intervals
    #[arg(long, value_name = "LEVEL", default_value_t = 0.95, help_heading = "Designs without a study",
        value_parser = level)]
    pub(crate) confidence: f64,
    /// A CSV file whose columns are factors: which effects can these rows resolve?
    #[arg(long, value_name = "FILE", help_heading = "Designs without a study", conflicts_with_all = WITHOUT_DATA)]
    pub(crate) data: Option<PathBuf>,

    /// Results of an earlier study: how long its runs took, and how much they varied
    #[arg(long, value_name = "DIR", help_heading = "Time and precision", add = results())]
    pub(crate) pilot: Option<PathBuf>,
    /// The response of the pilot [default: the pilot's own]
    #[arg(long, value_name = "NAME", requires = "pilot", help_heading = "Time and precision")]
    pub(crate) response: Option<String>,
    /// Standard deviation of runs of one treatment, as a number or in percent of the mean
    #[arg(long, value_name = "X|X%", value_parser = spread, help_heading = "Time and precision")]
    pub(crate) sd: Option<Spread>,
    /// How many replicates find an effect (2q) of this size? With --sd or --pilot
    #[arg(long, value_name = "X|X%", value_parser = spread, help_heading = "Time and precision")]
    pub(crate) effect: Option<Spread>,
    /// Probability with which the smallest detectable effect is found
    #[arg(long, value_name = "PART", default_value_t = 0.8, value_parser = level, help_heading = "Time and precision")]
    pub(crate) power: f64,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,

    #[command(flatten)]
    pub(crate) extension: ExtendArgs,

    /// Highest order of interactions to list
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    pub(crate) max_order: u32,
    /// Print long tables in full
    #[arg(long)]
    pub(crate) all: bool,
    /// Print the plan as JSON; docs/analysis-json.md describes it
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options that a study file has keys for.
const WITHOUT_STUDY: [&str; 15] = [
    "factors",
    "levels",
    "generators",
    "resolution",
    "runs",
    "clear",
    "plackett_burman",
    "orthogonal_array",
    "one_at_a_time",
    "blocks",
    "replicate_blocks",
    "hard_to_change",
    "centre_points",
    "replicates",
    "confidence",
];

/// Options that make other rows than those of a file.
const WITHOUT_DATA: [&str; 13] = [
    "study",
    "levels",
    "generators",
    "resolution",
    "runs",
    "plackett_burman",
    "orthogonal_array",
    "one_at_a_time",
    "blocks",
    "replicate_blocks",
    "hard_to_change",
    "centre_points",
    "replicates",
];

impl PlanArgs {
    /// The design that the options ask for.
    pub(crate) fn request(&self) -> DesignRequest {
        DesignRequest {
            factors: self.factors.clone(),
            levels: self.levels.clone(),
            generators: self.generators.clone(),
            resolution: self.resolution,
            runs: self.runs,
            clear: self.clear.clone(),
            plackett_burman: self.plackett_burman,
            orthogonal_array: self.orthogonal_array,
            one_at_a_time: self.one_at_a_time,
            blocks: self.blocks,
            replicate_blocks: self.replicate_blocks,
            hard_to_change: self.hard_to_change.clone(),
            centre_points: self.centre_points,
            replicates: self.replicates,
            max_order: self.max_order,
            confidence: self.confidence,
            power: self.power,
        }
    }
}

fn spread(text: &str) -> Result<Spread, String> {
    let (number, of) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (text, 1.0),
    };
    let value: f64 =
        number.parse().map_err(|_| format!("`{text}` is neither a number nor a percentage such as `5%`"))?;
    if !(value.is_finite() && value > 0.0) {
        return Err(format!("`{text}` is not above 0"));
    }
    Ok(if of > 1.0 { Spread::Relative(value / of) } else { Spread::Absolute(value) })
}

fn level(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().map_err(|error| error.to_string())?;
    if value > 0.5 && value < 1.0 { Ok(value) } else { Err(format!("`{text}` is not between 0.5 and 1")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_and_levels() {
        assert_eq!(spread("5%"), Ok(Spread::Relative(0.05)));
        assert_eq!(spread("2.5"), Ok(Spread::Absolute(2.5)));
        assert!(spread("much").unwrap_err().contains("neither a number nor a percentage"));
        assert!(spread("-1").is_err() && spread("nan").is_err() && spread("0%").is_err());
        assert_eq!(level("0.9"), Ok(0.9));
        assert!(level("95").is_err() && level("1").is_err());
    }
}
