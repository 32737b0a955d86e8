//! Intervals, stopping rules, steady state and fairness: pure functions over numbers.
#![deny(missing_docs)]
