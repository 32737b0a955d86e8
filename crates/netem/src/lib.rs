//! Emulated networks between clients and servers on one host.
//!
//! * [`network`]: a server and clients with a network between them, by the best means of the host.
//! * [`namespace`]: network namespaces held by a descriptor, also for users who are not root.
//! * [`link`]: what a link does to frames.
//! * [`interface`]: transmit queues of hosts, and [`toeplitz`], which spreads flows over them.
//! * [`wire`]: Ethernet frames moved between namespaces, each as much later as its link says.
//! * [`relay`]: connections through it take a chosen time longer in each direction.

pub mod interface;
pub mod link;
pub mod namespace;
pub mod network;
pub mod relay;
pub mod toeplitz;
pub mod wire;
