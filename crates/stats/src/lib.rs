//! Intervals, tests, effects, change points, stopping rules and fairness: pure functions over numbers.
//!
//! A sample is always a slice of numbers that may be taken as independent: one number per run, never the correlated
//! readings inside one.
#![deny(missing_docs)]

pub mod association;
pub mod bootstrap;
pub mod burst;
pub mod change;
pub mod equivalence;
pub mod factorial;
pub mod fairness;
pub mod hash_cast;
pub mod interval;
pub mod latency;
pub mod lenth;
pub mod levels;
pub mod model;
pub mod monitor;
pub mod multiple;
pub mod outlier;
pub mod percentile;
pub mod power;
pub mod random;
pub mod rank;
pub mod ratio;
pub mod residual;
pub mod series;
pub mod share;
pub mod steady;
pub mod stopping;
pub mod transform;

mod descriptive;
mod error;
mod f_distribution;
mod quantile;

pub use descriptive::{mean, median, standard_deviation};
pub use error::StatsError;
pub use quantile::{normal_quantile, t_quantile, t_two_sided_p};
