//! A number with its interval.

use serde::Serialize;

/// A value and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ranged {
    pub value: f64,
    /// Its interval; `None` without an error.
    pub interval: Option<[f64; 2]>,
}
