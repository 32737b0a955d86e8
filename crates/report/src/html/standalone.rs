//! Pages of a few figures, without a study around them.

use benchmaster_analysis::experiment::Experiment;
use serde::Serialize;

use super::figure::Figure;
use super::page::{PlotHead, head};
use super::{HtmlError, document, effects};
use crate::document::Table;
use crate::format;

/// All that the template of such a page shows.
#[derive(Debug, Serialize)]
pub(super) struct Standalone {
    pub(super) brand: &'static str,
    pub(super) title: String,
    /// What was calculated.
    pub(super) lead: String,
    pub(super) answer: Vec<String>,
    pub(super) plots: Vec<PlotHead>,
    pub(super) tables: Vec<Table>,
    pub(super) version: &'static str,
}

impl Standalone {
    pub(super) fn new(brand: &'static str, title: String, lead: String, figures: &[Figure]) -> Self {
        Self {
            brand,
            title,
            lead,
            answer: Vec::new(),
            plots: figures.iter().map(head).collect(),
            tables: Vec::new(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    pub(super) fn render(&self, figures: &[Figure]) -> Result<String, HtmlError> {
        document("figures.html", &self.title, &figures.iter().collect::<Vec<_>>(), self)
    }
}

/// Makes a page of an experiment alone: its sentences and its plots, as for data that come from a file.
///
/// # Errors
/// Only on defects of this program.
pub fn experiment(experiment: &Experiment) -> Result<String, HtmlError> {
    let figures = effects::of_experiment(experiment);
    let title = format!("Effects on {}", experiment.response);
    let lead = format!(
        "{} of {}; intervals are at {}.",
        format::plural(experiment.runs, "run"),
        format::plural(experiment.treatments, "treatment"),
        format::percent(experiment.confidence)
    );
    let mut page = Standalone::new("Benchmaster analysis", title, lead, &figures);
    page.answer.clone_from(&experiment.sentences);
    page.render(&figures)
}
