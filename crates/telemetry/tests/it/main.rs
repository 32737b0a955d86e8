//! Tests of the telemetry as others use it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod documentation;
