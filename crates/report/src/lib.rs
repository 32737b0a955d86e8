//! Terminal tables, the HTML report and exports.
//!
//! * [`details`]: what is too large to be held for all runs at once.
//! * [`terminal`]: what `run` and `analyze` print.
//! * [`html`]: the self-contained report page.
#![deny(missing_docs)]

pub mod details;
mod document;
pub mod export;
pub mod html;
#[cfg(test)]
mod made_up;
mod overview;
mod sections;
pub mod terminal;

use benchmaster_units::format;
