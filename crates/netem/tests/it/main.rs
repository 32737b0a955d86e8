//! Emulated networks between real namespaces and sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test")]

mod namespace;
mod network;
mod queues;
mod relay;
mod tcp;
