//! Machines of each back-end that works here: they boot, end in several ways, and keep the registers of their programs.

pub(crate) mod guest;
mod host;
mod registers;

pub(crate) use host::trials;
