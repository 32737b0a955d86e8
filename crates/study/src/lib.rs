//! The study file and the plan made of it.
//!
//! A [`StudyFile`](file::StudyFile) is read from TOML, and every mistake is reported where it is written
//! ([`diagnostics`]); a [`Plan`](plan::Plan) lists its treatments; `benchmaster_analysis::schedule` says which run comes next.

pub mod baseline;
pub mod battery;
mod checks;
pub mod diagnostics;
pub mod file;
pub mod flow_operations;
mod path;
pub mod plan;
pub mod response_names;
mod scalar;
pub mod schema;
pub mod settings;
mod suggest;
pub mod target;
