//! Experiment designs: treatments, replicates and seeded run order.
//!
//! Everything here is a pure function of its arguments. The same seed gives the same order on every machine and in
//! every version of this crate: the draws do not depend on how a library samples bounded integers.
#![deny(missing_docs)]

mod design;
mod order;
mod random;

pub use design::{DesignError, MAX_TREATMENTS, full, one_at_a_time};
pub use order::{Order, round_order, run_order};
pub use random::{GENERATOR, stream_seed};
