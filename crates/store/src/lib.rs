//! The results directory of a study: `study.toml`, `results.db` (SQLite), `traces/*.parquet`, `report.html`.
//!
//! * [`record`]: what is stored, as plain data; the same types are written and read back.
//! * [`Store`]: makes, opens and reads a results directory. A run is stored whole or not at all.
//! * [`trace`]: the record of every single operation, streamed to Parquet.
#![deny(missing_docs)]

mod directory;
mod error;
mod insert;
pub mod record;
mod schema;
mod select;
mod store;
#[doc(hidden)]
pub mod synthetic;
pub mod trace;

pub use error::{CreateError, DatabaseError, LoadError, LockError, OpenError, WriteError};
pub use schema::factor_columns;
pub use store::{CompletedRun, Store};
