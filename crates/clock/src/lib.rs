//! The clocks of a host: the kernel's, and the processor's time-stamp counter for hot paths.

mod counter;
mod kernel;
mod ticks;

pub use kernel::{is_virtual, monotonic_ns, nanoseconds, realtime_minus_monotonic_ns};
pub use ticks::{Clock, Ticks};
