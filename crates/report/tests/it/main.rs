//! The report as text, as pages, and as a browser shows them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod browser;
mod chromium;
mod compare_page;
mod effects;
mod hostile;
mod made_up;
mod page;
mod terminal;
