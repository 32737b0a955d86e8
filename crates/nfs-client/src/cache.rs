//! What the Linux client keeps of files between calls: attributes, names, access rights, data.
//!
//! The parts here know no network: they are given what the server said and when, and decide what is still valid.
//! What is sent because of that is decided in [`mount`](crate::mount).

mod attributes;
mod clock;
mod locks;
mod names;
mod pages;
mod readahead;
mod requests;
mod stats;

pub use self::clock::Clock;

pub(crate) use self::attributes::{Access, Known};
pub(crate) use self::locks::{Lock, Locks};
pub(crate) use self::names::{Name, Names};
pub(crate) use self::pages::{PAGE, Pages, Place, Run};
pub(crate) use self::readahead::{Reach, Readahead, Window};
pub(crate) use self::requests::SortedRequests;
pub use self::stats::{CacheCount, CacheCounts};
