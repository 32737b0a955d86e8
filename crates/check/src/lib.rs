//! Checks of what a server or a directory promises: each is a rule, where it is written, and a function that tries it.
//!
//! A [`Check`] is data and one function, the same for NFS servers ([`nfs`]) and for directories ([`directory`]). [`run`] tries a list of
//! them in an [`Environment`], one after the other, each in a directory of its own, and reports a [`Finding`] for each.
//! Nothing is printed.

#![deny(missing_docs)]

pub mod directory;
mod model;
pub mod nfs;

pub use benchmaster_record::conformance::{Checked, Finding, Force, Group, Verdict};
pub use model::{Check, Environment, Place, Rule, Stop, Text, Tried, Trouble, run};
