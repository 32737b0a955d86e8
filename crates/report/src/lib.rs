//! What is shown: one [`Document`] of headings, sentences, tables, plots and notes for each of the [`pages`], rendered for the
//! [`terminal`], as a self-contained [`html`] page and as Markdown; tables for other programs ([`export`]), and verdicts for CI ([`verdicts`]).
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
pub mod verdicts;

pub use document::Document;

/// The documents that commands show.
pub mod pages {
    pub use crate::sections::compare::document as comparison;
    pub use crate::sections::conformance::document as conformance;
    pub use crate::sections::differences::Compared;
    pub use crate::sections::doctor::{Ability, document as doctor};
    pub use crate::sections::durability::document as witness;
    pub use crate::sections::experiment::{document as experiment, sample};
    pub use crate::sections::exploration::{
        Exploration, ExploredEvent, ExploredFailure, ExploredPlace, document as exploration,
    };
    pub use crate::sections::findings::{document as diagnosis, explanation};
    pub use crate::sections::hash_cast::{
        HashCast, HashCastFlows, HashCastLoads, HashCastRatio, document as hash_cast,
    };
    pub use crate::sections::history::document as history;
    pub use crate::sections::kept::{Kept, document as kept};
    pub use crate::sections::study::document as study;
}

use benchmaster_units::format;
