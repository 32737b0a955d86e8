//! Intervals, stopping rules, steady state and fairness: pure functions over numbers.
//!
//! A sample is always a slice of numbers that may be taken as independent: one number per run, never the correlated
//! readings inside one.
#![deny(missing_docs)]

pub mod factorial;
pub mod fairness;
pub mod interval;
pub mod latency;
pub mod outlier;
pub mod percentile;
pub mod steady;
pub mod stopping;

mod descriptive;
mod error;
mod quantile;

pub use descriptive::{mean, median, standard_deviation};
pub use error::StatsError;
pub use quantile::{normal_quantile, t_quantile};
