//! The sections of documents, which every renderer shows.

pub(crate) mod answer;
mod clients;
pub(crate) mod compare;
mod conditions;
mod course;
pub(crate) mod differences;
pub(crate) mod effects;
pub(crate) mod experiment;
pub(crate) mod findings;
pub(crate) mod hash_cast;
pub(crate) mod history;
mod load;
pub(crate) mod results;
pub(crate) mod study;
pub(crate) mod validity;
mod wire;

use benchmaster_analysis::Analysis;

use crate::document::Table;

/// Leaves out the column of treatments where a study has only one.
fn by_treatment(table: &mut Table, analysis: &Analysis) {
    if analysis.treatments.len() == 1 {
        table.without_first();
    }
}
