//! Experiment designs: treatments, replicates and seeded run order.
//!
//! Everything here is a pure function of its arguments. The same seed gives the same order on every machine and in
//! every version of this crate: the draws do not depend on how a library samples bounded integers.
#![deny(missing_docs)]

mod aberration;
pub mod array;
pub mod augment;
pub mod block;
pub mod catalogue;
pub mod centre;
mod clear;
mod coding;
mod design;
mod error;
pub mod exclude;
pub mod fold;
mod letters;
mod linear;
mod long_words;
mod order;
pub mod plackett_burman;
pub mod regular;
pub mod search;
pub mod structure;
pub mod term;
pub mod word_length;

pub use benchmaster_stats::random::{GENERATOR, stream_seed};
pub use design::{DesignError, MAX_TREATMENTS, check_rows, full, one_at_a_time};
pub use error::FractionError;
pub use order::{Order, OrderPlan, PlannedRun, planned_order, planned_round, round_order, run_order};
