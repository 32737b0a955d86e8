//! Study file, plan, runner, resume and validity checks.
//!
//! A [`StudyFile`](file::StudyFile) is read from TOML, every mistake being reported at its place
//! ([`diagnostics`]); a [`Plan`](plan::Plan) lists its treatments; [`schedule`] says which run comes next.
#![deny(missing_docs)]

pub mod adaptive;
pub mod analysis;
pub mod battery;
pub mod compare;
pub mod derived;
pub mod diagnostics;
pub mod expect;
pub mod experiment;
pub mod file;
mod flow_operations;
pub mod lab_look;
pub mod load;
pub mod plan;
pub mod response_names;
pub mod responses;
pub mod runner;
pub mod schedule;
pub mod schema;
pub mod settings;
pub mod validity;
