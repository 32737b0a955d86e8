//! Terminal tables, the HTML report and exports.
//!
//! * [`terminal`]: what `run` and `analyze` print.
//! * [`html`]: the self-contained report page.
//! * [`mod@format`]: numbers as people read them.
#![deny(missing_docs)]

pub mod export;
pub mod format;
pub mod html;
mod overview;
pub mod terminal;
