//! Study file, plan, runner, resume and validity checks.
#![deny(missing_docs)]
