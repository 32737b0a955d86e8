//! The results directory of a study: `study.toml`, `results.db` (SQLite), `traces/*.parquet`, `report.html`.
//!
//! * [`record`]: what is stored, as plain data; the same types are written and read back.
//! * [`live`]: the state of a running study, for those who watch it.
//! * [`Store`]: makes, opens and reads a results directory. A run is stored whole or not at all.
//! * [`trace`]: the record of every single operation, streamed to Parquet.

mod directory;
mod error;
pub mod live;
pub mod outline;
mod rows;
mod schema;
mod store;
pub mod trace;

pub use benchmaster_record::results as record;
pub use error::{CreateError, DatabaseError, LoadError, LockError, OpenError, WriteError};
pub use schema::factor_columns;
pub use store::{CompletedRun, Reader, Store};
