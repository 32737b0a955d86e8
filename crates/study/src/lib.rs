//! Study file, plan, runner, resume and validity checks.
//!
//! A [`StudyFile`](file::StudyFile) is read from TOML, every mistake being reported at its place
//! ([`diagnostics`]); a [`Plan`](plan::Plan) lists its treatments; `benchmaster_analysis::schedule` says which run comes next.
#![deny(missing_docs)]

pub mod battery;
pub mod diagnostics;
pub mod expect;
pub mod file;
mod flow_operations;
pub mod lab_look;
pub mod plan;
pub mod response_names;
pub mod runner;
pub mod schema;
pub mod settings;
pub mod validity;
