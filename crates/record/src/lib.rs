//! The types of a study and its results: plain data without I/O, at the bottom of the workspace.
//!
//! * [`model`]: a workload in full: filesets, groups of workers, the flow of operations.
//! * [`recording`]: what one workload of one run recorded: series, workers, RPCs, agents.
//! * [`samples`]: the system's counters over time.
//! * [`environment`]: the hosts.
//! * [`phase`], [`nfs`]: phases of a run, versions of NFS.
//! * [`results`]: a study, its plan, its runs and sessions.
//! * [`witness`]: what was acknowledged as stable, and what survived.
//! * [`live`]: the state of a running study.

#[macro_use]
mod words;

pub mod conformance;
pub mod environment;
pub mod live;
pub mod model;
pub mod nfs;
pub mod phase;
pub mod recording;
pub mod results;
pub mod samples;
pub mod witness;
