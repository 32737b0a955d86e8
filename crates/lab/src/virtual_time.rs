//! Server, clients and the network between them in one kernel whose clock moves only when all of them wait.
//!
//! The kernel is user-mode Linux with `time-travel=inf-cpu`: computing takes no time at all, and when nothing can go on the
//! clock jumps to the next timer. What a study measures there are round trips and what protocols wait for, and the same from
//! run to run, whatever else the host does.
//!
//! * [`boot`]: the host's side. It boots one guest, in which the study's controller itself runs, and takes the results out.
//! * [`first`]: process 1 of that guest.
//! * [`Inside`]: the lab that the controller finds there. Its machines are sets of namespaces of the one kernel, each held by
//!   a process of its own ([`Part`]).

mod boot;
mod first;
mod inside;
mod part;
mod processor;
mod reset;

use std::time::Duration;

/// The hidden command of this program that does a [`Part`].
pub const COMMAND: &str = "__virtual-time-part";
/// What the controller calls its own program where others have it.
pub const PROGRAM: &str = "/benchmaster";
/// Where the guest has the share.
pub const HOST: &str = "/host";
/// The variable that tells process 1 of a guest that its time is virtual.
pub const VARIABLE: &str = "BENCHMASTER_VIRTUAL_TIME";
/// How long a study on virtual time may take on the host's clock, unless said otherwise.
pub const LIMIT: Duration = Duration::from_secs(600);

/// The host's file with the server's disk, below the share.
pub const DISK: &str = "disk";
/// How often that disk can begin: once, and again after each cut of its power. Each time it is somewhere else in the file, which
/// has room for one more.
pub const LIVES: u32 = 7;

/// Switches the guest off at once, with everything that is done in it.
pub fn end() {
    rustix::fs::sync();
    // Should it fail, the host ends it later.
    let _ = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
}

/// The job, in the guest.
const JOB: &str = "/host/job.json";
const GUEST: &str = "virtual";

pub use boot::{Boot, BootError, Ended, boot, share};
pub use first::{Job, first};
pub use inside::{Inside, InsideError, is_inside};
pub use part::{Part, PartError};
