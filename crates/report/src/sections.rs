//! The sections of documents, which every renderer shows.

pub(crate) mod answer;
mod clients;
pub(crate) mod compare;
mod conditions;
pub(crate) mod conformance;
mod course;
pub(crate) mod differences;
pub(crate) mod doctor;
pub(crate) mod durability;
pub(crate) mod effects;
pub(crate) mod experiment;
pub(crate) mod exploration;
pub(crate) mod findings;
pub(crate) mod hash_cast;
pub(crate) mod history;
pub(crate) mod kept;
mod load;
pub(crate) mod results;
pub(crate) mod study;
pub(crate) mod validity;
mod wire;
