//! The effects in data that are no study's.

use benchmaster_analysis::experiment::{Experiment, Sample};

use super::TextOptions;
use super::grid::Text;
use crate::sections::effects::{experiment, level_means};

/// The effects in a table of runs that is no study's.
pub fn experiment_text(title: &str, notes: &[String], found: &Experiment, options: &TextOptions) -> String {
    let mut text = Text::new(options);
    text.bold_line(&format!("{title}: effects on {}", found.response));
    notes.iter().for_each(|note| text.wrapped("  ", note));
    text.blocks(&experiment(found));
    text.tables(&level_means(found));
    text.finish()
}

/// What is known of one sample.
pub fn sample_text(
    title: &str,
    response: &str,
    notes: &[String],
    found: &Sample,
    options: &TextOptions,
) -> String {
    let mut text = Text::new(options);
    text.bold_line(&format!("{title}: {response}"));
    for line in notes.iter().chain(&found.sentences) {
        text.wrapped("  ", line);
    }
    text.finish()
}
