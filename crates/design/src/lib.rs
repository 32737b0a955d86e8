//! Experiment designs: treatments, replicates and seeded run order.
#![deny(missing_docs)]
