//! The sections of a report as sentences and tables, which every renderer shows.

pub(crate) mod clients;
pub(crate) mod effects;
pub(crate) mod results;
pub(crate) mod wire;

use benchmaster_analysis::Analysis;

use crate::document::Table;

/// Leaves out the column of treatments where a study has only one.
fn by_treatment(table: &mut Table, analysis: &Analysis) {
    if analysis.treatments.len() == 1 {
        table.without_first();
    }
}
