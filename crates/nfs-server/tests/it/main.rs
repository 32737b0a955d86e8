//! The server over sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

mod support;

mod callbacks;
mod exactly_once;
mod net;
