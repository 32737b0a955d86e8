//! The protocol with a mechanism without Kerberos, and Kerberos with a realm of its own.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod kerberos;
mod mock;
mod protocol;
mod realm;
