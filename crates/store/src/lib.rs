//! The results directory of a study: `study.toml`, `results.db` (SQLite), `traces/*.parquet`, `report.html`.
//!
//! [`record`] holds what is stored, as plain data; the same types are written and read back.
#![deny(missing_docs)]

pub mod record;
