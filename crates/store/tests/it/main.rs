//! Tests of the results directory: what is written is read, and the documentation describes the database.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod docs;
mod store;
mod trace;
