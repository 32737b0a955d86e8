//! The study file and the plan made of it.
//!
//! A [`StudyFile`](file::StudyFile) is read from TOML, every mistake being reported at its place
//! ([`diagnostics`]); a [`Plan`](plan::Plan) lists its treatments; `benchmaster_analysis::schedule` says which run comes next.
#![deny(missing_docs)]

pub mod battery;
pub mod diagnostics;
pub mod file;
pub mod flow_operations;
pub mod plan;
pub mod response_names;
pub mod schema;
pub mod settings;
