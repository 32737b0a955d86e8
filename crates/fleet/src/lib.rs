//! Many clients at the same instant: agents on many hosts, the controller that leads them, and what keeps them together.
//!
//! * [`job`]: what one workload of one run asks of all agents, as plain data.
//! * [`perform`]: one process doing its part of a job, with samplers and attached commands beside it.
//! * [`merge`]: the recordings of many processes as one.
//! * [`clock`]: the offset of another host's clock from exchanges of time stamps.
//! * [`hosts`]: patterns of host names.
//! * [`launch`]: starting agents, each at the other end of a byte stream.
//! * [`agent`]: the process that does what a controller says.
//! * [`controller`]: what leads them.
//! * [`tree`]: which agents are led by which process.
//! * [`protocol`]: the versions that both sides must have in common.
//! * [`stream`]: byte streams between both.
//! * [`manifest`]: the same in a Kubernetes cluster, whose objects start the agents.
//! * [`secure`]: TLS and a one-time token for agents that dial the controller.

pub mod agent;
pub mod clock;
pub mod collect;
pub mod controller;
pub mod hosts;
pub mod job;
pub mod launch;
pub mod manifest;
pub mod merge;
pub mod perform;
pub mod protocol;
pub mod secure;
pub mod stream;
pub mod tree;
