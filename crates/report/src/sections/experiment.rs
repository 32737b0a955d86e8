//! Documents without a study: the effects in a file of data, one sample of it, and a model.

use benchmaster_analysis::experiment::{Experiment, Sample};

use super::effects::{experiment, level_means};
use crate::document::{Block, Document, Section};
use crate::format;
use crate::plots::effects::of_experiment;

/// The effects in a table of runs without a study.
pub fn document(title: String, notes: &[String], found: &Experiment) -> Document {
    let facts = format!(
        "{} of {}; intervals are at {}.",
        format::plural(found.runs, "run"),
        format::plural(found.treatments, "treatment"),
        format::percent(found.confidence)
    );
    let mut lead = notes.to_vec();
    lead.push(facts);
    Document {
        kind: "Benchmaster analysis",
        title,
        lead,
        sections: vec![
            Section::new("effects", format!("Effects on {}", found.response))
                .full(experiment(found, of_experiment(found)))
                .full(level_means(found)),
        ],
    }
}

pub fn sample(title: String, notes: &[String], found: &Sample) -> Document {
    let section = Section::new("answer", "Answer").brief([Block::Answer(found.sentences.clone())]);
    Document { kind: "Benchmaster analysis", title, lead: notes.to_vec(), sections: vec![section] }
}
