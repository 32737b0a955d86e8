//! Findings: what is wrong or not what it seems, how that is known, what it costs, and what to do about it.
//!
//! * [`finding`]: what a finding is.
//! * [`explanation`]: what stands behind each kind of finding: mechanism, formula, source; [`catalogue`] has them all.
//! * [`diagnosis`]: what was looked for, and what of it was found.
//! * [`validity`]: the checks of a run while it is made.
//! * [`lints`]: the rules of good measurement, and whether a study keeps them.
//! * [`results`]: findings from the stored results of a study.
//! * [`mountstats`]: findings from nothing but the counters of the Linux NFS client.
//!
//! Everything here is pure: it works on what was read before, and reads no clock. A detector whose evidence is not there
//! says so, and guesses nothing.
#![deny(missing_docs)]

pub mod catalogue;
mod details;
pub mod diagnosis;
pub mod explanation;
pub mod finding;
pub mod lints;
mod measured;
pub mod mountstats;
mod prelude;
mod remedy;
pub mod results;
pub mod validity;
mod words;
