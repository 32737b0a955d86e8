//! Terminal tables, the HTML report and exports.
#![deny(missing_docs)]
