//! The `benchmaster` command.
fn main() {}
