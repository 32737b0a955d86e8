//! What a design can tell, and what it cannot: everything of `benchmaster plan` that follows from the treatments alone.
//!
//! [`describe`] is a pure function of a [`DesignInput`]. A study gives one, and so do the options of
//! `benchmaster plan --factors …` and the rows of a CSV file ([`request`]).

mod advice;
mod aliases;
mod blocks;
mod command;
mod describe;
mod description;
mod facts;
mod pilot;
mod precision;
mod replicates;
pub mod request;
pub(crate) mod text;
pub mod words;

pub use self::describe::describe;
pub use self::description::*;
pub use self::facts::{BlockInput, DesignFactor, DesignInput, MAX_ORDER, POWER};
pub use self::pilot::{Pilot, PilotError, Spread};
pub use self::request::{DesignRequest, RequestError};
pub use self::text::TextForm;
pub use self::words::Words;
