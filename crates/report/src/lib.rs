//! What is shown: one `Document` of headings, sentences, tables, plots and notes, rendered for the [`terminal`], as a
//! self-contained [`html`] page and as Markdown; tables for other programs ([`export`]).
pub mod details;
mod document;
pub mod export;
pub mod html;
#[cfg(test)]
mod made_up;
mod overview;
mod plots;
mod sections;
pub mod terminal;

use benchmaster_units::format;
